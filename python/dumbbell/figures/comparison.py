"""Comparisons: curves and bars over a setting, and estimates with their intervals, a row a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from dumbbell.figures.style import FAINT, INK, PAPER, legend_above, style_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

_APART: Final = 1.8  # how far apart algorithms stand at one setting of `curves`, points


def curves(axes: Axes, rows: Iterable[dict[str, Any]]) -> None:
    """Draws a line for every algorithm over a setting, with intervals and published values.

    Args:
        axes: Where to draw.
        rows: The points, ordered by ``x`` within an algorithm:

            - ``cc``, ``x``: the algorithm and the setting;
            - ``value``, ``low``, ``high``: the estimate and its interval;
            - ``published``: hollow mark of the same shape; null if there is none.

    Algorithms stand side by side at a setting, so that their intervals do not cover each other.
    Published values are joined only where the paper has one for every setting in between.
    """
    points = pl.DataFrame(list(rows), infer_schema_length=None)
    middle = (points["cc"].n_unique() - 1) / 2
    for rank, ((cc,), line) in enumerate(points.group_by("cc", maintain_order=True)):
        shift = ScaledTranslation((rank - middle) * _APART / 72, 0, axes.figure.dpi_scale_trans)
        style = style_of(str(cc))
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
        x, value, low, high = line.select("x", "value", "low", "high").to_numpy().T
        bars = axes.errorbar(
            x,
            value,
            (value - low, high - value),
            **look,
            capsize=1.5,
            elinewidth=0.8,
            label=style.label,
        )
        said = axes.plot(
            x,
            line["published"].cast(pl.Float64).to_numpy(),
            **look,
            markerfacecolor="none",
            linewidth=0.7,
            linestyle=":",
        )
        for artist in (*bars.get_children(), *said):  # now that the axes know where the data are
            artist.set_transform(axes.transData + shift)


def grouped_bars(
    axes: Axes, rows: Iterable[dict[str, Any]], groups: Sequence[str], members: Sequence[str]
) -> None:
    """Draws bars side by side in groups, with intervals.

    Args:
        axes: Where to draw.
        rows: The bars: ``group``, ``member`` (text), ``cc`` (its colour), ``value``, ``low``,
            ``high``, and ``published``: a thick line; null if there is none. The first member of a
            group is filled, the others are hatched; a legend says which is which.
        groups: The groups from left to right.
        members: The members of a group from left to right.
    """
    width = 0.8 / len(members)
    colours: dict[str, set[str]] = {member: set() for member in members}
    for row in rows:
        colour, rank = style_of(row["cc"]).colour, members.index(row["member"])
        colours[row["member"]].add(colour)
        x = groups.index(row["group"]) + (rank - (len(members) - 1) / 2) * width
        axes.bar(x, row["value"], width=width * 0.94, color=colour, **_bar_look(rank))
        axes.plot([x, x], [row["low"], row["high"]], color=INK, linewidth=1.1)
        if row["published"] is not None:
            ends = [x - 0.45 * width, x + 0.45 * width]
            axes.plot(ends, [row["published"]] * 2, color=INK, linewidth=2.0)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.55, len(groups) - 0.45)
    axes.set_ylim(bottom=0)
    axes.axhline(0, color=FAINT, linewidth=0.6)
    if len(members) > 1:
        handles = [
            Patch(facecolor=found.pop() if len(found) == 1 else FAINT, **_bar_look(rank))
            for rank, found in enumerate(colours.values())
        ]
        legend_above(axes, handles, members, ncols=len(members))


def _bar_look(rank: int) -> dict[str, Any]:
    """How a bar looks beside its colour: the first of a group is filled, the others are hatched."""
    look = {"alpha": 0.4, "hatch": "///"} if rank else {"alpha": 0.85, "hatch": ""}
    return look | {"edgecolor": INK, "linewidth": 0.4}


def intervals(axes: Axes, rows: pl.DataFrame) -> None:
    """Draws horizontal bars with intervals, each with its single runs and a published value.

    Args:
        axes: Where to draw.
        rows: One row a bar, from top to bottom, all values in one unit:

            - ``cc``, ``label``: the algorithm and the words at the bar;
            - ``value``, ``low``, ``high``: the estimate and its interval. Null is beyond the
              limit: the bar and the interval then end in an arrow there. A null ``low`` beside a
              value is no interval;
            - ``limit``: where observation ended, or null;
            - ``runs``: list of the value of each run. Null is beyond the limit: drawn as a hollow
              mark at the limit, never dropped;
            - ``published``: null if there is none.
    """
    places = np.arange(rows.height)[::-1]
    for y, row in zip(places.tolist(), rows.iter_rows(named=True), strict=True):
        _bar(axes, y, row)
        _interval(axes, y, row)
        _runs(axes, y, row)
        if row["published"] is not None:
            said = [row["published"]] * 2
            axes.plot(said, [y - 0.42, y + 0.42], color=INK, linewidth=2.2, zorder=6)
    axes.set_yticks(places, rows["label"].to_list())
    axes.set_ylim(-0.6, rows.height - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.04)
    if axes.dataLim.x0 >= 0:
        axes.set_xlim(left=0)


def _bar(axes: Axes, y: float, row: dict[str, Any]) -> None:
    colour, value, limit = style_of(row["cc"]).colour, row["value"], row["limit"]
    end = limit if value is None else value
    axes.barh(y, end, height=0.66, color=colour, alpha=0.35, linewidth=0)
    if limit is not None:
        axes.plot([limit] * 2, [y - 0.33, y + 0.33], color=FAINT, linewidth=0.9, linestyle=":")
    if value is None:
        axes.plot(limit, y, marker=">", color=colour, markersize=7, clip_on=False)


def _interval(axes: Axes, y: float, row: dict[str, Any]) -> None:
    low, high, limit = row["low"], row["high"], row["limit"]
    if low is None:
        return
    ends = [low] if high is None else [low, high]
    axes.plot([low, limit if high is None else high], [y, y], color=INK, linewidth=1.2, zorder=4)
    axes.plot(ends, [y] * len(ends), linestyle="", marker="|", markersize=7, color=INK, zorder=4)
    if high is None:
        axes.plot(limit, y, marker=">", color=INK, markersize=3.5, clip_on=False, zorder=4)


def _runs(axes: Axes, y: float, row: dict[str, Any]) -> None:
    """Draws the single runs, spread over the height of their bar so that equals stay visible."""
    style, runs = style_of(row["cc"]), row["runs"]
    offsets = np.linspace(0.24, -0.24, len(runs)) if len(runs) > 1 else [0.0] * len(runs)
    for offset, run in zip(offsets, runs, strict=True):
        axes.plot(
            row["limit"] if run is None else run,
            y + offset,
            linestyle="",
            marker=style.marker,
            markersize=3,
            markerfacecolor=PAPER if run is None else style.colour,
            markeredgecolor=style.colour,
            markeredgewidth=0.7,
            clip_on=False,
            zorder=5,
        )
