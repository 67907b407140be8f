"""Quantities over time, one line a flow.

Each function draws onto the axes it is given and takes a Polars frame with the columns ``name``
and ``cc`` of the flow, ``t`` (s), and the quantity in the units of a result's tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dumbbell.figures.style import FAINT, named, stroke

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

_MARKS = 6


def windows(axes: Axes, series: pl.DataFrame) -> None:
    """Draws congestion windows, packets (``cwnd``)."""
    flows(axes, series, "cwnd")
    axes.set_ylabel("cwnd (packets)")


def throughputs(axes: Axes, series: pl.DataFrame) -> None:
    """Draws throughputs (``throughput``, bit/s) in Mbit/s."""
    flows(axes, series, "throughput", scale=1e-6)
    axes.set_ylabel("throughput (Mbit/s)")


def round_trips(axes: Axes, series: pl.DataFrame) -> None:
    """Draws smoothed round-trip times (``srtt``, s) in milliseconds."""
    flows(axes, series, "srtt", scale=1e3)
    axes.set_ylabel("RTT (ms)")


def queue(axes: Axes, links: pl.DataFrame) -> None:
    """Draws the bytes that wait at a link (``t``, ``queue_bytes``) in kB."""
    axes.plot(
        links["t"].to_numpy(), links["queue_bytes"].to_numpy() / 1e3, color=FAINT, linewidth=0.7
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("queue (kB)")
    axes.set_xlabel("time (s)")


def flows(axes: Axes, series: pl.DataFrame, quantity: str, *, scale: float = 1.0) -> None:
    """Draws ``quantity`` x ``scale`` over ``t``, one line for each flow.

    How is what `dumbbell.figures.stroke` says.
    """
    seen: dict[str, int] = {}
    for (name, cc), flow in series.group_by(["name", "cc"], maintain_order=True):
        rank = seen.get(str(cc), 0)
        seen[str(cc)] = rank + 1
        drawn = stroke(str(cc), rank)
        t, values = flow["t"].to_numpy(), flow[quantity].to_numpy() * scale
        is_alone = np.isfinite(values).sum() == 1  # one sample makes no line
        axes.plot(
            t,
            values,
            color=drawn.colour,
            linewidth=drawn.width,
            linestyle=drawn.dash,
            marker=drawn.marker or ("o" if is_alone else None),
            markevery=None if is_alone else _spaced(t, rank),
            label=named(name),
        )
    axes.autoscale(axis="y")  # of all that shares this axis
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")


def legend(axes: Axes, columns: int = 3) -> None:
    """Puts the legend above the panel, where it hides no data, `columns` entries a line."""
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, columnspacing=1.0)


def warning(axes: Axes, text: str) -> None:
    """Says above the panel, to the left, that what it shows is not to be trusted."""
    axes.annotate(
        text,
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        color="#d55e00",
        fontweight="bold",
    )


def moment(axes: Axes, t: float, text: str, *, row: int = 0) -> None:
    """Marks a moment with a dotted line and a word at the top of the panel.

    Args:
        axes: Where to draw.
        t: The moment, s.
        text: One or two words.
        row: Lines of text to stay below the top, so that neighbours do not overlap.
    """
    axes.axvline(t, color=FAINT, linewidth=0.9, linestyle=(0, (1, 1.5)))
    axes.annotate(
        text,
        (t, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(2.5, -2 - 9 * row),
        textcoords="offset points",
        fontsize=7,
        va="top",
    )


def _spaced(t: np.ndarray, rank: int) -> list[int]:
    """Indices of a few points, evenly spaced in time and different from flow to flow."""
    if len(t) < _MARKS:
        return list(range(len(t)))
    places = (np.arange(_MARKS) + (rank + 1) / 4) / _MARKS
    return [int(i) for i in np.searchsorted(t, t[0] + places * (t[-1] - t[0]))]
