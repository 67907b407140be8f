"""How many runs decide a question: a group-sequential rule, fixed before any result is seen.

An experiment has `FIRST` runs, then twice as many at each *look*, until its question is decided or
its maximum is reached. Each look would err in 5 % of cases with a 95 % interval, and all looks
together more often. Therefore every look uses the same wider interval, chosen so that all of them
together err in 5 %: Pocock's boundary (Biometrika 64 (2), 1977; Jennison and Turnbull, "Group
Sequential Methods", 2000, section 2.4), here for groups that double. Such intervals are *repeated
confidence intervals*: they cover the true value in 95 % of cases at whichever look one stops
(Jennison and Turnbull, J. R. Statist. Soc. B 51 (3), 1989).

The boundary is exact for normal runs with a known variance. `docs/explanation/statistics.md` has
the coverage that was measured with Student's t, also for skewed runs.
"""

from __future__ import annotations

from typing import Final

FIRST: Final = 3
"""The runs at the first look."""

_BOUNDARIES: Final = (1.96, 2.1783, 2.3118, 2.4085, 2.4842, 2.5463, 2.5987, 2.6439)
"""The normal deviate that |Z| exceeds at any of 1, 2, ... looks in 5 % of cases."""


def looks(maximum: int, first: int = FIRST) -> list[int]:
    """The numbers of runs at which a question is looked at: 3, 6, 12, ... up to `maximum`.

    Raises:
        ValueError: If there would be more looks than `boundary` knows.
    """
    counts = [min(first, maximum)]
    while counts[-1] < maximum:
        counts.append(min(2 * counts[-1], maximum))
    if len(counts) > len(_BOUNDARIES):
        raise ValueError(f"at most {first * 2 ** (len(_BOUNDARIES) - 1)} runs, not {maximum}")
    return counts


def confidence(maximum: int, first: int = FIRST) -> float:
    """The confidence of the interval at each look, so that all looks together have 95 %."""
    from scipy.special import ndtr  # half a second that other commands do not need

    return float(2 * ndtr(_BOUNDARIES[len(looks(maximum, first)) - 1]) - 1)
