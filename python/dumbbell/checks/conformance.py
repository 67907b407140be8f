"""Running the test cases of a specification on algorithms.

A case is an experiment and a check of what it recorded, the algorithm's own variables included.
The cases of a specification are a list; `dumbbell.checks.bbr_draft` has those of the BBR draft.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from polars.exceptions import ColumnNotFoundError

from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

Verdict = Literal["pass", "fail", "n/a"]


class NotSeenError(Exception):
    """The event that a case is about did not happen; the case fails with this text."""


@dataclass(frozen=True)
class Track:
    """The record of a run's first flow, or a part of it."""

    samples: pl.DataFrame  # columns of the result's series, and one for each of its variables
    result: Result

    @classmethod
    def of(cls, result: Result) -> Track:
        """Takes the first flow of the first seed."""
        one, flow = result.of_seed(result.seeds[0]), pl.col("flow") == result.flow_names[0]
        series = one.series.filter(flow)
        inside = one.internals.filter(flow).pivot("name", index="t", values="value")
        inside = inside.fill_null(float("nan"))  # shown, but without a value
        # Of columns that both have, such as min_rtt, the algorithm's counts.
        both = [name for name in inside.columns if name in series.columns and name != "t"]
        return cls(series.drop(both).join(inside, on="t", maintain_order="left"), one)

    def since(self, time: float) -> Track:
        """The part from a time on, s."""
        return Track(self.samples.filter(pl.col("t") >= time), self.result)

    def stays(self, state: int | None = None) -> list[Track]:
        """The stays in a state, or in all of them, in order, as far as samples show."""
        marked = self.samples.with_columns(stay=pl.col("state").rle_id())
        parts = marked.partition_by("stay", maintain_order=True)
        stays = [Track(part, self.result) for part in parts]
        return [stay for stay in stays if state is None or stay.state == state]

    @property
    def state(self) -> int:
        """The state of a stay."""
        return int(self.first("state"))

    @property
    def began(self) -> float:
        """The time of the first sample, s."""
        return self.first("t")

    def first(self, variable: str) -> float:
        """A variable at the beginning."""
        return float(self.samples[variable][0])

    def last(self, variable: str) -> float:
        """A variable at the end."""
        return float(self.samples[variable][-1])

    def growth(self, variable: str) -> float:
        """The difference of a variable between the beginning and the end."""
        return self.last(variable) - self.first(variable)

    def max(self, variable: str) -> float:
        """The maximum of a variable."""
        return float(self.samples[variable].max())  # type: ignore[arg-type]

    def min(self, variable: str) -> float:
        """The minimum of a variable."""
        return float(self.samples[variable].min())  # type: ignore[arg-type]

    def has(self, variable: str) -> bool:
        """Whether the algorithm shows such a variable, and never NaN."""
        shown = variable in self.samples.columns
        return shown and not self.samples[variable].is_nan().any()

    def throughput(self) -> float:
        """Payload delivered over these samples, bit/s."""
        return 8 * self.growth("delivered") / self.growth("t")


@dataclass(frozen=True, eq=False)
class Case:
    """A test case: an experiment for every algorithm, and a check of what its first flow did."""

    section: str  # where the specification has it
    title: str
    versions: Collection[int]  # of the algorithm that the case is about
    setup: Callable[..., Experiment]  # takes an algorithm and the settings
    settings: dict[str, Any]
    check: Callable[[Track], tuple[bool, str]]  # whether the case is passed, and what was seen
    # What the settings of a second experiment differ in, from what the first one recorded: for what
    # depends on when the flow comes into a state. The check looks at that one.
    then: Callable[[Track], dict[str, Any]] | None = None
    since: float = 0.0  # from when on the check sees samples, s


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
    """Runs cases on algorithms; returns a result for every case and algorithm, case by case.

    `version` says which version of the specified algorithm one is. A case about other versions, or
    about variables that the algorithm does not show, is ``"n/a"``.
    """
    tracks: dict[tuple[Case, str], Track] = {}

    def run(experiments: dict[tuple[Case, str], Experiment], before: float) -> None:
        results = run_all(
            list(experiments.values()),
            jobs=jobs,
            progress=lambda step, done: progress(step, before + done / 2),
        )
        tracks.update(zip(experiments, map(Track.of, results), strict=True))

    pairs = [(case, cc) for case in cases for cc in algorithms]
    about = [(case, cc) for case, cc in pairs if version(cc) in case.versions]
    run({(case, cc): case.setup(cc, **case.settings) for case, cc in about}, 0.0)
    again = {}
    for (case, cc), track in tracks.items():
        # What is not seen in the first run, the check will miss too.
        with suppress(NotSeenError, ColumnNotFoundError):
            if case.then is not None and track.has("state"):
                again[case, cc] = case.setup(cc, **(case.settings | case.then(track)))
    run(again, 0.5)
    return [_judge(case, cc, tracks.get((case, cc))) for case, cc in pairs]


def _judge(case: Case, cc: str, track: Track | None) -> CaseResult:
    if track is None:
        return CaseResult(case, cc, "n/a", "about other versions")
    if not track.has("state"):
        return CaseResult(case, cc, "n/a", "the algorithm shows no state")
    try:
        passed, seen = case.check(track.since(case.since))
    except NotSeenError as error:
        return CaseResult(case, cc, "fail", str(error))
    except ColumnNotFoundError as error:
        missing = str(error).split('"')[1]
        return CaseResult(case, cc, "n/a", f"the algorithm shows no {missing}")
    return CaseResult(case, cc, "pass" if passed else "fail", seen)
