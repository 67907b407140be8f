"""Named sets of TCP behaviours, and overriding single fields of them."""

from __future__ import annotations

import difflib
import json

from dumbbell import _core
from dumbbell.errors import ExperimentError

type_names = {bool: "true or false", int: "a whole number", str: "text"}

StackValue = bool | int | str
"""What a field of a stack can be."""


def stack_fields(name: str, options: dict[str, StackValue]) -> dict[str, StackValue]:
    """All fields of the stack `name` with `options` laid over them.

    Raises:
        ExperimentError: If there is no such stack or field, or a value is not one it can have.
    """
    stacks = _core.stacks()
    if name not in stacks:
        problem = unknown("stack", name, list(stacks))
        raise ExperimentError(problem, key="stack")
    fields = stacks[name]
    for field, value in options.items():
        key = f"stack-options.{field}"
        if field not in fields:
            raise ExperimentError(unknown("stack option", field, list(fields)), key=key)
        kind = type(fields[field])
        if type(value) is not kind or (kind is int and int(value) < 0):
            problem = f"{json.dumps(value, default=str)} is not {type_names[kind]}"
            raise ExperimentError(f"{problem}, as {json.dumps(fields[field])} would be", key=key)
        fields[field] = value
        try:
            _core.check_stack(json.dumps(fields))
        except ValueError as error:
            raise ExperimentError(str(error), key=key) from None
    return fields


def unknown(kind: str, name: str, known: list[str]) -> str:
    """The sentence that says that `name` is none of the `known` ones."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    return f'no {kind} is called "{name}"{hint}; there are {", ".join(known)}'
