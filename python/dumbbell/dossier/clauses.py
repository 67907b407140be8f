"""The clauses of RFC 9743 and the measures that give evidence, read from ``clauses.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dumbbell.dossier.measures import KINDS, Kind
from dumbbell.dossier.scenarios import Scenario
from dumbbell.dossier.words import with_unit
from dumbbell.errors import ExperimentError, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE: Final = Path(__file__).with_name("clauses.toml")

WORST: Final = "worst"
SIMPLEST: Final = "simplest"


@dataclass(frozen=True)
class Measure:
    """What is measured on the paths of a scenario, and from when on it is evidence against."""

    kind: Kind
    scenario: str  # a file of ``scenarios``
    limit: float  # in the unit of result tables; more than this is evidence against
    reason: str  # why the limit is what it is

    @property
    def id(self) -> str:
        """Its name in files: ``loss-own``."""
        return f"{self.kind.name.replace('_', '-')}-{self.scenario}"

    @cached_property
    def reference(self) -> str:
        """The one algorithm that all are compared with, of which it says nothing; empty if none."""
        if self.kind.reference or not self.kind.is_relative:
            return self.kind.reference
        beside = Scenario(self.scenario).beside
        return beside[0] if len(beside) == 1 else ""

    def changed(self, limit: float) -> Measure:
        """The same with another limit, for which the reason of the first one is none."""
        if limit == self.limit:
            return self
        first, other = (with_unit(self.kind.column, one) for one in (self.limit, limit))
        reason = f"The author of this dossier changed it from {first} to {other}."
        return replace(self, limit=limit, reason=reason)

    def file(self, which: str) -> str:
        """The experiment file of its `WORST` or `SIMPLEST` path, within a dossier."""
        return f"scenarios/{self.id}-{which}.toml"


@dataclass(frozen=True)
class Clause:
    """A section of RFC 9743 that runs can give evidence for."""

    section: str
    title: str
    question: str
    asks: str  # what the RFC says of it, with its key word; empty if nothing
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Untested:
    """What RFC 9743 asks for and no run here shows."""

    section: str
    title: str
    reason: str


@cache
def clauses() -> tuple[Clause, ...]:
    """All clauses, in the order of the RFC."""
    return tuple(
        Clause(
            one["section"],
            one["title"],
            one["question"],
            one["asks"],
            tuple(
                Measure(KINDS[its["kind"]], its["scenario"], its["limit"], its["reason"])
                for its in one["measure"]
            ),
        )
        for one in tomllib.loads(_FILE.read_text("utf-8"))["clause"]
    )


@cache
def untested() -> tuple[Untested, ...]:
    """What is asked for and not tested."""
    said = tomllib.loads(_FILE.read_text("utf-8"))["untested"]
    return tuple(Untested(**one) for one in said)


def choose(sections: Sequence[str] | None, limits: Mapping[str, float]) -> list[Clause]:
    """The clauses of these sections (all if None), some measures with other limits.

    The name of a measure in the place of a section is its clause with this measure alone.

    Raises:
        ExperimentError: If there is no such section or measure.
    """
    known = [clause.section for clause in clauses()]
    measures = [measure.id for clause in clauses() for measure in clause.measures]
    for section in sections or ():
        if section not in (*known, *measures):
            named = unknown("clause", section, known)
            raise ExperimentError(f"{named}; or the name of a measure", key="clauses")
    check_measures(limits)
    chosen = []
    for clause in clauses():
        kept = tuple(
            measure.changed(limits.get(measure.id, measure.limit))
            for measure in clause.measures
            if sections is None or clause.section in sections or measure.id in sections
        )
        if kept:
            chosen.append(replace(clause, measures=kept))
    return chosen


@cache
def needs_series(scenario: str) -> bool:
    """Whether a measure on the paths of a scenario is taken from time series."""
    every = [measure for clause in clauses() for measure in clause.measures]
    return any(one.kind.of_series for one in every if one.scenario == scenario)


def check_measures(names: Mapping[str, float]) -> None:
    """Raises `ExperimentError` for a name that no measure has, and a value that is not finite."""
    known = [measure.id for clause in clauses() for measure in clause.measures]
    for name, value in names.items():
        if name not in known:
            raise ExperimentError(unknown("measure", name, known), key="limits")
        if not isfinite(value):
            raise ExperimentError(f"{name}: {value} is not finite", key="limits")
