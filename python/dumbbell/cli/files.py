"""``dumbbell init``, ``check``, ``explain`` and ``schema``: help with experiment files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from dumbbell import _core
from dumbbell.cli import options
from dumbbell.cli.output import print_line, print_text
from dumbbell.errors import DumbbellError, in_file


def write_starter(
    out: Annotated[Path, Argument(metavar="FILE", help="File.")] = Path("experiment.toml"),
    overwrite: options.Overwrite = False,
) -> None:
    """Write an experiment file to begin with."""
    from dumbbell.experiment.files import write_text

    options.refuse_existing(out, overwrite)
    write_text(out, _core.starter())
    print_line(f"wrote {out}; run it with: dumbbell run {out}")


def check_file(
    file: Annotated[Path, Argument(metavar="FILE", help="Experiment or sweep, a TOML file.")],
    assignments: options.Assignments = None,
) -> None:
    """Check an experiment file. Each error has its line and what would be valid."""
    from dumbbell.experiment.files import read_text
    from dumbbell.experiment.model import Experiment
    from dumbbell.sweeps.plan import Sweep

    with in_file(file):
        text = read_text(file)
    if _core.ParsedSweep.is_in(text):
        sweep = Sweep.load(file, overrides=assignments or [])
        for _ in sweep.points():
            pass
        print_line(f"{file}: valid, {sweep.count:,} point(s) with {len(sweep.seeds())} seed(s)")
        return
    experiment = Experiment.load(file, overrides=assignments or []).resolve()
    print_line(f"{file}: valid, {repr(experiment)[13:-1]}")


def show_explanation(
    topic: Annotated[str, Argument(metavar="NAME", help="link.queue, cubic, stack.min_rto, ...")],
) -> None:
    """Explain a key of experiments, an algorithm or an option."""
    try:
        print_text(_core.explain(topic))
    except ValueError as error:
        raise DumbbellError(str(error)) from None


def show_schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    print_line(_core.experiment_schema())
