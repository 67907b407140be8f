"""Figures of a sweep, by name: what ``dumbbell plot`` draws of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl
from matplotlib.ticker import NullFormatter

from dumbbell import figures
from dumbbell.errors import DumbbellError, unknown
from dumbbell.figures import room, spread
from dumbbell.figures.result import FIGURES as OF_RESULTS
from dumbbell.sweeps.chart import VALUE, Chart, chart_of
from dumbbell.sweeps.dataset import Dataset

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from dumbbell.sweeps.dataset import Axes


FIGURES: Final = {
    "heat": "a metric over two axes (--x, --y)",
    "lines": "a metric over an axis (--x), a line for each value of another (--by)",
    "delay": "throughput against queueing delay, for each value of an axis (--by)",
    "cdf": "the distribution of a metric over the runs, for each value of an axis (--by)",
    "boxes": "the same distributions as box plots",
}
"""The figures of a sweep: name and what it shows."""

_OPTIONS: Final = {
    "heat": ("x", "y", "metric"),
    "lines": ("x", "by", "metric"),
    "delay": ("by", "metric"),
    "cdf": ("by", "metric"),
    "boxes": ("by", "metric"),
}
"""What each of them takes beside ``where``."""

_MOST_WRITTEN: Final = 240  # with more cells than this their values are not written in them
_DECADES: Final = 50  # values that span more than this factor have shades by their logarithm
_DELAYS: Final = ("queue_delay_mean", "queue_delay_p95")


def draw(
    folder: Path,
    kind: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str | None = None,
    where: str | None = None,
    width: float = figures.PAGE,
) -> tuple[str, Figure]:
    """Draws a figure of a sweep; returns the stem of its file, such as ``lines-jain-by-cc``.

    Call it inside `styled`.

    The figure is one of `FIGURES`: by default a heat map if there are two axes of numbers, else
    lines. `x` and `y` are axes; `by` is the axis whose values are told apart, or ``cc``: the
    algorithms, whose flows in a run are then taken together; by default the first axis that is
    text, else one with few values. `metric` is as for `chart_of`. `where` says in SQL which runs;
    `width` is in inches.
    """
    dataset = Dataset(folder)
    axes = dataset.axes
    for option, name in (("--x", x), ("--y", y), ("--by", by)):
        if name is not None and name not in axes and (option, name) != ("--by", "cc"):
            raise DumbbellError(f"{option}: {unknown('axis', name, list(axes))}")
    numbers = [name for name, axis in axes.items() if axis["unit"] is not None]
    kind = _known(kind or ("heat" if len(numbers) > 1 else "lines" if numbers else "boxes"), axes)
    _refuse_unused(kind, x=x, y=y, by=by, metric=metric)
    if kind == "delay" and metric not in (None, *_DELAYS):
        raise DumbbellError(f"--metric: {unknown('delay', str(metric), _DELAYS)}")
    has_jain = dataset.table("runs")["jain"].count() > 0
    metric = metric or (_DELAYS[0] if kind == "delay" else "jain" if has_jain else "throughput")
    shown = [] if kind == "delay" else [_slug(metric)]
    stem = "-".join([kind, *shown, *(["by", _slug(by)] if by else [])])
    if kind == "heat":
        x, y = _heat_axes(list(axes), x, y)
        return stem, _heat(chart_of(dataset, metric, None, where), dataset.plan, x, y, width)
    by = by or next((name for name in axes if name not in numbers), None)
    if kind == "lines":
        x = x or next((name for name in numbers if name != by), None)
    few = (n for n in numbers if n != x and dataset.plan[n].n_unique() <= spread.MOST_GROUPS)
    by = by or next(few, None)
    figure, [[panel]] = figures.panels(width=width, height=3.2 * figures.flattened(width))
    if kind == "delay":
        chart = chart_of(dataset, "throughput", by, where, metric)
        chart.delays(panel, metric)
        with room.laid_out(figure):
            chart.separate(panel)
    elif kind == "cdf":
        _finite(chart_of(dataset, metric, by, where)).distributions(panel)
    elif kind == "boxes":
        _finite(chart_of(dataset, metric, by, where)).boxes(panel)
    elif x is None:
        raise DumbbellError("lines need an axis; name it with --x, or draw boxes")
    else:
        chart = chart_of(dataset, metric, by, where)
        _refuse_mixed(chart, "lines", x=x, by=by)
        chart.lines(panel, x)
    of = by if kind == "boxes" else x if kind == "lines" else None
    if of is not None:
        with room.laid_out(figure):
            room.give_room(panel, are_numbers=of in numbers)
    return stem, figure


def _slug(metric: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in metric).strip("-") or "metric"


def _known(kind: str, axes: Axes) -> str:
    """A figure of a sweep, if there is one of this name."""
    if kind in OF_RESULTS:
        settings = " ".join(f"--set '{axis['key']}=...'" for axis in axes.values())
        problem = f"{kind} is a figure of one run; run a point of the sweep"
        raise DumbbellError(f"{problem} (dumbbell run FILE {settings}), and draw its result")
    if kind not in FIGURES:
        raise DumbbellError(f"{unknown('figure', kind, list(FIGURES))}; these are those of a sweep")
    return kind


def _refuse_unused(kind: str, **choices: str | None) -> None:
    """Refuses what a figure does not take."""
    for name, value in choices.items():
        if value is not None and name not in _OPTIONS[kind]:
            *others, last = (other for other, its in _OPTIONS.items() if name in its)
            which = " and ".join(filter(None, (", ".join(others), last)))
            has = ", ".join(f"--{option}" for option in _OPTIONS[kind])
            raise DumbbellError(f"--{name}: is for {which}; {kind} has {has}")


def _finite(chart: Chart) -> Chart:
    """A chart all of whose values are drawn."""
    infinite = chart.runs[VALUE].is_infinite().sum()
    if infinite:
        problem = f"{infinite} of {chart.runs.height} runs are too short for {chart.metric}"
        raise DumbbellError(f"{problem}; draw lines or a heat map, which leave their points out")
    return chart


def _refuse_mixed(chart: Chart, kind: str, **drawn: str | None) -> None:
    """Refuses to draw the mean over the values of an axis that nobody chose."""
    for name in chart.mixed(*drawn.values()):
        value, options = chart.runs[name][0], " or ".join(f"--{option}" for option in drawn)
        where = f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value:g}"
        problem = f'{kind} would mix the values of the axis "{name}"'
        choose = f'choose one, as with --where "{where}"'
        raise DumbbellError(f"{problem}; {choose}, or name it with {options}")


def _heat_axes(axes: list[str], x: str | None, y: str | None) -> tuple[str, str]:
    free = (name for name in axes if name not in (x, y))
    x = x or next(free, None)
    y = y or next(free, None)
    if x is None or y is None or x == y:
        problem = f"a heat map needs two different axes, and there are {', '.join(axes)}"
        raise DumbbellError(f"{problem}; name them with --x and --y")
    return x, y


def _heat(chart: Chart, plan: pl.DataFrame, x: str, y: str, width: float) -> Figure:
    """The mean of a metric over two axes: a heat map where they make a grid, else dots."""
    _refuse_mixed(chart, "a heat map", x=x, y=y)
    chart.refuse_infinite(x, y)
    cells = chart.runs.group_by(maintain_order=True, x=x, y=y).agg(
        value=pl.col(VALUE).mean() * chart.column.scale, runs=pl.len()
    )
    is_known = pl.col("value").is_finite()  # not a time that some run is too short for
    cells = cells.with_columns(value=pl.when(is_known).then("value"))
    units = {at: chart.axes[name]["unit"] for at, name in (("x", x), ("y", y))}
    for at, name in (("x", x), ("y", y)):
        if units[at] is None:  # text, in the order of the file
            cells = cells.cast({at: pl.Enum(plan[name].unique(maintain_order=True))})
    label, runs = chart.label, chart.counted(x, y)
    if runs != "1 run":
        label += f", mean of {runs}"
    least, most = cells["value"].min(), cells["value"].max()
    is_share = chart.metric == "share"
    logarithmic = not is_share and 0 < _DECADES * cast("float", least) < cast("float", most)
    if logarithmic:
        label += "\nlogarithmic scale"
    if chart.fair is not None:
        label += f"\nwhite: the fair share, {chart.fair:.3g} %"
    (name_x, write_x), (name_y, write_y) = chart.scale(x), chart.scale(y)
    figure, [[panel]] = figures.panels(width=width, height=4.2 * figures.flattened(width))
    size = cells["x"].n_unique() * cells["y"].n_unique()
    if cells.height * 2 >= size:
        image: ScalarMappable = figures.heat_map(
            panel,
            cells.sort("x", "y"),
            *("x", "y", "value"),
            middle=chart.fair,
            logarithmic=logarithmic,
            text=_cell if size <= _MOST_WRITTEN else None,
            names=(write_x, write_y),
        )
    elif None in units.values():
        text = x if units["x"] is None else y
        raise DumbbellError(f'heat: "{text}" is text, and the axes make no grid; choose others')
    else:
        image = figures.heat_dots(panel, cells, "x", "y", "value", logarithmic=logarithmic)
        panel.xaxis.set_major_formatter(lambda value, _: write_x(value))
        panel.yaxis.set_major_formatter(lambda value, _: write_y(value))
    panel.set_xlabel(name_x)
    panel.set_ylabel(name_y)
    bar = figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02, label=label)
    bar.outline.set_visible(False)
    if chart.fair is not None:
        lowest, highest = bar.ax.get_ylim()
        bar.ax.set_ylim(max(lowest, 0), min(highest, 100))
    if logarithmic:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    with room.laid_out(figure):
        room.give_room(panel, are_numbers=units["x"] is not None)
    return figure


def _cell(row: dict[str, Any]) -> str:
    value = row["value"]
    if value is None:
        return "—"
    return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
