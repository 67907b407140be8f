"""From the values of a measure to a verdict.

Paths are drawn at random from stated ranges. The share of paths on which a measure exceeds its
limit is known up to its Wilson interval (Wilson, 1927; 95 %). There is evidence for an algorithm if
this share is surely below `TOLERATED`, and evidence against it if the share is surely above. These
words are chosen on purpose: RFC 9743 says that its criteria are no checklist.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["for", "against", "inconclusive", "not tested"]

TOLERATED: Final = 0.1
"""The share of paths on which a limit may be exceeded. A tenth is ours: an algorithm for the whole
Internet may be unsuited to some paths, but not to a tenth of them."""

_Z: Final = 1.959963984540054  # the 97.5 % quantile of the normal distribution

WORDS: Final[dict[Verdict, str]] = {
    "for": "evidence for",
    "against": "evidence against",
    "inconclusive": "open",
    "not tested": "not tested",
}
"""How a verdict is written."""

MARKS: Final[dict[Verdict, str]] = {
    "for": "+ for",
    "against": "\N{MINUS SIGN} against",
    "inconclusive": "open",
    "not tested": "—",
}
"""How a verdict is written in a table whose heading says what it is about."""


@dataclass(frozen=True)
class Share:
    """How many paths are beyond the limit, and what share of all paths that may be.

    Attributes:
        beyond: The number of paths beyond the limit.
        paths: The number of paths.
    """

    beyond: int
    paths: int

    @classmethod
    def of(cls, values: Sequence[float | None], limit: float) -> Share:
        """Counts; a path without a value is beyond every limit."""
        return cls(sum(value is None or value > limit for value in values), len(values))

    @property
    def value(self) -> float:
        """The share of the paths that were run."""
        return self.beyond / self.paths

    @property
    def low(self) -> float:
        """Where the Wilson interval begins."""
        return self._ends()[0]

    @property
    def high(self) -> float:
        """Where the Wilson interval ends."""
        return self._ends()[1]

    @property
    def verdict(self) -> Verdict:
        """What this is evidence for."""
        if self.paths == 0:
            return "not tested"
        if self.high < TOLERATED:
            return "for"
        return "against" if self.low > TOLERATED else "inconclusive"

    def _ends(self) -> tuple[float, float]:
        n, p = self.paths, self.value
        middle = p + _Z * _Z / (2 * n)
        half = _Z * sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        scale = 1 + _Z * _Z / n
        # At 0 and 1 the ends are exact, but for rounding.
        low = 0.0 if self.beyond == 0 else (middle - half) / scale
        high = 1.0 if self.beyond == n else (middle + half) / scale
        return low, high


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a clause by those on its measures: one against is enough."""
    found = list(verdicts)
    for verdict in ("against", "not tested", "inconclusive"):
        if verdict in found:
            return verdict
    return "for" if found else "not tested"
