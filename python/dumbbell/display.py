"""How numbers and tables are shown: one table of metrics; tables as text, Markdown and HTML."""

from __future__ import annotations

import math
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from markupsafe import Markup
from rich.cells import cell_len

from dumbbell.experiment.quantities import BDP, PACKETS, RATE, SIZE, TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Cell: TypeAlias = "str | float | Interval | None"
"""Text as it shall stand, a number in the unit of result tables, or one with an interval."""

_NONE: Final = "—"
_DETAIL: Final = 8  # from this priority on a column is left out where a table is too wide
_NARROWEST: Final = 20  # no column of text is made narrower than this, characters


@runtime_checkable
class Interval(Protocol):
    """A number with its interval, such as `dumbbell.metrics.Estimate`."""

    @property
    def value(self) -> float | None:
        """The number."""

    @property
    def low(self) -> float | None:
        """Where its interval begins; None if it has none."""

    @property
    def high(self) -> float | None:
        """Where its interval ends."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str  # its heading, without the unit
    number: bool = False  # whether it holds numbers, which are aligned to the right
    unit: str = ""  # the unit that its numbers are shown in; it stands in the heading
    scale: float = 1.0  # what numbers are multiplied by to be in that unit
    # Columns with larger numbers are moved first where a table is too wide, below the others or,
    # from `_DETAIL` on, away; one with 0 names the row and stays.
    priority: int = 0
    decimals: int = 0  # the fewest decimals of its numbers, unless all of them are whole
    lowest: float = -math.inf  # what the quantity can be, in the unit of result tables
    highest: float = math.inf

    @classmethod
    def of(cls, metric: str, **changes: str | int) -> Column:
        """The column of a metric: that of `COLUMNS`, or one with its name as the heading."""
        known = COLUMNS.get(metric) or cls(metric.replace("_", " ").capitalize(), True)
        return replace(known, **changes) if changes else known  # type: ignore[arg-type]

    @property
    def heading(self) -> str:
        """Title and unit: ``Throughput (Mbit/s)``."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def format(self, cell: Cell) -> str:
        """One cell by itself, without its unit: ``48.2``, or ``48.2 (47.9 to 48.5)``."""
        return _inline(*self._formatted([cell])[0])

    def _formatted(self, cells: Sequence[Cell]) -> list[tuple[str, str]]:
        """Each cell as text, and its interval as text; all with as many decimals.

        Only an interval whose ends would read the same has more: three digits of its own.
        """
        numbers = [self._numbers(cell) for cell in cells]
        common = _decimals(chain(*numbers), self.decimals)
        formatted = []
        for cell, its in zip(cells, numbers, strict=True):
            if isinstance(cell, str):
                formatted.append((cell, ""))
            elif isinstance(cell, Interval) and cell.low is not None:
                low, high = (self._fixed(end, common) for end in (cell.low, cell.high))
                decimals = common
                if low == high and cell.low != cell.high:
                    decimals = _decimals(its, common)
                    low, high = (self._fixed(end, decimals) for end in (cell.low, cell.high))
                formatted.append((self._fixed(cell.value, decimals), f"{low} to {high}"))
            else:
                value = cell.value if isinstance(cell, Interval) else cell
                formatted.append((self._fixed(value, common), ""))
        return formatted

    def _numbers(self, cell: Cell) -> list[float]:
        """The numbers of a cell that are finite, as they are shown."""
        if isinstance(cell, str):
            return []
        found = [cell.value, cell.low, cell.high] if isinstance(cell, Interval) else [cell]
        return [x * self.scale for x in found if x is not None and math.isfinite(x)]

    def _fixed(self, value: float | None, decimals: int) -> str:
        return _NONE if value is None else _fixed(value * self.scale, decimals)


_FILE: Final = Path(__file__).with_suffix(".toml")
COLUMNS: Final = {
    metric: Column(number=True, **said)
    for metric, said in tomllib.loads(_FILE.read_text("utf-8")).items()
}
"""How each metric is shown, and what it can be, by its column in the tables of results."""


@dataclass(frozen=True)
class Table:
    """A table, with a note of what to know about it.

    Numbers are in the units of result tables; each column has its unit and precision. None is shown
    as a dash.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def markdown(self) -> str:
        """The table and its note, as Markdown."""
        head = " | ".join(_markdown(column.heading) for column in self.columns)
        rule = "|".join("---:" if column.number else "---" for column in self.columns)
        rows = [" | ".join(_markdown(_inline(*cell)) for cell in row) for row in self._cells()]
        return "\n".join(
            [f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows), "", self.note]
        )

    def latex(self) -> str:
        """The table, as LaTeX for the package booktabs."""
        kinds = "".join("r" if column.number else "l" for column in self.columns)
        head = [_tex(column.heading) for column in self.columns]
        rows = [[_tex(_inline(*cell)) for cell in row] for row in self._cells()]
        first, *others = (f"{' & '.join(row)} \\\\" for row in (head, *rows))
        begin = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", first, r"\midrule"]
        return "\n".join([*begin, *others, r"\bottomrule", r"\end{tabular}"])

    def html(self) -> Markup:
        """The table and its note, as HTML; cells that are Markup stand as they are."""
        kinds = [Markup(' class="number"' if column.number else "") for column in self.columns]
        head = Markup().join(
            Markup('<th scope="col"{}>{}</th>').format(kind, column.heading)
            for column, kind in zip(self.columns, kinds, strict=True)
        )
        below = Markup('{}<br><span class="soft small">{}</span>')
        rows = [
            Markup().join(
                Markup("<td{}>{}</td>").format(kind, below.format(*cell) if cell[1] else cell[0])
                for cell, kind in zip(row, kinds, strict=True)
            )
            for row in self._cells()
        ]
        body = Markup("\n").join(Markup("<tr>{}</tr>").format(row) for row in rows)
        note = Markup('\n<p class="small soft">{}</p>').format(self.note) if self.note else ""
        return _HTML.format(head, body) + note

    def text(self, width: int | None = None, strong: Callable[[str], str] = str) -> str:
        """The table as lines of text, without its note: headings, then rows; no word is broken.

        Where the lines do not fit into `width`, the columns with the largest `priority` follow in
        lines of their own; of those that are details a last line has the names. Then the widest
        text is put on several lines. `strong` makes headings stand out.
        """
        cells = list(zip(*self._cells(), strict=True)) or [()] * len(self.columns)
        blocks = [_Block(*both) for both in zip(self.columns, cells, strict=True)]
        shown, left = _fitting(blocks, width)
        lines = self._lines(shown, width, strong)
        details = [block for block in left if block.column.priority >= _DETAIL]
        left = [block for block in left if block not in details]
        labels = [block for block in shown if block.column.priority == 0]
        while left:
            shown, left = _fitting([*labels, *left], width)
            lines += ["", *self._lines(shown, width, strong)]
        if details:
            said = f"Not shown, for want of width: {', '.join(b.column.title for b in details)}."
            lines += ["", *textwrap.wrap(said, width or sys.maxsize)]
        return "\n".join(lines)

    def _lines(
        self, blocks: Sequence[_Block], width: int | None, strong: Callable[[str], str]
    ) -> list[str]:
        texts = [block for block in blocks if not block.column.number]
        if width is not None and texts:
            max(texts, key=lambda block: block.width).narrow(_width(blocks) - width)
        tallest = max(len(block.head) for block in blocks)
        heads = [[""] * (tallest - len(block.head)) + block.head for block in blocks]
        lines = [strong(line) for line in _side_by_side(blocks, heads)]
        for row in range(len(self.rows)):
            lines += _side_by_side(blocks, [block.rows[row] for block in blocks])
        return lines

    def __str__(self) -> str:
        """The table and its note, in 80 columns."""
        return "\n".join([self.text(80), *textwrap.wrap(self.note, 80)])

    def _cells(self) -> list[tuple[tuple[str, str], ...]]:
        columns = zip(*self.rows, strict=True) if self.rows else ()
        formatted = [
            column._formatted(cells)
            for column, cells in zip(self.columns, columns, strict=bool(self.rows))
        ]
        return list(zip(*formatted, strict=True))


class _Block:
    """A column as lines of text: those of its heading, and for each row its own."""

    def __init__(self, column: Column, cells: Sequence[tuple[str, str]]) -> None:
        self.column = column
        self.rows = [[text.replace(_NONE, "-"), *filter(None, [below])] for text, below in cells]
        words = column.title.split()
        widths = [cell_len(line) for row in self.rows for line in row]
        self.width = max([*widths, *map(cell_len, words), len(column.unit)])
        self.head = [words.pop(0)] if words else [""]
        for word in words:
            longer = f"{self.head[-1]} {word}"
            if cell_len(longer) <= self.width:
                self.head[-1] = longer
            else:
                self.head.append(word)
        self.head += [column.unit] if column.unit else []

    def narrow(self, excess: int) -> None:
        """Puts its text on several lines, if that makes it narrower by so many characters."""
        width = self.width - excess
        if excess > 0 and width >= _NARROWEST:
            self.rows = [
                [part for line in lines for part in textwrap.wrap(line, width)]
                for lines in self.rows
            ]
            self.width = max(cell_len(line) for lines in self.rows for line in lines)

    def padded(self, line: str) -> str:
        """A line of it, as wide as the column."""
        space = " " * (self.width - cell_len(line))
        return space + line if self.column.number else line + space


def _width(blocks: Sequence[_Block]) -> int:
    return sum(block.width + 2 for block in blocks) - 2


def _fitting(blocks: Sequence[_Block], width: int | None) -> tuple[list[_Block], list[_Block]]:
    """The columns that fit into the width, and those that do not; both in their order."""
    shown = list(blocks)
    while width is not None and _width(shown) > width:
        last = max(shown, key=lambda block: block.column.priority)
        # Beside the labels there is always one.
        if last.column.priority == 0 or sum(one.column.priority > 0 for one in shown) == 1:
            break
        shown.remove(last)
    return shown, [block for block in blocks if block not in shown]


def _side_by_side(blocks: Sequence[_Block], columns: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns that begin at the same line."""
    return [
        "  ".join(map(_Block.padded, blocks, line)).rstrip()
        for line in zip_longest(*columns, fillvalue="")
    ]


_HTML: Final = Markup("""\
<div class="scroll compact" tabindex="0">
<table>
<thead><tr>{}</tr></thead>
<tbody>
{}
</tbody>
</table>
</div>""")


_TEX: Final = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "−": "$-$",  # noqa: RUF001
    _NONE: "---",
} | {sign: f"\\{sign}" for sign in "#$%&_{}"}


def _tex(text: str) -> str:
    """Text as LaTeX has it."""
    return "".join(_TEX.get(sign, sign) for sign in text)


def _markdown(text: str) -> str:
    """Text as a cell of a table in Markdown has it."""
    return text.replace("|", r"\|")


def _inline(text: str, interval: str) -> str:
    return f"{text} ({interval})" if interval else text


def _decimals(numbers: Iterable[float], fewest: int) -> int:
    """How many decimals show three digits of the largest number, and something of the smallest."""
    sizes = [abs(number) for number in numbers if number]
    if all(size.is_integer() for size in sizes):
        return 0
    largest, smallest = max(sizes), min(sizes)
    if largest >= 1000:
        return fewest
    decimals = max(2 - math.floor(math.log10(largest)), 1, fewest)
    while decimals < 3 and round(smallest, decimals) == 0:
        decimals += 1
    return decimals


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return _NONE
    value = round(value, decimals) + 0.0  # no sign for zero
    return f"{value:,.{decimals}f}".replace("-", "−")  # noqa: RUF001


def alike(numbers: Iterable[float], fewest: int = 0) -> Callable[[float], str]:
    """What writes numbers with as many decimals as all of these have together.

    That is three digits of the largest, and at least `fewest` decimals unless all are whole.
    """
    decimals = _decimals(numbers, fewest)
    return lambda value: _fixed(value, decimals)


def format_significant(value: float | None) -> str:
    """A value with three significant digits, and none lost in front of the point."""
    if value is None or not math.isfinite(value):
        return _NONE
    if value == 0:
        return "0"
    rounded = f"{value:.3g}"
    return f"{value:,.0f}" if abs(float(rounded)) >= 1000 else rounded


def format_setting(value: float | str, unit: str | None) -> str:
    """A value on an axis of a sweep, as an experiment file would have it; text stands as it is.

    The `unit` of numbers is ``bit/s``, ``s``, ``bytes``, ``packets``, ``BDP``, or None.
    """
    if isinstance(value, str):
        return value
    if unit in _SETTINGS:
        dimension, worth = _SETTINGS[unit]
        return dimension.format(round(value * worth))
    return f"{value:g}"


def format_settings(values: Sequence[float | str], unit: str | None) -> list[str]:
    """Values on an axis of a sweep, as `format_setting`, with three significant digits.

    They have all their digits if three do not tell them apart.
    """
    rounded = [value if isinstance(value, str) else float(f"{value:.3g}") for value in values]
    distinct = len(set(rounded)) == len(set(values))
    return [format_setting(value, unit) for value in (rounded if distinct else values)]


def common_unit(values: Sequence[float], unit: str | None) -> tuple[str, float]:
    """The unit in which `format_setting` writes most of some values, and what one of it counts.

    It is empty and 1 if they have none, or if some would be long numbers in it.
    """
    sizes = [abs(value) for value in values if value]
    if unit not in _SETTINGS or not sizes:
        return "", 1.0
    dimension, worth = _SETTINGS[unit]
    [(most, _)] = Counter(format_setting(size, unit).split()[1] for size in sizes).most_common(1)
    one = dimension.parse(f"1 {most}") / worth
    return (most, one) if 0.01 <= min(sizes) / one <= max(sizes) / one < 1e4 else ("", 1.0)


_SETTINGS: Final = {
    "bit/s": (RATE, 1),
    "s": (TIME, 10**9),
    "bytes": (SIZE, 1),
    "packets": (PACKETS, 1),
    "BDP": (BDP, 10**6),
}
"""The dimension of each unit, and how many of its smallest parts one has."""
