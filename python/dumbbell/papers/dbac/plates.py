"""The figures of this reproduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dumbbell import figures, metrics
from dumbbell.metrics import intervals
from dumbbell.papers.dbac.measures import COMPARED, FOLDER, path, testbed, total
from dumbbell.papers.frame import Paper, Plate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

_PUBLISHED = {number.id: number.published for number in Paper.load(FOLDER).numbers}


def draw_lia(runs: Runs) -> Figure:
    """LIA's windows on both paths: the paper's figure 3."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=2.4)
    result = testbed(runs, "lia")
    for number in (1, 2):
        _line(axes, _windows(result, number), f"subflow {number}", number - 1)
    _finish(axes, "cwnd (packets)")
    return figure


def draw_large(runs: Runs) -> Figure:
    """DBAC's window and its virtual one on path 1: the paper's figure 4."""
    figure, [[axes]] = figures.panels(height=2.4)
    result = testbed(runs, "dbac")
    shown = result.subflow_internals.filter(
        (pl.col("seed") == result.seeds[0])
        & (pl.col("flow") == "multipath/1")
        & (pl.col("name").cast(pl.String) == "virtual window")
    )
    _line(axes, _windows(result, 1), "window", 0)
    _line(axes, shown.select("t", y="value"), "virtual window", 1)
    _finish(axes, "subflow 1 (packets)")
    return figure


def draw_small(runs: Runs) -> Figure:
    """DBAC's window on path 2, and LIA's: the paper's figure 5."""
    figure, [[axes]] = figures.panels(height=2.4)
    for rank, cc in enumerate(("dbac", "lia")):
        _line(axes, _windows(testbed(runs, cc), 2), COMPARED[cc], rank)
    _finish(axes, "subflow 2 (packets)")
    return figure


def draw_throughput(runs: Runs) -> Figure:
    """Throughput by path and in all: the paper's figure 6."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=2.5)
    groups = ["path 1", "path 2", "total"]
    rows: list[dict[str, Any]] = []
    for cc, label in COMPARED.items():
        result = testbed(runs, cc)
        for group, found in zip(
            groups, (path(result, 1), path(result, 2), total(result)), strict=True
        ):
            rows.append({"group": group, "member": label, "cc": cc} | found.ends)
    figures.grouped_bars(axes, rows, groups, list(COMPARED.values()))
    for rank, cc in enumerate(COMPARED):
        said = [_PUBLISHED[f"{cc}-path-{number}"] for number in (1, 2)]
        for place, value in enumerate((*said, sum(said))):
            x = place + (rank - 0.5) * 0.4
            axes.plot([x - 0.18, x + 0.18], [value] * 2, color=figures.INK, linewidth=2.0)
    axes.set_ylabel("throughput (Mbit/s)")
    return figure


def draw_failure(runs: Runs) -> Figure:
    """Throughput of both subflows while path 1 fails."""
    figure, rows = figures.panels(2, width=figures.PAGE, height=1.8, share_x=True)
    for [axes], (cc, label) in zip(rows, COMPARED.items(), strict=True):
        result = runs[f"failure-{cc}"].by_subflow()
        over_time = metrics.windows(result.of_seed(result.seeds[0]))
        for rank, name in enumerate(("multipath/1", "multipath/2", "single")):
            one = over_time.filter(pl.col("flow").cast(pl.String) == name)
            _line(axes, one.select("t", y=pl.col("throughput") / 1e6), _named(name), rank)
        _finish(axes, f"{label} (Mbit/s)")
        figures.moment(axes, 100, "path 1 fails")
        figures.moment(axes, 200, "it is back")
    rows[0][0].set_xlabel("")
    return figure


def draw_algorithms(runs: Runs) -> Figure:
    """Every algorithm on the testbed, beyond the paper."""
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=2.6)
    table = runs.beyond["beyond-algorithms"]
    members = {"multipath/1": "path 1", "multipath/2": "path 2", "single": "single-path flow"}
    rows = [
        {"group": figures.look(cc).label, "member": member, "cc": cc} | _of(cell, flow).ends
        for (cc,), cell in table.group_by(["cc"], maintain_order=True)
        for flow, member in members.items()
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    figures.grouped_bars(axes, rows, groups, list(members.values()))
    axes.set_ylabel("throughput (Mbit/s)")
    return figure


def draw_threshold(runs: Runs) -> Figure:
    """Throughput over DBAC's threshold, beyond the paper."""
    figure, rows = figures.panels(1, 2, width=figures.PAGE, height=2.5)
    table = runs.beyond["beyond-threshold"].with_columns(pl.col("threshold").cast(pl.Float64))
    for axes, number in zip(rows[0], (1, 2), strict=True):
        points = [
            intervals.point("dbac", float(threshold), _of(cell, f"multipath/{number}"))
            for (threshold,), cell in table.group_by(["threshold"], maintain_order=True)
        ]
        figures.curves(axes, points)
        axes.set_xlabel("threshold (MB)")
        axes.set_ylabel(f"path {number} (Mbit/s)")
        axes.set_ylim(bottom=0)
    return figure


def draw_loss(runs: Runs) -> Figure:
    """Throughput over the loss of path 1, beyond the paper."""
    figure, rows = figures.panels(1, 2, width=figures.PAGE, height=2.5)
    table = runs.beyond["beyond-loss"].with_columns(x=pl.col("loss").cast(pl.Float64))
    for axes, number in zip(rows[0], (1, 2), strict=True):
        points = [
            intervals.point(str(cc), float(str(x)), _of(cell, f"multipath/{number}"))
            for (cc, x), cell in table.group_by(["cc", "x"], maintain_order=True)
        ]
        figures.curves(axes, points)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("loss probability of path 1")
        axes.set_ylabel(f"path {number} (Mbit/s)")
    figures.legend(rows[0][1], columns=5)
    return figure


def draw_buffer(runs: Runs) -> Figure:
    """Throughput of the connection over its receive buffer, beyond the paper."""
    figure, rows = figures.panels(1, 2, width=figures.PAGE, height=2.5)
    table = runs.beyond["beyond-buffer"].with_columns(x=pl.col("MB").cast(pl.Float64))
    for axes, (cc, label) in zip(rows[0], COMPARED.items(), strict=True):
        for rank, scheduler in enumerate(("lowest-rtt", "blest", "ecf")):
            mine = table.filter((pl.col("cc") == cc) & (pl.col("scheduler") == scheduler))
            sums = mine.filter(pl.col("flow").str.contains("/")).group_by(
                "x", "seed", maintain_order=True
            )
            means = sums.agg(pl.col("throughput").sum() / 1e6).group_by("x", maintain_order=True)
            _line(
                axes, means.agg(y=pl.col("throughput").median()).rename({"x": "t"}), scheduler, rank
            )
        axes.set_xlabel("receive buffer (MB)")
        axes.set_ylabel(f"{label}, both paths (Mbit/s)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right")
    return figure


def _windows(result: Result, number: int) -> pl.DataFrame:
    first = (pl.col("seed") == result.seeds[0]) & (pl.col("flow") == f"multipath/{number}")
    return result.subflow_series.filter(first).select("t", y="cwnd")


def _line(axes: Axes, points: pl.DataFrame, label: str, rank: int) -> None:
    axes.plot(
        points["t"].to_numpy(),
        points["y"].to_numpy(),
        color=("#0072b2", "#d55e00", "#8a9099")[rank],
        linestyle=("-", "-", "--")[rank],
        linewidth=1.0,
        label=label,
    )


def _finish(axes: Axes, label: str) -> None:
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(label)
    figures.legend(axes)


def _named(flow: str) -> str:
    return flow.replace("multipath/", "subflow ").replace("single", "single-path flow")


def _of(cell: pl.DataFrame, flow: str) -> Estimate:
    rates = cell.filter(pl.col("flow") == flow)["throughput"] / 1e6
    return intervals.median(rates)


_FIRST = "The first seed."
_BARS = "Medians over the seeds and their 95 % intervals."

PLATES = (
    Plate(
        id="3",
        title="LIA's windows",
        caption=f"On path 1 (500 Mbit/s, 100 ms) and path 2 (100 Mbit/s, 20 ms). {_FIRST}",
        draw=draw_lia,
        experiments=("testbed-lia",),
        wide=True,
    ),
    Plate(
        id="4",
        title="DBAC on path 1",
        caption=f"What may be in flight, and the virtual window that path 2 sees. {_FIRST}",
        draw=draw_large,
        experiments=("testbed-dbac",),
        real=False,
    ),
    Plate(
        id="5",
        title="DBAC on path 2",
        caption=f"Beside LIA's window on the same path. {_FIRST}",
        draw=draw_small,
        experiments=("testbed-dbac", "testbed-lia"),
    ),
    Plate(
        id="6",
        title="Throughput by path",
        caption=f"LIA left, DBAC right, hatched; thick lines: the paper. {_BARS}",
        draw=draw_throughput,
        experiments=("testbed-lia", "testbed-dbac"),
        wide=True,
    ),
    Plate(
        id="failure",
        title="Path 1 fails and comes back",
        caption=f"Throughput in windows of 1 s. {_FIRST}",
        draw=draw_failure,
        experiments=("failure-lia", "failure-dbac"),
        wide=True,
    ),
    Plate(
        id="beyond-algorithms",
        title="Beyond the paper: other algorithms on the testbed",
        caption=f"Path 1, path 2, and the single-path flow on path 2. {_BARS}",
        draw=draw_algorithms,
        experiments=("beyond-algorithms",),
        wide=True,
    ),
    Plate(
        id="beyond-threshold",
        title="Beyond the paper: DBAC's threshold",
        caption=f"From 0 (CUBIC on both paths) to what no path reaches (LIA on both). {_BARS}",
        draw=draw_threshold,
        experiments=("beyond-threshold",),
        wide=True,
    ),
    Plate(
        id="beyond-loss",
        title="Beyond the paper: a lossier path 1",
        caption=_BARS,
        draw=draw_loss,
        experiments=("beyond-loss",),
        wide=True,
    ),
    Plate(
        id="beyond-buffer",
        title="Beyond the paper: the receive buffer",
        caption="Both subflows together, medians over the seeds: data that is late on path 1 fills "
        "the buffer that path 2 needs.",
        draw=draw_buffer,
        experiments=("beyond-buffer",),
        wide=True,
    ),
)
"""All figures."""
