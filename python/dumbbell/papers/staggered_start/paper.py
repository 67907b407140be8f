"""Convergence of flows that start at different times (Choi, Kim, Lee).

The paper counts, from the start of the second flow, the first time at which both windows cross
close to their long-run average; `dumbbell.metrics.convergence_times` says how close. Beside it
stands the standard definition by Jain's index.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals, windows
from dumbbell.metrics.convergence_times import AVERAGE, CLOSE, SMOOTH, convergence
from dumbbell.papers import Runs, Table, Verdict, claim, figure, metric, number, reduce, table, text
from dumbbell.papers.helpers import grid
from dumbbell.papers.runs import once
from dumbbell.papers.staggered_start.linux_flows import (
    KERNEL,
    LABELS,
    MEASURED,
    draw_pairs,
    draw_singles,
    fidelity_table,
    named,
    pair,
)
from dumbbell.papers.standard_figures import interval_bars, interval_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

    Times = Mapping[str, Sequence[float | None]]

__all__ = ["draw_pairs", "draw_singles", "fidelity_table"]

JOINS = 30.0
"""When the second flow starts, s."""
LIMIT = 120.0
"""How long after the second flow's start a simulated run is observed, s."""
LINUX_LIMIT = 90.0
"""How long after the second flow's start a measured run was observed, s."""

CHANGES = {
    "no-hystart": ("no HyStart", ("cubic",)),
    "paced": ("paced", ("reno", "cubic")),
    "bucket": ("token bucket", tuple(LABELS)),
    "packets": ("417 packets", ("reno", "cubic")),
    "deep": ("1667 packets", tuple(LABELS)),
    "jitter": ("0.1 ms of jitter", tuple(LABELS)),
    "phase": ("any phase", ("bbr",)),
}
VARIANTS = {
    cc: {cc: LABELS[cc]}
    | {f"{cc}-{name}": label for name, (label, changed) in CHANGES.items() if cc in changed}
    for cc in LABELS
}
"""For each algorithm the experiments that change one thing, and what they change."""

converged = once(convergence)


@metric("crossing", unit="s")
def crossing(result: Result) -> list[float | None]:
    return converged(result)["crossing"].to_list()


@metric("fair", unit="s")
def fair(result: Result) -> list[float | None]:
    return converged(result)["fair"].to_list()


@metric("share_variance", unit="1")
def share_variance(result: Result) -> list[float | None]:
    return converged(result)["share_variance"].to_list()


@reduce
def keep(result: Result) -> pl.DataFrame:
    return convergence(result).select("seed", "crossing", "fair")


def times(runs: Runs, name: str, algorithms: Sequence[str] = tuple(LABELS)) -> Times:
    return {cc: runs.values(cc, name) for cc in algorithms}


@number("reno-over-bbr")
def reno_over_bbr(runs: Runs) -> Estimate:
    reno, bbr = (runs.values(cc, "crossing") for cc in ("reno", "bbr"))
    return intervals.ratio_of_medians(reno, bbr, LIMIT)


@claim("order")
def order(runs: Runs) -> Verdict:
    said = ("bbr", "bbr3", "cubic", "reno")
    crossing, fair = (times(runs, name, said) for name in ("crossing", "fair"))

    def ascending(medians: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        steps = [low < high for low, high in pairwise(medians[cc] for cc in said)]
        return np.asarray(np.logical_and.reduce(steps))

    # The groups are resampled in the order of the algorithms.
    by_windows, by_index = ({cc: group[cc] for cc in LABELS} for group in (crossing, fair))
    sure = intervals.support(by_windows, ascending)
    medians = [intervals.median(crossing[cc], LIMIT).value for cc in said]
    ascends = all(
        low is not None and (high is None or low < high) for low, high in pairwise(medians)
    )
    return Verdict(
        ascends and sure >= 0.95,
        f"Windows cross after {_listed(crossing)}; in this order in {_percent(sure)} of "
        f"resamples. By Jain's index: {_listed(fair)}; in this order in "
        f"{_percent(intervals.support(by_index, ascending))}.",
    )


@claim("six-times")
def six_times(runs: Runs) -> Verdict:
    ratio = reno_over_bbr(runs)
    if ratio.limit is None:
        return Verdict(False, f"No ratio: BBRv1's median time is longer than {LIMIT:g} s.")
    if ratio.value is None:
        return Verdict(
            False,
            f"More than {ratio.limit:.1f} times: Reno's median time is longer than the {LIMIT:g} s "
            "that were observed.",
        )
    upper = "without bound" if ratio.high is None else f"{ratio.high:.1f}"
    return Verdict(
        4.5 <= ratio.value <= 8.0,
        f"{ratio.value:.1f} times, 95 % interval {ratio.low:.1f} to {upper}.",
    )


@claim("stability")
def stability(runs: Runs) -> Verdict:
    crossing, variance = (
        times(runs, name, ("bbr", "bbr3")) for name in ("crossing", "share_variance")
    )
    later = intervals.support(crossing, lambda median: median["bbr3"] > median["bbr"])
    steadier = intervals.support(variance, lambda median: median["bbr3"] < median["bbr"])
    shares = []
    for cc, values in variance.items():
        roots = [None if value is None else float(np.sqrt(value)) for value in values]
        spread = intervals.median(roots).value
        shares.append(f"{LABELS[cc]} {'never fair' if spread is None else f'{100 * spread:.1f} %'}")
    return Verdict(
        min(later, steadier) >= 0.95,
        f"Windows cross after {_listed(crossing)}; BBRv3 later in {_percent(later)} of resamples. "
        f"Standard deviation of the first flow's share of the throughput after convergence: "
        f"{', '.join(shares)}; BBRv3 steadier in {_percent(steadier)} of resamples.",
    )


def _listed(groups: Times) -> str:
    medians = {cc: intervals.median(values, LIMIT).value for cc, values in groups.items()}
    return ", ".join(
        f"{LABELS[cc]} " + (f"more than {LIMIT:g} s" if time is None else f"{time:.3g} s")
        for cc, time in medians.items()
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def published(runs: Runs, cc: str) -> float:
    assert runs.paper is not None
    return runs.paper.published[f"{cc}-crossing"]


@figure("2a", cc="reno")
@figure("2b", cc="cubic")
@figure("3a", cc="bbr")
@figure("3b", cc="bbr3")
def draw_windows(runs: Runs, cc: str) -> Figure:
    """Both windows over time, the first seed."""
    drawn, [[axes]] = figures.panels(height=2.3)
    result = runs[cc]
    figures.windows(axes, named(result.of_seed(result.seeds[0]).series))
    axes.set_xlim(0, JOINS + LIMIT)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.18)
    said, found = published(runs, cc), runs.values(cc, "crossing")[0]
    figures.moment(axes, JOINS + said, "paper")
    if found is not None:
        figures.moment(axes, JOINS + found, "here", row=1 if abs(found - said) < 25 else 0)
    axes.set_title(LABELS[cc])
    figures.legend(axes)
    return drawn


@figure("convergence")
def draw_convergence(runs: Runs) -> Figure:
    """Both convergence times of all algorithms: paper, simulator, Linux."""
    drawn, [line] = figures.panels(1, 2, width=figures.PAGE, height=3.1, share_y=True)
    titles = {"crossing": "Windows cross near their average", "fair": "Jain's index stays at 0.95"}
    for axes, (name, title) in zip(line, titles.items(), strict=True):
        rows = []
        for cc in LABELS:
            said = published(runs, cc)
            rows.append(interval_row(cc, LABELS[cc], runs.median(cc, name, limit=LIMIT), said))
            if cc in MEASURED:
                found = intervals.median(converged(pair(cc))[name].to_list(), LINUX_LIMIT)
                rows.append(interval_row(cc, f"Linux {KERNEL}", found, said))
        _bars(axes, rows, title)
    return drawn


@figure("variants")
def draw_variants(runs: Runs) -> Figure:
    """Convergence when one thing is changed, both definitions."""
    drawn, lines = figures.panels(
        len(VARIANTS),
        2,
        width=figures.PAGE,
        height=1.65,
        share_x=True,
        share_y=True,
        row_heights=[len(variants) + 0.8 for variants in VARIANTS.values()],
    )
    titles = {"crossing": "windows cross", "fair": "Jain's index"}
    for (cc, variants), line in zip(VARIANTS.items(), lines, strict=True):
        for axes, (name, title) in zip(line, titles.items(), strict=True):
            rows = [
                interval_row(cc, label, runs.median(one, name, limit=LIMIT), published(runs, cc))
                for one, label in variants.items()
            ]
            _bars(axes, rows, f"{LABELS[cc]}: {title}")
            if line is not lines[-1]:
                axes.set_xlabel("")
    return drawn


def _bars(axes: Axes, rows: list[dict[str, Any]], title: str) -> None:
    interval_bars(axes, rows)
    axes.set_xlim(0, LIMIT * 1.05)
    axes.set_xlabel("convergence time (s)")
    axes.set_title(title)


@figure("shares")
def draw_shares(runs: Runs) -> Figure:
    """The second flow's share of the throughput over time: median and quartiles of the seeds."""
    drawn, [[axes]] = figures.panels(width=figures.PAGE, height=2.6)
    for place, cc in enumerate(LABELS):
        shares, style = runs.kept(cc, second_share), figures.style_of(cc)
        t, colour = shares["t"].to_numpy(), style.colour
        axes.fill_between(t, shares["low"], shares["high"], color=colour, alpha=0.18, linewidth=0)
        every = (3 * place, 12)
        (line,) = axes.plot(t, shares["median"], color=colour, label=style.label)
        line.set(marker=style.marker, markevery=every)
    axes.set_ylim(0, 1)
    axes.set_xlim(0, LIMIT)
    axes.set_xlabel("time since the second flow started (s)")
    axes.set_ylabel("share of the second flow")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
    return drawn


def second_share(result: Result) -> pl.DataFrame:
    """Columns t (s since the second flow started), low, median, high (0 to 1)."""
    share = pl.col("throughput") / pl.col("throughput").sum().over("seed", "window")
    rates = windows(result, since=JOINS).with_columns(share=share)
    over_seeds = rates.filter(pl.col("flow") == result.flow_names[1]).group_by("window")
    return (
        over_seeds.agg(
            low=pl.col("share").quantile(0.25),
            median=pl.col("share").median(),
            high=pl.col("share").quantile(0.75),
        )
        .sort("window")
        .with_columns(t=pl.col("window").cast(pl.Float64))
    )


@table("variants")
def table_variants(runs: Runs) -> Table:
    """The runs that change one thing."""
    rows = {
        f"{LABELS[cc]}: {label}" if name != cc else LABELS[cc]: [
            cell for metric in ("crossing", "fair") for cell in _times(runs.values(name, metric))
        ]
        for cc, variants in VARIANTS.items()
        for name, label in variants.items()
    }
    titles = ["Windows cross (s)", "within 120 s", "Jain's index (s)", "within 120 s"]
    return grid("Changed", titles, rows, "Medians over the seeds.")


def _times(values: Sequence[float | None]) -> list[str]:
    median = intervals.median(values, LIMIT).value
    seen = f"{sum(value is not None for value in values)} of {len(values)}"
    return [f"> {LIMIT:g}" if median is None else f"{median:.0f}", seen]


@text("smooth", value=SMOOTH)
@text("average", value=AVERAGE)
@text("close", value=100 * CLOSE)
def constant(_runs: Runs, value: float) -> str:
    return f"{value:.0f}"


@text("latest-bbr-phase")
def latest(runs: Runs) -> str:
    """The latest time at which windows cross in any of the runs."""
    found = runs.values("bbr-phase", "crossing")
    return f"more than {LIMIT:g} s" if None in found else f"{max(found):.0f} s"


@text("fitting-crossing", name="crossing")
@text("fitting-fair", name="fair")
def fitting(runs: Runs, name: str) -> str:
    """Which runs have the paper's number within their confidence interval."""
    found = []
    for cc, variants in VARIANTS.items():
        for experiment, label in variants.items():
            median = runs.median(experiment, name, limit=LIMIT)
            low = LIMIT if median.low is None else median.low
            high = float("inf") if median.high is None else median.high
            if low <= published(runs, cc) <= high:
                found.append(label if experiment == cc else f"{LABELS[cc]} {label}")
    return ", ".join(found) or "none"
