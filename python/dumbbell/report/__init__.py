"""Reports: HTML files that need nothing but themselves.

`write_report` makes one of whatever a folder holds: a result, several results, or a sweep. A page
is put together from the templates and scripts beside this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import _core
from dumbbell.errors import ResultError
from dumbbell.report import page
from dumbbell.report.result import overview, result_pages
from dumbbell.report.sweep import sweep_page
from dumbbell.results.result import Result
from dumbbell.sweeps.dataset import Dataset, is_dataset

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["contents", "write_report"]


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Writes the report of a result, of a folder of results, or of a sweep; returns the file."""
    found, path = contents(folder), out or folder / "report.html"
    version = _core.__version__
    if isinstance(found, Dataset):
        page.write(path, "sweep.html.j2", page.HEAT, of=sweep_page(found), version=version)
        return path
    is_result = (folder / "meta.json").is_file()
    places = {name: str(folder if is_result else folder / name) for name in found}
    pages = result_pages(found, places)
    page.write(
        path,
        "results.html.j2",
        page.CHARTS,
        name=folder.resolve().name,
        version=version,
        overview=overview(pages),
        views=pages,
        looks=page.looks({cc for one in pages for cc in one.algorithms}),
    )
    return path


def contents(folder: Path) -> dict[str, Result] | Dataset:
    """What a folder holds: results by name, or a sweep."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "there is no such folder"
        raise ResultError(f"{folder}: {problem}; name a result, or a folder that holds results")
    if is_dataset(folder):
        return Dataset(folder)
    if (folder / "meta.json").is_file():
        return {folder.resolve().name: Result.load(folder)}
    papers = sorted(path.parent for path in folder.glob("*/results.json"))
    if papers:
        which = ", ".join(map(str, papers))
        raise ResultError(f"{folder}: holds papers that were reproduced; name one of them: {which}")
    found = sorted(path.relative_to(folder).parent for path in folder.rglob("meta.json"))
    # The folder of a result that is not complete begins with a dot.
    places = [place for place in found if not any(part.startswith(".") for part in place.parts)]
    if not places:
        raise ResultError(
            f"{folder}: holds no result; name a folder that `dumbbell run` or `dumbbell reproduce` "
            "wrote, or one that holds such folders"
        )
    return {place.as_posix(): Result.load(folder / place) for place in places}
