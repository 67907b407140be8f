"""The papers that there are, each in a folder beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dumbbell.errors import DumbbellError
from dumbbell.papers.frame import Paper

PAPERS: Final = ("staggered-start", "tein2", "f-bbrv2", "ar-udt", "dbac")
"""Their ids; the folder of each has that name, with underscores."""


def home(paper: str) -> Path:
    """The folder of a paper."""
    return Path(__file__).parent / paper.replace("-", "_")


def load(paper: str) -> Paper:
    """What a paper says, by its id.

    Raises:
        DumbbellError: If there is no such paper.
    """
    if paper not in PAPERS:
        raise DumbbellError(f'there is no paper "{paper}"; there are {", ".join(PAPERS)}')
    return Paper.load(home(paper))


def available() -> list[Paper]:
    """All papers, in the order in which they were built in."""
    return [load(paper) for paper in PAPERS]
