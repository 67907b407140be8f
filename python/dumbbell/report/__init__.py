"""Reports: HTML files that need nothing but themselves.

`write_report` makes one of whatever a folder holds: a result, several results, or a sweep. A page
is put together from the templates and scripts beside this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dumbbell import _core
from dumbbell.errors import ResultError
from dumbbell.report import page
from dumbbell.report.result import overview, result_pages
from dumbbell.report.sweep import sweep_page
from dumbbell.results.result import Result
from dumbbell.sweeps.dataset import Dataset, is_dataset

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["contents", "write_report"]

_META: Final = "meta.json"
_REPRODUCED: Final = "results.json"


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Writes the report of a folder: of a result, of a folder of results, or of a sweep.

    Args:
        folder: What to tell of.
        out: The file; ``report.html`` in the folder if not given.

    Returns:
        The file.

    Raises:
        ResultError: If there is nothing in the folder that could be told of.
    """
    found, path = contents(folder), out or folder / "report.html"
    if isinstance(found, Dataset):
        version = _core.__version__
        page.write(path, "sweep.html.j2", page.HEAT, of=sweep_page(found), version=version)
    else:
        places = {name: str(folder if name == folder.name else folder / name) for name in found}
        _write_results(path, folder.resolve().name, found, places)
    return path


def _write_results(
    path: Path, name: str, results: Mapping[str, Result], places: Mapping[str, str]
) -> None:
    pages = result_pages(results, places)
    page.write(
        path,
        "results.html.j2",
        page.CHARTS,
        name=name,
        version=_core.__version__,
        overview=overview(pages),
        views=pages,
        looks=page.looks({cc for one in pages for cc in one.algorithms}),
    )


def contents(folder: Path) -> dict[str, Result] | Dataset:
    """What a folder holds: results by name, or a sweep.

    Raises:
        ResultError: If it holds neither.
    """
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "there is no such folder"
        raise ResultError(f"{folder}: {problem}; name a result, or a folder that holds results")
    if is_dataset(folder):
        return Dataset(folder)
    if (folder / _META).is_file():
        return {folder.resolve().name: Result.load(folder)}
    papers = sorted(path.parent for path in folder.glob(f"*/{_REPRODUCED}"))
    if papers:
        which = ", ".join(map(str, papers))
        raise ResultError(f"{folder}: holds papers that were reproduced; name one of them: {which}")
    places = sorted(path.parent for path in folder.rglob(_META) if not _hidden(path, folder))
    if not places:
        raise ResultError(
            f"{folder}: holds no result; name a folder that `dumbbell run` or `dumbbell reproduce` "
            "wrote, or one that holds such folders"
        )
    return {place.relative_to(folder).as_posix(): Result.load(place) for place in places}


def _hidden(path: Path, folder: Path) -> bool:
    """Whether it lies in a folder that is not complete: those begin with a dot."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
