"""Writes ``explanation/linux.md``: the simulator beside real Linux, from runs made on the spot.

    python scripts/pages/linux_page.py docs

Nothing in the page is typed by hand: tables and figures come from the simulation and from the
measured flows in ``linux/``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import arguments
from linux_flows import KERNEL, draw_pairs, draw_singles, fidelity_table, simulate

from dumbbell._core import __version__
from dumbbell.experiment.files import write_text
from dumbbell.figures import styled, svg

_FIGURES = {
    "linux": (
        draw_pairs,
        "The paper's scenario: simulator and Linux",
        "Congestion windows, the first seed beside the first measured run.",
    ),
    "singles": (
        draw_singles,
        "One flow alone: simulator and Linux",
        "Congestion windows: the simulator, first seed, as the thick line in colour; the measured "
        "run as the thin line over it.",
    ),
}


def write(docs: Path) -> Path:
    """Runs the scenarios that were measured and writes the page and its figures into `docs`."""
    simulated = simulate()
    shown = []
    for id_, (draw, heading, caption) in _FIGURES.items():
        name = f"figures/validation-{id_}.svg"
        with styled():
            write_text(docs / name, svg(draw(simulated)))
        shown += [f"## {heading}", f"![{heading}](../{name})", caption]
    page = [_INTRODUCTION, fidelity_table(simulated).markdown(), *shown, _AGAIN]
    write_text(docs / "explanation/linux.md", "\n\n".join(page) + "\n")
    return docs / "explanation/linux.md"


_INTRODUCTION = f"""\
# The simulator beside Linux

The simulator (dumbbell {__version__}, `stack = "linux"`) in scenarios that were measured
with Linux {KERNEL}: TCP senders and receivers of the kernel in network namespaces, joined
by an emulated link of 100 Mbit/s and 100 ms with a droptail queue counted in bytes, kernel
defaults, no fq queueing discipline. The measured flows are kept as a table
([what is in it](../../scripts/pages/linux/README.md)).

*Pair* is the staggered start of two flows with the same algorithm, 30 s apart, a queue of 0.5 BDP,
120 s, three measured runs and twelve seeds. *Single* is one flow alone, 60 s, one measured run and
four seeds. Both sides are sampled every 100 ms. The first ssthresh is the window at which slow
start ended. The second flow of a pair has none here, because it may leave slow start and lose a
packet between two samples."""

_AGAIN = """\
## Reproduce this page

<!-- not run: rewrites this page -->
```sh
.venv/bin/python scripts/pages/linux_page.py docs
```"""


if __name__ == "__main__":
    sys.stdout.write(f"{write(arguments.folder(__doc__, 'docs'))}\n")
