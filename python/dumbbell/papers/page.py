"""The page of a reproduced paper, and the page that links all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dumbbell.display import format_significant
from dumbbell.figures import inline
from dumbbell.papers.helpers import minus
from dumbbell.report import page
from dumbbell.report.result import result_pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.outcome import Drawing, Number, Reproduction, Section
    from dumbbell.report.result import ResultPage

_NEAR: Final = 0.2
"""How far from 1 a ratio of measured to published may be to count as near."""


def write_paper(
    reproduction: Reproduction, out: Path | None = None, views: Sequence[ResultPage] | None = None
) -> Path:
    """Writes ``index.html`` into the folder of a reproduction, or `out`, and returns its path.

    `views` is what the page shows of the runs, if that is there already.
    """
    of = reproduction
    if views is None:
        views = result_pages(of.runs, {name: f"runs/{name}" for name in of.runs})
    shown = {name for section in of.sections for name in section.figures}
    rest = [drawing for drawing in of.drawings if drawing.figure.id not in shown]
    cover = cover_of(of)
    path = out or of.folder / "index.html"
    page.write(
        path,
        "paper.html.j2",
        page.CHARTS,
        of=of,
        confirmed=confirmed,
        minus=minus,
        numbers=[_number(number) for number in of.numbers],
        near=_near(of.numbers),
        cover=_figure(cover, "cover-") if cover else None,
        sections=[_part(section, of.drawings) for section in of.sections],
        rest=[_figure(drawing) for drawing in rest],
        views=views,
        looks=page.looks({cc for view in views for cc in view.algorithms}),
    )
    return path


def write_index(reproductions: Sequence[Reproduction], out: Path) -> Path:
    """Writes ``index.html`` into `out`, with a part for each paper, and returns its path."""
    path = out / "index.html"
    claims = [claim for of in reproductions for claim in of.claims]
    page.write(
        path,
        "index.html.j2",
        all=[(of, cover_of(of)) for of in reproductions],
        confirmed=confirmed,
        claims=claims,
    )
    return path


def confirmed(claims: Sequence[Any]) -> str:
    """How many claims are confirmed: ``"16 of 26 claims confirmed"``."""
    count = sum(claim.found.confirmed for claim in claims)
    return f"{count} of {len(claims)} claim{'' if len(claims) == 1 else 's'} confirmed"


def cover_of(of: Reproduction) -> Drawing | None:
    """The figure that is shown first."""
    by_id = {drawing.figure.id: drawing for drawing in of.drawings}
    return by_id.get(of.paper.cover) or next(iter(of.drawings), None)


def _near(numbers: Sequence[Number]) -> str:
    """How many numbers are near the published ones."""
    ratios = [number.ratio for number in numbers if number.said.ratio]
    near = sum(ratio is not None and abs(ratio - 1) <= _NEAR for ratio in ratios)
    return f"{near} of {len(ratios)} within {_NEAR:.0%} of the published value".replace("%", " %")


def _part(section: Section, drawings: Sequence[Drawing]) -> dict[str, Any]:
    by_id = {drawing.figure.id: drawing for drawing in drawings}
    return {
        "section": section,
        "figures": [_figure(by_id[name]) for name in section.figures if name in by_id],
    }


def _figure(drawing: Drawing, prefix: str = "") -> dict[str, Any]:
    figure = drawing.figure
    svg = inline(drawing.svg, f"{prefix}{figure.file}", f"{figure.title}. {figure.caption}")
    return {"figure": figure, "command": drawing.command, "svg": Markup(svg), "prefix": prefix}


def _number(number: Number) -> dict[str, Any]:
    """A number as the cells of its row."""
    said, found, real, in_unit = number.said, number.found, number.testbed, unit(number)
    ratio = None if number.ratio is None or not said.ratio else number.ratio
    return {
        "number": number,
        "published": f"{significant(said.published)}{in_unit}",
        "rank": rank(number),
        "measured": f"{measured(number)}{in_unit}",
        "interval": f"{interval(number)}{in_unit}",
        "runs": single_runs(number),
        "ratio": "—" if ratio is None else minus(f"{ratio:.2f}"),
        "testbed": f"{measured(number, real.found)}{in_unit}" if real else "",
        "matched": measured(number, real.matched) if real and real.matched else "",
        "censored": bool(found.censored),
    }


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
    """The range of the single runs: ``"runs 36.0 to > 120"``; nothing if there is one."""
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


def significant(value: float | None) -> str:
    """A value with three significant digits, zeros at its end kept, and a minus sign."""
    text = format_significant(value)
    if (value and "." not in f"{abs(value):.3g}" and 0.001 <= abs(value) < 100) or (
        value and "." in text
    ):
        text = f"{value:#.3g}".removesuffix(".")
    return minus(text)


def _value(value: float | None, found: Estimate) -> str:
    if value is not None:
        return significant(value)
    return "unbounded" if found.limit is None else f"> {format_significant(found.limit)}"
