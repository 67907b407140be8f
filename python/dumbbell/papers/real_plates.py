"""Figures of real packets: all numbers at a glance, and the paper's own figures once more."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from dumbbell import figures
from dumbbell.papers.frame import Plate, Runs
from dumbbell.papers.real import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Number, Section
    from dumbbell.papers.real import Real

SUFFIX: Final = "-real"
"""What the id of a figure has at its end if it is of real packets."""

_LEAST, _MOST = -0.5, 3.0
"""Where the axis of ratios ends; at 0 if none is below."""

_SIMULATED, _ALIKE, _REAL = "#0072b2", "#0072b2", "#d55e00"


def plates(paper: Sequence[Plate], numbers: Sequence[Number], real: Real) -> list[Plate]:
    """All numbers beside each other, then every figure of which all experiments are real."""
    shown = [number for number in numbers if number.real]
    glance = Plate(
        id="real",
        title="Published, simulated, real",
        caption="Every number that was measured with real packets, over the published one. "
        "Blue: the simulator, with its 95 % interval, hollow as the real runs were run; orange: "
        "real packets, with their single runs. Crossed out: all runs were spoiled.",
        draw=partial(draw_numbers, shown),
        wide=True,
    )
    again = [plate for plate in paper if plate.real and plate.experiments]
    return [
        *([glance] if shown else []),
        *(of_real(plate, real) for plate in again if set(plate.experiments) <= set(real.runs)),
    ]


def of_real(plate: Plate, real: Real) -> Plate:
    """A figure of a paper, drawn of the real runs that count."""
    sound = real.sound
    runs = sorted({len(sound[name].seeds) for name in plate.experiments})
    spoiled = sum(len(real.runs[name].spoiled) for name in plate.experiments)
    fewest = f"{runs[0]} to " if runs[0] != runs[-1] else ""
    many = f"{fewest}{counted(runs[-1], 0)}"
    marked = f"; {spoiled} more were spoiled and are left out" if spoiled else ""
    if any(set(sound[name].spoiled) for name in plate.experiments):
        marked = "; some are spoiled, as there are no others"
    return replace(
        plate,
        id=f"{plate.id}{SUFFIX}",
        title=f"{plate.title}, with real packets",
        caption=f"{many} of each experiment{marked}. {plate.caption}",
        draw=partial(_draw, plate, Runs(sound, {})),
    )


def _draw(plate: Plate, real: Runs, _simulated: Runs) -> Figure:
    return plate.draw(real)


def beside(sections: Sequence[Section], drawn: Sequence[Plate]) -> list[Section]:
    """Sections in which every figure that is also of real packets has that one at its side."""
    there = {plate.id for plate in drawn}
    return [
        replace(
            section,
            plates=tuple(
                shown
                for name in section.plates
                for shown in (name, f"{name}{SUFFIX}")
                if shown == name or shown in there
            ),
        )
        for section in sections
    ]


def draw_numbers(numbers: Sequence[Number], _runs: Runs) -> Figure:
    """Every number as a line: simulated and real over published."""
    height = 0.5 + 0.19 * len(numbers)
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=height)
    axes.axvline(1.0, color=figures.INK, linewidth=1.0)
    for place, number in enumerate(reversed(numbers)):
        assert number.real is not None, "only such numbers are drawn"
        said = number.said.published
        _mark(axes, place + 0.14, number.found, said, _SIMULATED)
        if number.real.alike:
            _mark(axes, place, number.real.alike, said, _ALIKE, hollow=True)
        low = place - 0.14 if number.real.alike else place - 0.1
        _mark(axes, low, number.real.found, said, _REAL, marker="D")
        for run in number.real.found.runs:
            axes.plot(_at(run, said), low, "|", color=_REAL, markersize=4)
        if not number.real.sound:
            axes.plot(_at(number.real.found.value, said), low, "x", color=figures.INK, markersize=7)
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
