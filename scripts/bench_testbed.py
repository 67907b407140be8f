#!/usr/bin/env python3
"""Measures the emulator: what it carries with real packets, how late, and at what cost; as root.

    .venv/bin/python scripts/bench_testbed.py [RUNS [SECONDS]]

One CUBIC flow a cell, RUNS runs (3) of SECONDS (8); medians, with goodput of the last 70 %.
"""

from __future__ import annotations

import sys
from statistics import median

from dumbbell.engine.kernel import RunMonitor, run_scenario
from dumbbell.experiment.model import Experiment

RUNS, SECONDS = 3, 8

CELLS = {
    "unshaped (100 Gbit/s, 2 ms)": ("100 Gbit/s", "1 ms", "20000 packets"),
    "10 Gbit/s, 10 ms, 1 BDP": ("10 Gbit/s", "5 ms", "1 BDP"),
    "2.5 Gbit/s, 20 ms, 1 BDP": ("2.5 Gbit/s", "10 ms", "1 BDP"),
    "1 Gbit/s, 100 ms, 1 BDP": ("1 Gbit/s", "50 ms", "1 BDP"),
    "500 Mbit/s, 100 ms, 1 BDP": ("500 Mbit/s", "50 ms", "1 BDP"),
    "100 Mbit/s, 100 ms, 0.5 BDP": ("100 Mbit/s", "50 ms", "0.5 BDP"),
}

EXPERIMENT = """
duration = "{seconds} s"
internals = false
sample = "100 ms"
[[link]]
name = "bottleneck"
rate = "{rate}"
delay = "{delay}"
queue = "{queue}"
[[flow]]
cc = "cubic"
"""

COLUMNS = ("Mbit/s", "late, mean, us", "late, p99, us", "busy, %", "stolen, %")


def measure(seconds: int, cell: tuple[str, str, str]) -> tuple[float, ...]:
    """One run: goodput and how the machine did, in the order of COLUMNS."""
    rate, delay, queue = cell
    text = EXPERIMENT.format(seconds=seconds, rate=rate, delay=delay, queue=queue)
    outcome = run_scenario(Experiment.parse(text).resolve().scenario(1), RunMonitor())
    begin, end = 0.3 * seconds, seconds
    times, delivered = outcome.series["t"].to_list(), outcome.series["delivered"].to_list()
    first = next(place for place, time in enumerate(times) if time >= begin)
    health = outcome.health
    return (
        (delivered[-1] - delivered[first]) * 8e-6 / (end - times[first]),
        health["late_mean_s"] * 1e6,
        health["late_p99_s"] * 1e6,
        health["busy"] * 100,
        health["steal"] * 100,
    )


def main(runs: int = RUNS, seconds: int = SECONDS) -> None:
    """Measures all cells and prints a table."""
    sys.stdout.write(f"| link | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}\n")
    for name, cell in CELLS.items():
        found = [measure(seconds, cell) for _ in range(runs)]
        values = (median(column) for column in zip(*found, strict=True))
        sys.stdout.write(f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
