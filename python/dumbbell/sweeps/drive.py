"""Driving a sweep: what is missing is run, on threads or on a cluster, and kept as it comes."""

from __future__ import annotations

import json
import time
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.engine import cluster
from dumbbell.engine.backend import sends_packets
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import refuse_other, workers
from dumbbell.engine.simulation import stop_all, thread_pool
from dumbbell.engine.store import Packs
from dumbbell.engine.store import Store as RunStore
from dumbbell.errors import DumbbellError, ExperimentError, Interrupted
from dumbbell.experiment.user_code import copy_sources
from dumbbell.results.tables import COLUMNS
from dumbbell.sweeps.dataset import Dataset, Store, check, is_dataset
from dumbbell.sweeps.plan import METRICS, OF_SOME, Point, Run, Sweep, build
from dumbbell.sweeps.real import RealPackets, duration, machine_of, real_packets
from dumbbell.sweeps.work import RUNNING_POINT, ChunkMonitor, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dumbbell.engine.backend import Backend
    from dumbbell.metrics.intervals import Until
    from dumbbell.sweeps.dataset import Axes
    from dumbbell.sweeps.work import Tables

_POLL_INTERVAL: Final = 0.2  # how often progress is reported, s
_CHUNK: Final = 2e6  # the work of a chunk of runs, packets: about half a second
_MOST_IN_CHUNK: Final = 64
_KEEP_AFTER: Final = 3.0  # finished chunks are written at least this often, s
_KEEP_BYTES: Final = 64 * 10**6
_MANY: Final = 100  # after as many points planned progress is reported
_SHOW_AFTER: Final = 0.25  # new rows are shown at most this often, s


@dataclass(frozen=True)
class Swept:
    """A sweep that is over."""

    dataset: Dataset  # where it is
    total: int  # how many runs it has
    before: int  # how many of them were there before
    made: int  # how many were made; points that mean the same share theirs
    # Points whose interval is still wider than was asked for when the seeds ran out.
    loose_points: list[Point]
    hidden: int  # runs in its folder that it does not ask for
    invalid: list[str]  # why each of the runs that were left out is invalid
    warnings: list[str]  # sentences on settings without effect

    @property
    def loose(self) -> int:
        """How many `loose_points` there are."""
        return len(self.loose_points)

    @property
    def left_out(self) -> list[str]:
        """Sentences on the runs that the tables do not have: earlier ones and disturbed ones."""
        count, first = len(self.invalid), next(iter(self.invalid), "")
        told = f"{count} run(s) are invalid and left out: {first}"
        said = [f"{told}; the same command makes them again"] if count else []
        kept = f"{self.dataset.folder}: {self.hidden:,} earlier run(s) stay and are in no table"
        reason = "they have other points or seeds than this command, or another version"
        return said + ([f"{kept}: {reason}"] if self.hidden else [])


def run_sweep(
    source: Sweep | str | Path,
    out: str | Path,
    *,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    until: Until | None = None,
    series: bool = False,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    overwrite: bool = False,
    progress: Progress = silent,
    finished: Callable[[pl.DataFrame], None] | None = None,
) -> Swept:
    """Runs an experiment along its axes, except the runs that `out` has already.

    Arguments and errors are those of `dumbbell.sweep`. `finished` takes the rows of ``runs`` that
    are new, with their axes, a few times a second.
    """
    sweep = source if isinstance(source, Sweep) else Sweep.load(source)
    is_real = sends_packets(backend)
    if until:
        is_of_some = OF_SOME.fullmatch(until.metric)
        until.check([until.metric] if is_of_some else METRICS, is_real=is_real)
    if is_real and dask is not None:
        raise ExperimentError("is for the simulator", key="dask")
    numbers, seed_of = sweep.seeds(seeds), sweep.seed_of
    points = []  # before the folder is made
    for point in sweep.points():
        _refuse_others(point, is_real=is_real)
        points.append(replace(point, cost=duration(point)) if is_real else point)
        if len(points) % _MANY == 0:
            progress("planning", len(points) / sweep.count)
    at_once = 1 if is_real and jobs is None else jobs
    with (
        real_packets(points, retry_invalid, workers(at_once), is_real=is_real) as packets,
        Store(Path(out), backend) as store,
        _pool(at_once, dask) as (pool, count),
    ):
        _refuse_another(sweep, store.folder, overwrite=overwrite)
        driver = _Driver(sweep, points, store, pool, count, series, packets, progress, finished)
        first = {point.number: [seed_of(point.values)] if seed_of else numbers for point in points}
        driver.go_through(first)
        loose = driver.tighten(until, first) if until else []
        store.merge()
        warnings = list(dict.fromkeys(text for point in points for text in point.warnings))
        warnings += _hidden_axes(sweep, max((len(point.flows) for point in points), default=0))
        made = (driver.total, driver.found, driver.made)
        dataset = Dataset(store.folder)
        hidden = len(store.done().difference(dataset.plan["run"]))
        swept = Swept(dataset, *made, loose, hidden, driver.invalid, warnings)
        if driver.invalid and not store.done():
            raise DumbbellError(f"{out}: no run counts: {'; '.join(swept.left_out)}")
        return swept


def refuse(sweep: Sweep, out: Path, backend: Backend, *, overwrite: bool) -> None:
    """Raises the errors that `run_sweep` would raise of the flows and of what `out` holds."""
    for point in sweep.points():
        _refuse_others(point, is_real=sends_packets(backend))
    check(out, backend)
    _refuse_another(sweep, out, overwrite=overwrite)


def _refuse_another(sweep: Sweep, folder: Path, *, overwrite: bool) -> None:
    if is_dataset(folder) and not overwrite:
        Dataset(folder).refuse_another(sweep.text, _axes(sweep))


def _hidden_axes(sweep: Sweep, tables: int) -> list[str]:
    """What to say of axes that a column of ``flows`` hides: of links, or of some of several flows.

    `tables` is how many tables [[flow]] the points have at most.
    """
    of_every_flow = "flow." if tables == 1 else "flow.*."
    hidden = [
        axis
        for axis in sweep.axes
        if axis.name in COLUMNS["flows"] and not axis.key.startswith(of_every_flow)
    ]
    return [
        f"{axis.key}: the axis is not in the table flows, which has a column {axis.name} of its "
        'own; give it a name, as in { values = [...], name = "opponent" }'
        for axis in hidden
    ]


def _refuse_others(point: Point, *, is_real: bool) -> None:
    """Raises `ExperimentError` for a flow of a point that only the other backend can have."""
    for flow in point.flows:
        key = f"flow.{flow['name']}"
        refuse_other(key, flow["cc"], flow.get("command"), is_real=is_real)


@contextmanager
def _pool(jobs: int | None, dask: str | None) -> Iterator[tuple[Executor, int]]:
    """The workers, and how many runs they make at once."""
    if dask is None:
        count = workers(jobs)
        with thread_pool(count) as pool:
            yield pool, count
        return
    with cluster.connected(dask) as there:
        yield there.executor, there.threads if jobs is None else workers(jobs)


@dataclass
class _Driver:
    """Makes the runs of a sweep that are missing, and keeps them as they come."""

    sweep: Sweep
    points: list[Point]
    store: Store
    pool: Executor
    at_once: int
    series: bool
    real: RealPackets | None
    progress: Progress
    finished: Callable[[pl.DataFrame], None] | None
    total: int = 0
    found: int = 0
    made: int = 0

    def __post_init__(self) -> None:
        self.there = self.store.done()
        self.before = set(self.there)
        self.invalid: list[str] = []
        self.machine, is_known = "", True
        if self.real:
            self.machine, is_known = machine_of(self.points, self.real.names)
        is_shared = not self.series and is_known and _is_shared(self.points)
        self.packs = Packs(RunStore.default() if is_shared else RunStore(None))
        self.waiting: list[Tables] = []
        self.kept_at = time.monotonic()
        self.unshown: list[pl.DataFrame] = []
        self.shown_at = -_SHOW_AFTER

    def go_through(self, seeds: dict[int, list[int]]) -> None:
        """Makes what is missing of every point with its seeds, the first seeds of all first."""
        runs = [
            point.run(seed, series=self.series, machine=self.machine)
            for turn in range(max(map(len, seeds.values())))
            for point in self.points
            for seed in seeds[point.number][turn : turn + 1]
        ]
        asked = _table(self.sweep, runs)
        backend = "linux" if self.real else "simulator"
        self.store.write_plan(asked, _axes(self.sweep), self.sweep.text, backend)
        copy_sources(_sources(self.points), self.store.folder)
        if stored := self.packs.get(sorted({run.name for run in runs} - self.there)):
            self.store.add(stored)
            self.there.update(stored["runs"]["run"])
            self.before.update(stored["runs"]["run"])
        self.found = sum(run.name in self.before for run in runs)
        self.total = len(runs)
        missing = {run.name: run for run in runs if run.name not in self.there}
        try:
            self._run(list(missing.values()), asked)
        except KeyboardInterrupt:
            kept = sum(run.name in self.there for run in runs)
            raise Interrupted(kept, len(runs)) from None
        finally:
            self._keep_rest()

    def tighten(self, until: Until, first: dict[int, list[int]]) -> list[Point]:
        """Adds seeds to the points that are not known well enough; returns those that stay so."""
        points, seeds = {point.number: point for point in self.points}, dict(first)
        while True:
            dataset = Dataset(self.store.folder)
            runs = dataset.table("runs")
            if found := OF_SOME.fullmatch(until.metric):
                from dumbbell.sweeps.some_flows import of_some  # it needs half a second

                metric, _, values = of_some(dataset, *found.groups())
                runs = dataset.plan.join(values.rename({metric: until.metric}), on="run")
            known = runs.group_by("point").agg(pl.col(until.metric).cast(pl.Float64))
            by_point = dict(known.iter_rows())
            loose = [point for point in seeds if not until.is_satisfied_by(by_point.get(point, []))]
            grow = [point for point in loose if len(seeds[point]) < until.max_seeds]
            if not grow:
                return [points[number] for number in loose]
            seeds |= {point: until.next_seeds(seeds[point]) for point in grow}
            self.go_through(seeds)

    def _run(self, missing: list[Run], asked: pl.DataFrame) -> None:
        built, left = build(), iter(missing)
        work = sum(run.point.cost for run in missing)
        local = isinstance(self.pool, ThreadPoolExecutor)
        running: dict[Future[Tables], ChunkMonitor] = {}
        over = 0.0
        try:
            while True:
                while len(running) < 2 * self.at_once and (chunk := self._chunk(left)):
                    future, monitor = self._submit(chunk, built, local=local)
                    running[future] = monitor
                if not running:
                    self._show(asked)
                    return
                for future in wait(running, _POLL_INTERVAL, FIRST_COMPLETED).done:
                    monitor = running.pop(future)
                    over += monitor.work
                    self.invalid += monitor.invalid
                    if tables := cluster.result_of(future):
                        self._take(tables)
                if time.monotonic() - self.shown_at >= _SHOW_AFTER:
                    self._show(asked)
                done = over + sum(monitor.done for monitor in running.values())
                # Chunks end long after they began: a number of finished runs would stay at 0.
                self.progress(f"{self.total:,} runs", done / work)
        except BaseException as error:
            begun = (one.point for one in running.values() if one.point is not None)
            setattr(error, RUNNING_POINT, next(begun, None))
            for future, monitor in running.items():
                future.cancel()
                monitor.run.stop()
            if local:
                stop_all(running, [monitor.run for monitor in running.values()])
            raise

    def _chunk(self, missing: Iterator[Run]) -> list[Run]:
        """The next runs, together as much work as a chunk is to be; one with real packets."""
        chunk, cost = [], 0.0
        for run in missing:
            chunk.append(run)
            cost += run.point.cost
            if self.real or cost >= _CHUNK or len(chunk) == _MOST_IN_CHUNK:
                break
        return chunk

    def _submit(
        self, chunk: list[Run], built: str, *, local: bool
    ) -> tuple[Future[Tables], ChunkMonitor]:
        """Lets a worker make a chunk of runs."""
        if self.real:
            [run] = chunk
            monitor = self.real.monitor(run)
            return self.pool.submit(self.real.measure, run, self.series, monitor), monitor
        monitor = ChunkMonitor(sum(run.point.cost for run in chunk))
        args = (chunk, built, self.series, *((monitor,) if local else ()))
        return self.pool.submit(simulate, *args), monitor

    def _take(self, tables: Tables) -> None:
        """Takes a chunk in, and keeps what has come together if it is time."""
        self.waiting.append(tables)
        self.there.update(tables["runs"]["run"])
        self.made += tables["runs"].height
        if self.finished:
            self.unshown.append(tables["runs"])
        size = sum(table.estimated_size() for some in self.waiting for table in some.values())
        if time.monotonic() - self.kept_at >= _KEEP_AFTER or size >= _KEEP_BYTES:
            self._keep()

    def _show(self, asked: pl.DataFrame) -> None:
        """Gives `finished` the rows of the runs that are new."""
        if self.finished and self.unshown:
            self.shown_at = time.monotonic()
            # Only runs with transfers, or with media, have the columns of these.
            runs = pl.concat(self.unshown, how="diagonal_relaxed")
            self.unshown = []
            self.finished(asked.join(runs, on="run"))

    def _keep_rest(self) -> None:
        """Keeps what waits, but for what an interrupted `_keep` has written."""
        if self.waiting and self.waiting[0]["runs"]["run"][0] in self.store.done():
            self.waiting = []  # they are written together
        self._keep()

    def _keep(self) -> None:
        if self.waiting:
            tables = {
                name: pl.concat([some[name] for some in self.waiting], how="diagonal_relaxed")
                for name in self.waiting[0]
            }
            self.store.add(tables)
            self.packs.put(tables)
            self.waiting = []
        self.kept_at = time.monotonic()


def _axes(sweep: Sweep) -> Axes:
    """The axes as the folder of a sweep tells them."""
    return {axis.name: {"key": axis.key, "unit": axis.unit} for axis in sweep.axes}


def _sources(points: list[Point]) -> dict[str, str]:
    """The algorithms of the user in all points, and their hashes."""
    found: dict[str, str] = {}
    for point in points:
        if '"sources"' in point.scenario:
            found |= json.loads(point.scenario).get("sources", {})
    return found


def _is_shared(points: list[Point]) -> bool:
    """Whether the runs may be shared with other sweeps: all code that determines them is hashed."""
    return all(name.partition(":")[0].endswith(".py") for name in _sources(points))


def _table(sweep: Sweep, runs: Iterable[Run]) -> pl.DataFrame:
    """The plan: a row for each run that is asked for."""
    kinds: dict[str, type[pl.DataType]] = {
        axis.name: pl.String if axis.unit is None else pl.Float64 for axis in sweep.axes
    }
    first: dict[str, type[pl.DataType]] = {"run": pl.String, "point": pl.UInt32, "seed": pl.UInt64}
    rows = [(run.name, run.point.number, run.seed, *run.point.values) for run in runs]
    return pl.DataFrame(rows, schema=first | kinds, orient="row").sort("point", "seed")
