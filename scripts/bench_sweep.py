#!/usr/bin/env python3
"""Measures a sweep of many short runs, and its heat map: time, and memory as it goes.

Usage: bench_sweep.py RUNS [--store]; with --store the runs are filed in an empty run store.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SWEEP = """
duration = "30 s"
internals = false
start_jitter = "100 ms"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
[[flow]]
cc = "cubic"
[[flow]]
cc = "bbr3"
[sweep]
"flow.*.rtt" = {{ from = "35 ms", to = "45 ms", points = {columns} }}
"link.bottleneck.queue" = {{ from = "0.5 BDP", to = "4 BDP", points = {rows} }}
"""

DUMBBELL = [sys.executable, "-m", "dumbbell.cli"]


def memory(process: int) -> float:
    """What a process has in memory, MB; 0 if it is over."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Sweeps, draws, and prints what both took."""
    rows = round(math.sqrt(int(sys.argv[1])))
    columns = int(sys.argv[1]) // rows
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store") if "--store" in sys.argv else "off"
        os.environ["DUMBBELL_STORE"] = store
        file, out = Path(folder) / "sweep.toml", Path(folder) / "out"
        file.write_text(SWEEP.format(rows=rows, columns=columns))
        began = time.perf_counter()
        sweep = subprocess.Popen(
            [*DUMBBELL, "sweep", file, "--out", out, "--json"], stdout=subprocess.DEVNULL
        )
        seen = []
        while sweep.poll() is None:
            seen.append(memory(sweep.pid))
            time.sleep(0.5)
        took = time.perf_counter() - began
        if sweep.returncode:
            sys.exit(sweep.returncode)
        tenths = [seen[len(seen) * part // 10] for part in range(1, 10)]
        used = os.times()
        began = time.perf_counter()
        subprocess.run([*DUMBBELL, "plot", out, "heat"], check=True, stdout=subprocess.DEVNULL)
        heat = time.perf_counter() - began
        size = sum(file.stat().st_size for file in out.rglob("*.parquet"))
    processor = used.children_user + used.children_system
    print(f"{rows * columns:,} runs: {took:.1f} s, {processor:.1f} s of processors")
    print(f"{size / 1e6:.1f} MB on disk")
    print("memory, MB, at every tenth of the time:", *(f"{one:.0f}" for one in tenths))
    print(f"heat map: {heat:.1f} s")


if __name__ == "__main__":
    main()
