"""The arguments of scripts that write into a folder."""

from __future__ import annotations

import sys
from pathlib import Path


def folder(description: str | None, default: str | None = None) -> Path:
    """The first argument, a folder.

    If there is none, or any argument is an option, the script ends with its description, so that
    ``--help`` does not become a folder.
    """
    given = sys.argv[1:] or ([] if default is None else [default])
    if not given or any(argument.startswith("-") for argument in given):
        sys.exit(description)
    return Path(given[0])
