"""What every reproduction is made of: what a paper says, what was found, and how both are written.

A paper is a folder with three kinds of content: experiment files; ``paper.toml`` with the published
numbers, the claims and the list of experiments, as data; and a module that computes what was
measured. The module offers what `Study` says and nothing else: running, drawing, checking and
writing are the same for all papers.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

    from dumbbell.display import Table
    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.real import Real, RealNumber
    from dumbbell.results.result import Result

    Measured = Mapping[str, Estimate]
    """The numbers of a paper as measured, by their ids."""

    Verdicts = Mapping[str, "Verdict"]
    """What came of the claims of a paper, by their ids."""

Settings = Literal["stated", "assumed", "calibrated"]
"""Whether all settings behind a number are the paper's, or the weakest kind among them."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PublishedNumber(_Model):
    """A number of the paper and where it stands."""

    id: str
    experiment: str
    where: str
    quantity: str
    unit: str
    published: float


class PublishedTable(_Model):
    """A table of the paper: a number for every combination of two settings.

    Attributes:
        id: The id of each number; ``{setting}`` in it and in `experiment` and `quantity` stands for
            the value.
        experiment: The experiment that each number is measured in.
        where: Where the table stands.
        quantity: What is measured.
        unit: Its unit.
        rows: The settings of the rows: the name and the values.
        columns: The settings of the columns.
        published: The numbers, row by row.
    """

    id: str
    experiment: str
    where: str
    quantity: str
    unit: str
    rows: dict[str, list[str]]
    columns: dict[str, list[str]]
    published: list[list[float]]

    def all(self) -> Iterator[PublishedNumber]:
        """Every number of the table, row by row.

        Raises:
            ValueError: If there are not as many numbers as the settings ask for.
        """
        rows, columns = (
            [dict(zip(axis, values, strict=True)) for values in product(*axis.values())]
            for axis in (self.rows, self.columns)
        )
        for row, numbers in zip(rows, self.published, strict=True):
            for column, number in zip(columns, numbers, strict=True):
                chosen = row | column
                yield PublishedNumber(
                    id=self.id.format(**chosen),
                    experiment=self.experiment.format(**chosen),
                    where=self.where,
                    quantity=self.quantity.format(**chosen),
                    unit=self.unit,
                    published=number,
                )


class PublishedClaim(_Model):
    """A claim of the paper, and what is checked for it to hold."""

    id: str
    where: str
    text: str
    check: str


class Planned(_Model):
    """Experiments to run: a file of the paper's folder with assignments laid over it.

    Attributes:
        id: Its name, which is also the name of its result folder.
        file: The experiment file.
        set: Assignments, as ``dumbbell run --set`` takes them.
        each: Settings and their values: an experiment for every combination. ``{setting}`` in
            `id` and `set` stands for the value.
        short: What a value stands for within `set`, where `id` is to have a shorter name for it;
            for all experiments of a paper if it stands at the top of its ``paper.toml``.
        beyond: Whether it goes beyond the paper, and is left out unless asked for. Of such an
            experiment only what ``Study.reduce`` makes of its runs is kept.
    """

    id: str
    file: str
    set: list[str] = Field(default_factory=list)
    each: dict[str, list[str]] = Field(default_factory=dict)
    short: dict[str, str] = Field(default_factory=dict)
    beyond: bool = False

    def all(self) -> Iterator[Concrete]:
        """Every experiment that this stands for, in the order of `each`."""
        for values in product(*self.each.values()):
            chosen = dict(zip(self.each, values, strict=True))
            meant = {setting: self.short.get(value, value) for setting, value in chosen.items()}
            changes = tuple(change.format(**meant) for change in self.set)
            yield Concrete(self.id.format(**chosen), self.file, changes, chosen)


class RealPlan(_Model):
    """Experiments of a paper that the testbed runs too, with real packets.

    Attributes:
        id: The id of each; ``{setting}`` in it and in `set` stands for the value that `each` has.
        set: What a kernel, or the time that runs take, asks to be otherwise than in the paper's
            experiments: assignments over theirs. If there are any, the simulator runs the same too,
            so that real packets are compared with what is alike.
        each: Settings and their values, as `Planned` has them.
        short: As `Planned` has it; that of a whole paper does not hold here.
        why: What is otherwise, what is left out, and why, for who reads the report.
        runs: How often each is run.
        at_once: How many runs go on at once; together they must not keep a machine busy.
    """

    id: str
    set: list[str] = Field(default_factory=list)
    each: dict[str, list[str]] = Field(default_factory=dict)
    short: dict[str, str] = Field(default_factory=dict)
    why: str = ""
    runs: int = 3
    at_once: int = 1

    def all(self, planned: Mapping[str, Concrete]) -> Iterator[Concrete]:
        """Every experiment that this stands for, of those that are planned, by their id."""
        for values in product(*self.each.values()):
            chosen = dict(zip(self.each, values, strict=True))
            meant = {setting: self.short.get(value, value) for setting, value in chosen.items()}
            base = planned[self.id.format(**chosen)]
            changes = tuple(change.format(**meant) for change in self.set)
            yield replace(base, changes=base.changes + changes)


class Scenario(_Model):
    """What of a paper an algorithm that is not in it can be tried in.

    Attributes:
        title: What it is.
        file: An experiment file of the paper's folder.
        set: Assignments, in which ``{cc}`` stands for the algorithm.
        flows: The flows that have the algorithm; the others are what it competes with.
    """

    title: str
    file: str
    set: list[str]
    flows: list[str]


@dataclass(frozen=True)
class Concrete:
    """One experiment to run, and the values that `Planned.each` has for it."""

    id: str
    file: str
    changes: tuple[str, ...]
    chosen: Mapping[str, str]


class Paper(_Model):
    """What a paper says, read from its ``paper.toml``."""

    id: str
    title: str
    authors: list[str]
    venue: str
    summary: str
    single_numbers: list[PublishedNumber] = Field(validation_alias="number", default_factory=list)
    tables: list[PublishedTable] = Field(validation_alias="table", default_factory=list)
    claims: list[PublishedClaim] = Field(validation_alias="claim")
    experiments: list[Planned] = Field(validation_alias="experiment")
    real: list[RealPlan] = Field(default_factory=list)
    """The experiments that the testbed runs too, with real packets."""
    scenarios: list[Scenario] = Field(validation_alias="scenario", default_factory=list)

    @classmethod
    def load(cls, folder: Path) -> Paper:
        """Reads the ``paper.toml`` of a paper's folder."""
        said = tomllib.loads((folder / "paper.toml").read_text("utf-8"))
        short = said.pop("short", {})
        said["experiment"] = [{"short": short} | planned for planned in said["experiment"]]
        return cls.model_validate(said)

    @property
    def planned(self) -> dict[str, Concrete]:
        """The experiments of the paper itself, by their id: those beyond it are left out."""
        plans = (plan for plan in self.experiments if not plan.beyond)
        return {one.id: one for plan in plans for one in plan.all()}

    @property
    def first(self) -> str:
        """The id of the first experiment."""
        return next(self.experiments[0].all()).id

    @property
    def numbers(self) -> list[PublishedNumber]:
        """All published numbers: the single ones, then those of the tables."""
        return [*self.single_numbers, *(number for table in self.tables for number in table.all())]


@dataclass(frozen=True)
class Runs:
    """What was run.

    Attributes:
        results: Results by the id of their experiment.
        beyond: For each experiment beyond the paper, by the id that `Planned` has, the rows that
            ``Study.reduce`` made, with a column for every setting of ``each``.
    """

    results: Mapping[str, Result]
    beyond: Mapping[str, pl.DataFrame]

    def __getitem__(self, experiment: str) -> Result:
        return self.results[experiment]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and what was measured to say so."""

    holds: bool
    evidence: str


@dataclass(frozen=True)
class Plate:
    """A figure to draw.

    Attributes:
        id: Its name, such as ``2a``; files and links begin with ``figure-``.
        title: What it is.
        caption: How to read it.
        draw: Draws it from the runs.
        experiments: The ids of the experiments that it needs.
        wide: Whether it takes the width of the page.
        real: Whether it can be drawn of real packets too: not if it shows internals of algorithms,
            which a kernel does not tell, or has measured runs in it already.
    """

    id: str
    title: str
    caption: str
    draw: Callable[[Runs], Figure]
    experiments: tuple[str, ...] = ()
    wide: bool = False
    real: bool = True

    @property
    def file(self) -> str:
        """The name of its files, without the suffix."""
        return f"figure-{self.id}"


@dataclass(frozen=True)
class Section:
    """A part of the report: paragraphs, tables, then figures by their id."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plates: Sequence[str] = ()


class Study(Protocol):
    """What the module of a paper offers."""

    PLATES: Sequence[Plate]
    """The figures, each with the experiments that it needs."""

    def measure(self, runs: Runs) -> Measured:
        """Measures every published number, by its id; real packets are measured so too."""

    def judge(self, runs: Runs, numbers: Measured) -> Verdicts:
        """Checks every claim, by its id, with what was measured."""

    def sections(self, runs: Runs) -> Sequence[Section]:
        """Tells what the report shall tell beyond numbers and claims."""

    def reduce(self, result: Result) -> pl.DataFrame:
        """Keeps of a run that goes beyond the paper what its figures need: rows by seed."""


@dataclass(frozen=True)
class Number:
    """A published number beside the measured one."""

    said: PublishedNumber
    found: Estimate
    settings: Settings
    real: RealNumber | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over published; None where nothing could be measured."""
        return None if self.found.value is None else self.found.value / self.said.published

    @property
    def quantity(self) -> str:
        """What was measured, of how many runs, and how many of them are beyond the limit."""
        runs = len(self.found.runs)
        if not runs:
            return self.said.quantity
        seen = f"median of {runs} runs" if runs > 1 else "1 run"
        missed = f", {self.missed}" if self.missed else ""
        return f"{self.said.quantity} ({seen}{missed})"

    @property
    def missed(self) -> str:
        """How many runs are beyond the limit of observation, if there are any."""
        found = self.found
        if not found.censored:
            return ""
        return f"{found.censored} of {len(found.runs)} not within {found.limit:g} {self.said.unit}"

    @property
    def not_above(self) -> int:
        """In how many runs it was measured to be as published or less."""
        return sum(run is not None and run <= self.said.published for run in self.found.runs)

    def as_json(self) -> dict[str, Any]:
        """The number as it stands in ``results.json``; null is 'beyond what was observed'."""
        return {
            "id": self.said.id,
            "where": self.said.where,
            "quantity": self.quantity,
            "unit": self.said.unit,
            "published": self.said.published,
            "measured": self.found.value,
            "low": self.found.low,
            "high": self.found.high,
            "ratio": self.ratio,
            "settings": self.settings,
        } | ({"real": self.real.as_json()} if self.real else {})


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with its verdict."""

    said: PublishedClaim
    found: Verdict

    def as_json(self) -> dict[str, Any]:
        """The claim as it stands in ``results.json``."""
        return {
            "id": self.said.id,
            "text": self.said.text,
            "holds": self.found.holds,
            "evidence": self.found.evidence,
        }


@dataclass(frozen=True)
class Drawing:
    """A figure that has been drawn and saved.

    Attributes:
        plate: What it shows.
        svg: The figure as the text of an SVG file.
        command: What to type to make it again.
    """

    plate: Plate
    svg: str
    command: str


@dataclass(frozen=True)
class Setting:
    """A setting that the paper leaves unsaid, its value's reason, and for which experiments."""

    key: str
    kind: Settings
    reason: str
    experiments: Sequence[str]


@dataclass(frozen=True)
class Reproduction:
    """A paper, reproduced: everything that its folder of results tells.

    `runs` are the results by the id of their experiment, `real` what came of real packets.
    """

    paper: Paper
    version: str
    folder: Path
    numbers: Sequence[Number]
    claims: Sequence[Claim]
    sections: Sequence[Section]
    drawings: Sequence[Drawing]
    settings: Sequence[Setting]
    seeds: Sequence[int]
    versions: Mapping[str, str] = field(default_factory=dict)
    beyond: bool = False
    runs: Mapping[str, Result] = field(default_factory=dict, repr=False)
    real: Real | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        """The content of ``results.json``."""
        return {
            "paper": self.paper.id,
            "version": self.version,
            "numbers": [number.as_json() for number in self.numbers],
            "claims": [claim.as_json() for claim in self.claims],
        }
