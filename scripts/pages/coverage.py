"""How often the intervals of a sequential experiment miss the true median; prints a table.

Each experiment has 3, 6, 12 and 24 runs; it misses if the interval of any look does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dumbbell.metrics import intervals, sequential

if TYPE_CHECKING:
    from collections.abc import Callable

    Draw = Callable[[np.random.Generator, int], np.ndarray]

EXPERIMENTS, RUNS = 1_000, 24

DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda draw, n: draw.normal(size=n), 0.0),
    "uniform": (lambda draw, n: draw.uniform(-1, 1, size=n), 0.0),
    "lognormal (sigma 0.5)": (lambda draw, n: draw.lognormal(0, 0.5, size=n), 1.0),
    "exponential": (lambda draw, n: draw.exponential(size=n), math.log(2)),
    "one of two values, equally often": (
        lambda draw, n: draw.integers(0, 2, size=n) + draw.normal(0, 0.05, size=n),
        0.5,
    ),
}
"""What runs may be distributed as, and the true median."""


def misses(draw: Draw, true: float) -> float:
    """The share of experiments in which the interval of any look misses the true median."""
    generator, confidence = np.random.default_rng(1), sequential.confidence(RUNS)
    missed = 0
    for _ in range(EXPERIMENTS):
        runs = draw(generator, RUNS).tolist()
        for count in sequential.looks(RUNS):
            found = intervals.median(runs[:count], confidence=confidence)
            assert found.low is not None, "no run is censored"
            assert found.high is not None, "no run is censored"
            if not found.low <= true <= found.high:
                missed += 1
                break
    return missed / EXPERIMENTS


if __name__ == "__main__":
    print("| runs are | misses |\n|---|---:|")
    for name, (draw, true) in DISTRIBUTIONS.items():
        print(f"| {name} | {100 * misses(draw, true):.1f} % |", flush=True)
