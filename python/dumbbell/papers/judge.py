"""Whether the runs confirm a claim, and whether more of them are needed to say so.

The check of a claim is a statement about medians. It is made of the medians of the runs, and again
of `REDRAWS` sets of medians that other runs of the same experiments could have had. The claim is
confirmed if the check holds in nearly all of them, not confirmed if it holds in nearly none, and
inconclusive otherwise: then the interval of what decides includes both. "Nearly" is the confidence
of the intervals, see `dumbbell.metrics.sequential`. A check that asks for no median is the same in
every redraw: then the runs decide it as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import numpy as np

from dumbbell.metrics import intervals, sequential
from dumbbell.metrics.intervals import Estimate
from dumbbell.papers.outcome import Judgement, Verdict, VerdictName
from dumbbell.papers.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Check = Callable[[Runs], Verdict]
    Choice = Callable[[str, Sequence[float | None]], float | None]

REDRAWS: Final = 500
_FEW_REDRAWS: Final = 100
NEAR: Final = 0.2  # how far from 1 a ratio of measured to published may be to count as near


def judge(check: Check, runs: Runs) -> Judgement:
    """Whether the runs confirm what a function of ``paper.py`` checks."""
    runs = replace(runs, asked=set())
    said = check(runs)
    counts = sorted(runs.count(name) for name in runs.asked)
    fewest, most = (counts[0], counts[-1]) if counts else (0, 0)
    single, support, decided = None, None, None
    if fewest > 1:
        chosen = [_Chosen.of(runs, _single(place)) for place in range(fewest)]
        held = [check(one).holds for one in chosen]
        is_repeated = any(one.medians for one in chosen)
        single = (sum(held), fewest) if is_repeated else None
        if fewest >= sequential.FIRST:
            support = _support(check, runs) if is_repeated else None
            decided = support if is_repeated else float(said.holds)
    confidence = max((runs.confidence.get(name, 0.95) for name in runs.asked), default=0.95)
    return Judgement(
        _verdict(decided, confidence),
        said.evidence,
        support,
        single,
        f"{fewest} to {most} runs" if fewest < most else f"{most} run{'s' if most != 1 else ''}",
        frozenset(runs.asked),
    )


def _support(check: Check, runs: Runs) -> float | None:
    """The share of redraws in which a check holds; None if there are too few runs to say so."""
    redraw = _Redraws()
    redrawn = [check(_Chosen.of(runs, redraw.at(place))).holds for place in range(REDRAWS)]
    return None if redraw.is_too_few else float(np.mean(redrawn))


def deciding(check: Check, runs: Runs, experiments: Collection[str]) -> set[str]:
    """The experiments whose runs keep a claim open: a redraw of one alone changes the check.

    All of them, if none does so alone.
    """
    redraw, found = _Redraws(), set()
    for name in experiments:
        chosen = (_Chosen.of(runs, redraw.of_one(name, place)) for place in range(_FEW_REDRAWS))
        outcomes = {check(one).holds for one in chosen}
        found |= {name} if len(outcomes) > 1 else set()
    return found or set(experiments)


def _verdict(support: float | None, confidence: float) -> VerdictName:
    tail = (1 - confidence) / 2
    if support is None or tail < support < 1 - tail:
        return "inconclusive"
    return "confirmed" if support > tail else "not confirmed"


def is_near(measured: Estimate, published: float, runs: int) -> bool | None:
    """Whether a number is within `NEAR` of the published one; None if its interval says neither.

    A median beyond the limit of observation is above what is near. `runs` that are too few for a
    bootstrap say nothing of what needs one.
    """
    needs_bootstrap = None in measured.runs or not measured.runs
    is_unknown = measured.value is None and measured.limit is None and not measured.runs
    if runs < sequential.FIRST or is_unknown:
        return None
    if needs_bootstrap and runs < intervals.BOOTSTRAP_FROM:
        return None
    low, high = (math.inf if end is None else end for end in (measured.low, measured.high))
    floor, ceiling = sorted((published * (1 - NEAR), published * (1 + NEAR)))
    if floor <= low and high <= ceiling:
        return True
    return False if low > ceiling or high < floor else None


@dataclass(frozen=True)
class _Chosen(Runs):
    """Runs of whose values one is chosen, or a value in their place, where a median is asked."""

    choose: Choice = lambda _experiment, values: values[0]
    medians: list[str] = field(default_factory=list)  # the experiments of those that were asked

    @classmethod
    def of(cls, runs: Runs, choose: Choice) -> _Chosen:
        same = {one.name: getattr(runs, one.name) for one in fields(runs)}
        return cls(**same | {"choose": choose})

    def median(
        self,
        experiment: str,
        metric: str = "throughput",
        *,
        limit: float | None = None,
        **options: Any,
    ) -> Estimate:
        self.medians.append(experiment)
        chosen = self.choose(experiment, self.values(experiment, metric, **options))
        return Estimate(chosen, chosen, chosen, (chosen,), limit)


def _single(place: int) -> Choice:
    """What a paper that ran once would have seen: one run of each experiment."""
    return lambda _experiment, values: values[place]


class _Redraws:
    """Medians that other runs could have had; all quantities of an experiment vary together."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[str, tuple[float | None, ...]], intervals.Numbers] = {}
        self.is_too_few = False
        """Whether there are censored runs, too few for a bootstrap."""

    def at(self, place: int) -> Choice:
        """The medians of one redraw."""

        def choose(experiment: str, values: Sequence[float | None]) -> float | None:
            key = (experiment, tuple(values))
            if key not in self._drawn:
                self.is_too_few |= None in values and len(values) < intervals.BOOTSTRAP_FROM
                stream = crc32(experiment.encode())
                self._drawn[key] = intervals.redraws(values, REDRAWS, stream)
            return _seen(self._drawn[key][place])

        return choose

    def of_one(self, name: str, place: int) -> Choice:
        """The medians of one redraw of an experiment, and the medians of the others' runs."""
        redrawn = self.at(place)

        def choose(experiment: str, values: Sequence[float | None]) -> float | None:
            return redrawn(experiment, values) if experiment == name else _median(tuple(values))

        return choose


@cache
def _median(values: tuple[float | None, ...]) -> float | None:
    return _seen(np.median([math.inf if value is None else value for value in values]))


def _seen(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
