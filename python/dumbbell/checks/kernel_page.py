"""The page that a validation is: a table and a heat map, nothing in it typed by hand."""

from __future__ import annotations

import math
import platform
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dumbbell._core import __version__
from dumbbell.checks.kernel_grid import TOLERANCES
from dumbbell.experiment.files import write_text
from dumbbell.experiment.quantities import TIME, parse_probability
from dumbbell.figures import save, styled
from dumbbell.figures.heat import heat_map

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.checks.kernel_grid import Grid

TITLES: Final = {
    "goodput": "goodput",
    "queue_delay": "mean queueing delay",
    "retransmitted": "retransmitted packets",
}
"""What the metrics are called."""

_UNITS: Final = {"goodput": 1e6, "queue_delay": 1e-3, "retransmitted": 1.0}
_SCALE: Final = 0.5
"""Ratios beyond 1 plus or minus this share have the last shade."""


def write(grid: Grid, cells: pl.DataFrame, folder: Path, *, name: str = "validation-grid") -> Path:
    """Writes the page ``NAME.md`` with ``figures/NAME.svg`` into `folder`; gives its path."""
    with styled():
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        save(draw(cells), folder / "figures" / name)
    path = folder / f"{name}.md"
    parts = [
        _INTRODUCTION.format(
            version=__version__,
            kernel=platform.release().partition("-")[0],
            duration=grid.duration,
        ),
        _verdict(cells),
        f"![Simulator over kernel](figures/{name}.svg)",
        _CAPTION,
        table(cells),
    ]
    write_text(path, "\n\n".join(parts) + "\n")
    return path


def table(cells: pl.DataFrame) -> str:
    """All cells as a Markdown table: simulator / kernel (ratio; interval)."""
    head = ["algorithm", "rate", "RTT", "queue", "loss", *_heads(), "runs"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|---|---:|---:|---:|---:|---:|"]
    keys = ["cc", "rate", "rtt", "queue", "loss"]
    for setting, group in cells.group_by(keys, maintain_order=True):
        rows = {row["metric"]: row for row in group.iter_rows(named=True)}
        first = next(iter(rows.values()))
        invalid = f" ({first['invalid']} invalid)" if first["invalid"] else ""
        shown = [_shown(rows[metric]) for metric in TOLERANCES]
        line = [*map(str, setting), *shown, f"{first['runs']}{invalid}"]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def _heads() -> list[str]:
    units = {"goodput": ", Mbit/s", "queue_delay": ", ms", "retransmitted": ""}
    return [f"{TITLES[metric]}{units[metric]}" for metric in TOLERANCES]


def _shown(row: dict[str, Any]) -> str:
    unit = _UNITS[row["metric"]]
    ours = _digits(row["simulated"] / unit)
    if row["measured"] is None:
        return f"{ours} / —"
    beside = f"{ours} / {_digits(row['measured'] / unit)}"
    if row["ratio"] is None:
        return f"{beside} ✗"
    sure = "" if row["low"] is None else f"; {row['low']:.2f} to {row['high']:.2f}"
    return f"{beside} ({row['ratio']:.2f}{sure}){'' if row['within'] else ' ✗'}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _verdict(cells: pl.DataFrame) -> str:
    known = cells.drop_nulls("measured")
    parts = []
    for metric, limit in TOLERANCES.items():
        rows = known.filter(metric=metric)
        good = int(rows["within"].fill_null(value=False).sum())
        parts.append(f"{TITLES[metric]} within {limit:.0%} in {good} of {rows.height} cells")
    return f"Simulator and kernel agree: {'; '.join(parts)}. ✗ marks the others."


def draw(cells: pl.DataFrame) -> Figure:
    """Heat maps of the ratios, simulator over kernel: a row an algorithm, a column a metric."""
    from matplotlib import pyplot as plt

    algorithms = cells["cc"].unique(maintain_order=True).to_list()
    known = _with_places(cells)
    figure, grid = plt.subplots(
        len(algorithms),
        len(TOLERANCES),
        figsize=(3.2 * len(TOLERANCES), 0.7 + 1.7 * len(algorithms)),
        squeeze=False,
        layout="constrained",
    )
    names = (_names(known, "rtt"), _names(known, "limit"))
    limits = "queue, loss" if known["loss"].n_unique() > 1 else "queue"
    for row, cc in enumerate(algorithms):
        for column, metric in enumerate(TOLERANCES):
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
            axes.set_title(f"{cc}: {TITLES[metric]}", fontsize="small")
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
    return number if math.isfinite(number) else np.inf


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
