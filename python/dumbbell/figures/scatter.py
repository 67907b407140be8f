"""Throughput over queueing delay, a panel a scenario: where an algorithm stands among others."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from dumbbell.figures.style import FAINT, INK, PAGE, panels, style_of, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KNOWN: Final = frozenset({"reno", "cubic", "bbr", "bbr3", "vegas", "copa"})
"""The landmarks among the others, which are named."""


def throughput_over_delay(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], named: Sequence[str]
) -> Figure:
    """Draws every algorithm of every table; up and to the left is better.

    Args:
        tables: For every panel its title and rows with ``cc``, ``throughput`` (bit/s) and
            ``queue_delay_mean`` (s).
        named: The algorithms in question, drawn large; of the others a few are named.
    """
    columns = 2 if len(tables) > 1 else 1
    rows = -(-len(tables) // columns)
    with styled():
        figure, grid = panels(rows, columns, width=PAGE, height=2.4)
        axes = [cell for line in grid for cell in line]
        for axis, (title, table) in zip(axes, tables.items(), strict=False):
            _panel(axis, title, table, named)
        for axis in axes[len(tables) :]:
            axis.set_axis_off()
        return figure


def _panel(
    axis: Axes, title: str, table: Sequence[Mapping[str, Any]], named: Sequence[str]
) -> None:
    for row in table:
        if row["queue_delay_mean"] is None:
            continue
        cc = row["cc"]
        appearance, chosen = style_of(cc), cc in named
        at = (max(1e3 * row["queue_delay_mean"], 0.01), row["throughput"] / 1e6)
        landmark = chosen or cc in _KNOWN
        axis.scatter(
            *at,
            s=60 if chosen else 16,
            marker="*" if chosen else appearance.marker,
            color=INK if chosen else appearance.colour if landmark else FAINT,
            zorder=3 if chosen else 2,
            linewidths=0,
        )
        if landmark:
            weight = "bold" if chosen else "normal"
            axis.annotate(
                appearance.label, at, (4, 3), textcoords="offset points", size=6.5, weight=weight
            )
    delays = [1e3 * (row["queue_delay_mean"] or 0) for row in table]
    if max(delays, default=0) > 10 * min(filter(None, delays), default=1):
        axis.set_xscale("log")
    axis.margins(0.15, 0.12)
    axis.set_ylim(0, 1.15e-6 * max(row["throughput"] for row in table) or 1)
    axis.set_title(fill(title, 52), size=7)
    axis.set_xlabel("mean queueing delay (ms)")
    axis.set_ylabel("throughput (Mbit/s)")
