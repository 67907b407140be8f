"""The page of a reproduced paper, and the gallery that links all of them."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dumbbell import lab
from dumbbell.experiment.files import write_text
from dumbbell.figures import inline
from dumbbell.papers import numbers, outcome
from dumbbell.papers.helpers import minus
from dumbbell.papers.testbed import SUFFIX
from dumbbell.report import page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.papers.outcome import PaperFigure, Reproduction
    from dumbbell.report.result import ResultPage


def write_paper(of: Reproduction, out: Path | None = None) -> Path:
    """Writes ``index.html`` into the folder of a reproduction, or `out`, and returns its path."""
    cover, path = cover_of(of), out or of.folder / "index.html"
    inlined = {figure.id: _figure(of, figure) for figure in of.figures}
    sections, rest = [], dict(inlined)
    for section in of.sections:  # each figure beside the one of real packets
        names = [one for name in section.figures for one in (name, f"{name}{SUFFIX}")]
        sections.append((section, [inlined[name] for name in names if name in inlined]))
        for name in names:
            rest.pop(name, None)
    page.write(
        path,
        "paper.html.j2",
        page.CHARTS,
        of=of,
        answer=outcome.answer(of),
        tally=outcome.tally(of.claims),
        marks=outcome.MARKS,
        minus=minus,
        tables=numbers.tables(of.numbers),
        near=numbers.near(of.numbers),
        dots=numbers.DotPlot.of(of.numbers),
        cover=inlined[cover.id] if cover else None,
        sections=sections,
        rest=list(rest.values()),
        settings=_settings(of.views),
        seeds=max((view.meta["seeds"] for view in of.views), key=len),
        tools={tool: version(tool) for tool in ("polars", "numpy", "matplotlib")},
        looks=page.looks({cc for view in of.views for cc in view.algorithms}),
    )
    return path


def write_index(reproductions: Sequence[Reproduction], out: Path) -> Path:
    """Writes ``index.html`` into `out`, with a card for each paper, the best confirmed first.

    Beside it is the laboratory, to which figures and runs of the papers' pages link.
    """
    path = out / "index.html"
    write_text(out / lab.NAME, lab.page_with())
    ordered = sorted(reproductions, key=outcome.confirmed_share, reverse=True)
    sources = dict.fromkeys(of.linux for of in ordered if of.linux)
    page.write(
        path,
        "index.html.j2",
        cards=[(of, cover_of(of), numbers.DotPlot.of(of.numbers)) for of in ordered],
        headline=outcome.headline([claim for of in ordered for claim in of.claims]),
        tally=outcome.tally,
        agreement=outcome.agreement,
        sources=sorted(sources, key=lambda source: source.kernel),
    )
    return path


def cover_of(of: Reproduction) -> PaperFigure | None:
    """The figure that is shown first."""
    by_id = {figure.id: figure for figure in of.figures}
    return by_id.get(of.paper.cover) or next(iter(of.figures), None)


def _figure(of: Reproduction, figure: PaperFigure) -> dict[str, Any]:
    spec, text = figure.spec, of.svg(figure).read_text(encoding="utf-8")
    svg = inline(text, spec.file, f"{spec.heading}. {spec.caption}")
    shown = {view.name: view for view in of.views if view.fragment}
    views = [shown[name] for name in figure.experiments if name in shown]
    return {"spec": spec, "command": of.command(spec.id), "svg": Markup(svg), "views": views}


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
