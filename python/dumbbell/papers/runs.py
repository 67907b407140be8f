"""The runs of a paper, and what is measured in them.

A metric gives a value for every seed. `METRICS` are the built-in ones; a paper's own are functions
of its ``paper.py``. Only small tables are kept of a result: results themselves are read from their
folders when they are needed.
"""

from __future__ import annotations

import inspect
from collections import UserDict
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import polars as pl

from dumbbell.metrics import intervals, summary, throughput
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import ExperimentSpec, Measure, Paper


T = TypeVar("T")


@dataclass(frozen=True)
class Metric:
    """A quantity that is measured in every run, and its unit.

    Attributes:
        function: Takes the throughputs of all flows (see `Runs.rates`), or the result if it is a
            paper's own; then options.
    """

    unit: str
    function: Callable[..., Any]

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises `ValueError` if there is no such option, or one is missing."""
        signature = inspect.signature(self.function)
        try:
            signature.bind(None, **options)
        except TypeError as error:
            known = ", ".join([*signature.parameters][1:]) or "none"
            raise ValueError(f"{error}; the options of the metric are {known}") from None


class NoFlowError(ValueError):
    """An experiment has no flow of that name."""


def _sum(rates: pl.DataFrame, flow: str) -> pl.Series:
    """The throughput of the flows that match a pattern, such as ``multipath/*``."""
    there = [name for name in rates.columns if name != "seed"]
    names = [name for name in there if fnmatchcase(name, flow)]
    if not names:
        raise NoFlowError(f'no flow matches "{flow}"; the flows are {", ".join(there)}')
    return rates.select(pl.sum_horizontal(names))[names[0]]


def _jain(rates: pl.DataFrame, flows: Sequence[str] = ()) -> pl.Series:
    every = [_sum(rates, flow) for flow in flows or rates.drop("seed").columns]
    total, squares = every[0], every[0] ** 2
    for one in every[1:]:
        total, squares = total + one, squares + one**2
    return total**2 / (len(every) * squares)


METRICS: Final = {
    "throughput": Metric("Mbit/s", lambda rates, flow="*": _sum(rates, flow)),
    "ratio": Metric("1", lambda rates, flow, over: _sum(rates, flow) / _sum(rates, over)),
    "share": Metric("1", lambda rates, flow: _sum(rates, flow) / _sum(rates, "*")),
    "gap": Metric("Mbit/s", lambda rates, flow, to: _sum(rates, to) - _sum(rates, flow)),
    "jain": Metric("1", _jain),
}
"""The built-in metrics: the throughput of a flow or of several together; the ratio of two; the
share in the throughput of all; by how much one has more; and Jain's index."""


_UNITS: Final = (
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"s": 1.0, "ms": 1e-3},
    {"1": 1.0, "%": 0.01},
)


def conversion(unit: str, wanted: str) -> float:
    """The factor from `unit` to `wanted`.

    Raises:
        ValueError: If they are not of one kind.
    """
    for sizes in _UNITS:
        if unit in sizes and wanted in sizes:
            return sizes[unit] / sizes[wanted]
    if unit != wanted:
        raise ValueError(f'the metric is measured in {unit}, which "{wanted}" is no unit for')
    return 1.0


class SavedResults(UserDict[str, Any]):
    """Results in folders, by name; each is read when it is needed, and not kept."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """The results of these names below a folder; they are written later, or exist already."""
        super().__init__({name: folder / name for name in names})
        self._alive: WeakValueDictionary[str, Result] = WeakValueDictionary()

    def save(self, name: str, result: Result) -> None:
        """Writes a result to its folder."""
        result.save(self.data[name], overwrite=True)
        self._alive[name] = result

    def __getitem__(self, name: str) -> Result:
        result = self._alive.get(name) or Result.load(self.data[name])
        self._alive[name] = result
        return result


@dataclass(frozen=True)
class Runs:
    """What was run.

    Attributes:
        results: Results by the id of their experiment; `runs["id"]` is one of them.
        extensions: For each extension, by the id of its template, rows by seed with a column for
            every setting of ``each``.
        paper: What the paper says; standard figures need it.
        metrics: The metrics of the paper's own.
    """

    results: Mapping[str, Result]
    extensions: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    paper: Paper = None  # type: ignore[assignment]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, experiment: str) -> Result:
        return self.results[experiment]

    def with_results(self, results: Mapping[str, Result]) -> Runs:
        """The same with other results in the place of some, and nothing kept."""
        return replace(self, results={**self.results, **results}, _kept={})

    def kept(self, experiment: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """What a function makes of a result; it is computed once."""
        key = (experiment, function, args, repr(sorted(options.items())))
        if key not in self._kept:
            self._kept[key] = function(self[experiment], *args, **options)
        return self._kept[key]  # type: ignore[no-any-return]

    def rates(self, experiment: str, until: float | None = None) -> pl.DataFrame:
        """Throughputs, Mbit/s: a row a seed, a column a flow or subflow."""
        return self.kept(experiment, _rates, until)

    def values(self, experiment: str, metric: str = "throughput", **options: Any) -> list[Any]:
        """A metric of every run of an experiment, a value a seed."""
        own = self.metrics.get(metric)
        if own is not None:
            return list(self.kept(experiment, own.function, **options))
        return list(METRICS[metric].function(self.rates(experiment), **options))

    def median(
        self,
        experiment: str,
        metric: str = "throughput",
        *,
        limit: float | None = None,
        **options: Any,
    ) -> Estimate:
        """The median of a metric over the seeds, with its 95 % interval."""
        return intervals.median(self.values(experiment, metric, **options), limit)

    def of_measure(self, experiment: str, measure: Measure | None) -> Estimate:
        """The median of a measure, as ``paper.toml`` has it, over the seeds."""
        assert measure is not None, "a function of paper.py measures this number"
        return self.median(experiment, measure.metric, limit=measure.limit, **measure.others)

    def value(self, experiment: str, metric: str = "throughput", **options: Any) -> float:
        """The median of a metric over the seeds, of which no run is censored."""
        return known(self.median(experiment, metric, **options))

    def estimate(self, spec: ExperimentSpec, measure: Measure) -> Estimate:
        """The median of a measure over the seeds; of an extension from the rows that are kept."""
        if not spec.template.extension:
            return self.of_measure(spec.id, measure)
        chosen = [pl.col(key).cast(pl.String) == value for key, value in spec.settings.items()]
        rows = self.extensions[spec.template.id].filter(*chosen)
        if measure.metric in self.metrics:
            values = rows[measure.metric].to_list()
        else:
            values = METRICS[measure.metric].function(wide(rows), **measure.others)
        return intervals.median(values, measure.limit)


def wide(table: pl.DataFrame) -> pl.DataFrame:
    """Throughputs, Mbit/s, a row a seed and a column a flow, of rows by seed and flow in bit/s."""
    named = table.with_columns(pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6)
    return named.pivot("flow", index="seed", values="throughput")


def _rates(result: Result, until: float | None) -> pl.DataFrame:
    return wide(throughput(result.by_subflow(), until=until))


def reduced(result: Result) -> pl.DataFrame:
    """What is kept of an extension's run unless the paper says otherwise: rows by seed and flow.

    Columns: seed, flow, throughput (bit/s), retransmission_share (0 to 1), queue_delay_mean (s).
    """
    columns = ("seed", "flow", "throughput", "retransmission_share", "queue_delay_mean")
    return summary(result.by_subflow()).select(columns).with_columns(pl.col("flow").cast(pl.String))


def once(function: Callable[[Result], T]) -> Callable[[Result], T]:
    """The function, computed once for a result, and forgotten with it."""
    found: WeakKeyDictionary[Result, T] = WeakKeyDictionary()

    def of(result: Result) -> T:
        if result not in found:
            found[result] = function(result)
        return found[result]

    return of


def known(estimate: Estimate) -> float:
    """The value of an estimate that is within the limit of observation.

    Raises:
        ValueError: If it is beyond.
    """
    if estimate.value is None:
        raise ValueError("the median is beyond the limit of observation")
    return estimate.value
