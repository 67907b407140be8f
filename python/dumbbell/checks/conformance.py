"""Running the test cases of a specification on algorithms.

A case is an experiment and a check of what it recorded, the algorithm's own variables included.
The cases of a specification are a list: `dumbbell.checks.bbr_draft` has those of the BBR draft,
`dumbbell.checks.cubic_rfc` those of RFC 9438. `dumbbell.checks.path_grid` runs them on many paths.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
from polars.exceptions import ColumnNotFoundError

from dumbbell import _core
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import run_each
from dumbbell.experiment.model import stack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from dumbbell.engine.backend import Backend
    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

Verdict = Literal["pass", "fail", "n/a"]
Level = Literal["MUST", "SHOULD", "MAY", "claim"]

_UNSEEDED: Final = {"noq:bbr3": 3}
"""Runs of algorithms whose random numbers do not come from the seed: all must pass a case."""


_RETRIES: Final = 2
"""How often a run with real packets is repeated if the machine was late."""


class NotSeenError(Exception):
    """The event that a case is about did not happen; the case fails with this text."""


@dataclass(frozen=True)
class Wire:
    """What a full packet is to a transport, bytes."""

    counted: int  # what its algorithm counts
    data: int  # what it delivers
    size: int  # on the link


TCP: Final = Wire(1448, 1448, 1500)
QUIC: Final = Wire(1452, 1419, 1480)


@dataclass(frozen=True)
class Path:
    """The path of a case."""

    rate: float = 50e6  # bit/s
    rtt: float = 0.04  # s
    stretch: float = 1.0  # by which all times of the case are longer

    @property
    def sample(self) -> float:
        """The interval of samples, s."""
        return self.rtt / 20


def flow_of(name: str) -> dict[str, Any]:
    """The keys of a flow: "bbr3" is TCP, "bbr3@quinn" ours in a QUIC stack, "quinn:bbr" its own."""
    cc, _, stack = name.rpartition("@")
    stacks = [stack for stack, _, _ in _core.quic_stacks()]
    if stack in stacks and cc:
        return {"cc": cc, "transport": "quic", "stack": stack}
    own = stack_of(name)
    return {"cc": name} | ({"transport": "quic", "stack": own} if own else {})


@dataclass(frozen=True)
class Track:
    """The record of a run's first flow, or a part of it."""

    samples: pl.DataFrame  # columns of the result's series, and one for each of its variables
    result: Result
    path: Path = field(default_factory=Path)
    wire: Wire = TCP

    @classmethod
    def of(cls, result: Result, path: Path | None = None) -> Track:
        """Takes the first flow of the first seed."""
        one, flow = result.of_seed(result.seeds[0]), pl.col("flow") == result.flow_names[0]
        series = one.series.filter(flow)
        inside = one.internals.filter(flow).pivot("name", index="t", values="value")
        inside = inside.fill_null(float("nan"))  # shown, but without a value
        # Of columns that both have, such as min_rtt, the algorithm's counts.
        both = [name for name in inside.columns if name in series.columns and name != "t"]
        samples = series.drop(both)
        if inside.height:
            # The kernel shows them from the connection on.
            samples = samples.join(inside, on="t", how="inner", maintain_order="left")
        wire = QUIC if one.experiment.flows[0].transport == "quic" else TCP
        return cls(samples, one, path or Path(), wire)

    @property
    def bdp(self) -> float:
        """The packets that fill the path."""
        return self.path.rate * self.path.rtt / 8 / self.wire.size

    @property
    def payload(self) -> float:
        """What the algorithm counts of a byte on the link."""
        return self.wire.counted / self.wire.size

    def since(self, time: float) -> Track:
        """The part from a time on, s."""
        return self._part(self.samples.filter(pl.col("t") >= time))

    def between(self, start: float, end: float) -> Track:
        """The part from one time to another, s."""
        return self._part(self.samples.filter(pl.col("t").is_between(start, end)))

    def _part(self, samples: pl.DataFrame) -> Track:
        return replace(self, samples=samples)

    def stays(self, state: int | None = None) -> list[Track]:
        """The stays in a state, or in all of them, in order, as far as samples show."""
        marked = self.samples.with_columns(stay=pl.col("state").rle_id())
        parts = marked.partition_by("stay", maintain_order=True)
        stays = [self._part(part) for part in parts]
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
    setup: Callable[..., Experiment]  # takes a flow's keys, settings and, with a grid, a path
    settings: dict[str, Any]
    check: Callable[[Track], tuple[bool, str]]  # whether the case is passed, and what was seen
    # What the settings of a second experiment differ in, from what the first one recorded: for what
    # depends on when the flow comes into a state. The check looks at that one.
    then: Callable[[Track], dict[str, Any]] | None = None
    is_repeated_later: bool = False  # whether that is after the algorithm has drawn random numbers
    since: float = 0.0  # from when on the check sees samples, s
    needs: tuple[str, ...] = ("state",)  # variables without which it cannot be judged
    # Judges from outside what the kernel shows too little of.
    visible: Callable[[Track], tuple[bool, str]] | None = None
    level: Level = "claim"  # how strongly the specification asks for it
    transports: Collection[str] = ("tcp", "quic")  # that have what the case is about
    unreal: str | None = None  # why it cannot be run with real packets, if it cannot
    grid: Literal["rounds", "seconds"] | None = None  # what its times are in on other paths
    pipe: float = 1.0  # packets that another path has to hold at least


@dataclass(frozen=True)
class CaseResult:
    """The verdict on an algorithm in a case, and what was seen."""

    case: Case
    cc: str
    verdict: Verdict
    seen: str
    path: Path = field(default_factory=Path)
    experiment: Experiment | None = None  # None if nothing was run


@dataclass(frozen=True)
class Trial:
    """A case to be run on an algorithm and a path."""

    case: Case
    cc: str
    path: Path = field(default_factory=Path)
    settings: dict[str, Any] = field(default_factory=dict)  # of a second experiment

    def experiment(self) -> Experiment:
        """What is run."""
        settings = self.case.settings | self.settings
        if self.case.grid:
            settings["path"] = self.path
        one = self.case.setup(flow_of(self.cc), **settings)
        return one.replace(seeds=_UNSEEDED.get(self.cc, 1))


def examine(
    cases: Sequence[Case],
    algorithms: Sequence[str],
    version: Callable[[str], int],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    progress: Progress = silent,
) -> list[CaseResult]:
    """Runs cases on algorithms; returns a result for every case and algorithm, case by case.

    `version` says which version of the specified algorithm one is. A case about other versions, or
    about variables that the algorithm does not show, is ``"n/a"``.
    """
    pairs = [(case, cc) for case in cases for cc in algorithms]
    about = [(case, cc) for case, cc in pairs if why_not(case, cc, version) is None]
    if backend == "linux":
        about = [(case, cc) for case, cc in about if case.unreal is None]
    trials = [Trial(case, cc) for case, cc in about]
    done = run_trials(trials, jobs=jobs, backend=backend, progress=progress)
    found = {(one.case, one.cc): one for one in done}
    return [
        found.get((case, cc))
        or CaseResult(case, cc, "n/a", why_not(case, cc, version) or case.unreal or "")
        for case, cc in pairs
    ]


def why_not(case: Case, cc: str, version: Callable[[str], int]) -> str | None:
    """Why a case does not apply to an algorithm, if it does not."""
    transport = flow_of(cc).get("transport", "tcp")
    if version(cc) not in case.versions:
        return "about other versions"
    if transport not in case.transports:
        return f"{transport.upper()} does not have what the case is about"
    if case.is_repeated_later and cc in _UNSEEDED:
        return "its runs cannot be repeated, as its random numbers cannot be seeded"
    return None


def run_trials(
    trials: Sequence[Trial],
    *,
    jobs: int | None = None,
    backend: Backend = "simulator",
    progress: Progress = silent,
) -> list[CaseResult]:
    """Runs trials; returns their results in order. A run is judged and forgotten."""
    done: dict[int, CaseResult] = {}
    again: dict[int, Trial] = {}
    for number, trial, result in _run(list(enumerate(trials)), jobs, backend, progress, 0.0):
        done[number] = _judge(trial, result)
        track = Track.of(result, trial.path)
        # What is not seen in the first run, the check will miss too.
        with suppress(NotSeenError, ColumnNotFoundError):
            if trial.case.then is not None and track.has("state"):
                again[number] = replace(trial, settings=trial.case.then(track))
    for number, trial, result in _run(list(again.items()), jobs, backend, progress, 0.5):
        done[number] = _judge(trial, result)
    return [done[number] for number in range(len(trials))]


def _run(
    trials: list[tuple[int, Trial]],
    jobs: int | None,
    backend: Backend,
    progress: Progress,
    before: float,
) -> Iterator[tuple[int, Trial, Result]]:
    results = run_each(
        [trial.experiment() for _, trial in trials],
        jobs=jobs,
        backend=backend,
        retry_invalid=_RETRIES,
        progress=lambda step, done: progress(step, before + done / 2),
    )
    for (number, trial), result in zip(trials, results, strict=True):
        yield number, trial, result


def _judge(trial: Trial, result: Result) -> CaseResult:
    """The first verdict that is not a pass, of all runs."""
    verdicts: list[tuple[Verdict, str]] = []
    for seed in result.seeds:
        track = Track.of(result.of_seed(seed), trial.path)
        verdicts.append(_verdict(trial.case, track))
    number, (verdict, seen) = next(
        ((n, one) for n, one in enumerate(verdicts) if one[0] != "pass"), (0, verdicts[0])
    )
    if len(verdicts) > 1:
        passed = sum(one == "pass" for one, _ in verdicts)
        seen += f" (run {number + 1}; {passed} of {len(verdicts)} runs pass)"
    return CaseResult(trial.case, trial.cc, verdict, seen, trial.path, trial.experiment())


def _verdict(case: Case, track: Track) -> tuple[Verdict, str]:
    if invalid := track.result.invalid_reasons:
        return "n/a", f"the machine was late: {'; '.join(invalid)}"
    verdict, seen = _checked(case, case.check, case.needs, track)
    if verdict == "n/a" and case.visible and track.result.meta["backend"] == "linux":
        return _checked(case, case.visible, (), track)
    return verdict, seen


def _checked(
    case: Case,
    check: Callable[[Track], tuple[bool, str]],
    needs: Sequence[str],
    track: Track,
) -> tuple[Verdict, str]:
    if missing := next((name for name in needs if not track.has(name)), None):
        return "n/a", f"the algorithm shows no {missing}"
    try:
        passed, seen = check(track.since(case.since * track.path.stretch))
    except NotSeenError as error:
        return "fail", str(error)
    except ColumnNotFoundError as error:
        missing = str(error).split('"')[1]
        return "n/a", f"the algorithm shows no {missing}"
    if not passed and case.level == "MAY":
        return "n/a", f"optional (MAY): {seen}"
    return "pass" if passed else "fail", seen
