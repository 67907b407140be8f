"""Figures of a sweep, by name: what ``dumbbell plot`` draws of it."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl
from matplotlib.ticker import LogLocator, NullFormatter

from dumbbell import figures
from dumbbell.display import Column, common_unit, format_setting
from dumbbell.errors import DumbbellError, ExperimentError, ResultError, unknown
from dumbbell.figures import FAINT, room, spread
from dumbbell.metrics import means_over_seeds, over_flows
from dumbbell.metrics.intervals import LEAST
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.plan import METRICS, OF_SOME, measured
from dumbbell.sweeps.query import QueryError, query, quoted
from dumbbell.sweeps.some_flows import FAIR, of_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes as Panel
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from polars.dataframe.group_by import GroupBy

    from dumbbell.sweeps.dataset import Axes


FIGURES: Final = {
    "heat": "a metric over two axes (--x, --y)",
    "lines": "a metric over an axis (--x), a line for each value of another (--by)",
    "delay": "throughput against queueing delay, for each value of an axis (--by)",
    "cdf": "the distribution of a metric over the runs, for each value of an axis (--by)",
    "boxes": "the same distributions as box plots",
}
"""The figures of a sweep: name and what it shows."""

_OPTIONS: Final = {
    "heat": ("x", "y", "metric"),
    "lines": ("x", "by", "metric"),
    "delay": ("by", "metric"),
    "cdf": ("by", "metric"),
    "boxes": ("by", "metric"),
}
"""What each of them takes beside ``where``."""

_MOST_TICKS: Final = 9  # with more settings than this an axis has its ticks where they are round
_ROUND: Final = (1.0, 2.0, 5.0)  # where ticks of a logarithmic axis are in a decade
_STEP, _EVEN = 1.5, 1.3  # values are geometric from this step on, if steps differ by no more
_WORDS: Final = {"cc": "Algorithm", "rtts": "RTTs"} | {
    word: word.upper() for word in ("aqm", "dscp", "ecn", "mss", "mtu", "nak", "rto", "rtt", "tso")
}
"""The parts of keys that are not written as they are."""
_MOST_WRITTEN: Final = 240  # with more cells than this their values are not written in them
_DECADES: Final = 50  # values that span more than this factor have shades by their logarithm
VALUE: Final = "(value)"
"""The column of the metric, beside those of the axes; no key of an experiment is called so."""

_TOGETHER: Final = "\nall flows of an algorithm together"
_DELAYS: Final = ("queue_delay_mean", "queue_delay_p95")


def draw(
    folder: Path,
    kind: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    by: str | None = None,
    metric: str | None = None,
    where: str | None = None,
    width: float = figures.PAGE,
) -> tuple[str, Figure]:
    """Draws a figure of a sweep; returns its name and the figure. Call it inside `styled`.

    The figure is one of `FIGURES`: by default a heat map if there are two axes of numbers, else
    lines. `x` and `y` are axes; `by` is the axis whose values are told apart, or ``cc``: the
    algorithms, whose flows in a run are then taken together; by default the first axis that is
    text, else one with few values. `metric` is as for `chart_of`. `where` says in SQL which runs;
    `width` is in inches.
    """
    dataset = Dataset(folder)
    axes = dataset.axes
    for option, name in (("--x", x), ("--y", y), ("--by", by)):
        if name is not None and name not in axes and (option, name) != ("--by", "cc"):
            raise DumbbellError(f"{option}: {unknown('axis', name, list(axes))}")
    numbers = [name for name, axis in axes.items() if axis["unit"] is not None]
    kind = kind or ("heat" if len(numbers) > 1 else "lines" if numbers else "boxes")
    if kind not in FIGURES:
        raise DumbbellError(f"{unknown('figure', kind, list(FIGURES))}; these are those of a sweep")
    _refuse_unused(kind, x=x, y=y, by=by, metric=metric)
    if kind == "delay" and metric not in (None, *_DELAYS):
        raise DumbbellError(f"--metric: {unknown('delay', str(metric), _DELAYS)}")
    has_jain = dataset.table("runs")["jain"].count() > 0
    metric = metric or (_DELAYS[0] if kind == "delay" else "jain" if has_jain else "throughput")
    if kind == "heat":
        x, y = _heat_axes(list(axes), x, y)
        return kind, _heat(chart_of(dataset, metric, None, where), dataset.plan, x, y, width)
    by = by or next((name for name in axes if name not in numbers), None)
    if kind == "lines":
        x = x or next((name for name in numbers if name != by), None)
    few = (n for n in numbers if n != x and dataset.plan[n].n_unique() <= spread.MOST_GROUPS)
    by = by or next(few, None)
    figure, [[panel]] = figures.panels(width=width, height=3.2 * figures.flattened(width))
    if kind == "delay":
        chart = chart_of(dataset, "throughput", by, where, metric)
        chart.delays(panel, metric)
        with room.laid_out(figure):
            chart.separate(panel)
    elif kind == "cdf":
        _finite(chart_of(dataset, metric, by, where)).distributions(panel)
    elif kind == "boxes":
        _finite(chart_of(dataset, metric, by, where)).boxes(panel)
    elif x is None:
        raise DumbbellError("lines need an axis; name it with --x, or draw boxes")
    else:
        chart = chart_of(dataset, metric, by, where)
        _refuse_mixed(chart, "lines", x=x, by=by)
        chart.lines(panel, x)
    of = by if kind == "boxes" else x if kind == "lines" else None
    if of is not None:
        with room.laid_out(figure):
            room.give_room(panel, are_numbers=of in numbers)
    return kind, figure


def _refuse_unused(kind: str, **choices: str | None) -> None:
    """Refuses what a figure does not take."""
    for name, value in choices.items():
        if value is not None and name not in _OPTIONS[kind]:
            *others, last = (other for other, its in _OPTIONS.items() if name in its)
            which = " and ".join(filter(None, (", ".join(others), last)))
            has = ", ".join(f"--{option}" for option in _OPTIONS[kind])
            raise DumbbellError(f"--{name}: is for {which}; {kind} has {has}")


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
        label = {_DELAYS[0]: "Mean queueing delay (ms)"}.get(delay, column.heading)
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
    elif metric not in METRICS and metric not in every.columns:
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


def _finite(chart: Chart) -> Chart:
    """A chart all of whose values are drawn."""
    infinite = chart.runs[VALUE].is_infinite().sum()
    if infinite:
        problem = f"{infinite} of {chart.runs.height} runs are too short for {chart.metric}"
        raise DumbbellError(f"{problem}; draw lines or a heat map, which leave their points out")
    return chart


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


def _refuse_mixed(chart: Chart, kind: str, **drawn: str | None) -> None:
    """Refuses to draw the mean over the values of an axis that nobody chose."""
    for name in chart.mixed(*drawn.values()):
        value, options = chart.runs[name][0], " or ".join(f"--{option}" for option in drawn)
        where = f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value:g}"
        problem = f'{kind} would mix the values of the axis "{name}"'
        choose = f'choose one, as with --where "{where}"'
        raise DumbbellError(f"{problem}; {choose}, or name it with {options}")


def _is_logarithmic(values: Sequence[float]) -> bool:
    """Whether ascending values are positive, and span a factor of 10 or are about geometric."""
    if values[0] <= 0:
        return False
    steps = [right / left for left, right in pairwise(values)]
    least, most = min(steps, default=1.0), max(steps, default=1.0)
    return values[-1] >= 10 * values[0] or _STEP <= least <= most <= _EVEN * least


def _heat_axes(axes: list[str], x: str | None, y: str | None) -> tuple[str, str]:
    free = (name for name in axes if name not in (x, y))
    x = x or next(free, None)
    y = y or next(free, None)
    if x is None or y is None or x == y:
        problem = f"a heat map needs two different axes, and there are {', '.join(axes)}"
        raise DumbbellError(f"{problem}; name them with --x and --y")
    return x, y


def _heat(chart: Chart, plan: pl.DataFrame, x: str, y: str, width: float) -> Figure:
    """The mean of a metric over two axes: a heat map where they make a grid, else dots."""
    _refuse_mixed(chart, "a heat map", x=x, y=y)
    cells = chart.runs.group_by(maintain_order=True, x=x, y=y).agg(
        value=pl.col(VALUE).mean() * chart.column.scale, runs=pl.len()
    )
    is_known = pl.col("value").is_finite()  # not a time that some run is too short for
    cells = cells.with_columns(value=pl.when(is_known).then("value"))
    units = {at: chart.axes[name]["unit"] for at, name in (("x", x), ("y", y))}
    for at, name in (("x", x), ("y", y)):
        if units[at] is None:  # text, in the order of the file
            cells = cells.cast({at: pl.Enum(plan[name].unique(maintain_order=True))})
    label, runs = chart.label, chart.counted(x, y)
    if runs != "1 run":
        label += f", mean of {runs}"
    least, most = cells["value"].min(), cells["value"].max()
    is_share = chart.metric == "share"
    logarithmic = not is_share and 0 < _DECADES * cast("float", least) < cast("float", most)
    if logarithmic:
        label += "\nlogarithmic scale"
    if chart.fair is not None:
        label += f"\nwhite: the fair share, {chart.fair:.3g} %"
    (name_x, write_x), (name_y, write_y) = chart.scale(x), chart.scale(y)
    figure, [[panel]] = figures.panels(width=width, height=4.2 * figures.flattened(width))
    size = cells["x"].n_unique() * cells["y"].n_unique()
    if cells.height * 2 >= size:
        image: ScalarMappable = figures.heat_map(
            panel,
            cells.sort("x", "y"),
            *("x", "y", "value"),
            middle=chart.fair,
            logarithmic=logarithmic,
            text=_cell if size <= _MOST_WRITTEN else None,
            names=(write_x, write_y),
        )
    elif None in units.values():
        text = x if units["x"] is None else y
        raise DumbbellError(f'heat: "{text}" is text, and the axes make no grid; choose others')
    else:
        image = figures.heat_dots(panel, cells, "x", "y", "value", logarithmic=logarithmic)
        panel.xaxis.set_major_formatter(lambda value, _: write_x(value))
        panel.yaxis.set_major_formatter(lambda value, _: write_y(value))
    panel.set_xlabel(name_x)
    panel.set_ylabel(name_y)
    bar = figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02, label=label)
    bar.outline.set_visible(False)
    if chart.fair is not None:
        lowest, highest = bar.ax.get_ylim()
        bar.ax.set_ylim(max(lowest, 0), min(highest, 100))
    if logarithmic:
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    with room.laid_out(figure):
        room.give_room(panel, are_numbers=units["x"] is not None)
    return figure


def _tick(unit: str | None, value: float | str) -> str:
    rounded = value if isinstance(value, str) else float(f"{value:.3g}")
    return figures.named(format_setting(rounded, unit))


def _cell(row: dict[str, Any]) -> str:
    value = row["value"]
    if value is None:
        return "—"
    return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
