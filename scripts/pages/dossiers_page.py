"""Writes ``explanation/dossiers.md`` and ``dossiers.json``: all built-in algorithms by RFC 9743.

    python scripts/pages/dossiers_page.py docs [PATHS [ALGORITHM...]]

It takes an hour on two processors. Of algorithms that are not named the data are kept: of all with
``-`` in the place of an algorithm. What `dossiers_linux.py` measured is put into the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from dumbbell import _core
from dumbbell.display import Column
from dumbbell.dossier import evaluate
from dumbbell.dossier.clauses import clauses
from dumbbell.dossier.verdict import Share
from dumbbell.dossier.words import label, with_unit
from dumbbell.experiment.files import write_text

_COUPLED: Final = ("lia", "olia", "balia", "wvegas", "dbac")
"""What differs from Reno or Vegas on several paths only."""

_MARKS: Final = {"for": "+", "against": "\N{MINUS SIGN}", "inconclusive": "\N{MIDDLE DOT}"}

_INTRODUCTION: Final = """\
# Algorithms by RFC 9743

The verdicts of [dossiers](../reference/dossiers.md) on the built-in algorithms with their defaults,
{paths} random paths for each scenario. +: evidence for, \N{MINUS SIGN}: evidence against,
\N{MIDDLE DOT}: open. It is no ranking: the limits are ours, and some clauses ask for what an
algorithm was not made for. Coupled algorithms are left out, because the scenarios have one path.
"""

_AGAIN: Final = """\
## The same again

The [data](dossiers.json) have the share of paths beyond the limit of each measure, with its
interval.

<!-- not run: takes an hour -->
```sh
.venv/bin/python scripts/pages/dossiers_page.py docs # this page
sudo .venv/bin/python scripts/pages/dossiers_linux.py docs # the runs with real packets
dumbbell evaluate bbr3 --out dossier # one algorithm, with the search for the worst paths
```
"""


_KERNEL: Final = """\
## With real packets

Three findings that surprised, on the first paths of the simulator's that show them: the kernel
({kernel}) runs the same files with real packets, one run each. {same} of its {all} values are on
the same side of the limit as the simulator's. The [data](dossiers-linux.json) have the settings.
"""


def _with_kernel(file: Path) -> str:
    """The findings that were checked with real packets, as Markdown; empty without any."""
    if not file.is_file():
        return ""
    data = json.loads(file.read_text())
    rows, sides = [], []
    for one in data["findings"]:
        column = Column(one["title"], number=True, unit=one["unit"], scale=one["scale"])
        what = f"{one['section']} {one['title']} above {with_unit(column, one['limit'])}"
        for path in one["paths"]:
            where = path["path"]
            for cc in (one["worse"], one["better"]):
                both = [path[backend][cc] for backend in ("simulator", "linux")]
                sides.append(len({value > one["limit"] for value in both}) == 1)
                shown = [with_unit(column, x).replace("-", "\N{MINUS SIGN}") for x in both]
                rows.append((what, where, label(cc), *shown))
                what = where = ""
    head = ("finding", "path", "algorithm", "simulator", "kernel")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    kernel = f"Linux {data['kernel'].partition('-')[0]}"
    said = _KERNEL.format(kernel=kernel, same=sum(sides), all=len(sides))
    return said + "\n" + "\n".join(lines)


def _evaluated(cc: str, paths: int) -> dict[str, Any]:
    dossier = evaluate(cc, Path("results/dossiers") / cc, paths=paths, search=0)
    return {
        "clauses": {one.clause.section: one.verdict(cc) for one in dossier.findings},
        "measures": {
            one.measure.id: [share.beyond, share.paths]
            for finding in dossier.findings
            for one in finding.evidence
            if (share := one.shares.get(cc))
        },
    }


def _with_bounds(of: dict[str, Any]) -> dict[str, Any]:
    """The data of an algorithm with the bounds of each share, by its counts."""
    shares = {name: Share(*counts[:2]) for name, counts in of["measures"].items()}
    measures = {name: [one.beyond, one.paths, one.low, one.high] for name, one in shares.items()}
    return of | {"measures": measures}


def write(docs: Path, paths: int, named: list[str]) -> Path:
    """Evaluates algorithms, all if none is named, and writes page and data into `docs`."""
    file = docs / "explanation/dossiers.json"
    kept: dict[str, Any] = json.loads(file.read_text())["algorithms"] if named else {}
    found: dict[str, Any] = {}
    for cc in _core.algorithms():
        if cc in named or (not named and cc not in _COUPLED):
            found[cc] = _evaluated(cc, paths)
            print(cc, flush=True)
        elif cc in kept:
            found[cc] = kept[cc]
    sections = [clause.section for clause in clauses()]
    head = f"| | {' | '.join(sections)} |\n|---|{'---|' * len(sections)}"
    rows = [
        f"| {label(cc)} | {' | '.join(_MARKS[one['clauses'][section]] for section in sections)} |"
        for cc, one in found.items()
    ]
    named = [f"| {clause.section} | {clause.title} |" for clause in clauses()]
    names = "\n".join(["| section | clause |", "|---|---|", *named])
    kernel = _with_kernel(file.with_name("dossiers-linux.json"))
    page = [_INTRODUCTION.format(paths=paths), "\n".join([head, *rows]), names, kernel, _AGAIN]
    path = docs / "explanation/dossiers.md"
    write_text(path, "\n\n".join(part.strip() for part in page if part) + "\n")
    bounded = {cc: _with_bounds(one) for cc, one in found.items()}
    data = {"version": _core.__version__, "paths": paths, "algorithms": bounded}
    write_text(file, json.dumps(data) + "\n")
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), int(sys.argv[2] if sys.argv[2:] else 100), sys.argv[3:]))
