"""``dumbbell reproduce`` and ``dumbbell benchmark``: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dumbbell.cli import options


def _complete_papers(incomplete: str) -> list[str]:
    from dumbbell.papers.registry import PAPERS

    return [name for name in (*PAPERS, "all") if name.startswith(incomplete)]


Papers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAPER]...",
        help="Ids or folders of papers; all built-in ones if none is named.",
        autocompletion=_complete_papers,
    ),
]


def reproduce(
    papers: Papers = None,
    out: Annotated[
        Path, options.out_option("Folder, in which every paper has one of its own.")
    ] = Path("results/papers"),
    overwrite: options.Overwrite = False,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Draw only this figure of the paper, such as 2a."),
    ] = None,
    extensions: Annotated[
        bool, options.flag("--extensions", "Also run what goes beyond the papers; takes longer.")
    ] = False,
    backend: options.OnBackend = "simulator",
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Reproduce papers: published and measured numbers and figures."""
    from dumbbell.cli.reproduce import reproduce_papers

    reproduce_papers(
        papers or ["all"],
        out=out,
        overwrite=overwrite,
        seeds=seeds,
        jobs=jobs,
        extensions=extensions,
        backend=backend,
        figures=figures or [],
        json=json,
    )


def benchmark(
    papers: Papers = None,
    cc: Annotated[
        str, options.algorithms_option("Algorithms in question.")
    ] = "reno,cubic,bbr,bbr3",
    others: Annotated[
        str | None, typer.Option(help="Other algorithms; default: all built-in ones for TCP.")
    ] = None,
    out: Annotated[
        Path | None, options.out_option("Folder for a figure and the tables; default: none.")
    ] = None,
    overwrite: options.Overwrite = False,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare algorithms with all others in the papers' scenarios."""
    from dumbbell.cli.compare_papers import answer_papers

    if out is not None:
        options.refuse_existing(out, overwrite)
    chosen = ",".join(papers or ["papers"])
    answer_papers(chosen, cc, others, seeds=seeds or 1, jobs=jobs, out=out, json=json)
