"""What goes wrong because of what the user wrote."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    """Text that is not a quantity of the kind that was asked for."""


class ResultError(DumbbellError):
    """A folder that is not a result, or that cannot become one."""


class OverwriteError(ResultError):
    """A folder holds another result, which is replaced only on request (``overwrite=True``)."""


class ExperimentError(DumbbellError):
    """An experiment that cannot be run as it is written.

    Attributes:
        problem: What is wrong, and what would be valid.
        key: The key that is wrong, such as ``link[0].rate``; empty if it is the whole.
        file: The file that it stands in, if it comes from one.
    """

    def __init__(self, problem: str, *, key: str = "", file: str = "") -> None:
        """An error in `key` of `file`."""
        super().__init__(": ".join(part for part in (file, key, problem) if part))
        self.problem = problem
        self.key = key
        self.file = file

    def within(self, key: str = "", *, file: str = "") -> ExperimentError:
        """The same error, seen from the table or the file around it."""
        dot = "." if key and self.key and not self.key.startswith("[") else ""
        return ExperimentError(self.problem, key=f"{key}{dot}{self.key}", file=file or self.file)


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
