"""States over time: a band for every flow, a colour for every state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from matplotlib.patches import Patch

from dumbbell.figures.style import FAINT, INK, PAGE, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BBR: Final = {
    0: ("STARTUP", "#d55e00"),
    1: ("DRAIN", "#0072b2"),
    2: ("PROBE_BW", "#9fd3c0"),
    3: ("PROBE_RTT", INK),
    4: ("UP", "#e69f00"),
    5: ("DOWN", "#56b4e9"),
    6: ("CRUISE", "#cfe8df"),
    7: ("REFILL", "#cc79a7"),
}
"""BBR's states by their number: name and colour."""


def legend_columns(count: int, width: float) -> int:
    """How many of so many states a legend has side by side in a figure as wide as this, inches."""
    return max(min(count, int(width)), 1)  # an entry takes an inch, nearly


def states(axes: Axes, table: pl.DataFrame) -> None:
    """Draws a band for each flow, coloured by BBR's state.

    Args:
        axes: Where to draw.
        table: Columns ``name`` (of the flow), ``t`` (s, ascending within a flow) and ``state``, the
            number that ``inspect`` shows.
    """
    names = table["name"].unique(maintain_order=True).to_list()
    seen = set()
    for row, name in enumerate(names):
        flow = table.filter(pl.col("name") == name)
        stays = (
            flow.with_columns(stay=pl.col("state").rle_id())
            .group_by("stay", maintain_order=True)
            .agg(pl.col("t").first(), pl.col("state").first().cast(pl.Int64))
        )
        ends = [*stays["t"][1:], flow["t"][-1]]
        for begin, end, state in zip(stays["t"], ends, stays["state"], strict=True):
            _, colour = BBR.get(state, ("", FAINT))
            axes.broken_barh([(begin, end - begin)], (row - 0.4, 0.8), color=colour, linewidth=0)
            seen.add(state)
    axes.set_yticks(range(len(names)), [named(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.set_xlabel("time (s)")
    figure = axes.get_figure(root=True)
    width = figure.get_figwidth() if figure is not None else PAGE
    patches = [Patch(color=BBR[state][1], label=BBR[state][0]) for state in BBR if state in seen]
    axes.legend(
        handles=patches,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=legend_columns(len(patches), width),
        handlelength=0.9,
        columnspacing=0.9,
    )
