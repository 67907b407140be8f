"""Runs a sweep in processes that are killed; a script, as only a fresh process can be forked.

``killing.py DIR rename FIRST LAST`` kills at the renames from one to another, before and after
each; ``killing.py DIR random COUNT SEED`` so often, at random moments. Each process begins where
the last one was killed; when the sweep is complete, the next one begins anew.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumbbell.sweeps import dataset, drive
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable

SWEEP = """
duration = "1 s"
start_jitter = "100 ms"
seeds = 2
[[link]]
name = "bottleneck"
rate = "2 Mbit/s"
delay = "10 ms"
[[flow]]
cc = "reno"
repeat = 2
[sweep]
"link.bottleneck.queue" = { from = "10 packets", to = "24 packets", points = 15 }
"flow.*.cc" = ["reno", "cubic"]
"""


def run(folder: Path) -> drive.Swept:
    """The sweep, kept often and merged often, so that there is much to interrupt."""
    vars(drive).update(_KEEP_AFTER=0.0, _CHUNK=1.0, _MOST_IN_CHUNK=2)
    vars(dataset).update(_MANY=8)
    return drive.run_sweep(Sweep.parse(SWEEP), folder, jobs=2)


def kill_at_rename(number: int, *, after: bool) -> None:
    """Has this process killed at its `number`-th rename."""
    seen = [0]

    def deadly(rename: Callable[[Path, Any], Path]) -> Callable[[Path, Any], Path]:
        def wrapped(self: Path, target: Any) -> Path:
            seen[0] += 1
            if seen[0] == number and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            done = rename(self, target)
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return wrapped

    for name in ("rename", "replace"):
        setattr(Path, name, deadly(getattr(Path, name)))


def in_child(folder: Path, *, number: int = 0, after: bool = False, delay: float = 0.0) -> bool:
    """Runs the sweep in a child that is killed; returns whether it was."""
    child = os.fork()
    if not child:
        if number:
            kill_at_rename(number, after=after)
        run(folder)
        os._exit(0)
    if delay:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def check(folder: Path, seen: Path) -> None:
    """Sees that the sweep can be read, and that no run is gone that was there; in a child."""
    child = os.fork()
    if not child:
        before = seen.read_text().split() if seen.exists() else []
        if (folder / dataset.PLAN).exists():
            kept = dataset.Dataset(folder)
            runs = kept.table("runs")["run"].to_list() if dataset.parts(folder) else []
            whole = len(set(runs)) == len(runs) and set(before) <= set(runs)
            seen.write_text("\n".join(runs))
            os._exit(0 if whole else 1)
        os._exit(1 if before else 0)
    if os.waitpid(child, 0)[1]:
        sys.exit("runs are lost, or there twice")


def main() -> None:
    """Kills as the command line says, and prints how often it did."""
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    first, second = int(sys.argv[3]), int(sys.argv[4])
    seen = folder.with_suffix(".seen")
    killed = 0
    if kind == "never":
        run(folder)
    if kind == "rename":
        for number in range(first, second + 1):
            for after in (False, True):
                killed += in_child(folder, number=number, after=after)
                check(folder, seen)
    draw = random.Random(second)
    while kind == "random" and killed < first:
        if in_child(folder, delay=draw.uniform(0.01, 0.4)):
            killed += 1
            check(folder, seen)
        else:
            shutil.rmtree(folder)
            seen.unlink(missing_ok=True)
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main()
