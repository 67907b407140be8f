"""Throughput over queueing delay, a panel a scenario: where an algorithm stands among others."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D

from dumbbell.figures.style import FAINT, INK, PAGE, panels, style_of, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KNOWN: Final = frozenset({"reno", "cubic", "bbr", "bbr3", "vegas", "copa"})
"""The landmarks among the others, which have their names."""


def throughput_over_delay(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], named: Sequence[str]
) -> Figure:
    """Draws every algorithm of every table, a panel each; up and to the left is better.

    Rows have ``cc``, ``throughput`` (bit/s) and ``queue_delay_mean`` (s). A legend has
    the algorithms that are `named`, which are drawn large, and a few others.
    """
    columns = 2 if len(tables) > 1 else 1
    known = dict.fromkeys(row["cc"] for rows in tables.values() for row in rows)
    landmarks = [*named, *(cc for cc in known if cc in _KNOWN and cc not in named)]
    entries = {style_of(cc).label: _look(cc, named) for cc in landmarks if cc in known}
    entries |= {"others": _look("", named)} if len(known) > len(entries) else {}
    with styled():
        figure, _ = panels(-(-len(tables) // columns), columns, width=PAGE, height=2.4)
        for axes, (title, rows) in zip(figure.axes, tables.items(), strict=False):
            _panel(axes, title, rows, named)
        for axes in figure.axes[len(tables) :]:
            axes.set_axis_off()
        marks = [Line2D([], [], linestyle="", **look) for look in entries.values()]
        columns = int(PAGE / (0.5 + 0.07 * max(map(len, entries))))
        figure.legend(marks, list(entries), loc="outside upper center", ncols=max(columns, 1))
        return figure


def _look(cc: str, named: Sequence[str]) -> dict[str, Any]:
    style, chosen = style_of(cc), cc in named
    shown = chosen or cc in _KNOWN
    return {
        "marker": style.marker if shown else ".",
        "markersize": 7 if chosen else 4,
        "color": style.colour if shown else FAINT,
        "markeredgecolor": INK if chosen else "none",
        "zorder": 3 if chosen else 2,
    }


def _panel(axes: Axes, title: str, rows: Sequence[Mapping[str, Any]], named: Sequence[str]) -> None:
    for row in rows:
        if row["queue_delay_mean"] is None:
            continue
        at = (max(1e3 * row["queue_delay_mean"], 0.01), row["throughput"] / 1e6)
        axes.plot(*at, linestyle="", **_look(row["cc"], named))
    delays = [1e3 * (row["queue_delay_mean"] or 0) for row in rows]
    if max(delays, default=0) > 10 * min(filter(None, delays), default=1):
        axes.set_xscale("log")
    axes.margins(0.15, 0.12)
    axes.set_ylim(0, 1.15e-6 * max(row["throughput"] for row in rows) or 1)
    axes.set_title(fill(title, 52), size=7)
    axes.set_xlabel("mean queueing delay (ms)")
    axes.set_ylabel("throughput (Mbit/s)")
