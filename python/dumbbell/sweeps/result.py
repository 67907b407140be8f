"""Sweeps from Python: `sweep` runs one, and its `SweepResult` has the tables and a figure."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import figures, metrics
from dumbbell.display import Column, Table, format_settings
from dumbbell.engine.progress import Progress, silent
from dumbbell.errors import DumbbellError, unknown
from dumbbell.experiment.model import Experiment
from dumbbell.results.result import Result
from dumbbell.results.summary import in_notebook, means
from dumbbell.sweeps.chart import VALUE, chart_of
from dumbbell.sweeps.dataset import Dataset, is_dataset
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Axis, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dumbbell.engine.backend import Backend
    from dumbbell.metrics.intervals import Until

_SHOWN: Final = ("throughput", "utilisation", "queue_delay_mean", "retransmission_share", "jain")
_OF_TRANSFERS: Final = ("completed_share", "completion_p50", "completion_p99")
_MOST_POINTS: Final = 24  # more points than this are not in the table that is shown
_MOST_LIVE: Final = 8
"""The axis of the table that is shown of a running sweep has at most as many values."""
_COUNT: Final = " count"  # behind the name of a column: how many values its sum is of


@dataclass(frozen=True, eq=False, repr=False)
class SweepResult:
    """What came out of an experiment along its axes.

    Attributes:
        dataset: The folder that keeps it.
    """

    dataset: Dataset

    @property
    def folder(self) -> Path:
        """Its folder; a temporary one, deleted with this object, if ``out`` was not given."""
        return self.dataset.folder

    @property
    def axes(self) -> list[str]:
        """The names of the axes, which are columns of the tables."""
        return list(self.dataset.axes)

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per point and seed: the axes and the metrics of the run.

        Columns run, point, seed, the axes (s, bit/s, bytes, packets, BDP, or text), throughput,
        goodput (all flows together, bit/s), queue_delay_mean, queue_delay_p95 (s),
        retransmission_share, utilisation (0 to 1), dropped, lost (packets), jain, data_packets,
        events.
        """
        return self.dataset.table("runs")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per point, seed and flow: the axes and the columns of `metrics.summary`."""
        return self.dataset.table("flows")

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per point, seed and link: the axes and the columns of `metrics.link_summary`."""
        return self.dataset.table("links")

    def summary(self, *, ci: bool = False) -> pl.DataFrame:
        """One row per point: the axes, and the means of the metrics of `runs` over the seeds.

        Args:
            ci: Whether to add the ends of the 95 % interval of every mean (Student's t), as
                columns ``..._low`` and ``..._high``; null with one seed.
        """
        kept = metrics.with_least(self.runs, self.flows, "run").drop("run", "point")
        return metrics.means_over_seeds(kept, self.axes, ci=ci)

    def means(self, metric: str) -> pl.DataFrame:
        """The mean of a metric at each point, with its 95 % interval (Student's t).

        Args:
            metric: As for `plot`, such as ``"utilisation"``, ``"share of bbr3"``, ``"throughput of
                bbr3"``. What stands behind ``of`` is an algorithm, the name of a ``[[flow]]``
                table, or that of a flow.

        Returns:
            A row for each point, with the axes and the columns mean, low, high (null with one
            seed), in the units of `runs`, and n, the number of runs.

        Raises:
            DumbbellError: If there is no such metric.
        """
        _, points, found = self._means(metric)
        ends = {"mean": "value", "low": "low", "high": "high"}
        return points.with_columns(
            *(
                pl.Series(name, [getattr(one, end) for one in found], dtype=pl.Float64)
                for name, end in ends.items()
            ),
            n=pl.Series([len(one.runs) for one in found]),
        )

    def means_table(self, metric: str) -> Table:
        """The same as a table to show."""
        column, points, found = self._means(metric)
        axes = {name: axis["unit"] for name, axis in self.dataset.axes.items()}
        settings = [format_settings(points[name].to_list(), unit) for name, unit in axes.items()]
        shown = replace(column, number=True, priority=1)
        columns = [*map(Column, axes), shown, Column("Runs", number=True)]
        rows = zip(*settings, found, [len(one.runs) for one in found], strict=True)
        return Table(columns, list(rows))

    def _means(self, metric: str) -> tuple[Column, pl.DataFrame, list[metrics.Estimate]]:
        chart = chart_of(self.dataset, metric)
        points = chart.runs.group_by(self.axes, maintain_order=True).agg(VALUE)
        found = [
            metrics.mean(values, chart.metric, lowest=chart.least)
            for values in points[VALUE].to_list()
        ]
        return chart.column, points.select(self.axes), found

    def plot(
        self, x: str, y: str = "throughput", *, by: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draws the means of a metric along an axis, with their 95 % intervals.

        The intervals are Student's t over all runs at a place: over the seeds, if `x` and `by` are
        all axes.

        Args:
            x: The axis from left to right.
            y: The metric, as for ``dumbbell plot``: a column of `runs`, ``"share of bbr3"``, or an
                SQL expression.
            by: What has a line each: another axis, or ``"cc"``, the algorithms, whose flows at a
                point are then taken together; one line if not given.
            ax: The Matplotlib axes to draw on; new ones if not given.

        Returns:
            The axes.

        Raises:
            DumbbellError: If there is no such axis or metric.
        """
        for axis, known in ((x, self.axes), (by, list(dict.fromkeys([*self.axes, "cc"])))):
            if axis is not None and axis not in known:
                raise DumbbellError(unknown("axis", axis, known))
        chart = chart_of(self.dataset, y, by)
        with figures.styled():
            if ax is None:
                _, [[ax]] = figures.panels(make=figures.pyplot_figure())
            chart.lines(ax, x)
        return ax

    def table(self) -> Table:
        """The means of its first points over the seeds, with their 95 % intervals."""
        return self._table(self.runs, [])

    def beside(self, real: SweepResult) -> Table:
        """The same with a row more for each point: what `real`, the same sweep, has with packets.

        Points and seeds that `real` lacks, as the machine disturbed it, are left out.
        """
        simulated = self.runs.join(real.runs, on=["point", "seed"], how="semi")
        kinds = zip(("simulated", "real"), (simulated, real.runs), strict=True)
        runs = pl.concat(
            [one.with_columns(packets=pl.lit(kind)) for kind, one in kinds], how="diagonal_relaxed"
        )
        return self._table(runs.sort("point", maintain_order=True), ["packets"])

    def _table(self, runs: pl.DataFrame, more_axes: Sequence[str]) -> Table:
        """The means of the first points of runs by the axes, and by more of their columns."""
        shown = metrics.with_least(runs, self.flows, "run").with_columns(
            pl.Series(name, format_settings(runs[name].to_list(), axis["unit"]))
            for name, axis in self.dataset.axes.items()
        )
        columns = [*_SHOWN, *(name for name in _OF_TRANSFERS if name in runs.columns)]
        axes = [*self.axes, *more_axes]
        rows = means(shown, axes, columns)
        more = len(rows) - _MOST_POINTS
        note = f"... and {more:,} more points" if more > 0 else ""
        return Table([*map(Column, axes), *map(Column.of, columns)], rows[:_MOST_POINTS], note)

    def __repr__(self) -> str:
        """A table of its points: means over the seeds, with their 95 % intervals."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """What a notebook shows: the same table."""
        return in_notebook(self.table().html())


class LiveTable:
    """The means of the runs of a sweep that goes on, along one axis.

    It is that of most values, but not more than `_MOST_LIVE`, if there is one. Of the runs only
    sums are kept, so that a long sweep costs as much as a short one.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        """A table along one of the axes, yet without runs."""
        # By the axis: for each of its values how many runs there are, and of every column the sum
        # and the number of values.
        self._sums: dict[Axis | None, pl.DataFrame] = dict.fromkeys([None, *axes], pl.DataFrame())

    def add(self, runs: pl.DataFrame) -> None:
        """Adds runs, with their axes."""
        values = pl.col(_SHOWN).cast(pl.Float64)
        sums = [pl.len().alias("over"), values.sum(), values.count().name.suffix(_COUNT)]
        for axis, before in list(self._sums.items()):
            by = pl.col(axis.name) if axis else pl.lit("all")
            more = runs.group_by(by.alias("by")).agg(sums)
            both = pl.concat([before, more]) if before.width else more
            self._sums[axis] = both.group_by("by").agg(pl.all().sum())
            if self._sums[axis].height > _MOST_LIVE:
                del self._sums[axis]

    def table(self) -> Table:
        """The table of the runs so far."""
        few = [axis for axis, sums in self._sums.items() if axis and sums.height > 1]
        by = max(few, key=lambda axis: self._sums[axis].height, default=None)
        means = ((pl.col(name) / pl.col(f"{name}{_COUNT}")).fill_nan(None) for name in _SHOWN)
        found = self._sums[by].select("by", "over", *means).sort("by")
        settings = format_settings(found["by"].to_list(), by.unit if by else None)
        columns = [Column(by.name if by else ""), Column("Runs", number=True)]
        rows = found.with_columns(pl.Series("by", settings)).rows()
        return Table([*columns, *map(Column.of, _SHOWN)], rows)


def sweep(
    experiment: Experiment | Sweep | str | Path,
    axes: Mapping[str, Sequence[Any] | Mapping[str, Any]] | None = None,
    *,
    combine: str = "grid",
    points: int | None = None,
    out: str | Path | None = None,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    until: Until | None = None,
    series: bool = False,
    dask: str | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    overwrite: bool = False,
    progress: Progress = silent,
) -> SweepResult:
    """Runs an experiment along axes; what ``dumbbell sweep`` runs.

    ::

        swept = dumbbell.sweep(
            experiment,
            {"flow.*.cc": ["cubic", "bbr3"], "link.bottleneck.queue": ["0.5 BDP", "2 BDP"]},
            seeds=5,
        )
        swept.plot("queue", "utilisation", by="cc")

    Args:
        experiment: The experiment, or the path of a file, which may have a ``[sweep]`` table.
        axes: By key (``link.NAME.rate``, ``flow.*.cc``), the values one by one, or a range such as
            ``{"from": "10 ms", "to": "100 ms", "points": 5, "scale": "log"}``. Not given for a file
            with a ``[sweep]`` table.
        combine: ``"grid"``, ``"zip"``, ``"random"`` or ``"latin-hypercube"``.
        points: How many points are drawn, for the last two.
        out: The folder that keeps it; an earlier sweep there is resumed or extended. A temporary
            one if not given.
        seeds: How many seeds at every point, or which; those of the experiment if not given.
        jobs: How many runs to make at once; as many as there are processors if not given, or one
            if packets are real.
        until: Adds seeds to every point until the interval of a metric is as narrow as this.
        series: Whether time series are kept too.
        dask: The address of a Dask scheduler whose workers are to do the work.
        backend: ``"simulator"``, or ``"linux"`` for real packets in real time.
        retry_invalid: How often a run with real packets is repeated that the machine disturbed; if
            it is disturbed each time, it is left out.
        overwrite: Whether `out` may hold a sweep of another experiment, whose runs then stay there
            and are in no table.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Raises:
        ExperimentError: If the experiment or an axis is not valid, at any point.
        OverwriteError: If `out` holds a sweep of another experiment, unless `overwrite`.
        ResultError: If `out` holds something other than a sweep, or cannot be written.
        DumbbellError: If Dask cannot be used, or `dask` or `until` is given with real packets.
        TestbedError: If this machine lacks what real packets need.
        Interrupted: If the user interrupts; what is finished is kept in `out`.
    """
    if axes is not None:
        if isinstance(experiment, Sweep):
            raise DumbbellError("this experiment has axes; leave them out")
        drawn = {} if points is None else {"points": points}
        plain = {
            key: values if isinstance(values, str | Mapping) else list(values)
            for key, values in axes.items()
        }
        experiment = Sweep.of(experiment, {"combine": combine} | drawn | plain)
    elif isinstance(experiment, Experiment):
        raise DumbbellError('a sweep needs axes, such as {"flow.*.cc": ["cubic", "bbr3"]}')
    with ExitStack() as stack:
        if out is None:
            out = tempfile.mkdtemp(prefix="dumbbell-")
            stack.callback(shutil.rmtree, out, ignore_errors=True)
        swept = run_sweep(
            experiment,
            out,
            seeds=seeds,
            jobs=jobs,
            until=until,
            series=series,
            dask=dask,
            backend=backend,
            retry_invalid=retry_invalid,
            overwrite=overwrite,
            progress=progress,
        )
        result = SweepResult(swept.dataset)
        weakref.finalize(result, stack.pop_all().close)
    return result


def load(folder: str | Path) -> Result | SweepResult:
    """Reads a folder that ``dumbbell run`` or ``dumbbell sweep`` wrote.

    Raises:
        ResultError: If it is neither.
    """
    path = Path(folder)
    return SweepResult(Dataset(path)) if is_dataset(path) else Result.load(path)
