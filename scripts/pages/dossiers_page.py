"""Writes ``explanation/dossiers.md`` and ``dossiers.json``: all built-in algorithms by RFC 9743.

    python scripts/pages/dossiers_page.py docs [PATHS]

It takes two hours on two processors, and goes on from what ``results/dossiers`` has. What
`dossiers_linux.py` measured is put into the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from dumbbell import _core
from dumbbell.display import Column
from dumbbell.dossier.bench import Bench
from dumbbell.dossier.clauses import clauses
from dumbbell.dossier.evaluation import Evaluation
from dumbbell.dossier.outcome import Finding
from dumbbell.dossier.words import label, with_unit
from dumbbell.experiment.files import write_text

_COUPLED: Final = ("lia", "olia", "balia", "wvegas", "dbac")
"""What differs from Reno or Vegas on several paths only."""

_MARKS: Final = {
    "for": "+",
    "against": "\N{MINUS SIGN}",
    "inconclusive": "\N{MIDDLE DOT}",
    "reference": "=",
}

_COMPARED: Final = {
    "better": "\N{BLACK UP-POINTING TRIANGLE}",
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "both": "\N{BLACK DIAMOND}",
    "open": "\N{MIDDLE DOT}",
}

_INTRODUCTION: Final = """\
# Algorithms by RFC 9743

The verdicts of [dossiers](../reference/dossiers.md) on the built-in algorithms with their defaults,
{paths} random paths for each scenario. +: evidence for, \N{MINUS SIGN}: evidence against,
\N{MIDDLE DOT}: open, =: what others are compared with. It is no ranking: the limits are ours, and
some clauses ask for what an algorithm was not made for. Coupled algorithms are left out, because
the scenarios have one path.
"""

_STANDARD: Final = """\
## Beside CUBIC

The same paths, one by one, by an exact sign test (McNemar) at 5 % for each clause.
\N{BLACK UP-POINTING TRIANGLE}: better in a measure of the clause, and worse in none.
\N{BLACK DOWN-POINTING TRIANGLE}: worse in a measure, and better in none.
\N{BLACK DIAMOND}: both. \N{MIDDLE DOT}: no difference shown. CUBIC itself is beside Reno.
"""

_AGAIN: Final = """\
## The same again

The [data](dossiers.json) have the share of paths beyond the limit of each measure, with its
interval.

<!-- not run: takes two hours -->
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


def _evaluated(paths: int) -> dict[str, Any]:
    """By algorithm, its verdicts and shares; all run on the same paths, each scenario once."""
    first, *others = [cc for cc in _core.algorithms() if cc not in _COUPLED]
    bench = Bench(Path("results/dossiers/all"), progress=_told)
    of = Evaluation(first, others, bench, paths, "simulator")
    findings = [
        Finding(one, [of.evidence(measure) for measure in one.measures]) for one in clauses()
    ]
    for evidence in (one for finding in findings for one in finding.evidence):
        if evidence.failure:
            raise SystemExit(f"{evidence.measure.id}: {evidence.failure}")
    return {cc: _of_algorithm(cc, findings) for cc in of.algorithms}


def _told(step: str, done: float) -> None:
    print(f"\r{step} {100 * done:.0f} %\033[K", end="", flush=True)


def _of_algorithm(cc: str, findings: list[Finding]) -> dict[str, Any]:
    measures = {}
    for one in (one for finding in findings for one in finding.evidence):
        share, pair = one.shares[cc], one.beside(cc)
        bounded = [share.beyond, share.paths, share.low, share.high]
        measures[one.measure.id] = [*bounded, *([pair.worse, pair.better] if pair else [])]
    return {
        "clauses": {one.clause.section: one.verdict(cc) for one in findings},
        "beside": {one.clause.section: one.beside(cc) for one in findings},
        "measures": measures,
    }


def _marks(found: dict[str, Any], key: str, marks: dict[str, str]) -> str:
    """A table of the marks of all algorithms, clause by clause."""
    sections = [clause.section for clause in clauses()]
    lines = [f"| | {' | '.join(sections)} |", f"|---|{'---|' * len(sections)}"]
    for cc, one in found.items():
        cells = [marks[one[key][section]] for section in sections]
        lines.append(f"| {label(cc)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(docs: Path, paths: int) -> Path:
    """Evaluates all algorithms, and writes page and data into `docs`."""
    file = docs / "explanation/dossiers.json"
    found = _evaluated(paths)
    named = [f"| {clause.section} | {clause.title} |" for clause in clauses()]
    page = [
        _INTRODUCTION.format(paths=paths),
        _marks(found, "clauses", _MARKS),
        "\n".join(["| section | clause |", "|---|---|", *named]),
        _STANDARD,
        _marks(found, "beside", _COMPARED),
        _with_kernel(file.with_name("dossiers-linux.json")),
        _AGAIN,
    ]
    path = docs / "explanation/dossiers.md"
    write_text(path, "\n\n".join(part.strip() for part in page if part) + "\n")
    data = {"version": _core.__version__, "paths": paths, "algorithms": found}
    write_text(file, json.dumps(data) + "\n")
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), int(sys.argv[2] if sys.argv[2:] else 100)))
