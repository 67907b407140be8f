"""``dumbbell conformance``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar
from dumbbell.errors import ExperimentError

if TYPE_CHECKING:
    from dumbbell.checks.conformance import CaseResult

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

    cases = {"bbr": bbr_draft}[suite]
    algorithms = list(cases.ALGORITHMS) if cc is None else options.split_algorithms(cc)
    try:
        with progress_bar("running the cases") as tell:
            outcomes = examine(cases.CASES, algorithms, cases.version, jobs=jobs, progress=tell)
    except ExperimentError as error:
        raise ExperimentError(error.problem, key=f"--{error.key}") from None
    failed = [outcome for outcome in outcomes if outcome.verdict == "fail"]
    if json:
        print_json({"suite": suite, "outcomes": [_row(outcome) for outcome in outcomes]})
    else:
        _print(outcomes, algorithms, failed)
    if failed:
        raise Exit(1)


def _print(outcomes: list[CaseResult], algorithms: list[str], failed: list[CaseResult]) -> None:
    from dumbbell.display import Column, Table

    lines = [outcomes[i : i + len(algorithms)] for i in range(0, len(outcomes), len(algorithms))]
    cells = [
        [f"{line[0].case.section} {line[0].case.title}"] + [one.verdict for one in line]
        for line in lines
    ]
    table = Table([Column("Case"), *map(Column, algorithms)], cells)
    print_table("draft-ietf-ccwg-bbr-06, appendix A", table)
    for outcome in failed:
        print_text(f"\n{outcome.cc} fails {outcome.case.section}: {outcome.seen}")
    print_line()
    print_text(
        "n/a: the case is about other versions, or the algorithm does not show what it asks."
    )


def _row(outcome: CaseResult) -> dict[str, str]:
    case = outcome.case
    row = {"section": case.section, "title": case.title, "cc": outcome.cc}
    return row | {"verdict": outcome.verdict, "seen": outcome.seen}
