"""``dumbbell sweep``: a progress bar, what comes out while it runs, and what came out."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from dumbbell.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from dumbbell.engine.progress import Progress
    from dumbbell.sweeps.plan import Sweep


def sweep_file(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="Experiment with [sweep], a TOML file.")],
    out: Annotated[
        Path | None, options.out("Sweep folder; default: results/FILE, or FILE-linux.")
    ] = None,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    assignments: options.Assignments = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    max_seeds: options.MaxSeeds = 100,
    dask: options.Dask = None,
    series: Annotated[bool, Option("--series", help="Keep the time series of every run.")] = False,
    backend: options.OnBackend = "simulator",
    retry_invalid: options.RetryInvalid = 0,
    json: options.Json = False,
) -> None:
    """Run an experiment along the axes of its [sweep]. What is in the folder is kept."""
    import polars as pl

    from dumbbell.results.warnings import silent_flows
    from dumbbell.sweeps.drive import run_sweep
    from dumbbell.sweeps.plan import Sweep, measured
    from dumbbell.sweeps.result import SweepResult

    until = options.parse_until(context, until_ci, metric, max_seeds)
    is_real = backend == "linux"
    if not is_real:
        options.refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    began = time.perf_counter()
    folder = out or Path("results") / (f"{file.stem}-linux" if is_real else file.stem)
    sweep = Sweep.load(file, overrides=assignments or [])
    named = options.named("metric", "dask", until="--until-ci")
    with named, _live(file.name, sweep) as (progress, finished):
        swept = run_sweep(
            sweep,
            folder,
            seeds=seeds,
            jobs=jobs,
            dask=dask,
            until=until,
            series=series,
            backend=backend,
            retry_invalid=retry_invalid,
            progress=progress,
            finished=finished,
        )
    wall = time.perf_counter() - began
    result = SweepResult(swept.dataset)
    output.print_warnings(swept.warnings + swept.left_out + silent_flows(result.flows))
    by_point = result.runs.group_by("point", *result.axes, maintain_order=True)
    points = by_point.agg(pl.len().alias("seeds"), pl.col(measured(result.runs)).mean())
    if json:
        meta = {"runs": swept.total, "made": swept.made, "wall_s": wall, "out": str(folder)}
        still = {"until": vars(until), "loose": swept.loose} if until else {}
        output.print_json({"points": points.to_dicts(), "meta": meta | still})
        return
    table = result.table()
    output.print_table(f"{points.height:,} point(s){output.mean_of(points['seeds'])}", table)
    if table.note:
        output.print_line(f"{table.note}; dumbbell query shows them")
    kind = " with real packets" if is_real else ""
    there = f"{swept.before:,} of them there before"
    output.print_line(f"\n{swept.total:,} runs{kind}, {there}, in {wall:.1f} s")
    if swept.loose and until:
        output.print_line(output.too_wide(until, f"At {swept.loose:,} point(s) "))
    output.print_line(f"The sweep is in {folder}")


@contextmanager
def _live(
    what: str, sweep: Sweep
) -> Iterator[tuple[Progress, Callable[[pl.DataFrame], None] | None]]:
    """Shows, on a terminal, one progress bar and the means so far along one axis."""
    import polars as pl
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from dumbbell.sweeps.result import table_so_far

    console = Console(stderr=True)
    if not console.is_terminal:
        with output.progress_bar(what) as progress:
            yield progress, None
        return
    bar = output.make_bars(console)
    task = bar.add_task(what, total=1.0)
    runs: list[pl.DataFrame] = []
    with Live(bar, console=console, transient=True, refresh_per_second=5) as live:

        def show(step: str, done: float) -> None:
            bar.update(task, completed=done, description=f"{what}: {step}")

        def add(more: pl.DataFrame) -> None:
            runs.append(more)
            table = table_so_far(pl.concat(runs), sweep.axes).text(console.width)
            live.update(Group(Text(f"So far\n{table}\n"), bar))

        yield show, add
