"""Running an experiment: every seed in a thread of its own, the answer the same however many."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypedDict, Unpack, get_args

from dumbbell import _core, metrics
from dumbbell.engine import kernel, kernel_algorithms
from dumbbell.engine.build import engine
from dumbbell.engine.cluster import Cluster, connected
from dumbbell.engine.output import TableOutput, frames
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.simulation import simulate, stop_all, thread_pool
from dumbbell.engine.store import Store, description, measurement_key, simulation_key
from dumbbell.errors import DumbbellError, ExperimentError, Interrupted, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.results.result import Result, collect
from dumbbell.results.storage import identity, machine, reserve

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from dumbbell.metrics.intervals import Until

Backend = Literal["simulator", "linux"]
"""What runs an experiment: the simulator, or this machine's kernel with real packets."""

_POLL_INTERVAL: Final = 0.1
"""How often progress is reported, s."""


class Options(TypedDict, total=False):
    """How experiments are run; see `run_all`."""

    jobs: int | None
    backend: Backend
    retry_invalid: int
    progress: Progress
    fresh: bool
    dask: str | None


def run(
    experiment: Experiment | str | Path,
    *,
    seeds: int | list[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    until: Until | None = None,
    progress: Progress = silent,
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
        until: Adds seeds until the interval of a metric, of every flow if flows have it, is as
            narrow as this; for the simulator.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Returns:
        The tables of all seeds, in the order of the seeds.

    Raises:
        ExperimentError: If the experiment is not valid.
        OverwriteError: If `out` holds another result, or a measurement with real packets.
        ResultError: If `out` holds something other than a result, or cannot be written.
        TestbedError: If this machine lacks what real packets need.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    with ExitStack() as stack:
        if not isinstance(experiment, Experiment):
            stack.enter_context(in_file(experiment))
            experiment = Experiment.load(experiment)
        one = experiment if seeds is None else experiment.replace(seeds=seeds)
        (result,) = run_into(
            [one],
            [out],
            values_of,
            jobs=jobs,
            overwrite=overwrite,
            backend=backend,
            retry_invalid=retry_invalid,
            until=until,
            progress=progress,
        )
    return result


def values_of(metric: str, result: Result) -> list[list[float | None]]:
    """The values of a metric over the seeds: of every flow, or else of the run."""
    flows = metrics.summary(result)
    if metric in metrics.over_flows(flows).columns:
        return flows.group_by("flow", maintain_order=True).agg(metric)[metric].to_list()
    runs = metrics.run_summary(result, flows, metrics.link_summary(result))
    return [runs[metric].to_list()]


def run_into(
    experiments: Sequence[Experiment],
    folders: Sequence[str | Path | None],
    values: Callable[[str, Result], Iterable[Sequence[float | None]]],
    *,
    overwrite: bool,
    until: Until | None,
    **options: Unpack[Options],
) -> list[Result]:
    """As `run_all`, or as `run_until`, and writes results into folders that are reserved before.

    Args:
        experiments: The experiments.
        folders: For each a folder for its result; None if it is not to be written.
        values: What `until` judges of a result, by the name of its metric.
        overwrite: Whether other results may be replaced; see `run`.
        until: Adds seeds; see `run`.
        **options: As for `run_all`.
    """
    backend = options.get("backend", "simulator")
    if until is not None and backend != "simulator":
        raise DumbbellError("--until-ci: is for the simulator; give --seeds instead")
    every = [experiment.resolve() for experiment in experiments]
    with ExitStack() as stack:
        places = []
        for one, folder in zip(every, folders, strict=True):
            meta = {"backend": backend, "engine": engine()}
            expected = identity(one, meta) if backend == "simulator" else None
            seeds = None if until else one.seed_list
            reserved = folder and reserve(folder, expected, seeds, overwrite=overwrite)
            places.append(stack.enter_context(reserved) if reserved else None)
        if until is None:
            results = run_all(every, **(options | {"fresh": overwrite}))
        else:
            results = run_until(every, until, partial(values, until.metric), **options)
        for result, place in zip(results, places, strict=True):
            if place is not None:
                result.write(place)
    return results


def run_all(experiments: Sequence[Experiment], **options: Unpack[Options]) -> list[Result]:
    """Runs several experiments, the seeds of all of them side by side.

    Args:
        experiments: The experiments.
        **options: ``jobs``, ``backend``, ``retry_invalid``, ``progress`` as for `run`; ``fresh``,
            whether runs with real packets are made even if the run store has them; ``dask``, the
            address of a Dask scheduler whose workers simulate.

    Returns:
        A result for every experiment, in their order; the same as from running them one by one.

    Raises:
        ExperimentError: If one of them is not valid.
        DumbbellError: If there is no such backend.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    return list(run_each(experiments, **options))


def run_each(
    experiments: Sequence[Experiment],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    progress: Progress = silent,
    fresh: bool = False,
    dask: str | None = None,
) -> Generator[Result, None, None]:
    """As `run_all`, and yields the results one by one in their order, without keeping them."""
    if backend not in get_args(Backend):
        raise DumbbellError(f'backend: there is no "{backend}"; write simulator or linux')
    is_real = backend == "linux"
    store = Store.default()
    resolved = [experiment.resolve() for experiment in experiments]
    if not is_real:
        _refuse_programs(resolved)
    flows = [flow for one in resolved for flow in one.flows if is_real and flow.transport == "tcp"]
    used = [flow.cc for flow in flows]
    with ExitStack() as held:
        there = held.enter_context(connected(dask)) if dask and not is_real else None
        if jobs is None and (is_real or there):
            jobs = there.threads if there else 1
        at_once = workers(jobs)
        names = held.enter_context(kernel_algorithms.provided(used))
        pool = held.enter_context(thread_pool(at_once))
        groups = [
            [
                _Measurement(one, seed, store, retry_invalid, names, fresh)
                if is_real
                else _Simulation(one, seed, store, there)
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


def _refuse_programs(experiments: Iterable[Experiment]) -> None:
    for experiment in experiments:
        for number, flow in enumerate(experiment.flows):
            if flow.command is not None:
                problem = 'a program sends real packets; run it with the backend "linux"'
                raise ExperimentError(problem, key=f"flow[{number}].command")


def run_until(
    experiments: Sequence[Experiment],
    until: Until,
    values: Callable[[Result], Iterable[Sequence[float | None]]],
    **options: Unpack[Options],
) -> list[Result]:
    """As `run_all`, and adds seeds to every experiment until what comes out is known well enough.

    Args:
        experiments: The experiments, with the seeds to begin with.
        until: When that is.
        values: What is to be known, each by its values with all seeds.
        **options: As for `run_all`; progress begins anew with every addition of seeds.
    """
    results = run_all(experiments, **options)
    while True:
        loose = [
            number
            for number, result in enumerate(results)
            if len(result.seeds) < until.max_seeds
            and not all(map(until.is_satisfied_by, values(result)))
        ]
        if not loose:
            return results
        added = [
            results[number].experiment.replace(seeds=until.next_seeds(seeds)[len(seeds) :])
            for number in loose
            for seeds in [results[number].seeds]
        ]
        more = run_all(added, **options)
        for number, result in zip(loose, more, strict=True):
            results[number] = results[number].concat(result)


@dataclass(frozen=True)
class _Done:
    """The output of one run, and when it was made, s.

    Attributes:
        is_stored: Whether it comes from the store.
        is_kept: Whether it is in the store now.
    """

    output: _core.RunOutput | TableOutput
    began: float
    ended: float
    is_stored: bool = False
    is_kept: bool = False

    @classmethod
    def stored(cls, store: Store, key: str | None) -> _Done | None:
        """The run that is filed under a key, if there is one."""
        began = time.perf_counter()
        if (found := store.get(key)) is None:
            return None
        tables, facts = found
        said: dict[str, Any] = {**tables, "meta": facts["meta"]}
        output = TableOutput(**said, health=facts.get("health", {}))
        return cls(output, began, time.perf_counter(), is_stored=True, is_kept=True)


@dataclass(frozen=True)
class _Simulation:
    """One seed of one resolved experiment in the simulator, here or on a cluster."""

    experiment: Experiment
    seed: int
    store: Store
    cluster: Cluster | None = None
    monitor: _core.RunMonitor = field(default_factory=_core.RunMonitor)
    step: ClassVar[str] = "simulating"

    def run(self) -> _Done:
        one = self.experiment
        scenario = one.scenario(self.seed)
        key = simulation_key(one, scenario)
        if stored := _Done.stored(self.store, key):
            return stored
        began = time.perf_counter()
        is_logged = any(flow.log for flow in one.flows)
        make = self.cluster.simulate if self.cluster and not is_logged else simulate
        try:
            output = make(scenario, (flow.cc for flow in one.flows), one.sources, self.monitor)
        except _core.ScenarioError as error:
            raise ExperimentError(str(error)) from None
        ended = time.perf_counter()
        facts = {"meta": output.meta, "what": description(one, self.seed, "simulator")}
        return _Done(output, began, ended, is_kept=self.store.put(key, frames(output), facts))


@dataclass(frozen=True)
class _Measurement:
    """The same with real packets; the last of several attempts counts. Invalid ones are not stored.

    Attributes:
        names: What the kernel calls the algorithms.
        fresh: Whether it is made even if it is stored.
    """

    experiment: Experiment
    seed: int
    store: Store
    retry_invalid: int
    names: Mapping[str, str]
    fresh: bool
    monitor: kernel.RunMonitor = field(default_factory=kernel.RunMonitor)
    step: ClassVar[str] = "measuring"

    def run(self) -> _Done:
        scenario = kernel_algorithms.for_kernel(self.experiment.scenario(self.seed), self.names)
        key = measurement_key(scenario)
        if not self.fresh and (stored := _Done.stored(self.store, key)):
            return stored
        began = time.perf_counter()
        for attempt in range(1, self.retry_invalid + 2):
            output = kernel.run_scenario(scenario, self.monitor)
            output.health["attempts"] = attempt
            if not output.invalid_reasons:
                break
        ended = time.perf_counter()
        what = description(self.experiment, self.seed, "linux")
        facts = {"meta": output.meta, "health": output.health, "what": what}
        kept = not output.invalid_reasons and self.store.put(key, frames(output), facts)
        return _Done(output, began, ended, is_kept=kept)


class _Runs:
    """Runs that go on in a pool.

    Attributes:
        total: How many they are.
        over: How many of them are over and forgotten.
        kept: How many of those are in the store.
    """

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        tasks: Sequence[_Simulation | _Measurement],
        progress: Progress,
    ) -> None:
        self.pool, self.progress = pool, progress
        self.total, self.over, self.kept = len(tasks), 0, 0
        self.running = {id(task): (task, pool.submit(task.run)) for task in tasks}

    def take(self, tasks: Sequence[_Simulation | _Measurement]) -> dict[int, _Done]:
        """Waits for some of the runs, or for the first of all that fails, and forgets them."""
        wanted = [self.running[id(task)][1] for task in tasks]
        waiting: Collection[Future[_Done]] = [run for _, run in self.running.values()]
        while not all(run.done() for run in wanted):
            over, waiting = wait(waiting, _POLL_INTERVAL, FIRST_EXCEPTION)
            for run in over:
                run.result()
            self._report(tasks[0].step)
        done = {task.seed: run.result() for task, run in zip(tasks, wanted, strict=True)}
        self._report(tasks[0].step)
        for task in tasks:
            del self.running[id(task)]
        self.over += len(done)
        self.kept += sum(run.is_kept for run in done.values())
        return done

    def _report(self, step: str) -> None:
        shares = (1.0 if r.done() else task.monitor.done for task, r in self.running.values())
        self.progress(step, (self.over + sum(shares)) / self.total)

    def stop(self) -> None:
        """Stops all runs, and counts those that are kept."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        for task, _ in self.running.values():
            task.monitor.stop()
        runs = [run for _, run in self.running.values()]
        stop_all(runs, [task.monitor for task, _ in self.running.values()])
        finished = [run for run in runs if run.done() and not run.cancelled()]
        self.kept += sum(run.result().is_kept for run in finished if not run.exception())


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


def _result(resolved: Experiment, runs: Mapping[int, _Done], jobs: int) -> Result:
    outputs = {seed: done.output for seed, done in runs.items()}
    began, ended = min(d.began for d in runs.values()), max(d.ended for d in runs.values())
    meta = {
        "version": _core.__version__,
        "engine": engine(),
        "backend": "simulator",
        "seeds": list(outputs),
        "machine": machine(),
        "jobs": jobs,
        "stored": sum(done.is_stored for done in runs.values()),
        "wall_s": ended - began,
        "data_packets": sum(output.meta["data_packets"] for output in outputs.values()),
        "events": sum(output.meta["events"] for output in outputs.values()),
    }
    real = {str(seed): o for seed, o in outputs.items() if isinstance(o, TableOutput) and o.health}
    if real:
        meta |= {
            "backend": "linux",
            "kernel": platform.release(),
            "invalid": {seed: o.invalid_reasons for seed, o in real.items() if o.invalid_reasons},
            "testbed": {seed: o.health for seed, o in real.items()},
        }
    return collect(resolved, outputs, meta | {"hash": identity(resolved, meta)})
