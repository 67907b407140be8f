"""Reports: one HTML file a paper, which needs nothing but itself, and a page that links them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from dumbbell.figures import inline
from dumbbell.files import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.estimates import Estimate
    from dumbbell.papers.frame import Drawing, Number, Reproduction, Section

_TEMPLATES = Path(__file__).parent / "templates"


def write_paper(reproduction: Reproduction) -> Path:
    """Writes ``index.html`` into the folder of a reproduction and returns its path."""
    shown = {name for section in reproduction.sections for name in section.plates}
    rest = [drawing for drawing in reproduction.drawings if drawing.plate.id not in shown]
    page = _render(
        "paper.html.j2",
        of=reproduction,
        sections=[_part(section, reproduction.drawings) for section in reproduction.sections],
        rest=[_figure(drawing) for drawing in rest],
    )
    path = reproduction.folder / "index.html"
    write_text(path, page)
    return path


def write_index(reproductions: Sequence[Reproduction], out: Path) -> Path:
    """Writes ``index.html`` into `out`, with a line for each paper, and returns its path."""
    path = out / "index.html"
    write_text(path, _render("index.html.j2", all=reproductions))
    return path


def measured(number: Number) -> str:
    """A measured value as text: ``"41.2"``, or ``"> 120"`` beyond what was observed."""
    return _value(number.found.value, number.found)


def interval(number: Number) -> str:
    """A confidence interval as text: ``"38.0 to 45.5"``, ``"38.0 to > 120"``."""
    found = number.found
    if found.low is None and found.high is None and found.limit is None:
        return "—"
    return f"{_value(found.low, found)} to {_value(found.high, found)}"


def unit(number: Number) -> str:
    """The unit of a number with the space before it; nothing for a plain ratio."""
    return "" if number.said.unit == "1" else f" {number.said.unit}"


def figures(value: float) -> str:
    """A value with three significant digits, and none lost in front of the point."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _value(value: float | None, found: Estimate) -> str:
    if value is not None:
        return figures(value)
    return "unbounded" if found.limit is None else f"> {figures(found.limit)}"


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


def _render(template: str, **context: Any) -> str:
    return _environment().get_template(template).render(context) + "\n"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    environment.filters |= {f.__name__: f for f in (measured, interval, unit, figures)}
    return environment
