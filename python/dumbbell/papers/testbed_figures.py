"""Figures of real packets: all numbers at a glance, and the paper's own figures once more."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dumbbell import figures
from dumbbell.papers.model import FigureSpec
from dumbbell.papers.outcome import PaperFigure
from dumbbell.papers.testbed import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.outcome import Number, Section
    from dumbbell.papers.runs import Runs
    from dumbbell.papers.testbed import TestbedRuns
    from dumbbell.results.result import Result

SUFFIX: Final = "-real"
"""What the id of a figure has at its end if it is of real packets."""

_LEAST, _MOST = -0.5, 3.0
"""Where the axis of ratios ends; at 0 if none is below."""

_SIMULATED, _MATCHED, _REAL = "#0072b2", "#0072b2", "#d55e00"


def figures_of(
    paper: Sequence[PaperFigure], numbers: Sequence[Number], real: TestbedRuns
) -> list[PaperFigure]:
    """All numbers beside each other, then every figure of which all experiments are real."""
    shown = [number for number in numbers if number.testbed]
    all_numbers = FigureSpec(
        id="real",
        heading="Published, simulated, real",
        caption="Every number that was measured with real packets, divided by the published one. "
        "Blue: the simulator, with its 95 % interval; hollow: simulated with the settings of the "
        "testbed. Orange: real packets, with their single runs; crossed out: all runs are invalid.",
        wide=True,
    )
    again = [one for one in paper if one.spec.testbed and one.experiments]
    return [
        *([PaperFigure(all_numbers, partial(draw_numbers, shown))] if shown else []),
        *(of_real(figure, real) for figure in again if set(figure.experiments) <= set(real.runs)),
    ]


def of_real(figure: PaperFigure, real: TestbedRuns) -> PaperFigure:
    """A figure of a paper, drawn of the real runs that count."""
    valid = real.valid
    runs = sorted({len(valid[name].seeds) for name in figure.experiments})
    invalid = sum(len(real.runs[name].invalid_runs) for name in figure.experiments)
    fewest = f"{runs[0]} to " if runs[0] != runs[-1] else ""
    marked = f"; {invalid} more were invalid and are left out" if invalid else ""
    if any(set(valid[name].invalid_runs) for name in figure.experiments):
        marked = "; some are invalid, as there are no others"
    changes = {
        "id": f"{figure.id}{SUFFIX}",
        "heading": f"{figure.spec.heading}, with real packets",
        "caption": f"{fewest}{counted(runs[-1], 0)} of each experiment{marked}. "
        f"{figure.spec.caption}",
    }
    spec = figure.spec.model_copy(update=changes)
    return replace(figure, spec=spec, draw=partial(_draw, figure, valid))


def _draw(figure: PaperFigure, valid: Mapping[str, Result], runs: Runs) -> Figure:
    return figure.draw(runs.with_results(valid))


def beside(sections: Sequence[Section], drawn: Sequence[PaperFigure]) -> list[Section]:
    """Sections in which every figure that is also of real packets has that one at its side."""
    there = {figure.id for figure in drawn}
    return [
        replace(
            section,
            figures=[
                shown
                for name in section.figures
                for shown in (name, f"{name}{SUFFIX}")
                if shown == name or shown in there
            ],
        )
        for section in sections
    ]


def draw_numbers(numbers: Sequence[Number], _runs: Runs) -> Figure:
    """Every number as a line: simulated and real over published."""
    height = 0.5 + 0.19 * len(numbers)
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=height)
    axes.axvline(1.0, color=figures.INK, linewidth=1.0)
    for place, number in enumerate(reversed(numbers)):
        assert number.testbed is not None, "only such numbers are drawn"
        said = number.said.published
        _mark(axes, place + 0.14, number.found, said, _SIMULATED)
        if number.testbed.matched:
            _mark(axes, place, number.testbed.matched, said, _MATCHED, hollow=True)
        low = place - 0.14 if number.testbed.matched else place - 0.1
        _mark(axes, low, number.testbed.found, said, _REAL, marker="D")
        for run in number.testbed.found.runs:
            axes.plot(_at(run, said), low, "|", color=_REAL, markersize=4)
        if not number.testbed.valid:
            axes.plot(
                _at(number.testbed.found.value, said), low, "x", color=figures.INK, markersize=7
            )
    names = [number.said.quantity.partition(" (")[0] for number in reversed(numbers)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="y", length=0, labelsize=6.5)
    axes.set_xlim(min(0.0, axes.dataLim.x0) - 0.05, _MOST + 0.05)
    axes.set_xlabel("measured over published; marks at the ends are beyond")
    return figure


def _mark(
    axes: Axes,
    y: float,
    found: Estimate,
    published: float,
    colour: str,
    *,
    marker: str = "o",
    hollow: bool = False,
) -> None:
    if found.low is not None:
        ends = [_at(found.low, published), _at(found.high, published)]
        axes.plot(ends, [y, y], color=colour, linewidth=0.8, alpha=0.7)
    fill = "none" if hollow else colour
    axes.plot(
        _at(found.value, published), y, marker, color=colour, markerfacecolor=fill, markersize=4
    )


def _at(value: float | None, published: float) -> float:
    """Where a value stands on the axis; one beyond what was observed at its upper end."""
    return _MOST if value is None else min(max(value / published, _LEAST), _MOST)
