"""Comparisons over a setting: curves against a published one, and bars in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dumbbell.figures.style import FAINT, INK, look

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes


def curves(axes: Axes, rows: Iterable[dict[str, Any]]) -> None:
    """Draws a line for every algorithm over a setting, with intervals and published values.

    Args:
        axes: Where to draw.
        rows: The points, ordered by ``x`` within an algorithm:

            - ``cc``, ``x``: the algorithm and the setting;
            - ``value``, ``low``, ``high``: the estimate and its interval;
            - ``published``: hollow mark of the same shape; null if there is none.
    """
    points = pl.DataFrame(list(rows), infer_schema_length=None)
    for (cc,), line in points.group_by("cc", maintain_order=True):
        style = look(str(cc))
        x, value = line["x"].to_numpy(), line["value"].to_numpy()
        spread = np.vstack([value - line["low"].to_numpy(), line["high"].to_numpy() - value])
        axes.errorbar(
            x,
            value,
            yerr=spread,
            color=style.colour,
            marker=style.marker,
            capsize=1.5,
            elinewidth=0.8,
            label=style.label,
        )
        said = line.drop_nulls("published")
        axes.plot(
            said["x"].to_numpy(),
            said["published"].to_numpy(),
            color=style.colour,
            marker=style.marker,
            markerfacecolor="none",
            linewidth=0.7,
            linestyle=":",
        )


def grouped_bars(
    axes: Axes, rows: Iterable[dict[str, Any]], groups: Sequence[str], members: Sequence[str]
) -> None:
    """Draws bars side by side in groups, with intervals.

    Args:
        axes: Where to draw.
        rows: The bars: ``group``, ``member`` (text), ``cc`` (its colour), ``value``, ``low``,
            ``high``. The first member of a group is filled, the others are hatched.
        groups: The groups from left to right.
        members: The members of a group from left to right.
    """
    width = 0.8 / len(members)
    for row in rows:
        rank = members.index(row["member"])
        x = groups.index(row["group"]) + (rank - (len(members) - 1) / 2) * width
        axes.bar(
            x,
            row["value"],
            width=width * 0.94,
            color=look(row["cc"]).colour,
            alpha=(0.85, 0.4)[min(rank, 1)],
            hatch=("", "///")[min(rank, 1)],
            edgecolor=INK,
            linewidth=0.4,
        )
        axes.plot([x, x], [row["low"], row["high"]], color=INK, linewidth=1.1)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.55, len(groups) - 0.45)
    axes.set_ylim(bottom=0)
    axes.axhline(0, color=FAINT, linewidth=0.6)
