"""``dumbbell report`` and ``dumbbell export``: results for readers and for other programs."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_line, warn_of_missing_runs
from dumbbell.experiment.files import writing

Format = Literal["csv", "arrow", "qlog", "pcapng", "mahimahi"]


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
    with writing(out or folder):
        if (folder / "results.json").is_file():
            from dumbbell.papers.page import write_paper
            from dumbbell.papers.reproduction import PaperFolder

            path = write_paper(PaperFolder.of(folder).reopen(), out)
        else:
            path = write_report(folder, out)
            warn_of_missing_runs(folder)
    print_line(f"{path} ({size(path.stat().st_size)})")
    if show:
        webbrowser.open(path.resolve().as_uri())


def export_result(
    folder: Annotated[Path, Argument(metavar="RESULT", help="Result folder.")],
    kind: Annotated[Format, Option("--format", help="Format of the files.")] = "csv",
    out: Annotated[Path | None, options.out("Folder; default: beside RESULT.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a result in formats of other programs."""
    from dumbbell.exports import beside, export

    out = out or beside(folder, kind)
    options.refuse_existing(out, overwrite, folder=True)
    for path in export(folder, kind, out):
        print_line(str(path))
