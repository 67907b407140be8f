"""UDT sockets: the engine's, and their settings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from dumbbell._core import Listener, Socket
from dumbbell._core import udt_key as new_key

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Listener", "Settings", "Socket", "connect", "listen", "new_key", "rendezvous"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a connection.

    Attributes:
        cc: Congestion control of what this end sends, named as in experiments.
        mode: Whether it carries a stream of bytes or messages; the same at both ends.
        key: 64 hexadecimal digits (`new_key`), the same at both ends: everything is encrypted. A
            peer without it, such as another implementation of UDT4, is refused.
        connect_timeout: Maximum duration of connecting, s.
        silence: Time without a packet of the peer after which the connection has failed, s.
        linger: Maximum time that closing waits for acknowledgements, s. Then the connection ends.
        options: UDT's options that are not the algorithm's defaults: mss (bytes), window,
            send_buffer, receive_buffer, ack_interval (packets), light_acks, nak_repeat, skip_gaps.
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
        return json.dumps(asdict(self))


_DEFAULTS = Settings()


def connect(host: str, port: int, *, settings: Settings = _DEFAULTS) -> Socket:
    """Connects to a listener.

    Raises:
        OSError: If no connection is established within the settings' time.
        ValueError: If the settings are not valid.
    """
    return Socket.connect(host, port, settings.to_json())


def rendezvous(
    local: tuple[str, int], peer: tuple[str, int], *, settings: Settings = _DEFAULTS
) -> Socket:
    """Connects to a peer that connects too. Raises as `connect`.

    Args:
        local: Host and port of this end, which the peer knows.
        peer: Host and port of the peer.
        settings: The settings.
    """
    return Socket.rendezvous(local, peer, settings.to_json())


def listen(port: int = 0, *, host: str = "0.0.0.0", settings: Settings = _DEFAULTS) -> Listener:
    """Listens at a port; 0 is any free one.

    Raises:
        OSError: If the address cannot be bound.
        ValueError: If the settings are not valid.
    """
    return Listener(host, port, settings.to_json())
