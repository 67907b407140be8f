"""What was measured of a paper with real packets, as data beside it: ``linux.json``.

Whoever reproduces the paper sees Linux's numbers and verdicts without root and without waiting.
The file has the values of every valid run that the paper's numbers and claims ask for, or of the
invalid ones if an experiment has no others. ``dumbbell reproduce PAPER --backend linux`` measures
them anew and writes such a file into its results.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from dumbbell.errors import DumbbellError
from dumbbell.papers.outcome import NOT_MEASURED, Judgement, LinuxSource
from dumbbell.papers.runs import Asked, NotRunError, Runs, asked_for
from dumbbell.papers.testbed import TestbedNumber, TestbedRuns

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import PublishedNumber
    from dumbbell.papers.study import Study
    from dumbbell.results.result import Result

    Values = Mapping[Asked, list[float | None]]

FILE: Final = "linux.json"


@dataclass(frozen=True)
class Measurements:
    """Runs with real packets, as far as numbers and claims ask for them."""

    source: LinuxSource  # the kernel, the date, and what must be known of the runs
    # By the id of the experiment, how many runs are valid, and how many are not.
    counts: Mapping[str, tuple[int, int]]
    values: Values  # what the valid runs gave, or invalid ones if there are no others
    # The same of simulations with the settings of those runs, where they differ from the paper's.
    matched: Values

    def numbers(self, study: Study) -> dict[str, TestbedNumber]:
        """The paper's numbers that were measured, by their ids."""
        found = {}
        for said in study.paper.numbers:
            if measured := _measured(study, said, self.values):
                matched = _measured(study, said, self.matched)
                found[said.id] = TestbedNumber(measured, matched, *self.counts[said.experiment])
        return found

    def judge(self, study: Study) -> dict[str, Judgement]:
        """Verdicts on the paper's claims, by their ids."""
        found = {}
        for said in study.paper.claims:
            try:
                judged = study.judge(said, study.runs({}, table=self.values))
                invalid = tuple(name for name in sorted(judged.asked) if not self.counts[name][0])
                found[said.id] = replace(judged, invalid=invalid)
            except NotRunError:
                found[said.id] = NOT_MEASURED
        return found

    @classmethod
    def load(cls, folder: Path) -> Measurements | None:
        """What the folder of a paper has of Linux; None if it has nothing."""
        file = folder / FILE
        if not file.is_file():
            return None
        try:
            said = json.loads(file.read_text("utf-8"))
            tables: tuple[dict[Asked, list[float | None]], ...] = ({}, {})
            for row in said["values"]:
                key = asked_for(row["experiment"], row["metric"], row.get("options", {}))
                for table, name in zip(tables, ("linux", "matched"), strict=True):
                    if name in row:
                        table[key] = list(row[name])
            source = LinuxSource(said["kernel"], said["date"], said.get("note", ""))
            counts = {name: (valid, invalid) for name, (valid, invalid) in said["runs"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DumbbellError(f"{file}: is damaged ({error}); restore or delete it") from None
        return cls(source, counts, *tables)

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        rows = []
        for key, values in self.values.items():
            experiment, metric, options = key
            row: dict[str, Any] = {"experiment": experiment, "metric": metric}
            row |= {"options": json.loads(options)} if options != "{}" else {}
            row |= {"linux": values}
            row |= {"matched": self.matched[key]} if key in self.matched else {}
            rows.append(row)
        source = {"kernel": self.source.kernel, "date": self.source.date, "note": self.source.note}
        return source | {"runs": self.counts, "values": rows}


def _measured(study: Study, said: PublishedNumber, table: Values) -> Estimate | None:
    with suppress(NotRunError):
        return study.measure(study.runs({}, table=table), [said])[said.id]
    return None


def of_runs(study: Study, real: TestbedRuns, folder: Path) -> Measurements:
    """The runs with real packets of a folder, as far as numbers and claims ask for them."""
    files = [folder / name / "meta.json" for name in real.runs]
    newest = max(file.stat().st_mtime for file in files)
    date = datetime.fromtimestamp(newest, UTC).date().isoformat()
    return Measurements(
        LinuxSource(real.kernel, date, "Measured on this machine."),
        {name: real.counts(name) for name in real.runs},
        _asked_of(study, real.valid),
        _asked_of(study, real.matched),
    )


def _asked_of(study: Study, results: Mapping[str, Result]) -> Values:
    """The values that the paper's numbers and claims ask of results, as far as these have them."""
    recorder = _Recorder(results, paper=study.paper, metrics=study.metrics)
    for number in study.paper.numbers:
        with suppress(NotRunError):
            study.measure(recorder, [number])
    for claim in study.paper.claims:
        with suppress(DumbbellError):  # it may need what a kernel does not show
            study.functions["claim"][claim.id](recorder)
    return recorder.recorded


@dataclass(frozen=True)
class _Recorder(Runs):
    """Runs that keep what they were asked for."""

    recorded: dict[Asked, list[float | None]] = field(default_factory=dict)

    def values(
        self, experiment: str, metric: str = "throughput", **options: Any
    ) -> tuple[Any, ...]:
        found = super().values(experiment, metric, **options)
        self.recorded[asked_for(experiment, metric, options)] = list(found)
        return found
