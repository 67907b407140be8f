"""The figures of this reproduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
from matplotlib.ticker import LogLocator

from dumbbell import figures
from dumbbell.metrics import intervals
from dumbbell.papers.frame import Paper, Plate
from dumbbell.papers.tein2.measures import (
    ALGORITHMS,
    FOLDER,
    FRIENDS,
    HIGH_SPEED,
    LABELS,
    PATHS,
    RATIOS,
    RTTS,
    delay,
    rate,
    unfairness,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Runs

_PUBLISHED = {number.id: number.published for number in Paper.load(FOLDER).numbers}

_THROUGHPUT = "throughput (Mbit/s)"

_FAIR_PART = 16.0
"""Up to where the paper's axis of throughput ratios goes."""


def draw_delay(runs: Runs) -> Figure:
    """Throughput over the round-trip time: the paper's figure 7."""
    points = (
        intervals.point(cc, rtt, delay(runs, cc, rtt), _PUBLISHED[f"throughput-{rtt}-{cc}"])
        for cc in ALGORITHMS
        for rtt in RTTS
    )
    return _lines(points, ("RTT (ms)", RTTS), _THROUGHPUT, top=800)


def draw_unfairness(runs: Runs) -> Figure:
    """Throughput ratio over the inverse RTT ratio: the paper's figure 8."""
    points = (
        intervals.point(cc, x, unfairness(runs, cc, x), _PUBLISHED[f"ratio-{x}-{cc}"])
        for cc in ALGORITHMS
        for x in RATIOS
    )
    return _lines(points, ("inverse RTT ratio", RATIOS), "throughput ratio", top=_FAIR_PART)


def draw_friends(rtt: int, runs: Runs) -> Figure:
    """Reno beside each algorithm: the paper's figures 9 and 10."""
    bars = (
        _bar(cc, member, shown, rate(runs[f"friends-{cc}-{rtt}"], flow))
        for cc in HIGH_SPEED
        for flow, member, shown in (("other", "beside Reno", cc), ("reno", "Reno", "reno"))
    )
    return _bars(bars, HIGH_SPEED, ("beside Reno", "Reno"))


def draw_paths(runs: Runs) -> Figure:
    """Both paths over TEIN2 at once: the paper's figure 14."""
    bars = (
        _bar(cc, path, cc, rate(runs[f"tein2-{cc}"], path)) for cc in ALGORITHMS for path in PATHS
    )
    return _bars(bars, ALGORITHMS, tuple(PATHS))


def draw_beyond(plan: str, runs: Runs) -> Figure:
    """Throughput over the round-trip time, with the algorithms of today."""
    table = runs.beyond[plan].with_columns(pl.col("rtt").cast(pl.Float64))
    points = (
        intervals.point(cell["cc"][0], cell["rtt"][0], intervals.median(cell["throughput"] / 1e6))
        for cell in table.partition_by("cc", "rtt", maintain_order=True)
    )
    return _lines(points, ("RTT (ms)", sorted(set(table["rtt"]))), _THROUGHPUT)


def draw_beyond_ratio(plan: str, setting: str, unit: float, runs: Runs) -> Figure:
    """Throughput ratio of the near flow to the far one over `setting` / `unit`."""
    points = []
    for cell in runs.beyond[plan].partition_by("cc", setting, maintain_order=True):
        named = cell.with_columns(pl.col("flow").cast(pl.String))
        flows = named.pivot("flow", index="seed", values="throughput").drop("seed")
        near, far = flows.columns
        found = intervals.median(flows[near] / flows[far].clip(1.0))
        points.append(intervals.point(cell["cc"][0], float(cell[setting][0]) / unit, found))
    ticks = sorted({round(point["x"], 1) for point in points})
    return _lines(points, ("inverse RTT ratio", ticks), "throughput ratio", log=True)


def draw_beyond_friends(runs: Runs) -> Figure:
    """Reno beside each algorithm of today, at both round-trip times."""
    table = runs.beyond["beyond-friends"].with_columns(pl.col("flow").cast(pl.String))
    algorithms = list(dict.fromkeys(table["cc"]))
    bars = [
        _bar(
            f"{figures.look(cell['cc'][0]).label}\n{cell['rtt'][0]} ms",
            "Reno" if cell["flow"][0] == "reno" else "beside Reno",
            "reno" if cell["flow"][0] == "reno" else cell["cc"][0],
            intervals.median(cell["throughput"] / 1e6),
        )
        for cell in table.partition_by("cc", "rtt", "flow", maintain_order=True)
    ]
    groups = [f"{figures.look(cc).label}\n{rtt} ms" for cc in algorithms for rtt in FRIENDS]
    return _bars(bars, groups, ("beside Reno", "Reno"), width=figures.PAGE)


def _lines(
    points: Iterable[dict[str, Any]],
    x: tuple[str, Sequence[float]],
    y: str,
    *,
    top: float | None = None,
    log: bool = False,
) -> Figure:
    """Curves over the setting that `x` names and has the ticks of, up to `top` at least."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.2)
    rows = list(points)
    figures.curves(axes, rows)
    label, ticks = x
    margin = 0.03 * (max(ticks) - min(ticks))
    axes.set_xlim(min(ticks) - margin, max(ticks) + margin)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(label)
    axes.set_ylabel(y)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.axhline(1.0, color=figures.FAINT, linewidth=0.6)
    else:
        highest = max(row[end] or 0 for row in rows for end in ("high", "published"))
        axes.set_ylim(0, max(top or 0, 1.04 * highest))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=8, columnspacing=1.2)
    return figure


def _bars(
    bars: Iterable[dict[str, Any]],
    groups: Sequence[str],
    members: Sequence[str],
    width: float = figures.COLUMN,
) -> Figure:
    figure, [[axes]] = figures.panels(width=width, height=2.5)
    names = [LABELS.get(group, group) for group in groups]
    figures.grouped_bars(axes, bars, names, members)
    axes.set_ylabel(_THROUGHPUT)
    return figure


def _bar(group: str, member: str, cc: str, found: Estimate) -> dict[str, Any]:
    return {"group": LABELS.get(group, group), "member": member, "cc": cc} | found.ends


_MARKS = "Filled marks: the simulator, medians and 95 % intervals; hollow marks, dotted: the paper."
_MEDIANS = "Medians over the seeds and their 95 % intervals."


def _beyond(plan: str, title: str, caption: str, draw: Callable[[Runs], Figure]) -> Plate:
    title = f"Beyond the paper: {title}"
    return Plate(plan, title, f"{caption} {_MEDIANS}", draw, experiments=(plan,), wide=True)


PLATES = (
    Plate(
        id="7",
        title="Throughput over the round-trip time",
        caption=f"One flow, loss 1e-6. {_MARKS}",
        draw=draw_delay,
        experiments=tuple(f"delay-{cc}-{rtt}" for cc in ALGORITHMS for rtt in RTTS),
        wide=True,
    ),
    Plate(
        id="8",
        title="RTT fairness",
        caption="Throughput of the flow with 10 ms over that of one with a longer round-trip time. "
        f"{_MARKS}",
        draw=draw_unfairness,
        experiments=tuple(f"fairness-{cc}-{x}" for cc in ALGORITHMS for x in RATIOS),
        wide=True,
    ),
    *(
        Plate(
            id=number,
            title=f"Reno beside each algorithm at {rtt} ms",
            caption=f"Left, the algorithm; right, hatched, the Reno flow beside it. {_MEDIANS}",
            draw=partial(draw_friends, rtt),
            experiments=tuple(f"friends-{cc}-{rtt}" for cc in HIGH_SPEED),
        )
        for number, rtt in zip(("9", "10"), FRIENDS, strict=True)
    ),
    Plate(
        id="14",
        title="Paths to Korea, both at once",
        caption=f"Left from China (140 ms), right, hatched, from Germany (270 ms). {_MEDIANS}",
        draw=draw_paths,
        experiments=tuple(f"tein2-{cc}" for cc in ALGORITHMS),
    ),
    _beyond(
        "beyond-delay",
        "the algorithms of today on the same testbed",
        "One flow, loss 1e-6, 725 Mbit/s at every delay, 120 s.",
        partial(draw_beyond, "beyond-delay"),
    ),
    _beyond(
        "beyond-10g",
        "10 Gbit/s",
        "One flow, loss 1e-6, a queue of half a BDP, windows unlimited, 60 s.",
        partial(draw_beyond, "beyond-10g"),
    ),
    _beyond(
        "beyond-fairness",
        "RTT fairness of the algorithms of today",
        "As figure 8.",
        partial(draw_beyond_ratio, "beyond-fairness", "ratio", 1.0),
    ),
    _beyond(
        "beyond-friends",
        "Reno beside the algorithms of today",
        "As figures 9 and 10.",
        draw_beyond_friends,
    ),
    _beyond(
        "beyond-tein2",
        "RTT ratios of 3 and 6 on 622 Mbit/s",
        "The flow with 140 ms over the one with 1.9, 3 and 6 times as much, on one link, 120 s.",
        partial(draw_beyond_ratio, "beyond-tein2", "far", 140.0),
    ),
)
"""All figures."""
