"""UDT sockets: the engine's, and their settings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, Literal, get_args

from dumbbell._core import Listener, Socket
from dumbbell._core import udt_key as new_key
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_PORT: Final = 65_535

Mode = Literal["stream", "message"]

_MAX_SECONDS: Final = 1.8e19

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
    mode: Mode = "stream"
    key: str | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    silence: float = 5.0
    linger: float = 180.0
    options: Mapping[str, int | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks all but `cc` and `options`, which the engine checks when it reads them."""
        check_choice("mode", self.mode, get_args(Mode))
        hexadecimal = isinstance(self.key, str) and re.fullmatch("[0-9a-fA-F]{64}", self.key)
        if self.key is not None and not hexadecimal:
            raise DumbbellError("key: it is not 64 hexadecimal digits, as new_key() makes them")
        check_seconds("connect_timeout", self.connect_timeout)
        check_seconds("silence", self.silence)
        if self.linger != 0:
            check_seconds("linger", self.linger, or_zero="0, or ")

    def to_json(self) -> str:
        """The settings as the engine reads them."""
        return json.dumps(asdict(self))


def check_choice(name: str, value: object, valid: Sequence[str]) -> None:
    """Raises `DumbbellError` unless the argument called `name` is one of the valid ones."""
    if value not in valid:
        raise DumbbellError(f"{name}: {value!r} is not valid; choose from {', '.join(valid)}")


def check_seconds(name: str, value: object, or_zero: str = "") -> None:
    """Raises `DumbbellError` unless the argument called `name` is a positive time, s."""
    if not (isinstance(value, Real) and 0 < float(value) <= _MAX_SECONDS):
        valid = f"{or_zero}a number of seconds above 0, at most {_MAX_SECONDS:g}"
        raise DumbbellError(f"{name}: {value!r} is not valid; it is {valid}")


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raises `DumbbellError` unless the argument called `name` is a whole number in this range."""
    if not (isinstance(value, Integral) and least <= int(value) <= most):
        raise DumbbellError(f"{name}: {value!r} is not a whole number from {least} to {most:,}")


_DEFAULTS = Settings()


def connect(host: str, port: int, *, settings: Settings = _DEFAULTS) -> Socket:
    """Connects to a listener.

    Raises:
        OSError: If no connection is established within the settings' time.
        ValueError: If the settings are not valid.
    """
    check_whole("port", port, 0, MAX_PORT)
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
    check_whole("local: port", local[1], 0, MAX_PORT)
    check_whole("peer: port", peer[1], 0, MAX_PORT)
    return Socket.rendezvous(local, peer, settings.to_json())


def listen(port: int = 0, *, host: str = "0.0.0.0", settings: Settings = _DEFAULTS) -> Listener:
    """Listens at a port; 0 is any free one.

    Raises:
        OSError: If the address cannot be bound.
        ValueError: If the settings are not valid.
    """
    check_whole("port", port, 0, MAX_PORT)
    return Listener(host, port, settings.to_json())
