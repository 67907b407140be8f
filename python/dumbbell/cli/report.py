"""``dumbbell report``."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

from dumbbell.cli.output import print_line
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from pathlib import Path


def report_folder(folder: Path, *, out: Path | None, show: bool) -> None:
    """Writes the report of a folder, says where it is and how large, and opens it if asked to."""
    from dumbbell.report import write_report
    from dumbbell.report.page import size

    try:
        if (folder / "results.json").is_file():
            from dumbbell.papers.page import write_paper
            from dumbbell.papers.reproduction import reopen

            path = write_paper(reopen(folder), out)
        else:
            path = write_report(folder, out)
    except OSError as error:
        raise DumbbellError(f"{out or folder}: cannot be written: {error.strerror}") from None
    print_line(f"{path} ({size(path.stat().st_size)})")
    if show:
        webbrowser.open(path.resolve().as_uri())
