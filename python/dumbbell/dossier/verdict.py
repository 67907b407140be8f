"""From the values of a measure to a verdict.

Paths are drawn at random from stated ranges. The share of paths on which a measure exceeds its
limit lies between two exact binomial bounds (Clopper and Pearson, 1934), each of which is wrong in
at most 5 % of such draws of paths, however few the paths. All dossiers have the same draw unless
another seed is asked for, and an algorithm must not be tuned on it. There is evidence for an
algorithm if the upper bound is below `TOLERATED`, which takes 29 paths, and evidence against it if
the lower bound is above, which takes 2. These words are chosen on purpose: RFC 9743 says that its
criteria are no checklist.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["for", "against", "inconclusive", "not tested", "reference"]

Comparison = Literal["better", "worse", "both", "open"]

TOLERATED: Final = 0.1
"""The share of paths on which a limit may be exceeded. A tenth is ours: an algorithm for the whole
Internet may be unsuited to some paths, but not to a tenth of them."""

FEWEST: Final = 29
"""With fewer paths than these there is no evidence for an algorithm: its upper bound is above
`TOLERATED` though no path is beyond a limit."""

RISK: Final = 0.05
"""How often a bound of a share may be wrong. Only one of the two matters for a verdict."""

WORDS: Final[dict[Verdict, str]] = {
    "for": "evidence for",
    "against": "evidence against",
    "inconclusive": "open",
    "not tested": "not tested",
    "reference": "what others are compared with",
}
"""How a verdict is written."""

MARKS: Final[dict[Verdict, str]] = {
    "for": "for",
    "against": "against",
    "inconclusive": "open",
    "not tested": "—",
    "reference": "reference",
}
"""How a verdict is written in a table whose heading says what it is about."""


BESIDE: Final[dict[Comparison, str]] = {
    "better": "better",
    "worse": "worse",
    "both": "better, worse",
    "open": "open",
}
"""How a comparison is written in a table."""


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
        """The lower bound of the share of all paths."""
        return bounds(self.beyond, self.paths, RISK)[0]

    @property
    def high(self) -> float:
        """The upper bound of the share of all paths."""
        return bounds(self.beyond, self.paths, RISK)[1]

    @property
    def verdict(self) -> Verdict:
        """What this is evidence for."""
        if self.paths == 0:
            return "not tested"
        if self.high < TOLERATED:
            return "for"
        return "against" if self.low > TOLERATED else "inconclusive"


def largest(shares: Iterable[Share], verdict: Verdict) -> Share | None:
    """The largest of the shares that are evidence for this verdict; None without one."""
    having = (share for share in shares if share.paths and share.verdict == verdict)
    return max(having, key=lambda share: share.value, default=None)


@dataclass(frozen=True)
class Pair:
    """An algorithm beside a standard one on the same paths.

    Attributes:
        worse: The number of paths on which it alone is beyond the limit.
        better: The number of those on which the standard one alone is.
    """

    worse: int
    better: int

    @classmethod
    def of(cls, own: Sequence[float | None], other: Sequence[float | None], limit: float) -> Pair:
        """Counts the values of both, in the same order of paths."""
        beyond = [[value is None or value > limit for value in one] for one in (own, other)]
        both = list(zip(*beyond, strict=True))
        return cls(both.count((True, False)), both.count((False, True)))

    @property
    def p(self) -> float:
        """How likely so uneven a split is if neither is worse: an exact two-sided sign test."""
        count = self.worse + self.better
        tail = sum(comb(count, few) for few in range(min(self.worse, self.better) + 1))
        return min(1.0, 2 * tail / (1 << count))

    def comparison(self, tests: int = 1) -> Comparison:
        """Which is more often beyond the limit, as one of some `tests` (Bonferroni)."""
        if self.p > RISK / tests:
            return "open"
        return "worse" if self.worse > self.better else "better"


def combined(pairs: Sequence[Pair]) -> Comparison:
    """The comparison on a clause: what at least one of its measures shows."""
    found = {pair.comparison(len(pairs)) for pair in pairs} - {"open"}
    return "both" if len(found) > 1 else found.pop() if found else "open"


def bounds(beyond: int, paths: int, risk: float) -> tuple[float, float]:
    """The exact bounds of a share of which `beyond` of `paths` are a sample.

    Each of them is on the wrong side of the share with a probability of at most `risk`.
    """
    from scipy.special import betaincinv  # a tenth of a second

    low = betaincinv(beyond, paths - beyond + 1, risk) if beyond else 0.0
    high = betaincinv(beyond + 1, paths - beyond, 1 - risk) if beyond < paths else 1.0
    return float(low), float(high)


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a clause by those on its measures: one against is enough.

    So "for" errs in at most 5 % of draws, as a measure's does. "Against" does by each measure by
    itself, and by one of many more often: what is against a clause is a measure that is shown.
    """
    found = list(verdicts)
    for verdict in ("against", "not tested", "inconclusive", "for"):
        if verdict in found:
            return verdict
    return "reference" if found else "not tested"
