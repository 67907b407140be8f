"""Quantities with units: ``"100 Mbit/s"``, ``"40 ms"``, ``"64 kB"``, ``"0.5 BDP"``.

A quantity is a number, optional space, and a unit. Prefixes of rates and sizes are decimal
(kB = 1000 bytes); the binary ones are spelled KiB, MiB, GiB (IEC 80000-13). Capitals matter:
``b`` is never a byte, ``m`` is never mega. Arithmetic is exact: the text is read as a rational
number and rounded once, half to even, to the integer that the simulator counts in.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dumbbell.errors import QuantityError

_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_NOT_FINITE: Final = re.compile(r"[+-]?(?:nan|inf(?:inity)?)(?![a-z])", re.IGNORECASE)


_LONGEST: Final = 60


@dataclass(frozen=True, eq=False)
class Dimension:
    """A kind of quantity: its name, an example, and its units with what they are worth.

    Attributes:
        name: What it is called in errors, such as ``"a rate"``.
        example: A valid quantity, shown in errors.
        units: What one of each unit is worth in the base unit (the first of worth 1).
        most: The greatest value that is accepted, in base units.
        aliases: Other spellings of units that are understood, and never written.
    """

    name: str
    example: str
    units: dict[str, Fraction]
    most: int
    aliases: dict[str, str]

    def parse(self, text: object, *, zero: bool = False) -> int:
        """Reads a quantity; returns it in base units, rounded to a whole number.

        Args:
            text: The quantity, such as ``"100 Mbit/s"``.
            zero: Whether nothing at all is a valid amount.

        Raises:
            QuantityError: If it is no number with a unit of this dimension, or out of range.
        """
        return (_parse_text if isinstance(text, str) else _parse)(text, self, zero)

    def format(self, value: int) -> str:
        """Writes a whole number of base units so that `parse` gives the same number again."""
        if value == 0:
            return f"0 {self.example.split()[1]}"
        decimal = {
            u: w for u, w in self.units.items() if set(str(w)[1:]) <= {"0"} and str(w)[0] == "1"
        }
        unit, worth = max(
            (pair for pair in decimal.items() if value >= pair[1]),
            key=lambda pair: pair[1],
            default=next(iter(decimal.items())),
        )
        number = (Decimal(value) / Decimal(int(worth))).normalize()
        return f"{number:f} {unit}"

    @property
    def known_units(self) -> list[str]:
        """Every spelling of a unit that is understood."""
        return [*self.units, *self.aliases]

    @property
    def advice(self) -> str:
        """How to write such a quantity."""
        units = ", ".join(self.units)
        return (
            f'write {self.name} as a number and a unit, such as "{self.example}" (units: {units})'
        )


def _parse(text: object, dimension: Dimension, zero: bool) -> int:
    value, unit = split(text, dimension)
    worth = dimension.units.get(dimension.aliases.get(unit, unit))
    if worth is None:
        wrong = _unknown(unit, dimension.known_units)
        raise QuantityError(f"{shown(text)} has {wrong}; {dimension.advice}")
    return in_range(value * worth, text, dimension, zero=zero)


_parse_text: Final = lru_cache(4096)(_parse)
"""The runs of a sweep have most of their quantities in common."""


def split(text: object, dimension: Dimension) -> tuple[Fraction, str]:
    """Splits a quantity into its number and its unit.

    Raises:
        QuantityError: If it is not text, not a number, not finite, or has no unit.
    """
    advice = dimension.advice
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{shown(text)} is not {dimension.name}; {advice}")
    stripped = str(text).strip()
    if len(stripped) > _LONGEST:
        raise QuantityError(f"{shown(text)} is too long for {dimension.name}; {advice}")
    if _NOT_FINITE.match(stripped):
        raise QuantityError(f"{shown(text)} is not a finite number; {advice}")
    number = _NUMBER.match(stripped)
    if number is None:
        raise QuantityError(f"{shown(text)} does not begin with a number; {advice}")
    unit = stripped[number.end() :].strip()
    if not unit:
        raise QuantityError(f"{shown(text)} lacks a unit; {advice}")
    return Fraction(number.group()), unit


def in_range(value: Fraction, text: object, dimension: Dimension, *, zero: bool) -> int:
    """Rounds `value` to a whole number of base units, and refuses what is out of range."""
    if value < 0:
        raise QuantityError(f"{shown(text)} is negative; {dimension.advice}")
    if value > dimension.most:
        most = dimension.format(dimension.most)
        raise QuantityError(
            f"{shown(text)} is more than {most}, which is the most; {dimension.advice}"
        )
    rounded = round(value)
    if rounded == 0 and not zero:
        raise QuantityError(
            f'{shown(text)} is nothing; write more than that, for example "{dimension.example}"'
        )
    return rounded


def _units(table: dict[str, int]) -> dict[str, Fraction]:
    return {unit: Fraction(worth) for unit, worth in table.items()}


RATE: Final = Dimension(
    name="a rate",
    example="100 Mbit/s",
    units=_units(
        {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
        | {"B/s": 8, "kB/s": 8 * 10**3, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9}
    ),
    most=10**15,
    aliases={"bps": "bit/s", "kbps": "kbit/s", "Mbps": "Mbit/s", "Gbps": "Gbit/s"},
)
"""Rates, in bit/s."""

TIME: Final = Dimension(
    name="a time",
    example="40 ms",
    units=_units(
        {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
    ),
    most=10**6 * 10**9,
    aliases={"µs": "us", "μs": "us"},
)
"""Times, in ns."""

SIZE: Final = Dimension(
    name="a size",
    example="64 kB",
    units=_units(
        {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
        | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    ),
    most=10**15,
    aliases={"byte": "B", "bytes": "B"},
)
"""Sizes, in bytes."""

PACKETS: Final = Dimension(
    name="a number of packets",
    example="100 packets",
    units=_units({"packets": 1}),
    most=10**9,
    aliases={"packet": "packets"},
)
"""Counts of packets."""

BDP: Final = Dimension(
    name="a multiple of the bandwidth-delay product",
    example="0.5 BDP",
    units=_units({"BDP": 10**6}),
    most=10**4 * 10**6,
    aliases={},
)
"""Multiples of the bandwidth-delay product, in millionths."""

DIMENSIONS: Final = (RATE, TIME, SIZE, PACKETS, BDP)
"""The kinds of quantities."""

_QUEUE: Final = Dimension(
    name="a queue",
    example="0.5 BDP",
    units=BDP.units | PACKETS.units | SIZE.units | TIME.units,
    most=10**15,
    aliases=PACKETS.aliases | SIZE.aliases | TIME.aliases,
)

UNLIMITED: Final = "unlimited"
"""What to write for a queue that never overflows."""


@dataclass(frozen=True)
class Queue:
    """How much may wait at a link: `value` in the base units of `dimension`."""

    dimension: Dimension
    value: int


def parse_queue(text: object) -> Queue | None:
    """Reads the size of a queue in BDP, packets, bytes or time; None is ``"unlimited"``.

    Raises:
        QuantityError: If it is none of these, or nothing.
    """
    if text == UNLIMITED:
        return None
    _, unit = split(text, _QUEUE)
    for dimension in (BDP, PACKETS, SIZE, TIME):
        if unit in dimension.known_units:
            return Queue(dimension, dimension.parse(text))
    raise QuantityError(f"{shown(text)} has {_unknown(unit, _QUEUE.known_units)}; {_QUEUE.advice}")


def parse_quantity(value: object) -> tuple[Dimension | None, Fraction]:
    """Reads a quantity of whatever kind, in base units; a plain number, or one in %, has none.

    Raises:
        QuantityError: If it is neither, or out of range.
    """
    text = str(value).strip()
    number = _NUMBER.match(text)
    if isinstance(value, bool | list | dict) or number is None:
        raise QuantityError(f"{shown(value)} is neither a number nor a quantity")
    unit = text[number.end() :].strip()
    if unit in ("", "%"):
        return None, Fraction(number.group()) / (100 if unit else 1)
    for dimension in DIMENSIONS:
        if unit in dimension.known_units:
            return dimension, Fraction(dimension.parse(text, zero=True))
    known = [unit for dimension in DIMENSIONS for unit in dimension.known_units]
    raise QuantityError(f"{shown(value)} has {_unknown(unit, known)}")


def parse_probability(value: object) -> float:
    """Reads a probability, as a number or as text such as ``"1e-4"`` or ``"0.1 %"``.

    Raises:
        QuantityError: If it is not a number from 0 to less than 1.
    """
    text = str(value).strip()
    percent = text.endswith("%")
    number = text.removesuffix("%").strip()
    if isinstance(value, bool) or not _NUMBER.fullmatch(number):
        raise QuantityError(f"{shown(value)} is not a probability; {_PROBABILITY}")
    probability = Fraction(number) / (100 if percent else 1)
    if not 0 <= probability < 1:
        raise QuantityError(f"{shown(value)} is not from 0 to less than 1; {_PROBABILITY}")
    return float(probability)


_PROBABILITY: Final = 'write a number from 0 to less than 1, such as 0.0001, "1e-4" or "0.01 %"'


def _unknown(unit: str, known: list[str]) -> str:
    folded = {k.casefold(): k for k in reversed(known)}
    close = folded.get(unit.casefold()) or next(iter(difflib.get_close_matches(unit, known)), None)
    return f'the unknown unit "{unit}"' + (f' (did you mean "{close}"?)' if close else "")


def shown(value: object) -> str:
    """A value as a TOML file would have it, cut to what fits a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
