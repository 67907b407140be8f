"""The figures of this reproduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals
from dumbbell.papers.frame import Plate
from dumbbell.papers.staggered_start import reference
from dumbbell.papers.staggered_start.measures import (
    ALGORITHMS,
    JOINS,
    LABELS,
    LIMIT,
    LINUX_LIMIT,
    PUBLISHED,
    converged,
    runs_of,
    shares,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

_CHANGES: Final = {
    "no-hystart": ("no HyStart", ("cubic",)),
    "paced": ("paced", ("reno", "cubic")),
    "bucket": ("token bucket", ALGORITHMS),
    "packets": ("417 packets", ("reno", "cubic")),
    "deep": ("1667 packets", ALGORITHMS),
    "jitter": ("0.1 ms of jitter", ALGORITHMS),
    "phase": ("any phase", ("bbr",)),
}

VARIANTS: Final = {
    cc: {cc: LABELS[cc]}
    | {f"{cc}-{name}": label for name, (label, changed) in _CHANGES.items() if cc in changed}
    for cc in ALGORITHMS
}
"""For each algorithm the experiments that change one thing, and what they change."""

SINGLES: Final = [f"single-{cc}-{q:g}" for cc in reference.MEASURED for q in reference.QUEUES]
"""Experiments with one flow."""


def draw_windows(cc: str, runs: Runs) -> Figure:
    """Both windows over time, the first seed: the paper's figures 2 and 3."""
    figure, [[axes]] = figures.panels(height=2.3)
    result = runs[cc]
    first = result.of_seed(result.seeds[0])
    figures.windows(axes, named(first.series))
    axes.set_xlim(0, JOINS + LIMIT)
    _headroom(axes, 1.18)
    figures.moment(axes, JOINS + PUBLISHED[cc], "paper")
    crossing = converged(result)["crossing"][0]
    if crossing is not None:
        near = abs(crossing - PUBLISHED[cc]) < 25
        figures.moment(axes, JOINS + crossing, "here", row=1 if near else 0)
    axes.set_title(LABELS[cc])
    figures.legend(axes)
    return figure


def draw_convergence(runs: Runs) -> Figure:
    """Both convergence times of all algorithms: paper, simulator, Linux."""
    figure, [[left, right]] = figures.panels(1, 2, width=figures.PAGE, height=3.1, share_y=True)
    for axes, column, title in (
        (left, "crossing", "Windows cross near their average"),
        (right, "fair", "Jain's index stays at 0.95"),
    ):
        rows = []
        for cc in ALGORITHMS:
            rows.append(_row(cc, LABELS[cc], runs[cc], column, LIMIT, PUBLISHED[cc]))
            if cc in reference.MEASURED:
                label = f"Linux {reference.KERNEL}"
                measured = reference.pair(cc)
                rows.append(_row(cc, label, measured, column, LINUX_LIMIT, PUBLISHED[cc]))
        _bars(axes, rows, title)
    return figure


def draw_variants(runs: Runs) -> Figure:
    """Convergence when one thing is changed, both definitions."""
    figure, grid = figures.panels(
        len(VARIANTS),
        2,
        width=figures.PAGE,
        height=1.65,
        share_x=True,
        share_y=True,
        row_heights=[len(variants) + 0.8 for variants in VARIANTS.values()],
    )
    titles = {"crossing": "windows cross", "fair": "Jain's index"}
    for (cc, variants), line in zip(VARIANTS.items(), grid, strict=True):
        for axes, (column, title) in zip(line, titles.items(), strict=True):
            rows = [
                _row(cc, label, runs[name], column, LIMIT, PUBLISHED[cc])
                for name, label in variants.items()
            ]
            _bars(axes, rows, f"{LABELS[cc]}: {title}")
            if line is not grid[-1]:
                axes.set_xlabel("")
    return figure


def draw_shares(runs: Runs) -> Figure:
    """The second flow's share of the throughput over time, over all seeds."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=2.6)
    for place, cc in enumerate(ALGORITHMS):
        table, style = shares(runs[cc]), figures.look(cc)
        t = table["t"].to_numpy()
        axes.fill_between(
            t, table["low"], table["high"], color=style.colour, alpha=0.18, linewidth=0
        )
        axes.plot(
            t,
            table["median"],
            color=style.colour,
            marker=style.marker,
            markevery=(3 * place, 12),
            label=style.label,
        )
    axes.set_ylim(0, 1)
    axes.set_xlim(0, LIMIT)
    axes.set_xlabel("time since the second flow started (s)")
    axes.set_ylabel("share of the second flow")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
    return figure


def draw_beside_linux(runs: Runs) -> Figure:
    """Windows of the paper's scenario: the simulator on the left, the kernel on the right."""
    names = reference.MEASURED
    figure, grid = figures.panels(
        len(names), 2, width=figures.PAGE, height=1.75, share_x=True, share_y=True
    )
    for cc, (left, right) in zip(names, grid, strict=True):
        for axes, result, title in (
            (left, runs[f"measured-{cc}"], f"{LABELS[cc]}, simulator"),
            (right, reference.pair(cc), f"{LABELS[cc]}, Linux {reference.KERNEL}"),
        ):
            figures.windows(axes, named(result.of_seed(result.seeds[0]).series))
            axes.set_title(title)
        right.set_ylabel("")
        left.set_xlim(0, JOINS + LINUX_LIMIT)
    for axes in (axes for line in grid[:-1] for axes in line):
        axes.set_xlabel("")
    figures.legend(grid[0][1])
    return figure


def draw_singles(runs: Runs) -> Figure:
    """Windows of one flow alone, three queues: the simulator over the kernel."""
    figure, grid = figures.panels(
        len(reference.MEASURED), len(reference.QUEUES), width=figures.PAGE, height=1.7, share_x=True
    )
    for cc, line in zip(reference.MEASURED, grid, strict=True):
        for queue, axes in zip(reference.QUEUES, line, strict=True):
            simulated, measured = runs[f"single-{cc}-{queue:g}"], reference.single(cc, queue)
            ours, theirs = simulated.of_seed(simulated.seeds[0]).series, measured.series
            axes.plot(ours["t"], ours["cwnd"], color=figures.look(cc).colour, linewidth=2.4)
            axes.plot(theirs["t"], theirs["cwnd"], color=figures.INK, linewidth=0.7)
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, 60)
            axes.set_title(f"{LABELS[cc]}, {queue:g} BDP")
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    for line in grid:
        line[0].set_ylabel("cwnd (packets)")
    return figure


def draw_beyond(column: str, runs: Runs) -> Figure:
    """Convergence over round-trip time and buffer, a panel for every algorithm and gap."""
    cells = _cells(runs.beyond["beyond"], column)
    gaps = cells["gap"].unique().sort().to_list()
    figure, grid = figures.panels(
        len(ALGORITHMS), len(gaps), width=figures.PAGE, height=1.95, share_x=True, share_y=True
    )
    for cc, line in zip(ALGORITHMS, grid, strict=True):
        for gap, axes in zip(gaps, line, strict=True):
            image = figures.heat_map(
                axes,
                cells.filter(pl.col("cc") == cc, pl.col("gap") == gap),
                *("buffer", "rtt", "value"),
                low=0.0,
                high=LIMIT,
                text=_cell,
            )
            axes.set_title(f"{LABELS[cc]}, {gap:g} s apart")
            if gap == gaps[0]:
                axes.set_ylabel("RTT (ms)")
            if cc == ALGORITHMS[-1]:
                axes.set_xlabel("buffer (BDP)")
    bar = figure.colorbar(image, ax=[axes for line in grid for axes in line], shrink=0.5)
    bar.set_label("convergence time (s)")
    return figure


def named(series: pl.DataFrame) -> pl.DataFrame:
    """A result's series with the columns that `dumbbell.figures.lines` takes."""
    return series.with_columns(
        name=pl.col("flow").cast(pl.String) + pl.lit(" flow"), cc=pl.col("cc").cast(pl.String)
    )


def _cells(table: pl.DataFrame, column: str) -> pl.DataFrame:
    """Medians over the seeds with their intervals; null is beyond what was observed."""
    numbers = table.with_columns(
        pl.col("rtt", "buffer").cast(pl.Float64), gap=60.0 - pl.col("first").cast(pl.Float64)
    )
    rows = []
    for cell in numbers.partition_by("cc", "rtt", "buffer", "gap", maintain_order=True):
        found = intervals.median(cell[column], LIMIT)
        where = cell.select("cc", "rtt", "buffer", "gap").row(0, named=True)
        rows.append(where | found.ends)
    return pl.DataFrame(rows, infer_schema_length=None)


def _cell(row: dict[str, Any]) -> str:
    """The median and its interval; ``62+`` is an interval without an upper end."""
    value = f"> {LIMIT:g}" if row["value"] is None else f"{row['value']:.0f}"
    if row["low"] is None:
        return f"{value}\nall > {LIMIT:g}"
    upper = "+" if row["high"] is None else f"–{row['high']:.0f}"  # noqa: RUF001
    return f"{value}\n{row['low']:.0f}{upper}"


def _row(
    cc: str, label: str, result: Result, column: str, limit: float, published: float
) -> dict[str, Any]:
    runs = runs_of(result, column)
    found = intervals.median(runs, limit)
    few = len(runs) < 5  # a bootstrap of so few says nothing
    return {
        "cc": cc,
        "label": label,
        "value": found.value,
        "low": None if few else found.low,
        "high": None if few else found.high,
        "limit": limit,
        "runs": runs,
        "published": published,
    }


def _bars(axes: Axes, rows: list[dict[str, Any]], title: str) -> None:
    table = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"published": pl.Float64})
    figures.intervals(axes, table)
    axes.set_xlim(0, LIMIT * 1.05)
    axes.set_xlabel("convergence time (s)")
    axes.set_title(title)


def _headroom(axes: Axes, factor: float) -> None:
    axes.set_ylim(0, axes.get_ylim()[1] * factor)


_BARS: Final = (
    "Bars are medians, lines 95 % confidence intervals, marks single runs; a hollow mark or an "
    "arrow at a dotted line is a run or a value beyond what was observed. The thick stroke is the "
    "paper's number."
)

PLATES: Final = (
    *(
        Plate(
            id=number,
            title=f"Figure {number[0]}({number[1]}), {LABELS[cc]}",
            caption="Congestion windows of both flows, the first seed. Dotted: when the paper says "
            "they converged, and when windows cross near their average here.",
            draw=partial(draw_windows, cc),
            experiments=(cc,),
        )
        for number, cc in zip(("2a", "2b", "3a", "3b"), ALGORITHMS, strict=True)
    ),
    Plate(
        id="convergence",
        title="Convergence times: paper, simulator, Linux",
        caption=_BARS,
        draw=draw_convergence,
        experiments=ALGORITHMS,
        wide=True,
        real=False,
    ),
    Plate(
        id="shares",
        title="How the second flow gains its share",
        caption="Share of the throughput in windows of 1 s: medians over the seeds, with "
        "quartiles. One half is fair.",
        draw=draw_shares,
        experiments=ALGORITHMS,
        wide=True,
    ),
    Plate(
        id="variants",
        title="What could explain the difference",
        caption=f"One thing changed at a time. {_BARS}",
        draw=draw_variants,
        experiments=tuple(name for variants in VARIANTS.values() for name in variants),
        wide=True,
    ),
    Plate(
        id="linux",
        title="The paper's scenario: simulator and Linux",
        caption="Congestion windows, the first seed beside the first measured run.",
        draw=draw_beside_linux,
        experiments=tuple(f"measured-{cc}" for cc in reference.MEASURED),
        wide=True,
    ),
    Plate(
        id="singles",
        title="One flow alone: simulator and Linux",
        caption="Congestion windows: the simulator, first seed, as the thick line in colour; the "
        "measured run as the thin line over it.",
        draw=draw_singles,
        experiments=tuple(SINGLES),
        wide=True,
    ),
    Plate(
        id="beyond-crossing",
        title="Beyond the paper: until windows cross",
        caption="Convergence time (s): medians over five seeds and their 95 % intervals; “62+” is "
        "from 62 s to beyond the 120 s that were observed.",
        draw=partial(draw_beyond, "crossing"),
        experiments=("beyond",),
        wide=True,
    ),
    Plate(
        id="beyond-fair",
        title="Beyond the paper: until Jain's index stays at 0.95",
        caption="Convergence time (s): medians over five seeds and their 95 % intervals; “62+” is "
        "from 62 s to beyond the 120 s that were observed.",
        draw=partial(draw_beyond, "fair"),
        experiments=("beyond",),
        wide=True,
    ),
)
"""All figures."""
