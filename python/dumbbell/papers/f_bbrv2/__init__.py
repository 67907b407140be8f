"""F-BBRv2: BBRv2 that asserts itself against CUBIC (Cho and Cho, 2024).

One flow alone with and without random loss; one flow beside CUBIC with six buffer sizes. BBRv3,
which came after the paper, is in every figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics import intervals, throughput
from dumbbell.papers.f_bbrv2.chapters import sections
from dumbbell.papers.f_bbrv2.measures import (
    FOLDER,
    LABELS,
    LOSSES,
    PAPERS,
    QUEUES,
    median,
    of,
    steadiness,
    value,
)
from dumbbell.papers.f_bbrv2.plates import PLATES
from dumbbell.papers.frame import Paper, Verdict

if TYPE_CHECKING:
    from dumbbell.papers.frame import Measured, Runs, Verdicts
    from dumbbell.results.result import Result

__all__ = ["PLATES", "judge", "measure", "reduce", "sections"]

_SURE: Final = 0.95
_SHALLOW: Final = ("0.5", "0.7", "1", "2")
_DEEP: Final = ("4", "7")


def measure(runs: Runs) -> Measured:
    """Measures table 3 and the numbers of the text."""
    alone = {
        f"alone-{loss}-{cc}": median(runs[f"alone-{cc}-{loss}"]) for loss in LOSSES for cc in PAPERS
    }
    return alone | {
        number.id: median(runs[number.experiment], number.id.partition("-")[0])
        for number in Paper.load(FOLDER).single_numbers
    }


def judge(runs: Runs, _numbers: Measured) -> Verdicts:
    """Checks the five claims."""
    return {
        "alone": _alone(runs),
        "shallow": _shallow(runs),
        "deep": _deep(runs),
        "fair": _fair(runs),
        "rtprop": _rtprop(runs),
    }


def reduce(result: Result) -> pl.DataFrame:
    """Keeps the throughput of every flow and seed, and how long F-BBRv2 took others for CUBIC."""
    table = throughput(result).select("seed", "flow", "throughput")
    seen = result.internals.filter(pl.col("name") == "cubic_detected")
    detected = seen.group_by("seed", "flow").agg(detected=pl.col("value").mean())
    return table.join(detected, on=["seed", "flow"], how="left").with_columns(
        pl.col("flow").cast(pl.String)
    )


def _alone(runs: Runs) -> Verdict:
    counters = ("seed", "sent", "delivered", "lost", "retransmitted")
    same = {
        loss: runs[f"alone-bbr2-{loss}"]
        .flows.select(counters)
        .equals(runs[f"alone-f-bbr2-{loss}"].flows.select(counters))
        for loss in LOSSES
    }
    return Verdict(
        all(same.values()),
        ", ".join(
            f"loss {loss} %: {'the same' if equal else 'not the same'}"
            for loss, equal in same.items()
        )
        + ".",
    )


def _shallow(runs: Runs) -> Verdict:
    losses = {
        queue: _jain(runs, "bbr2", queue) - _jain(runs, "f-bbr2", queue) for queue in _SHALLOW
    }
    return Verdict(
        max(losses.values()) <= 0.02,
        "BBRv2's less F-BBRv2's index: "
        + ", ".join(f"{loss:+.3f} at {queue} BDP" for queue, loss in losses.items())
        + ".",
    )


def _deep(runs: Runs) -> Verdict:
    holds, told = True, []
    for queue in _DEEP:
        pairs = {cc: runs[f"pair-{cc}-{queue}"] for cc in ("bbr2", "f-bbr2")}
        starved = value(median(pairs["bbr2"])) < value(median(pairs["bbr2"], "other")) / 2
        sure = intervals.support(
            {cc: of(pair, "bbr") for cc, pair in pairs.items()},
            lambda medians: medians["f-bbr2"] > medians["bbr2"],
        )
        holds &= starved and sure >= _SURE
        told.append(
            f"{queue} BDP: "
            + ", ".join(
                f"{LABELS[cc]} {value(median(pair)):.1f} beside {value(median(pair, 'other')):.1f}"
                for cc, pair in pairs.items()
            )
            + f" Mbit/s, F-BBRv2's higher in {100 * sure:.0f} % of resamples"
        )
    return Verdict(holds, "; ".join(told) + ".")


def _fair(runs: Runs) -> Verdict:
    indices = {queue: _jain(runs, "f-bbr2", queue) for queue in QUEUES}
    return Verdict(
        min(indices.values()) >= 0.9,
        ", ".join(f"{index:.2f} at {queue} BDP" for queue, index in indices.items()) + ".",
    )


def _rtprop(runs: Runs) -> Verdict:
    family, cubic = (
        steadiness(runs[name]).select(
            least=pl.col("within").min(),
            mean=pl.col("within").mean(),
            most=pl.col("within").max(),
            calm=pl.col("deviation").min(),
            wild=pl.col("deviation").max(),
        )
        for name in ("family-bbr2", "pair-bbr2-4")
    )
    among, beside = family.row(0, named=True), cubic.row(0, named=True)
    return Verdict(
        among["least"] >= 0.99 and beside["most"] < 0.5 and beside["calm"] > among["wild"],
        f"Within 1.2 times the first value for {100 * among['mean']:.1f} % of the time beside "
        f"BBRv2, for {100 * beside['mean']:.1f} % beside CUBIC (single runs "
        f"{100 * beside['least']:.1f} to {100 * beside['most']:.1f} %). Standard deviation of the "
        f"ratio: {among['wild']:.4f} at most beside BBRv2, {beside['calm']:.2f} to "
        f"{beside['wild']:.2f} beside CUBIC.",
    )


def _jain(runs: Runs, cc: str, queue: str) -> float:
    return value(median(runs[f"pair-{cc}-{queue}"], "jain"))
