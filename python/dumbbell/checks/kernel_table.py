"""The table of a grid of flows: the simulator beside the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dumbbell.checks.kernel_grid import METRICS
from dumbbell.display import Column, Table

if TYPE_CHECKING:
    import polars as pl


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
