"""Writes ``explanation/conformance.md``: test cases of BBR's draft and CUBIC's RFC.

    python scripts/pages/conformance_page.py docs [PATHS]

It takes some minutes: QUIC stacks are slower than the simulator's TCP. No verdict is typed by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import arguments

from dumbbell._core import __version__
from dumbbell.checks import bbr_draft, cells, cubic_rfc, path_grid
from dumbbell.checks.conformance import examine
from dumbbell.experiment.files import write_text

if TYPE_CHECKING:
    from dumbbell.checks.conformance import CaseResult
    from dumbbell.checks.path_grid import Share

_SUITES: Final[dict[str, Any]] = {"bbr": bbr_draft, "cubic": cubic_rfc}

_INTRODUCTION: Final = """\
# Conformance

The test cases of draft-ietf-ccwg-bbr-06 (appendix A) and of RFC 9438 (CUBIC), run on the algorithms
of dumbbell {version} over TCP (`bbr3`), on the same code inside a QUIC stack (`bbr3@quinn`), and on
the stacks' own algorithms (`quinn:bbr`, which is BBRv1, `noq:bbr3`, `quinn:cubic`, `noq:cubic`), of
quinn-proto 0.11.19 and noq-proto 1.4.0.

A case is an experiment and a check of what its flow did. For the BBR draft the checks take the
algorithm's own variables; of the stacks' algorithms they are read from their `Debug` text. For RFC
9438 the window, the slow start threshold and the counters suffice. Neither text gives tolerances;
those of the checks are ours.

The command that runs a cell, with its experiment and a page in `cell/`, here BBR's A.8 on noq's
BBRv3:

<!-- not run: an example of a command for a cell -->
```sh
dumbbell conformance bbr --cc noq:bbr3 --case A.8 --out cell
```

+ passes, \N{MINUS SIGN} fails, a blank cell does not apply or cannot be told from what the
algorithm shows, or is a MAY that the algorithm does without."""

_RANDOM: Final = """\
noq's BBRv3 draws random numbers that no seed determines: it runs each case three times and passes
if all three do, and it is left out of cases that need a run to be repeated (A.9, A.22). A.19 is
about retransmission timeouts, which QUIC does not have."""

_LEVELS: Final = """\
The level of a case is the keyword of the RFC's sentence. The SHOULD of section 4.10 is HyStart++;
Linux's HyStart, in the RFC an experimental alternative, looks the same from outside. No case checks
two MUSTs of section 4.6: cwnd and ssthresh fall as soon as loss recovery begins, and the rate falls
further if ECN echoes go on at a cwnd of 1 packet."""

_GRID: Final = """\
## On other paths

The draft names RTTs of 1 ms to 1 s and rates of 64 kbit/s to 10 Gbit/s. The cases that scale run on
{number} paths spread evenly over the logarithms of both, as far as a run sends no more than
{tcp:.0f} million packets over TCP, or {quic:.1f} million over QUIC. So the corner of long and fast
paths is left out. Times are in round trips or, where a rule has a time of its own, not shorter than
above. A cell is the number of paths on which the case is passed, of those on which it was run.
Below the table the first path that fails links to the experiment that repeats the run."""

_AGAIN: Final = """\
## The same again

<!-- not run: takes minutes -->
```sh
dumbbell conformance bbr --stacks --grid {number} --out bbr # a page, and all experiments
dumbbell conformance cubic --stacks --out cubic
.venv/bin/python scripts/pages/conformance_page.py docs # this page
```"""

_RUNS: Final = "conformance"
"""The folder with the experiments that the page links to."""

_MARKS: Final = {"pass": "+", "fail": "\N{MINUS SIGN}", "n/a": ""}

_CAUSES: Final = Path(__file__).with_name("conformance_causes.md")
"""What the failures come from, written by hand."""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    lines.insert(1, "|---|" + "---|" * (len(head) - 1))
    return "\n".join(lines)


def _named(one: CaseResult | Share) -> str:
    level = "" if one.case.level == "claim" else f" ({one.case.level})"
    return f"{one.case.section} {one.case.title}{level}"


def _verdicts(results: list[CaseResult]) -> str:
    rows = cells.table(results)
    head = ["Case", *(f"`{one.cc}`" for one in rows[0])]
    return _table(head, [[_named(row[0]), *(_MARKS[one.verdict] for one in row)] for row in rows])


def _failures(results: list[CaseResult]) -> str:
    failed = [one for one in results if one.verdict == "fail"]
    return "\n".join(f"- `{one.cc}`, {one.case.section}: {one.seen}" for one in failed)


def _linked(one: CaseResult) -> str:
    """The path of a run, with a link to its experiment."""
    path = f"{one.path.rate / 1e6:g} Mbit/s and {1e3 * one.path.rtt:g} ms"
    return f"[{path}]({_RUNS}/{cells.file_of(one)})"


def _shares(shares: list[Share]) -> str:
    rows: dict[str, list[Share]] = {}
    for one in shares:
        rows.setdefault(_named(one), []).append(one)
    head = ["Case", *(f"`{one.cc}`" for one in next(iter(rows.values())))]
    table = [
        [name, *(f"{one.passed} of {one.paths}" if one.paths else "" for one in row)]
        for name, row in rows.items()
    ]
    stacks = [f"`{cc}`" for cc in bbr_draft.STACKS if all(one.cc != cc for one in shares)]
    left = [f"Not run on these paths: {', '.join(stacks)}."] if stacks else []
    first = [
        f"- `{one.cc}`, {one.case.section}: first at {_linked(one.failed[0])}, {one.failed[0].seen}"
        for one in shares
        if one.failed
    ]
    return "\n\n".join([_table(head, table), *left, "\n".join(first)])


def page(bbr: list[CaseResult], cubic: list[CaseResult], shares: list[Share], number: int) -> str:
    """The page, from the results of all cases."""
    limits = {name: most / 1e6 for name, most in path_grid.MAX_PACKETS.items()}
    grid = [_GRID.format(number=number, **limits), _shares(shares)] if shares else []
    parts = [
        _INTRODUCTION.format(version=__version__),
        "## BBR: draft-ietf-ccwg-bbr-06, appendix A",
        _verdicts(bbr),
        _RANDOM,
        _failures(bbr),
        *grid,
        "## CUBIC: RFC 9438",
        _verdicts(cubic),
        _LEVELS,
        _failures(cubic),
        _CAUSES.read_text("utf-8"),
        _AGAIN.format(number=number),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def write(docs: Path, number: int) -> Path:
    """Runs everything and writes the page into `docs`."""
    found = {}
    for suite, spec in _SUITES.items():
        algorithms = [*spec.ALGORITHMS, *spec.STACKS]
        found[suite] = examine(spec.CASES, algorithms, spec.version)
        print(suite, flush=True)
    algorithms = [*bbr_draft.ALGORITHMS, *bbr_draft.STACKS]
    shares = path_grid.examine(bbr_draft.CASES, algorithms, bbr_draft.version, number)
    path = docs / "explanation/conformance.md"
    for earlier in (path.parent / _RUNS).glob("*.toml"):
        earlier.unlink()
    cells.write_runs(path.parent / _RUNS, [share.failed[0] for share in shares if share.failed])
    write_text(path, page(found["bbr"], found["cubic"], shares, number))
    return path


if __name__ == "__main__":
    print(write(arguments.folder(__doc__), int(sys.argv[2]) if sys.argv[2:] else 12))
