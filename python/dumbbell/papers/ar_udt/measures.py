"""What several parts of this reproduction measure in the same way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import goodput, intervals
from dumbbell.papers.frame import Paper

if TYPE_CHECKING:
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

FOLDER: Final = Path(__file__).parent
"""Where the paper and its experiments are."""

PUBLISHED: Final = {number.id: number.published for number in Paper.load(FOLDER).numbers}
"""The paper's numbers by their id."""

PROTOCOLS: Final = ("ar-udt", "tcp", "udt")
"""The protocols of the paper, in the order of its text."""

LABELS: Final = {"ar-udt": "AR-UDT", "tcp": "TCP", "udt": "UDT"}
"""What the paper calls them."""

LOOKS: Final = {"ar-udt": "ar-udt", "tcp": "reno", "udt": "udt"}
"""The algorithm whose look a protocol has in figures."""

RTTS: Final = (1, 50, 100, 200)
"""Round-trip times, ms."""

LOSSES: Final = ("1e-7", "1e-6", "1e-5", "1e-4")
"""Random losses."""

QUEUES: Final = ("50 packets", "0.5 BDP", "1 BDP", "2 BDP")
"""Queues that the sensitivity is shown for."""

FORECASTS: Final = {
    "w1=0": "w1 = 0",
    "w1=0.5": "w1 = 0.5",
    "smooth=off": "w1 = 0.25, from the reports",
}
"""Predictions that the sensitivity is shown for."""

SHORT_LIST: Final = (50, 200)
"""Round-trip times that the sensitivity is shown for, ms."""

SETTLED: Final = 15.0
"""From when on the paper compares how steady the protocols are, s."""

BIN: Final = 0.002
"""Width of an interval of figure 5."""


PAYLOAD: Final = {"tcp": 1460 / 1500, "udt": 1456 / 1500}
"""The share of payload in a full packet, by transport."""

MEGA: Final = 1e6


def carried(result: Result) -> pl.DataFrame:
    """What the link has carried of payload, bytes, by seed and time.

    Whatever comes out of the link counts, as in a trace of NS-2: packets sent again too.
    """
    [flow] = result.experiment.flows
    payload = pl.col("sent_bytes") * PAYLOAD[flow.transport]
    return result.links.select("seed", "t", carried=payload)


@cache
def rates(result: Result) -> list[float]:
    """The throughput of the only flow as `carried` counts, Mbit/s, seed by seed."""
    last = carried(result).group_by("seed", maintain_order=True).last()
    return (8 * last["carried"] / last["t"] / MEGA).to_list()


def rate(result: Result) -> Estimate:
    """The throughput of the only flow as `carried` counts, Mbit/s."""
    return intervals.median(rates(result))


def useful(result: Result) -> Estimate:
    """The goodput of the only flow, Mbit/s: data that has come."""
    return intervals.median(goodput(result)["goodput"] / MEGA)


def over_time(result: Result) -> pl.DataFrame:
    """The throughput in windows of 1 s, Mbit/s: columns seed, t (their end), throughput."""
    grown = pl.col("carried") - pl.col("carried").shift(1).over("seed")
    rate = 8 * grown / (pl.col("t") - pl.col("t").shift(1).over("seed")) / MEGA
    return carried(result).select("seed", "t", throughput=rate).drop_nulls()


def alone(runs: Runs, protocol: str, rtt: int) -> Estimate:
    """Figures 7 to 10: the throughput without random loss, Mbit/s."""
    return rate(runs[f"time-{protocol}-{rtt}"])


def lossy(runs: Runs, protocol: str, rtt: int, loss: str) -> Estimate:
    """Figures 11 to 14: the throughput with random loss, Mbit/s."""
    return rate(runs[f"loss-{protocol}-{rtt}-{loss}"])


def unsteadiness(result: Result) -> Estimate:
    """Standard deviation of the throughput in windows of 1 s from 15 s on, Mbit/s."""
    late = over_time(result).filter(pl.col("t") > SETTLED)
    spread = late.group_by("seed", maintain_order=True).agg(pl.col("throughput").std())
    return intervals.median(spread["throughput"])


def histogram(result: Result) -> pl.DataFrame:
    """Figure 5: the share of acknowledgements for every interval of the ratio.

    Returns:
        Columns bin (its upper end, which belongs to it) and share (0 to 1), ascending.
    """
    ratios = result.internals.filter(pl.col("name") == "rtt_ratio")["value"]
    upper = (((ratios - 1.0) / BIN - 1e-9).ceil().cast(pl.Int64)).alias("bin")
    counted = upper.value_counts().sort("bin")
    share = pl.col("count") / pl.col("count").sum()
    return counted.select((pl.col("bin") * BIN + 1.0).round(4), share=share)


def known(estimate: Estimate) -> float:
    """The value of an estimate of which no run is censored."""
    if estimate.value is None:
        raise ValueError("throughputs are observed to the end; none of them is beyond a limit")
    return estimate.value
