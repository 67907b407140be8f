"""Convergence of flows that start at different times (Choi, Kim, Lee).

The paper counts, from the start of the second flow, the first time at which both windows cross
close to their long-run average; `dumbbell.metrics.convergence_times` says how close. Beside it
stands the standard definition by Jain's index.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals, windows
from dumbbell.metrics.convergence_times import AVERAGE, CLOSE, HOLD, SMOOTH, convergence
from dumbbell.papers import Runs, Table, Verdict, claim, figure, metric, number, reduce, table, text
from dumbbell.papers.helpers import grid, label
from dumbbell.papers.standard_figures import interval_bars, interval_key, interval_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

ALGORITHMS = ("reno", "cubic", "bbr", "bbr3")
JOINS = 30.0
"""When the second flow starts, s."""
LIMITS = {"crossing": 120.0, "fair": 120.0 - HOLD}
"""How long after the second flow's start a run shows that flows converge, s: until it ends, or
until there is no time left to stay fair."""


@metric("crossing", unit="s", lowest=0)
@metric("fair", unit="s", lowest=0)
@metric("share_variance", unit="1", lowest=0)
def converged(result: Result) -> pl.DataFrame:
    return convergence(result)


@reduce
def keep(result: Result) -> pl.DataFrame:
    return convergence(result).select("seed", "crossing", "fair")


def time(runs: Runs, cc: str, name: str = "crossing") -> float:
    """The median convergence time, s; infinity beyond the time observed."""
    found = runs.median(cc, name, limit=LIMITS[name]).value
    return math.inf if found is None else found


@number("reno-over-bbr")
def reno_over_bbr(runs: Runs) -> Estimate:
    reno, bbr = (runs.values(cc, "crossing") for cc in ("reno", "bbr"))
    return intervals.ratio_of_medians(reno, bbr, LIMITS["crossing"])


@claim("order")
def order(runs: Runs) -> Verdict:
    said = ("bbr", "bbr3", "cubic", "reno")
    return Verdict(
        all(time(runs, one) < time(runs, other) for one, other in pairwise(said)),
        f"Windows cross after {_listed(runs, said)}. By Jain's index: "
        f"{_listed(runs, said, 'fair')}.",
    )


@claim("six-times")
def six_times(runs: Runs) -> Verdict:
    reno, bbr = (time(runs, cc) for cc in ("reno", "bbr"))
    return Verdict(
        math.isfinite(bbr) and 4.5 <= reno / bbr <= 8.0,
        f"Windows cross after {_listed(runs, ('reno', 'bbr'))}.",
    )


@claim("stability")
def stability(runs: Runs) -> Verdict:
    both = ("bbr", "bbr3")
    variances = {cc: runs.median(cc, "share_variance").value for cc in both}
    spread = {cc: math.inf if v is None else math.sqrt(max(v, 0)) for cc, v in variances.items()}
    shares = ", ".join(
        f"{label(cc)} " + ("never fair" if math.isinf(share) else f"{100 * share:.1f} %")
        for cc, share in spread.items()
    )
    return Verdict(
        time(runs, "bbr3") > time(runs, "bbr") and spread["bbr3"] < spread["bbr"],
        f"Windows cross after {_listed(runs, both)}. Standard deviation of the first flow's share "
        f"of the throughput after convergence: {shares}.",
    )


def _listed(runs: Runs, order: Sequence[str], name: str = "crossing") -> str:
    medians = {cc: time(runs, cc, name) for cc in order}
    return ", ".join(
        f"{label(cc)} "
        + (f"more than {LIMITS[name]:g} s" if math.isinf(found) else f"{found:.3g} s")
        for cc, found in medians.items()
    )


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
    axes.set_xlim(0, JOINS + LIMITS["crossing"])
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
            rows.append(
                interval_row(cc, label(cc), runs.median(cc, name, limit=LIMITS[name]), said)
            )
            if runs.linux is not None:
                found = runs.linux.median(cc, name, limit=LIMITS[name])
                rows.append(interval_row(cc, "Linux 6.18", found, said))
        interval_bars(axes, rows)
        axes.set(xlim=(0, LIMITS["crossing"] * 1.05), xlabel="convergence time (s)", title=title)
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
    axes.set(xlim=(0, LIMITS["crossing"]), xlabel="time since the second flow started (s)")
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
            cell
            for name in ("crossing", "fair")
            for cell in _times(runs.values(experiment, name), LIMITS[name])
        ]
        for experiment, (cc, change) in variants(runs).items()
    }
    titles = ["Windows cross (s)", "within 120 s", "Jain's index (s)", "within 110 s"]
    return grid("Changed", titles, rows, "Medians over the seeds.")


def _times(values: Sequence[float | None], limit: float) -> list[str]:
    median = intervals.median(values, limit).value
    seen = f"{sum(value is not None for value in values)} of {len(values)}"
    return [f"> {limit:g}" if median is None else f"{median:.0f}", seen]


@text("smooth", value=SMOOTH)
@text("average", value=AVERAGE)
@text("close", value=100 * CLOSE)
def constant(_runs: Runs, value: float) -> str:
    return f"{value:.0f}"


@text("latest-bbr-phase")
def latest(runs: Runs) -> str:
    """The latest time at which windows cross in any of the runs."""
    found = runs.values("bbr-phase", "crossing")
    return f"more than {LIMITS['crossing']:g} s" if None in found else f"{max(found):.0f} s"


@text("fitting-crossing", name="crossing")
@text("fitting-fair", name="fair")
def fitting(runs: Runs, name: str) -> str:
    """Which runs have the paper's number within their confidence interval."""
    found = []
    for experiment, (cc, change) in variants(runs).items():
        median = runs.median(experiment, name, limit=LIMITS[name])
        low = LIMITS[name] if median.low is None else median.low
        high = float("inf") if median.high is None else median.high
        if low <= published(runs, cc) <= high:
            found.append(f"{label(cc)} {change}")
    return ", ".join(found) or "none"
