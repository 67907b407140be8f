"""Comparisons: estimates with their confidence intervals, one row a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dumbbell.figures.style import FAINT, INK, PAPER, look

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def intervals(axes: Axes, rows: pl.DataFrame, *, limit: float | None = None) -> None:
    """Draws horizontal bars with intervals, each beside a published value and single runs.

    Args:
        axes: Where to draw.
        rows: ``cc``; ``label``; ``value``, ``low``, ``high`` (null: beyond the limit); the list
            ``runs`` with the value of each run (null: beyond the limit); optionally
            ``published`` (null: none). All in one unit.
        limit: Where observation ended. A value beyond it ends in an arrow there, and its single
            runs are hollow marks on the line: they are shown, never dropped.
    """
    places = np.arange(rows.height)[::-1]
    edge = limit if limit is not None else float("nan")
    for y, row in zip(places, rows.iter_rows(named=True), strict=True):
        style = look(row["cc"])
        value = edge if row["value"] is None else row["value"]
        axes.barh(y, value, height=0.62, color=style.colour, alpha=0.45, linewidth=0)
        if row["value"] is None:
            axes.plot(value, y, marker=">", color=style.colour, markersize=6, clip_on=False)
        if row["low"] is not None:
            high = edge if row["high"] is None else row["high"]
            axes.plot([row["low"], high], [y, y], color=INK, linewidth=1.2)
            ends = [row["low"]] if row["high"] is None else [row["low"], high]
            axes.plot(ends, [y] * len(ends), linestyle="", marker="|", color=INK)
            if row["high"] is None:
                axes.plot(high, y, marker=">", color=INK, markersize=3.5, clip_on=False)
        _runs(axes, row["runs"], float(y), edge, style.marker, style.colour)
        if row.get("published") is not None:
            axes.plot(
                [row["published"]] * 2, [y - 0.42, y + 0.42], color=INK, linewidth=1.8, zorder=4
            )
    axes.set_yticks(places, rows["label"].to_list())
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0, right=None if limit is None else limit * 1.03)
    if limit is not None:
        axes.axvline(limit, color=FAINT, linewidth=0.9, linestyle=(0, (1, 1.5)))


def _runs(
    axes: Axes, runs: list[float | None], y: float, edge: float, marker: str, colour: str
) -> None:
    """Draws the single runs, spread over the height of their bar so that equals stay visible."""
    offsets = np.linspace(-0.2, 0.2, len(runs)) if len(runs) > 1 else np.zeros(len(runs))
    for offset, run in zip(offsets, runs, strict=True):
        axes.plot(
            edge if run is None else run,
            y + offset,
            linestyle="",
            marker=marker,
            markersize=3.2,
            markerfacecolor=PAPER if run is None else colour,
            markeredgecolor=colour,
            markeredgewidth=0.7,
            clip_on=False,
            zorder=5,
        )
