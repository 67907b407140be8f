"""Finding the algorithms of a user's own that experiments name.

``my_module:MyCC`` is a class of a module that Python finds, the current folder first;
``path/to/file.py:MyCC`` one of a file, which has the modules beside it to itself. A class is told
from another of the same name by the SHA-256 of its source: `sources` gives it, resolved experiments
hold it (key ``sources``), and so it is part of whatever a result is filed under. How modules are
read is in `dumbbell.modules`.
"""

from __future__ import annotations

import inspect
import marshal
import re
from typing import TYPE_CHECKING, Any, Final

from dumbbell.errors import DumbbellError, ExperimentError
from dumbbell.modules import digest_of, read_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from dumbbell.cc import _Own
    from dumbbell.experiment import Experiment

_TEXT: Final = re.compile(r"(?P<home>.+):(?P<name>\w+)\s*(?:\((?P<options>[^()]*)\))?")
_VALID: Final = 'write "my_module:MyCC", "path/to/file.py:MyCC" or "my_module:MyCC(gain=2)"'


def is_own(cc: str) -> bool:
    """Whether `cc` names a class of the user's and no built-in algorithm."""
    return ":" in cc.partition("(")[0] or _TEXT.fullmatch(cc.strip()) is not None


def text_of(algorithm: type) -> str:
    """What an experiment calls a class: ``my_module:MyCC``.

    Raises:
        ValueError: If it is not an algorithm.
    """
    _check_class(algorithm, algorithm.__name__)
    return f"{algorithm.__module__}:{algorithm.__qualname__}"


def check(cc: str) -> None:
    """Raises ValueError unless `cc` is of the right form; the class is not looked for."""
    _parse(cc)


def beside(cc: str, folder: Path) -> str:
    """The same with the file looked for in `folder`, if it is there."""
    home, colon, rest = cc.partition(":")
    there = folder / home.strip()
    return f"{there}{colon}{rest}" if home.strip().endswith(".py") and there.is_file() else cc


def sources(experiment: Experiment) -> dict[str, str]:
    """The classes that an experiment names and the SHA-256 of their source.

    Raises:
        ExperimentError: If there is no such class, it is no algorithm, it has no such option, or
            its source is not the one that the experiment was resolved with.
    """
    found: dict[str, str] = {}
    for number, flow in enumerate(experiment.flows):
        if not is_own(flow.cc):
            continue
        try:
            home, name, options = _parse(flow.cc)
            digest, cls = _load(home, name)
            _check_options(cls, options, f"{home}:{name}")
        except ValueError as error:
            raise ExperimentError(str(error), key=f"flow[{number}].cc") from None
        found[f"{home}:{name}"] = digest
    for name, digest in experiment.sources.items():
        if found.get(name, digest) != digest:
            problem = f'"{name}" is no longer what it was when this was resolved'
            remedy = "leave the key out to run it as it is now"
            raise ExperimentError(f"{problem}; {remedy}", key="sources")
    return found


def classes(
    algorithms: Iterable[str], sources: Mapping[str, str]
) -> dict[str, tuple[type[_Own], dict[str, Any]]]:
    """What flows call their algorithm -> its class and options, for the user's own.

    Raises:
        DumbbellError: If a class cannot be found, or its source is not the one of `sources`.
    """
    found = {}
    for cc in dict.fromkeys(filter(is_own, algorithms)):
        home, name, options = _parse(cc)
        try:
            digest, cls = _load(home, name)
        except ValueError as error:
            raise DumbbellError(str(error)) from None
        if digest != sources[f"{home}:{name}"]:
            raise DumbbellError(
                f"{home}:{name}: its source was changed during the run; run it again"
            )
        found[cc] = (cls, options)
    return found


def user_part(error: BaseException) -> TracebackType | None:
    """The part of an exception's traceback that is in the user's algorithm, if it came from one."""
    from dumbbell.runner import simulate

    part = error.__traceback__
    while part is not None and part.tb_frame.f_code is not simulate.__code__:
        part = part.tb_next
    return part and part.tb_next


def _parse(cc: str) -> tuple[str, str, dict[str, Any]]:
    match = _TEXT.fullmatch(cc.strip())
    if match is None:
        raise ValueError(f'"{cc}" is not an algorithm; {_VALID}')
    options = {}
    for pair in filter(str.strip, (match["options"] or "").split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and key.isidentifier() and value) or key in options:
            raise ValueError(f'"{cc}" is not an algorithm; {_VALID}')
        options[key] = _value(value)
    return match["home"].strip(), match["name"], options


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "on", "false", "off"):
        return text in ("true", "on")
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _load(home: str, name: str) -> tuple[str, type[_Own]]:
    module, digest = read_module(home)
    cls = getattr(module, name, None)
    if cls is None:
        known = [key for key, value in vars(module).items() if _is_algorithm(value)]
        there = f"; its algorithms are {', '.join(known)}" if known else ""
        raise ValueError(f'"{home}" has no class "{name}"{there}')
    _check_class(cls, f"{home}:{name}")
    return digest or digest_of(_source(cls)), cls


def _source(cls: type) -> bytes:
    try:
        return inspect.getsource(cls).encode()
    except (OSError, TypeError):
        # A notebook, or what was typed: what it was compiled to tells it from others.
        methods = (value for value in vars(cls).values() if inspect.isfunction(value))
        return b"".join(marshal.dumps(method.__code__) for method in methods)


def _is_algorithm(value: object) -> bool:
    from dumbbell.cc import _Own

    return isinstance(value, type) and issubclass(value, _Own) and not inspect.isabstract(value)


def _check_class(cls: object, name: str) -> None:
    if _is_algorithm(cls):
        return
    missing = getattr(cls, "__abstractmethods__", ())
    if missing:
        raise ValueError(f'"{name}" lacks {", ".join(sorted(missing))}; give it what is missing')
    tiers = "CongestionControl, RoundControl or WindowRule"
    raise ValueError(f'"{name}" is not an algorithm; derive it from dumbbell.cc\'s {tiers}')


def _check_options(cls: type[_Own], options: dict[str, Any], name: str) -> None:
    signature = inspect.signature(cls)
    try:
        signature.bind(None, **options)
    except TypeError as error:
        known = [str(p) for p in list(signature.parameters.values())[1:]]
        has = f"its options are {', '.join(known)}" if known else "it has no options"
        raise ValueError(f"{name}: {error}; {has}") from None
