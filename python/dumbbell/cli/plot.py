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
    """Panels from top to bottom: windows, throughputs, round-trip times, a queue for each link."""
    links = result.links["link"].unique(maintain_order=True).to_list()
    figure, rows = figures.panels(3 + len(links), width=figures.PAGE, height=1.7, share_x=True)
    axes = [row[0] for row in rows]
    figures.windows(axes[0], _flows(result, result.series))
    figures.throughputs(axes[1], _flows(result, metrics.windows(result)))
    figures.round_trips(axes[2], _flows(result, result.series))
    for panel, link in zip(axes[3:], links, strict=True):
        figures.queue(panel, result.links.filter(pl.col("link") == link))
        panel.set_ylabel(f"{link}\nqueue (kB)" if len(links) > 1 else "queue (kB)")
    for panel in axes[:-1]:
        panel.set_xlabel("")
    figures.legend(axes[0])
    return figure


def _flows(result: Result, table: pl.DataFrame) -> pl.DataFrame:
    names = result.flow_names[:MOST_FLOWS]
    return table.rename({"flow": "name"}).filter(pl.col("name").cast(pl.String).is_in(names))
