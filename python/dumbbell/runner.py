"""Running an experiment: every seed in a thread of its own, the answer the same however many."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.errors import DumbbellError, ExperimentError, in_file
from dumbbell.experiment import Experiment
from dumbbell.resolve import resolve, scenario
from dumbbell.results import Result, check_replaceable, collect

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

_GLANCE: Final = 0.1
"""How often progress is told, s."""


def run(
    experiment: Experiment | str | Path,
    *,
    seeds: int | list[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Runs an experiment with all its seeds.

    The result depends on the experiment and its seeds only, not on `jobs`.

    Args:
        experiment: The experiment, or the path of its file.
        seeds: How many seeds, or which; those of the experiment if not given.
        jobs: How many seeds to run at once; as many as there are processors if not given.
        out: The folder to write the result to, if it is to be written.
        progress: Is told, every now and then, what share of the work is done (0 to 1).

    Returns:
        The tables of all seeds, in the order of the seeds.

    Raises:
        ExperimentError: If the experiment is not valid.
        ResultError: If `out` holds something other than a result, or cannot be written.
        KeyboardInterrupt: If the user interrupts; then the simulations are stopped too.
    """
    if not isinstance(experiment, Experiment):
        with in_file(experiment):
            read = Experiment.load(experiment)
            return run(read, seeds=seeds, jobs=jobs, out=out, progress=progress)
    resolved = resolve(experiment if seeds is None else experiment.replace(seeds=seeds))
    if out is not None:
        check_replaceable(Path(out))
    workers = _workers(jobs)
    began = time.perf_counter()
    outcomes = _simulate(resolved, workers, progress)
    wall = time.perf_counter() - began
    result = collect(resolved, outcomes, _meta(outcomes, workers, wall))
    if out is not None:
        result.save(out)
    return result


def _workers(jobs: int | None) -> int:
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if jobs < 1:
        raise DumbbellError(f"jobs: {jobs} is not a number of runs at once; write 1 or more")
    return jobs


def _simulate(
    resolved: Experiment, workers: int, progress: Callable[[float], None] | None
) -> dict[int, _core.Outcome]:
    watches = {seed: _core.Watch() for seed in resolved.seed_list}
    with ThreadPoolExecutor(workers) as pool:
        runs = {seed: pool.submit(_one, resolved, seed, watch) for seed, watch in watches.items()}
        try:
            while wait(runs.values(), _GLANCE, FIRST_EXCEPTION).not_done:
                _raise_first(runs)
                if progress:
                    progress(sum(watch.done for watch in watches.values()) / len(watches))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for watch in watches.values():
                watch.stop()
            raise
        return {seed: run.result() for seed, run in runs.items()}


def _one(resolved: Experiment, seed: int, watch: _core.Watch) -> _core.Outcome:
    try:
        return _core.simulate(scenario(resolved, seed), watch)
    except ValueError as error:
        raise ExperimentError(str(error)) from None


def _raise_first(runs: dict[int, Future[_core.Outcome]]) -> None:
    for run in runs.values():
        if run.done():
            run.result()


def _meta(outcomes: dict[int, _core.Outcome], workers: int, wall: float) -> dict[str, Any]:
    return {
        "version": _core.__version__,
        "seeds": list(outcomes),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
        },
        "jobs": workers,
        "wall_s": wall,
        "data_packets": sum(outcome.meta["data_packets"] for outcome in outcomes.values()),
        "events": sum(outcome.meta["events"] for outcome in outcomes.values()),
    }
