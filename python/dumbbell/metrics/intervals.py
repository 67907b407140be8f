"""What several seeds say together: a statistic with its 95 % confidence interval.

A run that has not converged when observation ends is *censored*: all that is known is that its
time is longer than the limit. Such a run is kept, as infinity. The median of runs that share one
limit is then the Kaplan-Meier median (Kaplan and Meier, 1958), and it is "beyond the limit"
exactly if half of the runs or more are. No run is dropped, and none is counted as the limit.

Papers take medians. From `BOOTSTRAP_FROM` runs on, and where runs are censored, their interval is
a percentile bootstrap; of fewer runs it would be too narrow, and is Student's t. The tables of the
command line show means, whose intervals are Student's t. For normal runs the t interval contains
the true mean in 95 % of cases, however few the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import polars as pl
import polars.selectors as cs

from dumbbell.display import Column
from dumbbell.errors import ExperimentError, unknown
from dumbbell.experiment.model import MOST_SEEDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

BOOTSTRAP_FROM: Final = 12
"""From how many runs on a bootstrap says how well a median is known."""

RESAMPLES: Final = 9_999
_SEED: Final = 20_251_017
_CONFIDENCE: Final = 0.95
_MEDIAN_OVER_MEAN: Final = math.sqrt(math.pi / 2)
"""The standard error of the median over that of the mean, for many normal runs; less for few."""


@dataclass(frozen=True)
class Estimate:
    """The median or mean of some runs and its 95 % confidence interval.

    Attributes:
        value: The median or mean; None beyond the limit of observation.
        low, high: The ends of the interval; None beyond the limit, or if there is no interval.
        runs: The single runs, in order of their seeds; None for a censored one.
        limit: Where observation ended; None if it saw everything.
    """

    value: float | None
    low: float | None
    high: float | None
    runs: tuple[float | None, ...] = ()
    limit: float | None = None

    @property
    def ends(self) -> dict[str, float | None]:
        """The estimate as columns of a table: ``value``, ``low``, ``high``."""
        return {"value": self.value, "low": self.low, "high": self.high}

    @property
    def censored(self) -> int:
        """How many runs were beyond the limit of observation."""
        return sum(run is None for run in self.runs)

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        numbers = (self.value, self.low, self.high, self.limit, *self.runs)
        value, low, high, limit, *runs = (None if x is None else x * factor for x in numbers)
        return Estimate(value, low, high, tuple(runs), limit)

    def within(self, lowest: float, highest: float) -> Estimate:
        """The same with an interval that ends where the range of the quantity does."""
        low = None if self.low is None else max(self.low, lowest)
        high = None if self.high is None else min(self.high, highest)
        return Estimate(self.value, low, high, self.runs, self.limit)

    def __str__(self) -> str:
        """Such as ``46 (46 to 55), 1 of 20 runs > 120``: value, interval, censored runs."""
        beyond = "beyond observation" if self.limit is None else f"> {self.limit:.4g}"
        value, low, high = (
            beyond if end is None else f"{end:.4g}" for end in (self.value, self.low, self.high)
        )
        interval = f" ({low} to {high})" if self.low is not None else ""
        rest = f", {self.censored} of {len(self.runs)} runs {beyond}" if self.censored else ""
        return f"{value}{interval}{rest}"


@dataclass(frozen=True)
class Until:
    """When a mean is known well enough: seeds are added until then.

    Attributes:
        width: Maximum half of the 95 % interval, as a share of the mean (0 to 1).
        metric: The metric of the mean, one of the runs that are made.
        max_seeds: Maximum number of seeds.

    Raises:
        ExperimentError: If `width` or `max_seeds` is not valid.
    """

    width: float
    metric: str = "throughput"
    max_seeds: int = 100

    MIN_SEEDS: ClassVar[int] = 10
    """With fewer seeds an interval says too little to stop at."""

    def __post_init__(self) -> None:
        if not 0 < self.width < 1:
            advice = "write more than 0 and less than 1, such as 0.05"
            raise ExperimentError(
                f"{self.width:g} is not a share of the mean; {advice}", key="width"
            )
        if not self.MIN_SEEDS <= self.max_seeds <= MOST_SEEDS:
            problem = f"{self.max_seeds} is not a number from {self.MIN_SEEDS} to {MOST_SEEDS:,}"
            advice = "with fewer seeds an interval says too little"
            raise ExperimentError(f"{problem}; {advice}", key="max_seeds")

    def check(self, metrics: Sequence[str], *, is_real: bool) -> None:
        """Raises `ExperimentError` if runs do not have its metric, or are of real packets."""
        if is_real:
            raise ExperimentError(
                "is for the simulator; give a number of seeds instead", key="until"
            )
        if self.metric not in metrics:
            raise ExperimentError(unknown("metric", self.metric, metrics), key="metric")

    def is_satisfied_by(self, values: Sequence[float | None]) -> bool:
        """Whether these runs are enough; those without a value do not count.

        If none of them has one, neither would more of them.
        """
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(values) >= self.MIN_SEEDS and not known:
            return True
        if len(known) < self.MIN_SEEDS:
            return False
        runs = np.array(known)
        return _half_interval(runs) <= self.width * abs(float(runs.mean()))

    def next_seeds(self, seeds: Sequence[int]) -> list[int]:
        """The next seeds: half as many again, at least `MIN_SEEDS`, at most `max_seeds`."""
        count = min(max(len(seeds) * 3 // 2, len(seeds) + 1, self.MIN_SEEDS), self.max_seeds)
        new = range(max(seeds) + 1, max(seeds) + 1 + count - len(seeds))
        return [*seeds, *new]


def median(
    runs: Iterable[float | None], limit: float | None = None, confidence: float = _CONFIDENCE
) -> Estimate:
    """Estimates the median of independent runs.

    The interval is a percentile bootstrap (Efron, 1979) of at least `BOOTSTRAP_FROM` runs, and of
    censored ones. Of fewer it is ``median -+ sqrt(pi / 2) t s / sqrt(n)``, see `mean`: the factor
    is the standard error of a median over that of a mean. One run has no interval.

    Args:
        runs: One value a run; None for a run beyond the limit of observation.
        limit: Where observation ended, for times: their interval begins at 0 at the earliest.
        confidence: How often such intervals contain the true median.

    Raises:
        ValueError: If there is no run, or one is not a number.
    """
    single = tuple(runs)
    values = _known(single)
    value = float(np.median(values))
    if is_resampled(single):
        low, high = _interval(_medians(values), confidence)
    elif len(values) == 1:
        return Estimate(_seen(value), None, None, single, limit)
    else:
        half = _MEDIAN_OVER_MEAN * _half_interval(values, confidence)
        low, high = value - half, value + half
        if limit is not None:
            low, high = max(low, 0.0), math.inf if high > limit else high
    return Estimate(_seen(value), _seen(low), _seen(high), single, limit)


def is_resampled(runs: Sequence[float | None]) -> bool:
    """Whether the uncertainty of the median of these runs is that of a bootstrap."""
    return len(runs) >= BOOTSTRAP_FROM or None in runs


def redraws(runs: Sequence[float | None], count: int, stream: int = 0) -> Numbers:
    """Numbers that other runs of the same experiment could have had, as `median` has its interval.

    Draws of one `stream` vary all quantities of an experiment together, so that what one flow has
    more another has less: they are what follows for a statement about several of them.

    Args:
        runs: One value a run, at least two; None for a censored one.
        count: How many medians.
        stream: The number of the experiment.
    """
    values, draw = _known(runs), np.random.default_rng([_SEED, stream])
    picks = draw.integers(0, len(values), size=(count, len(values)))
    if is_resampled(runs):
        return np.asarray(np.median(values[picks], axis=1))
    freedom = len(values) - 1
    spread = draw.standard_normal(picks.shape) @ (values - values.mean())
    student = spread / np.sqrt(len(values) * draw.chisquare(freedom, count))
    return np.asarray(np.median(values) + _MEDIAN_OVER_MEAN * student)


def mean(
    runs: Sequence[float], metric: str | Column = "", *, lowest: float = -math.inf
) -> Estimate:
    """Estimates the mean of independent runs with Student's t interval.

    Formula: ``mean -+ t s / sqrt(n)``, where ``s`` is the standard deviation of the runs and ``t``
    the 97.5th percentile of Student's distribution with n - 1 degrees of freedom. Source: Student,
    "The Probable Error of a Mean", Biometrika 6 (1), 1908. Exact for normally distributed runs. One
    run has no interval: `low` and `high` are None. Nor has an infinite mean, of a time that a run
    is too short for.

    Args:
        runs: One value a run.
        metric: What they are, a key of `dumbbell.display.COLUMNS`: the interval ends where the
            range of the metric does, such as at a utilisation of 1. True means lie in that range,
            so the interval covers them as often.
        lowest: What is known of these runs beside that, such as 1 / n for Jain's index of n flows.

    Raises:
        ValueError: If there is no run, or one is not a number.
    """
    values = _known(runs)
    if np.isnan(values).any() or np.isneginf(values).any():
        raise ValueError("a mean needs numbers")
    value = float(values.mean())
    if len(values) == 1 or math.isinf(value):
        return Estimate(value, None, None, tuple(values.tolist()))
    half = _half_interval(values)
    column = Column.of(metric) if isinstance(metric, str) else metric
    low, high = max(value - half, column.lowest, lowest), min(value + half, column.highest)
    return Estimate(value, min(low, value), max(high, value), tuple(values.tolist()))


def means_over_seeds(runs: pl.DataFrame, by: Sequence[str], *, ci: bool = False) -> pl.DataFrame:
    """The means of all numbers of a table over its seeds.

    Args:
        runs: Rows with a column ``seed``; nulls are left out of the means. A column such as
            ``jain_least`` has what the column ``jain`` cannot be less than.
        by: The columns that name a group.
        ci: Whether to add the ends of the 95 % intervals (see `mean`).

    Returns:
        One row a group: `by`, and the mean of every column of numbers; with `ci` each followed by
        its ``..._low`` and ``..._high``, null with one seed.
    """
    numbers = (cs.numeric() - cs.by_name("seed", *by, require_all=False)).cast(pl.Float64)
    groups = runs.group_by(by, maintain_order=True).agg(numbers.drop_nulls())
    columns = groups.select(by).get_columns()
    ends = {"": "value", "_low": "low", "_high": "high"} if ci else {"": "value"}
    for series in groups.select(cs.list() - cs.ends_with(LEAST)):
        found = estimates(groups, series.name)
        columns += [
            pl.Series(
                f"{series.name}{suffix}", [getattr(one, end, None) for one in found], pl.Float64
            )
            for suffix, end in ends.items()
        ]
    return pl.DataFrame(columns)


LEAST: Final = "_least"
"""How the name of a column ends that has what another column cannot be less than."""


def estimates(groups: pl.DataFrame, metric: str) -> list[Estimate | None]:
    """The mean of a metric in each row of a table, whose columns are lists of numbers.

    A row without a number has none. See `means_over_seeds` for columns such as ``jain_least``.
    """
    least = groups[name].list.min() if (name := f"{metric}{LEAST}") in groups.columns else ()
    lowest = [-math.inf if one is None else one for one in least] or [-math.inf] * groups.height
    pairs = zip(groups[metric].to_list(), lowest, strict=True)
    return [mean(values, metric, lowest=low) if values else None for values, low in pairs]


def _half_interval(values: Numbers, confidence: float = _CONFIDENCE) -> float:
    """Half the width of Student's t interval of a mean."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return _student(len(values) - 1, confidence) * error


@cache
def _student(freedom: int, confidence: float) -> float:
    """The quantile of Student's t distribution at the upper end of an interval."""
    from scipy.special import stdtrit  # half a second that a run of one seed does not need

    return float(stdtrit(freedom, (1 + confidence) / 2))


def ratio_of_medians(
    above: Sequence[float | None], below: Sequence[float | None], limit: float
) -> Estimate:
    """Estimates the ratio of two medians, resampling both sides independently.

    The ratio is None where the upper median is beyond the limit of observation: it is then above
    `Estimate.limit`, the limit over the lower median. Where the lower one is beyond the limit,
    nothing can be said. There are no single runs: those of the two sides do not belong together.
    """
    upper, lower = _known(above), _known(below)
    point = float(np.median(lower))
    if math.isinf(point):
        return Estimate(None, None, None)
    with np.errstate(invalid="ignore"):
        ratios = _medians(upper) / _medians(lower, stream=1)
    low, high = _interval(np.where(np.isnan(ratios), np.inf, ratios))
    value = float(np.median(upper)) / point
    return Estimate(_seen(value), _seen(low), _seen(high), limit=limit / point)


def _medians(values: Numbers, stream: int = 0) -> Numbers:
    """The medians of `RESAMPLES` resamples with replacement; each `stream` draws others."""
    draw = np.random.default_rng([_SEED, stream])
    picks = draw.integers(0, len(values), size=(RESAMPLES, len(values)))
    return np.asarray(np.median(values[picks], axis=1))


def _known(runs: Sequence[float | None]) -> Numbers:
    values = np.array([math.inf if run is None else run for run in runs], dtype=np.float64)
    if values.size == 0 or bool(np.isnan(values).any()):
        raise ValueError("an estimate needs at least one run, and every run must be a number")
    return values


def _interval(resampled: Numbers, confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """The central part; an observed resample at each end, since infinity cannot be interpolated."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def _seen(value: float) -> float | None:
    return value if math.isfinite(value) else None
