"""``dumbbell report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument

from dumbbell.cli import options
from dumbbell.cli.output import print_line
from dumbbell.errors import DumbbellError


def report_folder(
    folder: Annotated[
        Path, Argument(help="Result, folder of results, sweep, or reproduced paper.")
    ],
    out: Annotated[
        Path | None,
        options.out_option("File; default: report.html in FOLDER, index.html for a paper."),
    ] = None,
    overwrite: options.Overwrite = False,
    show: Annotated[bool, options.flag("--open", "Open it in the browser.")] = False,
) -> None:
    """Write a report as one HTML file. It needs no other file, and one can zoom into its series."""
    from dumbbell.report import write_report
    from dumbbell.report.page import size

    if out is not None:
        options.refuse_existing(out, overwrite)
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
