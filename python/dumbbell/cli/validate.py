"""``dumbbell validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dumbbell.cli import options
from dumbbell.cli.options import split_list
from dumbbell.cli.output import print_json, print_line, progress_bar
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from dumbbell.engine.runner import Options


def validate_grid(
    out: Annotated[Path, options.out("Folder of runs.")] = Path("results/validation"),
    cc: Annotated[str, options.algorithms("Algorithms.")] = "reno,cubic,bbr",
    rate: Annotated[str, Option(help="Rates of the link.")] = "100 Mbit/s",
    rtt: Annotated[str, Option(help="Round-trip times.")] = "10 ms,20 ms,50 ms,100 ms",
    queue: Annotated[str, Option(help="Queue lengths.")] = "0.5 BDP,1 BDP,2 BDP",
    loss: Annotated[str, Option(help="Probabilities of random loss.")] = "0",
    duration: Annotated[str, Option(help="Length of each run.")] = "60 s",
    repeats: Annotated[int, Option(min=1, help="Runs of each cell.")] = 3,
    jobs: Annotated[int, Option(min=1, help="Cells at a time.")] = 1,
    retry_invalid: Annotated[int, Option(help="How often to repeat an invalid run.")] = 1,
    overwrite: options.Overwrite = False,
    measure: Annotated[bool, Option(help="Whether to run what is missing.")] = True,
    json: options.Json = False,
) -> None:
    """Compare simulator and real packets over a grid of flows."""
    from dumbbell.checks import kernel_grid

    rates, rtts, queues, losses = map(split_list, (rate, rtt, queue, loss))
    algorithms = options.split_algorithms(cc)
    grid = kernel_grid.Grid(algorithms, rates, rtts, queues, losses, duration, repeats)
    for cell in grid.cells:
        cell.experiment(duration, grid.seeds)
    if measure:
        with progress_bar() as tell:
            how: Options = {"jobs": jobs, "retry_invalid": retry_invalid, "progress": tell}
            kernel_grid.measure(grid, out, overwrite=overwrite, **how)
    cells = kernel_grid.compare(grid, out)
    if cells.is_empty():
        raise DumbbellError(f"{out}: nothing was measured there; leave out --no-measure")
    if json:
        print_json({"duration": duration, "cells": cells.to_dicts()})
        return
    print_line(kernel_grid.table(cells).markdown())
