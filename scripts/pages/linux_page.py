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
from dumbbell.papers.frame import Paper, Runs
from dumbbell.papers.known import home
from dumbbell.papers.staggered_start import reference
from dumbbell.papers.staggered_start.chapters import fidelity_table
from dumbbell.papers.staggered_start.plates import PLATES

if TYPE_CHECKING:
    from dumbbell.papers.frame import Plate
    from dumbbell.results.result import Result

FOLDER = home("staggered-start")
_FIGURES = ("singles", "linux")


def write(docs: Path) -> Path:
    """Runs the scenarios that were measured and writes the page and its figures into `docs`."""
    runs = Runs(simulate(Paper.load(FOLDER)), {})
    shown = []
    for plate in _plates():
        name = f"figures/validation-{plate.id}.svg"
        with styled():
            write_text(docs / name, svg(plate.draw(runs)))
        shown += [f"## {plate.title}", f"![{plate.title}]({name})", plate.caption]
    page = "\n\n".join([_INTRODUCTION, fidelity_table(runs).markdown(), *shown, _AGAIN]) + "\n"
    write_text(docs / "validation.md", page)
    return docs / "validation.md"


def simulate(paper: Paper, seeds: int | None = None) -> dict[str, Result]:
    """Runs the scenarios that were measured; by the id of the experiment."""
    needed = {name for plate in _plates() for name in plate.experiments}
    overrides = [] if seeds is None else [f"seeds={seeds}"]
    experiments = {
        one.id: Experiment.load(FOLDER / one.file, overrides=[*one.changes, *overrides])
        for plan in paper.experiments
        for one in plan.all()
        if one.id in needed
    }
    return dict(zip(experiments, run_all(list(experiments.values())), strict=True))


def _plates() -> list[Plate]:
    return [plate for plate in PLATES if plate.id in _FIGURES]


_INTRODUCTION = f"""\
# The simulator beside Linux

The simulator (dumbbell {__version__}, `stack = "linux"`) in scenarios that were measured
with Linux {reference.KERNEL}: TCP senders and receivers of the kernel in network namespaces, joined
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
