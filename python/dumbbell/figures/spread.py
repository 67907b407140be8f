"""How values vary: lines with intervals, distributions, boxes, throughput against delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from matplotlib.patches import Ellipse

from dumbbell.figures.style import INK, PAPER, named, style_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_MARKERS: Final = "osD^vP*X<>"
_SHADES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b7078")
MOST_GROUPS: Final = len(_SHADES)
"""More groups than this do not have a colour each."""


def look(group: str, rank: int, of_algorithms: bool) -> tuple[str, str, str]:
    """Colour, marker and label of a group: those of its algorithm, or of its rank."""
    if of_algorithms:
        style = style_of(group)
        return style.colour, style.marker, named(style.label)
    return _SHADES[rank % len(_SHADES)], _MARKERS[rank % len(_MARKERS)], named(group)


def lines(axes: Axes, groups: Mapping[str, pl.DataFrame], *, of_algorithms: bool) -> None:
    """Draws a line for every group, with an interval at each point.

    Args:
        axes: Where to draw.
        groups: For each group its points: columns x, value, and low and high, null without an
            interval.
        of_algorithms: Whether groups are algorithms, which have colours of their own.
    """
    for rank, (group, points) in enumerate(groups.items()):
        colour, marker, label = look(group, rank, of_algorithms)
        x, y, low, high = points.select("x", "value", "low", "high").cast(pl.Float64).to_numpy().T
        axes.plot(x, y, color=colour, marker=marker, label=label)
        axes.fill_between(x, low, high, color=colour, alpha=0.14, linewidth=0)


def distributions(
    axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool
) -> None:
    """Draws the share of runs at or below a value (an empirical CDF), a line for each group."""
    for rank, (group, values) in enumerate(groups.items()):
        colour, _, label = look(group, rank, of_algorithms)
        axes.ecdf(values, color=colour, label=label)
    axes.set_ylabel("share of the runs")
    axes.set_ylim(0, 1)
    axes.margins(x=0.02)


def boxes(axes: Axes, groups: Mapping[str, Sequence[float]], *, of_algorithms: bool) -> None:
    """Draws a box for each group: quartiles, median, whiskers of 1.5 box lengths, the rest."""
    looks = [look(group, rank, of_algorithms) for rank, group in enumerate(groups)]
    drawn = axes.boxplot(
        list(groups.values()),
        patch_artist=True,
        medianprops={"color": INK},
        flierprops={"markersize": 2.5, "markeredgecolor": INK},
    )
    axes.set_xticks(range(1, len(looks) + 1), [label for _, _, label in looks])
    for box, (colour, _, _) in zip(drawn["boxes"], looks, strict=True):
        box.set(facecolor=colour, alpha=0.45, edgecolor=INK, linewidth=0.7)


def delay_ellipses(
    axes: Axes, groups: Mapping[str, Sequence[tuple[float, float]]], *, of_algorithms: bool
) -> None:
    """Draws each group's runs, their mean and an ellipse of one standard deviation.

    The delay grows to the left, so that up and to the right is better, as in the figures of
    Pantheon (Yan et al. 2018) and of Winstein and Balakrishnan 2013.

    Args:
        axes: Where to draw.
        groups: For each group the delay (ms) and the throughput (Mbit/s) of its runs.
        of_algorithms: Whether groups are algorithms, which have colours of their own.
    """
    for rank, (group, points) in enumerate(groups.items()):
        colour, marker, label = look(group, rank, of_algorithms)
        at = np.array(points, dtype=np.float64)
        middle = at.mean(axis=0)
        axes.plot(*at.T, linestyle="", marker=".", markersize=2.5, color=colour, alpha=0.5)
        axes.plot(*middle, linestyle="", marker=marker, color=colour, markersize=6, label=label)
        axes.annotate(
            label,
            (float(middle[0]), float(middle[1])),
            (4, 4),
            textcoords="offset points",
            fontsize=7,
            color=colour,
        )
        if len(points) > 2:
            axes.add_patch(_ellipse(middle, at, colour))
    axes.set_xlabel("queueing delay (ms), to the right is better")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.margins(0.12)
    axes.set_xlim(axes.get_xlim()[1], max(axes.get_xlim()[0], 0))
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0))


def _ellipse(middle: NDArray[np.float64], at: NDArray[np.float64], colour: str) -> Ellipse:
    """One standard deviation along the principal axes."""
    sizes, axes = np.linalg.eigh(np.cov(at.T))
    width, height = 2 * np.sqrt(np.maximum(sizes, 0))
    angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
    where = (float(middle[0]), float(middle[1]))
    return Ellipse(where, width, height, angle=angle, facecolor=colour, alpha=0.18, edgecolor=PAPER)
