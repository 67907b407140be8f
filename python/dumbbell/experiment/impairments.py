"""What a link may have beyond a rate, a delay and a queue, as experiments write it.

Active queue management and losses in bursts are written as algorithms are: ``codel``,
``fq_codel(target=5 ms, ecn=off)``, ``gilbert-elliott(p=1e-4, r=0.3)``.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell.errors import QuantityError
from dumbbell.experiment.units import (
    PACKETS,
    RATE,
    SIZE,
    TIME,
    Dimension,
    parse_probability,
    shown,
    split,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OPPORTUNITY: Final = 1500
"""Bytes that a line of a trace stands for."""

MOST_STEPS: Final = 1_000_000
"""The greatest number of steps of a time line and of lines of a trace."""

_LATEST: Final = 2**32 - 1
_LEAST_UPDATE: Final = 100_000


@dataclass(frozen=True)
class Option:
    """An option of something that is written as ``name(option=value)``.

    Attributes:
        default: Its value if it is not given, as it would be written.
        canonical: Checks a text and writes it as it is resolved.
        plain: What the simulator takes for it: key and value, from the canonical text.
    """

    default: str
    canonical: Callable[[str], str]
    plain: Callable[[str], dict[str, Any]]


def _quantity(dimension: Dimension, key: str, default: str) -> Option:
    return Option(
        default,
        lambda text: dimension.format(dimension.parse(text)),
        lambda text: {key: dimension.parse(text)},
    )


def _number(key: str, default: str, most: float = 1) -> Option:
    def canonical(text: str) -> str:
        valid = f"write a number from 0 to {most}"
        try:
            number = float(text)
        except ValueError:
            raise QuantityError(f"{shown(text)} is not a number; {valid}") from None
        if not 0 <= number <= most:
            raise QuantityError(f"{shown(text)} is out of range; {valid}")
        return repr(number)

    return Option(default, canonical, lambda text: {key: float(text)})


def _count(key: str, default: str, most: int) -> Option:
    def canonical(text: str) -> str:
        if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= most):
            raise QuantityError(f"{shown(text)} is not a whole number from 1 to {most:,}")
        return str(int(text))

    return Option(default, canonical, lambda text: {key: int(text)})


def _switch(key: str, default: str) -> Option:
    def canonical(text: str) -> str:
        if text not in ("on", "off"):
            raise QuantityError(f"{shown(text)} is not a switch; write on or off")
        return text

    return Option(default, canonical, lambda text: {key: text == "on"})


def _threshold(key: str, default: str) -> Option:
    def dimension(text: str) -> Dimension:
        return PACKETS if split(text, PACKETS)[1] in PACKETS.known_units else SIZE

    def canonical(text: str) -> str:
        kind = dimension(text)
        return kind.format(kind.parse(text))

    def plain(text: str) -> dict[str, Any]:
        kind = dimension(text)
        return {key: kind.parse(text), "unit": "packets" if kind is PACKETS else "bytes"}

    return Option(default, canonical, plain)


def _unless_off(dimension: Dimension, key: str) -> Option:
    quantity = _quantity(dimension, key, "off")
    return Option(
        "off",
        lambda text: text if text == "off" else quantity.canonical(text),
        lambda text: {key: None} if text == "off" else quantity.plain(text),
    )


_CODEL: Final = {
    "target": _quantity(TIME, "target_ns", "5 ms"),
    "interval": _quantity(TIME, "interval_ns", "100 ms"),
    "ecn": _switch("ecn", "on"),
    "ce_threshold": _unless_off(TIME, "ce_threshold_ns"),
}

AQMS: Final[Mapping[str, Mapping[str, Option]]] = {
    "codel": _CODEL,
    "fq_codel": _CODEL
    | {
        "quantum": _quantity(SIZE, "quantum", "1500 B"),
        "queues": _count("queues", "1024", 65_536),
    },
    "pie": {
        "target": _quantity(TIME, "target_ns", "15 ms"),
        "update": _quantity(TIME, "update_ns", "15 ms"),
        "burst": _quantity(TIME, "burst_ns", "150 ms"),
        "alpha": _number("alpha", "0.125", 1000),
        "beta": _number("beta", "1.25", 1000),
        "ecn": _switch("ecn", "on"),
        "ecn_limit": _number("ecn_limit", "0.1"),
    },
    "red": {
        "min": _threshold("min", "5 packets"),
        "max": _threshold("max", "15 packets"),
        "probability": _number("probability", "0.1"),
        "weight": _number("weight", "0.002"),
        "gentle": _switch("gentle", "on"),
        "ecn": _switch("ecn", "on"),
        "hard_drop": _switch("hard_drop", "on"),
    },
}
"""Active queue managements: RFC 8289, RFC 8290, RFC 8033; Floyd and Jacobson, 1993."""

_LOSSES: Final = {
    "gilbert-elliott": {
        "p": _number("p", ""),
        "r": _number("r", ""),
        "bad": _number("bad", "1"),
        "good": _number("good", "0"),
    },
    "periodic": {"every": _count("every", "", 10**18)},
}
"""Losses in bursts, and one every so many packets."""


@dataclass(frozen=True)
class _Call:
    """``name(option=value, ...)`` with every option in its canonical form."""

    name: str
    kind: Mapping[str, Option]
    options: dict[str, str]

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.options.items())})"

    @property
    def plain(self) -> dict[str, Any]:
        parts = (self.kind[key].plain(value) for key, value in self.options.items())
        return {key: value for part in parts for key, value in part.items()}


def _call(text: object, kinds: Mapping[str, Mapping[str, Option]], what: str) -> _Call:
    found = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text) if isinstance(text, str) else None
    if found is None or found[1] not in kinds:
        names = f"NAME is one of {', '.join(kinds)}" if len(kinds) > 1 else f"NAME is {min(kinds)}"
        advice = f"write NAME or NAME(option=value, ...), where {names}"
        raise QuantityError(f"{shown(text)} is not {what}; {advice}")
    name, kind = found[1], kinds[found[1]]
    given = _given(found[2] or "", name, kind)
    options = {}
    for key, option in kind.items():
        value = given.get(key, option.default)
        if not value:
            raise QuantityError(f'{name} lacks its option {key}; write "{name}({key}=..., ...)"')
        try:
            options[key] = option.canonical(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {key}: {error}") from None
    return _Call(name, kind, options)


def _given(text: str, name: str, kind: Mapping[str, Option]) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise QuantityError(f"{name}: {shown(pair)} is not of the form option=value")
        if key not in kind:
            raise QuantityError(f'{name} has no option "{key}"; it has {", ".join(kind)}')
        if key in given:
            raise QuantityError(f"{name}: {key} is given twice; write it once")
        given[key] = value
    return given


def parse_aqm(text: object) -> str:
    """Checks an active queue management, and writes it with all of its options.

    Raises:
        QuantityError: If there is none of that name, or an option of it is wrong.
    """
    return _aqm(text).text


def aqm_scenario(text: object) -> dict[str, Any]:
    """What the simulator takes for an active queue management."""
    aqm = _aqm(text)
    return {aqm.name: aqm.plain}


def _aqm(text: object) -> _Call:
    aqm = _call(text, AQMS, "an active queue management")
    plain = aqm.plain
    if aqm.name == "pie" and plain["update_ns"] < _LEAST_UPDATE:
        raise QuantityError(f"pie: update: less than {TIME.format(_LEAST_UPDATE)}; write more")
    if aqm.name != "red":
        return aqm
    units = {aqm.kind[key].plain(aqm.options[key])["unit"] for key in ("min", "max")}
    if len(units) > 1:
        problem = "min and max are to be both in packets or both in bytes"
        raise QuantityError(f'red: {problem}, such as "red(min=30 kB, max=90 kB)"')
    if plain["min"] > plain["max"]:
        raise QuantityError("red: min is more than max; write at most as much")
    if plain["weight"] == 0:
        raise QuantityError("red: weight: 0 is nothing; write more than that, such as 0.002")
    return aqm


def parse_loss(value: object) -> float | str:
    """Reads a probability, or checks ``gilbert-elliott(p=..., r=...)`` or ``periodic(every=...)``.

    Raises:
        QuantityError: If it is neither.
    """
    if isinstance(value, str) and ("(" in value or value in _LOSSES):
        return _call(value, _LOSSES, "a loss process").text
    try:
        return parse_probability(value)
    except QuantityError as error:
        raise QuantityError(f'{error}, or "gilbert-elliott(p=1e-4, r=0.3)"') from None


def loss_scenario(value: object) -> dict[str, Any]:
    """What the simulator takes for the losses of a link."""
    loss = parse_loss(value)
    if isinstance(loss, float):
        return {"loss": loss}
    process = _call(loss, _LOSSES, "a loss process")
    if process.name == "periodic":
        return {"loss_model": {"periodic": process.plain["every"]}}
    return {"loss_model": {"gilbert_elliott": process.plain}}


@dataclass(frozen=True)
class Reordering:
    """A `share` of packets that comes out `delay` ns late."""

    share: float
    delay: int

    @property
    def text(self) -> str:
        """As experiments write it."""
        return f"{self.share!r} by {TIME.format(self.delay)}"


def parse_reorder(text: object) -> Reordering:
    """Reads ``"1 % by 10 ms"``: such a share of packets comes out so much later.

    Raises:
        QuantityError: If it is not a probability and a time.
    """
    share, by, delay = str(text).partition(" by ")
    if not isinstance(text, str) or not by:
        raise QuantityError(f'{shown(text)} is not a reordering; write it like "1 % by 10 ms"')
    return Reordering(parse_probability(share), TIME.parse(delay))


def parse_rates(steps: object) -> list[tuple[int, int]]:
    """Reads a time line of rates, ``[["0 s", "10 Mbit/s"], ["5 s", "2 Mbit/s"]]``: ns, bit/s.

    Raises:
        QuantityError: If it is not a list of pairs, begins later than 0 s, or goes back in time.
    """
    advice = 'write pairs of time and rate, such as [["0 s", "10 Mbit/s"], ["5 s", "2 Mbit/s"]]'
    line = _parse_line(steps, RATE, "rates", advice)
    if line[0][0] != 0:
        first = TIME.format(line[0][0])
        raise QuantityError(f'the first rate is to be that at "0 s", not "{first}"; {advice}')
    return line


def parse_reroutes(steps: object) -> list[tuple[int, int]]:
    """Reads when packets take a route with another delay, ``[["60 s", "50 ms"]]``: ns, ns.

    Raises:
        QuantityError: If it is not a list of pairs, or goes back in time.
    """
    advice = 'write pairs of time and delay, such as [["60 s", "50 ms"]]'
    return _parse_line(steps, TIME, "delays", advice)


def _parse_line(
    steps: object, dimension: Dimension, what: str, advice: str
) -> list[tuple[int, int]]:
    pairs = steps if isinstance(steps, list) else []
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise QuantityError(f"{shown(steps)} is not a time line of {what}; {advice}")
    line = [(TIME.parse(at, zero=True), dimension.parse(value, zero=True)) for at, value in pairs]
    for (before, _), (at, _) in pairwise(line):
        if at <= before:
            late, early = TIME.format(before), TIME.format(at)
            raise QuantityError(f'"{early}" does not come after "{late}"; times are to increase')
    _check_count(line, "steps")
    return line


def format_reroutes(line: list[tuple[int, int]]) -> list[list[str]]:
    """Writes reroutes so that `parse_reroutes` gives the same again."""
    return [[TIME.format(at), TIME.format(delay)] for at, delay in line]


def format_rates(line: list[tuple[int, int]]) -> list[list[str]]:
    """Writes a time line so that `parse_rates` gives the same again."""
    return [[TIME.format(at), RATE.format(rate)] for at, rate in line]


def parse_trace(trace: object) -> list[int]:
    """Reads a trace in mahimahi's format, or checks its delivery opportunities, ms.

    Raises:
        QuantityError: If the file cannot be read, or they are not whole, decrease or end at 0.
    """
    name = f'"{trace}" ' if isinstance(trace, str) else ""
    times = _read_trace(trace) if isinstance(trace, str) else trace
    valid = "whole numbers of milliseconds that never decrease, the last one above 0 and "
    valid += f"{_LATEST:,} at most"
    if not isinstance(times, list) or not all(type(time) is int for time in times):
        raise QuantityError(f"{shown(trace)} is not a trace; write the name of a file with {valid}")
    for line, (before, time) in enumerate(pairwise([0, *times]), 1):
        if not before <= time <= _LATEST:
            problem = f"holds {time} after {before} in line {line}"
            raise QuantityError(f"{name}{problem}; a trace holds {valid}")
    if not times or times[-1] == 0:
        raise QuantityError(f"{name}holds no time after 0; a trace holds {valid}")
    _check_count(times, "lines")
    return times


def _read_trace(name: str) -> list[int]:
    try:
        lines = Path(name).read_text(encoding="ascii").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise QuantityError(f'"{name}" cannot be read: {reason}') from None
    for number, line in enumerate(lines, 1):
        if not line.strip().isdecimal() or len(line.strip().lstrip("0")) > len(str(_LATEST)):
            problem = f'"{name}" holds {shown(line)} in line {number}'
            valid = f"each line of a trace is a whole number of ms, {_LATEST:,} at most"
            raise QuantityError(f"{problem}; {valid}")
    return [int(line) for line in lines]


def mean_rate(times: list[int]) -> int:
    """The mean rate of a trace, bit/s."""
    return len(times) * OPPORTUNITY * 8 * 1000 // times[-1]


def _check_count(items: list[Any], what: str) -> None:
    if len(items) > MOST_STEPS:
        raise QuantityError(f"there are {len(items):,} {what}; the most is {MOST_STEPS:,}")


def capacity(
    rate: int | None,
    rates: list[tuple[int, int]] | None,
    trace: list[int] | None,
    bucket: int | None,
    begin: float,
    end: float,
) -> float | None:
    """Bits that a link could send from `begin` to `end`, s; None if that is no limit, or none.

    A token bucket is full at 0 s, so from there on its depth counts. How much of it is left at any
    later time depends on what was sent before, and is not counted.

    Args:
        rate: Its rate, bit/s, if it has one.
        rates: A time line of rates, as `parse_rates` gives it, if it has one instead.
        trace: Delivery opportunities, ms, if it has those instead.
        bucket: The depth of its token bucket, bytes, if it has one beside its rate.
        begin: From when on.
        end: Until when.
    """
    if trace is not None:
        bits = trace_capacity(trace, begin, end)
    elif rates is not None:
        bits = line_capacity(rates, begin, end)
    else:
        bits = (rate or 0) * (end - begin) + (8 * bucket if bucket and begin <= 0 else 0)
    return bits or None


def line_capacity(line: list[tuple[int, int]], begin: float, end: float) -> float:
    """Bits that a time line of rates (as `parse_rates` gives it) lets pass between two times, s."""
    starts = [at / 1e9 for at, _ in line]
    ends = [*starts[1:], math.inf]
    return sum(
        rate * max(min(stop, end) - max(start, begin), 0.0)
        for (_, rate), start, stop in zip(line, starts, ends, strict=True)
    )


def trace_capacity(times: list[int], begin: float, end: float) -> float:
    """Bits that a trace (its delivery opportunities, ms) lets pass after one time up to another, s.

    It begins anew after its last time.
    """

    def opportunities(until: float) -> int:
        rounds, rest = divmod(math.floor(until * 1e3 + 1e-6), times[-1])
        return rounds * len(times) + bisect_right(times, rest)

    return 8.0 * OPPORTUNITY * (opportunities(end) - opportunities(begin))
