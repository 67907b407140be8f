"""Papers, reproduced: published numbers beside measured ones, figures, claims that are checked.

A paper is a folder: ``paper.toml`` (numbers, claims, experiments, standard figures), experiment
files, and optionally ``paper.py`` (functions marked by the decorators of this module) and
``report.md`` (the text of the report).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dumbbell.display import Column, Table
from dumbbell.engine.progress import Progress, silent
from dumbbell.errors import DumbbellError
from dumbbell.papers.model import Measure, Paper
from dumbbell.papers.outcome import Reproduction, Section, Verdict
from dumbbell.papers.registry import available, folder_of, ids_of_all
from dumbbell.papers.runs import Runs
from dumbbell.papers.study import Study, claim, figure, metric, number, reduce, table, text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Column",
    "Measure",
    "Paper",
    "Reproduction",
    "Runs",
    "Section",
    "Study",
    "Table",
    "Verdict",
    "available",
    "claim",
    "draw",
    "figure",
    "folder_of",
    "metric",
    "number",
    "reduce",
    "reproduce",
    "table",
    "text",
]


def reproduce(
    papers: str | Sequence[str],
    out: str | Path,
    *,
    jobs: int | None = None,
    seeds: int | None = None,
    duration: str | None = None,
    full: bool = False,
    testbed: bool = False,
    overwrite: bool = False,
    dask: str | None = None,
    progress: Progress = silent,
) -> list[Reproduction]:
    """Reproduces papers: ``OUT/ID/`` for each, and ``OUT/index.html`` that links all in `out`.

    A folder holds ``index.html`` (one file, nothing loaded from elsewhere), ``results.json``, every
    figure as SVG and PNG, and ``runs/`` with the result folder of every experiment.

    Args:
        papers: Ids or folders of papers; ``"all"`` for all that are built in or installed, but for
            `dumbbell.papers.registry.BY_NAME`.
        out: Where to write.
        jobs: How many simulations to run at once; one a processor if not given.
        seeds: How many seeds to run with. If not given, an experiment has 3 seeds, then twice as
            many, until the paper's numbers and claims are decided (`dumbbell.metrics.sequential`).
        duration: How long every run lasts, such as ``"5 s"``, to see the report soon; as long as
            the experiments say if not given.
        full: Whether to run also what explains results and what goes beyond the papers, which
            takes much longer.
        testbed: Whether to run with real packets too what of the papers the testbed runs, in real
            time. Runs that are there from before are kept, and shown in either case.
        overwrite: Whether measurements with real packets of other settings, or of another kernel,
            are replaced.
        dask: The address of a Dask scheduler whose workers are to simulate; threads of this
            process do if not given.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Raises:
        DumbbellError: If there is no such paper, or `out` cannot be written.
        OverwriteError: If `out` has a measurement with real packets of other settings.
        TestbedError: If this machine lacks what real packets need.
    """
    from dumbbell.papers.page import write_index
    from dumbbell.papers.reproduction import RunOptions
    from dumbbell.papers.side_by_side import reproduce_side_by_side

    papers = [papers] if isinstance(papers, str) else list(papers)
    names = ids_of_all() if papers == ["all"] else papers
    # A paper that is named twice, even by its id and by its folder, is one.
    folders = {folder.resolve(): folder for folder in map(folder_of, names)}
    chosen = [Study.load(folder) for folder in folders.values()]
    options = RunOptions(jobs, seeds, duration, progress, testbed, full, overwrite, dask)
    done = reproduce_side_by_side(chosen, Path(out), options)
    write_index([*done, *_earlier(Path(out), done)], Path(out))
    return done


def _earlier(out: Path, done: Sequence[Reproduction]) -> list[Reproduction]:
    """What else is reproduced in `out`, but for what cannot be read any more."""
    from dumbbell.papers.reproduction import PaperFolder

    found, new = [], {one.folder for one in done}
    for file in sorted(out.glob("*/results.json")):
        if file.parent not in new:
            with suppress(DumbbellError, OSError, ValueError, KeyError):
                found.append(PaperFolder.of(file.parent).reopen())
    return found


def draw(
    paper: str,
    figures: Sequence[str],
    out: Path,
    *,
    jobs: int | None = None,
    seeds: int | None = None,
    dask: str | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Makes some figures of a paper again, such as ``["2a"]``, and runs only what they need.

    The figures are written to ``OUT/ID/``. All other arguments are as for `reproduce`.

    Returns:
        The paths of the figures, without ``.svg`` and ``.png``.

    Raises:
        DumbbellError: If there is no such paper or figure, or `out` cannot be written.
    """
    from dumbbell.papers.reproduction import PaperFolder, RunOptions

    study = Study.load(folder_of(paper))
    options = RunOptions(jobs, seeds, progress=progress, dask=dask)
    folder = PaperFolder(study, out / study.paper.id, options)
    with folder.reserved():
        return folder.draw(figures)
