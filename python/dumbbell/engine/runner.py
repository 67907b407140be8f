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
from dumbbell.engine.store import Store, description, measurement_key, simulation_key
from dumbbell.errors import DumbbellError, ExperimentError, Interrupted, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.results.result import Result, collect
from dumbbell.results.storage import identity, reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.storage import Reservation

Backend = Literal["simulator", "linux"]
"""What runs an experiment: the simulator, or this machine's kernel with real packets."""

_POLL_INTERVAL: Final = 0.1
"""How often progress is reported, s."""


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
    retry_invalid: int = 0,
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
        retry_invalid: How often an invalid run is repeated: one with real packets that the machine
            disturbed.
        progress: Is told, every now and then, what share of the work is done (0 to 1).

    Returns:
        The tables of all seeds, in the order of the seeds.

    Raises:
        ExperimentError: If the experiment is not valid.
        OverwriteError: If `out` holds another result, or a measurement with real packets.
        ResultError: If `out` holds something other than a result, or cannot be written.
        TestbedError: If this machine lacks what real packets need.
        Interrupted: If the user interrupts; then the simulations are stopped too.
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
                retry_invalid=retry_invalid,
                progress=progress,
            )
    one = (experiment if seeds is None else experiment.replace(seeds=seeds)).resolve()
    with ExitStack() as held:
        reserved = out and reserve_for(one, out, backend, overwrite=overwrite)
        place = held.enter_context(reserved) if reserved else None
        (result,) = run_all(
            [one],
            jobs=jobs,
            backend=backend,
            retry_invalid=retry_invalid,
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
    retry_invalid: int = 0,
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
        retry_invalid: How often invalid runs are repeated; see `run`.
        progress: Is told, every now and then, what share of the work is done (0 to 1).
        finished: Is given every result and its place, in their order, while others still run.
        store: Where runs are filed and looked up; the store of the environment if not given.
        fresh: Whether runs with real packets are made even if the store has them.

    Returns:
        A result for every experiment, in their order; the same as from running them one by one.

    Raises:
        ExperimentError: If one of them is not valid.
        DumbbellError: If there is no such backend.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    results = []
    for result in run_each(
        experiments,
        jobs=jobs,
        backend=backend,
        retry_invalid=retry_invalid,
        progress=progress,
        store=store,
        fresh=fresh,
    ):
        results.append(result)
        if finished:
            finished(len(results) - 1, result)
    return results


def run_each(
    experiments: Sequence[Experiment],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    progress: Callable[[float], None] | None = None,
    store: Store | None = None,
    fresh: bool = False,
) -> Iterator[Result]:
    """As `run_all`, and yields the results one by one in their order, without keeping them."""
    is_real = known_backend(backend) == "linux"
    store = store or Store.default()
    resolved = [experiment.resolve() for experiment in experiments]
    for one in resolved if not is_real else []:
        _refuse_programs(one)
    at_once = workers(1 if jobs is None and is_real else jobs)
    kernels = [f for one in resolved for f in one.flows if is_real and f.transport == "tcp"]
    used = [flow.cc for flow in kernels]
    with kernel_algorithms.provided(used) as names, thread_pool(at_once) as pool:
        groups = [
            [
                _RealTask(one, seed, store, retry_invalid, names, fresh)
                if is_real
                else _Task(one, seed, store)
                for seed in one.seed_list
            ]
            for one in resolved
        ]
        runs = _Runs(pool, [task for group in groups for task in group], progress)
        try:
            for one, group in zip(resolved, groups, strict=True):
                yield _result(one, runs.take(group), at_once)
        except BaseException as error:
            runs.stop()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(runs.kept, runs.total) from None
            raise


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
            if len(result.seeds) < until.most
            and not all(map(until.is_satisfied_by, values(result)))
        ]
        if not loose:
            return results
        added = [
            results[number].experiment.replace(seeds=until.next_seeds(seeds)[len(seeds) :])
            for number in loose
            for seeds in [results[number].seeds]
        ]
        more = run_all(added, jobs=jobs, progress=progress)
        for number, result in zip(loose, more, strict=True):
            results[number] = results[number].concat(result)


@dataclass(frozen=True)
class _Done:
    """The outcome of one run, when it ran, and how often it was tried.

    Attributes:
        is_stored: Whether it comes from the store.
        is_kept: Whether it is in the store now.
    """

    outcome: _core.RunOutput | TableOutput
    began: float
    ended: float
    attempts: int = 1
    is_stored: bool = False
    is_kept: bool = False


@dataclass(frozen=True)
class _Task:
    """One seed of one resolved experiment."""

    experiment: Experiment
    seed: int
    store: Store
    watch: _core.RunMonitor = field(default_factory=_core.RunMonitor)

    def run(self) -> _Done:
        one, began = self.experiment, time.perf_counter()
        text = one.scenario(self.seed)
        key = simulation_key(one, text)
        if (stored := self.store.get(key)) is not None:
            tables, facts = stored
            output = TableOutput(**tables, meta=facts["meta"])
            return _Done(output, began, time.perf_counter(), is_stored=True, is_kept=True)
        try:
            outcome = simulate(text, (flow.cc for flow in one.flows), one.sources, self.watch)
        except _core.ScenarioError as error:
            raise ExperimentError(str(error)) from None
        ended = time.perf_counter()
        kept = key is not None and self.store.is_on
        facts = {"meta": outcome.meta, "what": description(one, self.seed, "simulator")}
        kept = kept and self.store.put(key, frames(outcome), facts)
        return _Done(outcome, began, ended, is_kept=kept)


@dataclass(frozen=True)
class _RealTask:
    """The same with real packets; of invalid attempts the last one counts, and is not stored."""

    experiment: Experiment
    seed: int
    store: Store
    retry_invalid: int
    names: Mapping[str, str]
    fresh: bool
    watch: kernel.Watch = field(default_factory=kernel.Watch)

    def run(self) -> _Done:
        began = time.perf_counter()
        text = kernel_algorithms.for_kernel(self.experiment.scenario(self.seed), self.names)
        key = measurement_key(text)
        if not self.fresh and (stored := self.store.get(key)) is not None:
            tables, facts = stored
            said: dict[str, Any] = {**tables, "meta": facts["meta"], "health": facts["health"]}
            outcome, ended = kernel.Outcome(**said), time.perf_counter()
            return _Done(outcome, began, ended, facts["attempts"], is_stored=True, is_kept=True)
        attempts = 1
        outcome = kernel.run_scenario(text, self.watch)
        while outcome.invalid_reasons and attempts <= self.retry_invalid:
            outcome = kernel.run_scenario(text, self.watch)
            attempts += 1
        facts = {
            "meta": outcome.meta,
            "health": outcome.health,
            "attempts": attempts,
            "what": description(self.experiment, self.seed, "linux"),
        }
        kept = not outcome.invalid_reasons and self.store.put(key, frames(outcome), facts)
        return _Done(outcome, began, time.perf_counter(), attempts, is_kept=kept)


class _Runs:
    """Runs that go on in a pool."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        tasks: Sequence[_Task | _RealTask],
        progress: Callable[[float], None] | None,
    ) -> None:
        self.pool, self.progress = pool, progress
        self.total, self.over, self.kept = len(tasks), 0, 0
        self.running = {id(task): (task, pool.submit(task.run)) for task in tasks}

    def take(self, tasks: Sequence[_Task | _RealTask]) -> dict[int, _Done]:
        """Waits for some of the runs, and forgets them."""
        self._await(tasks)
        done = {task.seed: self.running.pop(id(task))[1].result() for task in tasks}
        self.over += len(done)
        self.kept += sum(run.is_kept for run in done.values())
        return done

    def _await(self, tasks: Sequence[_Task | _RealTask]) -> None:
        """Waits for these runs, or for the first of all runs that fails."""
        wanted = {self.running[id(task)][1] for task in tasks}
        waiting: Collection[Future[_Done]] = [run for _, run in self.running.values()]
        while not all(run.done() for run in wanted):
            over, waiting = wait(waiting, _POLL_INTERVAL, FIRST_EXCEPTION)
            for run in over:
                run.result()
            self._tell()
        for run in wanted:
            run.result()
        self._tell()

    def _tell(self) -> None:
        if self.progress:
            shares = (1.0 if r.done() else task.watch.done for task, r in self.running.values())
            self.progress((self.over + sum(shares)) / self.total)

    def stop(self) -> None:
        """Stops all runs, and counts those that are kept."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        runs = list(self.running.values())
        for task, _ in runs:
            task.watch.stop()
        monitors = [task.watch for task, _ in runs if isinstance(task, _Task)]
        stop_all([run for _, run in runs], lambda: monitors)
        finished = [r for _, r in runs if r.done() and not r.cancelled() and not r.exception()]
        self.kept += sum(run.result().is_kept for run in finished)


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
        "invalid": {
            seed: one.invalid_reasons for seed, (one, _) in real.items() if one.invalid_reasons
        },
        "testbed": {
            seed: {key: value for key, value in one.health.items() if key != "complaints"}
            | {"attempts": attempts}
            for seed, (one, attempts) in real.items()
        },
    }
