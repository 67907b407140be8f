"""What a folder holds that a report can tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.errors import ResultError
from dumbbell.results.result import Result
from dumbbell.sweeps.dataset import Dataset, is_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.papers.frame import Reproduction

_META = "meta.json"
_REPRODUCED = "results.json"


def contents(folder: Path) -> dict[str, Result] | Reproduction | Dataset:
    """What a folder holds: results by name, a paper that was reproduced, or a sweep.

    Raises:
        ResultError: If it holds neither, or papers and not one paper.
    """
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "there is no such folder"
        raise ResultError(f"{folder}: {problem}; name a result, or a folder that holds results")
    if (folder / _REPRODUCED).is_file():
        from dumbbell.papers.reproduction import reopen

        return reopen(folder)
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
