"""Convergence of flows that start at different times (Choi, Kim, Lee).

The paper counts, from the start of the second flow, the first time at which both windows cross
close to their long-run average; `dumbbell.metrics.convergence_times` says how close. Beside it
stands the standard definition by Jain's index.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals, windows
from dumbbell.metrics.convergence_times import AVERAGE, CLOSE, SMOOTH, convergence
from dumbbell.papers import Runs, Table, Verdict, claim, figure, metric, number, reduce, table, text
from dumbbell.papers.helpers import grid, label
from dumbbell.papers.standard_figures import interval_bars, interval_key, interval_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

    Times = Mapping[str, Sequence[float | None]]

ALGORITHMS = ("reno", "cubic", "bbr", "bbr3")
JOINS = 30.0
"""When the second flow starts, s."""
LIMIT = 120.0
"""How long after the second flow's start a simulated run is observed, s."""

LINUX: dict[str, dict[str, Sequence[float | None]]] = {
    "crossing": {"reno": (56.1, None, None), "cubic": (None, None, 67.1), "bbr": (4.1, 3.5, 9.3)},
    "fair": {"reno": (20.0, 22.0, 23.0), "cubic": (None, 44.0, 25.0), "bbr": (10.0, 1.0, 2.0)},
}
"""Convergence times of three runs each on Linux 6.18, s (``scripts/pages/linux``)."""
LINUX_LIMIT = 90.0
"""How long after the second flow's start a run on Linux was observed, s."""


@metric("crossing", unit="s")
@metric("fair", unit="s")
@metric("share_variance", unit="1")
def converged(result: Result) -> pl.DataFrame:
    return convergence(result)


@reduce
def keep(result: Result) -> pl.DataFrame:
    return convergence(result).select("seed", "crossing", "fair")


def times(runs: Runs, name: str, algorithms: Sequence[str] = ALGORITHMS) -> Times:
    return {cc: runs.values(cc, name) for cc in algorithms}


@number("reno-over-bbr")
def reno_over_bbr(runs: Runs) -> Estimate:
    reno, bbr = (runs.values(cc, "crossing") for cc in ("reno", "bbr"))
    return intervals.ratio_of_medians(reno, bbr, LIMIT)


@claim("order")
def order(runs: Runs) -> Verdict:
    said = ("bbr", "bbr3", "cubic", "reno")
    crossing, fair = (times(runs, name) for name in ("crossing", "fair"))

    def ascending(medians: Mapping[str, NDArray[np.float64]]) -> NDArray[np.bool_]:
        steps = [low < high for low, high in pairwise(medians[cc] for cc in said)]
        return np.asarray(np.all(steps, axis=0))

    sure = intervals.support(crossing, ascending)
    medians = {cc: intervals.median(crossing[cc]).value for cc in said}
    order = ascending({cc: np.array(np.inf if v is None else v) for cc, v in medians.items()})
    return Verdict(
        bool(order) and sure >= 0.95,
        f"Windows cross after {_listed(crossing, said)}; in this order in {_percent(sure)} of "
        f"resamples. By Jain's index: {_listed(fair, said)}; in this order in "
        f"{_percent(intervals.support(fair, ascending))}.",
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
    both = ("bbr", "bbr3")
    crossing, variance = (times(runs, name, both) for name in ("crossing", "share_variance"))
    later = intervals.support(crossing, lambda median: median["bbr3"] > median["bbr"])
    steadier = intervals.support(variance, lambda median: median["bbr3"] < median["bbr"])
    shares = []
    for cc, values in variance.items():
        roots = [None if value is None else float(np.sqrt(value)) for value in values]
        spread = intervals.median(roots).value
        shares.append(f"{label(cc)} {'never fair' if spread is None else f'{100 * spread:.1f} %'}")
    return Verdict(
        min(later, steadier) >= 0.95,
        f"Windows cross after {_listed(crossing, both)}; BBRv3 later in {_percent(later)} of "
        "resamples. Standard deviation of the first flow's share of the throughput after "
        f"convergence: {', '.join(shares)}; BBRv3 steadier in {_percent(steadier)} of resamples.",
    )


def _listed(groups: Times, order: Sequence[str]) -> str:
    medians = {cc: intervals.median(groups[cc], LIMIT).value for cc in order}
    return ", ".join(
        f"{label(cc)} " + (f"more than {LIMIT:g} s" if time is None else f"{time:.3g} s")
        for cc, time in medians.items()
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def published(runs: Runs, cc: str) -> float:
    return runs.paper.published[f"{cc}-crossing"]


@figure("2a", cc="reno")
@figure("2b", cc="cubic")
@figure("3a", cc="bbr")
@figure("3b", cc="bbr3")
def draw_windows(runs: Runs, cc: str) -> Figure:
    """Both windows over time, the first seed."""
    drawn, [[axes]] = figures.panels(height=2.3)
    result = runs[cc]
    name = pl.col("flow").cast(pl.String) + pl.lit(" flow")
    series = result.of_seed(result.seeds[0]).series
    figures.windows(axes, series.with_columns(pl.col("cc").cast(pl.String), name=name))
    axes.set_xlim(0, JOINS + LIMIT)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.18)
    said, found = published(runs, cc), runs.values(cc, "crossing")[0]
    figures.moment(axes, JOINS + said, "paper")
    if found is not None:
        figures.moment(axes, JOINS + found, "here", row=1 if abs(found - said) < 25 else 0)
    axes.set_title(label(cc))
    figures.legend(axes)
    return drawn


@figure("convergence")
def draw_convergence(runs: Runs) -> Figure:
    """Both convergence times of all algorithms: paper, simulator, Linux."""
    drawn, [line] = figures.panels(1, 2, width=figures.PAGE, height=3.1, share_y=True)
    titles = {"crossing": "Windows cross near their average", "fair": "Jain's index stays at 0.95"}
    for axes, (name, title) in zip(line, titles.items(), strict=True):
        rows = []
        for cc in ALGORITHMS:
            said = published(runs, cc)
            rows.append(interval_row(cc, label(cc), runs.median(cc, name, limit=LIMIT), said))
            if cc in LINUX[name]:
                found = intervals.median(LINUX[name][cc], LINUX_LIMIT)
                rows.append(interval_row(cc, "Linux 6.18", found, said))
        interval_bars(axes, rows)
        axes.set(xlim=(0, LIMIT * 1.05), xlabel="convergence time (s)", title=title)
    interval_key(drawn)
    return drawn


@figure("shares")
def draw_shares(runs: Runs) -> Figure:
    """The second flow's share of the throughput over time: median and quartiles of the seeds."""
    drawn, [[axes]] = figures.panels(width=figures.PAGE, height=2.6)
    for place, cc in enumerate(ALGORITHMS):
        shares, style = runs.kept(cc, second_share), figures.style_of(cc)
        t, colour = shares["t"].to_numpy(), style.colour
        axes.fill_between(t, shares["low"], shares["high"], color=colour, alpha=0.18, linewidth=0)
        (line,) = axes.plot(t, shares["median"], color=colour, label=style.label)
        line.set(marker=style.marker, markevery=(3 * place, 12))
    axes.set(xlim=(0, LIMIT), xlabel="time since the second flow started (s)")
    axes.set(ylim=(0, 1), ylabel="share of the second flow")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
    return drawn


def second_share(result: Result) -> pl.DataFrame:
    """Columns t (s since the second flow started), low, median, high (0 to 1)."""
    share = pl.col("throughput") / pl.col("throughput").sum().over("seed", "window")
    rates = windows(result, since=JOINS).with_columns(share=share)
    second = rates.filter(pl.col("flow") == result.flow_names[1])
    return (
        second.group_by(t=pl.col("window").cast(pl.Float64))
        .agg(
            low=pl.col("share").quantile(0.25),
            median=pl.col("share").median(),
            high=pl.col("share").quantile(0.75),
        )
        .sort("t")
    )


def variants(runs: Runs) -> dict[str, tuple[str, str]]:
    """The experiments as assumed and with one change: the algorithm, and what is changed."""
    specs = runs.paper.specs(["{cc}", "{cc}-{change}"], {"cc": [*ALGORITHMS]})
    return {
        spec.id: (spec.settings["cc"], runs.paper.label(spec.settings["change"])) for spec in specs
    }


@table("variants")
def table_variants(runs: Runs) -> Table:
    """The runs that change one thing."""
    rows = {
        f"{label(cc)}: {change}": [
            cell for name in ("crossing", "fair") for cell in _times(runs.values(experiment, name))
        ]
        for experiment, (cc, change) in variants(runs).items()
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
    for experiment, (cc, change) in variants(runs).items():
        median = runs.median(experiment, name, limit=LIMIT)
        low = LIMIT if median.low is None else median.low
        high = float("inf") if median.high is None else median.high
        if low <= published(runs, cc) <= high:
            found.append(f"{label(cc)} {change}")
    return ", ".join(found) or "none"
