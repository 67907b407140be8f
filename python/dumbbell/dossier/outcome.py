"""A dossier: what was run, what it is evidence for, and the worst that was found."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core
from dumbbell.display import Column, Table
from dumbbell.dossier.clauses import SIMPLEST, WORST, clauses
from dumbbell.dossier.measures import standard
from dumbbell.dossier.scenarios import Scenario
from dumbbell.dossier.source import source_of
from dumbbell.dossier.verdict import (
    BESIDE,
    MARKS,
    TOLERATED,
    Comparison,
    Pair,
    Share,
    Verdict,
    combined,
    largest,
    together,
)
from dumbbell.dossier.words import label, ranges
from dumbbell.engine.simulation import engine

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Mapping, Sequence

    from dumbbell.dossier.clauses import Clause, Measure, Untested
    from dumbbell.dossier.packs import Packed
    from dumbbell.dossier.search import Path, Worst
    from dumbbell.engine.backend import Backend
    from dumbbell.experiment.model import Experiment

SCHEMA: Final = 2
"""The version of ``dossier.json``; it changes when a key changes its meaning."""

_STACK: Final = 'simulated, stack = "linux"'
"""What runs TCP in all scenarios, except for what they vary."""

_STRONGEST: Final = 3

_DEPTHS: Final = (0.0, 0.5, 1.0, 1.5, 5.0, float("inf"))
"""Between which depths of the queue paths are counted together, BDP; 1.5 is RFC 9743's (5.1.3)."""


_MANAGED: Final = {"": "link.bottleneck.aqm", "ECN ": "stack_options.ecn"}
"""By what paths with active queue management are counted, and what stands before its values."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What runs say of a measure.

    Attributes:
        measure: The measure.
        values: Columns path, the axes of random paths, cc, run, value; empty if there are no runs.
        shares: By algorithm, on how many paths the measure is beyond its limit.
        every: The same as `values` for every run, where each path has several (Reno and CUBIC).
        worst: The worst path for the algorithm in question.
        failure: Why there are no runs; empty if there are.
    """

    measure: Measure
    values: pl.DataFrame
    shares: dict[str, Share]
    every: pl.DataFrame
    worst: Worst | None = None
    failure: str = ""

    @classmethod
    def lacking(cls, measure: Measure, failure: str) -> Evidence:
        """Evidence without runs, and why there are none."""
        return cls(measure, pl.DataFrame(), {}, pl.DataFrame(), failure=failure)

    def by_depth(self) -> list[tuple[float, float, dict[str, Share]]]:
        """The `shares` of the paths whose queue is in each range of depths, in BDP.

        Empty if the depth of the queue is no axis of the scenario, or not in BDP.
        """
        axis = Scenario(self.measure.scenario).axes.get("link.bottleneck.queue", {})
        if not self.shares or not str(axis.get("from", "")).endswith("BDP"):
            return []
        found = []
        for low, high in pairwise(_DEPTHS):
            shares = self._shares_where(pl.col("queue").is_between(low, high, closed="left"))
            if shares:
                found.append((low, high, shares))
        return found

    def by_setting(self, key: str) -> dict[str, dict[str, Share]]:
        """The `shares` of the paths with each value of an axis that has a list of them.

        Empty if the scenario has no such axis.
        """
        values = Scenario(self.measure.scenario).axes.get(key, ())
        column = key.rpartition(".")[2]
        found = {value: self._shares_where(pl.col(column) == value) for value in values}
        return {value: shares for value, shares in found.items() if shares}

    def _shares_where(self, paths: pl.Expr) -> dict[str, Share]:
        """The `shares` of some paths; empty if there are none."""
        there = self.values.filter(paths) if self.shares else self.values
        if not there.height:
            return {}
        values = {cc: there.filter(cc=cc)["value"].to_list() for cc in self.shares}
        return {cc: Share.of(found, self.measure.limit) for cc, found in values.items()}

    def verdict(self, cc: str) -> Verdict:
        """What it is evidence for."""
        if cc == self.measure.reference:
            return "reference"
        return self.shares[cc].verdict if cc in self.shares else "not tested"

    def beside(self, cc: str) -> Pair | None:
        """The algorithm beside a standard one (see `standard`) on the same paths.

        None without runs, and for a measure that compares one of the two with itself.
        """
        other = standard(cc)
        if not self.shares or self.measure.reference in (cc, other):
            return None
        own, usual = (self.values.filter(cc=one).select("path", "value") for one in (cc, other))
        # With real packets a path may lack one of the two.
        both = own.join(usual, "path", "inner", suffix="_usual", maintain_order="left")
        return Pair.of(both["value"].to_list(), both["value_usual"].to_list(), self.measure.limit)

    def quantile(self, cc: str, share: float) -> float | None:
        """What the measure is at most on this share of the paths, those without a value aside."""
        return self.values.filter(cc=cc)["value"].quantile(share, "nearest")

    def verdict_at(self, factor: float, cc: str) -> Verdict:
        """What it would be evidence for with `factor` times the limit."""
        values = self.values.filter(cc=cc)["value"].to_list()
        return Share.of(values, factor * self.measure.limit).verdict


@dataclass(frozen=True)
class Finding:
    """The evidence on a clause."""

    clause: Clause
    evidence: list[Evidence]

    def verdict(self, cc: str) -> Verdict:
        """The verdict on an algorithm, by all measures."""
        return together(one.verdict(cc) for one in self.evidence)

    def mark(self, cc: str) -> str:
        """The verdict for a table, with the share of paths that are beyond the limit."""
        verdict = self.verdict(cc)
        counted = (one for one in self.evidence if one.measure.reference != cc)
        most = largest((one.shares[cc] for one in counted if cc in one.shares), verdict)
        return f"{MARKS[verdict]} {100 * most.value:.0f} %" if most else MARKS[verdict]

    def beside(self, cc: str) -> Comparison:
        """How the algorithm compares with a standard one, by all measures."""
        return combined(self.pairs(cc))

    def pairs(self, cc: str) -> list[Pair]:
        """The algorithm beside a standard one, by all measures that say something of both."""
        return [pair for one in self.evidence if (pair := one.beside(cc))]


@dataclass(frozen=True)
class Options:
    """What else was asked for, as `evaluate` takes it."""

    clauses: Sequence[str] | None = None
    search: int = 0
    path_seed: int = 1
    limits: Mapping[str, float] = field(default_factory=dict)
    seeds: int | None = None


@dataclass(frozen=True)
class Dossier:
    """The evidence on an algorithm, clause by clause.

    Attributes:
        cc: The algorithm.
        references: The algorithms that it is compared with.
        findings: The clauses that were tested.
        untested: What RFC 9743 asks for and no run shows.
        paths: How many random paths each scenario has.
        runs: How many simulations it rests on.
        folder: Where it is.
        packs: The results of published suites.
        backend: What ran it.
        options: What else was asked for.
    """

    cc: str
    references: list[str]
    findings: list[Finding]
    untested: list[Untested]
    paths: int
    runs: int
    folder: pathlib.Path
    packs: list[Packed] = field(default_factory=list)
    backend: Backend = "simulator"
    options: Options = field(default_factory=Options)

    @property
    def algorithms(self) -> list[str]:
        """The algorithm, then its references, each once."""
        return list(dict.fromkeys([self.cc, *self.references]))

    @property
    def others(self) -> list[str]:
        """The references without the algorithm itself."""
        return [cc for cc in self.references if cc != self.cc]

    @property
    def evidence(self) -> list[Evidence]:
        """The evidence on all clauses."""
        return [one for finding in self.findings for one in finding.evidence]

    @property
    def failures(self) -> list[str]:
        """Why runs could not be made, each reason once."""
        of_packs = [text for pack in self.packs for text in pack.failures.values()]
        found = [one.failure for one in self.evidence if one.failure]
        return list(dict.fromkeys([*found, *of_packs]))

    def extremes(self) -> tuple[list[Evidence], list[Evidence]]:
        """The strongest evidence for the algorithm, and the strongest against it.

        Ranked by how many fewer paths are beyond the limit than with the better of the `others`.
        """
        ranked = sorted((one for one in self.evidence if one.shares), key=self._advantage)
        chosen = {
            verdict: [one for one in ranked if one.verdict(self.cc) == verdict]
            for verdict in ("for", "against")
        }
        strong = [one for one in reversed(chosen["for"]) if self._advantage(one) > 0]
        weak = [one for one in chosen["against"] if self._advantage(one) < 0]
        return strong[:_STRONGEST], weak[:_STRONGEST]

    def _advantage(self, evidence: Evidence) -> float:
        others = [evidence.shares[cc].value for cc in self.others if cc in evidence.shares]
        own = evidence.shares[self.cc].value if self.cc in evidence.shares else 1.0
        return (min(others) if others else TOLERATED) - own

    def finding(self, evidence: Evidence) -> Finding:
        """The finding that some evidence belongs to."""
        return next(one for one in self.findings if evidence in one.evidence)

    @property
    def left_out(self) -> list[str]:
        """The sections of the clauses that were not run."""
        run = {one.clause.section for one in self.findings}
        return [one.section for one in clauses() if one.section not in run]

    def paths_of(self, one: Evidence) -> list[tuple[str, Path, Experiment]]:
        """The worst path of a measure, and the simplest if it is another one.

        Returns:
            What it is (`WORST`, `SIMPLEST`), the path, and the algorithm on it as an experiment.
        """
        if one.worst is None:
            return []
        clause = self.finding(one).clause
        title = f"RFC 9743, {clause.section}: {clause.title}"
        scenario = Scenario(one.measure.scenario)
        return [
            (which, path, scenario.experiment(path.settings, self.cc, title=title))
            for which, path in ((WORST, one.worst.worst), (SIMPLEST, one.worst.simplest))
        ]

    def table(self) -> Table:
        """The clauses, with the verdict on each algorithm and how it compares with a standard."""
        rows = [
            [f"{finding.clause.section} {finding.clause.title}"]
            + [finding.mark(cc) for cc in self.algorithms]
            + [BESIDE[finding.beside(self.cc)]]
            for finding in self.findings
        ]
        labels = [label(cc) for cc in self.algorithms]
        titles = [*labels, f"Beside {label(standard(self.cc))}"]
        return Table([Column("Evidence, paths beyond a limit"), *map(Column, titles)], rows)

    def depths(self) -> Table | None:
        """On how many paths a measure is beyond its limit, by the depth of the queue."""
        found = [
            {_depth(low, high): shares for low, high, shares in one.by_depth()}
            for one in self.evidence
        ]
        return self._counted([_depth(*ends) for ends in pairwise(_DEPTHS)], found)

    def managed(self) -> Table | None:
        """On how many paths a measure is beyond its limit, by the AQM and by ECN."""
        found = [
            {
                f"{name}{value}": shares
                for name, key in _MANAGED.items()
                for value, shares in one.by_setting(key).items()
            }
            for one in self.evidence
        ]
        return self._counted(list(dict.fromkeys(chain.from_iterable(found))), found)

    def _counted(
        self, titles: Sequence[str], found: Sequence[Mapping[str, dict[str, Share]]]
    ) -> Table | None:
        """A table of the counts that each of the evidence has below some of the titles."""
        columns = [Column("Evidence"), Column("Algorithm")]
        columns += [Column(title, number=True) for title in titles]
        rows = []
        for one, shares in zip(self.evidence, found, strict=True):
            what = f"{self.finding(one).clause.section} {one.measure.kind.column.title}"
            for cc in self.algorithms if shares else ():
                cells = [shares.get(title, {}).get(cc) for title in titles]
                counts = [f"{its.beyond} of {its.paths}" if its else None for its in cells]
                rows.append([f"{what} ({one.measure.id})", label(cc), *counts])
        return Table(columns, rows) if rows else None

    def to_json(self) -> dict[str, Any]:
        """What ``dossier.json`` holds; see `docs/reference/dossiers.md`."""
        return {
            "schema": SCHEMA,
            "version": _core.__version__,
            "algorithm": self.cc,
            "backend": self.backend,
            "references": self.references,
            "paths": self.paths,
            "runs": self.runs,
            "tolerated": TOLERATED,
            "failures": self.failures,
            "method": self.method(),
            "left_out": self.left_out,
            "clauses": [self._clause(finding) for finding in self.findings],
            "packs": [pack.to_json() for pack in self.packs],
            "untested": [vars(one) for one in self.untested],
        }

    def method(self) -> dict[str, Any]:
        """What was run: the source of the algorithm, the stack, and how paths were drawn."""
        real = f"the kernel's TCP, Linux {platform.release()}"
        names = dict.fromkeys(one.measure.scenario for one in self.evidence)
        scenarios = [Scenario(name) for name in names]
        return {
            "source": source_of(self.cc),
            "stack": real if self.backend == "linux" else _STACK,
            "engine": engine(),
            "searched": self.options.search,
            "scenarios": [
                {
                    "name": one.name,
                    "title": one.title,
                    "duration": one.content["duration"],
                    "seed": self.options.path_seed,
                    "paths": ranges(one),
                }
                for one in scenarios
            ],
        }

    def _clause(self, finding: Finding) -> dict[str, Any]:
        clause = finding.clause
        return {
            "section": clause.section,
            "title": clause.title,
            "question": clause.question,
            "asks": clause.asks,
            "verdicts": {cc: finding.verdict(cc) for cc in self.algorithms},
            "beside": {standard(self.cc): finding.beside(self.cc)},
            "measures": [self._measure(one) for one in finding.evidence],
        }

    def _measure(self, one: Evidence) -> dict[str, Any]:
        measure, worst = one.measure, one.worst
        return {
            "id": measure.id,
            "title": measure.kind.column.title,
            "unit": "s" if measure.kind.column.unit in ("s", "ms") else "1",
            "limit": measure.limit,
            "reason": measure.reason,
            "scenario": measure.scenario,
            "failure": one.failure or None,
            "algorithms": {cc: self._of_algorithm(one, cc) for cc in one.shares},
            "beside": {standard(self.cc): self._beside(one)},
            "by_queue": [
                {
                    "from": low,
                    "to": high if high < _DEPTHS[-1] else None,
                    "algorithms": _counts(shares),
                }
                for low, high, shares in one.by_depth()
            ],
            "by_setting": {
                key.rpartition(".")[2]: {value: _counts(its) for value, its in shares.items()}
                for key in _MANAGED.values()
                if (shares := one.by_setting(key))
            },
            "worst": worst and _path(measure.file(WORST), worst.worst),
            "simplest": worst and _path(measure.file(SIMPLEST), worst.simplest),
            "paths_tried": worst and worst.tried,
        }

    def _beside(self, one: Evidence) -> dict[str, Any] | None:
        pair = one.beside(self.cc)
        return {"p": pair.p, "worse": pair.worse, "better": pair.better} if pair else None

    def _of_algorithm(self, one: Evidence, cc: str) -> dict[str, Any]:
        share = one.shares[cc]
        return {
            "verdict": one.verdict(cc),
            "median": one.quantile(cc, 0.5),
            "p90": one.quantile(cc, 0.9),
            "at_half_limit": one.verdict_at(0.5, cc),
            "at_twice_limit": one.verdict_at(2.0, cc),
            "beyond": share.beyond,
            "paths": share.paths,
            "share": share.value,
            "low": share.low,
            "high": share.high,
        }


def _counts(shares: Mapping[str, Share]) -> dict[str, dict[str, int]]:
    return {cc: {"beyond": one.beyond, "paths": one.paths} for cc, one in shares.items()}


def _depth(low: float, high: float) -> str:
    """A range of depths: ``1 to 2 BDP``."""
    if low == _DEPTHS[0]:
        return f"below {high:g} BDP"
    return f"{low:g} BDP and more" if high == _DEPTHS[-1] else f"{low:g} to {high:g} BDP"


def _path(file: str, path: Path) -> dict[str, Any]:
    return {"file": file, "settings": path.settings, "values": path.values}
