"""AR-UDT beside UDT and TCP on a link of 1 Gbit/s (An, Wang, Kim and Cho).

One flow alone, over time and over random loss, at four round-trip times. The paper does not say how
long the bottleneck's queue is, which TCP it has, nor the weights of its prediction: the experiment
files say what stands for them and why, and the report how much hangs on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dumbbell.metrics import intervals, summary
from dumbbell.papers.ar_udt.chapters import sections
from dumbbell.papers.ar_udt.measures import (
    LABELS,
    LOSSES,
    PROTOCOLS,
    RTTS,
    alone,
    histogram,
    known,
    lossy,
    rates,
    unsteadiness,
)
from dumbbell.papers.ar_udt.plates import PLATES
from dumbbell.papers.frame import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Measured, Runs, Verdicts
    from dumbbell.results.result import Result

    Alone = Mapping[int, Mapping[str, float]]
    Lossy = Mapping[str, Sequence[float]]

__all__ = ["PLATES", "judge", "measure", "reduce", "sections"]


def measure(runs: Runs) -> Measured:
    """Measures the numbers of the text."""
    alone_ones = {f"throughput-{rtt}-{p}": alone(runs, p, rtt) for rtt in RTTS for p in PROTOCOLS}
    return alone_ones | {f"gain-{p}": _gain(runs, p) for p in ("udt", "tcp")}


def judge(runs: Runs, numbers: Measured) -> Verdicts:
    """Checks the claims."""
    over_time = {
        rtt: {p: known(numbers[f"throughput-{rtt}-{p}"]) for p in PROTOCOLS} for rtt in RTTS
    }
    over_loss = {
        rtt: {p: [known(lossy(runs, p, rtt, loss)) for loss in LOSSES] for p in PROTOCOLS}
        for rtt in RTTS
    }
    return {
        "order": _order(over_time),
        "never-worse": _never_worse(over_time),
        "stable": _stable(runs),
        "loss-near": _loss_near(over_loss[1]),
        "loss-far": _loss_far({rtt: over_loss[rtt] for rtt in RTTS[1:]}),
        "loss-best": _loss_best(over_loss[50]),
        "loss-tcp": _loss_tcp({rtt: over_loss[rtt] for rtt in RTTS[2:]}),
        "ratio": _ratio(runs),
    }


def reduce(result: Result) -> pl.DataFrame:
    """Keeps of every flow and seed the throughput, what was sent again, and the delay."""
    kept = ("seed", "flow", "throughput", "retransmission_share", "queue_delay_mean")
    return summary(result).select(*kept).with_columns(pl.col("flow").cast(pl.String))


def _gain(runs: Runs, protocol: str) -> Estimate:
    other = known(alone(runs, protocol, 200))
    return intervals.median([100 * (rate / other - 1) for rate in rates(runs["time-ar-udt-200"])])


def _order(rates: Alone) -> Verdict:
    best = {rtt: max(PROTOCOLS, key=lambda p: rates[rtt][p]) for rtt in RTTS}
    return Verdict(
        best[1] == "tcp" and best[100] == best[200] == "ar-udt",
        "; ".join(f"{rtt} ms: {_listed(rates[rtt])}" for rtt in RTTS) + " (Mbit/s).",
    )


def _never_worse(rates: Alone) -> Verdict:
    gains = {rtt: rates[rtt]["ar-udt"] / rates[rtt]["udt"] for rtt in RTTS}
    return Verdict(
        min(gains.values()) >= 1,
        "AR-UDT over UDT: " + ", ".join(f"{x:.3f} at {rtt} ms" for rtt, x in gains.items()) + ".",
    )


def _stable(runs: Runs) -> Verdict:
    spread = {p: known(unsteadiness(runs[f"time-{p}-50"])) for p in PROTOCOLS}
    return Verdict(
        spread["ar-udt"] < spread["udt"] and spread["ar-udt"] <= spread["tcp"],
        f"Standard deviations: {_listed(spread, '.1f')} (Mbit/s).",
    )


def _loss_near(rates: Lossy) -> Verdict:
    kept = {p: [rate / rates[p][0] for rate in rates[p]] for p in PROTOCOLS}
    flat = all(min(shares[1:3]) >= 0.95 and shares[3] < shares[2] for shares in kept.values())
    last = {p: shares[3] for p, shares in kept.items()}
    return Verdict(
        flat and min(last, key=last.__getitem__) == "tcp",
        "Of the throughput at 1e-7 remain at 1e-6, 1e-5 and 1e-4: "
        + "; ".join(
            f"{LABELS[p]} " + ", ".join(f"{share:.2f}" for share in kept[p][1:]) for p in PROTOCOLS
        )
        + ".",
    )


def _loss_far(rates: Mapping[int, Lossy]) -> Verdict:
    kept = {rtt: {p: rates[rtt][p][3] / rates[rtt][p][0] for p in PROTOCOLS} for rtt in rates}
    flat = all(min(shares["udt"], shares["ar-udt"]) >= 0.8 for shares in kept.values())
    return Verdict(
        flat and all(shares["tcp"] < 1 / 3 for shares in kept.values()),
        "Of the throughput at 1e-7 remains at 1e-4: "
        + "; ".join(f"{_listed(shares, '.2f')} at {rtt} ms" for rtt, shares in kept.items())
        + ".",
    )


def _loss_best(rates: Lossy) -> Verdict:
    best = [max(PROTOCOLS, key=lambda p: rates[p][at]) for at in range(len(LOSSES))]
    return Verdict(
        best[1:] == ["ar-udt"] * 3,
        "; ".join(
            f"{loss}: " + _listed({p: rates[p][at] for p in PROTOCOLS})
            for at, loss in enumerate(LOSSES)
        )
        + " (Mbit/s).",
    )


def _loss_tcp(rates: Mapping[int, Lossy]) -> Verdict:
    least = {
        rtt: [min(PROTOCOLS, key=lambda p: rates[rtt][p][at]) for at in range(len(LOSSES))]
        for rtt in rates
    }
    return Verdict(
        all(names == ["tcp"] * len(LOSSES) for names in least.values()),
        "; ".join(
            f"slowest at {rtt} ms: " + ", ".join(LABELS[p] for p in names)
            for rtt, names in least.items()
        )
        + f" (losses of {', '.join(LOSSES)}).",
    )


def _ratio(runs: Runs) -> Verdict:
    found, holds = [], True
    for rtt in RTTS:
        bins = histogram(runs[f"ratio-{rtt}"]).sort("share", descending=True)
        first, second = bins["bin"][0], bins["bin"][1] if len(bins) > 1 else None
        holds &= (first, second) == (1.0, 1.002)
        found.append(
            f"{rtt} ms: "
            + ", ".join(f"{share:.0%} up to {bin_:g}" for bin_, share in bins.head(3).iter_rows())
        )
    return Verdict(holds, "; ".join(found) + ".")


def _listed(values: Mapping[str, float], form: str = ".0f") -> str:
    return ", ".join(f"{LABELS[p]} {values[p]:{form}}" for p in PROTOCOLS)
