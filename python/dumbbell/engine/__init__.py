"""Runs experiments: in the simulator, or with real packets through the kernel of this machine."""
