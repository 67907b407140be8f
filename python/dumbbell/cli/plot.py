"""``dumbbell plot``: every figure of a result, a sweep or a paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_line, print_text, print_warnings, warn_of_missing_runs
from dumbbell.errors import DumbbellError, ResultError
from dumbbell.experiment.files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

Format = Literal["svg", "png", "pdf"]

_COLUMNS: Final = {"single": 3.5, "double": 7.16}
_MILLIMETRES: Final = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}
_OTHER_PICTURES: Final = (".jpg", ".jpeg", ".eps", ".tif", ".tiff", ".gif", ".webp")
_NARROWEST, _WIDEST = 38, 508  # mm


def _inches(width: str | None) -> float | None:
    """The width of ``--width``, in inches."""
    if width is None or width in _COLUMNS:
        return _COLUMNS.get(width or "")
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(mm|cm|in|pt)", width)
    if not found:
        valid = f'write "single", "double", or a width such as "84mm" ({", ".join(_MILLIMETRES)})'
        raise DumbbellError(f'--width: "{width}" is not a width; {valid}')
    millimetres = float(found.group(1)) * _MILLIMETRES[found.group(2)]
    if not _NARROWEST <= millimetres <= _WIDEST:
        limits = f"{_NARROWEST} mm and {_WIDEST} mm"
        raise DumbbellError(f'--width: "{width}" is not between {limits}')
    return millimetres / _MILLIMETRES["in"]


def _names() -> list[str]:
    from dumbbell.figures.result import FIGURES
    from dumbbell.sweeps.figures import FIGURES as OF_SWEEPS

    return [*FIGURES, *OF_SWEEPS]


def plot_folder(
    folder: Annotated[
        Path | None, Argument(metavar="FOLDER", help="Result, sweep, or reproduced paper.")
    ] = None,
    name: Annotated[
        str | None,
        Argument(metavar="FIGURE", help="Its name, one of --list.", autocompletion=_names),
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of a result; default: the first.")] = None,
    beside: Annotated[
        list[Path] | None,
        Option(metavar="FOLDER", help="Another result of the same flows; several for transfers."),
    ] = None,
    x: Annotated[str | None, Option(help="Axis of a sweep from left to right.")] = None,
    y: Annotated[str | None, Option(help="Axis from bottom to top.")] = None,
    by: Annotated[str | None, Option(help="Axis with a line for each value, such as cc.")] = None,
    metric: Annotated[
        str | None, Option(help="Column of runs, or SQL; default: by figure.")
    ] = None,
    where: Annotated[str | None, Option(help="Only these runs, in SQL: \"cc = 'bbr3'\".")] = None,
    kind: Annotated[
        Format | None, Option("--format", help="Format; default: both svg and png.")
    ] = None,
    width: Annotated[str | None, Option(help="'single' or 'double' column, or '84mm'.")] = None,
    out: Annotated[Path | None, options.out("File; default: in FOLDER, or beside it.")] = None,
    overwrite: options.Overwrite = False,
    list_all: Annotated[
        bool, Option("--list", help="List the figures there are; of FOLDER or a paper its own.")
    ] = False,
) -> None:
    """Draw a figure of a result, a sweep or a paper."""
    from dumbbell import figures

    if list_all or folder is None:
        _list_figures(folder)
        return
    inches = _inches(width)
    out, kind = _format_of(out, kind)
    of = _kind(folder)
    choices = {"x": x, "y": y, "by": by, "metric": metric, "where": where}
    _refuse_choices(folder, of, choices, seed, beside)
    kinds = [kind] if kind else ["svg", "png"]
    for file in [_file(out, one) for one in kinds] if out else []:
        options.refuse_existing(file, overwrite)
    with figures.styled():
        if of == "sweep":
            figure, stem = _of_sweep(folder, name, inches, **choices)
        elif of == "paper":
            figure, stem = _of_paper(folder, name)
        else:
            figure, stem = _of_result(folder, name or "overview", inches, seed, beside or [])
    stem = out or stem
    fine = {"dpi": figures.FINE} if kind or width else {}
    with writing(_file(stem, kind) if kind else stem):
        written = figures.save(figure, stem, kinds, width=inches, **fine)
    if inches is not None and figures.is_crowded(figure):
        wider = "--width double" if inches < _COLUMNS["double"] else "a larger --width"
        print_warnings([f"{written[0].name}: words overlap at {inches * 25.4:.1f} mm; use {wider}"])
    print_line("\n".join(map(str, written)))


def _format_of(out: Path | None, kind: Format | None) -> tuple[Path | None, Format | None]:
    """The file of ``--out`` without its ending, and the format, which the ending may say."""
    if out is None:
        return None, kind
    if out.suffix.lower() in _OTHER_PICTURES:
        raise DumbbellError(f"--out: {out.suffix} is not possible; write .svg, .png or .pdf")
    if out.suffix not in options.PICTURES:
        return out, kind
    kind = kind or cast("Format", out.suffix.removeprefix("."))
    if out.suffix != f".{kind}":
        raise DumbbellError(f'--out: "{out}" does not end in .{kind}, which is the format')
    return out.with_suffix(""), kind


def _refuse_choices(
    folder: Path,
    of: str | None,
    choices: dict[str, str | None],
    seed: int | None,
    beside: list[Path] | None,
) -> None:
    """Refuses options that are for figures of another kind of folder."""
    given = [key for key, value in choices.items() if value is not None]
    if given and of != "sweep":
        raise DumbbellError(f"--{given[0]}: is for figures of a sweep, which {folder} is not")
    if seed is not None and of == "sweep":
        problem = "is for figures of a result; choose runs with --where 'seed = 1'"
        raise DumbbellError(f"--seed: {problem}")
    if seed is not None and of == "paper":
        raise DumbbellError(f"--seed: is for figures of a result, which {folder} is not")
    if beside and of != "result":
        raise DumbbellError(f"--beside: is for figures of a result, which {folder} is not")


def _file(stem: Path, kind: str) -> Path:
    return stem.with_name(f"{stem.name}.{kind}")


def _list_figures(folder: Path | None) -> None:
    """Prints the figures of results and sweeps, and which papers have some; of a folder its own."""
    from dumbbell.figures.result import FIGURES
    from dumbbell.papers.registry import available, folders
    from dumbbell.sweeps.figures import FIGURES as OF_SWEEPS

    only = None if folder is None else _kind(folder)
    for of, known in (("result", FIGURES), ("sweep", OF_SWEEPS)):
        if only not in (None, of):
            continue
        print_text(f"Of a {of}, for dumbbell plot FOLDER NAME:")
        for name, shows in known.items():
            print_text(f"  {name}: {shows}")
        print_line()
    if only not in (None, "paper"):
        return
    if folder is None:
        print_line("\n  ".join(["Of a paper, for dumbbell plot PAPER --list:", *folders()]))
        return
    print_line("Of papers that were reproduced, for dumbbell plot PAPER NAME:")
    for paper in available():
        for spec in paper.figures if folder.name == paper.id else ():
            print_text(f"  {paper.id} {spec.id}: {spec.heading}")


def _of_sweep(
    folder: Path, name: str | None, width: float | None, **choices: str | None
) -> tuple[Figure, Path]:
    """A figure of a sweep, and where it is written."""
    from dumbbell import figures
    from dumbbell.sweeps.figures import draw

    width = width or figures.PAGE
    with options.named("metric", "by"):
        stem, figure = draw(folder, name, width=width, **choices)
    warn_of_missing_runs(folder)
    return figure, folder / stem


def _of_result(
    folder: Path, name: str, width: float | None, seed: int | None, beside: list[Path]
) -> tuple[Figure, Path]:
    from dumbbell import figures
    from dumbbell.figures.result import FIGURES, MOST_FLOWS, draw
    from dumbbell.results.result import Result
    from dumbbell.results.storage import file_name

    result = Result.load(folder)
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds))
        raise ResultError(f"{folder}: has no seed {seed}; choose from {known}")
    print_warnings(f"{folder}: invalid, {reason}" for reason in result.invalid_reasons)
    count = len(result.flow_names)
    if count > MOST_FLOWS:
        print_warnings([f"{folder}: the first {MOST_FLOWS} of {count} flows are drawn"])
    runs = [result, *map(Result.load, beside)]
    label, *labels = _labels([folder, *beside], runs)
    others = dict(zip(labels, runs[1:], strict=True))
    inches = width or figures.PAGE
    figure = draw(result, name, width=inches, seed=seed, beside=others, label=label)
    if name not in FIGURES:
        return figure, folder / f"internal-{file_name(name)}"
    return figure, folder / ("figure" if name == "overview" else name)


def _labels(folders: list[Path], results: list[Result]) -> list[str]:
    """What results are called in a figure: by their kernel or folder, if that tells them apart."""
    first, *others = folders
    kernels = [result.source if "kernel" in result.meta else "" for result in results[1:]]
    labels = [first.name, *(of or at.name for of, at in zip(kernels, others, strict=True))]
    return labels if len(set(labels)) == len(labels) else list(map(str, folders))


def _kind(folder: Path) -> str | None:
    """What a folder is: of a sweep, of a result or of a paper."""
    from dumbbell.sweeps.dataset import is_dataset

    if is_dataset(folder):
        return "sweep"
    if (folder / "experiment.toml").exists():
        return "result"
    return "paper" if _is_paper(folder) else None


def _is_paper(folder: Path) -> bool:
    from dumbbell.papers.registry import folders

    files = (folder / name for name in ("paper.toml", "results.json"))
    return any(file.is_file() for file in files) or folder.name in folders()


def _of_paper(folder: Path, name: str | None) -> tuple[Figure, Path]:
    """A figure of a paper, and where it is written: beside its folder, which has it already."""
    from dumbbell.papers.registry import folder_of
    from dumbbell.papers.reproduction import PaperFolder
    from dumbbell.papers.study import Study

    if (folder / "results.json").is_file():
        made = PaperFolder.of(folder)
    else:
        is_own = (folder / "paper.toml").is_file()
        study = Study.load(folder_of(str(folder) if is_own else folder.name))
        is_made = folder.is_dir() and not is_own
        made = PaperFolder(study, folder if is_made else Path("results/papers") / study.paper.id)
    if name is None:
        known = ", ".join(spec.id for spec in made.paper.figures)
        raise DumbbellError(f"{folder}: name one of its figures: {known}")
    drawn = made.figure(name.removeprefix("figure").removeprefix("-"))
    file = f"{made.paper.id}-{name}"
    return drawn, folder.with_name(file) if made.folder == folder else Path(file)
