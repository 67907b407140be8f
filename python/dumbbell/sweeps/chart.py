"""The runs of a sweep as figures show them: what is drawn, by what, and how it is written."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from matplotlib.ticker import LogLocator, NullFormatter

from dumbbell import figures
from dumbbell.display import Column, common_unit, format_setting
from dumbbell.errors import DumbbellError, ExperimentError, ResultError, unknown
from dumbbell.figures import FAINT, room, spread
from dumbbell.metrics import means_over_seeds, over_flows
from dumbbell.metrics.intervals import LEAST
from dumbbell.sweeps.plan import METRICS, OF_SOME, measured
from dumbbell.sweeps.query import QueryError, query, quoted
from dumbbell.sweeps.some_flows import FAIR, of_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes as Panel
    from polars.dataframe.group_by import GroupBy

    from dumbbell.sweeps.dataset import Axes, Dataset

VALUE: Final = "(value)"
"""The column of the metric, beside those of the axes; no key of an experiment is called so."""

_TOGETHER: Final = "\nall flows of an algorithm together"
_MOST_TICKS: Final = 9  # with more settings than this an axis has its ticks where they are round
_ROUND: Final = (1.0, 2.0, 5.0)  # where ticks of a logarithmic axis are in a decade
_STEP, _EVEN = 1.5, 1.3  # values are geometric from this step on, if steps differ by no more
_WORDS: Final = {"cc": "Algorithm", "rtts": "RTTs"} | {
    word: word.upper() for word in ("aqm", "dscp", "ecn", "mss", "mtu", "nak", "rto", "rtt", "tso")
}
"""The parts of keys that are not written as they are."""


def holds_algorithms(axis: Mapping[str, str | None]) -> bool:
    """Whether the values of an axis are algorithms, and not numbers in the options of one."""
    return axis["unit"] is None and str(axis["key"]).rpartition(".")[2] == "cc"


def share_column(cc: str) -> Column:
    """How the share of an algorithm in the data that all flows delivered is shown."""
    return _column_of("share", figures.style_of(cc).label)


def _column_of(metric: str, whose: str) -> Column:
    titles = {"share": f"{whose}'s share of the data"}
    return Column.of(metric, title=titles.get(metric, f"{Column.of(metric).title} of {whose}"))


@dataclass(frozen=True)
class Chart:
    """The runs of a sweep as a figure shows them."""

    runs: pl.DataFrame  # a row for every run: the axes, `by`, and the metric as `VALUE`
    axes: Axes  # what the axes are
    by: str | None  # what has a colour for each value, an axis or ``cc``; None for nothing
    metric: str  # the key of the metric in `dumbbell.display.COLUMNS`, if it has one
    column: Column  # how the metric is shown
    least: float  # what no mean of it can be less than
    fair: float | None = None  # the fair share, as shown, if the metric is a share and all have one

    @cached_property
    def groups(self) -> dict[str, pl.DataFrame]:
        """The runs of each value of `by`, in the order of its values."""
        if self.by is None:
            return {"": self.runs}
        unit = self.axes[self.by]["unit"] if self.by in self.axes else None
        runs = self.runs if unit is None else self.runs.sort(self.by, maintain_order=True)
        groups = runs.group_by(self.by, maintain_order=True)
        return {_tick(unit, value): rows for (value,), rows in groups}

    def is_algorithm(self, by: str | None) -> bool:
        """Whether an axis, or ``cc``, is that of algorithms, which have colours of their own."""
        return holds_algorithms(self.axes[by]) if by in self.axes else by == "cc"

    def mixed(self, *drawn: str | None) -> list[str]:
        """The axes of which one place in the figure, by the axes `drawn`, has several values."""
        values = self._places(drawn).agg(pl.col(*self.axes).n_unique())
        return [n for n in self.axes if n not in drawn and (values[n] > 1).any()]

    def refuse_infinite(self, *drawn: str | None) -> None:
        """Refuses a figure of means by the axes `drawn` if all of them are infinite."""
        means = self._places(drawn).agg(pl.col(VALUE).mean())[VALUE]
        if not means.is_finite().any():
            infinite = self.runs[VALUE].is_infinite().sum()
            problem = f"{infinite} of {self.runs.height} runs are too short for {self.metric}"
            raise DumbbellError(f"{problem}, at least one at every point; make them longer")

    def _places(self, drawn: Iterable[str | None]) -> GroupBy:
        """The runs at each place in a figure by the axes `drawn`."""
        place = pl.struct(pl.lit(0), *dict.fromkeys(filter(None, drawn)))
        return self.runs.group_by(place.alias("(place)"))

    def pooled(self, *drawn: str | None) -> str:
        """The line of a label that names them."""
        mixed = figures.named(", ".join(self.mixed(*drawn)))
        return f"\nover all values of {mixed}" if mixed else ""

    def named(self, axis: str) -> str:
        """An axis in words; one that the user called something is called so."""
        if axis in self.axes and axis != str(self.axes[axis]["key"]).rpartition(".")[2]:
            return figures.named(axis)
        words = " ".join(_WORDS.get(part, part) for part in axis.split("_"))
        return words[0].upper() + words[1:]

    def scale(self, axis: str) -> tuple[str, Callable[[Any], str]]:
        """The label of an axis, and how its values are written: algorithms as lines have them.

        The unit of most values is in the label if it suits all.
        """
        label, unit = self.named(axis), self.axes[axis]["unit"]
        if self.is_algorithm(axis):
            return label, lambda cc: figures.named(figures.style_of(cc).label)
        if unit is None:
            return label, figures.named
        common, one = common_unit(self.runs[axis].unique().to_list(), unit)
        if not common:
            return label, partial(_tick, unit)
        return f"{label} ({common})", lambda value: f"{float(f'{value / one:.3g}'):g}"

    @property
    def label(self) -> str:
        """What the metric is called at its axis."""
        together = "" if self.by is None or self.by in self.axes else _TOGETHER
        return figures.named(self.column.heading) + together

    def counted(self, *drawn: str | None) -> str:
        """How many runs there are at each place."""
        counts = self._places(drawn).len()["len"]
        least, most = min(counts), max(counts)
        several = "" if least == most else f"{least} to "
        return f"{several}{most} run{'s' * (most != 1)}"

    def lines(self, panel: Panel, x: str) -> None:
        """Draws means along the axis `x` with their 95 % intervals (Student's t).

        An axis of text has its values in their order, and no lines between them.
        """
        self.refuse_infinite(x, self.by)
        unit, places = self.axes[x]["unit"], self.runs[x].unique(maintain_order=True).to_list()
        at = {place: number if unit is None else place for number, place in enumerate(places)}
        lines = {}
        for name, rows in self.groups.items():
            values = rows.select(
                pl.col(x).alias("x"),
                pl.col(VALUE).alias(self.metric),
                pl.lit(self.least).alias(f"{self.metric}{LEAST}"),
            )
            found = means_over_seeds(values, ["x"], ci=True)
            found.columns = ["x", "value", "low", "high"]
            found = found.with_columns(pl.Series("x", [at[place] for place in found["x"]]))
            found = found.filter(pl.col("value").is_finite())
            lines[name] = found.sort("x").with_columns(pl.all().exclude("x") * self.column.scale)
        draw = spread.points if unit is None else spread.lines
        draw(panel, lines, of_algorithms=self.is_algorithm(self.by))
        label, write = self.scale(x)
        ticks = {number: write(place) for place, number in sorted(at.items())}
        is_logarithmic = unit is not None and _is_logarithmic(list(ticks))
        if is_logarithmic:
            panel.set_xscale("log")
        if unit is None or len(ticks) <= _MOST_TICKS:
            panel.set_xticks(list(ticks), list(ticks.values()))
            panel.minorticks_off()
        else:
            panel.xaxis.set_major_formatter(lambda value, _: write(value))
            panel.xaxis.set_minor_formatter(NullFormatter())
            if is_logarithmic:
                panel.xaxis.set_major_locator(LogLocator(subs=_ROUND))
        if self.fair is not None:
            panel.axhline(self.fair, color=FAINT, linewidth=0.8, linestyle="--", label="fair share")
        panel.margins(x=0.03)
        spread.give_height(panel)
        panel.set_xlabel(label)
        runs = self.counted(x, self.by)
        mean = "" if runs == "1 run" else f"\nmean, 95 % interval, {runs}"
        panel.set_ylabel(f"{self.label}{mean}{self.pooled(x, self.by)}")
        if self.by is not None or self.fair is not None:
            self.legend(panel)

    def legend(self, panel: Panel) -> None:
        """The legend of `by`, which it names unless that is clear."""
        figures.legend(panel, title="" if self.by in (None, "cc") else self.named(self.by))

    def delays(self, panel: Panel, delay: str) -> None:
        """Draws the throughput of every run, which is the metric, against its `delay`."""
        column = Column.of(delay)
        values = [pl.col(delay) * column.scale, pl.col(VALUE) * self.column.scale]
        points = {name: rows.select(values).rows() for name, rows in self.groups.items()}
        spread.delay_ellipses(panel, points, of_algorithms=self.is_algorithm(self.by))
        label = {"queue_delay_mean": "Mean queueing delay (ms)"}.get(delay, column.heading)
        panel.set_xlabel(f"{label}, to the right is better")
        panel.set_ylabel(f"{self.label}{self.pooled(self.by)}")

    def separate(self, panel: Panel) -> None:
        """Puts the labels of delays into a legend if one has no room in a figure that is laid out.

        It would meet another, or a mean, or leave the panel.
        """
        labels = [text.get_window_extent() for text in panel.texts]
        means = [mean.get_window_extent() for mean in panel.get_legend_handles_labels()[0]]
        if room.meet([*labels, *means]) or room.leave(panel.bbox, labels):
            for text in list(panel.texts):
                text.remove()
            self.legend(panel)

    def distributions(self, panel: Panel) -> None:
        """Draws the distribution of the metric over the runs of each group."""
        spread.distributions(panel, self._values, of_algorithms=self.is_algorithm(self.by))
        panel.set_xlabel(f"{self.label}{self.pooled(self.by)}")
        each = " of each" if self.by else ""
        panel.set_ylabel(f"share of the {self.counted(self.by)}{each}")
        if self.by is not None:
            self.legend(panel)

    def boxes(self, panel: Panel) -> None:
        """Draws the same distributions as box plots."""
        spread.boxes(panel, self._values, of_algorithms=self.is_algorithm(self.by))
        runs = self.counted(self.by) + (" each" if self.by else "")
        axis = f"{self.named(self.by)}\n" if self.by else ""
        panel.set_xlabel(f"{axis}{runs}, whiskers to 1.5 box lengths")
        panel.set_ylabel(f"{self.label}{self.pooled(self.by)}")

    @property
    def _values(self) -> dict[str, list[float]]:
        scale = self.column.scale
        return {name: (rows[VALUE] * scale).to_list() for name, rows in self.groups.items()}


def chart_of(
    dataset: Dataset, metric: str, by: str | None = None, where: str | None = None, *more: str
) -> Chart:
    """The runs of a sweep that have a value of a metric, and of `more` columns.

    A metric is a column of ``runs``, an SQL expression of several, or one of some flows: ``share of
    bbr3`` is their share in the data that all flows delivered, ``throughput of bbr3`` what they
    achieved together. The flows are those of an algorithm or of a ``[[flow]]`` table, or one.

    Raises:
        ExperimentError: If there is no such metric.
    """
    sql, key, column = quoted(metric), metric, Column.of(metric)
    axes, tables, every = dataset.axes, {}, dataset.table("runs")
    fair = "null"
    if by is not None and by not in axes:
        groups = over_flows(dataset.table("flows"), ["run", by])
        known = [name for name in METRICS if name in groups.columns]
        if metric in METRICS and metric not in known:
            raise ExperimentError(unknown("metric of algorithms", metric, known), key="metric")
        tables["runs"] = dataset.plan.join(groups, on="run", maintain_order="left_right")
    if found := OF_SOME.fullmatch(metric):
        if by is not None and by not in axes:
            problem = f'"{metric}" is of a run, the same for every algorithm; leave it out'
            raise ExperimentError(f"{problem}, or take another metric", key="by")
        key, whose, values = of_some(dataset, *found.groups())
        column = _column_of(key, whose)
        fair = quoted(FAIR) if key == "share" else fair
        runs, values = tables.get("runs", every), values.rename({key: metric})
        tables["runs"] = runs.join(values, on="run", how="left", maintain_order="left")
    elif metric not in measured(every):
        if metric.isidentifier():
            names = [*measured(every), "share of NAME"]
            raise ExperimentError(unknown("metric of a run", metric, names), key="metric")
        sql, key, column = metric, "value", Column(metric)
    columns = map(quoted, dict.fromkeys([*axes, *([by] if by else []), *more]))
    rows = f"from runs where {where or 'true'} order by point, seed"
    select = (
        f"select {', '.join(columns)}, {sql} as {quoted(VALUE)}, {fair} as {quoted(FAIR)} {rows}"
    )
    with _said_of(where, dataset):
        found_runs = query(select, dataset.folder, tables=tables)
    if where and found_runs.is_empty():
        problem = f"no run matches --where; {_values(dataset, where)}"
        raise ResultError(f"{dataset.folder}: {problem}")
    if not found_runs[VALUE].dtype.is_numeric():
        raise ExperimentError(f"{metric} is no number; name a column of runs", key="metric")
    runs = found_runs.cast(dict.fromkeys([VALUE, *more], pl.Float64))
    # An infinite value, a time that a run is too short for, is in no mean that is drawn.
    runs = runs.filter(pl.all_horizontal(pl.col(VALUE, *more).is_not_nan()))
    if not runs[VALUE].is_finite().any():
        raise ResultError(f"{dataset.folder}: no run there has a value of {metric}")
    fair_shares = runs[FAIR].cast(pl.Float64).unique()
    one = fair_shares.item() if len(fair_shares) == 1 else None
    fair_share = None if one is None else one * column.scale
    flows = dataset.table("flows").group_by("run").len() if metric == "jain" else None
    least = -math.inf if flows is None else 1 / float(flows["len"].max() or 1)  # type: ignore[arg-type]
    return Chart(runs, axes, by, key, column, least, fair_share)


def _named_in(where: str, axes: Iterable[str]) -> list[str]:
    return [axis for axis in axes if re.search(rf"\b{re.escape(axis)}\b", where)]


def _values(dataset: Dataset, where: str) -> str:
    """The values of the axes that a condition names, or of all."""
    axes, said = dataset.axes, []
    for axis in _named_in(where, axes) or axes:
        values, unit = dataset.plan[axis].unique(maintain_order=True), axes[axis]["unit"]
        texts = [f"'{value}'" if unit is None else f"{value:g}" for value in values]
        more = ", ..." if len(texts) > _MOST_TICKS else ""
        counted = f" ({unit})" if unit else ""
        said.append(f"{axis} has {', '.join(texts[:_MOST_TICKS])}{more}{counted}")
    return "; ".join(said)


@contextmanager
def _said_of(where: str | None, dataset: Dataset) -> Iterator[None]:
    """Says of a condition that is not valid how quantities are written in it."""
    try:
        yield
    except QueryError as error:
        axes = dataset.axes
        named = [name for name in _named_in(where or "", axes) if axes[name]["unit"] is not None]
        if not named:
            raise
        unit, value = axes[named[0]]["unit"], dataset.plan[named[0]][0]
        counts = f" in {unit}" if unit else ""
        advice = f"{named[0]} is a number{counts}: {named[0]} = {value:g}"
        raise QueryError(f"{error}; {advice}") from None


def _is_logarithmic(values: Sequence[float]) -> bool:
    """Whether ascending values are positive, and span a factor of 10 or are about geometric."""
    if values[0] <= 0:
        return False
    steps = [right / left for left, right in pairwise(values)]
    least, most = min(steps, default=1.0), max(steps, default=1.0)
    return values[-1] >= 10 * values[0] or _STEP <= least <= most <= _EVEN * least


def _tick(unit: str | None, value: float | str) -> str:
    rounded = value if isinstance(value, str) else float(f"{value:.3g}")
    return figures.named(format_setting(rounded, unit))
