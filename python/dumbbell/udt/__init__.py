"""UDT over UDP: sockets, and files over them.

A listener and a client::

    with udt.listen(9000) as listener, listener.accept() as peer:
        print(peer.recv(1000))

    with udt.connect("example.org", 9000) as peer:
        peer.send(b"hello")

Leaving the ``with`` of a socket waits until all that was sent is acknowledged. The peer may be any
implementation of UDT4, unless a key is given.
"""

from dumbbell.udt.record import record
from dumbbell.udt.sockets import Listener, Settings, Socket, connect, listen, new_key, rendezvous
from dumbbell.udt.transfer import PORT, Report, bench, receive, send, serve

__all__ = [
    "PORT",
    "Listener",
    "Report",
    "Settings",
    "Socket",
    "bench",
    "connect",
    "listen",
    "new_key",
    "receive",
    "record",
    "rendezvous",
    "send",
    "serve",
]
