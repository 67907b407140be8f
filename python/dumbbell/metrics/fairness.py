"""How flows share: Jain's index and harm."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

import polars as pl

from dumbbell.metrics.intervals import LEAST
from dumbbell.metrics.rates import Moment, Runs, SampledRuns, rates_between, seconds, windows
from dumbbell.metrics.transfers import competing

if TYPE_CHECKING:
    from collections.abc import Iterable


def jain(rates: Iterable[float]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything.

    Formula: ``(sum x)^2 / (n * sum x^2)``. Source: Jain, Chiu, Hawe: "A Quantitative Measure of
    Fairness and Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301,
    1984. If all rates are 0, it is undefined: not a number.

    Raises:
        ValueError: If there is no rate, or one is negative or not a number.
    """
    shares = list(rates)
    if not shares or not all(rate >= 0 for rate in shares):
        raise ValueError("Jain's index needs at least one rate, and none of them negative or NaN")
    greatest = max(shares)
    if greatest == 0:
        return nan
    scaled = [rate / greatest for rate in shares]
    return sum(scaled) ** 2 / (len(scaled) * sum(x * x for x in scaled))


def jain_of(rates: pl.Expr) -> pl.Expr:
    """The same of a column, as an aggregation; null if all rates are 0."""
    squares = rates.len() * (rates * rates).sum()
    return pl.when(squares > 0).then(rates.sum() ** 2 / squares)


def shares_by_half(result: Runs) -> pl.DataFrame:
    """The share of each algorithm in the first and in the second half of the time that counts.

    Formula: throughput of the algorithm's flows over that of all flows, in either half of the time
    in which all are there. Shares that differ mean that the flows have not settled: the share over
    the whole time is then one of this duration. Flows of transfers do not count.

    Returns:
        Columns seed, cc, first, second (0 to 1); no rows where no time is common to all.
    """
    spans = _common_spans(result).with_columns(middle=(pl.col("since") + pl.col("until")) / 2)
    halves = {"first": ("since", "middle"), "second": ("middle", "until")}
    first, second = (_shares(result, spans, *ends, name) for name, ends in halves.items())
    return first.join(second, on=["seed", "cc"], maintain_order="left")


def _common_spans(result: Runs) -> pl.DataFrame:
    """The time in which all flows of a run are there and count: columns seed, since, until (s)."""
    flows = competing(result, result.flows).group_by("seed", maintain_order=True)
    spans = flows.agg(since=pl.col("begin").max(), until=pl.col("end").min())
    return spans.filter(pl.col("until") > pl.col("since"))


def _shares(result: Runs, spans: pl.DataFrame, since: str, until: str, name: str) -> pl.DataFrame:
    """Each algorithm's share of what all flows deliver between two columns of `spans`."""
    rate = pl.col("rate").sum()
    rates = rates_between(result, {"delivered": "rate"}, pl.col(since), pl.col(until), spans)
    return (
        competing(result, rates.drop_nulls())
        .group_by("seed", "cc", maintain_order=True)
        .agg(rate)
        .select("seed", "cc", (pl.col("rate") / rate.over("seed")).alias(name))
    )


def fairness(result: Runs) -> pl.DataFrame:
    """Jain's index of the throughputs of all flows over the time in which all are there.

    Flows of transfers do not count: what they send depends on what arrives.

    Returns:
        Columns seed, jain; null for fewer than two flows, and where no time is common to all or
        none delivered anything in it.
    """
    spans = _common_spans(result)
    rates = rates_between(result, {"delivered": "rate"}, pl.col("since"), pl.col("until"), spans)
    shares = competing(result, rates).group_by("seed").agg(pl.col("rate").fill_null(0.0))
    index = {seed: jain(rates) for seed, rates in shares.iter_rows() if len(rates) > 1}
    every = result.flows["seed"].unique(maintain_order=True)
    rows = [(seed, index.get(seed)) for seed in every]
    found = pl.DataFrame(rows, schema={"seed": pl.UInt64, "jain": pl.Float64}, orient="row")
    return found.with_columns(pl.col("jain").fill_nan(None))


def with_least(runs: pl.DataFrame, flows: pl.DataFrame, by: str = "seed") -> pl.DataFrame:
    """Runs with the column ``jain_least``: 1 / n, the least that Jain's index of n flows can be.

    Args:
        runs: A row a run.
        flows: A row for each flow of these runs.
        by: The column that names runs of the same flows.
    """
    least = flows.group_by(by).agg((1 / pl.col("flow").n_unique()).alias(f"jain{LEAST}"))
    return runs.join(least, on=by, how="left", maintain_order="left")


def jain_over_time(
    result: SampledRuns, *, width: Moment = 1.0, since: Moment = 0.0
) -> pl.DataFrame:
    """Jain's index of throughput, window by window, over the flows that are there throughout it.

    Flows of transfers do not count: what they send depends on what arrives.

    Args:
        result: The runs.
        width: The length of a window, in s or as "1 s"; as for `windows`.
        since: Where the first window begins, in s or as "30 s".

    Returns:
        Columns seed, window, t (the end of the window, s), jain; null for fewer than two flows, and
        if none delivered anything.

    Raises:
        ValueError: As `windows`.
    """
    width, since = seconds(width), seconds(since)
    x = pl.col("throughput")
    index = pl.when(x.len() > 1).then(jain_of(x))
    return (
        competing(result, windows(result, width=width, since=since, whole=True))
        .with_columns(t=since + width * pl.col("window"))
        .group_by("seed", "window", "t", maintain_order=True)
        .agg(jain=index)
        .sort("seed", "window")
    )


def harm(alone: float, together: float, *, more_is_better: bool = True) -> float:
    """How much of its performance a flow loses to another one: 0 none, 1 all of it.

    Formula: ``(alone - together) / alone`` for what is better the more there is of it (throughput),
    ``(together - alone) / together`` for what is better the less there is (delay, loss). Negative
    if the flow is better off together, without bound. Source: Ware, Mukerjee, Seshan, Sherry:
    "Beyond Jain's Fairness Index: Setting the Bar For The Deployment of Congestion Control
    Algorithms", HotNets 2019, section 4.

    Args:
        alone: What the flow achieves by itself.
        together: What it achieves beside the other.
        more_is_better: Which of the two formulas it is.

    Raises:
        ValueError: If one of them is negative or not a number.
    """
    if not (alone >= 0 and together >= 0):
        raise ValueError("harm compares two measures, and none of them may be negative or NaN")
    whole = alone if more_is_better else together
    lost = alone - together if more_is_better else together - alone
    return lost / whole if whole else 0.0 if lost == 0 else -inf
