"""``dumbbell sweep``: a progress bar, what comes out while it runs, and what came out."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from dumbbell.cli.output import (
    print_json,
    print_line,
    print_table,
    tell_warnings,
    too_wide,
)
from dumbbell.display import Column, Table, format_setting
from dumbbell.engine.progress import Progress, silent
from dumbbell.errors import in_file
from dumbbell.results.summary import means
from dumbbell.results.warnings import WITHOUT_ECN, is_dctcp, silent_flows
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import METRICS, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dumbbell.metrics.intervals import Until
    from dumbbell.sweeps.dataset import Dataset
    from dumbbell.sweeps.drive import Swept

MOST_POINTS: Final = 24
"""More points than this are not printed."""

_MOST_LIVE: Final = 8
"""The axis that is shown while the sweep runs has at most as many values."""

_COLUMNS: Final = ("throughput", "utilisation", "queue_delay_mean", "retransmission_share", "jain")


def sweep_file(
    file: Path,
    *,
    out: Path | None,
    seeds: int | None,
    jobs: int | None,
    dask: str | None,
    until: Until | None,
    series: bool,
    assignments: list[str],
    json: bool,
) -> None:
    """Runs an experiment file along its axes, and prints what came out at each point."""
    began = time.perf_counter()
    folder = out or Path("results") / file.stem
    with in_file(file):
        sweep = Sweep.load(file, overrides=assignments)
    units = {name: axis.unit for name, axis in zip(sweep.names, sweep.axes, strict=True)}
    with in_file(file), _live(file.name, units) as (progress, finished):
        swept = run_sweep(
            sweep,
            folder,
            seeds=seeds,
            jobs=jobs,
            dask=dask,
            until=until,
            series=series,
            progress=progress,
            finished=finished,
        )
    wall = time.perf_counter() - began
    runs = swept.dataset.table("runs")
    tell_warnings(_warnings(sweep, swept.dataset))
    if json:
        meta = {"runs": swept.total, "made": swept.made, "wall_s": wall, "out": str(folder)}
        print_json({"points": _points(swept.dataset, runs), "meta": meta | _still(swept, until)})
        return
    _print(swept.dataset, runs)
    print_line(f"\n{swept.total:,} runs, {swept.before:,} of them there before, in {wall:.1f} s")
    if swept.loose and until:
        print_line(too_wide(until, f"At {swept.loose:,} point(s) "))
    print_line(f"The sweep is in {folder}")


def _warnings(sweep: Sweep, dataset: Dataset) -> list[str]:
    flows = dataset.table("flows")
    without = any(map(is_dctcp, flows["cc"].unique())) and '"accurate"' not in sweep.text
    return [WITHOUT_ECN] * without + silent_flows(flows)


def _still(swept: Swept, until: Until | None) -> dict[str, Any]:
    return {} if until is None else {"until": vars(until), "loose": swept.loose}


def _points(dataset: Dataset, runs: pl.DataFrame) -> list[dict[str, Any]]:
    """For JSON, a row a point: the axes, how many seeds, and the metrics' means."""
    means = runs.group_by("point", *dataset.axes, maintain_order=True).agg(
        pl.len().alias("seeds"), pl.col(METRICS).mean()
    )
    return means.to_dicts()


def _print(dataset: Dataset, runs: pl.DataFrame) -> None:
    axes = dataset.axes
    points = runs.select("point", *axes).unique(maintain_order=True)
    counts = sorted(set(runs.group_by("point").len()["len"]))
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    below = f" (mean of {many} seeds, below it its 95 % interval)" if counts != [1] else ""
    shown = runs.filter(pl.col("point").is_in(points["point"].head(MOST_POINTS).implode()))
    settings = [
        [format_setting(row[name], said["unit"]) for name, said in axes.items()]
        for row in points.head(MOST_POINTS).iter_rows(named=True)
    ]
    metrics = [cells[1:] for cells in means(shown, ["point"], _COLUMNS)]
    columns = [*map(Column, axes), *map(Column.of, _COLUMNS)]
    table = Table(columns, [[*a, *b] for a, b in zip(settings, metrics, strict=True)])
    print_table(f"{points.height:,} point(s){below}", table)
    if points.height > MOST_POINTS:
        print_line(f"... and {points.height - MOST_POINTS:,} more; dumbbell query shows them")


@contextmanager
def _live(
    what: str, units: dict[str, str | None]
) -> Iterator[tuple[Progress, Callable[[pl.DataFrame], None]]]:
    """Shows, on a terminal, one progress bar and the means so far along one axis."""
    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
    task = bar.add_task(what, total=1.0)
    if not console.is_terminal:
        yield silent, lambda _: None
        return
    so_far = _SoFar(units)
    with Live(bar, console=console, transient=True, refresh_per_second=5) as live:

        def show(step: str, done: float) -> None:
            bar.update(task, completed=done, description=f"{what}: {step}")

        def add(runs: pl.DataFrame) -> None:
            so_far.add(runs)
            live.update(Group(so_far.table(console.width), bar))

        yield show, add


class _SoFar:
    """Means along one axis of the runs that are over."""

    def __init__(self, units: dict[str, str | None]) -> None:
        """None yet; the axes' columns count in these units."""
        self.units = units
        self.runs = pl.DataFrame()

    def add(self, latest: pl.DataFrame) -> None:
        """Takes in the rows of ``runs`` that came last."""
        self.runs = pl.concat([self.runs, latest]) if self.runs.height else latest

    def table(self, width: int) -> Text:
        """The table; by the axis of most values that are few enough, if there is one."""
        values = {name: self.runs[name].n_unique() for name in self.units}
        few = {name: count for name, count in values.items() if 1 < count <= _MOST_LIVE}
        by = max(few, key=few.__getitem__, default="")
        key = pl.col(by) if by else pl.lit("all")
        found = (
            self.runs.group_by(key.alias("by"))
            .agg(pl.len().alias("over"), pl.col(_COLUMNS).mean())
            .sort("by")
        )
        unit = self.units.get(by)
        cells = [
            [format_setting(row["by"], unit), f"{row['over']:,}", *(row[key] for key in _COLUMNS)]
            for row in found.iter_rows(named=True)
        ]
        columns = [Column(by), Column("Runs", number=True), *map(Column.of, _COLUMNS)]
        return Text(f"So far\n{Table(columns, cells).text(width)}\n")
