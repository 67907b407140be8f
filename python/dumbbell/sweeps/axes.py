"""Axes: which key of an experiment takes which values, one by one or over a range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from dumbbell.errors import ExperimentError, QuantityError, shown, unknown
from dumbbell.experiment.quantities import BDP, PACKETS, RATE, SIZE, TIME, parse_quantity
from dumbbell.experiment.toml import inline

if TYPE_CHECKING:
    from dumbbell.experiment.quantities import Dimension

MOST_VALUES: Final = 100_000
"""The greatest number of values on one axis."""

_LIST: Final = frozenset({"values", "name", "as"})
_RANGE: Final = frozenset({"from", "to", "points", "scale", "name", "as"})
_HOLDS: Final = frozenset({"values", "from", "to"})
"""One of these makes a table an axis."""

_VALID: Final = (
    'write a list of values, such as ["10 Mbit/s", "100 Mbit/s"], or a range, such as '
    '{ from = "10 ms", to = "100 ms", points = 5 }'
)

_KINDS: Final = {RATE: "bit/s", TIME: "s", SIZE: "bytes", PACKETS: "packets", BDP: "BDP"}
"""What columns of axes count in."""

_WORTH: Final = {TIME: 10**9, BDP: 10**6}
"""How many of the dimension's base units that is."""

_DIGITS: Final = 6
"""Significant digits of values within a range."""


@dataclass(frozen=True)
class Value:
    """A value on an axis.

    Attributes:
        written: What the key is set to.
        column: What the axis' column holds: a number, or text.
    """

    written: Any
    column: float | str


@dataclass(frozen=True)
class Range:
    """All values from one to another, ends included: `at` has them by share of the way."""

    dimension: Dimension | None
    low: Fraction
    high: Fraction
    log: bool
    whole: bool

    def at(self, share: float | Fraction) -> object:
        """The value at a share of the way, 0 to 1, as it is written."""
        if share in (0, 1):
            value = self.high if share else self.low
        elif self.log:
            low, high = math.log(self.low), math.log(self.high)
            value = _rounded(math.exp(low + (high - low) * float(share)))
        else:
            value = _rounded(self.low + (self.high - self.low) * Fraction(share))
        if self.dimension is not None:
            return self.dimension.format(round(value))
        return round(value) if self.whole else float(value)


@dataclass(frozen=True)
class Axis:
    """One key of an experiment, and the values that it takes.

    Attributes:
        key: The key, as for ``--set``: ``link.bottleneck.rate``, ``flow.*.cc``.
        given: Its values one by one, or the range that they lie in.
        points: How many of the range there are in a grid; None if that is not said.
        name: Its name, and the column's; empty for the last part of the key.
        template: What a value is put into, at ``{}``, such as ``cubic(beta={})``; empty for none.
    """

    key: str
    given: list[Any] | Range
    points: int | None
    name: str
    template: str

    @property
    def count(self) -> int | None:
        """How many values there are; None for a range without a number of points."""
        return len(self.given) if isinstance(self.given, list) else self.points

    def all(self) -> list[Value]:
        """Every value, in order.

        Raises:
            ExperimentError: If it is a range, and the number of points is not given.
        """
        if isinstance(self.given, list):
            return [self._value(item) for item in self.given]
        if self.points is None:
            problem = "is a range without a number of points"
            raise ExperimentError(f"{problem}; write points = 5, for example", key=self.key)
        steps = max(self.points - 1, 1)
        return [self._value(self.given.at(Fraction(step, steps))) for step in range(self.points)]

    def draw(self, share: float) -> Value:
        """The value at a share of the way along the axis, 0 to less than 1."""
        if isinstance(self.given, list):
            return self._value(self.given[int(share * len(self.given))])
        return self._value(self.given.at(share))

    def _value(self, value: object) -> Value:
        written = value
        if self.template:
            written = self.template.replace(
                "{}", value if isinstance(value, str) else inline(value)
            )
        return Value(written, self._column(value))

    def _column(self, value: object) -> float | str:
        if self.unit is not None and not isinstance(value, bool):
            dimension, number = parse_quantity(value)
            return float(number / _WORTH.get(dimension, 1)) if dimension else float(number)
        return value if isinstance(value, str) else inline(value)

    @cached_property
    def unit(self) -> str | None:
        """What its column counts in: ``bit/s``, ``s``, ...; empty for numbers, None for text."""
        if isinstance(self.given, Range):
            return _KINDS[self.given.dimension] if self.given.dimension else ""
        try:
            kinds = {parse_quantity(value)[0] for value in self.given}
        except QuantityError:
            return None
        dimension = kinds.pop()
        if kinds:
            return None
        return _KINDS[dimension] if dimension else ""


def find_axes(table: dict[str, Any], at: str = "") -> dict[str, Any]:
    """The axes of a ``[sweep]`` table by their keys, which may be dotted with or without quotes."""
    found: dict[str, Any] = {}
    for part, value in table.items():
        key = f"{at}.{part}" if at else part
        if isinstance(value, dict) and not _HOLDS & value.keys():
            found |= find_axes(value, key)
        else:
            found[key] = value
    return found


def parse_axis(key: str, said: Any) -> Axis:
    """Reads an axis.

    Raises:
        ExperimentError: If it is neither a list nor a range, is empty, or names unknown keys.
    """
    try:
        return _parse(key, said)
    except QuantityError as error:
        raise ExperimentError(str(error), key=f"sweep.{key}") from None
    except ExperimentError as error:
        raise error.within(f"sweep.{key}") from None


def _parse(key: str, said: Any) -> Axis:
    if key.partition(".")[0] in ("seeds", "sweep"):
        raise ExperimentError("cannot be an axis; name others, and write seeds beside duration")
    if isinstance(said, list):
        said = {"values": said}
    if not isinstance(said, dict):
        raise ExperimentError(f"{shown(said)} is not an axis; {_VALID}")
    known = _LIST if "values" in said else _RANGE
    for name in said:
        if name not in known:
            raise ExperimentError(unknown("key of an axis", name, sorted(known)))
    name, template = (_text(said, part) for part in ("name", "as"))
    if template and "{}" not in template:
        problem = f"as: {shown(template)} has no {{}} that the value goes into"
        raise ExperimentError(f'{problem}; write, for example, "cubic(beta={{}})"')
    given = _values(said["values"]) if "values" in said else _range(said)
    return Axis(key, given, _points(said), name, template)


def _text(said: dict[str, Any], part: str) -> str:
    text = said.get(part, "")
    if not isinstance(text, str):
        raise ExperimentError(f"{part}: {shown(text)} is not text")
    return text


def _values(values: Any) -> list[Any]:
    if not isinstance(values, list) or not values:
        problem = "is empty" if values == [] else f"values: {shown(values)} is not a list"
        raise ExperimentError(f"{problem}; {_VALID}")
    seen = set()
    for value in values:
        text = inline(value)
        if text in seen:
            raise ExperimentError(f"{shown(value)} is there twice; write every value once")
        seen.add(text)
    return values


def _points(said: dict[str, Any]) -> int | None:
    points = said.get("points")
    if points is None or (type(points) is int and 1 <= points <= MOST_VALUES):
        return points
    raise ExperimentError(f"points: {shown(points)} is not a number from 1 to {MOST_VALUES:,}")


def _range(said: dict[str, Any]) -> Range:
    missing = [end for end in ("from", "to") if end not in said]
    if missing:
        raise ExperimentError(f"lacks {missing[0]}; {_VALID}")
    low, high, scale = said["from"], said["to"], said.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise ExperimentError(f'scale: {shown(scale)} is neither "linear" nor "log"; write one')
    (dimension, begin), (other, end) = parse_quantity(low), parse_quantity(high)
    if dimension != other:
        raise ExperimentError(f"{shown(low)} and {shown(high)} are not of one kind; {_VALID}")
    if begin >= end:
        raise ExperimentError(f"{shown(low)} is not less than {shown(high)}; write the least first")
    if scale == "log" and begin <= 0:
        problem = f"{shown(low)} is not above 0"
        raise ExperimentError(f"{problem}, where a logarithmic range can begin")
    return Range(dimension, begin, end, scale == "log", type(low) is type(high) is int)


def _rounded(value: float | Fraction) -> Fraction:
    return Fraction(f"{float(value):.{_DIGITS}g}")
