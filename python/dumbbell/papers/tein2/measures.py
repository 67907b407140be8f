"""What several parts of this reproduction measure in the same way."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import intervals, throughput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

FOLDER: Final = Path(__file__).parent
"""Where the paper and its experiments are."""

HIGH_SPEED: Final = ("hstcp", "stcp", "bic", "cubic")
"""The paper's high-speed algorithms; ``cubic`` is CUBIC as of Linux 2.6.18."""

ALGORITHMS: Final = ("reno", *HIGH_SPEED)
"""All algorithms of the paper, in its order."""

LABELS: Final = {"reno": "Reno", "hstcp": "HSTCP", "stcp": "STCP", "bic": "BIC", "cubic": "CUBIC"}
"""What the paper calls them."""

RTTS: Final = (10, 50, 100, 150, 200)
"""Round-trip times of table 2, ms."""

RATIOS: Final = (1, 2, 3, 6)
"""How much longer the second flow's round-trip time is in table 3."""

FRIENDS: Final = (10, 100)
"""Round-trip times of figures 9 and 10, ms."""

CHANGES: Final = {
    "725 Mbit/s at every delay": "rate",
    "a queue of 50 packets": "queue50",
    "a queue of 1000 packets": "queue1000",
    "twice the loss, 2e-6": "loss",
    "a receive window of 8 MiB": "window",
}
"""What the sensitivity is shown of, and the experiments that show it."""

SHORT_LIST: Final = (50, 200)
"""Round-trip times that the sensitivity is shown for, ms."""

SHORT_TIME: Final = 90.0
"""For how long the sensitivity is measured, s."""

PATHS: Final = {"china": 140, "germany": 270}
"""The paths over TEIN2 and their round-trip times, ms."""

CAPACITY: Final = 622 * 1448 / 1500
"""Payload that 622 Mbit/s carry, Mbit/s: less 52 bytes of headers in 1500."""


@cache
def rates(result: Result, until: float | None = None) -> pl.DataFrame:
    """Throughputs of all flows, Mbit/s: a row a seed, a column a flow."""
    table = throughput(result, until=until).with_columns(
        pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6
    )
    return table.pivot("flow", index="seed", values="throughput")


def rate(result: Result, flow: str = "flow") -> Estimate:
    """One flow's throughput, Mbit/s."""
    return intervals.median(rates(result)[flow].to_list())


def ratio(result: Result, above: str, below: str) -> Estimate:
    """The throughput of one flow over that of another, seed by seed."""
    table = rates(result)
    return intervals.median(table[above] / table[below])


def share(result: Result, flow: str) -> Estimate:
    """The share that a flow has of the throughput of all, seed by seed (0 to 1)."""
    table = rates(result)
    return intervals.median(table[flow] / table.drop("seed").sum_horizontal())


def delay(runs: Runs, cc: str, rtt: int) -> Estimate:
    """Table 2: one flow's throughput, Mbit/s."""
    return rate(runs[f"delay-{cc}-{rtt}"])


def unfairness(runs: Runs, cc: str, times: int, case: str = "fairness") -> Estimate:
    """Table 3: the throughput of the flow with 10 ms over the other's."""
    return ratio(runs[f"{case}-{cc}-{times}"], "short", "long")


def reno_shares(runs: Runs, case: str) -> list[dict[str, float]]:
    """Figures 9 and 10: Reno's share beside each high-speed algorithm (0 to 1), a figure each."""
    return [
        {cc: known(share(runs[f"{case}-{cc}-{rtt}"], "reno")) for cc in HIGH_SPEED}
        for rtt in FRIENDS
    ]


def use(runs: Runs, cc: str, path: str) -> Estimate:
    """The share of 622 Mbit/s that a path over TEIN2 is used for, both flows at once (0 to 1)."""
    shares = rates(runs[f"tein2-{cc}"])[path] / CAPACITY
    return intervals.median(shares)


def known(estimate: Estimate) -> float:
    """The value of an estimate of which no run is censored."""
    if estimate.value is None:
        raise ValueError("throughputs are observed to the end; none of them is beyond a limit")
    return estimate.value


def tallied(values: list[float]) -> tuple[int, int]:
    """How many ratios of measured to published are within 20 % and within 40 % of 1."""
    off = [abs(value - 1) for value in values]
    return sum(by <= 0.2 for by in off), sum(by <= 0.4 for by in off)


def listed(values: Mapping[str, float], order: Sequence[str], form: str = ".0f") -> str:
    """The algorithms in this order, each with its value."""
    return ", ".join(f"{LABELS[cc]} {values[cc]:{form}}" for cc in order)
