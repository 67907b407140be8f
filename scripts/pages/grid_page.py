"""Writes ``validation-grid.md``: the simulator beside this machine's kernel, over a grid of flows.

    dumbbell validate --out FOLDER --json | python scripts/pages/grid_page.py docs

Nothing in the page is typed by hand. It may have another name: ``grid_page.py docs NAME``.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell._core import __version__
from dumbbell.checks.kernel_grid import METRICS, SCHEMA, table
from dumbbell.experiment.files import write_text
from dumbbell.experiment.quantities import TIME, parse_probability
from dumbbell.figures import save, styled
from dumbbell.figures.heat import heat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCALE: Final = 0.5
"""Ratios beyond 1 plus or minus this share have the last shade."""


def write(cells: pl.DataFrame, duration: str, docs: Path, name: str = "validation-grid") -> Path:
    """Writes the page ``NAME.md`` with ``figures/NAME.svg`` into `docs`; gives its path."""
    with styled():
        save(draw(cells), docs / "figures" / name)
    kernel = platform.release().partition("-")[0]
    shown = table(cells)
    parts = [
        _INTRODUCTION.format(version=__version__, kernel=kernel, duration=duration),
        shown.note,
        f"![Simulator over kernel](figures/{name}.svg)",
        _CAPTION,
        replace(shown, note="").markdown().rstrip(),
    ]
    write_text(docs / f"{name}.md", "\n\n".join(parts) + "\n")
    return docs / f"{name}.md"


def draw(cells: pl.DataFrame) -> Figure:
    """Heat maps of the ratios, simulator over kernel: a row an algorithm, a column a metric."""
    from matplotlib import pyplot as plt

    algorithms = cells["cc"].unique(maintain_order=True).to_list()
    known = _with_places(cells)
    figure, grid = plt.subplots(
        len(algorithms),
        len(METRICS),
        figsize=(3.2 * len(METRICS), 0.7 + 1.7 * len(algorithms)),
        squeeze=False,
        layout="constrained",
    )
    names = (_names(known, "rtt"), _names(known, "limit"))
    limits = "queue, loss" if known["loss"].n_unique() > 1 else "queue"
    for row, cc in enumerate(algorithms):
        for column, metric in enumerate(METRICS):
            axes = grid[row][column]
            some = known.filter(cc=cc, metric=metric)
            heat_map(
                axes,
                some,
                "rtt_place",
                "limit_place",
                "away",
                low=0,
                high=_SCALE,
                text=_ratio_text,
                names=names,
            )
            axes.set_title(f"{cc}: {METRICS[metric].title}", fontsize="small")
            axes.set_xlabel("RTT" if row == len(algorithms) - 1 else "")
            axes.set_ylabel(limits if column == 0 else "")
    return figure


def _ratio_text(row: dict[str, Any]) -> str:
    if row["ratio"] is None:
        return "—" if row["measured"] is None else "0"
    return f"{row['ratio']:.2f}{'' if row['within'] else ' ✗'}"


def _with_places(cells: pl.DataFrame) -> pl.DataFrame:
    """The settings as numbers along the axes, and how far each ratio is from 1.

    What limits a flow, the queue and losses, is on one axis.
    """
    away = (pl.col("ratio") - 1).abs().fill_null(_SCALE).clip(0, _SCALE)
    away = pl.when(pl.col("measured").is_null()).then(float("nan")).otherwise(away)
    several = cells["loss"].n_unique() > 1
    loss = pl.format(", {}", "loss") if several else pl.lit("")
    return cells.with_columns(
        limit=pl.col("queue") + loss,
        rtt_place=pl.col("rtt").map_elements(TIME.parse, pl.Int64).rank("dense"),
        limit_place=pl.struct(
            pl.col("loss").map_elements(parse_probability, pl.Float64),
            pl.col("queue").map_elements(_leading, pl.Float64),
        ).rank("dense"),
        away=away,
    )


def _leading(text: str) -> float:
    number = float(text.split(maxsplit=1)[0])
    return number if math.isfinite(number) else math.inf


def _names(cells: pl.DataFrame, key: str) -> Any:
    """How the places along an axis are written."""
    pairs = cells.select(f"{key}_place", key).unique()
    known = dict(zip(pairs[f"{key}_place"].to_list(), pairs[key].to_list(), strict=True))
    return lambda place: known[place]


_INTRODUCTION: Final = """\
# A grid of single flows, simulated and real

One flow alone on a droptail link, for {duration}: the simulator (dumbbell {version},
`stack = "linux"`) beside Linux {kernel} on the testbed. The links are the same code on both
sides; senders and receivers are the simulator's model on one and the kernel's TCP on the other.
Cells have the medians of the runs, simulator / kernel. Brackets have their ratio and, with
several runs of the kernel, its 95 % interval. The last column has the number of runs."""

_CAPTION: Final = """\
Simulator over kernel: the lighter, the further from 1. ✗ is beyond the tolerance."""


if __name__ == "__main__":
    validation = json.load(sys.stdin)
    rows = pl.DataFrame(validation["cells"], schema=SCHEMA)
    sys.stdout.write(f"{write(rows, validation['duration'], Path(sys.argv[1]), *sys.argv[2:])}\n")
