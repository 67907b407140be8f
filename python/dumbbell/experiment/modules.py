"""Reading the modules in which users have algorithms of their own.

A file has the modules beside it to itself: two files may each have a ``helper.py``. What was
changed since it was read, or goes with a file beside it that was, is read again. What is read is
told from what was there before by the SHA-256 of its source.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import struct
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

_LOCK: Final = RLock()


@dataclass(frozen=True)
class _Read:
    """A module that was read, the hash of its source, and the files beside it that it imports."""

    module: ModuleType
    digest: str
    beside: tuple[Path, ...] = ()


_modules: dict[str, _Read] = {}
"""What was read, by the home of a class."""

_brought: set[str] = set()
"""The names of modules that the file imported that was read last."""


def read_module(home: str) -> tuple[ModuleType, str]:
    """The module that Python calls so, or of a file, and the hash of its source.

    Of one that is in no file the hash is empty.

    Raises:
        ValueError: If there is none, or it cannot be imported.
    """
    with _LOCK:
        return _file(home) if home.endswith(".py") else _module(home)


def digest_of(source: bytes) -> str:
    """The SHA-256 of a source."""
    return hashlib.sha256(source).hexdigest()


def _file(home: str) -> tuple[ModuleType, str]:
    path = Path(home).resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ValueError(f'"{home}" cannot be read: {error.strerror}') from None
    known = _modules.get(str(path))
    if known is not None and known.digest == _digest_of(path, known.beside):
        return known.module, known.digest
    name = f"{path.stem}_{digest_of(str(path).encode() + source)[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f'"{home}" is not a file of Python')
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _apart(path.parent) as beside, _importing(home):
        spec.loader.exec_module(module)
    digest = _digest_of(path, beside)
    _modules[str(path)] = _Read(module, digest, tuple(beside))
    return module, digest


def _digest_of(path: Path, beside: Iterable[Path]) -> str:
    """The hash of a file and of those beside it that it imports; one may be gone."""
    files = [path, *beside]
    hashes = [digest_of(file.read_bytes() if file.is_file() else b"") for file in files]
    return hashes[0] if len(hashes) == 1 else digest_of("".join(hashes).encode())


@contextmanager
def _apart(folder: Path) -> Iterator[list[Path]]:
    """Modules of the folder are found, those that another file brought along are not.

    Gives a list that holds, afterwards, which files of the folder were imported.
    """
    for name in _brought:
        sys.modules.pop(name, None)
    _brought.clear()
    before = set(sys.modules)
    beside: list[Path] = []
    with _found_in(folder):
        yield beside
    for name in set(sys.modules) - before:
        file = Path(getattr(sys.modules[name], "__file__", None) or "/").resolve()
        if file.is_relative_to(folder):
            _brought.add(name)
            beside.append(file)
    beside.sort()


@contextmanager
def _importing(home: str) -> Iterator[None]:
    """What goes wrong as the user's module is read, or looked for, is told in a paragraph."""
    try:
        yield
    except Exception as error:
        if _is_missing(error, home):
            problem = f'there is no module "{error.name}" in the current folder or where Python'
            advice = f'looks for modules; or name a file: "{home}.py:..."'
            raise ValueError(f"{problem} {advice}") from None
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = (
            "" if isinstance(error, SyntaxError) else f" ({where.filename}, line {where.lineno})"
        )
        problem = f"{type(error).__name__}: {error}{place}"
        raise ValueError(f'"{home}" cannot be imported: {problem}') from error


def _is_missing(error: Exception, home: str) -> TypeGuard[ModuleNotFoundError]:
    """Whether it is the module itself, or its package, that is not there."""
    if home.endswith(".py") or not isinstance(error, ModuleNotFoundError) or error.name is None:
        return False
    return f"{home}.".startswith(f"{error.name}.")


def _module(home: str) -> tuple[ModuleType, str]:
    here = Path.cwd() / f"{home}.py"
    imported = sys.modules.get(home)
    if imported is not None and here.is_file() and not _is_from(imported, here):
        return _file(str(here))  # Another module of that name came first.
    with _found_in(Path.cwd()):
        with _importing(home):
            module = importlib.import_module(home)
        file = getattr(module, "__file__", None)
        if file is None or home == "__main__":
            return module, ""
        digest = digest_of(Path(file).read_bytes())
        known = _modules.get(home)
        if known is None and imported is not None and _was_changed(Path(file)):
            known = _Read(module, "")
        if known is not None and known.digest != digest:
            with _importing(home):
                module = importlib.reload(module)
        _modules[home] = _Read(module, digest)
    return module, digest


def _is_from(module: ModuleType, file: Path) -> bool:
    there = getattr(module, "__file__", None)
    return there is not None and Path(there).resolve() == file.resolve()


def _was_changed(file: Path) -> bool:
    """Whether a module's file is not what was imported, as far as Python noted it."""
    cached = Path(importlib.util.cache_from_source(str(file)))
    if not cached.is_file():
        return False
    flags, modified, size = struct.unpack("<III", cached.read_bytes()[4:16])
    now = file.stat()
    return flags == 0 and (modified, size) != (int(now.st_mtime) & 0xFFFFFFFF, now.st_size)


@contextmanager
def _found_in(folder: Path) -> Iterator[None]:
    """Lets modules be found in a folder too, before all others."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
