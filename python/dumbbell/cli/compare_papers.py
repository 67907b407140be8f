"""``dumbbell benchmark``: an algorithm beside all others, where papers look."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import polars as pl

from dumbbell import _core, papers
from dumbbell.cli.compare import COLUMNS, row_of
from dumbbell.cli.options import split_algorithms
from dumbbell.cli.output import print_json, print_line, print_table, progress_bar
from dumbbell.display import Column, Table
from dumbbell.engine.compare import achieved
from dumbbell.engine.runner import run_all
from dumbbell.errors import DumbbellError, ExperimentError
from dumbbell.experiment.model import Experiment, needs_udt
from dumbbell.experiment.toml import atomic_write
from dumbbell.results.tables import disk_errors

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.papers import Paper
    from dumbbell.papers.model import Scenario

Row = dict[str, Any]


def answer_papers(
    which: str,
    cc: str,
    beside: str | None,
    *,
    seeds: int,
    jobs: int | None,
    out: Path | None,
    json: bool,
) -> None:
    """Runs the scenarios of papers with every algorithm, and prints a table for each."""
    scenarios = _scenarios(which)
    algorithms = _algorithms(split_algorithms(cc), beside)
    experiments = [
        _experiment(paper, scenario, name, seeds)
        for paper, scenario in scenarios
        for name in algorithms
    ]
    began = time.perf_counter()
    with progress_bar(f"{len(experiments)} runs") as progress:
        results = iter(run_all(experiments, jobs=jobs, progress=progress))
    tables = [
        (paper, scenario, [_judge(name, next(results), scenario) for name in algorithms])
        for paper, scenario in scenarios
    ]
    if out is not None:
        _write(tables, split_algorithms(cc), out)
    if json:
        found = [
            {"paper": paper.id, "scenario": scenario.title, "algorithms": rows}
            for paper, scenario, rows in tables
        ]
        print_json({"scenarios": found, "meta": {"wall_s": time.perf_counter() - began}})
        return
    for paper, scenario, rows in tables:
        _print(paper, scenario, rows)
    print_line("Throughput: all flows of an algorithm together. Delays: one-way, per packet.")
    if out is not None:
        print_line(f"The tables and a figure are in {out}")


def _scenarios(which: str) -> list[tuple[Paper, Scenario]]:
    known = {paper.id: paper for paper in papers.available()}
    chosen = list(known) if which == "papers" else [name.strip() for name in which.split(",")]
    for name in chosen:
        if name not in known:
            problem = f'"{name}" is no paper; write papers, or some of {", ".join(known)}'
            raise ExperimentError(problem, key="PAPER")
    return [(known[name], scenario) for name in chosen for scenario in known[name].scenarios]


def _algorithms(named: list[str], beside: str | None) -> list[str]:
    """Those in question first, then all built-in ones that are for TCP, or those of `beside`."""
    others = [name for name in _core.algorithms() if not needs_udt(name)]
    if beside is not None:
        others = split_algorithms(beside)
    algorithms = list(dict.fromkeys([*named, *others]))
    for_udt = next((name for name in algorithms if needs_udt(name)), None)
    if for_udt:
        raise ExperimentError(f'"{for_udt}" is for UDT, and these flows are TCP\'s', key="--cc")
    return algorithms


def _experiment(paper: Paper, scenario: Scenario, cc: str, seeds: int) -> Experiment:
    changes = [change.format(cc=cc) for change in scenario.set]
    file = paper.folder / scenario.file
    try:
        return Experiment.load(file, overrides=[*changes, f"seeds={seeds}"])
    except ExperimentError as error:
        raise ExperimentError(
            error.problem, key="--cc" if "cc" in error.key else error.key
        ) from None


def _judge(name: str, result: Any, scenario: Scenario) -> Row:
    own = pl.col("flow").cast(pl.String).is_in(scenario.flows)
    row = row_of(name, achieved(result, own))
    if len(result.flow_names) > len(scenario.flows):
        row |= {"left": row_of(name, achieved(result, ~own))["throughput"]}
    return row


def _print(paper: Paper, scenario: Scenario, rows: list[Row]) -> None:
    names = [name for name in COLUMNS if name != "utilisation"]
    columns = [Column.of(name) for name in names]
    if "left" in rows[0]:
        names.append("left")
        columns.append(Column.of("rival_throughput", title="Left to others"))
    cells = [[row["cc"], *(row[name] for name in names)] for row in rows]
    table = Table([Column("Algorithm"), *columns], cells)
    print_table(f"{scenario.title} ({paper.id})", table)
    print_line()


def _write(tables: list[tuple[Paper, Scenario, list[Row]]], named: list[str], out: Path) -> None:
    from dumbbell.figures.output import save
    from dumbbell.figures.scatter import throughput_over_delay

    rows = [
        {"paper": paper.id, "scenario": scenario.title, "left": None}
        | {key: value for key, value in row.items() if key != "intervals"}
        for paper, scenario, table in tables
        for row in table
    ]
    panels = {f"{scenario.title} ({paper.id})": table for paper, scenario, table in tables}
    try:
        out.mkdir(parents=True, exist_ok=True)
        with atomic_write(out / "comparison.csv") as file, disk_errors():
            pl.DataFrame(rows, infer_schema_length=None).write_csv(file)
        save(throughput_over_delay(panels, named), out / "comparison")
    except OSError as error:
        raise DumbbellError(f"{out}: cannot be written: {error.strerror}") from None
