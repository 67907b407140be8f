"""The folders of dossiers: a file says what each holds, so that nothing else is overwritten."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from dumbbell.errors import OverwriteError
from dumbbell.experiment.files import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.engine.backend import Backend

_MARK: Final = ".dossier"
"""The file: JSON with the algorithm and the backend, null where several stand side by side."""


def claim(out: Path, cc: str, backend: Backend) -> None:
    """Marks a folder as that of a dossier on the algorithm.

    Raises:
        OverwriteError: If it holds anything but such a dossier.
    """
    held = _held(out)
    if held is None:
        if out.is_file() or (out.is_dir() and any(out.iterdir())):
            raise _refused(out, "is no dossier")
    elif held[0] != cc:
        raise _refused(out, f"holds {_dossier_on(held[0])}")
    elif held[1] != backend:
        raise _refused(out, f"holds a dossier made with {held[1]}")
    _mark(out, cc, backend)


def check_several(out: Path) -> None:
    """Raises `OverwriteError` if a folder has a page, or a dossier, of another kind."""
    held = _held(out)
    if held is None:
        if out.is_file() or (out / "index.html").exists():
            raise _refused(out, "has a page that is not of several dossiers")
    elif held[0] is not None:
        raise _refused(out, f"holds {_dossier_on(held[0])}")


def mark_several(out: Path) -> None:
    """Marks a folder as one in which several dossiers stand side by side."""
    _mark(out, None, None)


def _held(out: Path) -> tuple[str | None, str | None] | None:
    """The algorithm and the backend of the dossier in a folder; None without a dossier."""
    for file in (out / _MARK, out / "dossier.json"):
        if file.is_file():
            try:
                there = json.loads(file.read_text("utf-8"))
                return there["algorithm"], there["backend"]
            except (ValueError, KeyError, TypeError):
                return "nothing that can be read", None
    return None


def _dossier_on(cc: str | None) -> str:
    return "several dossiers" if cc is None else f"a dossier on {cc}"


def _mark(out: Path, cc: str | None, backend: Backend | None) -> None:
    write_text(out / _MARK, json.dumps({"algorithm": cc, "backend": backend}) + "\n")


def _refused(out: Path, problem: str) -> OverwriteError:
    advice = "and a dossier needs a folder of its own"
    return OverwriteError(f"{out}: {problem}, {advice}", is_replaceable=False)
