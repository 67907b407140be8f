"""Papers with real packets: what is run, what is measured in it, and its part of the report.

The paper's ``[[testbed]]`` tables change experiments for the kernel, or shorten them, as runs take
real time. The simulator then runs the changed experiment too: that separates the effect of the
settings from the effect of real packets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import metrics
from dumbbell.display import Column, Table, format_significant
from dumbbell.papers.outcome import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import Paper
    from dumbbell.results.result import Result


@dataclass(frozen=True)
class TestbedRuns:
    """Results with real packets.

    Attributes:
        runs: The results, by the id of their experiment.
        matched: Simulations of the experiments that the testbed changes, with the seeds of the
            valid runs: random losses and starts are the same.
    """

    __test__ = False

    runs: Mapping[str, Result] = field(default_factory=dict)
    matched: Mapping[str, Result] = field(default_factory=dict)

    @cached_property
    def valid(self) -> dict[str, Result]:
        """The results without invalid runs, unless all of them are."""
        return {name: result.valid() for name, result in self.runs.items()}


@dataclass(frozen=True)
class TestbedNumber:
    """A published number, measured with real packets.

    Attributes:
        found: What was measured in the valid runs.
        matched: The same in the matched simulation, where there is one.
        valid: How many runs are valid. Only these count, unless there are none.
        invalid: How many runs are not.
    """

    __test__ = False

    found: Estimate
    matched: Estimate | None
    valid: int
    invalid: int

    @classmethod
    def of(cls, result: Result, found: Estimate, matched: Estimate | None) -> TestbedNumber:
        """A number that was measured in `result`, which has all runs."""
        invalid = len(result.invalid_runs)
        return cls(found, matched, len(result.seeds) - invalid, invalid)

    @property
    def count(self) -> str:
        """How many runs count, and how many were invalid."""
        return counted(self.valid, self.invalid)

    def as_json(self) -> dict[str, Any]:
        """As it stands in ``results.json``."""
        matched = {"matched": self.matched.value} if self.matched else {}
        return {
            **self.found.ends,
            "runs": self.valid or self.invalid,
            "invalid": self.invalid,
            **matched,
        }


def with_seeds_of(real: Result, simulated: Result) -> Result:
    """The simulated runs with the seeds of the real ones; all of them if there are none."""
    seeds = [seed for seed in real.valid().seeds if seed in simulated.seeds]
    return simulated.of_seeds(seeds) if seeds else simulated


def counted(valid: int, invalid: int) -> str:
    """In words, how many runs count, and how many were invalid.

    The valid ones count; where there are none, those that were invalid.
    """
    runs = valid or invalid
    said = "1 run" if runs == 1 else f"{runs} runs"
    if not invalid:
        return said
    return f"{said}, {invalid} invalid left out" if valid else f"{said}, invalid"


def section(paper: Paper, simulated: Mapping[str, Result], real: TestbedRuns) -> Section:
    """The section on real packets."""
    kernels = sorted({result.meta["kernel"].partition("-")[0] for result in real.runs.values()})
    text = [
        f"The TCP of Linux {', '.join(kernels)}, and eBPF for algorithms that it lacks, across the "
        "same links in real time. Where an experiment had to be changed or shortened for the "
        "testbed, the simulator runs the changed one too (“matched simulation”).",
        *dict.fromkeys(plan.why for plan in paper.testbed if plan.why),
    ]
    tables = [_side_by_side({**simulated, **real.matched}, real)]
    invalid = _invalid(real)
    if invalid.rows:
        tables.append(invalid)
    return Section("Real packets", text, tables, ["real"])


_SHOWN: Final = ("throughput", "queue_delay_mean", "retransmission_share")


def _side_by_side(simulated: Mapping[str, Result], real: TestbedRuns) -> Table:
    """A row for every flow of every experiment: the matched simulation and the kernel."""
    columns = [Column("Experiment"), Column("Flow"), Column("Runs")]
    columns += [Column.of(metric) for metric in _SHOWN]
    rows = []
    for name, result in real.valid.items():
        ours, theirs = _medians(with_seeds_of(result, simulated[name])), _medians(result)
        invalid = len(real.runs[name].invalid_runs)
        runs = counted(len(real.runs[name].seeds) - invalid, invalid)
        for flow, found in theirs.items():
            cells = [_beside(ours[flow][key], found[key], Column.of(key).scale) for key in _SHOWN]
            rows.append([name, flow, runs, *cells])
    note = "Matched simulation / real (ratio); medians over the valid runs, with the same seeds."
    return Table(columns, rows, note)


def _medians(result: Result) -> dict[str, dict[str, float | None]]:
    table = metrics.summary(result.by_subflow()).group_by("flow", maintain_order=True)
    medians = table.agg(pl.col(*_SHOWN).median())
    return {str(row["flow"]): row for row in medians.iter_rows(named=True)}


def _beside(ours: float | None, theirs: float | None, by: float) -> str:
    shown = [format_significant(None if value is None else value * by) for value in (ours, theirs)]
    ratio = f" ({ours / theirs:.2f})" if ours is not None and theirs else ""
    return f"{shown[0]} / {shown[1]}{ratio}"


def _invalid(real: TestbedRuns) -> Table:
    rows = [
        [name, str(seed), "; ".join(why), "left out" if seed not in valid.seeds else "kept"]
        for name, valid in real.valid.items()
        for seed, why in real.runs[name].invalid_runs.items()
    ]
    columns = [Column("Experiment"), Column("Run", number=True), Column("Why"), Column("Is")]
    note = (
        "Invalid runs, repeated ones too: the machine disturbed them. They are left out, but kept "
        "where there is no other run of the experiment."
    )
    return Table(columns, rows, note)
