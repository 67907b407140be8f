"""The standard figures of papers: curves, bars, intervals, windows over time, heat maps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from dumbbell import figures, metrics
from dumbbell.figures.style import legend_above

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import ExperimentSpec, FigureSpec, Measure, Panel
    from dumbbell.papers.runs import Runs

_HEIGHTS: Final = {"heat": 2.2, "intervals": 2.0}


def draw(spec: FigureSpec, runs: Runs) -> Figure:
    """Draws a standard figure of a paper."""
    kind, panels = spec.kind or "curves", list(_panels(spec, runs))
    columns = spec.columns or len(panels)
    rows = -(-len(panels) // columns)
    bars = [max(len(specs) for _, specs in panels[i * columns :][:columns]) for i in range(rows)]
    figure, grid = figures.panels(
        rows,
        columns,
        width=figures.PAGE if spec.wide else figures.COLUMN,
        height=spec.height or _HEIGHTS.get(kind, 2.5),
        share_x=kind in ("heat", "intervals"),
        share_y=kind in ("heat", "intervals"),
        row_heights=[count + 0.8 for count in bars] if kind == "intervals" else None,
    )
    every = [axes for line in grid for axes in line]
    image = None
    for axes, (panel, specs) in zip(every, panels, strict=False):
        image = _KINDS[kind](axes, panel, specs, runs)
        # The range of a heat map's y axis is that of its shades.
        _finish(axes, panel.model_copy(update={"y_range": []}) if kind == "heat" else panel)
    for number, axes in enumerate(every):
        if kind == "heat" and number % columns:
            axes.set_ylabel("")
        if number // columns < rows - 1:
            axes.set_xlabel("")
    if kind == "intervals":
        interval_key(figure)
    if image is not None:
        bar = figure.colorbar(image, ax=every, shrink=0.55)
        bar.set_label(spec.measures[0].label)
    return figure


def _panels(spec: FigureSpec, runs: Runs) -> Iterator[tuple[Panel, list[ExperimentSpec]]]:
    """What each panel shows, and of which experiments."""
    for panel in spec.panels:
        groups: dict[tuple[str, ...], list[ExperimentSpec]] = {}
        for one in runs.paper.specs(panel.experiments, panel.where):
            groups.setdefault(tuple(one.settings[key] for key in spec.panel_by), []).append(one)
        for key, some in groups.items():
            title = runs.paper.named(panel.title, dict(zip(spec.panel_by, key, strict=True)))
            yield panel.model_copy(update={"title": title}), some


def _rows(panel: Panel, specs: list[ExperimentSpec], runs: Runs) -> list[dict[str, Any]]:
    """A row of `interval_row` for every measure of every experiment, by its value of ``by``.

    Also ``settings`` of the experiment, and ``measure``, what the measure is called.
    """
    rows, paper = [], runs.paper
    for measure in panel.measures:
        for spec in specs:
            settings = spec.settings
            shown = settings.get(panel.by) or settings.get("cc", "")
            look = measure.look.format(**settings) or paper.looks.get(shown, shown)
            of = panel.published_of.format(**settings) or spec.id
            said = paper.published_as(of, measure, settings) if panel.published else None
            names = {key: paper.label(value) for key, value in settings.items()}
            name = panel.group.format(**names) or names.get(panel.by, "")
            row = interval_row(look, name, runs.estimate(spec, measure), said)
            rows.append(row | {"settings": settings, "measure": measure.label})
    return rows


def _curves(axes: Axes, panel: Panel, specs: list[ExperimentSpec], runs: Runs) -> None:
    rows = [
        row | {"x": float(row["settings"][panel.x]) / panel.x_unit}
        for row in _rows(panel, specs, runs)
    ]
    order = list(dict.fromkeys(row["cc"] for row in rows))
    rows.sort(key=lambda row: (order.index(row["cc"]), row["x"]))
    axes.set_yscale(panel.y_scale)  # first, so that an interval may end at 0
    figures.curves(axes, rows)
    _scale(axes, panel, panel.x_ticks or sorted({round(row["x"], 1) for row in rows}))
    if not panel.y_range and panel.y_scale == "linear":
        ends = [row[end] or 0.0 for row in rows for end in ("value", "high", "published")]
        axes.set_ylim(0, 1.04 * max(ends))
    if panel.legend:
        _legend(axes, panel, rows)


def _scale(axes: Axes, panel: Panel, ticks: list[float]) -> None:
    """The axes of curves: linear or logarithmic, with a tick at every setting."""
    low, high = min(ticks), max(ticks)
    if panel.x_scale == "log":
        axes.set_xscale("log")
        axes.margins(x=0.03)
    else:
        if panel.x_scale == "log2":
            axes.set_xscale("log", base=2)
        else:
            margin = 0.03 * (high - low)
            axes.set_xlim(low - margin, high + margin)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if panel.y_scale == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")


def _legend(axes: Axes, panel: Panel, rows: list[dict[str, Any]]) -> None:
    """A legend with the paper's names."""
    handles, labels = axes.get_legend_handles_labels()
    several = len(panel.measures) > 1 or not panel.by
    names = list(dict.fromkeys(row["measure" if several else "label"] for row in rows))
    shown = names if len(names) == len(handles) and all(names) else labels
    legend_above(axes, handles, shown, ncols=panel.legend, columnspacing=1.0)


def _bars(axes: Axes, panel: Panel, specs: list[ExperimentSpec], runs: Runs) -> None:
    group, member = ("measure", "label") if panel.members == "by" else ("label", "measure")
    rows = [row | {"group": row[group], "member": row[member]} for row in _rows(panel, specs, runs)]
    groups, members = (list(dict.fromkeys(row[key] for row in rows)) for key in (group, member))
    figures.grouped_bars(axes, rows, groups, members)


def interval_row(
    cc: str, label: str, found: Estimate, published: float | None = None
) -> dict[str, Any]:
    """A bar of `interval_bars`: the median of runs, the runs, and the paper's number.

    It has the colour and the marker of the algorithm `cc`.
    """
    said = {"cc": cc, "label": label, "published": published}
    return said | {"limit": found.limit, "runs": found.runs} | found.ends


def interval_bars(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Draws a bar for each row of `interval_row`."""
    schema: dict[str, Any] = {"cc": pl.String, "label": pl.String, "runs": pl.List(pl.Float64)}
    schema |= dict.fromkeys(("value", "low", "high", "limit", "published"), pl.Float64)
    for row in rows:
        if row["limit"] is not None and len(row["runs"]) < 5:
            row.update(low=None, high=None)  # a bootstrap of so few says nothing
    figures.intervals(axes, pl.DataFrame(rows, schema))


def interval_key(figure: Figure) -> None:
    """Says below the panels of `interval_bars` what their marks are."""
    line = partial(Line2D, [], [], color=figures.INK)
    mark = partial(line, linestyle="", marker="o", markersize=3)
    key = {
        "paper": line(linestyle="", marker="|", markersize=9, markeredgewidth=2.2),
        "median": Patch(facecolor=figures.FAINT, alpha=0.35),
        "95 % interval": line(linewidth=1.2),
        "run": mark(),
        "run beyond the observed time": mark(markerfacecolor=figures.PAPER),
    }
    figure.legend(list(key.values()), list(key), loc="outside lower center", ncols=len(key))


def _windows(axes: Axes, panel: Panel, specs: list[ExperimentSpec], runs: Runs) -> None:
    parts = []
    for spec in specs:
        result = runs[spec.id].by_subflow()
        first = result.of_seed(result.seeds[0])
        series = first.series if panel.series == "cwnd" else metrics.windows(first)
        flow = pl.col("flow").cast(pl.String)
        names = panel.flows or {name: f"{name} flow" for name in result.flow_names}
        shown, cc = flow.replace(names), pl.col("cc").cast(pl.String)
        if panel.by:
            value = spec.settings[panel.by]
            shown, cc = pl.lit(runs.paper.label(value)), pl.lit(value)
        table = series.filter(flow.is_in(list(names))).with_columns(name=shown, cc=cc)
        parts.append(table.select("name", "cc", "t", panel.series))
    drawn = pl.concat(parts)
    (figures.windows if panel.series == "cwnd" else figures.throughputs)(axes, drawn)
    axes.set_xlim(left=0)
    for at, word in panel.moments:
        figures.moment(axes, float(at), str(word))
    if panel.legend:
        figures.legend(axes, columns=panel.legend)


def _heat(axes: Axes, panel: Panel, specs: list[ExperimentSpec], runs: Runs) -> Any:
    [measure], axis = panel.measures, (panel.x, panel.by)
    rows = [
        row | {key: float(row["settings"][key]) for key in axis}
        for row in _rows(panel, specs, runs)
    ]
    low, high = panel.y_range or (None, measure.limit)
    table = pl.DataFrame(rows, infer_schema_length=None)
    return figures.heat_map(
        axes, table, *axis, "value", low=low, high=high, text=lambda row: _cell(row, measure)
    )


def _cell(row: dict[str, Any], measure: Measure) -> str:
    """A cell's median; with a limit of observation also its interval: ``62+`` has no end."""
    limit = measure.limit
    if limit is None:
        return f"{row['value']:.2f}"
    value = f"> {limit:g}" if row["value"] is None else f"{row['value']:.0f}"
    if row["low"] is None:
        return f"{value}\nall > {limit:g}"
    upper = "+" if row["high"] is None else f"–{row['high']:.0f}"  # noqa: RUF001
    return f"{value}\n{row['low']:.0f}{upper}"


def _finish(axes: Axes, panel: Panel) -> None:
    """Titles, labels and ranges of the axes."""
    wanted = {
        "title": panel.title,
        "xlabel": panel.x_label,
        "ylabel": panel.y_label,
        "xlim": panel.x_range,
        "ylim": panel.y_range,
    }
    axes.set(**{key: value for key, value in wanted.items() if value})
    if panel.line is not None:
        axes.axhline(panel.line, color=figures.FAINT, linewidth=0.6)


_KINDS: Final[dict[str, Any]] = {
    "curves": _curves,
    "bars": _bars,
    "intervals": lambda axes, *of: interval_bars(axes, _rows(*of)),
    "windows": _windows,
    "heat": _heat,
}
