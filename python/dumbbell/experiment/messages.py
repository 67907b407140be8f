"""Turning a validator's complaints into one paragraph that a person can act on."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, get_args

from pydantic import AliasChoices, BaseModel

from dumbbell.errors import ExperimentError
from dumbbell.experiment.units import shown

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.fields import FieldInfo


def explain(error: ValidationError, model: type[BaseModel]) -> ExperimentError:
    """The first of the validator's complaints about a `model`, as an error of ours."""
    first = error.errors(include_url=False)[0]
    loc = first["loc"]
    key = key_text(loc)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ExperimentError):
        return cause.within(key)
    if cause is not None:
        return ExperimentError(str(cause), key=key)
    table, field = find(model, loc)
    if key == "sweep":
        problem = "has axes, along which `dumbbell sweep` runs the experiment"
        return ExperimentError(f"{problem}; use that, or leave it out", key=key)
    if first["type"] == "extra_forbidden":
        return ExperimentError(unknown_key(str(loc[-1]), table), key=key)
    name = next((part for part in reversed(loc) if isinstance(part, str)), "it")
    valid = f"; {name} is {field.description}" if field and field.description else ""
    if first["type"] == "missing":
        return ExperimentError(f"is missing{valid}", key=key)
    return ExperimentError(f"{shown(first['input'])} is not valid here{valid}", key=key)


def key_text(loc: tuple[int | str, ...]) -> str:
    """A key as users write it: ``link[0].rate``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".")


def unknown_key(name: str, table: type[BaseModel]) -> str:
    """The sentence that says that a table has no such key."""
    known = [key_of(name, field) for name, field in table.model_fields.items()]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    kind = table.__name__.lower()
    return f"there is no such key{hint}; the keys of {article(kind)} are {', '.join(known)}"


def article(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def key_of(name: str, field: FieldInfo) -> str:
    """The key that a file has for a field."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else name


def find(
    model: type[BaseModel], loc: tuple[int | str, ...]
) -> tuple[type[BaseModel], FieldInfo | None]:
    """The table that `loc` lies in, and the field of it that it names."""
    field = None
    for part in loc:
        if isinstance(part, int):
            kinds: tuple[Any, ...] = get_args(field.annotation) if field else ()
            inner = [kind for kind in kinds if is_model(kind)]
            model, field = (inner[0], None) if inner else (model, field)
        else:
            fields = model.model_fields.items()
            field = next((f for n, f in fields if part in (n, key_of(n, f))), field)
    return model, field


def is_model(kind: Any) -> bool:
    """Whether a type is a table of its own."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)
