"""``dumbbell validate``, ``conformance`` and ``doctor``: what is checked, and against what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option

from dumbbell.cli import options
from dumbbell.cli.options import split_list
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar
from dumbbell.errors import DumbbellError

Suite = Literal["bbr"]


def validate_grid(
    out: Annotated[Path, options.out("Folder of runs and page.")] = Path("results/validation"),
    cc: Annotated[str, options.algorithms("Algorithms.")] = "reno,cubic,bbr",
    rate: Annotated[str, Option(help="Rates of the link.")] = "100 Mbit/s",
    rtt: Annotated[str, Option(help="Round-trip times.")] = "10 ms,20 ms,50 ms,100 ms",
    queue: Annotated[str, Option(help="Queue lengths.")] = "0.5 BDP,1 BDP,2 BDP",
    loss: Annotated[str, Option(help="Probabilities of random loss.")] = "0",
    duration: Annotated[str, Option(help="Length of each run.")] = "60 s",
    repeats: Annotated[int, Option(min=1, help="Runs of each cell.")] = 3,
    jobs: Annotated[int, Option(min=1, help="Cells at a time.")] = 1,
    retry_invalid: Annotated[int, Option(help="How often to repeat an invalid run.")] = 1,
    overwrite: options.Overwrite = False,
    measure: Annotated[bool, Option(help="Whether to run what is missing.")] = True,
    json: options.Json = False,
) -> None:
    """Compare simulator and real packets over a grid of flows."""
    from dumbbell.checks import kernel_grid, kernel_page

    rates, rtts, queues, losses = map(split_list, (rate, rtt, queue, loss))
    algorithms = options.split_algorithms(cc)
    grid = kernel_grid.Grid(algorithms, rates, rtts, queues, losses, duration, repeats)
    for cell in grid.cells:
        cell.experiment(duration, grid.seeds)
    if measure:
        with progress_bar() as progress:
            kernel_grid.measure(
                grid,
                out,
                jobs=jobs,
                retry_invalid=retry_invalid,
                overwrite=overwrite,
                progress=progress,
            )
    cells = kernel_grid.compare(grid, out)
    if cells.is_empty():
        raise DumbbellError(f"{out}: nothing was measured there; leave out --no-measure")
    page = kernel_page.write(grid, cells, out)
    if json:
        print_json({"cells": cells.to_dicts(), "page": str(page)})
        return
    print_line(kernel_page.table(cells))
    print_line(f"\nThe page is {page}")


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
