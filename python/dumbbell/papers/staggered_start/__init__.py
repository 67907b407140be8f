"""Convergence of flows that start at different times (Choi, Kim, Lee).

The paper counts, from the start of the second flow, the first time at which both windows cross
close to their long-run average; `dumbbell.metrics.convergence_times` says how close. Beside it
stands the standard definition by Jain's index. What the kernel does in the same scenario is in
``linux/``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from dumbbell.metrics import intervals
from dumbbell.metrics.convergence_times import convergence
from dumbbell.papers.frame import Verdict
from dumbbell.papers.staggered_start.chapters import sections
from dumbbell.papers.staggered_start.measures import ALGORITHMS, LABELS, LIMIT, runs_of, seconds
from dumbbell.papers.staggered_start.plates import PLATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from numpy.typing import NDArray

    from dumbbell.papers.frame import Measured, Runs, Verdicts
    from dumbbell.results.result import Result

__all__ = ["PLATES", "judge", "measure", "reduce", "sections"]

_SURE: Final = 0.95
_ABOUT_SIX: Final = (4.5, 8.0)


def measure(runs: Runs) -> Measured:
    """Measures the convergence times in both definitions."""
    crossing = {cc: runs_of(runs[cc], "crossing") for cc in ALGORITHMS}
    fair = {cc: runs_of(runs[cc], "fair") for cc in ALGORITHMS}
    numbers = {f"{cc}-crossing": intervals.median(crossing[cc], LIMIT) for cc in ALGORITHMS}
    numbers |= {f"{cc}-fair": intervals.median(fair[cc], LIMIT) for cc in ALGORITHMS}
    ratio = intervals.ratio_of_medians(crossing["reno"], crossing["bbr"], LIMIT)
    return numbers | {"reno-over-bbr": ratio}


def judge(runs: Runs, numbers: Measured) -> Verdicts:
    """Checks the three claims."""
    crossing = {cc: runs_of(runs[cc], "crossing") for cc in ALGORITHMS}
    fair = {cc: runs_of(runs[cc], "fair") for cc in ALGORITHMS}
    return {
        "order": _order(crossing, fair),
        "six-times": _six_times(numbers["reno-over-bbr"]),
        "stability": _stability(runs, crossing),
    }


def reduce(result: Result) -> pl.DataFrame:
    """Keeps both convergence times of every seed."""
    return convergence(result).select("seed", "crossing", "fair")


def _order(
    crossing: Mapping[str, list[float | None]], fair: Mapping[str, list[float | None]]
) -> Verdict:
    said = ("bbr", "bbr3", "cubic", "reno")

    def ascending(medians: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        ordered = [medians[cc] for cc in said]
        steps = [low < high for low, high in pairwise(ordered)]
        return np.asarray(np.logical_and.reduce(steps))

    by_windows, by_index = (
        {cc: intervals.median(times[cc], LIMIT) for cc in said} for times in (crossing, fair)
    )
    support = intervals.support(crossing, ascending)
    holds = _ascends(by_windows, said) and support >= _SURE
    return Verdict(
        holds,
        f"Windows cross after {_listed(by_windows)}; in this order in {_percent(support)} of "
        f"resamples. By Jain's index: {_listed(by_index)}; in this order in "
        f"{_percent(intervals.support(fair, ascending))}.",
    )


def _six_times(ratio: intervals.Estimate) -> Verdict:
    if ratio.limit is None:
        return Verdict(False, f"No ratio: BBRv1's median time is longer than {LIMIT:g} s.")
    if ratio.value is None:
        return Verdict(
            False,
            f"More than {ratio.limit:.1f} times: Reno's median time is longer than the {LIMIT:g} s "
            "that were observed.",
        )
    low, high = _ABOUT_SIX
    upper = "without bound" if ratio.high is None else f"{ratio.high:.1f}"
    return Verdict(
        low <= ratio.value <= high,
        f"{ratio.value:.1f} times, 95 % interval {ratio.low:.1f} to {upper}.",
    )


def _stability(runs: Runs, crossing: Mapping[str, list[float | None]]) -> Verdict:
    pair = ("bbr", "bbr3")
    variance = {cc: runs_of(runs[cc], "share_variance") for cc in pair}
    spread = {cc: intervals.median([_root(v) for v in variance[cc]]) for cc in pair}
    times = {cc: intervals.median(crossing[cc], LIMIT) for cc in pair}
    later = intervals.support(
        {cc: crossing[cc] for cc in pair}, lambda median: median["bbr3"] > median["bbr"]
    )
    steadier = intervals.support(variance, lambda median: median["bbr3"] < median["bbr"])
    shares = ", ".join(
        f"{LABELS[cc]} {'never fair' if v.value is None else f'{100 * v.value:.1f} %'}"
        for cc, v in spread.items()
    )
    return Verdict(
        min(later, steadier) >= _SURE,
        f"Windows cross after {_listed(times)}; BBRv3 later in {_percent(later)} of resamples. "
        f"Standard deviation of the first flow's share of the throughput after convergence: "
        f"{shares}; BBRv3 steadier in {_percent(steadier)} of resamples.",
    )


def _ascends(medians: Mapping[str, intervals.Estimate], order: tuple[str, ...]) -> bool:
    values = [medians[cc].value for cc in order]
    return all(low is not None and (high is None or low < high) for low, high in pairwise(values))


def _listed(times: Mapping[str, intervals.Estimate]) -> str:
    return ", ".join(f"{LABELS[cc]} {seconds(time)}" for cc, time in times.items())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _root(variance: float | None) -> float | None:
    return None if variance is None else float(np.sqrt(variance))
