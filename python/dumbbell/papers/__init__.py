"""Papers, reproduced: published numbers beside measured ones, figures, claims that hold or fail.

A paper is a folder here; `dumbbell.papers.frame` says what is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.papers.frame import Paper, Reproduction
from dumbbell.papers.known import PAPERS, available, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Paper", "Reproduction", "available", "draw", "reproduce"]


def reproduce(
    papers: Sequence[str],
    out: Path,
    *,
    jobs: int | None = None,
    seeds: int | None = None,
    duration: str | None = None,
    beyond: bool = False,
    real: bool = False,
    overwrite: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> list[Reproduction]:
    """Reproduces papers: ``OUT/ID/`` for each, and ``OUT/index.html`` that links them.

    A folder holds ``index.html`` (one file, nothing loaded from elsewhere), ``results.json``, every
    figure as SVG and PNG, and ``runs/`` with the result folder of every experiment.

    Args:
        papers: Ids of papers; ``["all"]`` for all.
        out: Where to write.
        jobs: How many simulations to run at once; as many as there are processors if not given.
        seeds: How many seeds to run with; those of the experiments if not given.
        duration: How long every run lasts, such as ``"5 s"``, for a look at the report and not at
            the numbers; as long as the experiments say if not given.
        beyond: Whether to run also what goes beyond the papers, which takes much longer.
        real: Whether to run with real packets too what of the papers the testbed runs, in real
            time. Runs that are there from before are kept, and told of in either case.
        overwrite: Whether measurements with real packets of other settings are replaced.
        progress: Is told what is being done and what share of it is done (0 to 1).

    Raises:
        DumbbellError: If there is no such paper, or `out` cannot be written.
        OverwriteError: If `out` has a measurement with real packets of other settings.
        TestbedError: If this machine lacks what real packets need.
    """
    from dumbbell.papers.page import write_index
    from dumbbell.papers.reproduction import Effort, reproduce_paper

    chosen = [load(paper) for paper in (PAPERS if list(papers) == ["all"] else papers)]
    effort = Effort(jobs, seeds, duration, progress or _silent, real, overwrite)
    done = [reproduce_paper(paper, out, effort, beyond=beyond) for paper in chosen]
    write_index(done, out)
    return done


def draw(
    paper: str,
    figures: Sequence[str],
    out: Path,
    *,
    jobs: int | None = None,
    seeds: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> list[Path]:
    """Makes some figures of a paper again, and runs only what they need.

    Args:
        paper: The id of the paper.
        figures: Ids of figures, such as ``2a``.
        out: Where to write; the figures go to ``OUT/ID/``.
        jobs: How many simulations to run at once.
        seeds: How many seeds to run with.
        progress: Is told what is being done and what share of it is done (0 to 1).

    Returns:
        The paths of the figures, without ``.svg`` and ``.png``.

    Raises:
        DumbbellError: If there is no such paper or figure, or `out` cannot be written.
    """
    from dumbbell.papers.reproduction import Effort, draw_figures

    return draw_figures(load(paper), figures, out, Effort(jobs, seeds, None, progress or _silent))


def _silent(_what: str, _share: float) -> None:
    pass
