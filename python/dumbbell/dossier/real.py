"""Scenarios with real packets: a few paths, in real time, with the algorithms of this kernel.

Runs are kept in the run store, so that none is made twice. A run that the machine disturbed is
repeated once, and left out if it is disturbed again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import metrics
from dumbbell.dossier.bench import FailedRunError
from dumbbell.dossier.measures import Runs
from dumbbell.engine.progress import Progress, titled
from dumbbell.engine.runner import run_each
from dumbbell.errors import DumbbellError
from dumbbell.sweeps.work import with_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dumbbell.dossier.bench import Bench
    from dumbbell.dossier.scenarios import Scenario
    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

_REPEATS: Final = 1


def measure(
    bench: Bench, scenario: Scenario, paths: Sequence[Mapping[str, Any]], algorithms: Sequence[str]
) -> Runs:
    """Runs some paths of a scenario with each of some algorithms.

    Args:
        bench: How many run at once; what counts the runs and shows the progress.
        scenario: The scenario.
        paths: The settings of each path, as `Scenario.settings` has them.
        algorithms: The algorithms.

    Raises:
        FailedRunError: If the scenario has what real packets, or this machine, cannot have.
    """
    design = scenario.at(paths, algorithms)
    points = list(design.points())
    experiments = [scenario.experiment(path, cc) for path in paths for cc in algorithms]
    named = [axis.name for axis in design.axes]
    rows, flows, series, links = [], [], [], []
    results = _measured(experiments, bench.jobs, titled(bench.progress, scenario.name))
    for number, (point, result) in enumerate(zip(points, results, strict=True)):
        bench.made += 1
        if result.invalid_runs:
            continue
        name = hashlib.sha256(f"{number} {point.scenario}".encode()).hexdigest()[:16]
        keys = {"run": name, "seed": result.seeds[0], **dict(zip(named, point.values, strict=True))}
        its, summary = _summary(result)
        rows.append(keys | summary)
        flows.append(its.with_columns(run=pl.lit(name)))
        series.append(
            result.series.with_columns(pl.col("flow", "cc").cast(pl.String), run=pl.lit(name))
        )
        links.append(result.links.with_columns(pl.col("link").cast(pl.String), run=pl.lit(name)))
    if not rows:
        raise FailedRunError("the machine disturbed all runs with real packets; try again")
    all_flows = pl.concat(flows, how="vertical_relaxed")
    of = Runs.of(pl.DataFrame(rows), all_flows, named, [pl.concat(series), pl.concat(links)])
    of.grid = scenario.grid
    return of


def _measured(
    experiments: Sequence[Experiment], jobs: int | None, progress: Progress
) -> Iterator[Result]:
    try:
        yield from run_each(
            experiments, jobs=jobs, backend="linux", retry_invalid=_REPEATS, progress=progress
        )
    except DumbbellError as error:
        raise FailedRunError(f"real packets cannot show it: {error}") from error


def _summary(result: Result) -> tuple[pl.DataFrame, dict[str, object]]:
    """The flows of a run, and its metrics as a sweep has them."""
    flows, links = metrics.summary(result), metrics.link_summary(result)
    runs = metrics.run_summary(result, flows, links)
    if result.frames.width:
        tables = with_frames(result.frames, result.flows, runs, flows)
        runs, flows = tables["runs"], tables["flows"]
    run = runs.drop("seed").row(0, named=True)
    text = pl.col("flow", "cc").cast(pl.String)
    return flows.with_columns(text), run
