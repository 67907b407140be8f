"""What a reproduction found: numbers and claims beside the published ones, figures, sections.

The functions say verdicts in words: how many claims are confirmed, and what a page says first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.display import Table
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import FigureSpec, Paper, PublishedClaim, PublishedNumber, Settings
    from dumbbell.papers.runs import Runs
    from dumbbell.papers.testbed import TestbedNumber, TestbedRuns
    from dumbbell.report.result import ResultPage

    Measured = Mapping[str, Estimate]
    """The numbers of a paper as measured, by their ids."""


VerdictName = Literal["confirmed", "not confirmed", "inconclusive", "not measured"]
VERDICTS: Final[tuple[VerdictName, ...]] = get_args(VerdictName)
"""What may be said of a claim: *inconclusive* if the runs leave both open, *not measured* if there
are none."""

MARKS: Final[dict[VerdictName, str]] = {
    "confirmed": "✓",
    "not confirmed": "≠",
    "inconclusive": "?",
    "not measured": "–",  # noqa: RUF001
}
"""The sign before each verdict, so that colour is not needed to tell verdicts apart."""


@dataclass(frozen=True)
class Verdict:
    """Whether the check of a claim holds, and what was measured to say so."""

    holds: bool
    evidence: str


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim, in the simulator or in Linux."""

    verdict: VerdictName  # whether the claim is confirmed
    evidence: str = ""  # what was measured, in one or two sentences; empty if nothing was
    # The share (0 to 1) of redrawn medians for which the check holds; None with fewer than three
    # runs, or if it asks for no median.
    support: float | None = None
    # In how many of how many single runs the check holds, as a paper that ran once would have seen
    # it; None of one run, or if it asks for no median.
    single: tuple[int, int] | None = None
    runs: str = ""  # how many runs the experiments have: ``"3 to 24 runs"``
    asked: frozenset[str] = frozenset()  # the ids of the experiments
    invalid: tuple[str, ...] = ()  # those of which all runs are invalid

    def as_json(self) -> dict[str, Any]:
        """The judgement as it stands in ``results.json``."""
        return {
            "verdict": self.verdict,
            "support": self.support,
            "single_runs": self.single,
            "runs": self.runs,
            "evidence": self.evidence,
        }


NOT_MEASURED: Final = Judgement("not measured")


@dataclass(frozen=True)
class LinuxSource:
    """Where the runs with real packets come from: kernel, date of the runs, and one sentence."""

    kernel: str
    date: str = ""
    note: str = ""


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a paper, and how it is drawn."""

    spec: FigureSpec
    draw: Callable[[Runs], Figure] = field(repr=False)
    experiments: tuple[str, ...] = ()  # ids of those that it needs; of extensions, of templates

    @property
    def id(self) -> str:
        """Its name, such as ``2a``."""
        return self.spec.id


@dataclass(frozen=True)
class Section:
    """A part of the report: paragraphs, tables, then figures by their id."""

    title: str
    text: list[str]
    tables: list[Table]
    figures: list[str]


@dataclass(frozen=True)
class Number:
    """A published number beside the measured one."""

    spec: PublishedNumber
    measured: Estimate
    settings: Settings
    testbed: TestbedNumber | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over published; None where nothing could be measured, or 0 is published."""
        measured, published = self.measured.value, self.spec.published
        return None if measured is None or published == 0 else measured / published

    @property
    def quantity(self) -> str:
        """What was measured, in how many runs, and how many of them are beyond the limit."""
        runs = len(self.measured.runs)
        if not runs:
            return self.spec.quantity
        seen = f"median of {runs} runs" if runs > 1 else "1 run"
        missed = f", {self.missed}" if self.missed else ""
        return f"{self.spec.quantity} ({seen}{missed})"

    @property
    def missed(self) -> str:
        """How many runs are beyond the limit of observation, if there are any."""
        measured = self.measured
        if not measured.censored:
            return ""
        runs, limit = len(measured.runs), measured.limit
        return f"{measured.censored} of {runs} not within {limit:g} {self.spec.unit}"

    def as_json(self) -> dict[str, Any]:
        """The number as it stands in ``results.json``; null is beyond what was observed."""
        return {
            "id": self.spec.id,
            "where": self.spec.where,
            "quantity": self.quantity,
            "unit": self.spec.unit,
            "published": self.spec.published,
            "measured": self.measured.value,
            "low": self.measured.low,
            "high": self.measured.high,
            "ratio": self.ratio,
            "settings": self.settings,
        } | ({"linux": self.testbed.as_json()} if self.testbed else {})


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and the verdicts of the simulator and of Linux on it."""

    spec: PublishedClaim
    simulated: Judgement
    linux: Judgement = NOT_MEASURED

    @property
    def linux_disagrees_with_the_paper_too(self) -> bool:
        """Whether neither the simulator nor Linux confirms it."""
        return self.simulated.verdict == self.linux.verdict == "not confirmed"

    def as_json(self) -> dict[str, Any]:
        """The claim as it stands in ``results.json``: the simulator's verdict, then Linux's."""
        said = {"id": self.spec.id, "text": self.spec.text}
        linux = {} if self.linux == NOT_MEASURED else {"linux": self.linux.as_json()}
        return said | self.simulated.as_json() | linux


@dataclass(frozen=True)
class Reproduction:
    """A paper, reproduced: everything that its folder of results holds."""

    paper: Paper
    folder: Path
    numbers: Sequence[Number]
    claims: Sequence[Claim]
    sections: Sequence[Section]
    figures: Sequence[PaperFigure] = ()
    views: Sequence[ResultPage] = field(default=(), repr=False)  # in the order of experiments
    options: Mapping[str, Any] = field(default_factory=dict)  # ``full``, ``seeds``
    testbed: TestbedRuns | None = field(default=None, repr=False)  # runs in this folder
    linux: LinuxSource | None = None
    result: str = ""

    @property
    def version(self) -> str:
        """The version of dumbbell that made the runs."""
        return str(self.views[0].meta["version"])

    def svg(self, figure: PaperFigure) -> Path:
        """The file of a figure."""
        return self.folder / f"{figure.spec.file}.svg"

    def command(self, figure: str) -> str:
        """The command that makes a figure again."""
        is_real = figure == "real" or figure.endswith("-real")
        how = "--backend linux" if is_real else f"--figure {figure}"
        return f"dumbbell reproduce {self.paper.name} {how}"

    def as_json(self) -> dict[str, Any]:
        """The content of ``results.json``."""
        return (
            {
                "paper": self.paper.id,
                "version": self.version,
                **self.options,
                "numbers": [number.as_json() for number in self.numbers],
                "claims": [claim.as_json() for claim in self.claims],
            }
            | ({"linux": vars(self.linux)} if self.linux else {})
            | self.paper.place
        )


def tally(claims: Sequence[Claim]) -> str:
    """The simulator's verdicts: ``"4 of 6 claims confirmed, 1 not confirmed, 1 inconclusive"``."""
    counts = Counter(claim.simulated.verdict for claim in claims)
    others = [f"{counts[name]} {name}" for name in VERDICTS[1:] if counts[name]]
    noun = "claim" if len(claims) == 1 else "claims"
    return ", ".join([f"{counts['confirmed']} of {len(claims)} {noun} confirmed", *others])


def agreement(claims: Sequence[Claim]) -> str:
    """How many claims the runs on Linux decide, and how often as the simulator does; or nothing."""
    measured = [claim for claim in claims if claim.linux.verdict != "not measured"]
    decided = [claim for claim in measured if claim.linux.verdict != "inconclusive"]
    same = sum(claim.linux.verdict == claim.simulated.verdict for claim in decided)
    if not measured:
        return ""
    if not decided:
        return f"the few runs on Linux decide none of the {len(measured)} that were measured"
    return f"Linux decides {len(decided)} of them, {same} as the simulator does"


def headline(claims: Sequence[Claim]) -> str:
    """All claims in one line."""
    return "; ".join(filter(None, [tally(claims), agreement(claims)])) + "."


def answer(of: Reproduction) -> list[str]:
    """The answer of a paper's page, in one or two sentences.

    Where the simulator and Linux agree with each other and not with the paper, that comes first.
    """
    against = sum(claim.linux_disagrees_with_the_paper_too for claim in of.claims)
    if not against:
        return [*filter(None, [of.result]), headline(of.claims)]
    linux = f"Linux {of.linux.kernel}" if of.linux else "Linux"
    first = (
        f"The simulator and {linux} agree with each other, and not with the paper, on {against} of "
        f"{len(of.claims)} claims."
    )
    return [first, of.result or headline(of.claims)]


def confirmed_share(of: Reproduction) -> float:
    """The share (0 to 1) of a paper's claims that the simulator confirms; 0 without claims."""
    confirmed = sum(claim.simulated.verdict == "confirmed" for claim in of.claims)
    return confirmed / max(len(of.claims), 1)
