"""Files over UDT: what the engine does in a thread, seen and stopped from here."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.udt.sockets import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PORT: Final = 9000
"""The port of servers that name none."""

INTERVAL: Final = 0.1
"""How often a connection is sampled and progress is told, s."""

_DEFAULTS = Settings()


@dataclass(frozen=True)
class Report:
    """What came of a transfer.

    Attributes:
        bytes: Bytes in all.
        resumed: Those of them that had arrived before.
        files: Files.
        seconds: How long it took, from when the first file was known.
        watch: What was measured (`record` makes a result of it).
    """

    bytes: int
    resumed: int
    files: int
    seconds: float
    watch: _core.TransferMonitor

    @property
    def rate(self) -> float:
        """Bits that crossed a second."""
        return (self.bytes - self.resumed) * 8 / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        """The attributes, ``rate`` (bit/s), ``rtt`` (s), and the share of packets sent again."""
        now = self.watch.progress()
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
    tell: Callable[[_core.TransferMonitor], None] | None = None,
) -> Report:
    """Gives files and folders to a server.

    Args:
        paths: The files and folders; each is called by its last name there.
        host: The server.
        port: Its port.
        settings: What the connection is to be; the key is the server's.
        retries: How often an interrupted transfer is tried again without progress.
        tell: Is told every now and then.

    Raises:
        OSError: If the server cannot be reached, refuses, or files did not arrive as they are.
        ValueError: If a file cannot be read, or the settings are not valid.
        KeyboardInterrupt: If the user interrupts; the same call goes on with it later.
    """
    peer, given = _address(host, port), settings.to_json()
    return _attend(
        lambda watch: _core.udt_push(peer, list(paths), given, retries, INTERVAL, watch), tell
    )


def receive(
    host: str,
    paths: Sequence[str],
    into: Path,
    port: int = PORT,
    *,
    settings: Settings = _DEFAULTS,
    retries: int = 5,
    tell: Callable[[_core.TransferMonitor], None] | None = None,
) -> Report:
    """Takes files and folders, by their paths in the server's folder, into the folder `into`.

    Args and errors as those of `send`.
    """
    peer, given = _address(host, port), settings.to_json()
    return _attend(
        lambda watch: _core.udt_pull(peer, list(paths), into, given, retries, INTERVAL, watch),
        tell,
    )


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
    tell: Callable[[_core.TransferMonitor], None] | None = None,
) -> Report:
    """Serves a folder until the user interrupts, or, with `once`, until one client was served.

    Args:
        root: The folder.
        port: The port; 0 is any that is free.
        host: The address to listen at.
        settings: What connections are to be; with a key, only who has it is served.
        write: Whether clients may give files.
        read: Whether clients may take files.
        once: Whether to end after one client.
        clients: How many are served at a time; others wait.
        tell: Is told every now and then; the watch's events say who did what.

    Raises:
        OSError: If the address cannot be had; with `once`, if the transfer failed.
        ValueError: If `root` is no folder, or the settings are not valid.
        KeyboardInterrupt: If the user interrupts.
    """
    local, given = _address(host, port), settings.to_json()
    may = (write, read, once)
    return _attend(lambda watch: _core.udt_serve(root, local, given, may, clients, watch), tell)


def bench(
    host: str,
    port: int = PORT,
    *,
    seconds: float = 10.0,
    size: int | None = None,
    settings: Settings = _DEFAULTS,
    tell: Callable[[_core.TransferMonitor], None] | None = None,
) -> Report:
    """Sends data that a server throws away, for so many seconds or bytes.

    Raises:
        OSError: If the server cannot be reached or refuses.
        ValueError: If the settings are not valid.
    """
    peer, given = _address(host, port), settings.to_json()
    found: list[tuple[int, float]] = []
    report = _attend(
        lambda watch: found.append(_core.udt_bench(peer, seconds, size, given, INTERVAL, watch)),
        tell,
    )
    moved, took = found[0]
    return Report(moved, 0, 0, took, report.watch)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _attend(
    work: Callable[[_core.TransferMonitor], None],
    tell: Callable[[_core.TransferMonitor], None] | None,
) -> Report:
    """Does the work in a thread, so that the user can interrupt it."""
    watch = _core.TransferMonitor()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(watch)
        except BaseException as error:
            failed.append(error)

    began = time.perf_counter()
    thread = threading.Thread(target=run, name="udt-transfer", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(INTERVAL)
            known = watch.progress()
            if not (known["all_files"] or known["bytes"]) and thread.is_alive():
                began = time.perf_counter()  # Nothing has come yet: that is no part of it.
            if tell:
                tell(watch)
    except BaseException:
        watch.stop()
        thread.join(10.0)
        raise
    if failed:
        raise failed[0]
    took = time.perf_counter() - began
    progress = watch.progress()
    return Report(progress["bytes"], progress["resumed"], progress["files"], took, watch)
