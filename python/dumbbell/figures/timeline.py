"""Quantities over time: a line for each flow; states as a band for each flow.

Each function draws onto the axes it is given and takes the rows of one seed: columns ``flow`` and
``cc``, ``t`` (s), and the quantity in the units of a result's tables. A column ``name``, if there
is one, says what the lines are called.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from matplotlib.patches import Patch

from dumbbell.experiment.model import without_options
from dumbbell.figures.style import (
    FAINT,
    INK,
    PAGE,
    PAPER,
    legend_above,
    line_styles,
    named,
    style_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

BBR: Final = {
    0: ("STARTUP", "#d55e00"),
    1: ("DRAIN", "#0072b2"),
    2: ("PROBE_BW", "#9fd3c0"),
    3: ("PROBE_RTT", INK),
    4: ("UP", "#e69f00"),
    5: ("DOWN", "#8c564b"),
    6: ("CRUISE", "#cfe8df"),
    7: ("REFILL", "#cc79a7"),
}
"""BBR's states by their number: name and colour; neighbours differ in lightness too."""

C4: Final = {
    0: ("INITIAL", "#d55e00"),
    1: ("RECOVERY", "#0072b2"),
    2: ("CRUISING", "#cfe8df"),
    3: ("PROBING", "#e69f00"),
    4: ("PUSHING", "#cc79a7"),
}
"""C4's states; those that are like one of BBR's have its colour."""

STATES: Final = (*BBR.values(), *C4.values())
"""The names and the colours of all states."""

_MARKS: Final = 6


def windows(axes: Axes, series: pl.DataFrame) -> None:
    """Draws congestion windows, packets (``cwnd``)."""
    flows(axes, series, "cwnd")
    axes.set_ylabel("cwnd (packets)")


def throughputs(axes: Axes, series: pl.DataFrame) -> None:
    """Draws throughputs (``throughput``, bit/s) in Mbit/s."""
    flows(axes, series, "throughput", scale=1e-6)
    axes.set_ylabel("throughput (Mbit/s)")


def flows(
    axes: Axes,
    series: pl.DataFrame,
    quantity: str,
    *,
    scale: float = 1.0,
    only: Collection[str] | None = None,
) -> None:
    """Draws ``quantity`` x ``scale`` over ``t``, one line for each flow.

    `dumbbell.figures.line_styles` says how. Flows that look alike have one entry in a legend. With
    `only`, those flows are drawn, and look as they do among all.

    Raises:
        ValueError: If there are several seeds, or no column that names the flows.
    """
    lines = list(series.group_by([_label_column(series), "cc"], maintain_order=True))
    algorithms = [str(cc) for (_, cc), _ in lines]
    styles = line_styles(algorithms)
    count, named_together = Counter(style.look for style in styles), set()
    for ((name, cc), flow), drawn in zip(lines, styles, strict=True):
        if only is not None and str(flow["flow"][0]) not in only:
            continue
        label = named(name)
        if count[drawn.look] > 1:
            others = f"{count[drawn.look]} others, {style_of(without_options(str(cc))).label}"
            label = "_nolegend_" if drawn.look in named_together else others
            named_together.add(drawn.look)
        t, values = flow["t"].to_numpy(), flow[quantity].to_numpy() * scale
        is_alone = np.isfinite(values).sum() == 1  # one sample makes no line
        axes.plot(
            t,
            values,
            color=drawn.colour,
            linewidth=drawn.width,
            linestyle=drawn.dash,
            marker=drawn.marker,
            markerfacecolor=PAPER if drawn.rank else drawn.colour,
            markevery=None if is_alone else _spaced(t, drawn.rank),
            label=label,
        )
    axes.autoscale(axis="y")  # of all that shares this axis
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")


def _spaced(t: np.ndarray, rank: int) -> list[int]:
    """Indices of a few points, evenly spaced in time and different from flow to flow."""
    if len(t) < _MARKS:
        return list(range(len(t)))
    rounds, place = divmod(rank, 4)
    places = (np.arange(_MARKS) + (place + 1 - rounds % 4 / 4) / 4) / _MARKS
    found = np.searchsorted(t, t[0] + places * (t[-1] - t[0]))
    # Rounding may put the last place behind the last point.
    return list(map(int, np.minimum(found, len(t) - 1)))


def legend(
    axes: Axes, columns: int | None = None, *, of: Sequence[Axes] = (), title: str = ""
) -> None:
    """Puts the legend of the lines in `axes`, or `of` several panels, above the panel.

    There it hides no data. A line of it has so many `columns`, or as many as have room.
    """
    entries: dict[str, Artist] = {}
    for panel in of or (axes,):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entry = 0.6 + 0.06 * max(map(len, entries), default=0)
    columns = columns or max(1, int(_width(axes) / entry))
    look: dict[str, Any] = {"columnspacing": 1.0, "handlelength": 2.6}  # dashes are seen
    look |= {"title": title, "title_fontsize": "medium"} if title else {}
    legend_above(axes, entries.values(), entries, ncols=columns, **look)


def moment(axes: Axes, t: float, text: str, *, row: int = 0) -> None:
    """Marks the moment `t` (s) with a dotted line and a word or two at the top of the panel.

    Words of neighbours do not overlap if each stays another `row` of text below the top.
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


def _width(axes: Axes) -> float:
    """About how much of the figure's width a panel has, inches."""
    figure, place = axes.get_figure(root=True), axes.get_subplotspec()
    whole = PAGE if figure is None else figure.get_figwidth()
    return whole if place is None else whole / place.get_gridspec().ncols


def legend_columns(count: int, width: float) -> int:
    """How many of so many states a legend has side by side in a figure as wide as this, inches."""
    return max(min(count, int(width)), 1)  # an entry takes an inch, nearly


def states(axes: Axes, table: pl.DataFrame) -> None:
    """Draws a band for each flow, coloured by its algorithm's state; raises as `flows`.

    The columns are ``flow``, ``cc`` (BBR if missing), ``t`` (s, ascending within a flow) and
    ``state``, the number that ``inspect`` shows.
    """
    bands = list(table.group_by(_label_column(table), maintain_order=True))
    seen = set()
    for row, (_, flow) in enumerate(bands):
        known = states_of(str(flow["cc"][0])) if "cc" in flow.columns else BBR
        for begin, end, state in state_spans(flow):
            name, colour = known.get(state, ("", FAINT))
            seen.add(name)
            axes.broken_barh([(begin, end - begin)], (row - 0.4, 0.8), color=colour, linewidth=0)
    axes.set_yticks(range(len(bands)), [named(name) for (name,), _ in bands])
    axes.set_ylim(len(bands) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.set_xlabel("time (s)")
    shown = {name: Patch(color=colour) for name, colour in STATES if name in seen}
    legend_above(
        axes,
        shown.values(),
        shown,
        ncols=legend_columns(len(shown), _width(axes)),
        handlelength=0.9,
        columnspacing=0.9,
    )


def states_of(cc: str) -> dict[int, tuple[str, str]]:
    """An algorithm's states by their number, if it is a version of BBR or C4; otherwise none.

    A user's own algorithm is one of BBR if the name of its class says so.
    """
    name = without_options(cc).rpartition(":")[2].lower()
    return C4 if name == "c4" else BBR if "bbr" in name else {}


def states_in(internals: pl.DataFrame) -> pl.DataFrame:
    """The states among the internals of flows of BBR and C4: columns flow, cc, t, state."""
    known = [cc for cc in internals["cc"].unique() if states_of(cc)]
    is_state = (pl.col("name") == "state") & pl.col("cc").cast(pl.String).is_in(known)
    return internals.filter(is_state).select("flow", "cc", "t", state="value")


def state_spans(flow: pl.DataFrame) -> Iterator[tuple[float, float, int]]:
    """The begin and end (s) and the number of each state of a flow: columns ``t``, ``state``."""
    stays = flow.filter(pl.col("state").rle_id().diff().fill_null(1) != 0)
    ends = [*stays["t"][1:], flow["t"][-1]]
    return zip(stays["t"], ends, stays["state"].cast(pl.Int64), strict=True)


def _label_column(table: pl.DataFrame) -> str:
    """The column that names the lines of a table with the rows of one seed; raises as `flows`."""
    if "seed" in table.columns and table["seed"].n_unique() > 1:
        seeds = table["seed"].unique().sort().to_list()
        which = ", ".join(map(str, seeds[:5])) + (", ..." if len(seeds) > 5 else "")
        raise ValueError(
            f"a figure over time shows one seed, and these rows have {which}; "
            "choose one with result.of_seed(...)"
        )
    for column in ("name", "flow"):
        if column in table.columns:
            return column
    raise ValueError(f'a column "flow" is missing; there are {", ".join(table.columns)}')
