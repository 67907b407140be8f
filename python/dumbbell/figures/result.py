"""Figures of a result, by name: what ``dumbbell plot`` draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

import polars as pl

from dumbbell import figures, metrics
from dumbbell.errors import DumbbellError, unknown
from dumbbell.figures.timeline import legend_columns
from dumbbell.metrics import SampledRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class DrawableRuns(SampledRuns, Protocol):
    """What figures are drawn of: a `Result`."""

    @property
    def internals(self) -> pl.DataFrame:
        """As `Result.internals`."""

    @property
    def invalid_runs(self) -> Mapping[int, list[str]]:
        """As `Result.invalid_runs`."""

    def valid(self) -> Self:
        """As `Result.valid`."""


FIGURES: Final = {
    "overview": "all of the others, one above the other",
    "windows": "congestion windows over time",
    "throughputs": "throughputs in windows of 1 s, or a 50th of a shorter run",
    "states": "the states of BBR's flows",
    "round-trips": "smoothed round-trip times",
    "queues": "what waits at every link",
}
"""The figures of a result: name and what it shows."""

MOST_FLOWS: Final = 12
"""More flows than this cannot be told apart: the first ones are drawn."""

_WHOLE = tuple(name for name in FIGURES if name != "overview")


def draw(
    result: DrawableRuns,
    name: str = "overview",
    *,
    width: float = figures.PAGE,
    seed: int | None = None,
    make: Callable[..., Figure] = figures.new_figure,
) -> Figure:
    """Draws a figure of one seed of a result; panels share their time axis.

    If all seeds are invalid, the figure says so; if there are several, it says which it shows.

    Args:
        result: The runs.
        name: One of `FIGURES`.
        width: Of the figure, inches.
        seed: Which seed; the first valid one if not given.
        make: What makes an empty figure.

    Raises:
        DumbbellError: If there is no such figure or seed, or the result has nothing to show in it.
    """
    run, rows, bands = _rows(result, name, seed)
    shown = bands["state"].n_unique()
    lines = -(-shown // legend_columns(shown, width))  # of their legend
    band = 0.3 + 0.14 * bands["flow"].n_unique() + 0.17 * max(lines - 1, 0)
    tall = 1.7 if len(rows) > 1 else 2.1
    heights = [
        band + (0.35 if len(rows) == 1 else 0) if part == "states" else tall for part, _ in rows
    ]
    figure, grid = figures.panels(
        len(rows),
        width=width,
        height=sum(heights) / len(heights),
        share_x=True,
        row_heights=heights,
        make=make,
    )
    for (part, link), [axes] in zip(rows, grid, strict=True):
        _panel(axes, run, part, link, bands)
    for [axes] in grid[:-1]:
        axes.set_xlabel("")
    _finish(grid[0][0], grid[-1][0], result, run, rows[0][0])
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
    run, rows, bands = _rows(result, kind, seed)
    if len(rows) > 1:
        problem = f'"{kind}" has {len(rows)} panels, and ax is one'
        raise DumbbellError(f"{problem}; leave ax out, or draw one: {', '.join(_WHOLE)}")
    [(part, link)] = rows
    with figures.styled():
        _panel(axes, run, part, link, bands)
        _finish(axes, axes, result, run, part)
    return axes


def _rows(
    result: DrawableRuns, name: str, seed: int | None
) -> tuple[DrawableRuns, list[tuple[str, str | None]], pl.DataFrame]:
    """The run to draw, the panels of a figure with their links, and the states of its flows."""
    if name not in FIGURES:
        raise DumbbellError(unknown("figure", name, list(FIGURES)))
    if seed is not None and seed not in result.seeds:
        raise DumbbellError(f"there is no seed {seed}; choose from {_listed(result.seeds)}")
    run = result.of_seed(result.valid().seeds[0] if seed is None else seed)
    bands = _states(run)
    parts = _WHOLE if name == "overview" else (name,)
    rows: list[tuple[str, str | None]] = [
        (part, None) for part in parts if part not in {"queues", "states"}
    ]
    if "states" in parts and bands.height:
        rows.insert(min(2, len(rows)), ("states", None))
    if "queues" in parts:
        rows += [("queues", link) for link in run.links["link"].unique(maintain_order=True)]
    if not rows:
        raise DumbbellError(f'figure "{name}": no flow of this result shows states, only BBR does')
    return run, rows, bands


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:20])) + (", ..." if len(seeds) > 20 else "")


def _finish(first: Axes, last: Axes, result: DrawableRuns, run: DrawableRuns, part: str) -> None:
    """The legend above the first panel, the seed below the last, and whether it is invalid."""
    if part not in {"states", "queues"}:
        figures.legend(first)
    if len(result.seeds) > 1:
        last.set_xlabel(f"time (s), seed {run.seeds[0]} of {_listed(result.seeds)}")
    if run.invalid_runs:
        figures.warning(first, "invalid")


def _panel(axes: Axes, run: DrawableRuns, part: str, link: str | None, bands: pl.DataFrame) -> None:
    if part == "windows":
        figures.windows(axes, _flows(run, run.series))
    elif part == "throughputs":
        width = metrics.window_width(run)
        figures.throughputs(axes, _flows(run, metrics.windows(run, width=width)))
        axes.set_ylabel(f"throughput (Mbit/s)\nin windows of {width:.3g} s")
    elif part == "states":
        figures.states(axes, bands)
    elif part == "round-trips":
        figures.round_trips(axes, _flows(run, run.series))
    else:
        figures.queue(axes, run.links.filter(pl.col("link") == link))
        if run.links["link"].n_unique() > 1:
            axes.set_ylabel(f"{figures.named(link)}\nqueue (kB)")


def _states(run: DrawableRuns) -> pl.DataFrame:
    """The states of the flows that show any: columns flow, t, state."""
    shown = run.internals.filter(pl.col("name") == "state").select(
        "flow", "t", state=pl.col("value")
    )
    return _flows(run, shown)


def _flows(run: DrawableRuns, table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("flow").cast(pl.String).is_in(run.flow_names[:MOST_FLOWS]))
