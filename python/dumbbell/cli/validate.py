"""``dumbbell validate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.checks.kernel_grid import Grid, compare, measure
from dumbbell.checks.kernel_page import table, write
from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import print_json, print_line, progress_bar, rows
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from pathlib import Path


def validate_grid(
    *,
    cc: str,
    rate: str,
    rtt: str,
    queue: str,
    loss: str,
    duration: str,
    repeats: int,
    out: Path,
    jobs: int,
    retry_invalid: int,
    overwrite: bool,
    measure_more: bool,
    json: bool,
) -> None:
    """Runs a grid both ways and writes the page; prints its table."""
    for option, value in (("--repeats", repeats), ("--jobs", jobs)):
        if value < 1:
            raise DumbbellError(f"{option}: {value} is too few; write 1 or more")
    axes = (split_algorithms(cc), _split(rate), _split(rtt), _split(queue), _split(loss))
    grid = Grid(*axes, duration, repeats)
    for cell in grid.cells:
        cell.experiment(duration, grid.seeds)
    if measure_more:
        with progress_bar() as tell:
            measure(
                grid,
                out,
                jobs=jobs,
                retry_invalid=retry_invalid,
                overwrite=overwrite,
                progress=tell,
            )
    cells = compare(grid, out)
    if cells.is_empty():
        raise DumbbellError(f"{out}: nothing was measured there; leave out --no-measure")
    page = write(grid, cells, out)
    if json:
        print_json({"cells": rows(cells), "page": str(page)})
        return
    print_line(table(cells))
    print_line(f"\nThe page is {page}")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
