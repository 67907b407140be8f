"""``dumbbell heat``: one metric of a sweep over two of its axes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from matplotlib.ticker import EngFormatter

from dumbbell import figures
from dumbbell.cli.output import print_line
from dumbbell.display import METRICS as COLUMNS
from dumbbell.display import Column, format_setting
from dumbbell.errors import DumbbellError, ResultError
from dumbbell.experiment.stacks import unknown
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.plan import METRICS
from dumbbell.sweeps.query import query, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from dumbbell.sweeps.dataset import Axes

_MOST_WRITTEN: Final = 240
"""With more cells than this their values are not written in them."""


def draw_heat(
    folder: Path, *, x: str | None, y: str | None, metric: str, where: str | None, out: Path | None
) -> None:
    """Draws the mean of a metric over two axes of a sweep, as SVG and PNG."""
    dataset = Dataset(folder)
    axes = dataset.axes
    x, y = _axes(axes, x, y)
    value = quoted(metric) if metric in METRICS else metric
    table = query(
        f"select {quoted(x)} as x, {quoted(y)} as y, avg({value}) as value, count(*) as runs "
        f"from runs where {where or 'true'} group by all order by all",
        folder,
    )
    if not table["value"].count():
        problem = f"no run there has a value of {metric}"
        raise ResultError(f"{folder}: {problem}")
    for column, axis in (("x", x), ("y", y)):
        if axes[axis]["unit"] is None:  # text, in the order of the file
            order = pl.Enum(dataset.plan[axis].unique(maintain_order=True))
            table = table.with_columns(pl.col(column).cast(order))
    stem = out or folder / f"heat-{_slug(metric)}"
    try:
        with figures.styled():
            written = figures.save(draw(table, axes, x, y, metric), stem)
    except OSError as error:
        raise ResultError(f"{stem}: cannot be written: {error.strerror}") from None
    print_line("\n".join(map(str, written)))


def draw(table: pl.DataFrame, axes: Axes, x: str, y: str, metric: str) -> Figure:
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
        if given is not None and given not in axes:
            raise DumbbellError(f"{option}: {unknown('axis', given, names)}")
    free = [name for name in names if name not in (x, y)]
    chosen = [axis or (free.pop(0) if free else None) for axis in (x, y)]
    if None in chosen or chosen[0] == chosen[1]:
        problem = f"a heat map needs two different axes, and there are {', '.join(names)}"
        raise DumbbellError(f"{problem}; name them with --x and --y")
    return str(chosen[0]), str(chosen[1])


def _tick(unit: str | None, value: float | str) -> str:
    rounded = value if isinstance(value, str) else float(f"{value:.3g}")
    return figures.named(format_setting(rounded, unit))


def _cell(row: dict[str, Any]) -> str:
    value = row["value"]
    return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"


def _slug(metric: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in metric).strip("-") or "metric"
