"""``dumbbell sweep``: a progress bar, what comes out while it runs, and what came out."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_warnings, too_wide
from dumbbell.engine.progress import silent
from dumbbell.errors import in_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from dumbbell.display import Table
    from dumbbell.engine.progress import Progress
    from dumbbell.sweeps.dataset import Dataset
    from dumbbell.sweeps.plan import Sweep

MOST_POINTS: Final = 24
"""More points than this are not printed."""

_MOST_LIVE: Final = 8
"""The axis that is shown while the sweep runs has at most as many values."""

_COLUMNS: Final = ("throughput", "utilisation", "queue_delay_mean", "retransmission_share", "jain")


def sweep_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Experiment, a TOML file with [sweep].")],
    out: Annotated[
        Path | None, options.out_option("Sweep folder; default: results/FILE. Its runs are kept.")
    ] = None,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    assignments: options.Assignments = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    most_seeds: options.MostSeeds = 100,
    dask: options.Dask = None,
    series: Annotated[bool, options.flag("--series", "Keep the time series of every run.")] = False,
    json: options.Json = False,
) -> None:
    """Run an experiment along the axes of its [sweep]. What is in the folder is kept."""
    from dumbbell.sweeps.drive import run_sweep
    from dumbbell.sweeps.plan import METRICS, Sweep

    until = options.parse_until(context, until_ci, metric, most_seeds, METRICS)
    began = time.perf_counter()
    folder = out or Path("results") / file.stem
    with in_file(file):
        sweep = Sweep.load(file, overrides=assignments or [])
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
    print_warnings(_warnings(sweep, swept.dataset))
    if json:
        meta = {"runs": swept.total, "made": swept.made, "wall_s": wall, "out": str(folder)}
        still = {"until": vars(until), "loose": swept.loose} if until else {}
        print_json({"points": _points(swept.dataset, runs), "meta": meta | still})
        return
    _print(swept.dataset, runs)
    print_line(f"\n{swept.total:,} runs, {swept.before:,} of them there before, in {wall:.1f} s")
    if swept.loose and until:
        print_line(too_wide(until, f"At {swept.loose:,} point(s) "))
    print_line(f"The sweep is in {folder}")


def _warnings(sweep: Sweep, dataset: Dataset) -> list[str]:
    from dumbbell.results.warnings import WITHOUT_ECN, is_dctcp, silent_flows

    flows = dataset.table("flows")
    without = any(map(is_dctcp, flows["cc"].unique())) and '"accurate"' not in sweep.text
    return [WITHOUT_ECN] * without + silent_flows(flows)


def _points(dataset: Dataset, runs: pl.DataFrame) -> list[dict[str, Any]]:
    """For JSON, a row a point: the axes, how many seeds, and the metrics' means."""
    import polars as pl

    from dumbbell.sweeps.plan import METRICS

    means = runs.group_by("point", *dataset.axes, maintain_order=True).agg(
        pl.len().alias("seeds"), pl.col(METRICS).mean()
    )
    return means.to_dicts()


def _print(dataset: Dataset, runs: pl.DataFrame) -> None:
    import polars as pl

    from dumbbell.display import Column, Table, format_setting
    from dumbbell.results.summary import means

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
    import polars as pl
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import Progress as Bar
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent, lambda _: None
        return
    bar = Bar(console=console)
    task = bar.add_task(what, total=1.0)
    latest: list[pl.DataFrame] = []
    with Live(bar, console=console, transient=True, refresh_per_second=5) as live:

        def show(step: str, done: float) -> None:
            bar.update(task, completed=done, description=f"{what}: {step}")

        def add(runs: pl.DataFrame) -> None:
            latest.append(runs)
            table = _so_far(pl.concat(latest), units).text(console.width)
            live.update(Group(Text(f"So far\n{table}\n"), bar))

        yield show, add


def _so_far(runs: pl.DataFrame, units: dict[str, str | None]) -> Table:
    """Means by the axis of most values that are few enough, if there is one."""
    import polars as pl

    from dumbbell.display import Column, Table, format_setting

    values = {name: runs[name].n_unique() for name in units}
    few = {name: count for name, count in values.items() if 1 < count <= _MOST_LIVE}
    by = max(few, key=few.__getitem__, default="")
    found = (
        runs.group_by((pl.col(by) if by else pl.lit("all")).alias("by"))
        .agg(pl.len().alias("over"), pl.col(_COLUMNS).mean())
        .sort("by")
    )
    cells = [
        [format_setting(at, units.get(by)), f"{over:,}", *means]
        for at, over, *means in found.iter_rows()
    ]
    columns = [Column(by), Column("Runs", number=True), *map(Column.of, _COLUMNS)]
    return Table(columns, cells)
