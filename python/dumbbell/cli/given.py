"""Options that were given where they mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.errors import ExperimentError

if TYPE_CHECKING:
    from typer import Context


def refuse_given(context: Context, options: tuple[str, ...], problem: str) -> None:
    """Refuses those of these options that were given.

    Raises:
        ExperimentError: If one was, which names it and the problem.
    """
    for option in options:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ExperimentError(problem, key=f"--{option.replace('_', '-')}")
