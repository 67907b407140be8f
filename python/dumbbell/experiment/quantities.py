"""Quantities with units: ``"100 Mbit/s"``, ``"40 ms"``, ``"64 kB"``, ``"0.5 BDP"``.

A quantity is a number, optional space, and a unit. Prefixes of rates and sizes are decimal
(kB = 1000 bytes); the binary ones are KiB, MiB, GiB (IEC 80000-13). Capitals matter: ``b`` is
never a byte, ``m`` is never mega. Arithmetic is exact, with one rounding, half to even, to a whole
number of base units.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from dumbbell import _core
from dumbbell.errors import QuantityError
from dumbbell.experiment import user_code

T = TypeVar("T")


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity, by the name that the Rust crate has for it, and its base unit."""

    name: str

    def parse(self, text: object, *, zero: bool = False) -> int:
        """Reads a quantity, such as ``"100 Mbit/s"``, in base units, rounded to a whole number."""
        return checked(_core.parse_quantity, as_json(text), self.name, zero)

    def format(self, value: int) -> str:
        """Writes a whole number of base units so that `parse` gives the same number again."""
        return _core.format_quantity(value, self.name)


RATE: Final = Dimension("a rate")  # bit/s
TIME: Final = Dimension("a time")  # ns
SIZE: Final = Dimension("a size")  # bytes
PACKETS: Final = Dimension("a number of packets")
BDP: Final = Dimension("a multiple of the bandwidth-delay product")  # millionths


def checked(read: Callable[..., T], *arguments: object) -> T:
    """Calls a reader of the Rust crate; its `ValueError` becomes a `QuantityError`."""
    try:
        return read(*arguments)
    except ValueError as error:
        raise QuantityError(str(error)) from None


def parse_probability(value: object) -> float:
    """Reads a probability (0 to less than 1): a number or text such as ``"1e-4"``, ``"0.1 %"``."""
    return checked(_core.parse_probability, as_json(value))


def as_json(value: object) -> str:
    """A value as JSON, which has neither classes nor numbers that are not finite, or too large.

    These become text; a class, which can only be an algorithm, the name of it.
    """
    return json.dumps(_plain(value), ensure_ascii=False, default=str)


def _plain(value: object) -> object:
    match value:
        case type():
            return user_code.name_of(value)
        case float() if not math.isfinite(value):
            return str(value)
        case int() if abs(value) > sys.float_info.max:
            return f"{'-' * (value < 0)}1e{int(math.log10(abs(value)))}"
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | range():
            return [_plain(item) for item in value]
        case _:
            return value
