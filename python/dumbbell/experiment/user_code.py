"""Loading custom algorithms: Python classes that experiments name.

``my_module:MyCC`` is a class of an importable module; the current folder is searched first.
``path/to/file.py:MyCC`` is a class of a file; only that file sees the modules in its folder.
`find` returns the SHA-256 of a class's source, which identifies the version of a class. A
resolved experiment holds these hashes under the key ``sources``, and results are stored under them.
`dumbbell.experiment.modules` reads the modules.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
from typing import TYPE_CHECKING, Any

from dumbbell import _core
from dumbbell.errors import DumbbellError, ExperimentError
from dumbbell.experiment.modules import read_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dumbbell.cc import _Algorithm


def is_custom(cc: str) -> bool:
    """Whether `cc` names a custom algorithm, not a built-in one."""
    return _core.custom_algorithm(cc) is not None


def name_of(algorithm: type) -> str:
    """The name of a class in an experiment: ``my_module:MyCC``.

    Raises:
        ExperimentError: If it is not a complete algorithm class.
    """
    try:
        _check_class(algorithm, algorithm.__name__)
    except ValueError as error:
        raise ExperimentError(str(error), key="cc") from None
    return f"{algorithm.__module__}:{algorithm.__qualname__}"


def find(cc: str) -> tuple[str, str]:
    """Name and SHA-256 of the source of the custom algorithm that `cc` names.

    Raises:
        ValueError: If the class does not exist, is not an algorithm or lacks an option.
    """
    home, name, options = _parse(cc)
    digest, cls = _load(home, name)
    signature = inspect.signature(cls)
    try:
        signature.bind(None, **options)
    except TypeError as error:
        known = [str(p) for p in list(signature.parameters.values())[1:]]
        has = f"its options are {', '.join(known)}" if known else "it has no options"
        raise ValueError(f"{home}:{name}: {error}; {has}") from None
    return f"{home}:{name}", digest


def classes(
    algorithms: Iterable[str], sources: Mapping[str, str]
) -> dict[str, tuple[type[_Algorithm], dict[str, Any]]]:
    """Class and options of each custom algorithm, by the text of the flows' ``cc``.

    Raises:
        DumbbellError: If a class cannot be loaded, or its source differs from that of `sources`.
    """
    found = {}
    for cc in dict.fromkeys(filter(is_custom, algorithms)):
        home, name, options = _parse(cc)
        try:
            digest, cls = _load(home, name)
        except ValueError as error:
            raise DumbbellError(str(error)) from None
        if digest != sources[f"{home}:{name}"]:
            problem = "its source was changed during the run"
            raise DumbbellError(f"{home}:{name}: {problem}; run it again")
        found[cc] = (cls, options)
    return found


def _parse(cc: str) -> tuple[str, str, dict[str, Any]]:
    """Home, class and options of a custom algorithm."""
    found = _core.custom_algorithm(cc)
    if found is None:
        raise ValueError(f'"{cc}" is not an algorithm of the user')
    home, name, options = found
    return home, name, {key: _value(value) for key, value in options}


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "on", "false", "off"):
        return text in ("true", "on")
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _load(home: str, name: str) -> tuple[str, type[_Algorithm]]:
    module, digest = read_module(home)
    cls = getattr(module, name, None)
    if cls is None:
        known = [key for key, value in vars(module).items() if _is_algorithm(value)]
        there = f"; its algorithms are {', '.join(known)}" if known else ""
        raise ValueError(f'"{home}" has no class "{name}"{there}')
    _check_class(cls, f"{home}:{name}")
    if digest:
        return digest, cls
    try:
        source = inspect.getsource(cls).encode()
    except (OSError, TypeError):
        # Defined in a notebook or at the prompt, without a file: hash the byte code instead.
        methods = (value for value in vars(cls).values() if inspect.isfunction(value))
        source = b"".join(marshal.dumps(method.__code__) for method in methods)
    return hashlib.sha256(source).hexdigest(), cls


def _is_algorithm(value: object) -> bool:
    from dumbbell.cc import _Algorithm

    return (
        isinstance(value, type) and issubclass(value, _Algorithm) and not inspect.isabstract(value)
    )


def _check_class(cls: object, name: str) -> None:
    if _is_algorithm(cls):
        return
    missing = getattr(cls, "__abstractmethods__", ())
    if missing:
        raise ValueError(f'"{name}" lacks {", ".join(sorted(missing))}; give it what is missing')
    tiers = "CongestionControl, RoundControl or WindowRule"
    raise ValueError(f'"{name}" is not an algorithm; derive it from dumbbell.cc\'s {tiers}')
