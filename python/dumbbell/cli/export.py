"""``dumbbell export``."""

from __future__ import annotations

from pathlib import Path

from dumbbell.cli.output import print_line
from dumbbell.exports import export


def export_result(folder: Path, *, kind: str, out: Path | None) -> None:
    """Writes the files of a format and prints their names."""
    for path in export(folder, kind, out or Path(f"{folder.resolve().name}-{kind}")):
        print_line(str(path))
