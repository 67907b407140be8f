"""Many small runs in common files of the run store, found through an index in SQLite.

A sweep keeps a few rows of each of its runs: a file for each would cost more than the run.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from dumbbell.engine.store import Store

    Tables = dict[str, pl.DataFrame]

_PATIENCE: Final = 10.0
"""How long another process may hold the index, s."""

_AT_ONCE: Final = 500
"""Names in one query."""

_SCHEMA: Final = "create table if not exists runs (name text primary key, pack text) without rowid"


class Packs:
    """The packs of a store. Each table has the names of the runs in its column ``run``."""

    def __init__(self, store: Store) -> None:
        """The packs of this store."""
        self._store = store

    def get(self, names: Iterable[str]) -> Tables:
        """The tables of those of the runs that are filed; empty if none is."""
        wanted = list(names)
        if not self._store.is_on or not wanted:
            return {}
        packs: dict[str, list[str]] = {}
        for name, pack in self._query(lambda index: _find(index, wanted)):
            packs.setdefault(pack, []).append(name)
        found: list[Tables] = []
        for pack, runs in packs.items():
            stored = self._store.get(pack)
            if stored is not None:
                chosen = pl.col("run").is_in(runs)
                found.append({name: table.filter(chosen) for name, table in stored[0].items()})
        tables = found[0] if found else {}
        return {name: pl.concat([some[name] for some in found]) for name in tables}

    def put(self, tables: Tables) -> None:
        """Files some runs together."""
        names = tables["runs"]["run"].to_list()
        pack = f"{names[0]}{len(names):08x}{names[-1]}"
        if self._store.put(pack, tables, {"what": f"{len(names)} runs of a sweep"}):
            self._query(lambda index: _add(index, names, pack))

    def _query(
        self, ask: Callable[[sqlite3.Connection], list[tuple[str, str]]]
    ) -> list[tuple[str, str]]:
        """Asks the index; a damaged one is removed: its runs are then made again."""
        assert self._store.folder is not None, "what is off is not asked"
        file = self._store.folder / "index.sqlite"
        try:
            return _ask(file, ask)
        except sqlite3.OperationalError:  # locked, or the disk is full
            return []
        except sqlite3.DatabaseError:
            with suppress(OSError):
                file.unlink()
            return []


def _ask(
    file: Path, ask: Callable[[sqlite3.Connection], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file, timeout=_PATIENCE)) as index, index:
        index.execute(_SCHEMA)
        return ask(index)


def _find(index: sqlite3.Connection, names: list[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        marks = ",".join("?" * len(some))
        found += index.execute(f"select name, pack from runs where name in ({marks})", some)
    return found


def _add(index: sqlite3.Connection, names: list[str], pack: str) -> list[tuple[str, str]]:
    index.executemany("insert or replace into runs values (?, ?)", [(name, pack) for name in names])
    return []
