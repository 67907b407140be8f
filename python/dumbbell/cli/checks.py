"""``dumbbell conformance``, ``doctor`` and ``bench``: what algorithms and this machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar

if TYPE_CHECKING:
    from dumbbell.display import Cell

Suite = Literal["bbr"]


def examine_algorithms(
    suite: Annotated[Suite, Argument(metavar="SUITE", help="Specification: bbr, the BBR draft.")],
    cc: Annotated[str | None, options.algorithms("Algorithms; default: all versions.")] = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Run the test cases of a specification on algorithms."""
    from dumbbell.checks import bbr_draft
    from dumbbell.checks.conformance import examine
    from dumbbell.display import Column, Table

    cases = {"bbr": bbr_draft}[suite]
    algorithms = list(cases.ALGORITHMS) if cc is None else options.split_algorithms(cc)
    with progress_bar("running the cases") as progress, options.named("cc"):
        results = examine(cases.CASES, algorithms, cases.version, jobs=jobs, progress=progress)
    failed = [one for one in results if one.verdict == "fail"]
    if json:
        rows = [
            {"section": one.case.section, "title": one.case.title}
            | {"cc": one.cc, "verdict": one.verdict, "seen": one.seen}
            for one in results
        ]
        print_json({"suite": suite, "outcomes": rows})
    else:
        of_cases: dict[str, list[str]] = {}
        for one in results:
            name = f"{one.case.section} {one.case.title}"
            of_cases.setdefault(name, [name]).append(one.verdict)
        table = Table([Column("Case"), *map(Column, algorithms)], list(of_cases.values()))
        print_table("draft-ietf-ccwg-bbr-06, appendix A", table)
        for one in failed:
            print_text(f"\n{one.cc} fails {one.case.section}: {one.seen}")
        print_line()
        other = "the case is about other versions, or the algorithm does not show what it asks"
        print_text(f"n/a: {other}.")
    if failed:
        raise Exit(1)


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
