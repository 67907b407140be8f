"""How values vary: lines with intervals, distributions, boxes, throughput against delay.

Each function draws one thing for every group. ``of_algorithms`` says whether groups are algorithms,
which have colours of their own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import polars as pl
from matplotlib.patches import Ellipse

from dumbbell.figures.style import COLOURS, INK, PAPER, Style, named, styles_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

Values = TypeVar("Values")

_MARKERS: Final = "osD^vP*X<>"
_SHADES: Final = tuple(
    COLOURS[name] for name in ("blue", "vermillion", "green", "purple", "orange", "sky", "grey")
)
MOST_GROUPS: Final = len(_SHADES)  # more groups than this do not have a colour each
_DASHES: Final = ("-", "--", "-.", ":")  # of groups that share a colour, such as two of one cc
_LEAST: Final = 0.05  # the share of the largest value that an axis has at least
_ASIDE: Final = 0.3  # how far apart groups are at a place, of the way to the next
_FILLS: Final = ("full", "none", "left", "top")


def _looks(
    groups: Mapping[str, Values], of_algorithms: bool
) -> Iterator[tuple[Style, int, Values]]:
    """The style of each group, how many before it have the same, and its values.

    The style is of its algorithm or its rank.
    """
    styles, seen = styles_of(groups) if of_algorithms else {}, Counter[tuple[str, str]]()
    for rank, (group, values) in enumerate(groups.items()):
        look = _SHADES[rank % len(_SHADES)], _MARKERS[rank % len(_MARKERS)]
        style = styles.get(group) or Style(group, *look)
        yield style, seen[style.look], values
        seen[style.look] += 1


def _line(style: Style, before: int) -> dict[str, Any]:
    dash = _DASHES[before % len(_DASHES)]
    return {"color": style.colour, "linestyle": dash, "label": named(style.label)}


def _mark(style: Style, before: int) -> dict[str, Any]:
    return {"marker": style.marker, "fillstyle": _FILLS[before % len(_FILLS)]}


def lines(axes: Axes, groups: Mapping[str, pl.DataFrame], *, of_algorithms: bool) -> None:
    """Draws lines with intervals: rows of x, value, and low and high, null without an interval."""
    for style, before, points in _looks(groups, of_algorithms):
        x, y, low, high = points.select("x", "value", "low", "high").cast(pl.Float64).to_numpy().T
        axes.plot(x, y, **_line(style, before), **_mark(style, before))
        axes.fill_between(x, low, high, color=style.colour, alpha=0.14, linewidth=0)


def points(axes: Axes, groups: Mapping[str, pl.DataFrame], *, of_algorithms: bool) -> None:
    """Draws what `lines` does for places without an order: bars for intervals, side by side."""
    for rank, (style, before, rows) in enumerate(_looks(groups, of_algorithms)):
        x, y, low, high = rows.select("x", "value", "low", "high").cast(pl.Float64).to_numpy().T
        aside = x + _ASIDE * (rank - (len(groups) - 1) / 2) / max(len(groups) - 1, 1)
        look = _line(style, before) | _mark(style, before) | {"linestyle": ""}
        axes.errorbar(aside, y, np.nan_to_num([y - low, high - y]), capsize=2, **look)


def give_height(axes: Axes) -> None:
    """Makes the range of values no smaller than a share of the largest: noise looks small then."""
    axes.set_ylim(*_no_less(*axes.get_ylim()))


def _no_less(low: float, high: float) -> tuple[float, float]:
    more = max(0.0, _LEAST * max(abs(low), abs(high)) - (high - low)) / 2
    return low - more, high + more


def distributions(
    axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool
) -> None:
    """Draws the share of runs at or below a value (an empirical CDF)."""
    for style, before, values in _looks(groups, of_algorithms):
        look = _line(style, before) | _mark(style, before)
        axes.ecdf(values, markevery=0.15, **look)
    axes.set_ylim(0, 1)
    axes.margins(x=0.02)


def boxes(axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool) -> None:
    """Draws boxes: quartiles, median, whiskers of 1.5 box lengths, the rest."""
    styles, _, values = zip(*_looks(groups, of_algorithms), strict=True)
    drawn = axes.boxplot(
        values,
        patch_artist=True,
        medianprops={"color": INK},
        flierprops={"markersize": 2.5, "markeredgecolor": INK},
    )
    axes.set_xticks(range(1, len(styles) + 1), [named(style.label) for style in styles])
    for box, style in zip(drawn["boxes"], styles, strict=True):
        box.set(facecolor=style.colour, alpha=0.45, edgecolor=INK, linewidth=0.7)


def delay_ellipses(
    axes: Axes, groups: Mapping[str, Sequence[tuple[float, float]]], *, of_algorithms: bool
) -> None:
    """Draws the runs of each group, (delay, ms; throughput, Mbit/s), and their mean.

    An ellipse shows one standard deviation. The delay grows to the left, so that up and to the
    right is better, as in the figures of Pantheon (Yan et al. 2018) and of Winstein and
    Balakrishnan 2013.
    """
    for style, before, points in _looks(groups, of_algorithms):
        colour, label = style.colour, named(style.label)
        at = np.array(points, dtype=np.float64)
        x, y = at.mean(axis=0).tolist()
        axes.plot(*at.T, linestyle="", marker=".", markersize=2.5, color=colour, alpha=0.5)
        look = _line(style, before) | _mark(style, before) | {"linestyle": ""}
        axes.plot(x, y, markersize=6, clip_on=False, **look)
        axes.annotate(label, (x, y), (4, 4), textcoords="offset points", fontsize=7, color=INK)
        if len(points) > 2:
            sizes, directions = np.linalg.eigh(np.cov(at.T))
            width, height = 2 * np.sqrt(np.maximum(sizes, 0))
            angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
            shape = Ellipse((x, y), width, height, angle=angle)
            axes.add_patch(shape).set(facecolor=colour, alpha=0.18, edgecolor=PAPER)
    axes.margins(0.12)
    low, high = _no_less(*axes.get_xlim())
    axes.set_xlim(high, max(low, 0))
    give_height(axes)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0))
