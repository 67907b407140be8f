"""UDT over UDP: sockets, and files over them.

A listener and a client::

    with udt.listen(9000) as listener, listener.accept() as peer:
        print(peer.recv(1000))

    with udt.connect("example.org", 9000) as peer:
        peer.send(b"hello")

Leaving the ``with`` of a socket waits until all that was sent is acknowledged. The peer may be any
implementation of UDT4, unless a key is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dumbbell.udt.sockets import Listener, Settings, Socket, connect, listen, new_key, rendezvous
from dumbbell.udt.transfer import (
    PORT,
    Allow,
    Limits,
    Report,
    bench,
    listing,
    receive,
    send,
    serve,
)

if TYPE_CHECKING:
    from dumbbell.udt.recording import record

__all__ = [
    "PORT",
    "Allow",
    "Limits",
    "Listener",
    "Report",
    "Settings",
    "Socket",
    "bench",
    "connect",
    "listen",
    "listing",
    "new_key",
    "receive",
    "record",
    "rendezvous",
    "send",
    "serve",
]


def __getattr__(name: str) -> Any:
    """Imports `record` when it is used: its tables take longer to import than a short transfer."""
    if name == "record":
        from dumbbell.udt.recording import record

        return record
    raise AttributeError(name)
