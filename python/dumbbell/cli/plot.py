"""``dumbbell plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import figures
from dumbbell.cli.output import print_line, tell_spoiled
from dumbbell.errors import ResultError
from dumbbell.figures.results import draw
from dumbbell.results import Result

if TYPE_CHECKING:
    from pathlib import Path


def plot_result(folder: Path, *, out: Path | None, seed: int | None) -> None:
    """Draws windows, throughputs, round-trip times and queues of one seed over time."""
    result = Result.load(folder)
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds))
        raise ResultError(f"{folder}: has no seed {seed}; choose from {known}")
    stem = folder / "figure" if out is None else out.with_suffix("")
    tell_spoiled(folder, result)
    try:
        with figures.styled():
            figures.save(draw(result.of_seed(result.seeds[0] if seed is None else seed)), stem)
    except OSError as error:
        raise ResultError(f"{stem}.svg: cannot be written: {error.strerror}") from None
    print_line(f"{stem}.svg\n{stem}.png")
