"""``dumbbell check``, ``init``, ``explain`` and ``schema``: help with experiment files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import _core
from dumbbell.cli.output import print_line
from dumbbell.errors import DumbbellError, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.toml import parse_toml, read_text, write_text
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pathlib import Path


def check_file(file: Path, assignments: list[str]) -> None:
    """Checks an experiment or a sweep, and says in a line what it is."""
    with in_file(file):
        is_sweep = "sweep" in parse_toml(read_text(file))
    if is_sweep:
        sweep = Sweep.load(file, overrides=assignments)
        for _ in sweep.points():
            pass
        print_line(f"{file}: valid, {sweep.count:,} point(s) with {len(sweep.seeds())} seed(s)")
        return
    with in_file(file):
        experiment = Experiment.load(file, overrides=assignments).resolve()
    print_line(f"{file}: valid, {repr(experiment)[13:-1]}")


def write_starter(file: Path) -> None:
    """Writes an experiment file to begin with."""
    if file.exists():
        raise DumbbellError(f"{file} exists; name another file")
    write_text(file, _core.starter())
    print_line(f"wrote {file}; run it with: dumbbell run {file}")


def show_explanation(topic: str) -> None:
    """Prints what a key, an algorithm, an AQM or an option is."""
    try:
        print_line(_core.explain(topic))
    except ValueError as error:
        raise DumbbellError(str(error)) from None


def show_schema() -> None:
    """Prints the JSON Schema of experiment files."""
    print_line(_core.experiment_schema())
