"""The command ``dumbbell``.

Exit status: 0; 2 for the user's mistakes, told in one paragraph; 1 for ours; 130 if interrupted.
Modules that take long to import are imported by the commands that need them.
"""

from __future__ import annotations

import sys

from dumbbell.cli.app import app
from dumbbell.errors import DumbbellError


def main() -> None:
    """Runs the command line and exits."""
    try:
        app()
    except DumbbellError as error:
        sys.stderr.write(f"dumbbell: {error}\n")
        sys.exit(2)
