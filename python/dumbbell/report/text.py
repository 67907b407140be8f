"""Numbers as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.frame import Number


def measured(number: Number, found: Estimate | None = None) -> str:
    """A measured value as text: ``"41.2"``, or ``"> 120"`` beyond what was observed."""
    shown = found or number.found
    return _value(shown.value, shown)


def interval(number: Number) -> str:
    """A confidence interval as text: ``"38.0 to 45.5"``, ``"38.0 to > 120"``."""
    found = number.found
    if found.low is None and found.high is None and found.limit is None:
        return "—"
    return f"{_value(found.low, found)} to {_value(found.high, found)}"


def single_runs(number: Number) -> str:
    """Between what the single runs lie: ``"runs 36 to > 120"``; nothing if there is one."""
    found = number.found
    if len(found.runs) < 2:
        return ""
    seen = [run for run in found.runs if run is not None]
    ends = (min(seen, default=None), None if found.censored else max(seen))
    low, high = (_value(end, found) for end in ends)
    return f"runs {low} to {high}"


def rank(number: Number) -> str:
    """Where the published value stands among the runs: ``"≥ 3 of 8 runs"``; nothing of one."""
    count = len(number.found.runs)
    return f"≥ {number.not_above} of {count} runs" if count > 1 else ""


def unit(number: Number) -> str:
    """The unit of a number with the space before it; nothing for a plain ratio."""
    return "" if number.said.unit == "1" else f" {number.said.unit}"


def figures(value: float | None) -> str:
    """A value with three significant digits, and none lost in front of the point."""
    if value is None or not math.isfinite(value):
        return "—"
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def size(count: int) -> str:
    """A number of bytes as people say it."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _value(value: float | None, found: Estimate) -> str:
    if value is not None:
        return figures(value)
    return "unbounded" if found.limit is None else f"> {figures(found.limit)}"
