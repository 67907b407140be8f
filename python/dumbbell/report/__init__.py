"""Reports: HTML files that need nothing but themselves.

`write_report` makes one of whatever a folder holds: a result, several results, a sweep, or a paper
that was reproduced. A page is put together from the templates and scripts beside this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dumbbell import _core
from dumbbell.figures import inline
from dumbbell.report import page
from dumbbell.report.folder import contents
from dumbbell.report.looks import looks
from dumbbell.report.runs import overview, tables_of, views
from dumbbell.report.swept import swept
from dumbbell.report.text import figures, interval, measured, unit
from dumbbell.sweeps.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dumbbell.papers.frame import Drawing, Reproduction, Section
    from dumbbell.report.runs import View
    from dumbbell.results.result import Result

__all__ = [
    "figures",
    "in_notebook",
    "interval",
    "measured",
    "unit",
    "write_index",
    "write_paper",
    "write_report",
]

_SCRIPTS = ("uPlot.min.js", "page.js", "charts.js")
_HEAT = ("page.js", "heat.js")


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Writes the report of a folder: a result, a folder of results, a sweep, or a paper reproduced.

    Args:
        folder: What to tell of.
        out: The file; ``report.html`` in the folder if not given, ``index.html`` for a paper.

    Returns:
        The file.

    Raises:
        DumbbellError: If there is nothing in the folder that could be told of.
    """
    found = contents(folder)
    if isinstance(found, dict):
        path = out or folder / "report.html"
        places = {name: str(folder if name == folder.name else folder / name) for name in found}
        _write_results(path, folder.resolve().name, found, places)
        return path
    if isinstance(found, Dataset):
        path = out or folder / "report.html"
        version = _core.__version__
        page.write(path, "sweep.html.j2", _HEAT, of=swept(found), version=version)
        return path
    return write_paper(found, out)


def write_paper(
    reproduction: Reproduction, out: Path | None = None, told: Sequence[View] | None = None
) -> Path:
    """Writes ``index.html`` into the folder of a reproduction, or `out`, and returns its path.

    `told` is how the page tells of the runs, if that is known already.
    """
    if told is None:
        told = views(reproduction.runs, {name: f"runs/{name}" for name in reproduction.runs})
    shown = {name for section in reproduction.sections for name in section.plates}
    rest = [drawing for drawing in reproduction.drawings if drawing.plate.id not in shown]
    path = out or reproduction.folder / "index.html"
    page.write(
        path,
        "paper.html.j2",
        _SCRIPTS,
        of=reproduction,
        sections=[_part(section, reproduction.drawings) for section in reproduction.sections],
        rest=[_figure(drawing) for drawing in rest],
        views=told,
        looks=_looks(reproduction.runs),
    )
    return path


def in_notebook(result: Result) -> str:
    """What a notebook shows of a result: its flows, and its links."""
    return page.part(
        "notebook.html.j2",
        title=result.experiment.title,
        tables=tables_of(result),
        complaints=result.complaints,
    )


def write_index(reproductions: Sequence[Reproduction], out: Path) -> Path:
    """Writes ``index.html`` into `out`, with a line for each paper, and returns its path."""
    path = out / "index.html"
    page.write(path, "index.html.j2", all=reproductions)
    return path


def _write_results(
    path: Path, name: str, results: Mapping[str, Result], places: Mapping[str, str]
) -> None:
    told = views(results, places)
    page.write(
        path,
        "results.html.j2",
        _SCRIPTS,
        name=name,
        version=_core.__version__,
        overview=overview(told),
        views=told,
        looks=_looks(results),
    )


def _looks(results: Mapping[str, Result]) -> dict[str, Any]:
    return looks({flow.cc for result in results.values() for flow in result.experiment.flows})


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
