"""Errors that the user can mend.

Any function may raise them; docstrings of the public interface say which.
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_ERRORS: Final = 20  # at most this many errors of one experiment are written out


def printable(text: str) -> str:
    """The text with what is not printable escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class DumbbellError(ValueError):
    """A mistake in an experiment, an option or a path, told in one paragraph.

    The text says where the mistake is and what would be valid. The command line prints it and
    exits with status 2. What is not printable is escaped, so that it stays one line.
    """

    def __init__(self, text: str) -> None:
        """An error that says `text`."""
        super().__init__(printable(text))


class QuantityError(DumbbellError):
    """Text that is not a quantity of the expected kind."""


class ResultError(DumbbellError):
    """A folder that is not a result, or that cannot become one."""


class OverwriteError(ResultError):
    """A folder holds another result, which is replaced only on request (``overwrite=True``).

    Attributes:
        option: The option of the command that names another path.
        is_replaceable: Whether there is such a request; else only another path mends it.
        proposed: Another path to propose; empty if there is none.
    """

    def __init__(self, text: str, *, option: str = "--out", is_replaceable: bool = True) -> None:
        """An error that says `text`, which another path for `option` mends."""
        super().__init__(text)
        self.option, self.is_replaceable = option, is_replaceable
        self.proposed = ""


class ExperimentError(DumbbellError):
    """An experiment that cannot be run as it is written.

    Attributes:
        problem: What is wrong, and what would be valid.
        key: The key that is wrong, such as ``link.bottleneck.rate``; empty if it is the whole.
        file: The file that it stands in, if it comes from one.
        line: The line of the file, from 1; 0 if it is not known.
        errors: All errors of the experiment, this one first.
    """

    def __init__(self, problem: str, *, key: str = "", file: str = "", line: int = 0) -> None:
        """An error in `key` of `file`."""
        place = (f"{file}:{line}" if file else f"line {line}") if line > 0 else file
        super().__init__(": ".join(part for part in (place, key, problem) if part))
        self.problem, self.key, self.file, self.line = problem, key, file, line
        self.errors: tuple[ExperimentError, ...] = (self,)

    @classmethod
    def together(cls, errors: Sequence[ExperimentError]) -> ExperimentError:
        """The first of several errors, whose text is that of all of them, each on a line."""
        first = errors[0]
        one = cls(first.problem, key=first.key, file=first.file, line=first.line)
        one.errors = tuple(errors)
        lines = [str(error) for error in errors[:_MOST_ERRORS]]
        if len(errors) > _MOST_ERRORS:
            lines.append(f"and {len(errors) - _MOST_ERRORS} more")
        one.args = ("\n".join(lines),)
        return one


class Interrupted(KeyboardInterrupt):
    """The user interrupted runs; what was finished is kept.

    Attributes:
        kept: How many runs are kept, for the same command or another one.
        total: How many runs were asked for.
    """

    def __init__(self, kept: int, total: int) -> None:
        """An interruption after which `kept` of `total` runs are kept."""
        runs = f"{kept:,} of {total:,} runs {'is' if kept == 1 else 'are'} kept"
        super().__init__(f"stopped; {runs}{', and the same command continues' if kept else ''}")
        self.kept, self.total = kept, total


@contextmanager
def in_file(file: object) -> Iterator[None]:
    """Says of every `ExperimentError` which file it is in."""
    try:
        yield
    except ExperimentError as error:
        raise ExperimentError.together(
            [
                ExperimentError(one.problem, key=one.key, file=one.file or str(file), line=one.line)
                for one in error.errors
            ]
        ) from None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The nearest of the `known` names in brackets, behind a space; empty if none is near."""
    close = difflib.get_close_matches(name, known, n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """The sentence that says that `name` is none of the `known` ones."""
    return (
        f'no {kind} is called "{name}"{did_you_mean(name, known)}; choose from {", ".join(known)}'
    )
