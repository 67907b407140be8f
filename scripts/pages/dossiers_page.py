"""Writes ``explanation/dossiers.md`` and ``dossiers.json``: all built-in algorithms by RFC 9743.

    python scripts/pages/dossiers_page.py docs [PATHS [NAME...]]

With PATHS it evaluates them on as many paths, and goes on from what ``results/dossiers`` has: two
hours on two processors for 100. With names only these algorithms, or all on these scenarios; the
rest of ``dossiers.json`` stays, and PATHS must be as many as it has. Without PATHS it takes what is
there. What `dossiers_linux.py` measured is put into the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core
from dumbbell.display import Column
from dumbbell.dossier.bench import Bench
from dumbbell.dossier.clauses import Measure, clauses
from dumbbell.dossier.evaluation import Evaluation
from dumbbell.dossier.verdict import Pair, Share, Verdict, combined, largest, together
from dumbbell.dossier.words import label, with_unit
from dumbbell.experiment.files import write_text
from dumbbell.figures import styled, svg
from dumbbell.figures.heat import heat_map
from dumbbell.figures.style import PAGE, pyplot_figure

if TYPE_CHECKING:
    from collections.abc import Iterable

_COUPLED: Final = ("lia", "olia", "balia", "wvegas", "dbac")
"""What differs from Reno or Vegas on several paths only."""

_CELLS: Final = {"for": "{:.0f}", "against": "**{:.0f}**", "inconclusive": "({:.0f})"}

_COMPARED: Final = {
    "better": "\N{BLACK UP-POINTING TRIANGLE}",
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "both": "\N{BLACK DIAMOND}",
    "open": "\N{MIDDLE DOT}",
}

_INTRODUCTION: Final = """\
# Algorithms by RFC 9743

The verdicts of [dossiers](../reference/dossiers.md) on the built-in algorithms with their defaults,
{paths} random paths for each scenario. A number belongs to the clause's worst measure: the share of
paths beyond its limit, in %. **Bold**: evidence against, as with a confidence of 95 % for this
measure by itself more than a tenth of all such paths are beyond. Plain: evidence for, all measures
on less than a tenth. In brackets: open. `=`: the others are compared with this algorithm, so it has
no verdict. Where a clause has many measures, one may be against by chance
([how often](statistics.md#verdicts-of-dossiers)). It is no ranking: the limits are
ours, and some clauses do not suit what an algorithm is for. Coupled algorithms are left out,
because the scenarios have one path.
{seeds}
![Shares of paths beyond the limits, by algorithm and clause](../figures/dossiers.svg)

*The numbers of the table. Lighter: on more paths beyond the limit.*
"""

_STANDARD: Final = """\
## Beside CUBIC

The same paths, one by one, by an exact sign test (McNemar) at 5 % for each clause.
\N{BLACK UP-POINTING TRIANGLE}: better in a measure of the clause, and worse in none.
\N{BLACK DOWN-POINTING TRIANGLE}: worse in a measure, and better in none.
\N{BLACK DIAMOND}: both. \N{MIDDLE DOT}: no difference shown. CUBIC itself is beside Reno.
"""

_SOME: Final = """\
## Measures that tell algorithms apart

On how many of {paths} paths an algorithm is beyond the limit:
"""

_SHOWN: Final = (
    "delay-fall",
    "loss-fall",
    "loss-policer",
    "least-share-hops",
    "starvation-reverse",
    "delay-acks",
)
_SHOWN_FOR: Final = ("cubic", "bbr", "bbr3", "copa", "vegas", "ledbat++", "c4")

_ONE_SEED: Final = """
These runs had one seed for all paths, so that all paths share one draw of start times: the bounds
leave out how much that draw matters. A dossier made now has a seed for each path.
"""

_AGAIN: Final = """\
## The same again

The [data](dossiers.json) have the share of paths beyond the limit of each measure, with its
interval.

<!-- not run: takes two hours -->
```sh
.venv/bin/python scripts/pages/dossiers_page.py docs 100 # this page
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


_ALL: Final = [cc for cc in _core.algorithms() if cc not in _COUPLED]


def _evaluate(data: dict[str, Any], names: list[str]) -> None:
    """Evaluates what is named, or all if nothing is, and puts it into `data`.

    All run on the same paths, each scenario once; CUBIC and Reno are beside.
    """
    chosen = [cc for cc in names if cc in _ALL] or _ALL
    measures = [one for clause in clauses() for one in clause.measures]
    if scenarios := set(names) - set(_ALL):
        measures = [one for one in measures if one.scenario in scenarios]
    first, *others = dict.fromkeys([*chosen, "cubic", "reno"])
    bench = Bench(Path("results/dossiers", "-".join(names) or "all"), progress=_told)
    of = Evaluation(first, others, bench, data["paths"], "simulator")
    for measure in measures:
        evidence = of.evidence(measure)
        if evidence.failure:
            raise SystemExit(f"{measure.id}: {evidence.failure}")
        for cc in chosen:
            share, pair = evidence.shares[cc], evidence.beside(cc)
            found = [share.beyond, share.paths, share.low, share.high]
            kept = data["algorithms"].setdefault(cc, {"measures": {}})["measures"]
            kept[measure.id] = [*found, *([pair.worse, pair.better] if pair else [])]


def _told(step: str, done: float) -> None:
    print(f"\r{step} {100 * done:.0f} %\033[K", end="", flush=True)


def _verdict(measure: Measure, cc: str, found: dict[str, list[int]]) -> Verdict:
    return "reference" if cc == measure.reference else Share(*found[measure.id][:2]).verdict


def _judge(data: dict[str, Any]) -> None:
    """The verdicts on the clauses, from the measures."""
    for cc, of in data["algorithms"].items():
        of |= {"clauses": {}, "beside": {}}
        for clause in clauses():
            verdicts = (_verdict(measure, cc, of["measures"]) for measure in clause.measures)
            of["clauses"][clause.section] = together(verdicts)
            kept = [of["measures"][measure.id][4:] for measure in clause.measures]
            of["beside"][clause.section] = combined([Pair(*pair) for pair in kept if pair])


def _shares(data: dict[str, Any]) -> pl.DataFrame:
    """By algorithm and clause: the verdict, and the largest share of the measures that have it."""
    rows = []
    for cc, found in data["algorithms"].items():
        for clause in clauses():
            verdict = found["clauses"][clause.section]
            counted = [one for one in clause.measures if one.reference != cc]
            most = largest((Share(*found["measures"][one.id][:2]) for one in counted), verdict)
            rows.append((cc, clause.section, verdict, most and most.value))
    return pl.DataFrame(rows, ["cc", "section", "verdict", "share"], orient="row")


def _table(lines: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Cells of all algorithms, clause by clause, as Markdown."""
    sections = [clause.section for clause in clauses()]
    head = [f"| | {' | '.join(sections)} |", f"|---|{'---|' * len(sections)}"]
    return "\n".join([*head, *(f"| {label(cc)} | {' | '.join(cells)} |" for cc, cells in lines)])


def _some(data: dict[str, Any]) -> str:
    """Some measures of some algorithms, as Markdown."""
    every = {one.id: (clause, one) for clause in clauses() for one in clause.measures}
    head = ["measure", "scenario", *map(label, _SHOWN_FOR)]
    lines = [f"| {' | '.join(head)} |", f"|---|---|{'---:|' * len(_SHOWN_FOR)}"]
    for name in _SHOWN:
        clause, measure = every[name]
        what = f"{clause.section} {measure.kind.column.title} above"
        what = f"{what} {with_unit(measure.kind.column, measure.limit)}"
        shares = (data["algorithms"][cc]["measures"][name] for cc in _SHOWN_FOR)
        cells = [what, f"`{measure.scenario}`", *(str(one[0]) for one in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(verdict: str, share: float | None) -> str:
    return "=" if share is None else _CELLS[verdict].format(100 * share)


def _draw(shares: pl.DataFrame, path: Path) -> None:
    """The shares of all algorithms and clauses as a heat map."""
    names = [shares[axis].unique(maintain_order=True).to_list() for axis in ("section", "cc")]
    names[1].reverse()  # the first row of the table is at the top
    places = [pl.col("section"), pl.col("cc")]
    cells = shares.with_columns(
        at.replace_strict(order, range(len(order)), return_dtype=pl.Int64)
        for at, order in zip(places, names, strict=True)
    )
    known = cells.drop_nulls()
    with styled():
        figure = pyplot_figure()(figsize=(PAGE, 0.9 * PAGE))
        axes = figure.subplots()
        heat_map(axes, known, "section", "cc", "share", low=0, high=1, text=_percent)
        axes.set_xticks(range(len(names[0])), names[0], rotation=60)
        axes.set_yticks(range(len(names[1])), [label(cc) for cc in names[1]])
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
        write_text(path, svg(figure))


def _percent(cell: dict[str, Any]) -> str:
    return f"{100 * cell['share']:.0f}"


def write(docs: Path, data: dict[str, Any]) -> Path:
    """Writes page, figure and data into `docs`."""
    file = docs / "explanation/dossiers.json"
    shares, found = _shares(data), data["algorithms"]
    by_algorithm = shares.group_by("cc", maintain_order=True)
    cells = {str(cc): list(map(_cell, of["verdict"], of["share"])) for (cc,), of in by_algorithm}
    beside = {cc: [_COMPARED[mark] for mark in one["beside"].values()] for cc, one in found.items()}
    named = [f"| {clause.section} | {clause.title} |" for clause in clauses()]
    page = [
        _INTRODUCTION.format(paths=data["paths"], seeds="" if "seeds" in data else _ONE_SEED),
        _table(cells.items()),
        "\n".join(["| section | clause |", "|---|---|", *named]),
        _SOME.format(paths=data["paths"]),
        _some(data),
        _STANDARD,
        _table(beside.items()),
        _with_kernel(file.with_name("dossiers-linux.json")),
        _AGAIN,
    ]
    path = docs / "explanation/dossiers.md"
    write_text(path, "\n\n".join(part.strip() for part in page if part) + "\n")
    write_text(file, json.dumps(data) + "\n")
    _draw(shares, docs / "figures/dossiers.svg")
    return path


def main() -> None:
    """Evaluates what is named, or takes the data that are there."""
    docs, *rest = sys.argv[1:]
    file = Path(docs, "explanation/dossiers.json")
    paths, names = int(rest[0]) if rest else 0, rest[1:]
    data: dict[str, Any] = {"paths": paths, "seeds": "of paths", "algorithms": {}}
    if len(rest) != 1:
        data = json.loads(file.read_text())
    scenarios = {measure.scenario for clause in clauses() for measure in clause.measures}
    if unknown := set(names) - set(_ALL) - scenarios:
        raise SystemExit(f"no algorithm of this page and no scenario: {', '.join(sorted(unknown))}")
    if names and paths != data["paths"]:
        raise SystemExit(f"{file} has {data['paths']} paths: evaluate as many, or all algorithms")
    if names and "seeds" not in data:
        raise SystemExit(f"{file} has one seed for all paths: evaluate all algorithms")
    if rest:
        data["version"] = _core.__version__
        _evaluate(data, names)
        _judge(data)
    print(write(Path(docs), data))


if __name__ == "__main__":
    main()
