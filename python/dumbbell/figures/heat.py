"""Heat maps: one quantity over two settings, the value written in every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm, Normalize

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.image import AxesImage

# More settings than these are not all written at an axis.
_MOST_COLUMNS: Final = 10
_MOST_ROWS: Final = 16
_MIDDLE: Final = 0.179  # the luminance on which black and white have the same contrast (WCAG 2.2)
SHADES: Final = "cividis"
"""A colour map that is even in lightness, made for colour-vision deficiencies."""

_DIVERGING: Final = "PuOr"
"""A colour map from one colour over white to another, told apart in any colour vision."""


def heat_map(
    axes: Axes,
    cells: pl.DataFrame,
    x: str,
    y: str,
    value: str,
    *,
    low: float | None = None,
    high: float | None = None,
    middle: float | None = None,
    logarithmic: bool = False,
    text: Callable[[dict[str, Any]], str] | None,
    names: tuple[Callable[[Any], str], Callable[[Any], str]] = ("{:g}".format, "{:g}".format),
) -> AxesImage:
    """Draws ``value`` over the settings ``x`` and ``y`` and returns the image for a colour bar.

    Args:
        axes: Where to draw.
        cells: One row a cell, columns ``x``, ``y``, ``value`` (null: beyond the highest shade).
        x: Column of the settings from left to right, ascending.
        y: Column of the settings from bottom to top, ascending.
        value: Column of the quantity.
        low: Value of the darkest shade; the least of all if not given.
        high: Value of the lightest shade; the greatest of all if not given.
        middle: A value that is white, with one colour below and another above it; `low` and `high`
            are then as far from it as the farthest value.
        logarithmic: Whether shades follow the logarithm of the values, which are then above 0.
        text: What is written in a cell, by its row; a second line is smaller.
        names: How the settings ``x`` and ``y`` are written.

    Raises:
        ValueError: If two rows name the same cell.
    """
    columns, rows = (cells[axis].unique().sort().to_list() for axis in (x, y))
    if cells.select(x, y).is_duplicated().any():
        raise ValueError(f"two values for one cell of a heat map over {x} and {y}")
    low = cast("float", cells[value].min()) if low is None else low
    high = cast("float", cells[value].max()) if high is None else high
    if middle is not None:
        reach = max(middle - low, high - middle) or 1.0
        low, high = middle - reach, middle + reach
    norm = (LogNorm if logarithmic else Normalize)(low, high)
    shades = mpl.colormaps[SHADES if middle is None else _DIVERGING]
    places = [{setting: at for at, setting in enumerate(settings)} for settings in (columns, rows)]
    grid = np.full((len(rows), len(columns)), np.nan)
    for row in cells.iter_rows(named=True):
        i, j = places[1][row[y]], places[0][row[x]]
        grid[i, j] = high if row[value] is None else row[value]
        if text:
            _write(axes, j, i, text(row), ink_on(shades(norm(grid[i, j]))))
    image = axes.imshow(grid, shades, norm, aspect="auto", interpolation="none", origin="lower")
    for axis, settings, name, most in (
        (axes.xaxis, columns, names[0], _MOST_COLUMNS),
        (axes.yaxis, rows, names[1], _MOST_ROWS),
    ):
        step = -(-len(settings) // most)
        axis.set_ticks(range(0, len(settings), step), [name(s) for s in settings[::step]])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def heat_dots(
    axes: Axes, points: pl.DataFrame, x: str, y: str, value: str, *, logarithmic: bool = False
) -> PathCollection:
    """Draws ``value`` as the shades of dots, for settings ``x`` and ``y`` that make no grid.

    An axis is logarithmic if its settings are above 0 and span a factor of 30 or more; shades are
    with `logarithmic`. Returns the dots, for a colour bar.
    """
    for column, set_scale in ((x, axes.set_xscale), (y, axes.set_yscale)):
        least, most = cast("float", points[column].min()), cast("float", points[column].max())
        if 0 < 30 * least <= most:
            set_scale("log")
    axes.margins(0.03)
    size = min(36.0, 8000 / points.height)
    norm = LogNorm() if logarithmic else Normalize()
    at = points.sort(x, y).select(x, y, value).to_numpy().T
    return axes.scatter(at[0], at[1], size, at[2], cmap=SHADES, norm=norm, linewidths=0)


def ink_on(shade: tuple[float, ...]) -> str:
    """The colour of text on a shade: black or white, what has more contrast."""
    return "#000000" if _luminance(shade) > _MIDDLE else "#fffffe"


def _luminance(colour: tuple[float, ...]) -> float:
    """The relative luminance of a colour, 0 to 1, as WCAG 2.2 defines it."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _write(axes: Axes, x: float, y: float, text: str, ink: str) -> None:
    first, _, second = text.partition("\n")
    rise = 0.16 if second else 0.0
    for line, at, size in ((first, y + rise, 6.5), (second, y - 0.22, 4.8)):
        if line:
            axes.text(x, at, line, ha="center", va="center", fontsize=size, color=ink)
