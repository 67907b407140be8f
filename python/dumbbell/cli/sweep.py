"""``dumbbell sweep``: a progress bar, what comes out while it runs, and what came out."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Context, Option

from dumbbell.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from dumbbell.engine.backend import Backend
    from dumbbell.engine.progress import Progress
    from dumbbell.metrics.intervals import Until
    from dumbbell.sweeps.drive import Swept
    from dumbbell.sweeps.plan import Sweep
    from dumbbell.sweeps.result import SweepResult

_MOST_LOOSE: Final = 10  # more points whose intervals are too wide than this are not listed


def sweep_file(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="Experiment with [sweep], a TOML file.")],
    out: Annotated[
        Path | None, options.out("Sweep folder; default: results/FILE, or FILE-linux.")
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Leave another experiment's runs at --out out of tables.")
    ] = False,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    assignments: options.Assignments = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    max_seeds: options.MaxSeeds = 100,
    dask: options.Dask = None,
    series: Annotated[bool, Option("--series", help="Keep the time series of every run.")] = False,
    backend: options.OnBackends = "simulator",
    retry_invalid: options.RetryInvalid = 0,
    json: options.Json = False,
) -> None:
    """Run an experiment along the axes of its [sweep]. What is in the folder is kept."""
    from dumbbell.results.warnings import identical_seeds, silent_flows
    from dumbbell.sweeps.drive import refuse, run_sweep
    from dumbbell.sweeps.plan import Sweep

    until = options.parse_until(context, until_ci, metric, max_seeds)
    if backend == "simulator":
        options.refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    elif backend == "both":
        options.refuse_given(context, ("until_ci", "dask"), "goes with --backend simulator")
    kinds: list[Backend] = ["linux", "simulator"] if backend == "both" else [backend]
    sweep = Sweep.load(file, overrides=assignments or [])
    folders = [options.folder_of(file, out, kind, alone=len(kinds) == 1) for kind in kinds]
    if len(kinds) > 1:  # before the first of them takes its time
        with options.proposing(file, out, assignments):
            for kind, folder in zip(kinds, folders, strict=True):
                refuse(sweep, folder, kind, overwrite=overwrite)
    made = []
    for kind, folder in zip(kinds, folders, strict=True):
        began = time.perf_counter()
        named = options.named("metric", "dask", until="--until-ci")
        proposing = options.proposing(file, out, assignments)
        with named, proposing, _live(file.name, sweep) as (progress, finished):
            swept = run_sweep(
                sweep,
                folder,
                seeds=seeds,
                jobs=jobs,
                dask=dask,
                until=until,
                series=series,
                backend=kind,
                retry_invalid=retry_invalid,
                overwrite=overwrite,
                progress=progress,
                finished=finished,
            )
        made.append(_Made(kind, swept, time.perf_counter() - began))
        flows = made[-1].result.flows
        told = [*silent_flows(flows), *identical_seeds(flows)]
        output.print_warnings(swept.warnings + swept.left_out + told)
    if json:
        said = [one.as_json(until) for one in made]
        output.print_json(dict(zip(kinds, said, strict=True)) if len(said) > 1 else said[0])
    else:
        _show(made, until)


@dataclass(frozen=True)
class _Made:
    """A sweep that was made by a backend, in so many seconds."""

    backend: Backend
    swept: Swept
    wall: float

    @cached_property
    def result(self) -> SweepResult:
        from dumbbell.sweeps.result import SweepResult

        return SweepResult(self.swept.dataset)

    @cached_property
    def points(self) -> pl.DataFrame:
        """The means at each point."""
        import polars as pl

        from dumbbell.sweeps.plan import measured

        runs = self.result.runs
        by_point = runs.group_by("point", *self.result.axes, maintain_order=True)
        return by_point.agg(pl.len().alias("seeds"), pl.col(measured(runs)).mean())

    def as_json(self, until: Until | None) -> dict[str, Any]:
        runs = {"runs": self.swept.total, "made": self.swept.made}
        meta = runs | {"wall_s": self.wall, "out": str(self.swept.dataset.folder)}
        still = {"until": vars(until), "loose": self.swept.loose} if until else {}
        return {"points": self.points.to_dicts(), "meta": meta | still}


def _show(made: list[_Made], until: Until | None) -> None:
    """Prints what came out; of two backends side by side."""
    last = made[-1]
    table = last.result.table() if len(made) == 1 else last.result.beside(made[0].result)
    points = made[0].points  # those that the machine disturbed are left out
    output.print_table(f"{points.height:,} point(s){output.mean_of(points['seeds'])}", table)
    if table.note:
        every = shlex.join(["dumbbell", "query", "from runs", str(last.swept.dataset.folder)])
        output.print_text(f"{table.note}; all runs: {every}")
    output.print_line()
    for one in made:
        kind = " with real packets" if one.backend == "linux" else ""
        there = f"{one.swept.before:,} of them there before"
        output.print_line(f"{one.swept.total:,} runs{kind}, {there}, in {one.wall:.1f} s")
        if one.swept.loose and until:
            output.print_line(output.too_wide(until, f"At {one.swept.loose:,} point(s) ") + ":")
            _show_loose(one.swept)
        output.print_line(f"The sweep is in {one.swept.dataset.folder}")


def _show_loose(swept: Swept) -> None:
    """Prints the axes of the first points whose intervals are too wide."""
    from dumbbell.display import format_settings

    points, axes = swept.loose_points[:_MOST_LOOSE], swept.dataset.axes.items()
    columns = zip(*(point.values for point in points), strict=True)
    settings = [
        [f"{name} {value}" for value in format_settings(values, axis["unit"])]
        for (name, axis), values in zip(axes, columns, strict=True)
    ]
    for point in zip(*settings, strict=True):
        output.print_line(f"  {', '.join(point)}")
    if more := swept.loose - len(points):
        output.print_line(f"  and {more:,} more")


@contextmanager
def _live(
    what: str, sweep: Sweep
) -> Iterator[tuple[Progress, Callable[[pl.DataFrame], None] | None]]:
    """Shows, on a terminal, one progress bar and the means so far along one axis."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from dumbbell.sweeps.result import LiveTable

    if not sys.stderr.isatty():
        with output.progress_bar(what) as progress:
            yield progress, None
        return
    console = Console(stderr=True)
    bar = output.make_bars(console)
    task = bar.add_task(what, total=1.0)
    so_far = LiveTable(sweep.axes)
    with Live(bar, console=console, transient=True, refresh_per_second=5) as live:

        def show(step: str, done: float) -> None:
            bar.update(task, completed=done, description=f"{what}: {step}")

        def add(more: pl.DataFrame) -> None:
            so_far.add(more)
            table = so_far.table().text(console.width)
            live.update(Group(Text(f"So far\n{table}\n"), bar))

        yield show, add
