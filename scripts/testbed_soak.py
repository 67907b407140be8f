#!/usr/bin/env python3
"""Starts and ends runs with real packets, and kills some, and sees whether anything is left.

    .venv/bin/python scripts/testbed_soak.py [CYCLES [KILLS]]

Looked at are the processes that it started, the network namespaces that they were in, and TCP's
sockets that no process has any more.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CYCLES, KILLS = 100, 20
STARTED, SETTLED = 60.0, 10.0
"""How long a run may take to start, and to be gone, s."""

EXPERIMENT = """
duration = "{duration}"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "20 packets"
[[flow]]
cc = "reno"
[[flow]]
cc = "cubic"
stack_options = {{ tso = false }}
"""


def processes(folder: Path) -> list[Path]:
    """The processes that were started in a folder, below /proc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process)
    return found


def namespaces(processes: Iterable[Path]) -> set[str]:
    """The network namespaces that processes are in, or that their descriptors keep."""
    found = set()
    for process in processes:
        with contextlib.suppress(OSError):
            found.add(str((process / "ns" / "net").readlink()))
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    target = str(descriptor.readlink())
                    if target.startswith("net:["):
                        found.add(target)
    return found


def orphans() -> int:
    """Sockets of TCP that no process has and that still have something to send (proc(5))."""
    words = Path("/proc/net/sockstat").read_text(encoding="utf-8").split()
    return int(words[words.index("orphan") + 1])


def start(folder: Path, duration: str) -> subprocess.Popen[bytes]:
    """Starts a run."""
    file = folder / "soak.toml"
    file.write_text(EXPERIMENT.format(duration=duration), encoding="utf-8")
    command = "from dumbbell.cli.__main__ import main; main()"
    arguments = [
        "run",
        str(file),
        "--backend",
        "linux",
        "--out",
        str(folder / "out"),
        "--overwrite",
    ]
    argv = [sys.executable, "-c", command, *arguments]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=folder)


def wait_for(condition: Callable[[], bool], what: str, limit: float) -> None:
    """Waits until `condition` holds; ends everything if it never does."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"testbed: {what}")
        time.sleep(0.02)


def soak(cycles: int, kills: int) -> None:
    """Runs and kills, and exits with a message if anything is left."""
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name).resolve(), orphans()
        for cycle in range(cycles):
            if start(folder, "100 ms").wait() != 0:
                sys.exit(f"testbed: run {cycle + 1} failed")
        for _ in range(kills):
            kill(folder)
        wait_for(lambda: orphans() <= before, "sockets outlived their runs", SETTLED)


def kill(folder: Path) -> None:
    """Starts a run, kills it at some time after its processes are there, and looks around."""
    ours = namespaces([Path("/proc/self")])
    run = start(folder, "60 s")
    # The command, the worker, and the first process of its namespace.
    wait_for(lambda: len(processes(folder)) >= 3, "a run did not start", STARTED)
    time.sleep(random.uniform(0, 0.5))
    used = namespaces(processes(folder)) - ours
    run.send_signal(signal.SIGKILL)
    run.wait()
    wait_for(lambda: not processes(folder), "a process outlived its parent", SETTLED)
    if left := used & namespaces(Path("/proc").glob("[0-9]*")):
        sys.exit(f"testbed: {len(left)} namespaces are left")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asked = given + [CYCLES, KILLS][len(given) :]
    soak(*asked)
    sys.stdout.write("testbed: {} runs and {} kills left nothing behind\n".format(*asked))
