"""Reading the modules in which users have algorithms of their own.

A file has the modules beside it to itself: two files may each have a ``helper.py``. A module is
read again if its source changed, or that of a file of the user's that it imports, wherever that is
and whenever: an import in a function counts before it is made.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import traceback
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOCK: Final = RLock()

_NOT_USERS: Final = (Path(sysconfig.get_path("stdlib")).resolve(), Path(__file__).parents[1])
"""The folders of Python's own modules and of this package."""


class _Read(NamedTuple):
    """A module that was read, the files that it is made of, and their hashes."""

    module: ModuleType
    files: list[Path]
    hashes: list[str]

    @classmethod
    def of(cls, module: ModuleType, others: Iterable[Path] = ()) -> _Read:
        """A module as it is now, with other files that belong to it."""
        *imported, file = _files_of(module)
        files = [file, *dict.fromkeys([*imported, *others])]
        return cls(module, files, [_hash(one) for one in files])

    @property
    def is_current(self) -> bool:
        return self.hashes == [_hash(file) for file in self.files]

    @property
    def digest(self) -> str:
        """The SHA-256 of its sources together."""
        if len(self.hashes) == 1:
            return self.hashes[0]
        return hashlib.sha256("".join(self.hashes).encode()).hexdigest()

    def reload_imported(self) -> None:
        """Reads the modules that it imports again that changed, or that import one that did."""
        changed = {
            file for file, seen in zip(self.files, self.hashes, strict=True) if _hash(file) != seen
        }
        there = {_path_of(module): module for module in list(sys.modules.values())}
        for file in self.files[1:]:
            if file in there and changed & {*_files_of(there[file])}:
                importlib.reload(there[file])


_modules: dict[str, _Read] = {}  # the modules that were read, by path or by name

_brought: dict[str, Path] = {}
"""The modules beside it that the file imported that was read last; no other file has them."""


def read_module(home: str) -> tuple[ModuleType, str]:
    """The module of a name or of a file, and the hash of its sources; empty if it has no file."""
    with _LOCK:
        return _file(home) if home.endswith(".py") else _module(home)


def files_of(home: str) -> list[Path]:
    """The files that a module is made of, its own first, then what it imports of the user's."""
    with _LOCK:
        module, _ = read_module(home)
        read = _modules.get(str(_path_of(module))) or _modules.get(home)
        return read.files if read else []


def _file(home: str) -> tuple[ModuleType, str]:
    path = Path(home).resolve()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DumbbellError(f'"{home}" cannot be read: {error.strerror}') from None
    known = _modules.get(str(path))
    if known is None or not known.is_current:
        name = f"{path.stem}_{hashlib.sha256(str(path).encode() + source).hexdigest()[:12]}"
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        for other in _brought:
            sys.modules.pop(other, None)
        _brought.clear()
        before = set(sys.modules)
        with _importing(home, path.parent):
            if known is not None:
                known.reload_imported()
            exec(compile(source, path, "exec"), vars(module))
            for other in set(sys.modules) - before:
                file = _path_of(sys.modules[other])
                if file is not None and file.is_relative_to(path.parent):
                    _brought[other] = file
            known = _modules[str(path)] = _Read.of(module, sorted(_brought.values()))
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
        known = _modules.get(home)
        if not known.is_current if known else imported is not None and _is_stale(file):
            if known is not None:
                known.reload_imported()
            module = importlib.reload(module)
        if known is None or not known.is_current:
            known = _modules[home] = _Read.of(module)
    return module, known.digest


@contextmanager
def _importing(home: str, folder: Path) -> Iterator[None]:
    """Finds modules of a folder before others; what fails in the user's becomes a sentence."""
    sys.path.insert(0, str(folder))
    try:
        yield
    except (Exception, SystemExit) as error:
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
        if isinstance(error, SystemExit):
            problem = f"it ends the program, with {error.code!r}{place}; let it define classes only"
        raise DumbbellError(f'"{home}" cannot be imported: {problem}') from error
    finally:
        sys.path.remove(str(folder))


def _files_of(module: ModuleType) -> list[Path]:
    """The files of the user's that a module imports, directly or not, the deepest first; its own.

    They are found in the sources, so it does not matter what else this process has imported.
    """
    found: dict[Path, bool] = {}

    def visit(file: Path, package: str | None) -> None:
        found[file] = True
        for name in _imports(file, package):
            there, its_package = _located(name)
            if there is not None and there not in found and _is_users(there):
                visit(there, its_package)
        found[file] = found.pop(file)  # after what it imports

    if (own := _path_of(module)) is not None:
        visit(own, module.__package__)
    return list(found)


def _imports(file: Path, package: str | None) -> Iterator[str]:
    """The names of modules, their packages, or what is in them, that a module imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # which is told when it is imported
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            with suppress(ImportError):  # a relative import outside of a package
                home = importlib.util.resolve_name(home, package)
                names += (f"{home}.{name.name}" for name in node.names)
    for name in names:
        yield from accumulate(name.split("."), "{}.{}".format)


def _located(name: str) -> tuple[Path | None, str | None]:
    """File and package of a module, be it imported or not; this does not import it."""
    if (module := sys.modules.get(name)) is not None:
        return _path_of(module), module.__package__
    home, _, last = name.rpartition(".")
    for place in sys.path:
        folder = Path(place, *home.split("."))
        for file, package in ((folder / last / "__init__.py", name), (folder / f"{last}.py", home)):
            if file.is_file():
                return file.resolve(), package
    return None, None


def _is_users(file: Path) -> bool:
    """Whether a file is neither of Python, nor of an installed package, nor of this one."""
    is_installed = {"site-packages", "dist-packages"} & {*file.parts}
    ours = any(file.is_relative_to(folder) for folder in _NOT_USERS)
    return file.suffix == ".py" and not is_installed and not ours


def _hash(file: Path) -> str:
    """The SHA-256 of a file, which may be gone."""
    return hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()


def _path_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()


def _is_stale(file: Path) -> bool:
    """Whether a module's file is not what was imported, as far as Python's cache of it says."""
    cached, now = Path(importlib.util.cache_from_source(str(file))), file.stat()
    header = cached.read_bytes()[4:16] if cached.is_file() else b""
    # No flags, then the time and the size of the source.
    seen = [int(now.st_mtime) & 0xFFFFFFFF, now.st_size]
    return header[:4] == bytes(4) and header[4:] != b"".join(n.to_bytes(4, "little") for n in seen)
