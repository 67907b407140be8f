"""Figures of a result, by name: what ``dumbbell plot`` draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

import polars as pl

from dumbbell import figures, metrics
from dumbbell.errors import DumbbellError, unknown
from dumbbell.figures import timeline
from dumbbell.figures.style import new_figure
from dumbbell.metrics import SampledRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Panel = tuple[str, str | None]
    """A kind of panel, and the link that it shows if it is one of a link."""


class DrawableRuns(SampledRuns, Protocol):
    """What figures are drawn of: a `Result`."""

    @property
    def internals(self) -> pl.DataFrame:
        """As `Result.internals`."""

    @property
    def invalid_runs(self) -> Mapping[int, list[str]]:
        """As `Result.invalid_runs`."""

    def by_subflow(self) -> Self:
        """As `Result.by_subflow`."""

    def valid(self) -> Self:
        """As `Result.valid`."""


FIGURES: Final = {
    "overview": "windows, throughputs, states, round-trips and queues, one above the other",
    "windows": "congestion windows over time",
    "throughputs": "throughputs in windows of 1 s, or a 50th of a shorter run",
    "states": "the states of BBR's flows",
    "round-trips": "smoothed round-trip times",
    "queues": "the bytes in the queue of every link",
    "links": "the capacity of every link behind the throughput in it, above its queueing delay",
}
"""The figures of a result: name and what it shows."""

MOST_FLOWS: Final = 12
"""More flows than this cannot be told apart: the first ones are drawn."""

_OVERVIEW: Final = ("windows", "throughputs", "states", "round-trips", "queues")
_HEIGHTS: Final = {"delay": 1.1}
"""Heights of panels that are not as high as most, inches."""


def draw(
    result: DrawableRuns,
    name: str = "overview",
    *,
    width: float = figures.PAGE,
    seed: int | None = None,
    make: Callable[..., Figure] = new_figure,
) -> Figure:
    """Draws a figure of one seed of a result; panels share their time axis.

    If all seeds are invalid, the figure says so; if there are several, it says which it shows.

    Args:
        result: The runs.
        name: One of `FIGURES`.
        width: Of the figure, inches.
        seed: Which seed; the first that is not invalid if not given.
        make: What makes an empty figure.

    Raises:
        DumbbellError: If there is no such figure or seed, or the result has nothing to show in it.
    """
    run, rows = _choose(result, name, seed)
    usual = 1.7 if len(rows) > 1 else 2.1
    heights = [_HEIGHTS.get(part, usual) for part, _ in rows]
    if ("states", None) in rows:
        bands = _states(run)
        shown = bands["state"].n_unique()
        lines = -(-shown // timeline.legend_columns(shown, width))  # of their legend
        alone = 0.35 if len(rows) == 1 else 0.0
        band = 0.3 + 0.14 * bands["flow"].n_unique() + 0.17 * (lines - 1) + alone
        heights[rows.index(("states", None))] = band
    figure, grid = figures.panels(
        len(rows),
        width=width,
        height=sum(heights) / len(heights),
        share_x=True,
        row_heights=heights,
        make=make,
    )
    _draw_panels([axes for [axes] in grid], rows, result, run)
    return figure


def plot(
    result: DrawableRuns, kind: str, *, axes: Axes | None = None, seed: int | None = None
) -> Axes | list[Axes]:
    """Draws a figure of a result on some axes, or on those of a new figure; see `Result.plot`."""
    if axes is None:
        make = figures.pyplot_figure()
        with figures.styled():
            panels = draw(result, kind, seed=seed, make=make).axes
        return panels[0] if len(panels) == 1 else panels
    run, rows = _choose(result, kind, seed)
    if len(rows) > 1:
        problem = f'"{kind}" has {len(rows)} panels, and ax is one'
        raise DumbbellError(f"{problem}; leave ax out, or draw one: {', '.join(_OVERVIEW)}")
    with figures.styled():
        _draw_panels([axes], rows, result, run)
    return axes


def _choose(
    result: DrawableRuns, name: str, seed: int | None
) -> tuple[DrawableRuns, Sequence[Panel]]:
    """The run to draw, and the panels of a figure from top to bottom."""
    if name not in FIGURES:
        raise DumbbellError(unknown("figure", name, list(FIGURES)))
    if seed is not None and seed not in result.seeds:
        raise DumbbellError(f"there is no seed {seed}; choose from {_listed(result.seeds)}")
    run = result.of_seed(result.valid().seeds[0] if seed is None else seed)
    links = run.links["link"].unique(maintain_order=True).to_list()
    rows: list[Panel] = []
    for part in _OVERVIEW if name == "overview" else (name,):
        if part == "queues":
            rows += [(part, link) for link in links]
        elif part == "links":
            limited = [link for link in links if _is_limited(run, link)]
            rows += [(kind, link) for link in limited for kind in ("capacity", "delay")]
        elif part != "states" or _states(run).height:
            rows.append((part, None))
    if not rows:
        lacks = {"states": "flow of this result shows states, only BBR does"}
        why = lacks.get(name, "link of this result has a rate, a queue and samples")
        raise DumbbellError(f'figure "{name}": no {why}')
    return run, rows


def _is_limited(run: DrawableRuns, link: str) -> bool:
    said = next((one for one in run.experiment.links if one.name == link), None)
    return said is not None and bool(said.rate or said.rates or said.trace)


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:20])) + (", ..." if len(seeds) > 20 else "")


def _draw_panels(
    panels: Sequence[Axes], rows: Sequence[Panel], result: DrawableRuns, run: DrawableRuns
) -> None:
    """Draws each panel, the legend above the first, the seed below the last."""
    for axes, (part, link) in zip(panels, rows, strict=True):
        _draw_panel(axes, run, part, link)
        axes.set_xlabel("")
    first, last = panels[0], panels[-1]
    first.set_xlim(left=0)
    last.set_xlabel("time (s)")
    if rows[0][0] not in {"states", "queues"}:
        timeline.legend(first, of=panels)
    if len(result.seeds) > 1:
        count, seed = len(result.seeds), run.seeds[0]
        of = f"of {count}" if result.seeds == [*range(1, count + 1)] else f"(of {count} seeds)"
        last.set_xlabel(f"time (s), seed {seed} {of}")
    if run.invalid_runs:
        timeline.warning(first, "invalid")


def _draw_panel(axes: Axes, run: DrawableRuns, part: str, link: str | None) -> None:
    if part == "windows":
        timeline.windows(axes, _flows(run, run.series))
    elif part == "throughputs":
        _draw_throughputs(axes, run)
    elif part == "states":
        timeline.states(axes, _states(run))
    elif part == "round-trips":
        timeline.round_trips(axes, _flows(run, run.series))
    elif part == "queues":
        timeline.queue(axes, run.links.filter(pl.col("link") == link))
    elif part == "delay":
        timeline.queueing_delay(axes, metrics.drain_times(run).filter(pl.col("link") == link))
    else:
        rates = metrics.link_windows(run, width=metrics.window_width(run))
        timeline.capacity(axes, rates.filter(pl.col("link") == link))
        whole = run.by_subflow()
        _draw_throughputs(axes, whole, _flows_of_link(whole, link)[:MOST_FLOWS])
    if link is not None and run.links["link"].n_unique() > 1:
        axes.set_ylabel(f"{figures.named(link)}\n{axes.get_ylabel()}")


def _draw_throughputs(axes: Axes, run: DrawableRuns, only: Sequence[str] | None = None) -> None:
    """Draws the first flows, or `only` some, which look as in every other panel of the run."""
    width = metrics.window_width(run)
    names = None if only is None else run.flow_names
    shown = _flows(run, metrics.windows(run, width=width), names)
    timeline.throughputs(axes, shown, only=only)
    axes.set_ylabel(f"throughput (Mbit/s)\nin windows of {width:.3g} s")


def _flows_of_link(run: DrawableRuns, link: str | None) -> list[str]:
    """The flows, and subflows of multipath flows, whose data cross a link."""
    experiment, found = run.experiment, []
    for flow, names in zip(experiment.flows, experiment.flow_names(), strict=True):
        for at, path in enumerate(experiment.flow_paths(flow), 1):
            ending = "" if flow.paths is None else f"/{at}"
            found += [f"{name}{ending}" for name in names if link in path]
    return found


def _states(run: DrawableRuns) -> pl.DataFrame:
    """The states of the flows that show any: columns flow, t, state."""
    shown = run.internals.filter(pl.col("name") == "state").select(
        "flow", "t", state=pl.col("value")
    )
    return _flows(run, shown)


def _flows(
    run: DrawableRuns, table: pl.DataFrame, names: Sequence[str] | None = None
) -> pl.DataFrame:
    """Rows of the flows that are drawn, in the order of the file, named as legends have them."""
    chosen = run.flow_names[:MOST_FLOWS] if names is None else names
    flow = pl.col("flow").cast(pl.String)
    shown = table.filter(flow.is_in(chosen)).sort("flow", maintain_order=True)
    if "cc" not in shown.columns:
        return shown
    cc = pl.col("cc").cast(pl.String)
    labels = {cc: figures.style_of(cc).label for cc in run.flows["cc"].unique()}
    named = pl.format("{}, {}", flow, cc.replace_strict(labels, return_dtype=pl.String))
    says_it = flow.str.to_lowercase().str.contains(cc, literal=True)
    return shown.with_columns(name=pl.when(says_it).then(flow).otherwise(named))
