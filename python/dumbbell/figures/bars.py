"""Comparisons: estimates with their confidence intervals, one row a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dumbbell.figures.style import FAINT, INK, PAPER, look

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


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
    for y, row in zip(places, rows.iter_rows(named=True), strict=True):
        _bar(axes, float(y), row)
        _runs(axes, float(y), row)
        if row["published"] is not None:
            axes.plot(
                [row["published"]] * 2, [y - 0.42, y + 0.42], color=INK, linewidth=2.2, zorder=6
            )
    axes.set_yticks(places, rows["label"].to_list())
    axes.set_ylim(-0.6, rows.height - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)


def _bar(axes: Axes, y: float, row: dict[str, Any]) -> None:
    colour, limit = look(row["cc"]).colour, row["limit"]
    beyond = row["value"] is None
    axes.barh(
        y, limit if beyond else row["value"], height=0.66, color=colour, alpha=0.35, linewidth=0
    )
    if limit is not None:
        axes.plot([limit] * 2, [y - 0.33, y + 0.33], color=FAINT, linewidth=0.9, linestyle=":")
    if beyond:
        axes.plot(limit, y, marker=">", color=colour, markersize=7, clip_on=False)
    if row["low"] is None:
        return
    high = limit if row["high"] is None else row["high"]
    axes.plot([row["low"], high], [y, y], color=INK, linewidth=1.2, zorder=4)
    ends = [row["low"]] if row["high"] is None else [row["low"], high]
    axes.plot(ends, [y] * len(ends), linestyle="", marker="|", markersize=7, color=INK, zorder=4)
    if row["high"] is None:
        axes.plot(high, y, marker=">", color=INK, markersize=3.5, clip_on=False, zorder=4)


def _runs(axes: Axes, y: float, row: dict[str, Any]) -> None:
    """Draws the single runs, spread over the height of their bar so that equals stay visible."""
    style, runs = look(row["cc"]), row["runs"]
    offsets = np.linspace(0.24, -0.24, len(runs)) if len(runs) > 1 else np.zeros(len(runs))
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
