"""What several parts of this reproduction measure in the same way."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import intervals, throughput

if TYPE_CHECKING:
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

FOLDER: Final = Path(__file__).parent
"""Where the paper and its experiments are."""

PAPERS: Final = ("bbr", "bbr2", "f-bbr2")
"""The paper's algorithms, in its order."""

ALGORITHMS: Final = (*PAPERS, "bbr3")
"""Those of the paper and BBRv3, which the paper could not have."""

LABELS: Final = {"bbr": "BBRv1", "bbr2": "BBRv2", "f-bbr2": "F-BBRv2", "bbr3": "BBRv3"}
"""What the paper calls them."""

QUEUES: Final = ("0.5", "0.7", "1", "2", "4", "7")
"""Buffer sizes of figures 7 and 8, BDP; figure 8's text also names 0.7."""

LOSSES: Final = ("0", "0.5")
"""Random losses of table 3, %."""

CHANGES: Final = {
    "access": "access links of 1 Gbit/s",
    "hystart": "CUBIC without HyStart",
    "thresholds": "CUBIC with Linux's HyStart",
    "linux": "Linux's TCP and CUBIC",
    "later": "BBR starts 5 s after CUBIC",
    "twice": "two such queues in a row",
    "acked": "every packet acknowledged, CUBIC first",
}
"""What is changed, one thing at a time, to see what the numbers hang on."""

CHANGED: Final = {"queues": ("1", "4", "7"), "cc": ("bbr2", "f-bbr2")}
"""The cases in which it is changed."""

CRUISE: Final = 6.0
"""The state ProbeBW_CRUISE, as ``inspect`` shows it."""

FIRST: Final = 10.0
"""From when on RTprop is judged, s: the life of a minimum."""


@cache
def rates(result: Result) -> pl.DataFrame:
    """Throughputs of both sides, Mbit/s: a row a seed; columns bbr, other, gap and jain.

    The gap is by how much the other one has more. Jain's index is the paper's equation (2).
    """
    table = throughput(result).with_columns(
        pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6
    )
    wide = table.pivot("flow", index="seed", values="throughput")
    if "other" not in wide.columns:
        return wide
    bbr, other = pl.col("bbr"), pl.col("other")
    return wide.with_columns(gap=other - bbr, jain=(bbr + other) ** 2 / (2 * (bbr**2 + other**2)))


def of(result: Result, column: str) -> list[float]:
    """One column of `rates`, a value a seed."""
    return rates(result)[column].to_list()


def median(result: Result, column: str = "bbr") -> Estimate:
    """The median of one column of `rates`."""
    return intervals.median(of(result, column))


def value(estimate: Estimate) -> float:
    """The value of an estimate of which no run is censored."""
    if estimate.value is None:
        raise ValueError("throughputs are observed to the end; none of them is beyond a limit")
    return estimate.value


@cache
def rtprop(result: Result) -> pl.DataFrame:
    """RTprop of the first flow over its first value.

    Returns:
        Columns seed, t (s), rtprop (s), ratio.
    """
    values = result.internals.filter(
        pl.col("flow") == "bbr", pl.col("name") == "min_rtt", pl.col("value") > 0
    ).select("seed", "t", rtprop=pl.col("value").cast(pl.Float64))
    return values.with_columns(ratio=pl.col("rtprop") / pl.col("rtprop").first().over("seed"))


def steadiness(result: Result, threshold: float = 1.2) -> pl.DataFrame:
    """How steady RTprop is from `FIRST` on.

    Returns:
        A row a seed: within (for which share of the time RTprop is within `threshold` times its
        first value), deviation (the standard deviation of the ratio of the two).
    """
    return (
        rtprop(result)
        .filter(pl.col("t") >= FIRST)
        .group_by("seed", maintain_order=True)
        .agg(within=(pl.col("ratio") <= threshold).mean(), deviation=pl.col("ratio").std())
    )


@cache
def smoothed(result: Result, width: float = 5.0) -> pl.DataFrame:
    """The first flow's smoothed RTT, means over `width` seconds and all seeds: t (s), srtt (s)."""
    series = result.series.filter(pl.col("flow") == "bbr", pl.col("srtt") > 0)
    window = ((pl.col("t") / width).floor() + 0.5) * width
    return series.group_by(t=window).agg(pl.col("srtt").cast(pl.Float64).mean()).sort("t")


def mean_srtt(result: Result, since: float, until: float) -> float:
    """The mean of `smoothed` between two times, s; NaN if the run ended before."""
    means = smoothed(result).filter(pl.col("t").is_between(since, until))
    return float(means["srtt"].mean() or math.nan)  # type: ignore[arg-type]


def detected(result: Result, since: float, until: float) -> float:
    """For which share of the time F-BBRv2 flows take others for CUBIC; 0 for BBRv2."""
    seen = result.internals.filter(
        pl.col("name") == "cubic_detected", pl.col("t").is_between(since, until)
    )
    return float(seen["value"].mean() or 0)  # type: ignore[arg-type]


@cache
def limits(result: Result) -> dict[str, float]:
    """What limits the first flow in Cruise.

    Returns:
        Shares of Cruise (0 to 1): ``window``, in which the window is full, and ``headroom``, in
        which the window is what is safe less headroom; medians: ``min_rtt`` (s), ``max_bw``
        (Mbit/s). NaN if it never came to Cruise.
    """
    inside = result.internals.filter(pl.col("flow") == "bbr").pivot(
        "name", index=["seed", "t"], values="value"
    )
    series = result.series.filter(pl.col("flow") == "bbr").select("seed", "t", "cwnd", "in_flight")
    cruise = inside.join(series, on=["seed", "t"]).filter(
        pl.col("state") == CRUISE, pl.col("t") >= FIRST
    )
    safe = 0.85 * pl.col("inflight_longterm")
    found = cruise.select(
        window=(pl.col("in_flight") >= pl.col("cwnd") - 2).mean(),
        headroom=(pl.col("cwnd") >= safe - 2).mean(),
        min_rtt=pl.col("min_rtt").median(),
        max_bw=pl.col("max_bw").median() * 8e-6,
    )
    return found.cast(pl.Float64).fill_null(math.nan).row(0, named=True)
