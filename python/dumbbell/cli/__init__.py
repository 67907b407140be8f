"""The command ``dumbbell``.

Exit status: 0; 2 for the user's mistakes, told in one paragraph; 1 for ours; 130 if interrupted.
Modules that take long to import are imported by the commands that need them.
"""

from __future__ import annotations

import sys
import traceback

from dumbbell import own
from dumbbell.cli.app import app
from dumbbell.errors import DumbbellError


def main() -> None:
    """Runs the command line and exits."""
    try:
        app()
    except DumbbellError as error:
        sys.stderr.write(f"dumbbell: {error}\n")
        sys.exit(2)
    except Exception as error:
        part = own.user_part(error)
        if part is None:
            raise
        traceback.print_exception(error.with_traceback(part))
        sys.exit(1)
