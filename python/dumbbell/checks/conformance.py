"""Running the test cases of a specification on algorithms.

A case is an experiment and a check of what it recorded, the algorithm's own variables included.
The cases of a specification are a list; `dumbbell.checks.bbr_draft` has those of the BBR draft.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

Verdict = Literal["pass", "fail", "n/a"]


class NotSeenError(Exception):
    """The event that a case is about did not happen; the case fails with this text."""


@dataclass(frozen=True)
class Finding:
    """Whether a case is passed, and what was seen."""

    passed: bool
    seen: str


@dataclass(frozen=True)
class Case:
    """A test case.

    Attributes:
        section: Where the specification has it.
        title: What it is about.
        setup: Makes the experiment for an algorithm. It has one flow, which comes first.
        check: Looks at what was recorded.
        versions: The versions of the algorithm that the case is about.
        then: Makes a second experiment from what the first one recorded, for what depends on when
            the flow comes into a state: up to then it is the same. The check looks at that one.
    """

    section: str
    title: str
    setup: Callable[[str], Experiment]
    check: Callable[[Track], Finding]
    versions: frozenset[int]
    then: Callable[[str, Track], Experiment] | None = None


@dataclass(frozen=True)
class Track:
    """The record of a run's first flow.

    Attributes:
        samples: Columns of the result's series and one for each of the algorithm's variables.
        result: The result.
    """

    samples: pl.DataFrame
    result: Result

    @classmethod
    def of(cls, result: Result) -> Track:
        """Takes the first flow of the first seed."""
        one, flow = result.of_seed(result.seeds[0]), result.flow_names[0]
        series = one.series.filter(pl.col("flow") == flow)
        inside = one.internals.filter(pl.col("flow") == flow).pivot(
            "name", index="t", values="value"
        )
        inside = inside.fill_null(float("nan"))  # shown, but without a value
        # Of columns that both have, such as min_rtt, the algorithm's counts.
        both = [name for name in inside.columns if name in series.columns and name != "t"]
        return cls(series.drop(both).join(inside, on="t", maintain_order="left"), one)

    def between(self, since: float, until: float = float("inf")) -> Track:
        """The samples of a time, s."""
        return Track(self.samples.filter(pl.col("t").is_between(since, until)), self.result)

    def stays(self) -> list[Stay]:
        """The states that were passed through, in order, as far as samples show."""
        if "state" not in self.samples.columns:
            return []
        marked = self.samples.with_columns(stay=pl.col("state").rle_id())
        return [
            Stay(int(part["state"][0]), part["t"][0], part["t"][-1], part)
            for part in marked.partition_by("stay", maintain_order=True)
        ]

    def last(self, variable: str) -> float:
        """A variable at the end."""
        return float(self.samples[variable][-1])

    def has(self, variable: str) -> bool:
        """Whether the algorithm shows such a variable, and never NaN."""
        shown = variable in self.samples.columns
        return shown and not self.samples[variable].is_nan().any()

    def throughput(self) -> float:
        """Payload delivered over these samples, bit/s."""
        first, last = self.samples.row(0, named=True), self.samples.row(-1, named=True)
        return float(8 * (last["delivered"] - first["delivered"]) / (last["t"] - first["t"]))


@dataclass(frozen=True)
class Stay:
    """A stay in a state, from the first to the last sample that shows it, s."""

    state: int
    began: float
    ended: float
    samples: pl.DataFrame


@dataclass(frozen=True)
class CaseResult:
    """The verdict on an algorithm in a case, and what was seen."""

    case: Case
    cc: str
    verdict: Verdict
    seen: str


def examine(
    cases: Sequence[Case],
    algorithms: Sequence[str],
    version: Callable[[str], int],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> list[CaseResult]:
    """Runs cases on algorithms.

    Args:
        cases: The cases.
        algorithms: The algorithms, as an experiment names them.
        version: Which version of the specified algorithm one is.
        jobs: How many simulations to run at once; one a processor if not given.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Returns:
        A result for every case and algorithm, case by case. A case about other versions, or about
        variables that the algorithm does not show, is ``"n/a"``.
    """
    pairs = [(case, cc) for case in cases for cc in algorithms if version(cc) in case.versions]
    first = run_all(
        [case.setup(cc) for case, cc in pairs],
        jobs=jobs,
        progress=lambda step, done: progress(step, done / 2),
    )
    tracks = {pair: Track.of(result) for pair, result in zip(pairs, first, strict=True)}
    again: list[tuple[tuple[Case, str], Experiment]] = []
    for pair in pairs:
        # What is not seen in the first run, the check will miss too.
        with suppress(NotSeenError, *_NOT_SHOWN):
            if pair[0].then is not None and tracks[pair].has("state"):
                again.append((pair, pair[0].then(pair[1], tracks[pair])))
    second = run_all(
        [experiment for _, experiment in again],
        jobs=jobs,
        progress=lambda step, done: progress(step, 0.5 + done / 2),
    )
    tracks |= {pair: Track.of(result) for (pair, _), result in zip(again, second, strict=True)}
    return [_judge(case, cc, tracks.get((case, cc))) for case in cases for cc in algorithms]


_NOT_SHOWN: Final = (pl.exceptions.ColumnNotFoundError, KeyError)
"""What reading a variable raises that the algorithm does not show."""


def _judge(case: Case, cc: str, track: Track | None) -> CaseResult:
    if track is None:
        return CaseResult(case, cc, "n/a", "about other versions")
    if not track.has("state"):
        return CaseResult(case, cc, "n/a", "the algorithm shows no state")
    try:
        found = case.check(track)
    except NotSeenError as error:
        return CaseResult(case, cc, "fail", str(error))
    except _NOT_SHOWN as error:
        missing = str(error).partition("\n")[0].strip("'\"")
        return CaseResult(case, cc, "n/a", f"the algorithm shows no {missing}")
    return CaseResult(case, cc, "pass" if found.passed else "fail", found.seen)
