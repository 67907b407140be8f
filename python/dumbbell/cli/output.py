"""Tables and progress bars for people, JSON for machines."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import time
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from dumbbell.engine.progress import Progress, titled
from dumbbell.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from dumbbell.display import Table
    from dumbbell.metrics.intervals import Until

PATIENCE: Final = 2.0  # whatever takes longer than this gets a progress bar, s
_LINE_EVERY: Final = 30.0  # without a terminal a line is printed as often, s


def print_json(value: dict[str, Any]) -> None:
    """Prints one JSON object; what is not finite is null, and what JSON lacks is text."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(
        json.dumps(_finite(value), ensure_ascii=ascii_only, allow_nan=False, default=str) + "\n"
    )


def print_line(text: str = "") -> None:
    """Prints a line for people."""
    sys.stdout.write(f"{text}\n")


def print_warnings(warnings: Iterable[str]) -> None:
    """Prints warnings to stderr, each once."""
    for warning in dict.fromkeys(warnings):
        sys.stderr.write(f"dumbbell: {warning}\n")


def warn_of_missing_runs(folder: Path) -> None:
    """Prints to stderr that a sweep is not complete, if the folder is that of one."""
    from dumbbell.sweeps.dataset import Dataset, is_dataset

    if is_dataset(folder) and (found := (dataset := Dataset(folder)).incomplete):
        from dumbbell.report.sweep import command_of

        print_warnings([f"{folder}: has {found}; the rest: {command_of(dataset)}"])


def print_text(text: str) -> None:
    """Prints lines for people, each over several lines where the terminal is narrow."""
    for line in text.splitlines():
        below = " " * (len(line) - len(line.lstrip()) + 2)
        wrapped = textwrap.wrap(line, terminal_width() or sys.maxsize, subsequent_indent=below)
        print_line("\n".join(wrapped))


def print_table(title: str, table: Table) -> None:
    """Prints a table within the width of the terminal; without limit where there is none."""
    has_styles = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    strong = "\x1b[1m{}\x1b[0m".format if has_styles else str
    width = terminal_width()
    for line in textwrap.wrap(title, width or sys.maxsize):
        print_line(strong(printable(line)))
    print_line(table.text(width, strong))


def terminal_width() -> int | None:
    """The width of the terminal, or COLUMNS; None where neither is there, as in a pipe."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return None


def print_records(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Prints the rows of a table one below the other, a line for each cell."""
    width = max(map(len, columns))
    for number, row in enumerate(cells):
        if number:
            print_line()
        for name, cell in zip(columns, row, strict=True):
            print_line(f"{name:<{width}}  {cell}")


@contextmanager
def progress_bar(title: str = "") -> Iterator[Progress]:
    """Shows progress bars on the terminal once the work has taken `PATIENCE`.

    Without a terminal it prints a line every `_LINE_EVERY` seconds.
    """
    began, lock = time.monotonic(), Lock()
    told = began
    with ExitStack() as ended:
        draw: Progress | None = None

        def show(step: str, done: float) -> None:
            nonlocal draw, told
            with lock:
                now = time.monotonic()
                if not sys.stderr.isatty():
                    if now - told >= _LINE_EVERY:
                        told = now
                        print(f"{step}: {done:.0%}", file=sys.stderr, flush=True)
                    return
                if draw is None:
                    if now - began < PATIENCE:
                        return
                    draw = ended.enter_context(_bars())
                draw(step, done)

        yield titled(show, title) if title else show


def make_bars(console: Console) -> Bars:
    """Progress bars, each behind its text as it is written: what a file has in brackets too."""
    # Their import takes longer than a short command.
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
        console=console,
        transient=True,
    )


@contextmanager
def _bars() -> Iterator[Progress]:
    """Progress bars on the terminal, one for each title."""
    from rich.console import Console

    with make_bars(Console(stderr=True)) as bars:
        rows: dict[str, tuple[str, TaskID]] = {}

        def draw(step: str, done: float) -> None:
            title = step.rpartition(": ")[0]
            shown, row = rows.get(title, ("", None))
            if shown != step or row is None:
                if row is not None:
                    bars.remove_task(row)
                row = bars.add_task(step, total=1.0)
                rows[title] = step, row
            bars.update(row, completed=done)
            if done >= 1:
                bars.remove_task(row)
                del rows[title]

        yield draw


def mean_of(counts: Iterable[int]) -> str:
    """What a title says of rows that are means over so many seeds each; nothing if of one."""
    least, most = min(counts := list(counts)), max(counts)
    many = f"{least}" if least == most else f"{least} to {most}"
    return f" (mean of {many} seeds, below it its 95 % interval)" if most > 1 else ""


def too_wide(until: Until, where: str = "") -> str:
    """The sentence that says that the seeds ran out before the interval was narrow enough."""
    half = f"half of the interval of {until.metric} is still more than {until.width:.3g} of it"
    return f"{where}{half} after {until.max_seeds} seeds, the maximum (--max-seeds)"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
