"""The simulator against the kernel: a grid of single flows, run both ways, and how far they differ.

A cell is an algorithm on a link: rate, round-trip time, queue, random losses. The kernel's side is
run several times with real packets, the simulator's with as many seeds. What was measured stays in
a folder, so that a grid that was interrupted goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

import polars as pl

from dumbbell.display import Column, Table
from dumbbell.engine import measurements
from dumbbell.engine.runner import Options, run_all
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.metrics.intervals import median

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.results.result import Result


class Metric(NamedTuple):
    """What is compared of a flow, and how it is shown."""

    title: str
    tolerance: float  # how far simulator and kernel may differ, as a share of the kernel's median
    unit: str = ""  # the unit that it is shown in
    scale: float = 1.0  # that unit in the unit of `compare`


METRICS: Final = {
    "goodput": Metric("goodput", 0.03, "Mbit/s", 1e6),
    "queue_delay": Metric("mean queueing delay", 0.10, "ms", 1e-3),
    "retransmitted": Metric("retransmitted packets", 0.25),
}
"""What is compared, by the names in `compare`."""


class Cell(NamedTuple):
    """One flow of an algorithm, alone on a link."""

    cc: str
    rate: str
    rtt: str
    queue: str
    loss: str = "0"

    @property
    def id(self) -> str:
        """Its name, which names folders too."""
        parts = (*self[:-1], *([] if self.loss == "0" else [f"loss{self.loss}"]))
        return "-".join(part.replace(" ", "").replace("/", "") for part in parts)

    def experiment(self, duration: str, seeds: list[int]) -> Experiment:
        """The experiment that it is."""
        return Experiment(
            title=f"{self.cc} at {self.rate}, {self.rtt}, {self.queue}, loss {self.loss}",
            duration=duration,
            seeds=seeds,
            internals=False,
            links=[Link(name="bottleneck", rate=self.rate, queue=self.queue, loss=self.loss)],
            flows=[Flow(name="flow", cc=self.cc, rtt=self.rtt)],
        )


@dataclass(frozen=True)
class Grid:
    """All combinations of some settings, each run for a time with real packets, several times."""

    cc: Sequence[str] = ("reno", "cubic", "bbr")
    rate: Sequence[str] = ("100 Mbit/s",)
    rtt: Sequence[str] = ("10 ms", "20 ms", "50 ms", "100 ms")
    queue: Sequence[str] = ("0.5 BDP", "1 BDP", "2 BDP")
    loss: Sequence[str] = ("0",)
    duration: str = "60 s"
    repeats: int = 3

    @property
    def cells(self) -> list[Cell]:
        """The cells, algorithm by algorithm."""
        axes = (self.cc, self.rate, self.rtt, self.queue, self.loss)
        return [Cell(*chosen) for chosen in product(*axes)]

    @property
    def seeds(self) -> list[int]:
        """The numbers of the repetitions, which are the simulator's seeds."""
        return list(range(1, self.repeats + 1))


def measure(
    grid: Grid, folder: Path, *, overwrite: bool = False, **options: Unpack[Options]
) -> None:
    """Runs with real packets what `folder` does not hold yet: every cell once, then again.

    Measurements of other settings, or of another kernel, are replaced with `overwrite`, and are an
    `OverwriteError` without. For the `options` see `measurements.measure`.
    """
    wanted = dict(_run(grid, folder, cell, seed) for seed in grid.seeds for cell in grid.cells)
    lacking = measurements.missing(wanted, overwrite=overwrite, repeat_invalid=True)
    measurements.measure(lacking, **(options | {"fresh": overwrite}))


def _run(grid: Grid, folder: Path, cell: Cell, seed: int) -> tuple[Path, Experiment]:
    """The folder of a run, and its experiment."""
    return folder / "runs" / f"{cell.id}-{seed}", cell.experiment(grid.duration, [seed])


def compare(grid: Grid, folder: Path, *, jobs: int | None = None) -> pl.DataFrame:
    """Simulates every cell that was measured, and sets both beside each other.

    One row per cell and metric: the cell's settings, ``metric``, ``simulated`` and ``measured``
    (medians), ``ratio`` (simulated over measured) with ``low`` and ``high`` (its 95 % interval by
    that of the measured median), ``within`` (whether it is within the metric's tolerance),
    ``runs`` (how many count), ``invalid`` (how many do not).
    """
    found = {}
    for cell in grid.cells:
        runs = [measurements.measurement(*_run(grid, folder, cell, seed)) for seed in grid.seeds]
        found[cell] = [run for run in runs if run is not None]
    cells = [cell for cell in grid.cells if found[cell]]
    simulated = run_all([cell.experiment(grid.duration, grid.seeds) for cell in cells], jobs=jobs)
    rows = []
    for cell, result in zip(cells, simulated, strict=True):
        valid = [run for run in found[cell] if not run.invalid_runs]
        ours, kernels = _achieved([result]), _achieved(valid)
        count = {"runs": len(valid), "invalid": len(found[cell]) - len(valid)}
        for name, metric in METRICS.items():
            row = cell._asdict() | count | {"metric": name}
            rows.append(row | _beside(ours[name], kernels[name], metric.tolerance))
    return pl.DataFrame(rows, schema=SCHEMA)


SCHEMA: Final = {
    **dict.fromkeys(("cc", "rate", "rtt", "queue", "loss", "metric"), pl.String),
    **dict.fromkeys(("simulated", "measured", "ratio", "low", "high"), pl.Float64),
    "within": pl.Boolean,
    "runs": pl.Int64,
    "invalid": pl.Int64,
}
"""The columns of `compare`."""


def _achieved(results: Sequence[Result]) -> dict[str, list[float]]:
    """What single flows achieved: goodput (bit/s), mean queueing delay (s), retransmissions."""
    columns = {
        "goodput": 8 * pl.col("received") / (pl.col("end") - pl.col("start")),
        "queue_delay": pl.col("queue_delay_mean"),
        "retransmitted": pl.col("retransmitted").cast(pl.Float64),
    }
    tables = [result.flows.select(**columns) for result in results]
    return {name: [value for table in tables for value in table[name]] for name in columns}


def _beside(ours: list[float], kernels: list[float], limit: float) -> dict[str, Any]:
    """The columns of `compare` about two groups of runs; without measurements only ours."""
    left = median(ours)
    if not kernels:
        return {"simulated": left.value}
    right = median(kernels)
    ratio = _ratio(left.value, right.value)
    is_within = ratio is not None and abs(ratio - 1) <= limit
    row = {"simulated": left.value, "measured": right.value, "ratio": ratio, "within": is_within}
    if len(kernels) > 1:
        row |= {"low": _ratio(left.value, right.high), "high": _ratio(left.value, right.low)}
    return row


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    """Ours over theirs; 1 if both are 0."""
    if ours is None or theirs is None:
        return None
    if theirs == 0:
        return 1.0 if ours == 0 else None
    return ours / theirs


def table(cells: pl.DataFrame) -> Table:
    """All cells of `kernel_grid.compare`: simulator / kernel (ratio; 95 % interval).

    The note has how many agree.
    """
    heads = [", ".join(filter(None, (one.title, one.unit))) for one in METRICS.values()]
    columns = [
        *map(Column, ("algorithm", "rate", "RTT", "queue")),
        *(Column(title, number=True) for title in ("loss", *heads, "runs")),
    ]
    lines = []
    settings = ("cc", "rate", "rtt", "queue", "loss")
    for setting, group in cells.group_by(settings, maintain_order=True):
        rows = {row["metric"]: row for row in group.iter_rows(named=True)}
        runs, invalid = group["runs"][0], group["invalid"][0]
        count = f"{runs} ({invalid} invalid)" if invalid else f"{runs}"
        lines.append([*map(str, setting), *(_shown(rows[metric]) for metric in METRICS), count])
    return Table(columns, lines, _agreement(cells))


def _shown(row: dict[str, Any]) -> str:
    unit = METRICS[row["metric"]].scale
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


def _agreement(cells: pl.DataFrame) -> str:
    known = cells.drop_nulls("measured")
    parts = []
    for name, metric in METRICS.items():
        rows = known.filter(metric=name)
        good = f"{rows['within'].sum()} of {rows.height} cells"
        parts.append(f"{metric.title} within {metric.tolerance:.0%} in {good}")
    return f"Simulator and kernel agree: {'; '.join(parts)}. ✗ marks the others."
