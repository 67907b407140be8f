"""Reads options and arguments without pydantic, whose import takes 0.2 s of processor time.

Typer reads every value with it, even if there is nothing to check. Here valid text, choices, paths
and whole numbers are read; whatever else is given, Typer reads and reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from typer import core

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class _Plain:
    """Takes the place of the object with which Typer reads the values of a parameter."""

    build: Callable[[Any], Any]
    kind: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = self.kind.annotation
        if value is None and not param.multiple and param.nargs == 1:
            return None
        if isinstance(value, str) and (kind is str or value in _choices(kind)):
            return value
        if kind is Path and isinstance(value, str | Path):
            return Path(value)
        if kind is int and _is_valid(value, self.kind.parameter_info):
            return int(value)
        if kind == list[str] and isinstance(value, list | tuple):
            return list(value)
        return self.build(self.kind).coerce(value, param=param, ctx=ctx)


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _is_valid(value: Any, info: Any) -> bool:
    """Whether it is a whole number within the bounds."""
    if not isinstance(value, int) and not (isinstance(value, str) and value.isdecimal()):
        return False
    least, most = info.min, info.max
    return (least is None or int(value) >= least) and (most is None or int(value) <= most)


def read_plainly() -> None:
    """Has Typer read plain values so. Another version of Typer is left as it is, and is slower."""
    typers: Any = core
    build = getattr(typers, "build_runtime_param", None)
    if build is not None:
        typers.build_runtime_param = partial(_Plain, build)
