"""``dumbbell plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import figures
from dumbbell.cli.output import print_line, tell_left_out, tell_spoiled
from dumbbell.errors import ResultError
from dumbbell.figures.result import MOST_FLOWS, draw
from dumbbell.results.result import Result
from dumbbell.sweeps.dataset import is_dataset

if TYPE_CHECKING:
    from pathlib import Path


def plot_result(folder: Path, *, out: Path | None, seed: int | None) -> None:
    """Draws windows, throughputs, round-trip times and queues of one seed over time."""
    if is_dataset(folder):
        raise ResultError(f"{folder}: is a sweep, which `dumbbell heat` and `dumbbell report` show")
    result = Result.load(folder)
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds))
        raise ResultError(f"{folder}: has no seed {seed}; choose from {known}")
    stem = out or folder / "figure"
    tell_spoiled(folder, result)
    tell_left_out(folder, result, MOST_FLOWS)
    try:
        with figures.styled():
            one = result.of_seed(result.seeds[0] if seed is None else seed)
            written = figures.save(draw(one), stem)
    except OSError as error:
        raise ResultError(f"{stem}: cannot be written: {error.strerror}") from None
    print_line("\n".join(map(str, written)))
