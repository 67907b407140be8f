"""``dumbbell plot``: every figure of a result, a sweep or a paper."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell import figures
from dumbbell.cli.output import print_line, tell_invalid, tell_left_out
from dumbbell.errors import DumbbellError, ResultError
from dumbbell.figures.result import FIGURES, MOST_FLOWS, draw
from dumbbell.papers import available
from dumbbell.papers.registry import folder_of, folders
from dumbbell.papers.reproduction import figure_of
from dumbbell.papers.study import Study
from dumbbell.results.result import Result
from dumbbell.sweeps import figures as sweep_figures
from dumbbell.sweeps.dataset import is_dataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS: Final = {"single": figures.COLUMN, "double": figures.PAGE}
_INCHES: Final = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0, "pt": 1 / 72}
_TIGHT: Final = 0.8
"""Below this share of the width that it is drawn for, words in a figure may meet."""
_NARROWEST, _WIDEST = 1.5, 20.0
_SUFFIXES: Final = (".svg", ".png", ".pdf")


def list_figures() -> None:
    """Prints the figures of a result, of a sweep, and of papers."""
    for of, known in (("result", FIGURES), ("sweep", sweep_figures.FIGURES)):
        print_line(f"Of a {of}, for dumbbell plot FOLDER NAME:")
        for name, shows in known.items():
            print_line(f"  {name}: {shows}")
        print_line()
    print_line("Of papers that were reproduced, for dumbbell plot PAPER NAME:")
    for paper in available():
        for spec in paper.figures:
            print_line(f"  {paper.id} {spec.id}: {spec.heading}")


def plot_folder(
    folder: Path,
    name: str | None,
    *,
    seed: int | None,
    kind: str | None,
    width: str | None,
    out: Path | None,
    **choices: Any,
) -> None:
    """Draws a figure and prints the names of its files.

    Args:
        folder: A result, a sweep, or a reproduced paper.
        name: Which figure; the usual one if not given.
        seed: Which seed of a result.
        kind: svg, png or pdf; svg and png if not given.
        width: Of the figure, such as ``84mm``.
        out: The file, with or without its suffix.
        choices: What `sweeps.figures.draw` takes.
    """
    inches = None if width is None else _inches(width)
    given = [f"--{key}" for key, value in choices.items() if value is not None]
    if out is not None and out.suffix == ".pdf":
        kind = kind or "pdf"
    is_sweep = is_dataset(folder)
    if given and not is_sweep:
        raise DumbbellError(f"{given[0]}: is for figures of a sweep, which {folder} is not")
    if seed is not None and is_sweep:
        raise DumbbellError(
            "--seed: is for figures of a result; choose runs with --where 'seed = 1'"
        )
    with figures.styled():
        if is_sweep:
            metric = choices.pop("metric") or "jain"
            name, figure = sweep_figures.draw(folder, name, metric=metric, **choices)
            stem = folder / (name if name == "delay" else f"{name}-{_slug(metric)}")
        elif (folder / "experiment.toml").exists() or not _is_paper(folder):
            figure = _of_result(folder, name or "overview", inches, seed)
            stem = folder / (name if name not in (None, "overview") else "figure")
        else:
            figure, stem = _of_paper(folder, name)
    was = float(figure.get_figwidth())
    if inches is not None and inches < _TIGHT * was:
        said = f"is drawn for {was * 25.4:.0f} mm: look whether its words have room"
        sys.stderr.write(f"dumbbell: {stem.name} {said}\n")
    try:
        written = _write(figure, out or stem, kind, inches)
    except OSError as error:
        raise ResultError(f"{out or stem}: cannot be written: {error.strerror}") from None
    print_line("\n".join(map(str, written)))


def _write(figure: Figure, stem: Path, kind: str | None, width: float | None) -> list[Path]:
    if kind is None and width is None:
        return list(figures.save(figure, stem))
    if stem.suffix in _SUFFIXES:
        if kind is not None and stem.suffix != f".{kind}":
            problem = f'"{stem}" does not end in .{kind}, which is the format'
            raise DumbbellError(f"--out: {problem}")
        stem = stem.with_suffix("")
    files = [
        stem.with_name(f"{stem.name}.{suffix}") for suffix in ([kind] if kind else ["svg", "png"])
    ]
    for file in files:
        figures.publish(figure, file, width=width)
    return files


def _of_result(folder: Path, name: str, width: float | None, seed: int | None) -> Figure:
    result = Result.load(folder)
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds))
        raise ResultError(f"{folder}: has no seed {seed}; choose from {known}")
    tell_invalid(folder, result)
    tell_left_out(folder, result, MOST_FLOWS)
    return draw(result, name, width=width or figures.PAGE, seed=seed)


def _is_paper(folder: Path) -> bool:
    return (folder / "paper.toml").is_file() or folder.name in folders()


def _of_paper(folder: Path, name: str | None) -> tuple[Figure, Path]:
    """A figure of a paper, and where it is written: here, as its own folder has it already."""
    is_own = (folder / "paper.toml").is_file()
    study = Study.load(folder_of(str(folder) if is_own else folder.name))
    if name is None:
        known = ", ".join(spec.id for spec in study.paper.figures)
        raise DumbbellError(f"{folder}: name one of its figures: {known}")
    place = folder if folder.is_dir() and not is_own else Path("out") / study.paper.id
    drawn = figure_of(study, name.removeprefix("figure"), place)
    return drawn, Path(f"{study.paper.id}-{name}")


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


def _slug(metric: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in metric).strip("-") or "metric"
