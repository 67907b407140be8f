"""``dumbbell benchmark``: an algorithm beside all others, in the scenarios of papers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dumbbell import _core
from dumbbell.cli import options
from dumbbell.cli.compare import NOTE, row_of
from dumbbell.cli.options import split_algorithms
from dumbbell.cli.output import print_json, print_line, print_table, progress_bar
from dumbbell.errors import ExperimentError

if TYPE_CHECKING:
    from dumbbell.experiment.model import Experiment
    from dumbbell.papers import Paper
    from dumbbell.papers.model import Scenario
    from dumbbell.results.result import Result

Row = dict[str, Any]


def run_scenarios(
    names: options.Papers = None,
    cc: Annotated[str, options.algorithms("Algorithms in question.")] = "reno,cubic,bbr,bbr3",
    others: Annotated[str | None, Option(help="Others; default: all built-in for TCP.")] = None,
    out: Annotated[Path | None, options.out("Folder for a figure and the tables.")] = None,
    overwrite: options.Overwrite = False,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare algorithms with all others in the papers' scenarios."""
    from dumbbell import papers
    from dumbbell.engine.runner import run_all

    if out is not None:
        options.refuse_existing(out, overwrite, folder=True)
    chosen = papers.available()
    if names and names != ["all"]:
        chosen = [papers.Paper.load(papers.folder_of(name)) for name in names]
    scenarios = [(paper, scenario) for paper in chosen for scenario in paper.scenarios]
    named = split_algorithms(cc)
    algorithms = _algorithms(named, others)
    experiments = [
        _experiment(paper, scenario, name, seeds or 1, _option_of(name, named))
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
        _write(tables, named, out)
    if json:
        found = [
            {"paper": paper.id, "scenario": scenario.title, "algorithms": rows}
            for paper, scenario, rows in tables
        ]
        print_json({"scenarios": found, "meta": {"wall_s": time.perf_counter() - began}})
        return
    for paper, scenario, rows in tables:
        _print(paper, scenario, rows)
    print_line(NOTE)
    if out is not None:
        print_line(f"The tables and a figure are in {out}")


def _algorithms(named: list[str], others: str | None) -> list[str]:
    """Those in question first, then all built-in ones that are for TCP, or those of `others`."""
    rest = [name for name in _core.algorithms() if not _core.needs_udt(name)]
    algorithms = list(dict.fromkeys([*named, *(split_algorithms(others) if others else rest)]))
    for_udt = next((name for name in algorithms if _core.needs_udt(name)), None)
    if for_udt:
        problem = f'"{for_udt}" is for UDT, and these flows are TCP\'s'
        raise ExperimentError(problem, key=_option_of(for_udt, named))
    return algorithms


def _option_of(algorithm: str, named: list[str]) -> str:
    """The option that names an algorithm; `named` are those in question."""
    return "--cc" if algorithm in named else "--others"


def _experiment(paper: Paper, scenario: Scenario, cc: str, seeds: int, option: str) -> Experiment:
    from dumbbell.experiment.model import Experiment

    changes = [*(change.format(cc=cc) for change in scenario.set), f"seeds={seeds}"]
    try:
        return Experiment.load(paper.folder / scenario.file, overrides=changes)
    except ExperimentError as error:
        key = option if "cc" in error.key else error.key
        raise ExperimentError(error.problem, key=key) from None


def _judge(name: str, result: Result, scenario: Scenario) -> Row:
    import polars as pl

    from dumbbell.engine.compare import achieved

    own = pl.col("flow").cast(pl.String).is_in(scenario.flows)
    row = row_of(name, achieved(result, own))
    if len(result.flow_names) > len(scenario.flows):
        row |= {"left": row_of(name, achieved(result, ~own))["throughput"]}
    return row


def _print(paper: Paper, scenario: Scenario, rows: list[Row]) -> None:
    from dumbbell.display import Column, Table
    from dumbbell.engine.compare import SHOWN

    names = [name for name in SHOWN if name != "utilisation"]
    columns = [Column.of(name) for name in names]
    if "left" in rows[0]:
        names.append("left")
        columns.append(Column.of("rival_throughput", title="Left to others"))
    cells = [[row["cc"], *(row[name] for name in names)] for row in rows]
    print_table(f"{scenario.title} ({paper.id})", Table([Column("Algorithm"), *columns], cells))
    print_line()


def _write(tables: list[tuple[Paper, Scenario, list[Row]]], named: list[str], out: Path) -> None:
    import polars as pl

    from dumbbell.experiment.files import atomic_write, make_folder, writing
    from dumbbell.figures.output import save
    from dumbbell.figures.scatter import throughput_over_delay

    rows = [
        {"paper": paper.id, "scenario": scenario.title, "left": None}
        | {key: value for key, value in row.items() if key != "intervals"}
        for paper, scenario, table in tables
        for row in table
    ]
    panels = {f"{scenario.title} ({paper.id})": table for paper, scenario, table in tables}
    with writing(out):
        make_folder(out)
        with atomic_write(out / "comparison.csv") as file:
            pl.DataFrame(rows, infer_schema_length=None).write_csv(file)
        save(throughput_over_delay(panels, named), out / "comparison")
