"""Heat maps: one quantity over two settings, the value written in every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_SHADES = "cividis"  # even in lightness, made for colour-vision deficiencies


def heat_map(
    axes: Axes,
    cells: pl.DataFrame,
    x: str,
    y: str,
    value: str,
    *,
    low: float,
    high: float,
    text: Callable[[dict[str, Any]], str],
) -> AxesImage:
    """Draws ``value`` over the settings ``x`` and ``y`` and returns the image for a colour bar.

    Args:
        axes: Where to draw.
        cells: One row a cell, columns ``x``, ``y``, ``value`` (null: beyond the highest shade).
        x: Column of the settings from left to right, ascending.
        y: Column of the settings from bottom to top, ascending.
        value: Column of the quantity.
        low: Value of the darkest shade.
        high: Value of the lightest shade.
        text: What is written in a cell, by its row; a second line is smaller.

    Raises:
        ValueError: If two rows name the same cell.
    """
    columns, rows = (cells[axis].unique().sort().to_list() for axis in (x, y))
    if cells.select(x, y).is_duplicated().any():
        raise ValueError(f"two values for one cell of a heat map over {x} and {y}")
    grid = np.full((len(rows), len(columns)), np.nan)
    shades = mpl.colormaps[_SHADES]
    for row in cells.iter_rows(named=True):
        i, j = rows.index(row[y]), columns.index(row[x])
        grid[i, j] = high if row[value] is None else row[value]
        light = (grid[i, j] - low) / (high - low)
        first, _, second = text(row).partition("\n")
        ink = "#000000" if light > 0.55 else "#fffffe"
        rise = 0.16 if second else 0.0
        axes.text(j, i + rise, first, ha="center", va="center", fontsize=6.5, color=ink)
        if second:
            axes.text(j, i - 0.22, second, ha="center", va="center", fontsize=4.8, color=ink)
    image = axes.imshow(
        grid, origin="lower", aspect="auto", cmap=shades, vmin=low, vmax=high, interpolation="none"
    )
    axes.set_xticks(range(len(columns)), [f"{c:g}" for c in columns])
    axes.set_yticks(range(len(rows)), [f"{r:g}" for r in rows])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
