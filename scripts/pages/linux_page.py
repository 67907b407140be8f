"""Writes ``validation.md``: the simulator beside real Linux, from runs made on the spot.

    python scripts/pages/linux_page.py docs

Nothing in the page is typed by hand: tables and figures come from the simulation and from the
measured flows in ``linux/``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dumbbell._core import __version__
from dumbbell.engine.runner import run_all
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.toml import write_text
from dumbbell.figures import styled, svg
from dumbbell.papers import Paper, Runs, folder_of
from dumbbell.papers.staggered_start.linux_flows import (
    KERNEL,
    draw_pairs,
    draw_singles,
    fidelity_table,
)

if TYPE_CHECKING:
    from dumbbell.results.result import Result

FOLDER = folder_of("staggered-start")
_FIGURES = {"linux": draw_pairs, "singles": draw_singles}


def write(docs: Path) -> Path:
    """Runs the scenarios that were measured and writes the page and its figures into `docs`."""
    paper = Paper.load(FOLDER)
    runs = Runs(simulate(paper), {})
    shown = []
    for spec in (spec for spec in paper.figures if spec.id in _FIGURES):
        name = f"figures/validation-{spec.id}.svg"
        with styled():
            write_text(docs / name, svg(_FIGURES[spec.id](runs)))
        shown += [f"## {spec.heading}", f"![{spec.heading}]({name})", spec.caption]
    page = "\n\n".join([_INTRODUCTION, fidelity_table(runs).markdown(), *shown, _AGAIN]) + "\n"
    write_text(docs / "validation.md", page)
    return docs / "validation.md"


def simulate(paper: Paper, seeds: int | None = None) -> dict[str, Result]:
    """Runs the scenarios that were measured; by the id of the experiment."""
    templates = [name for spec in paper.figures if spec.id in _FIGURES for name in spec.experiments]
    overrides = [] if seeds is None else [f"seeds={seeds}"]
    experiments = {
        name: Experiment.load(FOLDER / spec.file, overrides=[*spec.changes, *overrides])
        for name, spec in paper.planned.items()
        if name in paper.matching(templates)
    }
    return dict(zip(experiments, run_all(list(experiments.values())), strict=True))


_INTRODUCTION = f"""\
# The simulator beside Linux

The simulator (dumbbell {__version__}, `stack = "linux"`) in scenarios that were measured
with Linux {KERNEL}: TCP senders and receivers of the kernel in network namespaces, joined
by an emulated link of 100 Mbit/s and 100 ms with a droptail queue counted in bytes, kernel
defaults, no fq queueing discipline. The measured flows come with the package, as a table
([what is in it](../python/dumbbell/papers/staggered_start/linux/README.md)).

*Pair* is the staggered start of two flows with the same algorithm, 30 s apart, a queue of 0.5 BDP,
120 s, three measured runs and twelve seeds. *Single* is one flow alone, 60 s, one measured run and
four seeds. Both sides are sampled every 100 ms. The first ssthresh is the window at which slow
start ended; the second flow of a pair has none here, as it may leave slow start and lose a packet
between two samples."""

_AGAIN = """\
## Again

<!-- not run: rewrites this page -->
```sh
.venv/bin/python scripts/pages/linux_page.py docs
```"""


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1] if len(sys.argv) > 1 else 'docs'))}\n")
