"""``dumbbell conformance``, ``doctor`` and ``bench``: what algorithms and this machine can do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.checks.conformance import Case, CaseResult
    from dumbbell.checks.path_grid import Share
    from dumbbell.display import Cell
    from dumbbell.engine.backend import Backend

Suite = Literal["bbr", "cubic"]


def examine_algorithms(
    suite: Annotated[
        Suite, Argument(metavar="SUITE", help="Specification: bbr, the BBR draft; cubic, RFC 9438.")
    ],
    cc: Annotated[
        str | None,
        options.algorithms(
            "Algorithms; default: all built-in versions. bbr3@quinn is one of ours in a QUIC stack."
        ),
    ] = None,
    stacks: Annotated[
        bool, Option("--stacks", help="Add QUIC stacks: ours inside them, and their own.")
    ] = False,
    case: Annotated[
        str | None,
        Option("--case", metavar="CASES", help="Cases, by section or title; default: all."),
    ] = None,
    grid: Annotated[
        int | None, Option("--grid", min=1, metavar="N", help="Run the cases on N other paths too.")
    ] = None,
    backend: options.OnBackend = "simulator",
    out: Annotated[
        Path | None, options.out("Folder for a page and the experiment of every cell.")
    ] = None,
    overwrite: options.Overwrite = False,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Run the test cases of a specification on algorithms."""
    from dumbbell.checks import bbr_draft, cells, cubic_rfc, path_grid
    from dumbbell.checks.conformance import examine

    if out is not None:
        options.refuse_existing(out, overwrite, folder=True)
    spec = {"bbr": bbr_draft, "cubic": cubic_rfc}[suite]
    cases = _named(spec.CASES, case)
    algorithms = list(spec.ALGORITHMS) if cc is None else options.split_algorithms(cc)
    algorithms += [one for one in spec.STACKS if stacks and one not in algorithms]
    if grid:
        _refuse_grid(suite, cases, backend)
    shares: list[Share] = []
    with progress_bar("running the cases") as progress, options.named("cc"):
        results = examine(
            cases, algorithms, spec.version, jobs=jobs, backend=backend, progress=progress
        )
        if grid:
            shares = path_grid.examine(
                cases, algorithms, spec.version, grid, jobs=jobs, progress=progress
            )
    failed = [one for one in results if one.verdict == "fail"]
    if out is not None:
        cells.write(out, suite, spec.SPECIFICATION, results, shares)
    if json:
        said = {"suite": suite, "outcomes": cells.rows(results)}
        print_json(said | ({"grid": cells.share_rows(shares)} if grid else {}))
    else:
        _print_verdicts(spec.SPECIFICATION, algorithms, results, failed)
        if shares:
            _print_shares(algorithms, shares)
        if out is not None:
            print_line(f"\nThe page is {out / 'index.html'}")
    if failed or any(one.failed for one in shares):
        raise Exit(1)


def _named(cases: Sequence[Case], named: str | None) -> list[Case]:
    """The cases of ``--case``."""
    from dumbbell.errors import ExperimentError

    if named is None:
        return list(cases)
    found = [case for case in cases if case.title == named]
    for section in [] if found else options.split_list(named):
        of_section = [case for case in cases if case.section == section]
        if not of_section:
            known = ", ".join(dict.fromkeys(case.section for case in cases))
            problem = f'there is no case "{section}"; write a title, or sections of {known}'
            raise ExperimentError(problem, key="--case")
        found += of_section
    return found


def _refuse_grid(suite: Suite, cases: Sequence[Case], backend: Backend) -> None:
    """Refuses ``--grid`` where no other paths can be run."""
    from dumbbell.errors import ExperimentError

    if not any(one.grid for one in cases):
        problem = f"no case of {suite} that is asked for runs on other paths; leave --grid out"
        raise ExperimentError(problem, key="--grid")
    if backend != "simulator":
        raise ExperimentError("other paths are simulated only; leave --backend out", key="--grid")


def _print_verdicts(
    specification: str,
    algorithms: Sequence[str],
    results: Sequence[CaseResult],
    failed: Sequence[CaseResult],
) -> None:
    from dumbbell.checks.cells import table
    from dumbbell.display import Column, Table

    lines: list[list[Cell]] = [
        [f"{row[0].case.section} {row[0].case.title}", *(one.verdict for one in row)]
        for row in table(results)
    ]
    print_table(specification, Table([Column("Case"), *map(Column, algorithms)], lines))
    for one in failed:
        print_text(f"\n{one.cc} fails {one.case.section}: {one.seen}")
    print_line()
    other = "the case does not apply to the algorithm, or the algorithm does not show what it asks"
    print_text(f"n/a: {other}.")


def _print_shares(algorithms: Sequence[str], shares: Sequence[Share]) -> None:
    from dumbbell.display import Column, Table

    lines: dict[str, list[Cell]] = {}
    for one in shares:
        name = f"{one.case.section} {one.case.title}"
        cell = f"{one.passed} of {one.paths}" if one.paths else "n/a"
        lines.setdefault(name, [name]).append(cell)
    print_line()
    print_table(
        "On other paths", Table([Column("Case"), *map(Column, algorithms)], [*lines.values()])
    )
    for one in shares:
        for fail in one.failed[:1]:
            at = f"{fail.path.rate / 1e6:g} Mbit/s and {1e3 * fail.path.rtt:g} ms"
            print_text(f"\n{one.cc} fails {one.case.section} first at {at}: {fail.seen}")


def examine_machine(json: options.Json = False) -> None:
    """Tell what this machine can do; each lack has its remedy."""
    from dumbbell.checks.machine import examine
    from dumbbell.display import Column, Table

    findings = examine()
    if json:
        print_json({"findings": [finding._asdict() for finding in findings]})
        return
    rows = [[one.name, "yes" if one.ok else "no", one.found] for one in findings]
    print_table("This machine", Table([Column(""), Column("Ready"), Column("Found")], rows))
    for finding in findings:
        if finding.remedy:
            print_line(f"\n{finding.name}: {finding.remedy}")


def measure_speed(json: options.Json = False) -> None:
    """Measure how fast this machine simulates: packets per processor second."""
    from dumbbell._core import __version__
    from dumbbell.checks.speed import machine, measure
    from dumbbell.display import Column, Table

    with progress_bar("measuring") as progress:
        found = measure(progress=progress)
    if json:
        rows = [
            {"title": one.case.title, "data_packets": one.packets}
            | {"packets_per_second": one.rate, "times_real_time": one.factor}
            for one in found
        ]
        print_json({"version": __version__, "machine": machine(), "cases": rows})
        return
    columns = [
        Column("Scenario"),
        Column("Data packets", number=True, decimals=0),
        Column("Per processor second", number=True, unit="million", scale=1e-6),
        Column("Times real time", number=True),
    ]
    lines: list[list[Cell]] = [[one.case.title, one.packets, one.rate, one.factor] for one in found]
    print_table(f"dumbbell {__version__}; {machine()}", Table(columns, lines))
    print_text(
        "Medians of three runs in turn, each on one core; other work on the machine slows them."
    )
