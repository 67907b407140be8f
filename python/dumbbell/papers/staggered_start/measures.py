"""What several parts of this reproduction measure in the same way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import windows
from dumbbell.metrics.convergence_times import convergence
from dumbbell.papers.frame import Paper

if TYPE_CHECKING:
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

ALGORITHMS: Final = ("reno", "cubic", "bbr", "bbr3")
"""The paper's algorithms, in its order."""

LABELS: Final = {"reno": "Reno", "cubic": "CUBIC", "bbr": "BBRv1", "bbr3": "BBRv3"}
"""What the paper calls them."""

PUBLISHED: Final = {
    number.id.removesuffix("-crossing"): number.published
    for number in Paper.load(Path(__file__).parent).numbers
    if number.id.endswith("-crossing")
}
"""The convergence times that the paper reports, s."""

JOINS: Final = 30.0
"""When the second flow starts, s."""

LIMIT: Final = 120.0
"""How long after the second flow's start a simulated run is observed, s."""

LINUX_LIMIT: Final = 90.0
"""How long after the second flow's start a measured run was observed, s."""


@cache
def converged(result: Result) -> pl.DataFrame:
    """`dumbbell.metrics.convergence_times.convergence`, computed once for a result."""
    return convergence(result)


def runs_of(result: Result, column: str) -> list[float | None]:
    """One column of `converged`: a value a seed, None where there was no convergence."""
    return converged(result)[column].to_list()


@cache
def shares(result: Result) -> pl.DataFrame:
    """The second flow's share of the throughput, over the seeds.

    Returns:
        Columns t (seconds since it started), low, median, high (quartiles; 0 to 1).
    """
    rates = windows(result, since=JOINS).with_columns(
        share=pl.col("throughput") / pl.col("throughput").sum().over("seed", "window")
    )
    return (
        rates.filter(pl.col("flow") == result.flow_names[1])
        .group_by("window", maintain_order=True)
        .agg(
            low=pl.col("share").quantile(0.25),
            median=pl.col("share").median(),
            high=pl.col("share").quantile(0.75),
        )
        .sort("window")
        .select(pl.col("window").cast(pl.Float64).alias("t"), "low", "median", "high")
    )


def seconds(time: Estimate) -> str:
    """A time in words, such as ``"41 s"`` or ``"more than 120 s"``."""
    return f"more than {time.limit:g} s" if time.value is None else f"{time.value:.3g} s"
