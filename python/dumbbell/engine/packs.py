"""Many small runs in common files of the run store, found through an index in SQLite.

A sweep keeps a few rows of each of its runs: a file for each would cost more than the run.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dumbbell.engine.store import Store

    Tables = dict[str, pl.DataFrame]

_PATIENCE: Final = 10.0
"""How long another process may hold the index, s."""

_SCHEMA: Final = "create table if not exists runs (name text primary key, pack text) without rowid"

_FIND: Final = """\
select pack, json_group_array(name) from runs
where name in (select value from json_each(?)) group by pack
"""

_ADD: Final = "insert or replace into runs select value, ? from json_each(?)"


class Packs:
    """The packs of a store. Each table has the names of the runs in its column ``run``."""

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
        return {name: pl.concat([some[name] for some in found]) for name in tables}

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
        file = self._store.folder / "index.sqlite"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file, timeout=_PATIENCE)) as index, index:
                index.execute(_SCHEMA)
                return index.execute(statement, values).fetchall()
        except (sqlite3.OperationalError, OSError):  # locked, or the disk is full
            return []
        except sqlite3.DatabaseError:
            with suppress(OSError):
                file.unlink()
            return []
