"""``dumbbell figure``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dumbbell import figures
from dumbbell.cli.output import print_line, tell_left_out, tell_spoiled
from dumbbell.errors import DumbbellError
from dumbbell.experiment.stacks import unknown
from dumbbell.figures.result import FIGURES, MOST_FLOWS, draw
from dumbbell.papers import Study, available, folder_of
from dumbbell.papers.reproduction import figure_of
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS: Final = ["pdf", "svg", "png"]
_COLUMNS: Final = {"single": figures.COLUMN, "double": figures.PAGE}
_INCHES: Final = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0, "pt": 1 / 72}
_TIGHT: Final = 0.8
"""Below this share of the width that it is drawn for, words in a figure may meet."""
_NARROWEST, _WIDEST = 1.5, 20.0


def list_figures() -> None:
    """Prints the figures of a result, then those of papers."""
    print_line("Of a result, for dumbbell figure NAME DIR:")
    for name, shows in FIGURES.items():
        print_line(f"  {name}: {shows}")
    print_line("\nOf papers, for dumbbell figure NAME:")
    for paper in available():
        for spec in paper.figures:
            print_line(f"  {paper.id}/{spec.id}: {spec.heading}")


def draw_figure(
    name: str, folder: Path | None, *, kind: str, width: str | None, out: Path | None
) -> None:
    """Draws one figure into one file."""
    if kind not in _FORMATS:
        raise DumbbellError(f"--format: {unknown('format', kind, _FORMATS)}")
    inches = None if width is None else _inches(width)
    drawn = _of_paper(name, folder) if "/" in name else _of_result(name, folder, inches)
    path = out or Path(f"{name.replace('/', '-')}.{kind}")
    if path.suffix != f".{kind}":
        raise DumbbellError(f'--out: "{path}" does not end in .{kind}, which is the format')
    was = float(drawn.get_figwidth())
    if inches is not None and inches < _TIGHT * was:
        said = f"is drawn for {was * 25.4:.0f} mm: look whether its words have room"
        sys.stderr.write(f"dumbbell: {name} {said}\n")
    try:
        figures.publish(drawn, path, width=inches)
    except OSError as error:
        raise DumbbellError(f"{path}: cannot be written: {error.strerror}") from None
    print_line(str(path))


def _of_result(name: str, folder: Path | None, width: float | None) -> Figure:
    if name not in FIGURES:
        problem = unknown("figure", name, list(FIGURES))
        raise DumbbellError(f"{problem}; those of papers are called as in tein2/7, see --list")
    if folder is None:
        raise DumbbellError(f"{name}: name the result folder too: dumbbell figure {name} DIR")
    result = Result.load(folder)
    tell_spoiled(folder, result)
    tell_left_out(folder, result, MOST_FLOWS)
    with figures.styled():
        return draw(result, name, width=width or figures.PAGE)


def _of_paper(name: str, folder: Path | None) -> Figure:
    paper, _, figure = name.rpartition("/")
    study = Study.load(folder_of(paper))
    place = folder or Path("out")
    inside = place / study.paper.id
    return figure_of(study, figure.removeprefix("figure"), inside if inside.is_dir() else place)


def _inches(width: str) -> float:
    if width in _COLUMNS:
        return _COLUMNS[width]
    found = re.fullmatch(r"([\d.]+) ?(mm|cm|in|pt)", width)
    valid = f'write "single", "double", or a width such as "84mm" ({", ".join(_INCHES)})'
    try:
        inches = float(found.group(1)) * _INCHES[found.group(2)] if found else 0.0
    except ValueError:
        inches = 0.0
    if not found or inches == 0.0:
        raise DumbbellError(f'--width: "{width}" is not a width; {valid}')
    if not _NARROWEST <= inches <= _WIDEST:
        raise DumbbellError(f'--width: "{width}" is not between 38 mm and 508 mm')
    return inches
