"""``dumbbell export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_line

Format = Literal["csv", "arrow", "qlog", "pcapng", "mahimahi"]


def export_result(
    folder: Annotated[Path, Argument(metavar="RESULT", help="Result folder.")],
    kind: Annotated[Format, Option("--format", help="Format of the files.")] = "csv",
    out: Annotated[Path | None, options.out("Folder; default: beside RESULT.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a result in formats of other programs."""
    from dumbbell.exports import export

    out = out or folder.with_name(f"{folder.resolve().name}-{kind}")
    options.refuse_existing(out, overwrite, folder=True)
    for path in export(folder, kind, out):
        print_line(str(path))
