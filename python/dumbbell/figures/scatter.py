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
    """Draws every algorithm of every table, a panel each; up and to the left is better.

    Rows have ``cc``, ``throughput`` (bit/s) and ``queue_delay_mean`` (s). The algorithms that are
    `named` are drawn large; of the others a few have their names.
    """
    columns = 2 if len(tables) > 1 else 1
    with styled():
        figure, _ = panels(-(-len(tables) // columns), columns, width=PAGE, height=2.4)
        for axes, (title, rows) in zip(figure.axes, tables.items(), strict=False):
            _panel(axes, title, rows, named)
        for axes in figure.axes[len(tables) :]:
            axes.set_axis_off()
        return figure


def _panel(axes: Axes, title: str, rows: Sequence[Mapping[str, Any]], named: Sequence[str]) -> None:
    for row in rows:
        if row["queue_delay_mean"] is None:
            continue
        style, chosen = style_of(row["cc"]), row["cc"] in named
        at = (max(1e3 * row["queue_delay_mean"], 0.01), row["throughput"] / 1e6)
        landmark = chosen or row["cc"] in _KNOWN
        axes.scatter(
            *at,
            s=60 if chosen else 16,
            marker="*" if chosen else style.marker,
            color=INK if chosen else style.colour if landmark else FAINT,
            zorder=3 if chosen else 2,
            linewidths=0,
        )
        if landmark:
            look: dict[str, Any] = {"size": 6.5, "weight": "bold" if chosen else "normal"}
            axes.annotate(style.label, at, (4, 3), textcoords="offset points", **look)
    delays = [1e3 * (row["queue_delay_mean"] or 0) for row in rows]
    if max(delays, default=0) > 10 * min(filter(None, delays), default=1):
        axes.set_xscale("log")
    axes.margins(0.15, 0.12)
    axes.set_ylim(0, 1.15e-6 * max(row["throughput"] for row in rows) or 1)
    axes.set_title(fill(title, 52), size=7)
    axes.set_xlabel("mean queueing delay (ms)")
    axes.set_ylabel("throughput (Mbit/s)")
