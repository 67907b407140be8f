"""Sweeps: one experiment along axes, in a folder that survives being killed."""
