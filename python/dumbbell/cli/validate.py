"""``dumbbell validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.engine.runner import Options

_TOLD: Final = 3  # so many invalid runs are told with their reasons


def validate(
    out: Annotated[Path, options.out("Folder of runs.")] = Path("results/validation"),
    quick: Annotated[
        bool, Option("--quick", help="A third of the cells, once each: 20 minutes.")
    ] = False,
    seed: Annotated[int, Option(min=1, help="Seed that chooses the cells.")] = 1,
    only: Annotated[
        list[str] | None, Option(metavar="NAME", help="Only these cells, such as 'late-*'.")
    ] = None,
    runs: Annotated[
        int | None, Option(min=1, help="Runs of each cell; default: 3, or 1 with --quick.")
    ] = None,
    most: Annotated[
        int | None,
        Option(min=1, help="Runs of cells whose runs differ; default: 9, or 1 with --quick."),
    ] = None,
    jobs: Annotated[int, Option(min=1, help="Runs at a time.")] = 1,
    retry_invalid: Annotated[int, Option(help="How often to repeat an invalid run.")] = 1,
    overwrite: options.Overwrite = False,
    measure: Annotated[bool, Option(help="Whether to run what is missing.")] = True,
    json: options.Json = False,
) -> None:
    """Compare simulator and real packets in cells spread over rates, delays, queues and losses."""
    from dumbbell.checks import linux_cells, linux_grid

    cells = linux_cells.matching(only or ["*"], linux_cells.cells(seed, quick=quick))
    usual_runs, usual_most = (1, 1) if quick else (3, 9)
    runs = runs or usual_runs
    plan = linux_grid.Plan(cells, runs, max(runs, most or usual_most))
    if measure:
        with progress_bar() as tell:
            how: Options = {"jobs": jobs, "retry_invalid": retry_invalid, "progress": tell}
            linux_grid.measure(plan, out, overwrite=overwrite, **how)
    known = linux_grid.measured(plan, out)
    if known.is_empty():
        raise DumbbellError(f"{out}: nothing was measured there; leave out --no-measure")
    if known["invalid"].null_count() == 0:
        raise DumbbellError(f"{out}: {_all_invalid(known)}")
    compared = linux_grid.compare(known)
    if json:
        print_json({"cells": compared.to_dicts()})
        return
    agreement = linux_grid.agreement(compared, known)
    print_table("Simulator and Linux", agreement)
    print_text(f"\n{agreement.note}")
    off = compared.filter(compared["verdict"] != "agrees")
    if not off.is_empty():
        print_line()
        print_table("Cells that do not agree", linux_grid.table(off))


def _all_invalid(known: pl.DataFrame) -> str:
    """That no run counts, with the reasons of the first ones."""
    runs = known.unique(["cell", "run"], maintain_order=True).select("cell", "run", "invalid")
    told = [f"{cell}, run {run}: {why}" for cell, run, why in runs.head(_TOLD).iter_rows()]
    told += [f"{runs.height - _TOLD} more"] if runs.height > _TOLD else []
    advice = "on an idle machine the same command, without --no-measure, makes them again"
    return f"no run counts, as all are invalid ({'; '.join(told)}); {advice}"
