"""The figures of this reproduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals, windows
from dumbbell.papers.f_bbrv2 import beside_ns3
from dumbbell.papers.f_bbrv2.measures import (
    ALGORITHMS,
    CHANGED,
    CHANGES,
    FOLDER,
    LABELS,
    LOSSES,
    QUEUES,
    median,
    of,
    rtprop,
    smoothed,
)
from dumbbell.papers.frame import Paper, Plate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.papers.frame import Runs

_PUBLISHED: Final = {number.id: number.published for number in Paper.load(FOLDER).numbers}
_TICKS: Final = ("0.5", "1", "2", "4", "7")


def draw_throughput(cc: str, runs: Runs) -> Figure:
    """Throughput over time beside CUBIC with 4 BDP: the paper's figure 1."""
    figure, [[axes]] = figures.panels(height=2.3)
    result = runs[f"pair-{cc}-4"]
    names = {"bbr": LABELS[cc], "other": "CUBIC"}
    rates = windows(result.of_seed(result.seeds[0])).with_columns(
        name=pl.col("flow").cast(pl.String).replace(names), cc=pl.col("cc").cast(pl.String)
    )
    figures.throughputs(axes, rates)
    axes.set_xlim(0, 150)
    axes.set_ylim(0, 50)
    figures.legend(axes)
    return figure


def draw_rtprop(cc: str, runs: Runs) -> Figure:
    """RTprop over time, beside another such flow and beside CUBIC: the paper's figure 4."""
    figure, [[axes]] = figures.panels(height=2.3)
    for experiment, other in ((f"pair-{cc}-4", "cubic"), (f"family-{cc}", cc)):
        style = figures.look(other)
        for number, (_, seed) in enumerate(
            rtprop(runs[experiment]).group_by("seed", maintain_order=True)
        ):
            axes.plot(
                seed["t"],
                seed["rtprop"] * 1e3,
                color=style.colour,
                linewidth=1.2 if number == 0 else 0.5,
                alpha=1.0 if number == 0 else 0.5,
                marker=style.marker if number == 0 else None,
                markevery=(100, 250),
                label=f"beside {style.label}" if number == 0 else None,
            )
    axes.axhline(48, color=figures.INK, linewidth=0.8, linestyle=":")
    axes.annotate("1.2", (149, 48), fontsize=7, ha="right", va="bottom")
    axes.set_xlim(0, 150)
    axes.set_ylim(0, 220)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"RTprop of a {LABELS[cc]} flow (ms)")
    figures.legend(axes)
    return figure


def draw_reroute(runs: Runs) -> Figure:
    """RTprop and smoothed RTT over time while the route is longer."""
    figure, [line] = figures.panels(1, 2, width=figures.PAGE, height=2.3)
    for cc in CHANGED["cc"]:
        result, style = runs[f"reroute-{cc}"], figures.look(cc)
        inside = rtprop(result).filter(pl.col("seed") == result.seeds[0])
        for axes, table in (
            (line[0], inside.select("t", y="rtprop")),
            (line[1], smoothed(result).select("t", y="srtt")),
        ):
            axes.plot(
                table["t"],
                table["y"] * 1e3,
                color=style.colour,
                marker=style.marker,
                markevery=0.1,
                linewidth=1.0,
                label=style.label,
            )
    for axes, what, top in zip(
        line, ("RTprop (ms)", "smoothed RTT, means of 5 s (ms)"), (60, 140), strict=True
    ):
        for t, text in ((50, "longer"), (100, "as before")):
            figures.moment(axes, t, text)
        axes.set_xlim(0, 150)
        axes.set_ylim(0, top)
        axes.set_xlabel("time (s)")
        axes.set_ylabel(what)
    line[0].axhline(48, color=figures.INK, linewidth=0.8, linestyle=":")
    figures.legend(line[1])
    return figure


def draw_rates(cc: str, runs: Runs) -> Figure:
    """Average throughput over the buffer size, beside CUBIC: the paper's figure 7."""
    figure, [[axes]] = figures.panels(height=2.4)
    rows = [
        intervals.point(shown, float(queue), median(runs[f"pair-{cc}-{queue}"], side))
        for side, shown in (("bbr", cc), ("other", "cubic"))
        for queue in QUEUES
    ]
    _over_buffers(axes, rows)
    axes.set_ylim(0, 50)
    axes.set_ylabel("throughput (Mbit/s)")
    return figure


def draw_jain(runs: Runs) -> Figure:
    """Jain's index over the buffer size: the paper's figure 8."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=3.0)
    rows = [
        intervals.point(
            cc,
            float(queue),
            median(runs[f"pair-{cc}-{queue}"], "jain"),
            _PUBLISHED.get(f"jain-{cc}-{queue}"),
        )
        for cc in ALGORITHMS
        for queue in QUEUES
    ]
    _over_buffers(axes, rows)
    axes.set_ylim(0.5, 1.0)
    axes.set_ylabel("Jain's index")
    return figure


def draw_alone(runs: Runs) -> Figure:
    """Throughput alone: the paper's table 3."""
    figure, panels = figures.panels(1, 2, width=figures.PAGE, height=2.0, share_y=True)
    for loss, axes in zip(LOSSES, panels[0], strict=True):
        _bars(
            axes,
            [(cc, LABELS[cc], f"alone-{cc}-{loss}", f"alone-{loss}-{cc}") for cc in ALGORITHMS],
            "bbr",
            runs,
        )
        axes.set_xlim(0, 50)
        axes.set_xlabel("throughput (Mbit/s)")
        axes.set_title(f"random loss {loss} %")
    return figure


def draw_changes(runs: Runs) -> Figure:
    """The gap to CUBIC when one thing is changed."""
    queues = CHANGED["queues"]
    figure, grid = figures.panels(
        len(CHANGED["cc"]), len(queues), width=figures.PAGE, height=1.75, share_x=True, share_y=True
    )
    for cc, line in zip(CHANGED["cc"], grid, strict=True):
        for queue, axes in zip(queues, line, strict=True):
            cases = [(cc, "as stated", f"pair-{cc}-{queue}", f"gap-{cc}-{queue}")]
            cases += [
                (cc, label, f"{cc}-{queue}-{change}", f"gap-{cc}-{queue}")
                for change, label in CHANGES.items()
            ]
            _bars(axes, cases, "gap", runs)
            axes.set_xlim(-50, 50)
            axes.set_title(f"{LABELS[cc]}, {queue} BDP")
    for axes in grid[-1]:
        axes.set_xlabel("CUBIC has more (Mbit/s)")
    return figure


def draw_map(other: str, runs: Runs) -> Figure:
    """Jain's index over round-trip time and buffer: a panel an algorithm."""
    figure, grid = figures.panels(2, 2, width=figures.PAGE, height=2.5, share_x=True, share_y=True)
    cells = sides(runs.beyond["map"].filter(pl.col("other") == other), ["cc", "rtt", "queue"])
    cells = cells.group_by("cc", "rtt", "queue", maintain_order=True).agg(pl.col("jain").median())
    cells = cells.with_columns(pl.col("rtt", "queue").cast(pl.Float64))
    panels = [axes for line in grid for axes in line]
    for cc, axes in zip(ALGORITHMS, panels, strict=True):
        image = figures.heat_map(
            axes,
            cells.filter(pl.col("cc") == cc),
            *("queue", "rtt", "jain"),
            low=0.5,
            high=1.0,
            text=lambda row: f"{row['jain']:.2f}",
        )
        axes.set_title(f"{LABELS[cc]} beside {figures.look(other).label}")
    for line in grid:
        line[0].set_ylabel("RTT (ms)")
    for axes in grid[-1]:
        axes.set_xlabel("buffer (BDP)")
    bar = figure.colorbar(image, ax=panels, shrink=0.6)
    bar.set_label("Jain's index")
    return figure


def draw_fq_codel(runs: Runs) -> Figure:
    """Jain's index over the buffer size behind FQ-CoDel."""
    figure, [[axes]] = figures.panels(height=2.4)
    table = sides(runs.beyond["fq-codel"], ["cc", "queue"])
    rows = [
        intervals.point(cell["cc"][0], float(cell["queue"][0]), intervals.median(cell["jain"]))
        for cell in table.partition_by("cc", "queue", maintain_order=True)
    ]
    _over_buffers(axes, rows)
    axes.set_ylim(0.5, 1.02)
    axes.set_ylabel("Jain's index")
    return figure


def draw_many(queue: str, runs: Runs) -> Figure:
    """The share of the BBR flows over the number of flows a side."""
    figure, [[axes]] = figures.panels(height=2.4)
    table = sides(runs.beyond["many"].filter(pl.col("queue") == queue), ["cc", "flows"])
    rows = [
        intervals.point(cell["cc"][0], float(cell["flows"][0]), intervals.median(cell["share"]))
        for cell in table.partition_by("cc", "flows", maintain_order=True)
    ]
    figures.curves(axes, rows)
    axes.set_xticks([1, 2, 4, 8])
    axes.set_xlim(0.8, 8.2)
    axes.set_ylim(0, 1)
    axes.set_xlabel("flows a side")
    axes.set_ylabel("share of the BBR flows")
    axes.set_title(f"{queue} BDP")
    figures.legend(axes)
    return figure


def sides(table: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The throughput of each side of every run: columns `by`, seed, bbr, other, share, jain."""
    keys = [*by, "seed"]
    side = (
        pl.when(pl.col("flow").str.starts_with("bbr"))
        .then(pl.lit("bbr"))
        .otherwise(pl.lit("other"))
    )
    sums = table.group_by(*keys, side.alias("side"), maintain_order=True).agg(
        pl.col("throughput").sum() / 1e6
    )
    bbr, other = pl.col("bbr"), pl.col("other")
    return sums.pivot("side", index=keys, values="throughput").with_columns(
        share=bbr / (bbr + other), jain=(bbr + other) ** 2 / (2 * (bbr**2 + other**2))
    )


def _over_buffers(axes: Axes, rows: list[dict[str, Any]]) -> None:
    figures.curves(axes, rows)
    axes.set_xscale("log", base=2)
    axes.set_xticks([float(tick) for tick in _TICKS], _TICKS)
    axes.set_xlim(0.46, 7.6)
    axes.set_xlabel("buffer (BDP)")
    figures.legend(axes, columns=5)


def _bars(axes: Axes, cases: list[tuple[str, str, str, str]], column: str, runs: Runs) -> None:
    rows = []
    for cc, label, experiment, said in cases:
        found = median(runs[experiment], column)
        rows.append(
            {
                "cc": cc,
                "label": label,
                "limit": None,
                "runs": of(runs[experiment], column),
                "published": _PUBLISHED.get(said),
            }
            | found.ends
        )
    table = pl.DataFrame(rows, schema_overrides={"published": pl.Float64, "limit": pl.Float64})
    figures.intervals(axes, table)


_POINTS: Final = "Medians over the seeds and their 95 % intervals"
_BARS: Final = (
    f"{_POINTS}, marks are single runs; the thick stroke is the paper's number, where it has one."
)

PLATES: Final = (
    Plate(
        id="1",
        title="Figure 1: BBRv2 beside CUBIC over time, 4 BDP",
        caption="Throughput in windows of 1 s, the first seed.",
        draw=partial(draw_throughput, "bbr2"),
        experiments=("pair-bbr2-4",),
    ),
    Plate(
        id="1-f",
        title="As figure 1, F-BBRv2 beside CUBIC",
        caption="Throughput in windows of 1 s, the first seed.",
        draw=partial(draw_throughput, "f-bbr2"),
        experiments=("pair-f-bbr2-4",),
    ),
    Plate(
        id="1-v3",
        title="As figure 1, BBRv3 beside CUBIC",
        caption="Throughput in windows of 1 s, the first seed.",
        draw=partial(draw_throughput, "bbr3"),
        experiments=("pair-bbr3-4",),
    ),
    *(
        Plate(
            id=number,
            title=f"{title}: RTprop beside {LABELS[cc]} and beside CUBIC",
            caption="All seeds, 4 BDP; the first is the bold one. Dotted: 1.2 times the RTT, "
            "F-BBRv2's threshold.",
            draw=partial(draw_rtprop, cc),
            experiments=(f"pair-{cc}-4", f"family-{cc}"),
            real=False,
        )
        for number, title, cc in (("4", "Figure 4", "bbr2"), ("4-v3", "As figure 4", "bbr3"))
    ),
    Plate(
        id="reroute",
        title="Beyond the paper: a longer route",
        caption="Two flows of one kind and no CUBIC, 4 BDP; from 50 to 100 s the route is 10 ms "
        "longer. One of them: RTprop, the first seed, with F-BBRv2's threshold dotted, and the "
        "mean over four seeds of its smoothed RTT.",
        draw=draw_reroute,
        experiments=("reroute-bbr2", "reroute-f-bbr2"),
        wide=True,
    ),
    *(
        Plate(
            id=number,
            title=f"{title}: {LABELS[cc]} beside CUBIC",
            caption=f"Average throughput. {_POINTS}.",
            draw=partial(draw_rates, cc),
            experiments=tuple(f"pair-{cc}-{queue}" for queue in QUEUES),
        )
        for number, title, cc in (
            ("7a", "Figure 7(a)", "bbr2"),
            ("7b", "Figure 7(b)", "f-bbr2"),
            ("7-v1", "As figure 7", "bbr"),
            ("7-v3", "As figure 7", "bbr3"),
        )
    ),
    Plate(
        id="8",
        title="Figure 8: Jain's index over the buffer size",
        caption=f"{_POINTS}; hollow marks are the numbers of the paper's text.",
        draw=draw_jain,
        experiments=tuple(f"pair-{cc}-{queue}" for cc in ALGORITHMS for queue in QUEUES),
        wide=True,
    ),
    Plate(
        id="alone",
        title="Table 3: one flow alone",
        caption=_BARS,
        draw=draw_alone,
        experiments=tuple(f"alone-{cc}-{loss}" for cc in ALGORITHMS for loss in LOSSES),
        wide=True,
    ),
    beside_ns3.PLATE,
    Plate(
        id="changes",
        title="What the numbers hang on",
        caption=f"By how much CUBIC has more, one thing changed at a time. {_BARS}",
        draw=draw_changes,
        experiments=tuple(
            name
            for cc in CHANGED["cc"]
            for queue in CHANGED["queues"]
            for name in (
                f"pair-{cc}-{queue}",
                *(f"{cc}-{queue}-{change}" for change in CHANGES),
            )
        ),
        wide=True,
    ),
    *(
        Plate(
            id=f"map-{other}",
            title=f"Beyond the paper: Jain's index beside {figures.look(other).label}",
            caption="50 Mbit/s, access links as fast, Linux's TCP, 100 s. Medians of three seeds.",
            draw=partial(draw_map, other),
            experiments=("map",),
            wide=True,
        )
        for other in ("cubic", "reno")
    ),
    Plate(
        id="fq-codel",
        title="Beyond the paper: FQ-CoDel at the bottleneck",
        caption=f"{_POINTS}.",
        draw=draw_fq_codel,
        experiments=("fq-codel",),
    ),
    *(
        Plate(
            id=f"many-{queue}",
            title=f"Beyond the paper: several flows a side, {queue} BDP",
            caption=f"The share of the throughput that BBR flows have beside as many CUBIC flows; "
            f"one half is fair. {_POINTS}.",
            draw=partial(draw_many, queue),
            experiments=("many",),
        )
        for queue in ("1", "4")
    ),
)
"""All figures."""
