"""Running an experiment: every seed in a thread of its own, the answer the same however many."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from dumbbell import _core
from dumbbell.engine import kernel, kernel_algorithms
from dumbbell.engine.build import engine
from dumbbell.engine.output import TableOutput, frames
from dumbbell.engine.simulation import simulate, stop_all, thread_pool
from dumbbell.engine.store import Store, measurement_key, simulation_key
from dumbbell.errors import DumbbellError, ExperimentError, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.resolve import resolve, scenario
from dumbbell.results.result import Result, collect
from dumbbell.results.storage import identity, reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.storage import Reservation

Backend = Literal["simulator", "linux"]
"""What runs an experiment: the simulator, or this machine's kernel with real packets."""

_GLANCE: Final = 0.1
"""How often progress is told, s."""


def known_backend(name: str) -> Backend:
    """The backend of that name.

    Raises:
        DumbbellError: If there is none.
    """
    if name == "simulator":
        return "simulator"
    if name == "linux":
        return "linux"
    raise DumbbellError(f'backend: there is no "{name}"; write simulator or linux')


def run(
    experiment: Experiment | str | Path,
    *,
    seeds: int | list[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    backend: Backend = "simulator",
    retry_spoiled: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Runs an experiment with all its seeds.

    In the simulator the result depends on the experiment and its seeds only, not on `jobs`.

    Args:
        experiment: The experiment, or the path of its file.
        seeds: How many seeds, or which; those of the experiment if not given.
        jobs: How many seeds to run at once; as many as there are processors if not given, or one
            if packets are real.
        out: The folder to write the result to, if it is to be written.
        overwrite: Whether another result that is in `out` may be replaced; then runs with real
            packets are made anew.
        backend: ``"simulator"``, or ``"linux"`` for real packets in real time.
        retry_spoiled: How often a run with real packets is repeated that the machine spoiled.
        progress: Is told, every now and then, what share of the work is done (0 to 1).

    Returns:
        The tables of all seeds, in the order of the seeds.

    Raises:
        ExperimentError: If the experiment is not valid.
        OverwriteError: If `out` holds another result, or a measurement with real packets.
        ResultError: If `out` holds something other than a result, or cannot be written.
        TestbedError: If this machine lacks what real packets need.
        KeyboardInterrupt: If the user interrupts; then the simulations are stopped too.
    """
    if not isinstance(experiment, Experiment):
        with in_file(experiment):
            read = Experiment.load(experiment)
            return run(
                read,
                seeds=seeds,
                jobs=jobs,
                out=out,
                overwrite=overwrite,
                backend=backend,
                retry_spoiled=retry_spoiled,
                progress=progress,
            )
    one = resolve(experiment if seeds is None else experiment.replace(seeds=seeds))
    with ExitStack() as held:
        reserved = out and reserve_for(one, out, backend, overwrite=overwrite)
        place = held.enter_context(reserved) if reserved else None
        (result,) = run_all(
            [one],
            jobs=jobs,
            backend=backend,
            retry_spoiled=retry_spoiled,
            progress=progress,
            fresh=overwrite,
        )
        if place is not None:
            result.write(place)
    return result


def reserve_for(
    resolved: Experiment,
    folder: str | Path,
    backend: Backend,
    *,
    overwrite: bool,
    grows: bool = False,
) -> AbstractContextManager[Reservation]:
    """Reserves a folder for the result of a resolved experiment before it is run.

    Args:
        resolved: The experiment.
        folder: The folder.
        backend: What runs it.
        overwrite: Whether another result that is there may be replaced.
        grows: Whether seeds are going to be added to those of the experiment.

    Raises:
        OverwriteError, ResultError: See `dumbbell.results.storage.reserve`.
    """
    meta = {"backend": backend, "engine": engine()}
    expected = identity(resolved, meta) if backend == "simulator" else None
    seeds = None if grows else resolved.seed_list
    return reserve(folder, expected, seeds, overwrite=overwrite)


def run_all(
    experiments: Sequence[Experiment],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    retry_spoiled: int = 0,
    progress: Callable[[float], None] | None = None,
    finished: Callable[[int, Result], None] | None = None,
    store: Store | None = None,
    fresh: bool = False,
) -> list[Result]:
    """Runs several experiments, the seeds of all of them side by side.

    Args:
        experiments: The experiments.
        jobs: How many seeds to run at once; see `run`.
        backend: What runs them; see `run`.
        retry_spoiled: How often spoiled runs are repeated; see `run`.
        progress: Is told, every now and then, what share of the work is done (0 to 1).
        finished: Is given every result and its place, in their order, while others still run.
        store: Where runs are filed and looked up; the store of the environment if not given.
        fresh: Whether runs with real packets are made even if the store has them.

    Returns:
        A result for every experiment, in their order; the same as from running them one by one.

    Raises:
        ExperimentError: If one of them is not valid.
        DumbbellError: If there is no such backend.
        KeyboardInterrupt: If the user interrupts; then the simulations are stopped too.
    """
    is_real = known_backend(backend) == "linux"
    store = store or Store.default()
    resolved = [resolve(experiment) for experiment in experiments]
    for one in resolved if not is_real else []:
        _refuse_programs(one)
    at_once = workers(1 if jobs is None and is_real else jobs)
    kernels = [f for one in resolved for f in one.flows if is_real and f.transport == "tcp"]
    used = [flow.cc for flow in kernels]
    with kernel_algorithms.provided(used) as names, thread_pool(at_once) as pool:
        tasks = [
            [
                _RealTask(one, seed, store, retry_spoiled, names, fresh)
                if is_real
                else _Task(one, seed, store)
                for seed in one.seed_list
            ]
            for one in resolved
        ]
        runs = [[(task, pool.submit(task.run)) for task in group] for group in tasks]
        results: list[Result] = []

        def collect_finished() -> None:
            while len(results) < len(runs) and all(run.done() for _, run in runs[len(results)]):
                place, group = len(results), runs[len(results)]
                done = {task.seed: run.result() for task, run in group}
                results.append(_result(resolved[place], done, at_once))
                if finished:
                    finished(place, results[place])

        _see_through(pool, [run for group in runs for run in group], progress, collect_finished)
        return results


def _refuse_programs(experiment: Experiment) -> None:
    for number, flow in enumerate(experiment.flows):
        if flow.command is not None:
            problem = 'a program sends real packets; run it with the backend "linux"'
            raise ExperimentError(problem, key=f"flow[{number}].command")


def run_until(
    experiments: Sequence[Experiment],
    until: Until,
    values: Callable[[Result], Iterable[Sequence[float | None]]],
    *,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Result]:
    """As `run_all`, and adds seeds to every experiment until what comes out is known well enough.

    Args:
        experiments: The experiments, with the seeds to begin with.
        until: When that is.
        values: What is to be known, each by its values with all seeds.
        jobs: As for `run_all`.
        progress: As for `run_all`; begins anew with every addition of seeds.
    """
    results = run_all(experiments, jobs=jobs, progress=progress)
    while True:
        loose = [
            number
            for number, result in enumerate(results)
            if len(result.seeds) < until.most and not all(map(until.tight, values(result)))
        ]
        if not loose:
            return results
        added = [
            results[number].experiment.replace(seeds=until.more(seeds)[len(seeds) :])
            for number in loose
            for seeds in [results[number].seeds]
        ]
        more = run_all(added, jobs=jobs, progress=progress)
        for number, result in zip(loose, more, strict=True):
            results[number] = results[number].and_more(result)


@dataclass(frozen=True)
class _Done:
    """The outcome of one run, when it ran, how often it was tried, and whether it was stored."""

    outcome: _core.RunOutput | TableOutput
    began: float
    ended: float
    attempts: int = 1
    is_stored: bool = False


@dataclass(frozen=True)
class _Task:
    """One seed of one resolved experiment."""

    experiment: Experiment
    seed: int
    store: Store
    watch: _core.RunMonitor = field(default_factory=_core.RunMonitor)

    def run(self) -> _Done:
        one, began = self.experiment, time.perf_counter()
        text = scenario(one, self.seed)
        key = simulation_key(one, text)
        if (stored := self.store.get(key)) is not None:
            tables, facts = stored
            output = TableOutput(**tables, meta=facts["meta"])
            return _Done(output, began, time.perf_counter(), is_stored=True)
        try:
            outcome = simulate(text, (flow.cc for flow in one.flows), one.sources, self.watch)
        except _core.ScenarioError as error:
            raise ExperimentError(str(error)) from None
        ended = time.perf_counter()
        if key is not None and self.store.folder is not None:
            self.store.put(key, frames(outcome), {"meta": outcome.meta})
        return _Done(outcome, began, ended)


@dataclass(frozen=True)
class _RealTask:
    """The same with real packets; of spoiled attempts the last one counts, and is not stored."""

    experiment: Experiment
    seed: int
    store: Store
    retry_spoiled: int
    names: Mapping[str, str]
    fresh: bool
    watch: kernel.Watch = field(default_factory=kernel.Watch)

    def run(self) -> _Done:
        began = time.perf_counter()
        text = kernel_algorithms.for_kernel(scenario(self.experiment, self.seed), self.names)
        key = measurement_key(text)
        if not self.fresh and (stored := self.store.get(key)) is not None:
            tables, facts = stored
            said: dict[str, Any] = {**tables, "meta": facts["meta"], "health": facts["health"]}
            outcome, ended = kernel.Outcome(**said), time.perf_counter()
            return _Done(outcome, began, ended, facts["attempts"], is_stored=True)
        attempts = 1
        outcome = kernel.run_scenario(text, self.watch)
        while outcome.complaints and attempts <= self.retry_spoiled:
            outcome = kernel.run_scenario(text, self.watch)
            attempts += 1
        if not outcome.complaints:
            facts = {"meta": outcome.meta, "health": outcome.health, "attempts": attempts}
            self.store.put(key, frames(outcome), facts)
        return _Done(outcome, began, time.perf_counter(), attempts)


def _see_through(
    pool: ThreadPoolExecutor,
    runs: list[tuple[_Task | _RealTask, Future[_Done]]],
    progress: Callable[[float], None] | None,
    meanwhile: Callable[[], None],
) -> None:
    """Waits for all runs, or stops them all if something fails or the user interrupts."""
    waiting: Collection[Future[_Done]] = [run for _, run in runs]
    try:
        while waiting:
            over, waiting = wait(waiting, _GLANCE, FIRST_EXCEPTION)
            for run in over:
                run.result()
            if progress:
                done = sum(1.0 if run.done() else task.watch.done for task, run in runs)
                progress(done / len(runs))
            meanwhile()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for task, _ in runs:
            task.watch.stop()
        monitors = [task.watch for task, _ in runs if isinstance(task, _Task)]
        stop_all([run for _, run in runs], lambda: monitors)
        raise


def workers(jobs: int | None) -> int:
    """How many simulations to run at once: so many, or one a processor.

    Raises:
        DumbbellError: If it is not a number of them.
    """
    if jobs is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if jobs < 1:
        raise DumbbellError(f"jobs: {jobs} is not a number of runs at once; write 1 or more")
    return jobs


def _result(resolved: Experiment, runs: dict[int, _Done], jobs: int) -> Result:
    outcomes = {seed: done.outcome for seed, done in runs.items()}
    began, ended = min(d.began for d in runs.values()), max(d.ended for d in runs.values())
    meta = {
        "version": _core.__version__,
        "engine": engine(),
        "backend": "simulator",
        "seeds": list(outcomes),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
        },
        "jobs": jobs,
        "stored": sum(done.is_stored for done in runs.values()),
        "wall_s": ended - began,
        "data_packets": sum(outcome.meta["data_packets"] for outcome in outcomes.values()),
        "events": sum(outcome.meta["events"] for outcome in outcomes.values()),
    }
    meta |= _reality(runs)
    return collect(resolved, outcomes, meta | {"hash": identity(resolved, meta)})


def _reality(runs: dict[int, _Done]) -> dict[str, Any]:
    """What the folder of a result says beside, if packets were real."""
    real = {
        str(seed): (done.outcome, done.attempts)
        for seed, done in runs.items()
        if isinstance(done.outcome, kernel.Outcome)
    }
    if not real:
        return {}
    return {
        "backend": "linux",
        "kernel": platform.release(),
        "spoiled": {seed: one.complaints for seed, (one, _) in real.items() if one.complaints},
        "testbed": {
            seed: {key: value for key, value in one.health.items() if key != "complaints"}
            | {"attempts": attempts}
            for seed, (one, attempts) in real.items()
        },
    }
