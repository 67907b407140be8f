"""The command ``dumbbell``.

Exit status: 0; 2 for the user's mistakes, told in one paragraph; 1 for ours; 130 if interrupted.
Modules that take long to import are imported by the commands that need them.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
import traceback
import warnings
from typing import Any, Final

from dumbbell.cli.app import app
from dumbbell.errors import DumbbellError, Interrupted, OverwriteError

_INTERRUPTED: Final = 130


def main() -> None:
    """Runs the command line and exits."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding lacks is written as \\x..
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as end:
        if end.code == _INTERRUPTED:  # A thread of a custom algorithm may never end.
            sys.stderr.write(f"dumbbell: {_interruption(end)}\n")
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        raise
    except OverwriteError as error:
        again = shlex.join(["dumbbell", *sys.argv[1:], "--overwrite"])
        sys.stderr.write(f"dumbbell: {error}; name another folder with --out, or: {again}\n")
        sys.exit(2)
    except DumbbellError as error:
        sys.stderr.write(f"dumbbell: {error}\n")
        sys.exit(2)
    except Exception as error:
        from dumbbell.engine.simulation import custom_traceback

        part = custom_traceback(error)
        if part is None and isinstance(error, OSError):
            sys.exit(_report_os_error(error))
        notes = getattr(error, "__notes__", [])
        if part is None and notes:  # It was called, or answered, as it cannot be.
            sys.stderr.write(f"dumbbell: {type(error).__name__}: {error}, {notes[0]}\n")
            sys.exit(1)
        if part is None:
            raise
        traceback.print_exception(error.with_traceback(part))
        sys.exit(1)


def _interruption(end: BaseException) -> str:
    """What an interrupted command left, as far as the interruption says it."""
    cause: BaseException | None = end
    while cause is not None and not isinstance(cause, Interrupted):
        cause = cause.__cause__ or cause.__context__
    return str(cause or "stopped")


def _warn(message: Warning | str, *_where: Any, **_more: Any) -> None:
    sys.stderr.write(f"dumbbell: {message}\n")


def _report_os_error(error: OSError) -> int:
    """Says in one line which file the system refused, and why; returns the exit status."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
        if error.filename is None:
            raise error
        sys.stderr.write(f"dumbbell: {DumbbellError(f'{error.filename}: {error.strerror}')}\n")
        return 2
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # there the rest of it goes
    if error.errno == errno.EPIPE:
        return 1
    what = f"{error.filename}:" if error.filename else "what it prints"
    sys.stderr.write(f"dumbbell: {what} cannot be written: {error.strerror}\n")
    return 2
