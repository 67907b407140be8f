"""Packs: the tests of published suites, run as they are written, beside Reno and CUBIC.

A pack is a folder of ``packs``: ``pack.toml``, which lists the tests of a document, and a file for
each scenario. The documents state paths and traffic and give no limits, so that a pack has numbers
and no verdicts. What is not as in the document, and what is missing, is part of the pack.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell.display import Column, Table
from dumbbell.dossier.bench import FailedRunError
from dumbbell.dossier.measures import KINDS, values
from dumbbell.dossier.scenarios import Scenario, is_for_media
from dumbbell.dossier.words import label
from dumbbell.errors import ExperimentError, unknown
from dumbbell.metrics.intervals import Estimate, mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from dumbbell.dossier.bench import Bench
    from dumbbell.dossier.measures import Kind

FOLDER: Final = Path(__file__).with_name("packs")

NOTE: Final = "Means over {} seed{}{}; less is better."


@dataclass(frozen=True)
class Case:
    """A test of a document.

    Attributes:
        section: The section of the document.
        title: What it is called.
        scenario: Its paths and traffic.
        kinds: What is measured.
        is_bulk: Whether the algorithm's flows have no limit, so that none for media can have them.
        varied: Names of what the scenario's ``[sweep]`` tables vary, a list for each table.
    """

    section: str
    title: str
    scenario: Scenario
    kinds: tuple[Kind, ...]
    is_bulk: bool
    varied: tuple[tuple[str, ...], ...]

    @property
    def variants(self) -> list[str]:
        """The names of its points, in the order of the sweep."""
        return [", ".join(filter(None, names)) for names in product(*self.varied)]


@dataclass(frozen=True)
class Pack:
    """The tests of a document.

    Attributes:
        name: Its name in commands.
        title: The title of the document.
        document: What the document is cited by.
        differs: What is not as the document says, a sentence each.
        missing: What the document asks for and no test here does.
        tests: The tests.
    """

    name: str
    title: str
    document: str
    differs: tuple[str, ...]
    missing: tuple[str, ...]
    tests: tuple[Case, ...]

    @classmethod
    def load(cls, name: str) -> Pack:
        """Reads a pack.

        Raises:
            ExperimentError: If no pack has this name.
        """
        known = sorted(file.parent.name for file in FOLDER.glob("*/pack.toml"))
        if name not in known:
            raise ExperimentError(unknown("pack", name, known), key="packs")
        folder = FOLDER / name
        said = tomllib.loads((folder / "pack.toml").read_text("utf-8"))
        tests = tuple(
            Case(
                one["section"],
                one["title"],
                Scenario(one["scenario"], folder),
                tuple(KINDS[kind] for kind in one["measures"]),
                one.get("bulk", not said.get("media", False)),
                tuple(tuple(names) for names in one["varied"]),
            )
            for one in said["test"]
        )
        differs, missing = tuple(said["differs"]), tuple(said["missing"])
        return cls(name, said["title"], said["document"], differs, missing, tests)


@dataclass(frozen=True)
class Row:
    """What is measured of a variant of a test, by algorithm; None where there is no value."""

    test: Case
    variant: str
    kind: Kind
    found: dict[str, Estimate | None]


@dataclass(frozen=True)
class Packed:
    """The results of a pack.

    Attributes:
        pack: The pack.
        rows: A row for each test, variant and measure.
        seeds: How many seeds each was run with.
        failures: Why runs could not be made, by the title of the test.
    """

    pack: Pack
    rows: list[Row]
    seeds: int
    failures: dict[str, str]

    def tables(self, algorithms: Sequence[str]) -> list[tuple[str, Table]]:
        """The results of each test beside each other, with its section and title."""
        found = []
        for title, group in groupby(self.rows, lambda row: f"{row.test.section} {row.test.title}"):
            its = [row for row in group if any(row.found.values())]
            if not its:
                continue
            named = [Column("Variant")] if any(row.variant for row in its) else []
            columns = [*named, Column("Measure")]
            columns += [Column(label(cc), number=True) for cc in algorithms]
            rows = [
                [*[row.variant][: len(named)], row.kind.column.heading]
                + [row.kind.column.format(row.found.get(cc)) for cc in algorithms]
                for row in its
            ]
            found.append((title, Table(columns, rows)))
        return found

    @property
    def note(self) -> str:
        """What to know about the numbers."""
        interval = ", with 95 % intervals (Student's t)" if self.seeds > 1 else ""
        return NOTE.format(self.seeds, "s" * (self.seeds != 1), interval)

    def to_json(self) -> dict[str, Any]:
        """What ``dossier.json`` holds of it."""
        return {
            "name": self.pack.name,
            "title": self.pack.title,
            "document": self.pack.document,
            "seeds": self.seeds,
            "differs": list(self.pack.differs),
            "missing": list(self.pack.missing),
            "failures": self.failures,
            "rows": [
                {
                    "section": row.test.section,
                    "test": row.test.title,
                    "scenario": row.test.scenario.name,
                    "variant": row.variant,
                    "measure": row.kind.name,
                    "title": row.kind.column.title,
                    "algorithms": {cc: one and one.ends for cc, one in row.found.items()},
                }
                for row in self.rows
            ],
        }


def run_pack(pack: Pack, algorithms: Sequence[str], bench: Bench, seeds: int | None) -> Packed:
    """Runs the tests of a pack with each of some algorithms; the files' seeds if not given."""
    rows: list[Row] = []
    failures = {}
    for test in pack.tests:
        able = [cc for cc in algorithms if not (test.is_bulk and is_for_media(cc))]
        sweep = test.scenario.every(able)
        try:
            runs = bench.run(sweep, f"packs/{pack.name}/{test.scenario.name}", seeds=seeds)
        except FailedRunError as error:
            failures[test.title] = str(error)
            continue
        for kind in test.kinds:
            measured = values(runs, kind)
            keys = [key for key in runs.axes if key in measured.columns]
            points = measured.partition_by(keys, maintain_order=True)
            rows += [
                Row(test, variant, kind, _by_algorithm(point, kind.column))
                for variant, point in zip(test.variants, points, strict=True)
            ]
    first = pack.tests[0].scenario.content["seeds"]
    return Packed(pack, _in_order(rows), seeds or first, failures)


def _in_order(rows: list[Row]) -> list[Row]:
    """The rows of a test and variant one below the other."""
    order = {(row.test.scenario.name, row.variant): at for at, row in reversed([*enumerate(rows)])}
    return sorted(rows, key=lambda row: order[row.test.scenario.name, row.variant])


def _by_algorithm(point: pl.DataFrame, column: Column) -> dict[str, Estimate | None]:
    found = {}
    for [cc], its in point.group_by("cc", maintain_order=True):
        known = its["value"].drop_nulls().to_list()
        found[str(cc)] = mean(known, column) if len(known) == its.height else None
    return found
