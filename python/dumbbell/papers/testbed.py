"""Papers with real packets: what is measured in them, and their part of the report.

The paper's ``[[testbed]]`` tables change experiments for the kernel, or shorten them, as runs take
real time. The simulator then runs the changed experiment too: that separates the effect of the
settings from the effect of real packets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import figures, metrics
from dumbbell.display import Cell, Column, Table
from dumbbell.papers.model import FigureSpec, Paper
from dumbbell.papers.outcome import Number, PaperFigure, Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.runs import Runs
    from dumbbell.results.result import Result

SUFFIX: Final = "-real"  # the id of a figure with real packets ends with it
_SHOWN: Final = ("throughput", "queue_delay_mean", "retransmission_share")

_MAX_RATIO: Final = 3.0  # where the axis of ratios ends

_SIMULATED, _REAL = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class TestbedRuns:
    """Results with real packets, and simulations of the experiments that the testbed changes.

    These have the seeds of the valid runs: random losses and starts are the same.
    """

    __test__ = False

    runs: Mapping[str, Result]  # by the id of their experiment
    matched: Mapping[str, Result]

    @cached_property
    def valid(self) -> dict[str, Result]:
        """The results without invalid runs, unless all of them are."""
        return {name: result.valid() for name, result in self.runs.items()}

    @property
    def kernel(self) -> str:
        """The kernels that carried the packets."""
        versions = {result.meta["kernel"].partition("-")[0] for result in self.runs.values()}
        return ", ".join(sorted(versions))

    def counts(self, experiment: str) -> tuple[int, int]:
        """How many runs of an experiment are valid, and how many are not."""
        runs = self.runs[experiment]
        invalid = len(runs.invalid_runs)
        return len(runs.seeds) - invalid, invalid


@dataclass(frozen=True)
class TestbedNumber:
    """A published number, measured with real packets."""

    __test__ = False

    measured: Estimate  # in the valid runs, or in the invalid ones if there are no others
    matched: Estimate | None  # in the matched simulation, where there is one
    valid: int  # how many runs are valid
    invalid: int

    @property
    def count(self) -> str:
        """In words, how many runs count, and how many are invalid."""
        return counted(self.valid, self.invalid)

    def as_json(self) -> dict[str, Any]:
        """As it stands in ``results.json``."""
        count = {"runs": self.valid or self.invalid, "invalid": self.invalid}
        matched = {"matched": self.matched.value} if self.matched else {}
        return self.measured.ends | count | matched


def counted(valid: int, invalid: int) -> str:
    """In words, how many runs count, and how many are invalid; without valid ones those count."""
    runs = valid or invalid
    said = "1 run" if runs == 1 else f"{runs} runs"
    if not invalid:
        return said
    return f"{said}, {invalid} invalid left out" if valid else f"{said}, invalid"


def section(paper: Paper, simulated: Mapping[str, Result], real: TestbedRuns) -> Section:
    """The section on real packets."""
    text = [
        f"The same links in real time, with the TCP of Linux {real.kernel}; algorithms "
        "that Linux lacks run as eBPF programs. If the testbed needs other settings or shorter "
        "runs, the simulator also runs the changed experiment (the matched simulation).",
        *dict.fromkeys(plan.why for plan in paper.testbed if plan.why),
    ]
    tables = [_side_by_side({**simulated, **real.matched}, real)]
    rows = [
        [name, str(seed), "; ".join(why), "left out" if seed not in valid.seeds else "kept"]
        for name, valid in real.valid.items()
        for seed, why in real.runs[name].invalid_runs.items()
    ]
    if rows:
        columns = [Column("Experiment"), Column("Run", number=True), Column("Reason"), Column("Is")]
        note = (
            "Runs that the machine disturbed, also when repeated. They are left out, unless the "
            "experiment has no other runs."
        )
        tables.append(Table(columns, rows, note))
    return Section("Real packets", text, tables, ["real"])


def _side_by_side(simulated: Mapping[str, Result], real: TestbedRuns) -> Table:
    """A row for every flow of every experiment: the matched simulation and the kernel."""
    measures = [Column.of(key) for key in _SHOWN]
    columns = [Column("Experiment"), Column("Flow"), Column("Runs")]
    columns += [
        replace(column, title=f"{column.title}, {which}")
        for column in measures
        for which in ("simulated", "Linux")
    ]
    rows: list[list[Cell]] = []
    for name, result in real.valid.items():
        ours, theirs = _medians(simulated[name].with_seeds_of(result)), _medians(result)
        runs = counted(*real.counts(name))
        for flow, found in theirs.items():
            cells = [table[key] for key in _SHOWN for table in (ours[flow], found)]
            rows.append([name, flow, runs, *cells])
    note = "Medians over the valid runs, and over a matched simulation with the same seeds."
    return Table(columns, rows, note)


def _medians(result: Result) -> dict[str, dict[str, float | None]]:
    table = metrics.summary(result.by_subflow()).group_by("flow", maintain_order=True)
    medians = table.agg(pl.col(*_SHOWN).median())
    return {str(row["flow"]): row for row in medians.iter_rows(named=True)}


def figures_of(
    paper: Sequence[PaperFigure], numbers: Sequence[Number], real: TestbedRuns
) -> list[PaperFigure]:
    """All numbers beside each other, then every figure of which all experiments are real."""
    shown = [number for number in numbers if number.testbed and number.spec.has_ratio]
    overview = FigureSpec(
        id="real",
        heading="Published, simulated, real",
        caption="Every number that was measured with real packets, divided by the published one; "
        "differences, which may be near 0, are left out. "
        "Blue: the simulator, with its 95 % interval; hollow: simulated with the settings of the "
        "testbed. Orange: real packets, with the single runs; crossed out: all runs are invalid.",
        wide=True,
    )
    again = [one for one in paper if one.spec.testbed and one.experiments]
    return [
        *([PaperFigure(overview, partial(_draw_numbers, shown))] if shown else []),
        *(of_real(figure, real) for figure in again if set(figure.experiments) <= set(real.runs)),
    ]


def of_real(figure: PaperFigure, real: TestbedRuns) -> PaperFigure:
    """A figure of a paper, drawn of the real runs that count."""
    valid = real.valid
    runs = sorted({len(valid[name].seeds) for name in figure.experiments})
    invalid = sum(len(real.runs[name].invalid_runs) for name in figure.experiments)
    fewest = f"{runs[0]} to " if runs[0] != runs[-1] else ""
    marked = f"; {invalid} more are invalid and left out" if invalid else ""
    if any(valid[name].invalid_runs for name in figure.experiments):
        marked = "; some are invalid, as there are no others"
    many = f"{fewest}{counted(runs[-1], 0)} of each experiment{marked}"
    changes = {
        "id": f"{figure.id}{SUFFIX}",
        "heading": f"{figure.spec.heading}, with real packets",
        "caption": f"{many}. {figure.spec.caption}",
    }
    return replace(
        figure,
        spec=figure.spec.model_copy(update=changes),
        draw=lambda runs: figure.draw(runs.with_results(valid)),
    )


def _draw_numbers(numbers: Sequence[Number], _runs: Runs) -> Figure:
    """Every number as a line: simulated and real over published."""
    height = 0.5 + 0.19 * len(numbers)
    figure, [[axes]] = figures.panels(width=figures.PAGE, height=height)
    axes.axvline(1.0, color=figures.INK, linewidth=1.0)
    for place, number in enumerate(reversed(numbers)):
        real, at = number.testbed, partial(_ratio, published=number.spec.published)
        assert real is not None, "only such numbers are drawn"
        low = place - (0.14 if real.matched else 0.1)
        for y, found, marker, colour, fill in (
            (place + 0.14, number.measured, "o", _SIMULATED, _SIMULATED),
            (place, real.matched, "o", _SIMULATED, "none"),
            (low, real.measured, "D", _REAL, _REAL),
        ):
            if found is not None:
                if found.low is not None:
                    ends = [at(found.low), at(found.high)]
                    axes.plot(ends, [y, y], color=colour, linewidth=0.8, alpha=0.7)
                mark = axes.plot(at(found.value), y, marker, color=colour, markersize=4)
                mark[0].set_markerfacecolor(fill)
        for run in real.measured.runs:
            axes.plot(at(run), low, "|", color=_REAL, markersize=4)
        if not real.valid:
            axes.plot(at(real.measured.value), low, "x", color=figures.INK, markersize=7)
    names = [number.spec.quantity.partition(" (")[0] for number in reversed(numbers)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="y", length=0, labelsize=6.5)
    axes.set_xlim(-0.05, _MAX_RATIO + 0.05)
    axes.set_xlabel("measured over published; marks at the right end are beyond")
    return figure


def _ratio(value: float | None, published: float) -> float:
    """Where a value stands on the axis; one beyond what was observed at its end."""
    return _MAX_RATIO if value is None else min(max(value / published, 0.0), _MAX_RATIO)
