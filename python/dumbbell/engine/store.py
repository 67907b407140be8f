"""The run store: every run is filed under a hash of all that determines it, and made only once.

A simulation is determined by its scenario (with the seed), by the build of the engine, and by the
sources of custom algorithms; a run with real packets also by the kernel, its settings and the
machine. The store is shared by all commands and safe with several processes: an entry is written
under another name and renamed, it ends with its checksum, and a damaged one is made again.

``DUMBBELL_STORE`` names the folder (default: ``dumbbell`` in ``$XDG_CACHE_HOME``, or in
``~/.cache``); ``off`` is no store. ``DUMBBELL_STORE_LIMIT`` is its limit in bytes (default: 10 GB);
beyond it the entries that were not used for the longest time are removed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import sqlite3
import sys
import time
import warnings
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core, bpf
from dumbbell.engine.output import encode, read_tables
from dumbbell.engine.simulation import engine
from dumbbell.errors import DumbbellError
from dumbbell.experiment import user_code
from dumbbell.experiment.files import atomic_write, give_to_user, make_folder
from dumbbell.experiment.linux_algorithms import object_of
from dumbbell.experiment.model import without_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dumbbell.experiment.model import Experiment

    Tables = dict[str, pl.DataFrame]

_LIMIT: Final = 10 * 10**9  # the default limit of the store, bytes
_LAYOUT: Final = "1"  # changes when the content of an entry changes
_CHECKSUM: Final = 32

_INDEX: Final = "index.sqlite"

_ABANDONED: Final = 3600.0
"""A partial entry that is older than this was left by a killed process, s."""

_PATIENCE: Final = 10.0  # how long another process may hold the index, s
_SCHEMA: Final = "create table if not exists runs (name text primary key, pack text) without rowid"

_FIND: Final = """\
select pack, json_group_array(name) from runs
where name in (select value from json_each(?)) group by pack
"""

_ADD: Final = "insert or replace into runs select value, ? from json_each(?)"


@dataclass(frozen=True)
class Entry:
    """A file of the store: its size in bytes, and when it was last used (s since 1970)."""

    path: Path
    size: int
    used: float


class Store:
    """The folder in which runs are filed, and its limit in bytes; without a folder nothing is."""

    def __init__(self, folder: Path | None, limit: int = _LIMIT) -> None:
        """The store in `folder`, which is made when it is needed."""
        self.folder, self.limit = folder, limit
        self._added = limit  # so the first entry is a reason to look at the size

    @classmethod
    def default(cls) -> Store:
        """The store that the environment names."""
        named = os.environ.get("DUMBBELL_STORE", "")
        if named == "off":
            return cls(None)
        limit = os.environ.get("DUMBBELL_STORE_LIMIT", str(_LIMIT))
        if not limit.isdecimal():
            raise DumbbellError(f"DUMBBELL_STORE_LIMIT: {limit} is not a number of bytes")
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(named or Path(caches) / "dumbbell"), int(limit))

    def get(self, key: str | None) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The tables and facts that are filed under a key; None if there are none, or damaged."""
        if (path := self._path(key)) is None:
            return None
        try:
            content = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a store may be another user's, to read only
            os.utime(path)
        content, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
        if hashlib.sha256(content).digest() != checksum:
            path.unlink(missing_ok=True)
            return None
        file = io.BytesIO(content)
        said = json.loads(file.readline())
        return read_tables(said["tables"], file), said["facts"]

    def put(
        self, key: str | None, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]
    ) -> bool:
        """Files tables and facts; returns whether they are filed. If they cannot be, it warns."""
        if (path := self._path(key)) is None:
            return False
        content = encode(tables, facts)
        content += hashlib.sha256(content).digest()
        try:
            make_folder(path.parent)
            with atomic_write(path) as partial:
                partial.write_bytes(content)
        except OSError as error:
            problem = f"{self.folder}: the store cannot be written: {error.strerror or error}"
            advice = "dumbbell store prune makes room, DUMBBELL_STORE names another folder"
            warnings.warn(
                f"{problem}; runs are not kept for other commands ({advice})", stacklevel=2
            )
            return False
        self._added += len(content)
        if self._added > self.limit / 20:
            self.prune()
        return True

    def entries(self) -> list[Entry]:
        """All entries, the one first that was not used for the longest time."""
        found = []
        for path in (self.folder / "runs").glob("*/*") if self.folder else ():
            with suppress(OSError):
                state = path.stat()
                if not path.name.startswith("."):
                    found.append(Entry(path, state.st_size, state.st_mtime))
                elif state.st_mtime < time.time() - _ABANDONED:
                    path.unlink()
        return sorted(found, key=lambda entry: entry.used)

    def what(self, entry: Entry) -> str:
        """An entry in a few words."""
        try:
            with entry.path.open("rb") as file:
                return str(json.loads(file.readline())["facts"]["what"])
        except (OSError, ValueError, KeyError):
            return "damaged"

    def size(self) -> int:
        """The size of all entries, bytes."""
        return sum(entry.size for entry in self.entries())

    def prune(self, limit: int | None = None) -> int:
        """Removes entries until the store is below a limit (default: its own); returns how many."""
        self._added = 0
        entries, removed = self.entries(), 0
        excess = sum(entry.size for entry in entries) - (self.limit if limit is None else limit)
        while excess > 0 and removed < len(entries):
            with suppress(OSError):
                entries[removed].path.unlink()
            excess -= entries[removed].size
            removed += 1
        return removed

    def clear(self) -> int:
        """Removes all entries, and the index of packs; returns how many entries there were."""
        removed = self.prune(0)
        if self.folder is not None:
            (self.folder / _INDEX).unlink(missing_ok=True)
        return removed

    def _path(self, key: str | None) -> Path | None:
        return self.folder / "runs" / key[:2] / key if self.folder and key else None


class Packs:
    """Many small runs in common entries of a store, found through an index in SQLite.

    A sweep keeps a few rows of each of its runs: a file for each would cost more than the run. Each
    table has the names of the runs in its column ``run``.
    """

    def __init__(self, store: Store) -> None:
        """The packs of this store."""
        self._store = store

    def get(self, names: Iterable[str]) -> Tables:
        """The tables of those of the runs that are filed; empty if none is."""
        found: list[Tables] = []
        for pack, runs in self._query(_FIND, json.dumps(list(names))):
            if stored := self._store.get(pack):
                chosen = pl.col("run").is_in(json.loads(runs))
                found.append({name: table.filter(chosen) for name, table in stored[0].items()})
        tables = found[0] if found else {}
        # Only runs with transfers, or with media, have the columns of these.
        return {
            name: pl.concat([some[name] for some in found], how="diagonal_relaxed")
            for name in tables
        }

    def put(self, tables: Tables) -> None:
        """Files some runs together."""
        names = tables["runs"]["run"].to_list()
        pack = f"{names[0]}{len(names):08x}{names[-1]}"
        if self._store.put(pack, tables, {"what": f"{len(names)} runs of a sweep"}):
            self._query(_ADD, pack, json.dumps(names))

    def _query(self, statement: str, *values: str) -> list[Any]:
        """Asks the index; a damaged one is removed: its runs are then made again."""
        if self._store.folder is None:
            return []
        file = self._store.folder / _INDEX
        try:
            make_folder(file.parent)
            with closing(sqlite3.connect(file, timeout=_PATIENCE)) as index, index:
                index.execute(_SCHEMA)
                give_to_user(file)
                return index.execute(statement, values).fetchall()
        except (sqlite3.OperationalError, OSError):  # locked, or the disk is full
            return []
        except sqlite3.DatabaseError:
            with suppress(OSError):
                file.unlink()
            return []


def description(resolved: Experiment, seed: int, backend: str) -> str:
    """A run in a few words, for lists."""
    algorithms = ", ".join(dict.fromkeys(flow.cc for flow in resolved.flows))
    return f"{algorithms}; {resolved.duration}; seed {seed}; {backend}"


def simulation_key(resolved: Experiment, scenario: str) -> str | None:
    """The key of one simulated run; None if it is not stored.

    Logged packets are too large, and an algorithm without a source file is not known well enough.
    """
    if any(flow.log for flow in resolved.flows):
        return None
    code = [_code(flow.cc) for flow in resolved.flows if user_code.is_custom(flow.cc)]
    return None if None in code else _hash("simulator", engine(), scenario, code)


def measurement_key(resolved: Experiment, scenario: str, names: Mapping[str, str]) -> str | None:
    """The key of one run with real packets; None if it is not stored.

    Logged packets are too large. Another program may be another one each time, and so may an
    algorithm of the kernel that is neither one of Linux's nor a loaded module's.

    Args:
        resolved: The experiment.
        scenario: That of the run, without the kernel's names: objects have another one each time.
        names: What the kernel calls the algorithms, and maybe others.
    """
    if any(flow.log or flow.command is not None for flow in resolved.flows):
        return None
    used = {without_options(flow.cc) for flow in resolved.flows if flow.transport == "tcp"}
    machine = measured_by({cc: names[cc] for cc in used})
    return None if machine is None else _hash("kernel", engine(), scenario, machine)


def measured_by(names: Mapping[str, str]) -> str | None:
    """A hash of what of this machine determines runs with real packets of some algorithms.

    None as for `measurement_key`. `names` are what the kernel calls them.
    """
    builds = [_build(cc, name) for cc, name in sorted(names.items())]
    return None if None in builds else _hash(_machine(), builds)


def _build(cc: str, name: str) -> str | None:
    """What tells one build of an algorithm in the kernel from another; None if nothing does.

    A module is known by its build ID, and has parameters; the kernel may load it only for the run.
    An object of eBPF is known by its content, which the scenario has.
    """
    if object_of(cc) is not None:
        return "in the scenario's sources"
    if name not in bpf.known():
        return None
    module = _MODULES / f"tcp_{name}"
    files = [module / "notes" / ".note.gnu.build-id", *sorted(module.glob("parameters/*"))]
    found = {}
    for file in files:
        with suppress(OSError):
            found[file.name] = file.read_bytes().hex()
    is_known = _core.linux_algorithm(cc) is None or name in _core.algorithms()
    return json.dumps([name, found]) if found or is_known else None


_MODULES: Final = Path("/sys/module")


def _hash(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([_LAYOUT, *parts]).encode()).hexdigest()


def _code(cc: str) -> str | None:
    """A hash of the modules of a custom algorithm: its own, and those of its folder or package.

    None if it has no source file, as in a notebook.
    """
    home = cc.partition(":")[0].strip()
    if home.endswith(".py"):
        return "in the scenario's sources"
    file = getattr(sys.modules.get(home), "__file__", None)
    if file is None or home == "__main__":
        return None
    top, folder = home.partition(".")[0], Path(file).parent
    digest = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        source = Path(getattr(module, "__file__", None) or "")
        is_beside = source.is_relative_to(folder) and "site-packages" not in str(source)
        if source.name and (name.partition(".")[0] == top or is_beside):
            with suppress(OSError):
                digest.update(name.encode() + source.read_bytes())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """A hash of what determines how this machine's kernel sends: release, settings, eBPF."""
    programs = (bpf.OBJECTS / "sources.sha256").read_text()
    return _hash(platform.uname(), os.cpu_count(), _settings(Path("/proc/sys/net")), programs)


def _settings(net: Path) -> dict[str, str]:
    """The settings of TCP, of the size of buffers, and of the queue of the testbed's devices."""
    files = [*net.glob("ipv4/tcp_*"), *net.glob("core/*mem*"), net / "core/default_qdisc"]
    settings = {}
    for file in sorted(files):
        if not file.name.endswith(("congestion_control", "_key", "_ulp")):  # loaded on demand
            with suppress(OSError):
                settings[file.name] = file.read_text()
    return settings
