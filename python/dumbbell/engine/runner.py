"""Running experiments: every seed in a thread of its own, the answer the same however many."""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, Unpack

from dumbbell import _core, metrics
from dumbbell.engine import kernel
from dumbbell.engine.backend import Backend, sends_packets
from dumbbell.engine.cluster import Cluster, connected
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.simulation import engine, simulate, stop_all, thread_pool
from dumbbell.engine.store import Store, description, measurement_key, simulation_key
from dumbbell.errors import DumbbellError, ExperimentError, Interrupted, in_file
from dumbbell.experiment.linux_algorithms import is_of_linux
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.user_code import is_custom
from dumbbell.results.result import Result, collect
from dumbbell.results.storage import check, identity, machine, reserve
from dumbbell.results.tables import RunOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Until

    Values = Callable[[str, Result], Iterable[Sequence[float | None]]]

_POLL_INTERVAL: Final = 0.1  # how often progress is reported, s


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
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    until: Until | None = None,
    dask: str | None = None,
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
        dask: The address of a Dask scheduler whose workers simulate.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Returns:
        The tables of all seeds, in the order of the seeds.

    Raises:
        ExperimentError: If the experiment is not valid, or `until` or `dask` cannot be had.
        OverwriteError: If `out` holds another result, or a measurement with real packets.
        ResultError: If `out` holds something other than a result, or cannot be written.
        TestbedError: If this machine lacks what real packets need.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    if until:
        until.check(metrics.RUN_METRICS, is_real=sends_packets(backend))
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
            dask=dask,
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
    values: Values,
    *,
    overwrite: bool,
    until: Until | None,
    **options: Unpack[Options],
) -> list[Result]:
    """As `run_all`, and writes results into `folders` that are reserved before, unless None.

    `overwrite` and `until` are those of `run`; `values` are what `until` judges of a result, by the
    name of its metric. Progress begins anew when seeds are added.
    """
    backend = options.get("backend", "simulator")
    every = [experiment.resolve() for experiment in experiments]
    with ExitStack() as stack:
        places = []
        for one, folder in zip(every, folders, strict=True):
            seeds = None if until else one.seed_list
            expected = _expected(one, backend)
            reserved = folder and reserve(folder, expected, seeds, overwrite=overwrite)
            places.append(stack.enter_context(reserved) if reserved else None)
        results = run_all(every, **(options | {"fresh": overwrite}))
        while until and (loose := _loose(results, until, values)):
            added = [
                one.experiment.replace(seeds=until.next_seeds(one.seeds)[len(one.seeds) :])
                for one in loose.values()
            ]
            for number, more in zip(loose, run_all(added, **options), strict=True):
                results[number] = results[number].concat(more)
        for result, place in zip(results, places, strict=True):
            if place is not None:
                result.write(place)
    return results


def refuse(experiment: Experiment, out: Path, backend: Backend, *, overwrite: bool) -> None:
    """Raises the errors that `run` would raise of the flows and of what `out` holds."""
    resolved = experiment.resolve()
    refuse_others([resolved], is_real=sends_packets(backend))
    check(out, _expected(resolved, backend), resolved.seed_list, overwrite=overwrite)


def _expected(resolved: Experiment, backend: Backend) -> str | None:
    """The identity of the result; None with real packets, as each is another one."""
    meta = {"backend": backend, "engine": engine()}
    return identity(resolved, meta) if backend == "simulator" else None


def _loose(results: list[Result], until: Until, values: Values) -> dict[int, Result]:
    """The results that need more seeds and may have them, by their number."""
    return {
        number: result
        for number, result in enumerate(results)
        if len(result.seeds) < until.max_seeds
        and not all(map(until.is_satisfied_by, values(until.metric, result)))
    }


def run_all(
    experiments: Sequence[Experiment],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    fresh: bool = False,
    dask: str | None = None,
    progress: Progress = silent,
) -> list[Result]:
    """Runs several experiments, the seeds of all of them side by side.

    Args:
        experiments: The experiments.
        jobs: How many seeds to run at once; see `run`.
        backend: ``"simulator"``, or ``"linux"`` for real packets in real time.
        retry_invalid: How often an invalid run is repeated: one with real packets that the machine
            disturbed.
        fresh: Whether runs with real packets are made even if the run store has them.
        dask: The address of a Dask scheduler whose workers simulate.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Returns:
        A result for every experiment, in their order; the same as from running them one by one.

    Raises:
        ExperimentError: If one of them is not valid, there is no such backend, or `dask` cannot be
            had.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    return list(
        run_each(
            experiments,
            jobs=jobs,
            backend=backend,
            retry_invalid=retry_invalid,
            fresh=fresh,
            dask=dask,
            progress=progress,
        )
    )


def run_each(
    experiments: Sequence[Experiment],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    fresh: bool = False,
    dask: str | None = None,
    progress: Progress = silent,
) -> Generator[Result, None, None]:
    """As `run_all`, and yields the results one by one in their order, without keeping them."""
    is_real = sends_packets(backend)
    if is_real and dask is not None:
        raise ExperimentError("is for the simulator", key="dask")
    resolved = [experiment.resolve() for experiment in experiments]
    refuse_others(resolved, is_real=is_real)
    flows = [flow for one in resolved for flow in one.flows if is_real and flow.transport == "tcp"]
    store = Store.default()
    with ExitStack() as held:
        there = held.enter_context(connected(dask)) if dask else None
        if jobs is None and (is_real or there):
            jobs = there.threads if there else 1
        at_once = workers(jobs)
        if is_real:
            # The emulators poll unless so many runs share the processors.
            at_once = min(at_once, max(sum(len(one.seed_list) for one in resolved), 1))
        names = held.enter_context(kernel.provided(flow.cc for flow in flows))
        pool = held.enter_context(thread_pool(at_once))
        runs = _Runs(pool, "measuring" if is_real else "simulating", progress)
        for one in resolved:
            for seed in one.seed_list:
                if is_real:
                    args = (one, seed, store, names, retry_invalid, fresh, at_once)
                    runs.start(_measure, kernel.RunMonitor(), *args)
                else:
                    runs.start(_simulate, _core.RunMonitor(), one, seed, store, there)
        try:
            for one in resolved:
                yield _result(one, runs.take(len(one.seed_list)), at_once)
        except BaseException as error:
            runs.stop()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(runs.kept, runs.total) from None
            raise


def refuse_others(resolved: Sequence[Experiment], *, is_real: bool) -> None:
    """Raises `ExperimentError` for a flow that only the other backend can have."""
    for number, flow in (pair for one in resolved for pair in enumerate(one.flows)):
        refuse_other(f"flow[{number}]", flow.cc, flow.command, is_real=is_real)


def refuse_other(key: str, cc: str, command: str | None, *, is_real: bool) -> None:
    """Raises `ExperimentError` if only the other backend can have a flow with these keys.

    `key` names the flow.
    """
    if is_real and is_custom(cc):
        problem = f'"{cc}" is a class, and classes run in the simulator only'
        advice = 'with real packets "linux:FILE.o" is an algorithm of yours, by eBPF'
        raise ExperimentError(f"{problem}; {advice}", key=f"{key}.cc")
    if not is_real and is_of_linux(cc):
        problem = f'"{cc}" is for real packets only; run it with the backend "linux"'
        raise ExperimentError(problem, key=f"{key}.cc")
    if not is_real and command is not None:
        problem = 'a program sends real packets; run it with the backend "linux"'
        raise ExperimentError(problem, key=f"{key}.command")


class _Done(NamedTuple):
    """The output of a run, when it was made (s), and whether it was and is in the store."""

    output: RunOutput
    began: float
    ended: float
    was_stored: bool
    is_stored: bool


def _simulate(
    monitor: _core.RunMonitor, one: Experiment, seed: int, store: Store, cluster: Cluster | None
) -> _Done:
    """Runs one seed of a resolved experiment in the simulator, here or on a cluster."""
    scenario, used = one.scenario(seed), [flow.cc for flow in one.flows]

    def make() -> RunOutput:
        try:
            if cluster and not any(flow.log for flow in one.flows):
                return cluster.simulate(scenario, used, one.sources)
            return RunOutput.of(simulate(scenario, used, one.sources, monitor))
        except _core.ScenarioError as error:
            raise ExperimentError(str(error)) from None

    what = description(one, seed, "simulator")
    return _finish(make, store, simulation_key(one, scenario), what)


def _measure(
    monitor: kernel.RunMonitor,
    one: Experiment,
    seed: int,
    store: Store,
    names: Mapping[str, str],
    retry_invalid: int,
    fresh: bool,
    at_once: int,
) -> _Done:
    """Runs the same with real packets; the last of several attempts counts.

    `names` are what the kernel calls the algorithms.
    """
    scenario = one.scenario(seed)

    def make() -> RunOutput:
        return measured(kernel.for_kernel(scenario, names), monitor, retry_invalid, at_once)

    what = description(one, seed, "linux")
    return _finish(make, store, measurement_key(one, scenario, names), what, fresh=fresh)


def measured(
    scenario: str, monitor: kernel.RunMonitor, retry_invalid: int, at_once: int
) -> RunOutput:
    """Runs a scenario with real packets, up to so many times again while the run is invalid."""
    for attempt in range(1, max(retry_invalid, 0) + 2):
        output = kernel.run_scenario(scenario, monitor, at_once=at_once)
        output.health["attempts"] = attempt
        if not output.invalid_reasons:
            break
    return output


def _finish(
    make: Callable[[], RunOutput], store: Store, key: str | None, what: str, *, fresh: bool = False
) -> _Done:
    """Takes a run from the store, or makes it; it is stored unless it is invalid."""
    began = time.perf_counter()
    if not fresh and (found := store.get(key)):
        tables, facts = found
        output = RunOutput(**tables, meta=facts["meta"], health=facts.get("health", {}))
        return _Done(output, began, time.perf_counter(), was_stored=True, is_stored=True)
    output = make()
    ended = time.perf_counter()
    facts = {"meta": output.meta, "health": output.health, "what": what}
    is_stored = not output.invalid_reasons and store.put(key, output.tables, facts)
    return _Done(output, began, ended, was_stored=False, is_stored=is_stored)


class _Runs:
    """Runs that go on in a pool, in the order in which they were started, and their monitors.

    Of `total` runs `over` are over and forgotten, of which `kept` are in the store.
    """

    def __init__(self, pool: ThreadPoolExecutor, step: str, progress: Progress) -> None:
        self.pool, self.step, self.progress = pool, step, progress
        self.running: dict[Future[_Done], _core.RunMonitor | kernel.RunMonitor] = {}
        self.total = self.over = self.kept = 0

    def start(
        self, run: Callable[..., _Done], monitor: _core.RunMonitor | kernel.RunMonitor, *args: Any
    ) -> None:
        self.running[self.pool.submit(run, monitor, *args)] = monitor
        self.total += 1

    def take(self, count: int) -> list[_Done]:
        """Waits for the first runs, or for the first of all that fails, and forgets them."""
        group, left = list(self.running)[:count], set(self.running)
        while not all(run.done() for run in group):
            over, left = wait(left, _POLL_INTERVAL, FIRST_EXCEPTION)
            for run in over:
                run.result()
            self._report()
        done = [run.result() for run in group]
        for run in group:
            del self.running[run]
        self.over += count
        self.kept += sum(one.is_stored for one in done)
        self._report()
        return done

    def _report(self) -> None:
        shares = (1.0 if run.done() else monitor.done for run, monitor in self.running.items())
        self.progress(self.step, (self.over + sum(shares)) / self.total)

    def stop(self) -> None:
        """Stops all runs, and counts those that are kept."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        for monitor in self.running.values():
            monitor.stop()
        stop_all(self.running, self.running.values())
        for run in self.running:
            if run.done() and not run.cancelled() and not run.exception():
                self.kept += run.result().is_stored


def workers(jobs: int | None) -> int:
    """How many simulations to run at once: so many, or one a processor; checked."""
    if jobs is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if jobs < 1:
        raise DumbbellError(f"jobs: {jobs} is not a number of runs at once; write 1 or more")
    return jobs


def _result(resolved: Experiment, runs: list[_Done], jobs: int) -> Result:
    outputs = dict(zip(resolved.seed_list, (run.output for run in runs), strict=True))
    meta = {
        "version": _core.__version__,
        "engine": engine(),
        "backend": "simulator",
        "seeds": list(outputs),
        "machine": machine(),
        "jobs": jobs,
        "stored": sum(run.was_stored for run in runs),
        "wall_s": max(run.ended for run in runs) - min(run.began for run in runs),
        "data_packets": sum(output.meta["data_packets"] for output in outputs.values()),
        "events": sum(output.meta["events"] for output in outputs.values()),
    }
    if failures := _failures(resolved, outputs):
        meta["failures"] = failures
    real = {str(seed): output for seed, output in outputs.items() if output.health}
    if real:
        meta |= {
            "backend": "linux",
            "kernel": platform.release(),
            "invalid": {seed: o.invalid_reasons for seed, o in real.items() if o.invalid_reasons},
            "testbed": {seed: o.health for seed, o in real.items()},
        }
    return collect(resolved, outputs, meta | {"hash": identity(resolved, meta)})


def _failures(resolved: Experiment, outputs: Mapping[int, RunOutput]) -> dict[str, Any]:
    """The connections that their stacks closed before their time, by seed."""
    names = [name for names in resolved.flow_names() for name in names]
    return {
        str(seed): [{"flow": names[at], "t": t, "reason": why} for at, t, why in failures]
        for seed, output in outputs.items()
        if (failures := output.meta.get("failures"))
    }
