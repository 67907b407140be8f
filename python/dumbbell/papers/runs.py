"""The runs of a paper, and what is measured in them.

Only small tables are kept of a result: results themselves are read from their folders when they are
needed.
"""

from __future__ import annotations

import inspect
import json
import math
from collections import UserDict
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

import polars as pl

from dumbbell.errors import DumbbellError
from dumbbell.metrics import intervals, summary, throughput
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import ExperimentSpec, Measure, Paper

T = TypeVar("T")


@dataclass(frozen=True)
class Metric:
    """A quantity that is measured in every run, and its unit."""

    unit: str
    # Gives a value for every seed, or a table by seed that has a column for the metric. It takes
    # the result, then options.
    function: Callable[..., Any]
    of_rates: bool = False  # whether it takes the throughputs of all flows instead, see `rates`
    lowest: float = -math.inf  # the range of the values; an interval ends there
    highest: float = math.inf

    def check(self, options: Mapping[str, Any]) -> None:
        """Raises `ValueError` if there is no such option, or one is missing."""
        signature = inspect.signature(self.function)
        try:
            signature.bind(None, **options)
        except TypeError as error:
            known = ", ".join([*signature.parameters][1:]) or "none"
            raise ValueError(f"{error}; the options of the metric are {known}") from None


Asked = tuple[str, str, str]
"""What `Runs.values` was asked for: the experiment, the metric, its options as JSON."""


def asked_for(experiment: str, metric: str, options: Mapping[str, Any]) -> Asked:
    """A call of `Runs.values`."""
    return experiment, metric, json.dumps(options, sort_keys=True)


class NotRunError(DumbbellError):
    """Something is asked of an experiment that was not run."""


class NoFlowError(ValueError):
    """An experiment has no flow of that name."""


def _sum(rates: pl.DataFrame, flow: str) -> pl.Series:
    """The throughput of the flows that match a pattern, such as ``multipath/*``."""
    there = rates.drop("seed").columns
    names = [name for name in there if fnmatchcase(name, flow)]
    if not names:
        raise NoFlowError(f'no flow matches "{flow}"; the flows are {", ".join(there)}')
    return rates.select(pl.sum_horizontal(names))[names[0]]


def _jain(rates: pl.DataFrame, flows: Sequence[str] = ()) -> pl.Series:
    every = [_sum(rates, flow) for flow in flows or rates.drop("seed").columns]
    total, squares = (reduce(add, (one**power for one in every)) for power in (1, 2))
    return total**2 / (len(every) * squares)


MEASURES: Final = {
    "throughput": Metric("Mbit/s", lambda rates, flow="*": _sum(rates, flow), True, 0),
    "ratio": Metric("1", lambda rates, flow, over: _sum(rates, flow) / _sum(rates, over), True, 0),
    "share": Metric("1", lambda rates, flow: _sum(rates, flow) / _sum(rates, "*"), True, 0, 1),
    "gap": Metric("Mbit/s", lambda rates, flow, to: _sum(rates, to) - _sum(rates, flow), True),
    "jain": Metric("1", _jain, True, 0, 1),
}
"""The built-in metrics: the throughput of a flow or of several together; the ratio of two; the
share in the throughput of all; by how much one has more; and Jain's index."""

_UNITS: Final = (
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"s": 1.0, "ms": 1e-3},
    {"1": 1.0, "%": 0.01},
)


def conversion(unit: str, wanted: str) -> float:
    """The factor from `unit` to `wanted`; raises `ValueError` if they are not of one kind."""
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

    def counts(self) -> dict[str, int]:
        """How many seeds those have that are there."""
        metas = {name: folder / "meta.json" for name, folder in self.data.items()}
        return {
            name: len(json.loads(file.read_text("utf-8"))["seeds"])
            for name, file in metas.items()
            if file.is_file()
        }

    def __getitem__(self, name: str) -> Result:
        result = self._alive.get(name) or Result.load(self.data[name])
        self._alive[name] = result
        return result


@dataclass(frozen=True)
class Runs:
    """What was run."""

    # Results by the id of their experiment; `runs["id"]` is one of them.
    results: Mapping[str, Result]
    # For each extension, by the id of its template, rows by seed with a column for every setting of
    # ``each``.
    extensions: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    paper: Paper = None  # type: ignore[assignment]  # what the paper says; standard figures need it
    # The built-in metrics and the paper's own.
    metrics: Mapping[str, Metric] = field(default_factory=MEASURES.copy)
    # Of the intervals of an experiment that was run until its questions were decided, see
    # `dumbbell.metrics.sequential`; 95 % of all others.
    confidence: Mapping[str, float] = field(default_factory=dict)
    # What was measured before, in place of results.
    table: Mapping[Asked, list[float | None]] | None = None
    linux: Runs | None = None  # runs with real packets, where there are any
    # The experiments whose runs were looked at so far.
    asked: set[str] = field(default_factory=set, repr=False, compare=False)
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, experiment: str) -> Result:
        self.asked.add(experiment)
        if experiment not in self.results:
            raise NotRunError(f'the experiment "{experiment}" was not run')
        return self.results[experiment]

    @property
    def is_full(self) -> bool:
        """Whether these are all experiments of the paper, and what goes beyond it."""
        wanted = {*self.paper.planned, *(template.id for template in self.paper.extensions)}
        return wanted <= {*self.results, *self.extensions}

    def count(self, experiment: str) -> int:
        """How many runs an experiment has."""
        if self.table is None:
            return self.kept(experiment, _count)
        return next(len(values) for asked, values in self.table.items() if asked[0] == experiment)

    def again(self, results: Mapping[str, Result], changed: Collection[str]) -> Runs:
        """The same after some experiments have more runs."""
        kept = {key: value for key, value in self._kept.items() if key[0] not in changed}
        return replace(self, results=results, _kept=kept)

    def with_results(self, results: Mapping[str, Result]) -> Runs:
        """The same with other results in the place of some, and nothing kept."""
        return replace(self, results={**self.results, **results}, _kept={})

    def kept(self, experiment: str, function: Callable[..., T], **options: Any) -> T:
        """What a function makes of a result; it is computed once."""
        key = (experiment, function, repr(sorted(options.items())))
        self.asked.add(experiment)
        if key not in self._kept:
            self._kept[key] = function(self[experiment], **options)
        return self._kept[key]  # type: ignore[no-any-return]

    def values(
        self, experiment: str, metric: str = "throughput", **options: Any
    ) -> tuple[Any, ...]:
        """A metric of every run of an experiment, a value a seed; it is computed once."""
        key = (experiment, metric, repr(sorted(options.items())))
        self.asked.add(experiment)
        if key not in self._kept:
            self._kept[key] = tuple(self._measured(experiment, metric, options))
        return self._kept[key]  # type: ignore[no-any-return]

    def _measured(self, experiment: str, metric: str, options: Mapping[str, Any]) -> Any:
        if self.table is not None:
            asked = asked_for(experiment, metric, options)
            if asked not in self.table:
                raise NotRunError(f'{metric} was not measured in the experiment "{experiment}"')
            return self.table[asked]
        found = self.metrics[metric]
        if found.of_rates:
            return found.function(self.kept(experiment, rates), **options)
        values = self.kept(experiment, found.function, **options)
        return values[metric] if isinstance(values, pl.DataFrame) else values

    def median(
        self,
        experiment: str,
        metric: str = "throughput",
        *,
        limit: float | None = None,
        **options: Any,
    ) -> Estimate:
        """The median of a metric over the seeds, with its 95 % interval."""
        values = self.values(experiment, metric, **options)
        of = self.metrics[metric]
        found = intervals.median(values, limit, self.confidence.get(experiment, 0.95))
        return found.within(of.lowest, of.highest)

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
        metric = self.metrics[measure.metric]
        is_kept = not metric.of_rates
        values = rows[measure.metric] if is_kept else metric.function(wide(rows), **measure.others)
        found = intervals.median(values, measure.limit)
        return found.within(metric.lowest, metric.highest)


def _count(result: Result) -> int:
    return len(result.seeds)


def rates(result: Result) -> pl.DataFrame:
    """Throughputs, Mbit/s: a row a seed, a column a flow or subflow."""
    return wide(throughput(result.by_subflow()))


def wide(table: pl.DataFrame) -> pl.DataFrame:
    """The same of rows by seed and flow, in bit/s."""
    named = table.with_columns(pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6)
    return named.pivot("flow", index="seed", values="throughput")


def reduced(result: Result) -> pl.DataFrame:
    """What is kept of an extension's run unless the paper says otherwise: rows by seed and flow.

    Columns: seed, flow, throughput (bit/s), retransmission_share (0 to 1), queue_delay_mean (s).
    """
    columns = ("seed", "flow", "throughput", "retransmission_share", "queue_delay_mean")
    return summary(result.by_subflow()).select(columns).with_columns(pl.col("flow").cast(pl.String))


def known(estimate: Estimate) -> float:
    """The value of an estimate; raises `ValueError` if it is beyond the limit of observation."""
    if estimate.value is None:
        raise ValueError("the median is beyond the limit of observation")
    return estimate.value
