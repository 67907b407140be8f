"""What a run of test cases leaves: a page, the verdicts, and the experiment of every cell."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from dumbbell import _core
from dumbbell.checks.conformance import Path
from dumbbell.experiment.files import make_folder, write_text
from dumbbell.report import page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path as FilePath

    from dumbbell.checks.conformance import CaseResult
    from dumbbell.checks.path_grid import Share

RUNS = "runs"

_OfCase = TypeVar("_OfCase", "CaseResult", "Share")


def file_of(one: CaseResult) -> str:
    """The name of the file with a cell's experiment."""
    cell = f"{one.case.section} {one.case.title[:40]} {one.cc}"
    at = f" {one.path.rate:g} {one.path.rtt:g}" if one.path != Path() else ""
    return re.sub(r"[^\w.@]+", "-", cell + at).strip("-") + ".toml"


def rows(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """The verdicts, for JSON."""
    return [
        {"section": one.case.section, "title": one.case.title, "level": one.case.level}
        | {"cc": one.cc, "verdict": one.verdict, "seen": one.seen}
        for one in results
    ]


def share_rows(shares: Sequence[Share]) -> list[dict[str, Any]]:
    """The shares of paths, for JSON."""
    return [
        {"section": one.case.section, "title": one.case.title, "cc": one.cc}
        | {"passed": one.passed, "paths": one.paths}
        | {
            "failed": [
                {"rate": fail.path.rate, "rtt": fail.path.rtt, "seen": fail.seen}
                | {"experiment": f"{RUNS}/{file_of(fail)}"}
                for fail in one.failed
            ]
        }
        for one in shares
    ]


def table(results: Sequence[_OfCase]) -> list[list[_OfCase]]:
    """The results, or the shares, of each case, a row each."""
    of_cases: dict[int, list[_OfCase]] = {}
    for one in results:
        of_cases.setdefault(id(one.case), []).append(one)
    return list(of_cases.values())


def write_runs(runs: FilePath, results: Sequence[CaseResult]) -> None:
    """Writes the experiments of some results into a folder."""
    make_folder(runs)
    for one in results:
        if one.experiment is not None:
            write_text(runs / file_of(one), one.experiment.to_toml())


def write(
    out: FilePath,
    suite: str,
    specification: str,
    results: Sequence[CaseResult],
    shares: Sequence[Share],
) -> FilePath:
    """Writes ``index.html``, ``outcomes.json`` and the experiments into a folder."""
    write_runs(out / RUNS, [*results, *(fail for share in shares for fail in share.failed)])
    outcomes = {"suite": suite, "version": _core.__version__, "outcomes": rows(results)}
    write_text(out / "outcomes.json", json.dumps(outcomes | {"grid": share_rows(shares)}) + "\n")
    index = out / "index.html"
    page.write(
        index,
        "conformance.html.j2",
        specification=specification,
        rows=table(results),
        shares=table(shares),
        file_of=file_of,
        runs=RUNS,
        version=_core.__version__,
    )
    return index
