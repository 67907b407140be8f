"""The page of a reproduced paper, and the page that links all of them."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dumbbell.display import format_significant
from dumbbell.figures import inline
from dumbbell.papers.helpers import minus
from dumbbell.papers.testbed import SUFFIX
from dumbbell.report import page

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.outcome import Claim, Number, PaperFigure, Reproduction
    from dumbbell.report.result import ResultPage

_NEAR: Final = 0.2
"""How far from 1 a ratio of measured to published may be to count as near."""


def write_paper(of: Reproduction, out: Path | None = None) -> Path:
    """Writes ``index.html`` into the folder of a reproduction, or `out`, and returns its path."""
    by_id = {figure.id: figure for figure in of.figures}
    sections = [(section, _with_real(section.figures, by_id)) for section in of.sections]
    shown = {name for _, names in sections for name in names}
    cover = cover_of(of)
    path = out or of.folder / "index.html"
    page.write(
        path,
        "paper.html.j2",
        page.CHARTS,
        of=of,
        confirmed=confirmed,
        minus=minus,
        significant=significant,
        unit=unit,
        measured=measured,
        interval=interval,
        single_runs=single_runs,
        rank=rank,
        near=_near(of.numbers),
        cover=_figure(of, cover, "cover-") if cover else None,
        sections=[
            (section, [_figure(of, by_id[name]) for name in names]) for section, names in sections
        ],
        rest=[_figure(of, figure) for name, figure in by_id.items() if name not in shown],
        settings=_settings(of.views),
        seeds=max((view.meta["seeds"] for view in of.views), key=len),
        tools={tool: version(tool) for tool in ("polars", "numpy", "matplotlib")},
        looks=page.looks({cc for view in of.views for cc in view.algorithms}),
    )
    return path


def _with_real(names: Sequence[str], drawn: Container[str]) -> list[str]:
    """Figures that are drawn, each beside the one of real packets."""
    return [one for name in names for one in (name, f"{name}{SUFFIX}") if one in drawn]


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


def confirmed(claims: Sequence[Claim]) -> str:
    """How many claims are confirmed: ``"16 of 26 claims confirmed"``."""
    count = sum(claim.verdict.confirmed for claim in claims)
    return f"{count} of {len(claims)} claim{'' if len(claims) == 1 else 's'} confirmed"


def cover_of(of: Reproduction) -> PaperFigure | None:
    """The figure that is shown first."""
    by_id = {figure.id: figure for figure in of.figures}
    return by_id.get(of.paper.cover) or next(iter(of.figures), None)


def _near(numbers: Sequence[Number]) -> str:
    """How many numbers are near the published ones."""
    ratios = [number.ratio for number in numbers if number.spec.ratio]
    near = sum(ratio is not None and abs(ratio - 1) <= _NEAR for ratio in ratios)
    return f"{near} of {len(ratios)} within {_NEAR:.0%} of the published value".replace("%", " %")


def _figure(of: Reproduction, figure: PaperFigure, prefix: str = "") -> dict[str, Any]:
    spec, text = figure.spec, of.svg(figure).read_text(encoding="utf-8")
    svg = inline(text, f"{prefix}{spec.file}", f"{spec.heading}. {spec.caption}")
    return {"spec": spec, "command": of.command(spec.id), "svg": Markup(svg), "prefix": prefix}


def _settings(views: Sequence[ResultPage]) -> dict[str, list[tuple[str, str, list[str]]]]:
    """What the paper does not specify, by its kind: key, reason, experiments; each once."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for view in views:
        for key, _, kind, reason in view.settings:
            found.setdefault((kind, key, reason), []).append(view.name)
    return {
        kind: [(key, why, names) for (other, key, why), names in found.items() if other == kind]
        for kind in ("assumed", "calibrated")
    }


def measured(found: Estimate) -> str:
    """A measured value as text: ``"41.2"``, or ``"> 120"`` beyond what was observed."""
    return _value(found.value, found)


def interval(found: Estimate) -> str:
    """A confidence interval as text: ``"38.0 to 45.5"``, ``"38.0 to > 120"``."""
    if found.low is None and found.high is None and found.limit is None:
        return "—"
    return f"{_value(found.low, found)} to {_value(found.high, found)}"


def single_runs(found: Estimate) -> str:
    """The range of the single runs: ``"runs 36.0 to > 120"``; nothing if there is one."""
    if len(found.runs) < 2:
        return ""
    seen = [run for run in found.runs if run is not None]
    low, high = min(seen, default=None), None if found.censored else max(seen)
    return f"runs {_value(low, found)} to {_value(high, found)}"


def rank(number: Number) -> str:
    """Where the published value stands among the runs: ``"≥ 3 of 8 runs"``; nothing of one."""
    runs = number.measured.runs
    not_above = sum(run is not None and run <= number.spec.published for run in runs)
    return f"≥ {not_above} of {len(runs)} runs" if len(runs) > 1 else ""


def unit(number: Number) -> str:
    """The unit of a number with the space before it; nothing for a plain ratio."""
    return "" if number.spec.unit == "1" else f" {number.spec.unit}"


def significant(value: float | None) -> str:
    """A value with three significant digits, zeros at its end kept, and a minus sign."""
    text = format_significant(value)
    if value and ("." in text or 0.001 <= abs(value) < 100):
        text = f"{value:#.3g}".removesuffix(".")
    return minus(text)


def _value(value: float | None, found: Estimate) -> str:
    if value is not None:
        return significant(value)
    return "unbounded" if found.limit is None else f"> {format_significant(found.limit)}"
