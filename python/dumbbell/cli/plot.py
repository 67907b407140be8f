"""``dumbbell plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures, metrics
from dumbbell.cli.output import print_line
from dumbbell.errors import ResultError
from dumbbell.results import Result

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

MOST_FLOWS = 12
"""More flows than this cannot be told apart: the first ones are drawn."""


def plot_result(folder: Path, *, out: Path | None, seed: int | None) -> None:
    """Draws windows, throughputs, round-trip times and queues of one seed over time."""
    result = Result.load(folder)
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds))
        raise ResultError(f"{folder}: has no seed {seed}; choose from {known}")
    stem = folder / "figure" if out is None else out.with_suffix("")
    try:
        with figures.styled():
            figures.save(draw(result.of_seed(result.seeds[0] if seed is None else seed)), stem)
    except OSError as error:
        raise ResultError(f"{stem}.svg: cannot be written: {error.strerror}") from None
    print_line(f"{stem}.svg\n{stem}.png")


def draw(result: Result) -> Figure:
    """Panels from top to bottom: windows, throughputs, round-trip times, a queue for each link.

    Under the throughputs, the states of the flows that have any, as bands.
    """
    links = result.links["link"].unique(maintain_order=True).to_list()
    bands = _states(result)
    thin = [0.3 + 0.14 * bands["name"].n_unique()] if bands.height else []
    heights = [1.7, 1.7, *thin, 1.7, *(1.7 for _ in links)]
    figure, rows = figures.panels(
        len(heights),
        width=figures.PAGE,
        height=sum(heights) / len(heights),
        share_x=True,
        row_heights=heights,
    )
    axes = [row[0] for row in rows]
    figures.windows(axes[0], _flows(result, result.series))
    figures.throughputs(axes[1], _flows(result, metrics.windows(result)))
    if bands.height:
        figures.states(axes.pop(2), bands)
    figures.round_trips(axes[2], _flows(result, result.series))
    for panel, link in zip(axes[3:], links, strict=True):
        figures.queue(panel, result.links.filter(pl.col("link") == link))
        panel.set_ylabel(f"{link}\nqueue (kB)" if len(links) > 1 else "queue (kB)")
    for row in rows[:-1]:
        row[0].set_xlabel("")
    figures.legend(axes[0])
    return figure


def _states(result: Result) -> pl.DataFrame:
    """The states of the flows that show any: columns name, t, state."""
    shown = result.internals.filter(pl.col("name") == "state").select(
        "flow", "t", state=pl.col("value")
    )
    return _flows(result, shown)


def _flows(result: Result, table: pl.DataFrame) -> pl.DataFrame:
    names = result.flow_names[:MOST_FLOWS]
    return table.rename({"flow": "name"}).filter(pl.col("name").cast(pl.String).is_in(names))
