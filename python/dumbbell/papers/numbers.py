"""Published and measured numbers as a page shows them: tables of one unit, and dots on an axis."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from dumbbell.display import alike, format_significant
from dumbbell.papers.helpers import minus
from dumbbell.papers.judge import NEAR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.outcome import Number

_OCTAVES: Final = 2  # the axis of dots is from a quarter of the published value to four times it
_COLUMNS: Final = 56  # places of dots along the axis; dots of one place are stacked


@dataclass(frozen=True)
class NumberRow:
    """A number as text; all texts of a column have the same precision."""

    number: Number
    published: str  # as the paper has it
    rank: str  # in how many of the runs the value is at most the published one; empty with one run
    measured: str  # the median of the runs: ``"41.2"``, or ``"> 120"`` beyond what was observed
    interval: str  # its 95 % interval: ``"38.0 to > 120"``
    runs: str  # the range of the single runs: ``"runs 36.0 to > 120"``; empty with one run
    ratio: str  # measured over published; a dash of a difference, and where there is no value
    linux: str  # the median of the runs with real packets; empty without any
    matched: str  # the same in the matched simulation; empty without one


def tables(numbers: Sequence[Number]) -> dict[str, list[NumberRow]]:
    """Rows of numbers by their unit, which is empty for plain ratios."""
    units: dict[str, list[Number]] = {}
    for number in numbers:
        units.setdefault(unit(number), []).append(number)
    return {name: rows(of_unit) for name, of_unit in units.items()}


def unit(number: Number) -> str:
    """The unit of a number; empty for a plain ratio."""
    return "" if number.spec.unit == "1" else number.spec.unit


def rows(numbers: Sequence[Number]) -> list[NumberRow]:
    """Rows of numbers of one unit."""
    decimals = max(_decimals(number.spec.published) for number in numbers)
    found = [number.measured for number in numbers]
    for real in (number.testbed for number in numbers if number.testbed):
        found += [real.measured, *([real.matched] if real.matched else [])]
    ends = (end for one in found for end in one.ends.values() if end is not None)
    fixed = alike(ends, decimals)
    return [_row(number, decimals, fixed) for number in numbers]


def _row(number: Number, decimals: int, fixed: Callable[[float], str]) -> NumberRow:
    found, real = number.measured, number.testbed

    def middle(of: Estimate | None) -> str:
        return _value(of.value, of, fixed) if of else ""

    return NumberRow(
        number,
        published=minus(f"{number.spec.published:,.{decimals}f}"),
        rank=_rank(number),
        measured=middle(found),
        interval=_interval(found, fixed),
        runs=_range(found, fixed),
        ratio=f"{number.ratio:.2f}" if number.ratio is not None and number.spec.has_ratio else "—",
        linux=middle(real.measured if real else None),
        matched=middle(real.matched if real else None),
    )


def _decimals(value: float) -> int:
    """How many decimals a published value is printed with."""
    return len(f"{value:.10f}".rstrip("0").partition(".")[2])


def _value(value: float | None, found: Estimate, fixed: Callable[[float], str]) -> str:
    if value is not None:
        return fixed(value)
    return "unbounded" if found.limit is None else f"> {format_significant(found.limit)}"


def _interval(found: Estimate, fixed: Callable[[float], str]) -> str:
    if found.low is None and found.high is None and found.limit is None:
        return "—"
    return f"{_value(found.low, found, fixed)} to {_value(found.high, found, fixed)}"


def _range(found: Estimate, fixed: Callable[[float], str]) -> str:
    if len(found.runs) < 2:
        return ""
    seen = [run for run in found.runs if run is not None]
    low, high = min(seen, default=None), None if found.censored else max(seen)
    return f"runs {_value(low, found, fixed)} to {_value(high, found, fixed)}"


def _rank(number: Number) -> str:
    runs = number.measured.runs
    not_above = sum(run is not None and run <= number.spec.published for run in runs)
    return f"≥ {not_above} of {len(runs)} runs" if len(runs) > 1 else ""


def near(numbers: Sequence[Number]) -> str:
    """How many numbers are near the published ones."""
    ratios = [number.ratio for number in numbers if number.spec.has_ratio]
    count = sum(ratio is not None and abs(ratio - 1) <= NEAR for ratio in ratios)
    return f"{count} of {len(ratios)} within {100 * NEAR:.0f} % of the published value"


@dataclass(frozen=True)
class Dot:
    """A number on the axis of measured over published."""

    x: float  # where, from 0 (a quarter of the published value) to 1 (four times it)
    rank: int  # how many dots are stacked below it
    end: Literal["at", "below", "above"]  # whether the value is at ``x``, or further out than that
    text: str  # what it is


@dataclass(frozen=True)
class DotPlot:
    """The numbers of a paper over the published ones: simulated, and of Linux."""

    simulated: list[Dot]
    linux: list[Dot]

    @classmethod
    def of(cls, numbers: Sequence[Number]) -> DotPlot:
        """All numbers that have a ratio; of Linux those that its settings leave as they are."""
        ratios = [number for number in numbers if number.spec.has_ratio]
        real = [
            (one, one.testbed.measured)
            for one in ratios
            if one.testbed and _is_alike(one.measured, one.testbed.matched)
        ]
        return cls(_dots((one, one.measured) for one in ratios), _dots(real))

    @property
    def text(self) -> str:
        """What a screen reader says."""
        return f"Measured over published: {len(self.simulated)} numbers" + (
            f", {len(self.linux)} of them also of Linux" if self.linux else ""
        )

    @staticmethod
    def height(dots: Sequence[Dot]) -> int:
        """How many dots are stacked on each other, at most."""
        return max((dot.rank + 1 for dot in dots), default=0)


def _is_alike(simulated: Estimate, matched: Estimate | None) -> bool:
    """Whether a number is the same, simulated with the paper's settings and the testbed's."""
    if matched is None or matched.value is None or simulated.value is None:
        return True
    return abs(matched.value - simulated.value) <= NEAR * abs(simulated.value)


def _dots(found: Iterable[tuple[Number, Estimate]]) -> list[Dot]:
    dots, heights = [], Counter[int]()
    for number, estimate in found:
        known = estimate.value if estimate.value is not None else estimate.limit
        if known is None:  # nothing could be measured
            continue
        ratio = known / number.spec.published
        exact = (math.log2(max(ratio, 1e-9)) + _OCTAVES) / (2 * _OCTAVES)
        column = round(min(max(exact, 0.0), 1.0) * _COLUMNS)
        is_above = estimate.value is None or exact > 1
        dots.append(
            Dot(
                column / _COLUMNS,
                heights[column],
                "above" if is_above else "below" if exact < 0 else "at",
                f"{number.spec.quantity}: {'> ' if estimate.value is None else ''}{ratio:.2f} of "
                "the published value",
            )
        )
        heights[column] += 1
    return dots
