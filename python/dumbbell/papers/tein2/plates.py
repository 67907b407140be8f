"""The figures of this reproduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from dumbbell import figures
from dumbbell.papers import estimates
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.papers.estimates import Estimate
    from dumbbell.papers.frame import Runs

_PUBLISHED = {number.id: number.published for number in Paper.load(FOLDER).numbers}


def draw_delay(runs: Runs) -> Figure:
    """Throughput over the round-trip time: the paper's figure 7."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.2)
    rows = [
        _point(cc, rtt, delay(runs, cc, rtt), _PUBLISHED[f"throughput-{rtt}-{cc}"])
        for cc in ALGORITHMS
        for rtt in RTTS
    ]
    figures.curves(axes, pl.DataFrame(rows))
    axes.set_xlim(0, 205)
    axes.set_ylim(0, 800)
    axes.set_xticks(RTTS)
    axes.set_xlabel("RTT (ms)")
    axes.set_ylabel("throughput (Mbit/s)")
    _legend(axes)
    return figure


def draw_unfairness(runs: Runs) -> Figure:
    """Throughput ratio over the inverse RTT ratio: the paper's figure 8."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.2)
    rows = [
        _point(cc, x, unfairness(runs, cc, x), _PUBLISHED[f"ratio-{x}-{cc}"])
        for cc in ALGORITHMS
        for x in RATIOS
    ]
    figures.curves(axes, pl.DataFrame(rows))
    axes.set_yscale("log", base=2)
    ticks = [0.5, 1, 2, 4, 8, 16, 64, 256]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_ylim(0.35, 500)
    axes.set_xlim(0.9, 6.1)
    axes.set_xticks(RATIOS)
    axes.set_xlabel("inverse RTT ratio")
    axes.set_ylabel("throughput ratio")
    _legend(axes)
    return figure


def draw_friends(rtt: int, runs: Runs) -> Figure:
    """Reno beside each algorithm: the paper's figures 9 and 10."""
    figure, [[axes]] = figures.panels(height=2.5)
    rows = [
        _bar(cc, member, shown, rate(runs[f"friends-{cc}-{rtt}"], flow))
        for cc in HIGH_SPEED
        for flow, member, shown in (("other", "beside Reno", cc), ("reno", "Reno", "reno"))
    ]
    groups = [LABELS[cc] for cc in HIGH_SPEED]
    figures.grouped_bars(axes, pl.DataFrame(rows), groups, ["beside Reno", "Reno"])
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_title(f"RTT {rtt} ms")
    return figure


def draw_paths(together: bool, runs: Runs) -> Figure:
    """Both paths over TEIN2, each alone or both at once: the paper's figures 11 to 14."""
    figure, [[axes]] = figures.panels(height=2.5)
    rows = [
        _bar(
            cc,
            path,
            cc,
            rate(runs[f"tein2-{cc}-{'both' if together else path}"], path if together else "flow"),
        )
        for cc in ALGORITHMS
        for path in PATHS
    ]
    figures.grouped_bars(axes, pl.DataFrame(rows), [LABELS[cc] for cc in ALGORITHMS], list(PATHS))
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_title("Both at once" if together else "Each alone")
    return figure


def draw_beyond(plan: str, x: str, runs: Runs) -> Figure:
    """Throughput over a setting, with the algorithms of today, beyond the paper."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.2)
    table = runs.beyond[plan].with_columns(pl.col(x).cast(pl.Float64))
    rows = []
    for cell in table.partition_by("cc", x, maintain_order=True):
        found = estimates.median((cell["throughput"] / 1e6).to_list())
        rows.append(_point(cell["cc"][0], cell[x][0], found, None))
    figures.curves(axes, pl.DataFrame(rows, schema_overrides={"published": pl.Float64}))
    axes.set_ylim(bottom=0)
    axes.set_xticks(RTTS)
    axes.set_xlabel("RTT (ms)")
    axes.set_ylabel("throughput (Mbit/s)")
    _legend(axes)
    return figure


def draw_beyond_ratio(plan: str, x: str, unit: float, runs: Runs) -> Figure:
    """Throughput ratio of the near flow to the far one over `x` / `unit`, beyond the paper."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.2)
    rows = []
    for cell in runs.beyond[plan].partition_by("cc", x, maintain_order=True):
        named = cell.with_columns(pl.col("flow").cast(pl.String))
        flows = named.pivot("flow", index="seed", values="throughput").drop("seed")
        near, far = flows.columns
        found = estimates.median((flows[near] / flows[far].clip(1.0)).to_list())
        rows.append(_point(cell["cc"][0], float(cell[x][0]) / unit, found, None))
    figures.curves(axes, pl.DataFrame(rows, schema_overrides={"published": pl.Float64}))
    axes.set_yscale("log", base=2)
    axes.set_xlabel("inverse RTT ratio")
    axes.set_ylabel("throughput ratio")
    _legend(axes)
    return figure


def _point(cc: str, x: float, found: Estimate, published: float | None) -> dict[str, Any]:
    return {
        "cc": cc,
        "x": float(x),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "published": published,
    }


def _bar(group: str, member: str, cc: str, found: Estimate) -> dict[str, Any]:
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return {"group": LABELS[group], "member": member, "cc": cc} | ends


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=8, columnspacing=1.2)


_LINES = "Filled marks: the simulator, medians and 95 % intervals; hollow marks, dotted: the paper."
_BARS = "Medians over the seeds and their 95 % intervals."

PLATES = (
    Plate(
        id="7",
        title="Throughput over the round-trip time",
        caption=f"One flow, loss 1e-6. {_LINES}",
        draw=draw_delay,
        experiments=tuple(f"delay-{cc}-{rtt}" for cc in ALGORITHMS for rtt in RTTS),
        wide=True,
    ),
    Plate(
        id="8",
        title="RTT fairness",
        caption="Throughput of the flow with 10 ms over that of one with a longer round-trip time. "
        f"{_LINES}",
        draw=draw_unfairness,
        experiments=tuple(f"fairness-{cc}-{x}" for cc in ALGORITHMS for x in RATIOS),
        wide=True,
    ),
    *(
        Plate(
            id=number,
            title=f"Reno beside each algorithm at {rtt} ms",
            caption=f"Left, the algorithm; right, hatched, the Reno flow beside it. {_BARS}",
            draw=partial(draw_friends, rtt),
            experiments=tuple(f"friends-{cc}-{rtt}" for cc in HIGH_SPEED),
        )
        for number, rtt in zip(("9", "10"), FRIENDS, strict=True)
    ),
    Plate(
        id="11",
        title="Paths to Korea, each alone",
        caption=f"Left from China (140 ms), right, hatched, from Germany (270 ms). {_BARS}",
        draw=partial(draw_paths, False),
        experiments=tuple(f"tein2-{cc}-{path}" for cc in ALGORITHMS for path in PATHS),
    ),
    Plate(
        id="14",
        title="Paths to Korea, both at once",
        caption=f"Left from China (140 ms), right, hatched, from Germany (270 ms). {_BARS}",
        draw=partial(draw_paths, True),
        experiments=tuple(f"tein2-{cc}-both" for cc in ALGORITHMS),
    ),
    Plate(
        id="beyond-delay",
        title="Beyond the paper: the algorithms of today on the same testbed",
        caption=f"One flow, loss 1e-6. {_BARS}",
        draw=partial(draw_beyond, "beyond-delay", "rtt"),
        experiments=("beyond-delay",),
        wide=True,
    ),
    Plate(
        id="beyond-10g",
        title="Beyond the paper: 10 Gbit/s",
        caption=f"One flow, loss 1e-6, a queue of half a BDP, windows unlimited. {_BARS}",
        draw=partial(draw_beyond, "beyond-10g", "rtt"),
        experiments=("beyond-10g",),
        wide=True,
    ),
    Plate(
        id="beyond-fairness",
        title="Beyond the paper: RTT fairness of the algorithms of today",
        caption=f"As figure 8. {_BARS}",
        draw=partial(draw_beyond_ratio, "beyond-fairness", "ratio", 1.0),
        experiments=("beyond-fairness",),
        wide=True,
    ),
    Plate(
        id="beyond-tein2",
        title="Beyond the paper: RTT ratios of 3 and 6 on 622 Mbit/s",
        caption=f"The flow with 140 ms over the one with 1.9, 3 and 6 times as much. {_BARS}",
        draw=partial(draw_beyond_ratio, "beyond-tein2", "far", 140.0),
        experiments=("beyond-tein2",),
        wide=True,
    ),
)
"""All figures."""
