"""Tables and sentences that reports of papers need again and again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dumbbell.display import Column, Table
from dumbbell.papers.runs import Runs, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import PublishedTable


def beside(measured: float, published: float, digits: int = 0) -> str:
    """A measured value beside another one, and their ratio: ``95 / 90 (1.06)``."""
    ratio = f" ({measured / published:.2f})" if published else ""
    return f"{measured:,.{digits}f} / {published:,.{digits}f}{ratio}"


def with_interval(found: Estimate, digits: int = 1) -> str:
    """A median and its 95 % interval: ``9.5 (9.1 to 9.8)``."""
    low, high = found.low or 0.0, found.high or 0.0
    return f"{known(found):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def minus(text: str) -> str:
    """A text with a minus sign in the place of the hyphen before a number; zero has no sign."""
    unsigned = re.sub(r"(?<![\w.\-])[+-](?=0(\.0+)?(?![\d.]*[1-9]))", "", text)
    return re.sub(r"(?<![\w.\-])-(?=\d)", "−", unsigned)  # noqa: RUF001


def grid(
    heading: str,
    titles: Iterable[str],
    rows: Mapping[str, Iterable[str]],
    note: str = "",
) -> Table:
    """A table with a name before every row, and numbers in the other columns."""
    columns = [Column(heading), *(Column(title, number=True) for title in titles)]
    return Table(columns, [[name, *map(minus, cells)] for name, cells in rows.items()], note)


def ratios(runs: Runs, table: PublishedTable) -> dict[str, float]:
    """Measured over published for every number of a table but zeros, by its id."""
    return {
        said.id: known(runs.of_measure(said.experiment, said.measure)) / said.published
        for said in table.all()
        if said.published
    }


def label(cc: str) -> str:
    """What texts and figures call an algorithm."""
    from dumbbell.figures import style_of

    return style_of(cc).label


def listed(
    values: Mapping[str, float],
    digits: int = 0,
    order: Sequence[str] = (),
    label: Callable[[str], str] = label,
) -> str:
    """Names, each with its value: ``Reno 90, CUBIC 40``."""
    return ", ".join(f"{label(name)} {values[name]:.{digits}f}" for name in order or values)
