"""Figures of a sweep, by name: what ``dumbbell plot`` draws of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from matplotlib.ticker import EngFormatter

from dumbbell import figures
from dumbbell.display import METRICS as COLUMNS
from dumbbell.display import Column, format_setting
from dumbbell.errors import DumbbellError, ResultError, unknown
from dumbbell.figures import spread
from dumbbell.metrics import mean
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.plan import METRICS
from dumbbell.sweeps.query import query, quoted

if TYPE_CHECKING:
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
        by: The axis whose values are told apart; the first one that is text if not given.
        metric: A column of ``runs``, or an SQL expression of several.
        where: Which runs, in SQL; all of them if not given.

    Raises:
        ResultError: If `folder` is no sweep, or no run has a value.
        DumbbellError: If there is no such figure, axis or metric.
    """
    axes = Dataset(folder).axes
    numbers = [name for name, axis in axes.items() if axis["unit"] is not None]
    kind = kind or ("heat" if len(numbers) > 1 else "lines" if numbers else "boxes")
    if kind not in FIGURES:
        raise DumbbellError(f"{unknown('figure', kind, list(FIGURES))}; these are those of a sweep")
    if kind == "heat":
        return kind, _heat(folder, x=x, y=y, metric=metric, where=where)
    by = _axis("--by", by, axes) if by else next((n for n in axes if n not in numbers), None)
    figure, [[panel]] = figures.panels(width=figures.PAGE, height=3.2)
    if kind == "lines":
        x = _axis("--x", x, axes) if x else next((n for n in numbers if n != by), None)
        if x is None or x not in numbers:
            problem = "lines need an axis of numbers"
            raise DumbbellError(f"{problem}; name it with --x, or draw boxes")
        _lines(panel, folder, axes, x, by, metric, where)
    else:
        _runs(panel, folder, axes, kind, by, metric, where)
    return kind, figure


def _lines(
    panel: Panel, folder: Path, axes: Axes, x: str, by: str | None, metric: str, where: str | None
) -> None:
    table = _table(folder, {"x": quoted(x), "by": _group(by), "value": _value(metric)}, where)
    others = [name for name in axes if name not in (x, by)]
    seen = _table(folder, {name: quoted(name) for name in others}, where) if others else None
    for name in others:
        if seen is not None and seen[name].n_unique() > 1:
            problem = f'the lines would mix the values of the axis "{name}"'
            raise DumbbellError(f"{problem}; choose one with --where, or name it with --x or --by")
    column = COLUMNS.get(metric) or Column(metric)
    groups: dict[str, list[tuple[float, float, float | None, float | None]]] = {}
    for group in _names(table, axes, by):
        own = table.filter(pl.col("name") == group).group_by("x").agg("value").sort("x")
        groups[group] = [
            (at, found.value * column.scale, low, high)
            for at, values in own.iter_rows()
            if (found := mean(values)).value is not None
            for low, high in [_ends(found.low, found.high, column.scale)]
        ]
    spread.lines(panel, groups, of_algorithms=_is_algorithm(axes, by))
    at = table["x"].to_list()
    if 0 < 10 * min(at) <= max(at):
        panel.set_xscale("log")
    ticks = sorted(set(at))
    if len(ticks) <= _MOST_TICKS:
        panel.set_xticks(ticks, [_tick(axes[x]["unit"], tick) for tick in ticks])
        panel.minorticks_off()
    else:
        panel.xaxis.set_major_formatter(partial(_tick_at, axes[x]["unit"]))
    panel.margins(x=0.03)
    panel.set_xlabel(figures.named(x))
    seeds = max(table.group_by("x", "by").len()["len"].to_list())
    many = f"\nmean, 95 % interval, {seeds} runs" if seeds != 1 else ""
    panel.set_ylabel(f"{figures.named(column.heading)}{many}")
    _legend(panel, len(groups), by)


def _legend(panel: Panel, count: int, by: str | None) -> None:
    """Above the panel, where it hides nothing."""
    if by is not None:
        columns = min(count, 5)
        panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.3)


def _ends(low: float | None, high: float | None, scale: float) -> tuple[float | None, float | None]:
    return (None, None) if low is None or high is None else (low * scale, high * scale)


def _runs(
    panel: Panel,
    folder: Path,
    axes: Axes,
    kind: str,
    by: str | None,
    metric: str,
    where: str | None,
) -> None:
    """Distributions, boxes, or throughput against delay: every run is a value."""
    other, is_algorithm = "queue_delay_mean", _is_algorithm(axes, by)
    if kind == "delay":
        metric = "throughput"
    values = {"by": _group(by), "value": _value(metric), "other": quoted(other)}
    table = _table(folder, values, where)
    column = COLUMNS.get(metric) or Column(metric)
    names = _names(table, axes, by)
    split = {name: table.filter(pl.col("name") == name) for name in names}
    if kind == "delay":
        scales = COLUMNS[other].scale, column.scale
        points = {
            name: (own.select(pl.col("other") * scales[0], pl.col("value") * scales[1])).rows()
            for name, own in split.items()
        }
        spread.delay_ellipses(panel, points, of_algorithms=is_algorithm)
        return
    groups = {name: (own["value"] * column.scale).to_list() for name, own in split.items()}
    heading = figures.named(column.heading)
    if kind == "cdf":
        spread.distributions(panel, groups, of_algorithms=is_algorithm)
        panel.set_xlabel(heading)
        _legend(panel, len(groups), by)
    else:
        spread.boxes(panel, groups, of_algorithms=is_algorithm)
        panel.set_ylabel(heading)
        panel.set_xlabel(figures.named(by or ""))


def _table(folder: Path, columns: dict[str, str], where: str | None) -> pl.DataFrame:
    """Columns of the runs, by SQL expressions; without those that have no finite value."""
    chosen = ", ".join(f"{value} as {quoted(name)}" for name, value in columns.items())
    table = query(f"select {chosen} from runs where {where or 'true'} order by point, seed", folder)
    if "value" in columns:
        kinds = [name for name in ("value", "other") if name in columns]
        table = table.with_columns(pl.col(kinds).cast(pl.Float64))
        table = table.filter(pl.all_horizontal(pl.col(kinds).is_finite()))
    if table.is_empty():
        raise ResultError(f"{folder}: no run there has such a value, or is chosen")
    return table


def _value(metric: str) -> str:
    return quoted(metric) if metric in METRICS else metric


def _group(by: str | None) -> str:
    return "''" if by is None else quoted(by)


def _names(table: pl.DataFrame, axes: Axes, by: str | None) -> list[str]:
    """The groups in their order; adds their names as a column to `table`."""
    unit = None if by is None else axes[by]["unit"]
    names = [_tick(unit, value) for value in table["by"]]
    table.insert_column(0, pl.Series("name", names, dtype=pl.String))
    if unit is None:
        return list(dict.fromkeys(names))
    return table.sort("by")["name"].unique(maintain_order=True).to_list()


def _is_algorithm(axes: Axes, by: str | None) -> bool:
    return by is not None and str(axes[by]["key"]).endswith("cc")


def _axis(option: str, name: str, axes: Axes) -> str:
    if name not in axes:
        raise DumbbellError(f"{option}: {unknown('axis', name, list(axes))}")
    return name


def _heat(folder: Path, *, x: str | None, y: str | None, metric: str, where: str | None) -> Figure:
    """The mean of a metric over two axes."""
    dataset = Dataset(folder)
    axes = dataset.axes
    x, y = _axes(axes, x, y)
    table = query(
        f"select {quoted(x)} as x, {quoted(y)} as y, avg({_value(metric)}) as value, "
        f"count(*) as runs from runs where {where or 'true'} group by all order by all",
        folder,
    )
    if not table["value"].cast(pl.Float64).is_finite().any():
        raise ResultError(f"{folder}: no run there has a value of {metric}")
    for column, axis in (("x", x), ("y", y)):
        if axes[axis]["unit"] is None:  # text, in the order of the file
            order = pl.Enum(dataset.plan[axis].unique(maintain_order=True))
            table = table.with_columns(pl.col(column).cast(order))
    return draw_heat(table, axes, x, y, metric)


def draw_heat(table: pl.DataFrame, axes: Axes, x: str, y: str, metric: str) -> Figure:
    """A heat map where the axes make a grid, and else a dot a point.

    Args:
        table: Columns x, y (the axes' columns), value, and runs: of how many it is the mean.
        axes: What the axes are.
        x: The axis from left to right.
        y: The axis from bottom to top.
        metric: The metric, or the SQL expression, that ``value`` is.
    """
    column = COLUMNS.get(metric) or Column(metric)
    label = figures.named(column.heading)
    runs = sorted(set(table["runs"]))
    if runs != [1]:
        label += f", mean of {' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs"
    shown = table.with_columns(value=table["value"] * column.scale).drop_nulls("value")
    columns, rows = table["x"].n_unique(), table["y"].n_unique()
    figure, [[panel]] = figures.panels(width=figures.PAGE, height=4.2)
    if table.height * 2 >= columns * rows:
        image: ScalarMappable = figures.heat_map(
            panel,
            shown,
            "x",
            "y",
            "value",
            text=_cell if columns * rows <= _MOST_WRITTEN else None,
            names=(partial(_tick, axes[x]["unit"]), partial(_tick, axes[y]["unit"])),
        )
    else:
        for name in (x, y):
            if axes[name]["unit"] is None:
                raise DumbbellError(
                    f'heat: "{name}" is text, and the axes make no grid; choose others'
                )
        image = figures.heat_dots(panel, shown, "x", "y", "value")
        for axis, name in ((panel.xaxis, x), (panel.yaxis, y)):
            axis.set_major_formatter(EngFormatter(axes[name]["unit"] or ""))
    panel.set_xlabel(figures.named(x))
    panel.set_ylabel(figures.named(y))
    bar = figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02, label=label)
    bar.outline.set_visible(False)
    return figure


def _axes(axes: Axes, x: str | None, y: str | None) -> tuple[str, str]:
    names = list(axes)
    for option, given in (("--x", x), ("--y", y)):
        if given is not None:
            _axis(option, given, axes)
    free = [name for name in names if name not in (x, y)]
    chosen = [axis or (free.pop(0) if free else None) for axis in (x, y)]
    if None in chosen or chosen[0] == chosen[1]:
        problem = f"a heat map needs two different axes, and there are {', '.join(names)}"
        raise DumbbellError(f"{problem}; name them with --x and --y")
    return str(chosen[0]), str(chosen[1])


def _tick_at(unit: str | None, value: float, _position: int) -> str:
    return _tick(unit, value)


def _tick(unit: str | None, value: float | str) -> str:
    rounded = value if isinstance(value, str) else float(f"{value:.3g}")
    return figures.named(format_setting(rounded, unit))


def _cell(row: dict[str, Any]) -> str:
    value = row["value"]
    return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
