"""Bits that a link could carry: of a constant rate, a time line of rates, a trace."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Final

from dumbbell import _core
from dumbbell.experiment.quantities import as_json, checked

OPPORTUNITY: Final = 1500  # bytes that a line of a trace stands for


def parse_rates(steps: object) -> list[tuple[int, int]]:
    """Reads rates over time, ``[["0 s", "10 Mbit/s"], ["5 s", "2 Mbit/s"]]``: ns, bit/s."""
    return checked(_core.parse_rates, as_json(steps))


def capacity(
    rate: int | None,
    rates: list[tuple[int, int]] | None,
    trace: list[int] | None,
    bucket: int | None,
    begin: float,
    end: float,
) -> float | None:
    """Bits that a link could send from `begin` to `end`, s; None if that is no limit, or none.

    It has a `rate` (bit/s) and perhaps a token `bucket` (bytes), or a time line of `rates` (see
    `parse_rates`), or a `trace` (see `trace_capacity`). A token bucket is full at 0 s, so from
    there on its depth counts. How much of it is left at any later time depends on what was sent
    before, and is not counted.
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
    steps = pairwise([*((at / 1e9, rate) for at, rate in line), (math.inf, 0)])
    return sum(
        rate * max(min(stop, end) - max(start, begin), 0.0) for (start, rate), (stop, _) in steps
    )


def trace_capacity(times: list[int], begin: float, end: float) -> float:
    """Bits that a trace (its delivery opportunities, ms) lets pass after one time up to another, s.

    It begins anew after its last time.
    """

    def opportunities(until: float) -> int:
        rounds, rest = divmod(math.floor(until * 1e3 + 1e-6), times[-1])
        return rounds * len(times) + bisect_right(times, rest)

    return 8.0 * OPPORTUNITY * (opportunities(end) - opportunities(begin))
