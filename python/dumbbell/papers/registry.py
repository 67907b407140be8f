"""Papers that are built in, in installed packages, and in folders of the user.

A package offers papers as entry points of the group ``dumbbell.papers``, each the name of a package
whose folder has a ``paper.toml``.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from dumbbell.errors import DumbbellError
from dumbbell.papers.model import Paper

PAPERS: Final = ("staggered-start", "tein2", "f-bbrv2", "ar-udt", "dbac")
"""The built-in ones that ``all`` stands for; the folder of each has its id, with underscores."""

BY_NAME: Final = ("bbrv3-promises", "bbrv3-hardware")
"""The built-in ones that run by their name alone."""

GROUP: Final = "dumbbell.papers"


def folders() -> dict[str, Path]:
    """The folders of the papers that are built in or installed, by id."""
    here = Path(__file__).parent
    found = {paper: here / paper.replace("-", "_") for paper in (*PAPERS, *BY_NAME)}
    for entry in entry_points(group=GROUP):
        spec = importlib.util.find_spec(entry.value)
        if spec is None or not spec.submodule_search_locations:
            problem = f'the entry point "{entry.name}" of {GROUP} names "{entry.value}"'
            raise DumbbellError(f"{problem}, which is not an installed package")
        found[entry.name] = Path(spec.submodule_search_locations[0])
    return found


def folder_of(paper: str) -> Path:
    """The folder of a paper: of its id, or the path itself if it is one with a ``paper.toml``."""
    known = folders()
    if paper in known:
        return known[paper]
    path = Path(paper)
    if (path / "paper.toml").is_file():
        return path
    if path.is_dir():
        raise DumbbellError(f"{paper}: has no paper.toml, which says what a paper's numbers are")
    raise DumbbellError(
        f'there is no paper "{paper}"; there are {", ".join(known)}, and folders with a paper.toml'
    )


def ids_of_all() -> list[str]:
    """The ids of the papers that ``all`` stands for."""
    return [paper for paper in folders() if paper not in BY_NAME]


def available() -> list[Paper]:
    """All papers that are built in or installed."""
    return [Paper.load(folder) for folder in folders().values()]
