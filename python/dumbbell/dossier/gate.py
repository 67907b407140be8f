"""Thresholds for continuous integration: what share of the paths may be beyond a limit."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from dumbbell.dossier import words
from dumbbell.dossier.clauses import check_measures, choose
from dumbbell.errors import DumbbellError, ExperimentError, in_file, unknown
from dumbbell.experiment.files import read_text, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.dossier.outcome import Dossier, Evidence

_TABLES: Final = ("limits", "share")


@dataclass(frozen=True)
class Breach:
    """A threshold that is exceeded, or a measure that could not be taken."""

    measure: str
    allowed: float
    found: float | None
    sentence: str


@dataclass(frozen=True)
class Gate:
    """Thresholds.

    Attributes:
        limits: Other limits of measures, by their names.
        share: By measure, the share of paths (0 to 1) that may be beyond the limit.
    """

    limits: dict[str, float] = field(default_factory=dict)
    share: dict[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Gate:
        """Reads a file with the tables ``[limits]`` and ``[share]``.

        Raises:
            DumbbellError: If the file cannot be read, or names what does not exist.
        """
        with in_file(path):
            try:
                content = tomllib.loads(read_text(path))
            except tomllib.TOMLDecodeError as error:
                raise DumbbellError(f"{path}: is not TOML: {error}") from None
        for name in content:
            if name not in _TABLES:
                raise DumbbellError(f"{path}: {unknown('table', name, _TABLES)}")
        limits, share = (_numbers(path, name, content.get(name, {})) for name in _TABLES)
        for name, value in share.items():
            if not value <= 1:
                raise DumbbellError(f"{path}: share.{name}: {value:g} is not between 0 and 1")
        return cls(limits, share)

    def check_run(self, sections: Sequence[str] | None) -> None:
        """Raises `DumbbellError` if these clauses (all if None) leave out a measure with a share.

        A gate would pass what was never run.
        """
        run = {measure.id for clause in choose(sections, {}) for measure in clause.measures}
        for name in self.share:
            if name not in run:
                more = ",".join([*(sections or ()), name])
                raise DumbbellError(
                    f"--gate: share.{name}: this measure is not run; write --clauses {more}"
                )

    def broken(self, dossier: Dossier) -> list[Breach]:
        """The thresholds that the algorithm of a dossier exceeds."""
        return [
            breach
            for one in dossier.evidence
            if (allowed := self.share.get(one.measure.id)) is not None
            and (breach := _breach(dossier, one, allowed))
        ]


def _breach(dossier: Dossier, one: Evidence, allowed: float) -> Breach | None:
    share = one.shares.get(dossier.cc)
    if share is not None and share.value <= allowed:
        return None
    text = f"{words.sentence(one, dossier)} Allowed: {100 * allowed:g} %."
    return Breach(one.measure.id, allowed, None if share is None else share.value, text)


def _numbers(path: Path, table: str, content: Any) -> dict[str, float]:
    if not isinstance(content, dict):
        raise DumbbellError(f"{path}: {table} is not a table; write [{table}]")
    for name, value in content.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
            raise DumbbellError(f"{path}: {table}.{name}: {value!r} is not a number of at least 0")
    try:
        check_measures(content)
    except ExperimentError as error:
        raise DumbbellError(f"{path}: {table}: {error.problem}") from None
    return {name: float(value) for name, value in content.items()}


def write_junit(path: Path, gate: Gate, results: Sequence[tuple[Dossier, list[Breach]]]) -> None:
    """Writes the result of a gate as JUnit does: a test case for each measure of an algorithm.

    A measure that could not be run is an error where it fails the command, as it is in the gate or
    simulated. One that is not in the gate is skipped. A test of a suite is one only if it fails.
    """
    root = ElementTree.Element("testsuites")
    for dossier, breaches in results:
        by_measure = {breach.measure: breach for breach in breaches}
        suite = ElementTree.SubElement(root, "testsuite", name=f"RFC 9743: {dossier.cc}")
        counts = dict.fromkeys(("failure", "error", "skipped"), 0)
        for one in dossier.evidence:
            name = one.measure.id
            case = ElementTree.SubElement(suite, "testcase", classname=dossier.cc, name=name)
            if one.failure and (name in gate.share or dossier.backend == "simulator"):
                tag, message = "error", one.failure
            elif breach := by_measure.get(name):
                tag, message = "failure", breach.sentence
            elif name not in gate.share:
                tag, message = "skipped", one.failure or f"the gate has no share.{name}"
            else:
                continue
            ElementTree.SubElement(case, tag, message=message)
            counts[tag] += 1
        failures = [
            (f"{pack.pack.name}: {title}", text)
            for pack in dossier.packs
            for title, text in pack.failures.items()
        ]
        for name, text in failures:
            case = ElementTree.SubElement(suite, "testcase", classname=dossier.cc, name=name)
            ElementTree.SubElement(case, "error", message=text)
            counts["error"] += 1
        suite.set("tests", str(len(dossier.evidence) + len(failures)))
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    write_text(path, text + "\n")
