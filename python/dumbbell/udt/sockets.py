"""UDT sockets."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from dumbbell import _core

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a connection.

    Attributes:
        cc: Congestion control, by its name and options as in experiments.
        mode: Whether it carries a stream of bytes or messages; the same at both ends.
        key: 64 hexadecimal digits (`new_key`), the same at both ends: everything is encrypted. A
            peer without it, such as another implementation of UDT4, is refused.
        connect_timeout: How long to try to connect, s.
        silence: How long the peer may be silent before it is taken for dead, s.
        linger: How long closing waits until all that was sent is acknowledged, s.
        options: UDT's options that are not to be the algorithm's defaults: mss (bytes), window,
            send_buffer, receive_buffer, ack_interval (packets), light_acks, nak_repeat.
    """

    cc: str = "udt"
    mode: Literal["stream", "message"] = "stream"
    key: str | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    silence: float = 5.0
    linger: float = 180.0
    options: Mapping[str, int | bool] = field(default_factory=dict)

    def to_json(self) -> str:
        """The settings as the engine reads them."""
        same = ("cc", "key", "connect_timeout", "silence", "linger")
        return json.dumps(
            {name: getattr(self, name) for name in same}
            | {"messages": self.mode == "message"}
            | {"options": {**_core.udt_options(self.cc), **self.options}}
        )


class Socket(AbstractContextManager["Socket"]):
    """A UDT connection. Several threads may use it at once.

    What waits raises TimeoutError when its `timeout` (s) is over; without one it waits for as long
    as it takes. A connection that has failed raises OSError.
    """

    def __init__(self, core: _core.UdtSocket) -> None:
        """A socket over the engine's; `connect`, `rendezvous` and `Listener.accept` make them."""
        self._core = core

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Closes it; after an error, without waiting."""
        if kind is None:
            self.close()
        else:
            self._core.abandon()

    def send(self, data: bytes, *, timeout: float | None = None) -> None:
        """Sends all bytes of a stream."""
        self._core.send(data, timeout)

    def recv(self, size: int = 65_536, *, timeout: float | None = None) -> bytes:
        """Reads at most `size` bytes of a stream; none if the peer has closed."""
        return self._core.recv(size, timeout)

    def send_message(
        self,
        data: bytes,
        *,
        ttl: float | None = None,
        in_order: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Sends a message.

        Args:
            data: The message.
            ttl: After this time (s) it is not retransmitted.
            in_order: Whether messages before it must be delivered first.
            timeout: How long to wait for room (s).
        """
        self._core.send_message(data, ttl=ttl, in_order=in_order, timeout=timeout)

    def recv_message(self, *, timeout: float | None = None) -> bytes | None:
        """The next message; None if the peer has closed."""
        return self._core.recv_message(timeout)

    def close(self, *, linger: float | None = None) -> None:
        """Closes the connection once all that was sent is acknowledged.

        Raises:
            OSError: If something that was sent did not arrive, as far as is known.
        """
        self._core.close(linger)

    def statistics(self) -> dict[str, float]:
        """Counters and present values, called as in `Result.series`: s, bit/s, bytes, packets."""
        return self._core.statistics()

    @property
    def local(self) -> tuple[str, int]:
        """Host and port of this end."""
        return self._core.local

    @property
    def peer(self) -> tuple[str, int]:
        """Host and port of the peer."""
        return self._core.peer


class Listener(AbstractContextManager["Listener"]):
    """Waits for UDT connections."""

    def __init__(self, core: _core.UdtListener) -> None:
        """A listener over the engine's; `listen` makes them."""
        self._core = core

    def __exit__(self, *_: object) -> None:
        """Stops listening."""
        self.close()

    def accept(self, *, timeout: float | None = None) -> Socket:
        """The next connection."""
        return Socket(self._core.accept(timeout))

    def close(self) -> None:
        """Stops listening; connections that were accepted go on."""
        self._core.close()

    @property
    def local(self) -> tuple[str, int]:
        """Host and port at which it listens."""
        return self._core.local


_DEFAULTS = Settings()


def connect(host: str, port: int, *, settings: Settings = _DEFAULTS) -> Socket:
    """Connects to a listener.

    Raises:
        OSError: If there is no connection within the time that the settings give.
        ValueError: If they are not valid.
    """
    return Socket(_core.UdtSocket.connect(host, port, settings.to_json()))


def rendezvous(
    local: tuple[str, int], peer: tuple[str, int], *, settings: Settings = _DEFAULTS
) -> Socket:
    """Connects to a peer that connects too; each knows host and port of the other.

    Raises:
        OSError: If there is no connection within the time that the settings give.
        ValueError: If they are not valid.
    """
    return Socket(_core.UdtSocket.rendezvous(local, peer, settings.to_json()))


def listen(port: int = 0, *, host: str = "0.0.0.0", settings: Settings = _DEFAULTS) -> Listener:
    """Listens at a port; 0 is any that is free.

    Raises:
        OSError: If the address cannot be had.
        ValueError: If the settings are not valid.
    """
    return Listener(_core.UdtListener(host, port, settings.to_json()))


def new_key() -> str:
    """A new key for `Settings.key`."""
    return _core.udt_key()
