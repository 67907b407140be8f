"""``dumbbell report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_line
from dumbbell.errors import DumbbellError


def report_folder(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Result, results, sweep, or paper.")],
    out: Annotated[Path | None, options.out("File; default: a page in FOLDER.")] = None,
    overwrite: options.Overwrite = False,
    show: Annotated[bool, Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a report as one HTML file. It needs no other file, and one can zoom into its series."""
    from dumbbell.report import write_report
    from dumbbell.report.page import size

    if out is not None:
        options.refuse_existing(out, overwrite)
    try:
        if (folder / "results.json").is_file():
            from dumbbell.papers.page import write_paper
            from dumbbell.papers.reproduction import PaperFolder

            path = write_paper(PaperFolder.of(folder).reopen(), out)
        else:
            path = write_report(folder, out)
    except OSError as error:
        raise DumbbellError(f"{out or folder}: cannot be written: {error.strerror}") from None
    print_line(f"{path} ({size(path.stat().st_size)})")
    if show:
        webbrowser.open(path.resolve().as_uri())
