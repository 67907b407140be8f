"""The command ``dumbbell``: its commands and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from dumbbell._core import __version__
from dumbbell.cli import bpf, store, udt
from dumbbell.cli.benchmark import run_scenarios
from dumbbell.cli.checks import examine_algorithms, examine_machine, measure_speed
from dumbbell.cli.compare import compare_algorithms
from dumbbell.cli.evaluate import evaluate_algorithms
from dumbbell.cli.export import export_result, report_folder
from dumbbell.cli.files import check_file, list_all, show_explanation, show_schema, write_starter
from dumbbell.cli.lab import open_lab
from dumbbell.cli.plot import plot_folder
from dumbbell.cli.query import answer_query
from dumbbell.cli.reproduce import reproduce_papers
from dumbbell.cli.run import run_file
from dumbbell.cli.sweep import sweep_file
from dumbbell.cli.validate import validate
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "init": write_starter,
    "check": check_file,
    "run": run_file,
    "sweep": sweep_file,
    "compare": compare_algorithms,
    "benchmark": run_scenarios,
    "plot": plot_folder,
    "lab": open_lab,
    "report": report_folder,
    "query": answer_query,
    "export": export_result,
    "reproduce": reproduce_papers,
    "evaluate": evaluate_algorithms,
    "validate": validate,
    "conformance": examine_algorithms,
    "list": list_all,
    "explain": show_explanation,
    "schema": show_schema,
    "doctor": examine_machine,
    "bench": measure_speed,
}

RENAMED: Final = {
    "heat": "heat: is now a figure of `plot`; write dumbbell plot FOLDER heat",
    "figure": "figure: is now `plot`; write dumbbell plot FOLDER NAME, and --format pdf for a PDF",
    "--scenarios": "--scenarios: is now a command; write dumbbell benchmark PAPER... --cc NAMES",
    "--beside": "--beside: is now --others of `benchmark`; write dumbbell benchmark --others NAMES",
}
"""Commands and options that have another name now, and what to write."""


class StoppedError(Exception):
    """A command was interrupted; the cause says what it left."""


class _Commands(TyperGroup):
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in RENAMED:
            raise DumbbellError(RENAMED[cmd_name])
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise StoppedError from error


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dumbbell {__version__}")
        raise typer.Exit


def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A congestion-control laboratory: an experiment file in, tables and figures out."""


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    callback=_common,
)
for _name, _function in COMMANDS.items():
    app.command(_name)(_function)
for _group in (store.app, bpf.app, udt.app):
    app.add_typer(_group)

command = typer.main.get_command(app)  # the command, for `main` and for what documents or tests it
