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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.errors import DumbbellError, ExperimentError, did_you_mean
from dumbbell.experiment.files import give_to_user, make_folder
from dumbbell.experiment.linux_algorithms import digest_of, object_of
from dumbbell.experiment.modules import files_of, read_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dumbbell.cc import _Algorithm


SOURCES: Final = "sources"
"""The folder, in that of a result or of a sweep, with the files of algorithms of the user."""


def is_custom(cc: str) -> bool:
    """Whether `cc` names a custom algorithm, not a built-in one."""
    return _core.custom_algorithm(cc) is not None


def name_of(algorithm: str | type) -> str:
    """The text that names an algorithm in an experiment: ``my_module:MyCC`` for a class."""
    if isinstance(algorithm, str):
        return algorithm
    try:
        _check_class(algorithm, algorithm.__name__)
    except DumbbellError as error:
        raise ExperimentError(str(error), key="cc") from None
    return f"{algorithm.__module__}:{algorithm.__qualname__}"


def find(cc: str) -> tuple[str, str]:
    """Name and SHA-256 of the source of the custom algorithm that `cc` names."""
    name, digest, _, _ = _load(cc)
    return name, digest


def digest_here(name: str) -> str:
    """The SHA-256 of the source of a custom algorithm, by its name without options."""
    return _find_class(name)[1]  # its options may be required


def check_names(algorithms: Sequence[str]) -> None:
    """Raises `ExperimentError` if no algorithm is named, or one is named twice."""
    if not algorithms:
        raise ExperimentError('names no algorithm; write some, such as "cubic,bbr"', key="cc")
    twice = next((name for name in algorithms if algorithms.count(name) > 1), None)
    if twice:
        raise ExperimentError(f'"{twice}" is named twice; name every algorithm once', key="cc")


def explain(cc: str) -> str:
    """What the class of a custom algorithm is: its docstring, its base class, its options."""
    name, _, cls, _ = _find_class(cc)
    base = next(one.__name__ for one in cls.__mro__ if one.__module__ == "dumbbell.cc")
    lines = [f"{name}: a {base}.", *inspect.cleandoc(cls.__doc__ or "").splitlines()]
    options = _options(inspect.signature(cls))
    width = max((len(option.name) for option in options), default=0)
    lines += ["Options:" if options else "It has no options."]
    lines += [f"  {option.name:{width}}  {_valid(option)}" for option in options]
    return "\n".join([*lines, f'In a file: cc = "{name}"'])


def copy_sources(sources: Mapping[str, str], folder: Path) -> None:
    """Copies the files of algorithms of the user into a folder ``sources`` of another one.

    They lie there as they do in the current folder, so that a copy of the result or the sweep runs
    again in ``sources``. A file whose hash is not that in `sources` is not copied.

    Args:
        sources: As a resolved experiment has them.
        folder: That of the result or the sweep.
    """
    for name, digest in sources.items():
        here = Path.cwd()
        for file in _sources(name, digest):
            place = file.relative_to(here) if file.is_relative_to(here) else Path(file.name)
            copy = folder / SOURCES / place
            make_folder(copy.parent)
            copy.write_bytes(file.read_bytes())
            give_to_user(copy)


def _sources(name: str, digest: str) -> list[Path]:
    """The files of an algorithm of the user if it is still the one of this hash."""
    if (file := object_of(name)) is not None:
        return [file.resolve()] if file.is_file() and digest_of(file) == digest else []
    try:
        return files_of(name.rpartition(":")[0]) if digest_here(name) == digest else []
    except DumbbellError:
        return []  # it was read from another folder


def classes(
    algorithms: Iterable[str], sources: Mapping[str, str]
) -> dict[str, tuple[type[_Algorithm], dict[str, Any]]]:
    """Class and options of each custom algorithm, by the text of the flows' ``cc``."""
    found = {}
    for cc in filter(is_custom, dict.fromkeys(algorithms)):
        name, digest, cls, options = _load(cc)
        if digest != sources[name]:
            raise DumbbellError(f"{name}: its source was changed during the run; run it again")
        found[cc] = (cls, options)
    return found


def _load(cc: str) -> tuple[str, str, type[_Algorithm], dict[str, Any]]:
    """Name, SHA-256 of the source, class and options of a custom algorithm."""
    name, digest, cls, options = _find_class(cc)
    return name, digest, cls, _values(name, cls, options)


def _find_class(cc: str) -> tuple[str, str, type[_Algorithm], dict[str, str]]:
    """The same with the options as they are written."""
    parsed = _core.custom_algorithm(cc)
    if parsed is None:
        raise DumbbellError(f'"{cc}" is not an algorithm of the user')
    home, name, options = parsed
    module, digest = read_module(home)
    cls = getattr(module, name, None)
    if cls is None:
        known = [key for key, value in vars(module).items() if _is_algorithm(value)]
        there = f"; its algorithms are {', '.join(known)}" if known else ""
        raise DumbbellError(f'"{home}" has no class "{name}"{there}')
    _check_class(cls, f"{home}:{name}")
    return f"{home}:{name}", digest or _digest(cls), cls, dict(options)


def _digest(cls: type) -> str:
    """The SHA-256 of a class without a file, as of a notebook or the prompt."""
    try:
        source = inspect.getsource(cls).encode()
    except (OSError, TypeError):
        methods = (value for value in vars(cls).values() if inspect.isfunction(value))
        source = b"".join(marshal.dumps(method.__code__) for method in methods)
    return hashlib.sha256(source).hexdigest()


def _values(name: str, cls: type, options: Mapping[str, str]) -> dict[str, Any]:
    """The values of a class's options: of the types that its constructor is annotated with."""
    signature = inspect.signature(cls)
    try:
        signature.bind(None, **options)
    except TypeError as error:
        problem = _misfit(_options(signature), options) or f": {error}"
        valid = (f"{option.name} ({_valid(option)})" for option in _options(signature))
        raise DumbbellError(f"{name}{problem}; it has {', '.join(valid) or 'no options'}") from None
    parameters = signature.parameters
    return {
        key: _value(f"{name}: option {key}", text, parameters.get(key))
        for key, text in options.items()
    }


def _misfit(known: Sequence[inspect.Parameter], given: Iterable[str]) -> str:
    """What is wrong with the first given option that is not known; empty if all are."""
    names = [option.name for option in known]
    if any(option.kind is option.VAR_KEYWORD for option in known):
        return ""
    strange = [key for key in given if key not in names]
    return f' has no option "{strange[0]}"{did_you_mean(strange[0], names)}' if strange else ""


def _options(signature: inspect.Signature) -> list[inspect.Parameter]:
    """The parameters of a constructor after ``init``."""
    return list(signature.parameters.values())[1:]


def _valid(option: inspect.Parameter) -> str:
    """What an option takes, and its default."""
    types = _types(option.annotation)
    valid = "any value" if types is _GUESSED else " or ".join(_TYPES[kind][0] for kind in types)
    is_required = option.default is inspect.Parameter.empty
    return f"{valid} ({'required' if is_required else f'default {option.default}'})"


def _value(what: str, text: str, parameter: inspect.Parameter | None) -> object:
    """The value of an option: of one of the types of its annotation, if there is one."""
    types = _types(parameter.annotation) if parameter else _GUESSED
    for kind in types:
        try:
            return _TYPES[kind][1](text)
        except (ValueError, KeyError):
            pass
    valid = " or ".join(_TYPES[kind][0] for kind in types)
    raise DumbbellError(f'{what} cannot be "{text}"; it takes {valid}')


def _types(annotation: object) -> list[str]:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    named = {part.strip() for part in text.split("|")}
    return [kind for kind in _TYPES if kind in named] if named <= _TYPES.keys() else _GUESSED


_SWITCH: Final = {"true": True, "on": True, "false": False, "off": False}

_TYPES: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "None": ("None", {"None": None}.__getitem__),
    "bool": ("on or off", _SWITCH.__getitem__),
    "int": ("a whole number", int),
    "float": ("a number without a unit", float),
    "str": ("a text", str),
}
"""The types of options in the order in which they are tried: what is valid, and how it is read."""

_GUESSED: Final = ["bool", "int", "float", "str"]
"""The types that are tried without an annotation, or with one of other types."""


def _is_algorithm(value: object) -> bool:
    from dumbbell.cc import _Algorithm

    return (
        isinstance(value, type) and issubclass(value, _Algorithm) and not inspect.isabstract(value)
    )


def _check_class(cls: object, name: str) -> None:
    from dumbbell.cc import WindowRule

    if _is_algorithm(cls):
        if isinstance(cls, type) and issubclass(cls, WindowRule) and hasattr(cls, "uses_prr"):
            problem = f'"{name}" is a WindowRule, which leaves the window in recovery to the'
            advice = "transport; leave uses_prr out, or derive it from CongestionControl"
            raise DumbbellError(f"{problem} {advice}")
        return
    missing = getattr(cls, "__abstractmethods__", ())
    if missing:
        raise DumbbellError(f'"{name}" lacks {", ".join(sorted(missing))}; give it what is missing')
    tiers = "CongestionControl, RoundControl or WindowRule"
    raise DumbbellError(f'"{name}" is not an algorithm; derive it from dumbbell.cc\'s {tiers}')
