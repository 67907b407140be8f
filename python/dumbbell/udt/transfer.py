"""Files over UDT: the engine transfers them in a thread, which the user can interrupt."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from dumbbell import _core
from dumbbell.udt.sockets import MAX_PORT, Settings, check_choice, check_seconds, check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Observer = Callable[[_core.TransferMonitor], None]

T = TypeVar("T")

Allow = Literal["send", "recv", "both"]
"""The commands that a server allows its clients."""

PORT: Final = 9000
"""The port of servers that name none."""

INTERVAL: Final = 0.1
"""How often a connection is sampled and observed, s."""

_MAX_BYTES: Final = 2**64 - 1
_MAX_RETRIES: Final = 2**32 - 1
_MAX_CLIENTS: Final = 10_000

_DEFAULTS = Settings()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a receiver of files accepts.

    Attributes:
        max_bytes: Maximum bytes of data in all, of all clients of a server; None for no limit. Each
            new file and folder counts as at least 4096 bytes.
        keep_free: Bytes of the file system that stay free.
        overwrite: Whether existing files with another size or time are replaced.
    """

    max_bytes: int | None = None
    keep_free: int = 0
    overwrite: bool = True

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if self.max_bytes is not None:
            check_whole("max_bytes", self.max_bytes, 0, _MAX_BYTES)
        check_whole("keep_free", self.keep_free, 0, _MAX_BYTES)

    def to_tuple(self) -> tuple[int | None, int, bool]:
        """The limits as the engine reads them."""
        return self.max_bytes, self.keep_free, self.overwrite


_UNLIMITED = Limits()


@dataclass(frozen=True)
class Report:
    """The result of a transfer.

    Attributes:
        bytes: Bytes in all.
        resumed: Those of them that the receiver had before.
        files: Files.
        seconds: Duration from when the first file was known, s.
        monitor: What was measured (`record` makes a result of it).
        names: Files and folders without what is in them, with their numbers of transferred files.
    """

    bytes: int
    resumed: int
    files: int
    seconds: float
    monitor: _core.TransferMonitor = field(repr=False)
    names: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Transferred bits/s."""
        return (self.bytes - self.resumed) * 8 / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        """The attributes, ``rate`` (bit/s), ``rtt`` (s), and the share of retransmitted packets."""
        now = self.monitor.progress()
        names = ("bytes", "resumed", "files", "names", "seconds", "rate")
        loss = now["retransmitted"] / now["sent"] if now["sent"] else 0.0
        return {name: getattr(self, name) for name in names} | {"rtt": now["rtt"], "loss": loss}


def send(
    paths: Sequence[Path],
    host: str,
    port: int = PORT,
    *,
    into: str | None = None,
    settings: Settings = _DEFAULTS,
    retries: int = 5,
    observe: Observer | None = None,
) -> Report:
    """Sends files and folders to a server.

    Args:
        paths: The files and folders; each is called by its last name there.
        host: The server.
        port: Its port.
        into: A folder in the server's folder.
        settings: Settings of the connection; the key is the server's.
        retries: How often an interrupted transfer is tried again without progress.
        observe: Called periodically.

    Raises:
        OSError: If the server cannot be reached or refuses, or files did not arrive intact.
        ValueError: If a file cannot be read, or an argument is not valid.
        KeyboardInterrupt: If the user interrupts; the same call resumes the transfer.
    """
    check_whole("retries", retries, 0, _MAX_RETRIES)
    given = (_address(host, port), list(paths), into, settings.to_json(), retries, INTERVAL)
    return _attend(partial(_core.udt_push, *given), observe)[0]


def receive(
    host: str,
    paths: Sequence[str],
    into: Path,
    port: int = PORT,
    *,
    limits: Limits = _UNLIMITED,
    settings: Settings = _DEFAULTS,
    retries: int = 5,
    observe: Observer | None = None,
) -> Report:
    """Receives files and folders into the folder `into`. Other arguments and errors as of `send`.

    Args:
        host: The server.
        paths: Paths in the server's folder; "." is everything. Only what has their last names is
            accepted.
        into: The folder for what is received.
        port: Port of the server.
        limits: What is accepted.
        settings: As for `send`.
        retries: As for `send`.
        observe: As for `send`.
    """
    check_whole("retries", retries, 0, _MAX_RETRIES)
    given = (_address(host, port), list(paths), into, limits.to_tuple(), settings.to_json())
    return _attend(partial(_core.udt_pull, *given, retries, INTERVAL), observe)[0]


def serve(
    root: Path,
    port: int = PORT,
    *,
    host: str | None = None,
    allow: Allow = "send",
    insecure: bool = False,
    limits: Limits = _UNLIMITED,
    settings: Settings = _DEFAULTS,
    once: bool = False,
    clients: int = 64,
    observe: Observer | None = None,
) -> Report:
    """Serves a folder until the user interrupts, or, with `once`, until one client was served.

    Args:
        root: The folder.
        port: The port; 0 is any free one.
        host: The address to listen at; by default all with a key, and loopback without.
        allow: What clients may do: send, recv, or both.
        insecure: Whether to listen at other addresses without a key.
        limits: What is accepted of clients.
        settings: Settings of connections; with a key, only clients that have it are served.
        once: Whether to end after one client.
        clients: How many are served at a time; others wait.
        observe: Called periodically; the monitor's events say who did what.

    Raises:
        OSError: If the address cannot be bound; with `once`, if the transfer failed.
        ValueError: If `root` is no folder, or an argument is not valid or not safe.
        KeyboardInterrupt: If the user interrupts.
    """
    check_choice("allow", allow, get_args(Allow))
    check_whole("clients", clients, 1, _MAX_CLIENTS)
    address = _address(host or ("0.0.0.0" if settings.key or insecure else "127.0.0.1"), port)
    permission = (allow != "recv", allow != "send")
    given = (root, address, limits.to_tuple(), settings.to_json(), permission, insecure, once)
    return _attend(partial(_core.udt_serve, *given, clients), observe)[0]


def bench(
    host: str,
    port: int = PORT,
    *,
    seconds: float = 10.0,
    size: int | None = None,
    settings: Settings = _DEFAULTS,
    observe: Observer | None = None,
) -> Report:
    """Sends data that a server discards, for so many seconds or bytes.

    Raises:
        OSError: If the server cannot be reached or refuses.
        ValueError: If an argument is not valid.
    """
    check_seconds("seconds", seconds)
    given = (_address(host, port), seconds, size, settings.to_json(), INTERVAL)
    report, (moved, took) = _attend(partial(_core.udt_bench, *given), observe)
    return Report(moved, 0, 0, took, report.monitor)


def listing(
    host: str, path: str = ".", port: int = PORT, *, settings: Settings = _DEFAULTS
) -> list[tuple[str, int | None, int]]:
    """Lists a folder of a server: names, sizes (bytes; None for folders), times (ns since 1970)."""
    given = (_address(host, port), path, settings.to_json())
    return _attend(partial(_core.udt_list, *given), None)[1]


def _address(host: str, port: int) -> str:
    check_whole("port", port, 0, MAX_PORT)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _attend(
    work: Callable[[_core.TransferMonitor], T], observe: Observer | None
) -> tuple[Report, T]:
    """Does the work in a thread, so that the user can interrupt it; returns what it returns too."""
    monitor = _core.TransferMonitor()
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(monitor))
        except BaseException as error:
            future.set_exception(error)

    began = time.perf_counter()
    threading.Thread(target=run, name="udt-transfer", daemon=True).start()
    try:
        while not future.done():
            # An interrupted `Thread.join` takes the thread for ended (bpo-45274).
            wait([future], INTERVAL)
            known = monitor.progress()
            if not (known["all_files"] or known["bytes"]) and not future.done():
                began = time.perf_counter()  # Waiting for the peer is no part of the duration.
            if observe:
                observe(monitor)
    except BaseException:
        monitor.stop()
        wait([future], 10.0)
        if observe:
            observe(monitor)
        raise
    value = future.result()
    took = time.perf_counter() - began
    now = monitor.progress()
    names = dict(now["names"])
    return Report(now["bytes"], now["resumed"], now["files"], took, monitor, names), value
