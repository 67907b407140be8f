"""What several parts of this reproduction measure in the same way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import intervals, throughput

if TYPE_CHECKING:
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

FOLDER: Final = Path(__file__).parent
"""Where the paper and its experiments are."""

COMPARED: Final = {"lia": "LIA", "dbac": "DBAC"}
"""The algorithms that the paper compares."""

UNSAID: Final = {
    "delayed": "every other packet is acknowledged (Linux's default)",
    "still": "path 2 delays all packets alike",
    "jitter": "path 2 delays by up to 1 ms more, at random, not 0.08 ms",
    "tso": "segments leave in bursts (Linux's default)",
    "start": "slow start goes on until there is loss",
    "exact": "LIA as RFC 6356 has it, not in 4096ths",
    "p": "DBAC's p is the links' random loss, 1e-6, not 2e-6",
}
"""What the sensitivity is shown for: by the experiment's name, what is different."""

LATE: Final = 100.0
"""From when on what slow start did is forgotten, s."""


@cache
def rates(result: Result) -> pl.DataFrame:
    """Throughputs of subflows and plain flows, Mbit/s: a row a seed, a column a flow."""
    table = throughput(result.by_subflow()).with_columns(
        pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6
    )
    return table.pivot("flow", index="seed", values="throughput")


def path(result: Result, number: int) -> Estimate:
    """The throughput of the subflow on a path, Mbit/s."""
    return flow(result, f"multipath/{number}")


def flow(result: Result, name: str) -> Estimate:
    """The throughput of a flow or subflow, Mbit/s."""
    return intervals.median(rates(result)[name].to_list())


def total(result: Result) -> Estimate:
    """The throughput of both subflows together, Mbit/s."""
    both = rates(result)["multipath/1"] + rates(result)["multipath/2"]
    return intervals.median(both)


def greatest_window(result: Result, number: int) -> Estimate:
    """The greatest window of the subflow on a path after slow start is forgotten, packets."""
    there = (pl.col("flow") == f"multipath/{number}") & (pl.col("t") >= LATE)
    greatest = result.subflow_series.filter(there).group_by("seed", maintain_order=True)
    return intervals.median(greatest.agg(pl.col("cwnd").max())["cwnd"].to_list())


def testbed(runs: Runs, cc: str) -> Result:
    """The run of figures 3 to 6."""
    return runs[f"testbed-{cc}"]


def known(estimate: Estimate) -> float:
    """The value of an estimate of which no run is censored."""
    if estimate.value is None:
        raise ValueError("throughputs are observed to the end; none of them is beyond a limit")
    return estimate.value
