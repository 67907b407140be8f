"""Errors that the user can mend."""

from __future__ import annotations

import difflib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_ERRORS: Final = 20
"""At most this many errors of one experiment are written out."""

_LONGEST: Final = 60


class DumbbellError(ValueError):
    """A mistake in an experiment, an option or a path, told in one paragraph.

    The text says where the mistake is and what would be valid. The command line prints it and
    exits with status 2. What is not printable is escaped, so that it stays one line.
    """

    def __init__(self, text: str) -> None:
        """An error that says `text`."""
        printable = (char if char.isprintable() else repr(char)[1:-1] for char in text)
        super().__init__("".join(printable))


class QuantityError(DumbbellError):
    """Text that is not a quantity of the expected kind."""


class ResultError(DumbbellError):
    """A folder that is not a result, or that cannot become one."""


class OverwriteError(ResultError):
    """A folder holds another result, which is replaced only on request (``overwrite=True``)."""


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
        at = (file, f"{file}:{line}") if file else ("", f"line {line}")
        place = at[line > 0]
        super().__init__(": ".join(part for part in (place, key, problem) if part))
        self.problem = problem
        self.key = key
        self.file = file
        self.line = line
        self.errors: tuple[ExperimentError, ...] = (self,)

    @classmethod
    def together(cls, errors: Sequence[ExperimentError]) -> ExperimentError:
        """The first of several errors, whose text is that of all of them, each on a line."""
        first = errors[0]
        one = cls(first.problem, key=first.key, file=first.file, line=first.line)
        one.errors = tuple(errors)
        one.args = ("\n".join(str(error) for error in errors[:MOST_ERRORS]),)
        if len(errors) > MOST_ERRORS:
            one.args = (f"{one.args[0]}\nand {len(errors) - MOST_ERRORS} more",)
        return one

    def within(self, key: str = "", *, file: str = "") -> ExperimentError:
        """The same errors, seen from the table or the file around them."""
        return self.together([error._within(key, file) for error in self.errors])

    def _within(self, key: str, file: str) -> ExperimentError:
        dot = "." if key and self.key and not self.key.startswith("[") else ""
        return ExperimentError(
            self.problem, key=f"{key}{dot}{self.key}", file=file or self.file, line=self.line
        )


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
        self.kept = kept
        self.total = total


@contextmanager
def in_file(file: object) -> Iterator[None]:
    """Says of every `ExperimentError` which file it is in."""
    try:
        yield
    except ExperimentError as error:
        raise error.within(file=str(file)) from None


def shown(value: object) -> str:
    """A value as a TOML file would have it, cut to what fits a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """The sentence that says that `name` is none of the `known` ones."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    return f'no {kind} is called "{name}"{hint}; choose from {", ".join(known)}'
