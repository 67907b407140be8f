"""The command ``dumbbell``.

Exit status: 0; 2 for the user's mistakes, told in one paragraph; 1 for ours and for those of custom
algorithms; 130 if interrupted; 141 if nobody reads the output any more.
Modules that take long to import are imported by the commands that need them.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import sys
import traceback
import warnings
from typing import Any, Final

from typer.exceptions import TyperException

from dumbbell.cli.app import RENAMED, StoppedError, command
from dumbbell.errors import DumbbellError, Interrupted, OverwriteError

_INTERRUPTED: Final = 130
_PIPE_CLOSED: Final = 141  # as of a program that SIGPIPE ends

_PLAIN: Final = {
    r"\S+ is not in the range x>=(\d+)": r"must be a whole number of at least \1",
    r"\S+ is not in the range (\d+)<=x<=(\d+)": r"must be a whole number from \1 to \2",
    r"'.*' is not a valid int( range)?": "must be a whole number",
}
"""How Typer describes a number that is not valid, and how we do."""


def main() -> None:
    """Runs the command line and exits."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding lacks is written as \\x..
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = _warn
    try:
        try:
            status = command(prog_name="dumbbell", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except StoppedError as stopped:
        cause = stopped.__cause__
        _tell(cause if isinstance(cause, Interrupted) else "stopped")
        sys.stderr.flush()
        os._exit(_INTERRUPTED)  # A thread of a custom algorithm may never end.
    except SystemExit as end:  # Typer makes it, with status 1, of a closed pipe
        status = _PIPE_CLOSED if isinstance(end.__context__, BrokenPipeError) else end.code
    except Exception as error:
        status = _tell_error(error)
    sys.exit(status)


def _tell(what: object) -> None:
    sys.stderr.write(f"dumbbell: {what}\n")


def _warn(message: Warning | str, *_where: Any, **_more: Any) -> None:
    _tell(message)


def _tell_error(error: Exception) -> int:
    """Prints what failed: by the user's mistake, or another one; returns the exit status."""
    match error:
        case TyperException():
            sys.stderr.write(_usage_error(error))
        case OverwriteError():
            same = ["dumbbell", *sys.argv[1:]]
            told = f"{error}; name another path with {error.option}"
            if error.proposed:
                told += f": {shlex.join([*same, error.option, error.proposed])}"
            if error.is_replaceable:
                told += f", or: {shlex.join([*same, '--overwrite'])}"
            _tell(told)
        case DumbbellError():
            _tell(error)
            return 1 if _is_of_algorithm(error) else 2
        case _:
            return _tell_failure(error)
    return 2


def _is_of_algorithm(error: Exception) -> bool:
    """Whether a custom algorithm returned what is not valid, or ended the process."""
    from dumbbell.engine.simulation import is_raised_in_simulation

    return is_raised_in_simulation(error)


def _usage_error(error: TyperException) -> str:
    """A mistake in the options as other mistakes are told: the option first, then the problem."""
    said = error.format_message()
    context = getattr(error, "ctx", None)
    if context is not None and said == context.get_help():
        return f"{said}\n"
    if renamed := RENAMED.get(getattr(error, "option_name", "")):
        return f"dumbbell: {renamed}\n"
    said = " ".join(said.split())
    said = re.sub(r"^Invalid value for '(.+?)': (?:Value error, )?", r"\1: ", said).rstrip(".")
    for theirs, ours in _PLAIN.items():
        said = re.sub(theirs, ours, said)
    if context is not None:
        said += f"{' See' if said.endswith('?') else '; see'} {context.command_path} --help"
    return f"dumbbell: {DumbbellError(said)}\n"


def _tell_failure(error: Exception) -> int:
    """Prints what failed: a custom algorithm, the system, or the program itself."""
    from dumbbell.engine.simulation import custom_traceback, is_raised_in_simulation

    if part := custom_traceback(error):
        traceback.print_exception(error.with_traceback(part))
    elif isinstance(error, OSError):
        return _tell_os_error(error)
    elif is_raised_in_simulation(error) and (notes := getattr(error, "__notes__", [])):
        # A custom algorithm was called, or answered, as it cannot be.
        _tell(f"{type(error).__name__}: {error}, {notes[0]}")
    else:
        raise error
    return 1


def _tell_os_error(error: OSError) -> int:
    """Prints in one line which file the system refused, and why."""
    if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT):
        if error.filename is None:
            raise error
        _tell(DumbbellError(f"{error.filename}: {error.strerror}"))
        return 2
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # there the rest of it goes
    if error.errno == errno.EPIPE:
        return _PIPE_CLOSED
    what = f"{error.filename}:" if error.filename else "what it prints"
    _tell(f"{what} cannot be written: {error.strerror}")
    return 2
