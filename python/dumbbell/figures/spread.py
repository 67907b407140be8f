"""How values vary: lines with intervals, distributions, boxes, throughput against delay.

Each function draws one thing for every group. ``of_algorithms`` says whether groups are algorithms,
which have colours of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import polars as pl
from matplotlib.patches import Ellipse

from dumbbell.figures.style import INK, PAPER, named, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

Values = TypeVar("Values")

_MARKERS: Final = "osD^vP*X<>"
_SHADES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b7078")
MOST_GROUPS: Final = len(_SHADES)  # more groups than this do not have a colour each


def _looks(
    groups: Mapping[str, Values], of_algorithms: bool
) -> Iterator[tuple[str, str, str, Values]]:
    """Colour, marker, label and values of each group; the look is of its algorithm or its rank."""
    for rank, (group, values) in enumerate(groups.items()):
        if of_algorithms:
            style = style_of(group)
            yield style.colour, style.marker, named(style.label), values
        else:
            colour, marker = _SHADES[rank % len(_SHADES)], _MARKERS[rank % len(_MARKERS)]
            yield colour, marker, named(group), values


def lines(axes: Axes, groups: Mapping[str, pl.DataFrame], *, of_algorithms: bool) -> None:
    """Draws lines with intervals: rows of x, value, and low and high, null without an interval."""
    for colour, marker, label, points in _looks(groups, of_algorithms):
        x, y, low, high = points.select("x", "value", "low", "high").cast(pl.Float64).to_numpy().T
        axes.plot(x, y, color=colour, marker=marker, label=label)
        axes.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)


def distributions(
    axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool
) -> None:
    """Draws the share of runs at or below a value (an empirical CDF)."""
    for colour, _, label, values in _looks(groups, of_algorithms):
        axes.ecdf(values, color=colour, label=label)
    axes.set_ylabel("share of the runs")
    axes.set_ylim(0, 1)
    axes.margins(x=0.02)


def boxes(axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool) -> None:
    """Draws boxes: quartiles, median, whiskers of 1.5 box lengths, the rest."""
    colours, _, labels, values = zip(*_looks(groups, of_algorithms), strict=True)
    drawn = axes.boxplot(
        values,
        patch_artist=True,
        medianprops={"color": INK},
        flierprops={"markersize": 2.5, "markeredgecolor": INK},
    )
    axes.set_xticks(range(1, len(labels) + 1), labels)
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.45, edgecolor=INK, linewidth=0.7)


def delay_ellipses(
    axes: Axes, groups: Mapping[str, Sequence[tuple[float, float]]], *, of_algorithms: bool
) -> None:
    """Draws the runs of each group, (delay, ms; throughput, Mbit/s), and their mean.

    An ellipse shows one standard deviation. The delay grows to the left, so that up and to the
    right is better, as in the figures of Pantheon (Yan et al. 2018) and of Winstein and
    Balakrishnan 2013.
    """
    for colour, marker, label, points in _looks(groups, of_algorithms):
        at = np.array(points, dtype=np.float64)
        x, y = at.mean(axis=0).tolist()
        axes.plot(*at.T, linestyle="", marker=".", markersize=2.5, color=colour, alpha=0.5)
        axes.plot(x, y, linestyle="", marker=marker, color=colour, markersize=6, label=label)
        axes.annotate(label, (x, y), (4, 4), textcoords="offset points", fontsize=7, color=colour)
        if len(points) > 2:
            sizes, directions = np.linalg.eigh(np.cov(at.T))
            width, height = 2 * np.sqrt(np.maximum(sizes, 0))
            angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
            look = {"facecolor": colour, "alpha": 0.18, "edgecolor": PAPER}
            axes.add_patch(Ellipse((x, y), width, height, angle=angle, **look))
    axes.set_xlabel("queueing delay (ms), to the right is better")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.margins(0.12)
    axes.set_xlim(axes.get_xlim()[1], max(axes.get_xlim()[0], 0))
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0))
