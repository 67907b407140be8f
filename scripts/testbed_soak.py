#!/usr/bin/env python3
"""Starts and ends runs with real packets, and kills some, and sees whether anything is left.

    .venv/bin/python scripts/testbed_soak.py [CYCLES [KILLS]]

Looked at are network namespaces and processes of this machine.
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

CYCLES, KILLS = 100, 20
SETTLED = 10.0
"""How long the kernel may take to take namespaces apart, s."""

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
stack-options = {{ tso = false }}
"""


def namespaces() -> set[str]:
    """The network namespaces in which there are processes, or that descriptors keep."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.add(str((process / "ns" / "net").readlink()))
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    target = str(descriptor.readlink())
                    if target.startswith("net:["):
                        found.add(target)
    return found


def workers() -> set[int]:
    """The processes of runs."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"dumbbell.testbed.worker" in (process / "cmdline").read_bytes():
                found.add(int(process.name))
    return found


def start(folder: Path, duration: str) -> subprocess.Popen[bytes]:
    """Starts a run."""
    file = folder / "soak.toml"
    file.write_text(EXPERIMENT.format(duration=duration), encoding="utf-8")
    command = "from dumbbell.cli.__main__ import main; main()"
    arguments = ["run", str(file), "--backend", "linux", "--out", str(folder / "out")]
    return subprocess.Popen([sys.executable, "-c", command, *arguments], stdout=subprocess.DEVNULL)


def wait_for(condition: object, what: str, limit: float = 60.0) -> None:
    """Waits until `condition()` holds; ends everything if it never does."""
    deadline = time.monotonic() + limit
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            sys.exit(f"testbed: {what}")
        time.sleep(0.02)


def soak(cycles: int, kills: int) -> None:
    """Runs and kills, and exits with a message if anything is left."""
    before, others = namespaces(), workers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for cycle in range(cycles):
            if start(folder, "100 ms").wait() != 0:
                sys.exit(f"testbed: run {cycle + 1} failed")
        for _ in range(kills):
            run = start(folder, "60 s")
            wait_for(lambda: len(workers() - others) >= 2, "a run did not start")
            time.sleep(random.uniform(0, 0.5))
            run.send_signal(signal.SIGKILL)
            run.wait()
            wait_for(lambda: not workers() - others, "a worker outlived its parent", SETTLED)
    wait_for(lambda: not namespaces() - before, "a namespace is left", SETTLED)
    sys.stdout.write(f"testbed: {cycles} runs and {kills} kills left nothing behind\n")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    soak(*(given + [CYCLES, KILLS][len(given) :]))
