"""Writes ``explanation/references.md``: algorithms beside their authors' code.

    python scripts/pages/references_page.py docs

The tables come from the kept comparisons in ``scripts/references``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import arguments
import polars as pl

from dumbbell.experiment.files import write_text

KEPT: Final = Path(__file__).resolve().parent.parent / "references"

CAUSES: Final = {
    "yeah": "Whole packets. The module may decongest an acknowledgement or a round trip earlier or "
    "later, where the queue is near 80 packets",
    "illinois": "The same",
    "htcp": "The same",
    "westwood": "The same to a packet",
    "vegas": "The same",
    "veno": "The same",
    "cdg": "Whole packets: the module rounds its window down, of 27 packets beside CUBIC. Backoffs "
    "are drawn at random, with the same numbers",
    "lp": "On purpose. Early congestion lowers the module's window, not its ssthresh, so that slow "
    "start overshoots again. A window of one packet has delayed acknowledgements, whose 40 ms "
    "count as a queue: the window stays at one packet",
    "nv": "The same. In an outage a window of 1 packet is 2 in the module before it grows",
    "hybla": "The same to a packet, after pauses to two",
    "hstcp(arithmetic=linux)": "The same",
    "stcp": "Whole packets",
}
"""Why the windows of an algorithm and of Linux's module are not the same."""


def _percent(theirs: float, ours: float) -> str:
    return f"{theirs / ours - 1:+.1%}".replace("-0.0%", "+0.0%").replace("%", " %")


def windows() -> str:
    """A row for each algorithm and run: how far the module's window is off."""
    lines = [
        "| algorithm | run | window here | module's | mean difference | 99th percentile | max |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in pl.read_csv(KEPT / "kernel-windows.csv").iter_rows(named=True):
        mean = f"{row['theirs']:,.1f} ({_percent(row['theirs'], row['ours'])})"
        cells = [f"{row[name]:,.1f}" for name in ("mean_off", "p99_off", "max_off")]
        lines.append(f"| `{row['cc']}` | {row['run']} | {row['ours']:,.1f} | {mean} | ")
        lines[-1] += " | ".join(cells) + " |"
    return "\n".join(lines)


def flows(file: str) -> str:
    """A row for each algorithm and run: the flow with either window in force."""
    lines = [
        "| algorithm | run | goodput, Mbit/s | queueing delay, ms | retransmissions |",
        "|---|---|---:|---:|---:|",
    ]
    kept = pl.read_csv(KEPT / file)
    for (cc, run), pair in kept.group_by(["cc", "run"], maintain_order=True):
        ours, theirs = (pair.row(by_predicate=pl.col("window") == w, named=True) for w in _SIDES)
        cells = [
            f"{ours['goodput']:.2f} / {theirs['goodput']:.2f}",
            f"{ours['delay']:.2f} / {theirs['delay']:.2f}",
            f"{ours['retransmitted']:,} / {theirs['retransmitted']:,}",
        ]
        lines.append(f"| `{cc}` | {run} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


_SIDES: Final = ("ours", "theirs")


def summary() -> str:
    """A row for each algorithm with a module: the largest error of the mean window, the cause."""
    lines = [
        "| algorithm | module of Linux 6.12 | largest error of the mean window (module / here) "
        "| cause |",
        "|---|---|---:|---|",
    ]
    error = pl.col("theirs") / pl.col("ours") - 1
    kept = pl.read_csv(KEPT / "kernel-windows.csv").with_columns(error=error)
    for (cc,), runs in kept.group_by(["cc"], maintain_order=True):
        worst = runs.sort(pl.col("error").abs()).row(-1, named=True)
        module = MODULES.get(str(cc), str(cc))
        value = f"{worst['error']:+.1%} ({worst['run']})".replace("%", " %")
        lines.append(f"| `{cc}` | `tcp_{module}.c` | {value} | {CAUSES[str(cc)]} |")
    return "\n".join(lines)


MODULES: Final = {"hstcp(arithmetic=linux)": "highspeed", "stcp": "scalable"}
"""Modules whose name is not the algorithm's."""


def write(docs: Path) -> Path:
    """Writes the page into `docs`."""
    parts = [_INTRODUCTION, summary(), _REPLAYED, windows(), _IN_PLACE]
    parts += [flows("kernel-flows.csv"), _AUTHORS, flows("authors-flows.csv"), _REST, _AGAIN]
    write_text(docs / "explanation/references.md", "\n\n".join(parts) + "\n")
    return docs / "explanation/references.md"


_INTRODUCTION: Final = """\
# Algorithms beside their references

Each algorithm that has no comparison with real packets is compared with the code of its authors,
or with Linux's. A module of the kernel is built as a program, and a simulated flow runs beside
it for 60 s:

| run | link, with a queue of 1 BDP |
|---|---|
| alone | 50 Mbit/s, 40 ms |
| long | 100 Mbit/s, 100 ms |
| losses | 50 Mbit/s, 40 ms; one packet in 1000 is lost |
| beside cubic | 50 Mbit/s, 40 ms, with a CUBIC flow |
| outages | 20 Mbit/s, 40 ms; all packets are lost from 10 to 11 s and from 25 to 25.5 s |
| pauses | 20 Mbit/s, 40 ms; responses of 1 MB, with pauses of 500 ms on average, exponentially \
distributed |

## Linux's modules

The causes were read in the code."""

_REPLAYED: Final = """\
### The same acknowledgements

The window of dumbbell's algorithm is in force. The module receives the same acknowledgements,
losses and timeouts, in the kernel's order. The columns are mean windows and differences after
each acknowledgement, in packets. The module's window has no effect on the flow: where it is
larger, the queue does not grow, so a difference can last. The maximum is often a decision that
one side takes an acknowledgement later."""

_IN_PLACE: Final = """\
### The module in the algorithm's place

The flow with the algorithm's window, and again with the module's. A cell has both: here /
module. Flows beside CUBIC are chaotic, so those rows differ by chance too."""

_AUTHORS: Final = """\
## Other code

| algorithm | compared with | result and cause |
|---|---|---|
| `copa` | the authors' `markoviancc.cc` (genericCC), mode `auto`, one call a packet | Partly \
confirmed. The window turns in the same round trips. Alone and with 8 flows goodput is 9 to 11 % \
lower here; with 10 flows it is 2 % higher, with more than twice the delay and with losses. \
genericCC detects other flows within 4 round trips, `copa` within 5, as in the paper. Why \
genericCC keeps its default mode beside CUBIC \
here, and so has 3 % of the link, is not known |
| `balia` | the authors' `mptcp_balia.c` of the MPTCP project | With packets counted, goodput \
differs by 3 and \
9 % with losses: the module rounds `alpha` down to a whole number, so that a loss reduces the \
window less. It also \
counts acknowledgements, and loses one for each packet of growth: 15 to 18 % less goodput. \
draft-walid-mptcp-congestion-control-04 has real numbers and packets, as `balia` has |
| `wvegas` | the authors' `mptcp_wvegas.c` of the MPTCP project | Different on purpose. The \
module drains the \
queue at any number of packets in it, even when it is empty, and has 42 % of the goodput without \
losses; `wvegas` \
drains from `alpha` packets on |

Flows of 40 to 60 s. `copa` has 50 Mbit/s and 40 ms; *8 flows* share 100 Mbit/s, 40 ms and 4 BDP,
*10 flows* 46 Mbit/s and 20 ms (goodput and retransmissions are sums, the delay is a mean).
Multipath flows have paths of 20 Mbit/s, 40 ms and 40 Mbit/s, 80 ms, or two of 20 Mbit/s, 40 ms.
One packet in 1000 is lost with *losses*. A cell has both: here / authors' code in the
algorithm's place."""

_REST: Final = """\
## Without code

| algorithm | compared with | result |
|---|---|---|
| `fast` | the papers' equilibrium, `alpha` packets of each flow in the queue, 50 here, at 100 \
Mbit/s and 50 ms | One flow: 5.9 ms of queueing delay where the equation has 6.0; four: 24.5 ms, \
24.0. A module for ns-2 exists, but not in Debian's package; it was not run |
| `ledbat++` | draft-irtf-iccrg-ledbat-plus-plus-06: a delay of at most 60 ms, and slowdowns for \
a tenth of \
the time | One flow at 100 Mbit/s and 50 ms: the 95th percentile is 62.6 ms, the link is 91 % \
busy. The \
authors' code is part of Windows |
| `slow_start=search` | draft-chung-ccwg-search-06, by a model of slow start in its tests | Slow \
start ends at 6.2 to \
6.9 BDP, where the model has 6.2 to 6.9. The authors' present code compares with packets sent, \
which \
is a later version |
| `slow_start=rapid` | draft-kazuho-ccwg-rapid-start-02, by its equations | The window triples in \
each round trip, and after the first losses it is within 15 % of `beta` times the BDP with the \
queue. The author's code is in quicly; it was not run |
| `rate_limited_increase` | draft-ietf-ccwg-ratelimited-increase, by its example | The windows \
of the example: 14, 20, 20 and 40 packets |
| `c4` | draft-huitema-ccwg-c4-spec, by its equations | Alone, a flow fills links of 5 and 20 \
Mbit/s within 1 %, and 88 % of 100 Mbit/s, without a loss; two share. The authors' code in \
picoquic was read, not run |
| `proteus` | the authors' code, read and not run, by its equations | A scavenger leaves CUBIC \
97 % of a link of 50 Mbit/s, BBRv1 91 %, and a primary flow 62 % |

## Papers

The experiments of the papers on Copa, H-TCP, Illinois, YeAH, Westwood+, FAST and LEDBAT++ were
not repeated. For Illinois and YeAH no public copy with numbers was found."""

_AGAIN: Final = """\
## Reproduce this page

The first line takes a quarter of an hour and needs Debian's package `linux-source-6.12` and a C
compiler; the comparison with other code cannot be repeated from here. [The
tables](../../scripts/references/README.md)

<!-- not run: takes minutes, and rewrites this page -->
```sh
.venv/bin/python scripts/references/kernel.py scripts/references
.venv/bin/python scripts/pages/references_page.py docs
```"""


if __name__ == "__main__":
    sys.stdout.write(f"{write(arguments.folder(__doc__, 'docs'))}\n")
