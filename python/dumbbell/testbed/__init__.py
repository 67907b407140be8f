"""Real packets: an experiment with the TCP of this machine's Linux.

A run is a process of its own (`dumbbell.testbed.worker`), whose namespaces, devices and programs
have no names outside: when it is gone so are they, even if it was killed. `dumbbell.testbed.client`
starts it and hears it out.
"""
