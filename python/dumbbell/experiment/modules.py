"""Reading the modules in which users have algorithms of their own.

A file has the modules beside it to itself: two files may each have a ``helper.py``. A module is
read again if its source changed, or that of a file beside it that it imports.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK: Final = RLock()


class _Read(NamedTuple):
    """A module that was read, the hash of its source, and the files beside it that it imports."""

    module: ModuleType
    digest: str
    beside: list[Path]


_modules: dict[str, _Read] = {}  # the modules that were read, by path or by name

_brought: dict[str, Path] = {}
"""The modules beside it that the file imported that was read last; no other file has them."""


def read_module(home: str) -> tuple[ModuleType, str]:
    """The module of a name or of a file, and the hash of its source; empty if it has no file."""
    with _LOCK:
        return _file(home) if home.endswith(".py") else _module(home)


def _file(home: str) -> tuple[ModuleType, str]:
    path = Path(home).resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DumbbellError(f'"{home}" cannot be read: {error.strerror}') from None
    known = _modules.get(str(path))
    if known is None or known.digest != _digest(path, *known.beside):
        name = f"{path.stem}_{hashlib.sha256(str(path).encode() + source).hexdigest()[:12]}"
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        for other in _brought:
            sys.modules.pop(other, None)
        _brought.clear()
        before = set(sys.modules)
        with _importing(home, path.parent):
            exec(compile(source, path, "exec"), vars(module))
        for other in set(sys.modules) - before:
            file = _path_of(sys.modules[other])
            if file is not None and file.is_relative_to(path.parent):
                _brought[other] = file
        beside = sorted(_brought.values())
        known = _modules[str(path)] = _Read(module, _digest(path, *beside), beside)
    return known.module, known.digest


def _module(home: str) -> tuple[ModuleType, str]:
    here = Path.cwd() / f"{home}.py"
    imported = sys.modules.get(home)
    if imported is not None and here.is_file() and _path_of(imported) != here.resolve():
        return _file(str(here))  # Another module of that name came first.
    with _importing(home, Path.cwd()):
        module = importlib.import_module(home)
        file = _path_of(module)
        if file is None or home == "__main__":
            return module, ""
        digest, known = _digest(file), _modules.get(home)
        if known.digest != digest if known else imported is not None and _is_stale(file):
            module = importlib.reload(module)
        _modules[home] = _Read(module, digest, [])
    return module, digest


@contextmanager
def _importing(home: str, folder: Path) -> Iterator[None]:
    """Finds modules of a folder before others; what fails in the user's becomes a sentence."""
    sys.path.insert(0, str(folder))
    try:
        yield
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        # The module itself, or its package, is not there.
        if missing and not home.endswith(".py") and f"{home}.".startswith(f"{missing}."):
            problem = f'there is no module "{missing}" in the current folder or where Python'
            advice = f'looks for modules; or name a file: "{home}.py:..."'
            raise DumbbellError(f"{problem} {advice}") from None
        where = traceback.extract_tb(error.__traceback__)[-1]
        is_read = not isinstance(error, SyntaxError)
        place = f" ({where.filename}, line {where.lineno})" if is_read else ""
        problem = f"{type(error).__name__}: {error}{place}"
        raise DumbbellError(f'"{home}" cannot be imported: {problem}') from error
    finally:
        sys.path.remove(str(folder))


def _digest(*files: Path) -> str:
    """The SHA-256 of the source of a file, or of several together; one may be gone."""
    hashes = [
        hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest() for file in files
    ]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _path_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()


def _is_stale(file: Path) -> bool:
    """Whether a module's file is not what was imported, as far as Python's cache of it says."""
    cached, now = Path(importlib.util.cache_from_source(str(file))), file.stat()
    header = cached.read_bytes()[4:16] if cached.is_file() else b""
    # No flags, then the time and the size of the source.
    seen = [int(now.st_mtime) & 0xFFFFFFFF, now.st_size]
    return header[:4] == bytes(4) and header[4:] != b"".join(n.to_bytes(4, "little") for n in seen)
