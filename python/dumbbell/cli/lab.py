"""``dumbbell lab``: the laboratory in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_line
from dumbbell.errors import DumbbellError


def open_lab(
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Experiment, a TOML file; or a link.")
    ] = None,
    out: Annotated[
        Path | None, Option("--file", metavar="PAGE", help="Write the page; serve nothing.")
    ] = None,
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for any free one.")] = 0,
    browser: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    overwrite: options.OverwriteFile = False,
) -> None:
    """Open the laboratory: the simulator as a page in a browser."""
    from dumbbell.cli import scenario
    from dumbbell.experiment.files import write_text
    from dumbbell.lab import page_with, serve

    page = page_with(None if file is None else scenario.shared_of(file))
    if out is not None:
        options.refuse_existing(out, overwrite, option="--file")
        write_text(out, page)
        print_line(f"wrote {out}; open it in a browser")
        if browser:
            webbrowser.open(out.resolve().as_uri())
        return

    def ready(address: str) -> None:
        print_line(f"The laboratory is at {address} until you press Ctrl-C.")
        sys.stdout.flush()
        if browser:
            webbrowser.open(address)

    try:
        serve(page, port=port, ready=ready)
    except OSError as error:
        problem = f"--port: {port} cannot be used: {error.strerror}"
        raise DumbbellError(f"{problem}; leave it out for a free one") from None
