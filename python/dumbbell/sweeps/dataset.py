"""The folder of a sweep: whole at any moment, whatever kills the process that writes it.

::

    sweep.toml                the experiment and its axes
    plan.parquet              the runs that were asked for last: names, points, seeds, axes
    parts/00000000-00000041/  runs.parquet, flows.parquet, links.parquet; series, if kept

A part is a folder that is written under another name, synced and renamed: it is there with all of
its tables, or not at all. Its name says which parts it holds, first and last; one that merges
others is renamed into place before they are deleted, and whoever reads leaves out what another
holds too. Runs are called by a hash of all that decides what comes out of them, so a run is never
made twice, and `plan.parquet` says which of them are meant: what earlier plans asked for stays.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from contextlib import AbstractContextManager, ExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import polars as pl

from dumbbell.errors import OverwriteError, ResultError
from dumbbell.experiment.files import (
    give_to_user,
    locked,
    make_folder,
    write_text,
    writing,
)
from dumbbell.experiment.user_code import SOURCES
from dumbbell.results.tables import columns_of, notes_of, read_table
from dumbbell.sweeps.work import SERIES, SUMMARIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from dumbbell.sweeps.work import Tables

    Axes = dict[str, dict[str, str | None]]

T = TypeVar("T")

PLAN: Final = "plan.parquet"  # the table of the runs that were asked for last
_TOML: Final = "sweep.toml"

_OURS: Final = re.compile(
    rf"sweep\.toml|plan\.parquet|parts|{SOURCES}|\.lock|\..+\.partial|[\w.-]+\.(svg|png|pdf|html)"
)
"""The files and folders of a sweep, its figures and reports included."""

_PART: Final = re.compile(r"(\d{8})-(\d{8})")
_BESIDE: Final = frozenset({"title", "seeds", "sweep", "assumed", "calibrated"})
"""Keys of a sweep's file that do not tell whether two sweeps are of one experiment."""

_LARGE: Final = 256 * 10**6  # parts are merged up to about this size, bytes
_MANY: Final = 64  # after as many parts they are merged


class Part(NamedTuple):
    """A folder of tables, with what the parts from `first` to `last` held."""

    first: int
    last: int
    folder: Path

    def file(self, table: str) -> Path:
        """The file of one of its tables."""
        return self.folder / f"{table}.parquet"

    @property
    def size(self) -> int:
        """Its size, bytes."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


class Dataset:
    """A sweep's folder, to read from."""

    def __init__(self, folder: Path) -> None:
        """The sweep in `folder`."""
        self.folder = folder
        if not (folder / PLAN).is_file():
            problem = "there is no plan.parquet in it" if folder.is_dir() else "no such folder"
            raise ResultError(f"{folder}: is not the folder of a sweep: {problem}")

    @property
    def plan(self) -> pl.DataFrame:
        """A row for each run that was asked for: run, point, seed, and the axes."""
        return read_table(self.folder / PLAN)

    @property
    def axes(self) -> Axes:
        """By the axes' names: their ``key``, and the ``unit`` of their columns (None: text)."""
        file = self.folder / PLAN
        notes = self._notes
        try:
            said: Axes = json.loads(notes["axes"])
        except (KeyError, ValueError):
            raise ResultError(f"{file}: says nothing of axes; run the sweep again") from None
        return said

    @property
    def backend(self) -> str:
        """What made its runs: ``simulator`` or ``linux``."""
        return self._notes.get("backend", "simulator")

    @property
    def _notes(self) -> dict[str, str]:
        return notes_of(self.folder / PLAN)

    @property
    def toml(self) -> tuple[str, dict[str, Any]]:
        """The text of the file that was swept, and what it says."""
        file = self.folder / _TOML
        try:
            text = file.read_text(encoding="utf-8")
            return text, tomllib.loads(text)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        except ValueError as error:
            problem = f"is not TOML: {error}"
        raise ResultError(f"{file}: {problem}; run the sweep again")

    def refuse_another(self, text: str, axes: Axes) -> None:
        """Raises `OverwriteError` if a sweep with other axes is not of the same experiment."""
        try:
            there, before = dict(_settings(self.toml[1])), self.axes
        except ResultError:
            return  # what cannot be read is written anew
        new = dict(_settings(tomllib.loads(text)))
        varied = [axis["key"] or "" for axis in (*before.values(), *axes.values())]
        changed = [
            f"{key} is {_short(there.get(key))} there and {_short(new.get(key))} here"
            for key in {**there, **new}
            if there.get(key) != new.get(key) and not any(fnmatchcase(key, one) for one in varied)
        ]
        if changed:
            problem = "holds a sweep of another experiment, whose runs the tables would not have"
            raise OverwriteError(f"{self.folder}: {problem}: {'; '.join(changed)}")

    @property
    def tables(self) -> list[str]:
        """The names of the tables that there are."""
        return [name for name in (*SUMMARIES, *SERIES) if self.files(name)]

    @property
    def incomplete(self) -> str | None:
        """How many of the planned runs there are, if not all are."""
        planned, there = self.plan["run"], self._reading(_names)
        count = sum(name in there for name in planned)
        return f"{count:,} of {len(planned):,} planned runs" if count < len(planned) else None

    def columns(self, name: str) -> list[str]:
        """The names of the columns that one of `tables` has of its own."""
        return self._reading(lambda parts: columns_of(files_of(name, parts)[0]))

    def files(self, name: str) -> list[Path]:
        """The files of one of `tables`."""
        return self._reading(lambda parts: files_of(name, parts))

    def _reading(self, read: Callable[[list[Part]], T]) -> T:
        """What `read` makes of the parts; made again if they are merged meanwhile.

        Another process may write the sweep, and deletes parts that it has merged.
        """
        while True:
            found = parts(self.folder)
            try:
                made = read(found)
            except FileNotFoundError:
                if self._are_there(found):
                    raise
            else:
                if self._are_there(found):
                    return made

    def _are_there(self, found: list[Part]) -> bool:
        return set(found) <= set(parts(self.folder))

    def table(self, name: str) -> pl.DataFrame:
        """One of `tables`, of the runs that were asked for, in the plan's order, with the axes.

        A column of the table's own takes precedence over an axis of that name.
        """
        kept = self._reading(lambda parts: _concat(name, parts))
        if kept is None:
            raise ResultError(f"{self.folder}: has no {name} yet: no run of it is over")
        plan = self.plan.drop([axis for axis in self.axes if axis in kept.columns])
        return plan.join(kept, on="run", how="inner", maintain_order="left_right")


def _short(value: str | None) -> str:
    """A value in a sentence; that of a key may be as long as a trace."""
    return "not given" if value is None else value if len(value) <= 60 else f"{value[:57]}..."


def _settings(content: dict[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """The keys of an experiment's file, with the names of links and flows, and their values."""
    for key, value in content.items():
        if not within and key in _BESIDE:
            continue
        if isinstance(value, dict):
            yield from _settings(value, f"{within}{key}.")
        elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
            for number, one in enumerate(value, 1):
                name = one.get("name", f"{key}-{number}")
                yield from _settings(one, f"{within}{key}.{name}.")
        else:
            yield f"{within}{key}", json.dumps(value, ensure_ascii=False, default=str)


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a sweep's."""
    return (folder / PLAN).is_file()


def parts(folder: Path) -> list[Part]:
    """The parts in a sweep's folder, without those that others hold."""
    named = ((_PART.fullmatch(entry.name), entry) for entry in (folder / "parts").glob("*"))
    found = [Part(int(name[1]), int(name[2]), entry) for name, entry in named if name]
    kept: list[Part] = []
    # A merged part sorts before the parts that it replaces.
    for part in sorted(found, key=lambda part: (part.first, -part.last)):
        if not kept or part.first > kept[-1].last:
            kept.append(part)
    return kept


def files_of(table: str, parts: list[Part]) -> list[Path]:
    """The files of a table, of the parts that have it."""
    return [file for part in parts if (file := part.file(table)).exists()]


class Store:
    """A sweep's folder, to write to; only one process at a time can."""

    def __init__(self, folder: Path, backend: str = "simulator") -> None:
        """Opens, or makes, the folder of a sweep, and clears what a killed process left.

        All of its runs are of one backend.
        """
        self.folder = folder
        check(folder, backend)
        with ExitStack() as undo, self._writing():
            make_folder(folder / "parts")
            problem = "another process is writing this sweep; wait for it, or name another folder"
            undo.enter_context(locked(folder / ".lock", f"{folder}: {problem}"))
            self._clear()
            self._held = undo.pop_all()
        known = parts(folder)
        self._next = known[-1].last + 1 if known else 0

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Lets others write."""
        self._held.close()

    def done(self) -> set[str]:
        """The names of all runs that are kept."""
        return _names(parts(self.folder))

    def write_plan(self, plan: pl.DataFrame, axes: Axes, text: str, backend: str) -> None:
        """Says which runs are meant from now on, and what makes them."""
        file = self.folder / f".{PLAN}.partial"
        with self._writing():
            write_text(self.folder / _TOML, text)
            plan.write_parquet(file, metadata={"axes": json.dumps(axes), "backend": backend})
            _sync(file)
            give_to_user(file)
            file.rename(self.folder / PLAN)

    def add(self, tables: Tables) -> None:
        """Keeps some runs: all of their tables, or nothing."""
        number, self._next = self._next, self._next + 1
        self._place(number, number, tables.items())
        if number % _MANY == _MANY - 1:
            self.merge()

    def merge(self) -> None:
        """Puts small parts together, runs sorted by name: many small files are slow to open."""
        for group in _groups(parts(self.folder)):
            joined = (
                (name, table.sort("run", maintain_order=True))
                for name in (*SUMMARIES, *SERIES)
                if (table := _concat(name, group)) is not None
            )
            self._place(group[0].first, group[-1].last, joined)
            for part in group:
                shutil.rmtree(part.folder)

    def _place(self, first: int, last: int, tables: Iterable[tuple[str, pl.DataFrame]]) -> None:
        """Makes a part, which is there with all of its tables or not at all."""
        part = self.folder / "parts" / f"{first:08}-{last:08}"
        temporary = part.with_name(f".{part.name}.partial")
        with self._writing():
            temporary.mkdir()
            for name, table in tables:
                file = temporary / f"{name}.parquet"
                table.write_parquet(file)
                _sync(file)
            give_to_user(temporary)
            temporary.rename(part)
            _sync(part.parent)

    def _clear(self) -> None:
        kept = {part.folder for part in parts(self.folder)}
        for entry in (self.folder / "parts").iterdir():
            if entry not in kept:
                shutil.rmtree(entry)
        for entry in self.folder.glob(".*.partial"):
            entry.unlink()

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.folder, "; what is there is whole")


def check(folder: Path, backend: str) -> None:
    """Raises `ResultError` if the folder holds anything but a sweep by this backend."""
    entries = folder.iterdir() if folder.is_dir() else ()
    foreign = [entry.name for entry in entries if not _OURS.fullmatch(entry.name)]
    problem = "is a file" if folder.is_file() else ""
    if foreign:
        problem = f'holds "{min(foreign)}", which is no part of a sweep, and is left alone'
    if problem:
        raise ResultError(f"{folder}: {problem}; name a folder that is new, or holds a sweep")
    if is_dataset(folder) and (other := Dataset(folder).backend) != backend:
        kind = {"simulator": "is simulated", "linux": "has real packets"}[other]
        raise ResultError(f"{folder}: holds a sweep that {kind}; name another folder")


def _groups(found: list[Part]) -> list[list[Part]]:
    """Neighbours that together are not too large, at least two of them."""
    groups: list[list[Part]] = [[]]
    for part in found:
        if sum(one.size for one in groups[-1]) + part.size > _LARGE:
            groups.append([])
        groups[-1].append(part)
    return [group for group in groups if len(group) > 1]


def _names(parts: list[Part]) -> set[str]:
    """The names of the runs that parts hold."""
    files = files_of("runs", parts)
    return {name for file in files for name in read_table(file, ["run"])["run"]}


def _concat(name: str, parts: list[Part]) -> pl.DataFrame | None:
    """A table of parts together; None if none has it."""
    files = files_of(name, parts)
    if not files:
        return None
    table = pl.concat([read_table(file) for file in files], how="diagonal_relaxed")
    if name not in SUMMARIES:
        return table
    # Earlier versions wrote runs twice if they were interrupted while they wrote them.
    keys = [column for column in ("run", "flow", "link") if column in table.columns]
    return table.filter(pl.struct(keys).is_first_distinct())


def _sync(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
