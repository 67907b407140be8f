"""Figures of a sweep, by name: what ``dumbbell plot`` draws of it."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl
from matplotlib.ticker import EngFormatter, NullFormatter

from dumbbell import figures
from dumbbell.display import Column, format_setting
from dumbbell.errors import DumbbellError, ResultError, unknown
from dumbbell.figures import spread
from dumbbell.metrics import means_over_seeds, over_flows
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.plan import METRICS
from dumbbell.sweeps.query import query, quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes as Panel
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from dumbbell.sweeps.dataset import Axes

FIGURES: Final = {
    "heat": "a metric over two axes (--x, --y)",
    "lines": "a metric over an axis (--x), a line for each value of another (--by)",
    "delay": "throughput against queueing delay, for each value of an axis (--by)",
    "cdf": "the distribution of a metric over the runs, for each value of an axis (--by)",
    "boxes": "the same as boxes",
}
"""The figures of a sweep: name and what it shows."""

_MOST_TICKS: Final = 9
"""With more settings than this an axis has its ticks where they are round."""

_MOST_WRITTEN: Final = 240
"""With more cells than this their values are not written in them."""

_DECADES: Final = 50
"""Values that span more than this factor have shades by their logarithm."""

_AXIS: Final = "axis "
"""Before the names of the axes that are not drawn, among the columns of a table."""

_DELAY: Final = "queue_delay_mean"
_SHARE: Final = re.compile(r"share of (.+)")
"""The metric that is the share of an algorithm in the data that all flows delivered."""


def draw(
    folder: Path,
    kind: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str = "jain",
    where: str | None = None,
) -> tuple[str, Figure]:
    """Draws a figure of a sweep; returns its name and the figure. Call it inside `styled`.

    Args:
        folder: The sweep.
        kind: One of `FIGURES`; a heat map if there are two axes of numbers, else lines.
        x: The axis from left to right, of heat maps and lines.
        y: The axis from bottom to top, of heat maps.
        by: The axis whose values are told apart, or ``cc``: the algorithms, whose flows in a run
            are then taken together. If not given, the first axis that is text, else one with few
            values.
        metric: A column of ``runs``, an SQL expression of several, or ``share of bbr3``: the share
            of an algorithm in the data that all flows delivered.
        where: Which runs, in SQL; all of them if not given.

    Raises:
        ResultError: If `folder` is no sweep, or no run has a value.
        DumbbellError: If there is no such figure, axis or metric.
    """
    dataset = Dataset(folder)
    axes = dataset.axes
    for option, name in (("--x", x), ("--y", y), ("--by", by)):
        if name is not None and name not in axes and (option, name) != ("--by", "cc"):
            raise DumbbellError(f"{option}: {unknown('axis', name, list(axes))}")
    numbers = [name for name, axis in axes.items() if axis["unit"] is not None]
    kind = kind or ("heat" if len(numbers) > 1 else "lines" if numbers else "boxes")
    if kind not in FIGURES:
        raise DumbbellError(f"{unknown('figure', kind, list(FIGURES))}; these are those of a sweep")
    if kind == "heat":
        return kind, _draw_heat(dataset, *_heat_axes(axes, x, y), metric, where)
    by = by or next((name for name in axes if name not in numbers), None)
    if kind == "lines":
        x = x or next((name for name in numbers if name != by), None)
    few = (n for n in numbers if n != x and dataset.plan[n].n_unique() <= spread.MOST_GROUPS)
    by = by or next(few, None)
    figure, [[panel]] = figures.panels(width=figures.PAGE, height=3.2)
    if kind == "lines":
        if x is None or x not in numbers:
            problem = "lines need an axis of numbers"
            raise DumbbellError(f"{problem}; name it with --x, or draw boxes")
        _draw_lines(panel, dataset, x, by, metric, where)
    else:
        _draw_runs(panel, dataset, kind, by, metric, where)
    return kind, figure


def share_column(cc: str) -> Column:
    """How the share of an algorithm in the data that all flows delivered is shown."""
    return Column.of("share", title=f"{figures.style_of(cc).label}'s share of the data")


def _measure(metric: str) -> tuple[str, str, Column]:
    """A metric as an SQL expression over ``runs``, its name, and how it is shown."""
    if found := _SHARE.fullmatch(metric):
        cc = found[1].replace("'", "''")
        same = "flows.point = runs.point and flows.seed = runs.seed"
        part = f"sum(delivered) filter (cc = '{cc}') / sum(delivered)"
        return f"(select {part} from flows where {same})", "share", share_column(found[1])
    if metric in METRICS:
        return quoted(metric), metric, Column.of(metric)
    return metric, "value", Column(metric)


def _table(
    dataset: Dataset, metric: str, columns: dict[str, str], where: str | None
) -> pl.DataFrame:
    """Columns of the runs, by SQL expressions; rows without a finite value are left out."""
    chosen = ", ".join(f"{value} as {quoted(name)}" for name, value in columns.items())
    rows = f"from runs where {where or 'true'} order by point, seed"
    tables = {}
    if columns.get("by") == quoted("cc") and "cc" not in dataset.axes:
        groups = over_flows(dataset.table("flows"), ["run", "cc"])
        known = [name for name in METRICS if name in groups.columns]
        if metric in METRICS and metric not in known and "delay" not in columns:
            raise DumbbellError(f"--metric: {unknown('metric of algorithms', metric, known)}")
        tables["runs"] = dataset.plan.join(groups, on="run", maintain_order="left_right")
    table = query(f"select {chosen} {rows}", dataset.folder, tables=tables)
    kinds = [name for name in ("value", "delay") if name in columns]
    table = table.with_columns(pl.col(kinds).cast(pl.Float64))
    table = table.filter(pl.all_horizontal(pl.col(kinds).is_finite()))
    if table.is_empty():
        raise ResultError(f"{dataset.folder}: no run there has a value of {metric}")
    return table


def _others(axes: Axes, *drawn: str | None) -> dict[str, str]:
    """Columns, for `_table`, of the axes that are not drawn."""
    return {f"{_AXIS}{name}": quoted(name) for name in axes if name not in drawn}


def _mixed(table: pl.DataFrame) -> list[str]:
    """The axes of `_others` that have several values in a table."""
    names = [name for name in table.columns if name.startswith(_AXIS)]
    return [name.removeprefix(_AXIS) for name in names if table[name].n_unique() > 1]


def _pooled(table: pl.DataFrame) -> str:
    """A line of a label: the axes whose values the figure does not tell apart."""
    mixed = _mixed(table)
    return f"\nover all values of {figures.named(', '.join(mixed))}" if mixed else ""


def _groups(table: pl.DataFrame, axes: Axes, by: str | None) -> dict[str, pl.DataFrame]:
    """The rows of each value of the axis `by`, in the order of its values."""
    unit = axes[by]["unit"] if by in axes else None
    ordered = table if unit is None else table.sort("by", maintain_order=True)
    groups = ordered.group_by("by", maintain_order=True)
    return {_tick(unit, value): rows for (value,), rows in groups}


def _draw_lines(
    panel: Panel, dataset: Dataset, x: str, by: str | None, metric: str, where: str | None
) -> None:
    axes = dataset.axes
    expression, key, column = _measure(metric)
    columns = {"x": quoted(x), "by": quoted(by) if by else "''", "value": expression}
    table = _table(dataset, metric, columns | _others(axes, x, by), where)
    for name in _mixed(table):
        problem = f'the lines would mix the values of the axis "{name}"'
        raise DumbbellError(f"{problem}; choose one with --where, or name it with --x or --by")
    draw_lines(panel, table.rename({"value": key}), axes, x, by, column)
    seeds = max(table.group_by("x", "by").len()["len"])
    many = f"\nmean, 95 % interval, {seeds} runs" if seeds != 1 else ""
    panel.set_ylabel(f"{figures.named(column.heading)}{many}")


def draw_lines(
    panel: Panel, table: pl.DataFrame, axes: Axes, x: str, by: str | None, column: Column
) -> None:
    """Draws means along an axis with their 95 % intervals (Student's t), a line for each group.

    Args:
        panel: Where to draw.
        table: A row for every run: columns x, by (the group), and the metric.
        axes: What the axes are.
        x: The axis from left to right; one of text has its values in their order.
        by: What has a line for each value, an axis or ``cc``.
        column: How the metric is shown.
    """
    key = next(name for name in table.columns if name not in ("x", "by"))
    unit, places = axes[x]["unit"], table["x"].unique(maintain_order=True).to_list()
    at = {place: number if unit is None else place for number, place in enumerate(places)}
    groups = {}
    for name, rows in _groups(table, axes, by).items():
        found = means_over_seeds(rows.select("x", key), ["x"], ci=True)
        found.columns = ["x", "value", "low", "high"]
        found = found.with_columns(pl.Series("x", [at[place] for place in found["x"]]))
        groups[name] = found.sort("x").with_columns(pl.all().exclude("x") * column.scale)
    spread.lines(panel, groups, of_algorithms=_is_algorithm(axes, by))
    ticks = {number: _tick(unit, place) for place, number in sorted(at.items())}
    if unit is not None and 0 < 10 * min(ticks) <= max(ticks):
        panel.set_xscale("log")
    if unit is None or len(ticks) <= _MOST_TICKS:
        panel.set_xticks(list(ticks), list(ticks.values()))
        panel.minorticks_off()
    else:
        panel.xaxis.set_major_formatter(lambda value, _: _tick(unit, value))
    panel.margins(x=0.03)
    panel.set_xlabel(figures.named(x))
    panel.set_ylabel(figures.named(column.heading))
    if by is not None:
        figures.legend(panel)


def _draw_runs(
    panel: Panel, dataset: Dataset, kind: str, by: str | None, metric: str, where: str | None
) -> None:
    """Distributions, boxes, or throughput against delay: every run is a value."""
    is_delay = kind == "delay"
    expression, _, column = _measure("throughput" if is_delay else metric)
    columns = {"by": quoted(by) if by else "''", "value": expression}
    columns |= {"delay": quoted(_DELAY)} if is_delay else {}
    table = _table(dataset, metric, columns | _others(dataset.axes, by), where)
    table = table.with_columns(pl.col("value") * column.scale)
    pooled = _pooled(table)
    groups = _groups(table, dataset.axes, by)
    of_algorithms = _is_algorithm(dataset.axes, by)
    if is_delay:
        at = [pl.col("delay") * Column.of(_DELAY).scale, "value"]
        points = {name: rows.select(at).rows() for name, rows in groups.items()}
        spread.delay_ellipses(panel, points, of_algorithms=of_algorithms)
        panel.set_ylabel(f"{panel.get_ylabel()}{pooled}")
        return
    values = {name: rows["value"].to_list() for name, rows in groups.items()}
    heading = figures.named(column.heading)
    if kind == "cdf":
        spread.distributions(panel, values, of_algorithms=of_algorithms)
        panel.set_xlabel(f"{heading}{pooled}")
        if by is not None:
            figures.legend(panel)
    else:
        spread.boxes(panel, values, of_algorithms=of_algorithms)
        panel.set_ylabel(f"{heading}{pooled}")
        panel.set_xlabel(figures.named(by or ""))


def _is_algorithm(axes: Axes, by: str | None) -> bool:
    return by == "cc" if by not in axes else str(axes[by]["key"]).endswith("cc")


def _heat_axes(axes: Axes, x: str | None, y: str | None) -> tuple[str, str]:
    free = [name for name in axes if name not in (x, y)]
    chosen = [axis or (free.pop(0) if free else None) for axis in (x, y)]
    if None in chosen or chosen[0] == chosen[1]:
        problem = f"a heat map needs two different axes, and there are {', '.join(axes)}"
        raise DumbbellError(f"{problem}; name them with --x and --y")
    return str(chosen[0]), str(chosen[1])


def _draw_heat(dataset: Dataset, x: str, y: str, metric: str, where: str | None) -> Figure:
    """The mean of a metric over two axes: a heat map where they make a grid, else dots."""
    expression, key, column = _measure(metric)
    columns = {"x": quoted(x), "y": quoted(y), "value": expression}
    columns |= _others(dataset.axes, x, y)
    runs = _table(dataset, metric, columns, where)
    units = [dataset.axes[name]["unit"] for name in (x, y)]
    for name, axis, unit in zip("xy", (x, y), units, strict=True):
        if unit is None:  # text, in the order of the file
            order = pl.Enum(dataset.plan[axis].unique(maintain_order=True))
            runs = runs.with_columns(pl.col(name).cast(order))
    cells = runs.group_by("x", "y").agg(pl.col("value").mean() * column.scale, runs=pl.len())
    counts = [str(cells["runs"].min()), str(cells["runs"].max())]
    label = figures.named(column.heading)
    if counts != ["1", "1"]:
        label += f", mean of {' to '.join(dict.fromkeys(counts))} runs{_pooled(runs)}"
    least, most = cells["value"].min(), cells["value"].max()
    logarithmic = key != "share" and 0 < _DECADES * cast("float", least) < cast("float", most)
    if logarithmic:
        label += "\nlogarithmic scale"
    figure, [[panel]] = figures.panels(width=figures.PAGE, height=4.2)
    size = runs["x"].n_unique() * runs["y"].n_unique()
    if cells.height * 2 >= size:
        image: ScalarMappable = figures.heat_map(
            panel,
            cells.sort("x", "y"),
            *("x", "y", "value"),
            middle=50 if key == "share" else None,
            logarithmic=logarithmic,
            text=_cell if size <= _MOST_WRITTEN else None,
            names=(_ticks(dataset.axes, x), _ticks(dataset.axes, y)),
        )
    elif None in units:
        text = x if units[0] is None else y
        raise DumbbellError(f'heat: "{text}" is text, and the axes make no grid; choose others')
    else:
        image = figures.heat_dots(panel, cells, "x", "y", "value", logarithmic=logarithmic)
        panel.xaxis.set_major_formatter(EngFormatter(units[0] or ""))
        panel.yaxis.set_major_formatter(EngFormatter(units[1] or ""))
    panel.set_xlabel(figures.named(x))
    panel.set_ylabel(figures.named(y))
    bar = figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02, label=label)
    bar.outline.set_visible(False)
    if logarithmic:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    return figure


def _ticks(axes: Axes, name: str) -> Callable[[Any], str]:
    """How the values of an axis are written: algorithms by the names that lines have."""
    if _is_algorithm(axes, name):
        return lambda cc: figures.named(figures.style_of(cc).label)
    return partial(_tick, axes[name]["unit"])


def _tick(unit: str | None, value: float | str) -> str:
    rounded = value if isinstance(value, str) else float(f"{value:.3g}")
    return figures.named(format_setting(rounded, unit))


def _cell(row: dict[str, Any]) -> str:
    value = row["value"]
    return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
