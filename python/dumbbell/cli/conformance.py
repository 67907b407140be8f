"""``dumbbell conformance``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dumbbell.checks import bbr_draft
from dumbbell.checks.conformance import examine
from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import print_json, print_line, print_table, progress_bar
from dumbbell.display import Column, Table
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from dumbbell.checks.conformance import Outcome

SUITES = {"bbr": bbr_draft}
"""The specifications whose cases there are."""


def show(suite: str, cc: str | None, *, jobs: int | None, json: bool) -> None:
    """Puts algorithms through the cases of a specification and prints what came of them."""
    if suite not in SUITES:
        raise DumbbellError(f'there are no cases of "{suite}"; there are {", ".join(SUITES)}')
    cases = SUITES[suite]
    algorithms = list(cases.ALGORITHMS) if cc is None else split_algorithms(cc)
    with progress_bar("running the cases") as tell:
        outcomes = examine(cases.CASES, algorithms, cases.version, jobs=jobs, progress=tell)
    failed = [outcome for outcome in outcomes if outcome.verdict == "fail"]
    if json:
        print_json({"suite": suite, "outcomes": [_row(outcome) for outcome in outcomes]})
    else:
        _print(outcomes, algorithms, failed)
    if failed:
        raise typer.Exit(1)


def _print(outcomes: list[Outcome], algorithms: list[str], failed: list[Outcome]) -> None:
    lines = [outcomes[i : i + len(algorithms)] for i in range(0, len(outcomes), len(algorithms))]
    print_table(
        "draft-ietf-ccwg-bbr-06, appendix A",
        Table(
            [Column("Case"), *map(Column, algorithms)],
            [
                [f"{line[0].case.section} {line[0].case.title}"] + [one.verdict for one in line]
                for line in lines
            ],
        ),
    )
    for outcome in failed:
        print_line(f"\n{outcome.cc} fails {outcome.case.section}: {outcome.seen}")
    print_line(
        "\nn/a: the case is about other versions, or the algorithm does not show what it asks."
    )


def _row(outcome: Outcome) -> dict[str, str]:
    return {
        "section": outcome.case.section,
        "title": outcome.case.title,
        "cc": outcome.cc,
        "verdict": outcome.verdict,
        "seen": outcome.seen,
    }
