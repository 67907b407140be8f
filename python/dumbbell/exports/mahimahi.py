"""Links as traces of mahimahi (Netravali et al., USENIX ATC 2015).

A line of a trace is a time in whole milliseconds at which 1500 bytes may leave; the last time is
the length of the trace, after which it begins anew.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Final

import numpy as np

from dumbbell.experiment.capacity import OPPORTUNITY, line_capacity, parse_rates
from dumbbell.experiment.quantities import RATE, TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dumbbell.experiment.model import Link

_BITS: Final = 8 * OPPORTUNITY
_LONGEST: Final = 1000
"""A constant rate is repeated after this at the latest, ms."""


def text(link: Link, duration: str) -> str:
    """A link's rate as a trace; one that is a trace is written as it is.

    The rate is met exactly over the length of the trace, or to one opportunity in a second where a
    constant rate is no whole number of them. A time line of rates lasts as long as the experiment;
    one that ends in an outage has one opportunity more, at its end.

    Args:
        link: A link with a rate.
        duration: Of the experiment.
    """
    return "".join(f"{time}\n" for time in _times(link, duration))


def _times(link: Link, duration: str) -> list[int]:
    if isinstance(link.trace, list):
        return link.trace
    if link.rates is not None:
        line = parse_rates(link.rates)
        length = -(-TIME.parse(duration) // 10**6)
        grown = [line_capacity(line, 0.0, ms / 1e3) for ms in range(length + 1)]
        return _opportunities(np.array(grown))
    rate = RATE.parse(link.rate or "")
    length = min(_BITS * 1000 // gcd(rate, _BITS * 1000), _LONGEST)
    return _opportunities(np.arange(length + 1) * rate / 1000)


def _opportunities(bits: NDArray[np.float64]) -> list[int]:
    """At the end of every ms as many as have become due, by the bits that could leave by then.

    A trace is as long as its last time says, so that there is one at the end even in an outage.
    """
    length = len(bits) - 1
    due = np.floor(bits / _BITS + 1e-9).astype(np.int64)
    times: list[int] = np.repeat(np.arange(1, length + 1), np.diff(due)).tolist()
    return times if times and times[-1] == length else [*times, length]
