"""How transports behave: named sets of TCP's fields, UDT's options, and overriding single ones."""

from __future__ import annotations

import difflib
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dumbbell import _core
from dumbbell.errors import ExperimentError

if TYPE_CHECKING:
    from collections.abc import Callable

_VALID: Final = {bool: "true or false", int: "a whole number", str: "text"}

_POSITIVE: Final = frozenset({"mss", "initial-window", "min-rto-ns", "receive-window"})

StackValue = bool | int | str
"""What a field of a stack can be."""


def stack_fields(name: str, options: dict[str, StackValue]) -> dict[str, StackValue]:
    """All fields of the stack `name` with `options` laid over them.

    Raises:
        ExperimentError: If there is no such stack or field, or a value is not one it can have.
    """
    return dict(_stack_fields(name, json.dumps(options)))


def udt_fields(cc: str, options: dict[str, StackValue]) -> dict[str, StackValue]:
    """All options of UDT with `options` laid over the defaults for the algorithm `cc`.

    Raises:
        ExperimentError: If there is no such option, or a value is not one it can have.
    """
    return dict(_udt_fields(cc, json.dumps(options)))


# Remembered, as the runs of a sweep have their stacks in common; and by their text, in which true
# is not 1.
@lru_cache(256)
def _stack_fields(name: str, options: str) -> dict[str, StackValue]:
    stacks, changes = _core.stacks(), json.loads(options)
    if name not in stacks:
        problem = unknown("stack", name, list(stacks))
        raise ExperimentError(problem, key="stack")
    return _overlay("stack option", "stack-options", stacks[name], changes, _core.check_stack)


@lru_cache(256)
def _udt_fields(cc: str, options: str) -> dict[str, StackValue]:
    kind, table, changes = "option of UDT", "transport-options", json.loads(options)
    return _overlay(kind, table, _core.udt_options(cc), changes, _core.check_udt_options)


def _overlay(
    kind: str,
    table: str,
    fields: dict[str, StackValue],
    options: dict[str, StackValue],
    check: Callable[[str], None],
) -> dict[str, StackValue]:
    for field, value in options.items():
        key = f"{table}.{field}"
        if field not in fields:
            raise ExperimentError(unknown(kind, field, list(fields)), key=key)
        wrong = _mismatch(field, value, fields[field])
        if wrong is None:
            fields[field] = value
            wrong = _refusal(fields, check)
        if wrong is not None:
            raise ExperimentError(wrong, key=key)
    return fields


def _mismatch(field: str, value: StackValue, usual: StackValue) -> str | None:
    """What is wrong with a value whose usual value is another one."""
    kind = type(usual)
    least = 1 if field in _POSITIVE else 0
    if type(value) is not kind or (kind is int and int(value) < least):
        valid = _VALID[kind] + (f" of at least {least}" if kind is int else "")
        return f"{json.dumps(value)} is not {valid}; the usual value is {json.dumps(usual)}"
    return None


def _refusal(fields: dict[str, StackValue], check: Callable[[str], None]) -> str | None:
    """What the simulator has against these fields."""
    try:
        check(json.dumps(fields))
    except ValueError as error:
        bits = re.search(r"`(\d+)`, expected u(\d+)", str(error))
        return f"{bits[1]} is more than {2 ** int(bits[2]) - 1}, the most" if bits else str(error)
    return None


def unknown(kind: str, name: str, known: list[str]) -> str:
    """The sentence that says that `name` is none of the `known` ones."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    return f'no {kind} is called "{name}"{hint}; choose from {", ".join(known)}'
