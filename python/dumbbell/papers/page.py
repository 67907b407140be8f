"""The page of a reproduced paper, and the page that links all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dumbbell.display import format_significant
from dumbbell.figures import inline
from dumbbell.report import page
from dumbbell.report.result import result_pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Drawing, Number, Reproduction, Section
    from dumbbell.report.result import ResultPage


def write_paper(
    reproduction: Reproduction, out: Path | None = None, told: Sequence[ResultPage] | None = None
) -> Path:
    """Writes ``index.html`` into the folder of a reproduction, or `out`, and returns its path.

    `told` is how the page tells of the runs, if that is known already.
    """
    if told is None:
        told = result_pages(reproduction.runs, {name: f"runs/{name}" for name in reproduction.runs})
    shown = {name for section in reproduction.sections for name in section.plates}
    rest = [drawing for drawing in reproduction.drawings if drawing.plate.id not in shown]
    path = out or reproduction.folder / "index.html"
    page.write(
        path,
        "paper.html.j2",
        page.CHARTS,
        _FILTERS,
        of=reproduction,
        sections=[_part(section, reproduction.drawings) for section in reproduction.sections],
        rest=[_figure(drawing) for drawing in rest],
        views=told,
        looks=page.looks(reproduction.runs.values()),
    )
    return path


def write_index(reproductions: Sequence[Reproduction], out: Path) -> Path:
    """Writes ``index.html`` into `out`, with a line for each paper, and returns its path."""
    path = out / "index.html"
    page.write(path, "index.html.j2", all=reproductions)
    return path


def _part(section: Section, drawings: Sequence[Drawing]) -> dict[str, Any]:
    by_id = {drawing.plate.id: drawing for drawing in drawings}
    return {
        "section": section,
        "figures": [_figure(by_id[name]) for name in section.plates if name in by_id],
    }


def _figure(drawing: Drawing) -> dict[str, Any]:
    plate = drawing.plate
    svg = inline(drawing.svg, plate.file, f"{plate.title}. {plate.caption}")
    return {"plate": plate, "command": drawing.command, "svg": Markup(svg)}


def measured(number: Number, found: Estimate | None = None) -> str:
    """A measured value as text: ``"41.2"``, or ``"> 120"`` beyond what was observed."""
    shown = found or number.found
    return _value(shown.value, shown)


def interval(number: Number) -> str:
    """A confidence interval as text: ``"38.0 to 45.5"``, ``"38.0 to > 120"``."""
    found = number.found
    if found.low is None and found.high is None and found.limit is None:
        return "—"
    return f"{_value(found.low, found)} to {_value(found.high, found)}"


def single_runs(number: Number) -> str:
    """Between what the single runs lie: ``"runs 36 to > 120"``; nothing if there is one."""
    found = number.found
    if len(found.runs) < 2:
        return ""
    seen = [run for run in found.runs if run is not None]
    ends = (min(seen, default=None), None if found.censored else max(seen))
    low, high = (_value(end, found) for end in ends)
    return f"runs {low} to {high}"


def rank(number: Number) -> str:
    """Where the published value stands among the runs: ``"≥ 3 of 8 runs"``; nothing of one."""
    count = len(number.found.runs)
    return f"≥ {number.not_above} of {count} runs" if count > 1 else ""


def unit(number: Number) -> str:
    """The unit of a number with the space before it; nothing for a plain ratio."""
    return "" if number.said.unit == "1" else f" {number.said.unit}"


def _value(value: float | None, found: Estimate) -> str:
    if value is not None:
        return format_significant(value)
    return "unbounded" if found.limit is None else f"> {format_significant(found.limit)}"


_FILTERS: Final = (measured, interval, single_runs, rank, unit)
"""What templates call."""
