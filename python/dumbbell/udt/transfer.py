"""Files over UDT: the engine transfers them in a thread, which the user can interrupt."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dumbbell import _core
from dumbbell.udt.sockets import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Observer = Callable[[_core.TransferMonitor], None]

T = TypeVar("T")

PORT: Final = 9000
"""The port of servers that name none."""

INTERVAL: Final = 0.1
"""How often a connection is sampled and observed, s."""

_DEFAULTS = Settings()


@dataclass(frozen=True)
class Report:
    """The result of a transfer.

    Attributes:
        bytes: Bytes in all.
        resumed: Those of them that had arrived before.
        files: Files.
        seconds: How long it took, from when the first file was known.
        monitor: What was measured (`record` makes a result of it).
    """

    bytes: int
    resumed: int
    files: int
    seconds: float
    monitor: _core.TransferMonitor

    @property
    def rate(self) -> float:
        """Bits that crossed a second."""
        return (self.bytes - self.resumed) * 8 / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        """The attributes, ``rate`` (bit/s), ``rtt`` (s), and the share of retransmitted packets."""
        now = self.monitor.progress()
        return {
            "bytes": self.bytes,
            "resumed": self.resumed,
            "files": self.files,
            "seconds": self.seconds,
            "rate": self.rate,
            "rtt": now["rtt"],
            "loss": now["retransmitted"] / now["sent"] if now["sent"] else 0.0,
        }


def send(
    paths: Sequence[Path],
    host: str,
    port: int = PORT,
    *,
    settings: Settings = _DEFAULTS,
    retries: int = 5,
    observe: Observer | None = None,
) -> Report:
    """Gives files and folders to a server.

    Args:
        paths: The files and folders; each is called by its last name there.
        host: The server.
        port: Its port.
        settings: Settings of the connection; the key is the server's.
        retries: How often an interrupted transfer is tried again without progress.
        observe: Called periodically.

    Raises:
        OSError: If the server cannot be reached, refuses, or files did not arrive as they are.
        ValueError: If a file cannot be read, or the settings are not valid.
        KeyboardInterrupt: If the user interrupts; the same call goes on with it later.
    """
    given = (_address(host, port), list(paths), settings.to_json(), retries, INTERVAL)
    return _attend(partial(_core.udt_push, *given), observe)[0]


def receive(
    host: str,
    paths: Sequence[str],
    into: Path,
    port: int = PORT,
    *,
    settings: Settings = _DEFAULTS,
    retries: int = 5,
    observe: Observer | None = None,
) -> Report:
    """Takes files and folders, by their paths in the server's folder, into the folder `into`.

    Args and errors as those of `send`.
    """
    given = (_address(host, port), list(paths), into, settings.to_json(), retries, INTERVAL)
    return _attend(partial(_core.udt_pull, *given), observe)[0]


def serve(
    root: Path,
    port: int = PORT,
    *,
    host: str = "0.0.0.0",
    settings: Settings = _DEFAULTS,
    write: bool = True,
    read: bool = True,
    once: bool = False,
    clients: int = 64,
    observe: Observer | None = None,
) -> Report:
    """Serves a folder until the user interrupts, or, with `once`, until one client was served.

    Args:
        root: The folder.
        port: The port; 0 is any that is free.
        host: The address to listen at.
        settings: Settings of connections; with a key, only clients that have it are served.
        write: Whether clients may give files.
        read: Whether clients may take files.
        once: Whether to end after one client.
        clients: How many are served at a time; others wait.
        observe: Called periodically; the monitor's events say who did what.

    Raises:
        OSError: If the address cannot be had; with `once`, if the transfer failed.
        ValueError: If `root` is no folder, or the settings are not valid.
        KeyboardInterrupt: If the user interrupts.
    """
    given = (root, _address(host, port), settings.to_json(), (write, read, once), clients)
    return _attend(partial(_core.udt_serve, *given), observe)[0]


def bench(
    host: str,
    port: int = PORT,
    *,
    seconds: float = 10.0,
    size: int | None = None,
    settings: Settings = _DEFAULTS,
    observe: Observer | None = None,
) -> Report:
    """Sends data that a server throws away, for so many seconds or bytes.

    Raises:
        OSError: If the server cannot be reached or refuses.
        ValueError: If the settings are not valid.
    """
    given = (_address(host, port), seconds, size, settings.to_json(), INTERVAL)
    report, (moved, took) = _attend(partial(_core.udt_bench, *given), observe)
    return Report(moved, 0, 0, took, report.monitor)


def _address(host: str, port: int) -> str:
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
    thread = threading.Thread(target=run, name="udt-transfer", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(INTERVAL)
            known = monitor.progress()
            if not (known["all_files"] or known["bytes"]) and thread.is_alive():
                began = time.perf_counter()  # Nothing has come yet: that is no part of it.
            if observe:
                observe(monitor)
    except BaseException:
        monitor.stop()
        thread.join(10.0)
        raise
    value = future.result()
    took = time.perf_counter() - began
    progress = monitor.progress()
    report = Report(progress["bytes"], progress["resumed"], progress["files"], took, monitor)
    return report, value
