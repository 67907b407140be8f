"""The folder of a result: checked, reserved, written and read.

A folder is written under a temporary name and renamed, so it is complete or absent. What it holds
is replaced only by the same result, or by more runs of the same experiment; anything else needs
`overwrite`. The hash in ``meta.json`` identifies the experiment, the backend, the engine and, with
real packets, the measurement.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell.errors import OverwriteError, ResultError
from dumbbell.experiment.files import give_to_user, locked, make_folder, writing
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.user_code import SOURCES, copy_sources
from dumbbell.results.tables import OPTIONAL, TABLES, check_columns, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from dumbbell.results.tables import Capture

    Tables = Mapping[str, pl.DataFrame]
    Write = Callable[[Experiment, Mapping[str, Any], Tables, Mapping[int, Capture]], None]

_FILES: Final = ("experiment.toml", "meta.json", *(f"{table}.parquet" for table in TABLES))

_OPTIONAL: Final = re.compile(
    rf"({'|'.join(OPTIONAL)})\.parquet|packets-\d+-(sender|receiver)\.pcapng|"
    rf"qlog-\d+-[^/]+\.sqlog|{SOURCES}"
)
"""Files of multipath flows, of many transfers, of media, of flows that are logged, and the folder
with algorithms of the user."""

_ADDED: Final = re.compile(
    r"report\.html|(figure|both|windows|throughputs|states|round-trips|queues|internals|"
    r"internal-[^/]+|frame-delays|video|completion-times|links)\.(svg|png|pdf)"
)
"""Written into the folder by `dumbbell plot`, `dumbbell report` and `run --backend both`."""


def identity(experiment: Experiment, meta: Mapping[str, Any]) -> str:
    """A hash of what determines the result of a resolved experiment, except for its seeds.

    With real packets that is also the health of the machine (``testbed``), which no other
    measurement has to the last digit.
    """
    parts = [meta.get(key) for key in ("backend", "engine", "testbed")]
    toml = experiment.replace(seeds=1).to_toml(defaults=True)
    return hashlib.sha256(json.dumps([toml, *parts]).encode()).hexdigest()[:16]


def machine() -> dict[str, Any]:
    """The machine, as ``meta.json`` describes it."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


@contextmanager
def reserve(
    folder: str | Path,
    expected: str | None = None,
    seeds: list[int] | None = None,
    *,
    overwrite: bool = False,
) -> Iterator[Write]:
    """Reserves a folder for a result that is yet to be made, and gives what writes it.

    Args are those of `check`; a link is followed.
    """
    path = Path(folder)
    check(path, expected, seeds, overwrite=overwrite)
    target = Path(os.path.realpath(path))
    parents = [parent for parent in target.parents if not parent.exists()]
    try:
        with ExitStack() as held:
            with writing(path):
                make_folder(target.parent)
                problem = "another process is making a result for this folder; wait for it, or name"
                file = target.with_name(f".{target.name}.lock")
                held.enter_context(locked(file, f"{path}: {problem} another one"))
            yield partial(_write, path, overwrite)
    finally:
        with suppress(OSError):  # one of them holds the result
            for parent in parents:
                parent.rmdir()


def _write(
    folder: Path,
    overwrite: bool,
    experiment: Experiment,
    meta: Mapping[str, Any],
    tables: Tables,
    captures: Mapping[int, Capture],
) -> None:
    """Writes what a result has into the folder, completely or not at all."""
    seeds = tables["flows"]["seed"].unique(maintain_order=True).to_list()
    name = identity(experiment, meta)
    text = json.dumps({**meta, "seeds": seeds, "hash": name}, indent=2, ensure_ascii=False)
    is_same = check(folder, name, seeds, overwrite=overwrite)
    target = Path(os.path.realpath(folder))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
    names = [name for names in experiment.flow_names() for name in names]
    with writing(folder), ExitStack() as cleanup:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        cleanup.callback(shutil.rmtree, temporary, ignore_errors=True)
        toml = experiment.to_toml(defaults=True)
        (temporary / "experiment.toml").write_text(toml, encoding="utf-8")
        (temporary / "meta.json").write_text(f"{text}\n", encoding="utf-8")
        if is_same and (target / SOURCES).is_dir():
            shutil.copytree(target / SOURCES, temporary / SOURCES)
        copy_sources(experiment.sources, temporary)
        for table, frame in tables.items():
            frame.write_parquet(temporary / f"{table}.parquet")
        for seed, capture in captures.items():
            capture.write(temporary / f"packets-{seed}-sender.pcapng", "sender")
            capture.write(temporary / f"packets-{seed}-receiver.pcapng", "receiver")
            for flow in capture.logs:
                log = f"qlog-{seed}-{file_name(names[flow])}.sqlog"
                capture.write_log(temporary / log, flow)
        for file in target.iterdir() if is_same else ():
            if file.is_file() and _ADDED.fullmatch(file.name):
                shutil.copy2(file, temporary)
        give_to_user(temporary)
        _replace(temporary, target)


def check(
    folder: Path, expected: str | None, seeds: list[int] | None, *, overwrite: bool = False
) -> bool:
    """Checks that a folder may be written; returns whether the same result is there.

    That is one of the `expected` `identity` (None for a measurement, which is always new) and the
    same `seeds` (None if not yet known). With `overwrite` another result may be there.
    """
    if not folder.exists() or not _files(folder):
        return False
    try:
        meta = read_meta(folder)
    except (OSError, ResultError):
        meta = {}
    there: list[int] = meta.get("seeds", [])
    is_same = expected is not None and meta.get("hash") == expected
    if is_same and (seeds is None or set(there) <= set(seeds)):
        return there == seeds
    if not overwrite:
        raise OverwriteError(f"{folder}: holds {_description(meta, is_same)}, which would be lost")
    return False


def _description(meta: Mapping[str, Any], is_same: bool) -> str:
    seeds = meta.get("seeds", [])
    runs = f"{len(seeds)} run{'' if len(seeds) == 1 else 's'}"
    if meta.get("backend") == "linux":
        return f"a measurement with real packets (Linux {meta.get('kernel')}, {runs})"
    if meta.get("backend") == "sockets":
        return "the measurement of a real transfer"
    if is_same:
        return f"this experiment with other seeds ({', '.join(map(str, seeds[:10]))})"
    return f"another result ({runs} of another experiment, or of another version of the simulator)"


def _files(folder: Path) -> list[str]:
    """What a folder holds; raises `ResultError` if that is not a result, or if it is in use."""
    with suppress(FileNotFoundError):  # the current folder was removed
        if Path.cwd().is_relative_to(folder.resolve()):
            problem = "is replaced as a whole, which the folder that you are in cannot be"
            raise ResultError(f"{folder}: {problem}; name another folder")
    if not folder.is_dir():
        raise ResultError(f"{folder}: is a file; name a folder that is new, or holds a result")
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise ResultError(f"{folder}: cannot be read: {error.strerror}") from None
    for name in names:
        if name not in _FILES and not _OPTIONAL.fullmatch(name) and not _ADDED.fullmatch(name):
            problem = f'holds "{name}", which is no part of a result, and is left alone'
            raise ResultError(f"{folder}: {problem}; name a folder that is new, or holds a result")
    return names


def of_several(folder: Path) -> str:
    """Which results lie in a folder, such as one of `dumbbell compare`; empty if none does."""
    there = sorted(str(file.parent) for file in folder.glob("*/meta.json"))
    return f"it holds those of {', '.join(there)}; name one of them" if there else ""


def load(folder: str | Path) -> tuple[Experiment, dict[str, Any], dict[str, Any]]:
    """Reads the experiment, ``meta.json`` and the tables of a result folder."""
    path = Path(folder)
    if missing := [name for name in sorted(_FILES) if not (path / name).is_file()]:
        problem = "it is a file" if path.is_file() else "there is no such folder"
        if path.is_dir():
            problem = of_several(path) or f"it lacks {', '.join(missing)}"
        elif path.is_file() and path.suffix == ".toml":
            again = f"dumbbell run {shlex.quote(str(path))}"
            problem = f"it is an experiment file; make the folder with: {again}"
        raise ResultError(f"{path}: is not a result folder: {problem}")
    experiment = Experiment.load(path / "experiment.toml")
    meta = read_meta(path)
    known = [*TABLES, *(t for t in OPTIONAL if (path / f"{t}.parquet").exists())]
    tables = {table: read_table(path / f"{table}.parquet") for table in known}
    for table, frame in tables.items():
        check_columns(path / f"{table}.parquet", table, frame)
    return experiment, meta, tables


def read_meta(folder: Path) -> dict[str, Any]:
    """Reads ``meta.json`` of a result folder."""
    file, again = folder / "meta.json", "run the experiment again"
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{file}: is not JSON: {error}; {again}") from error
    if not isinstance(meta, dict):
        raise ResultError(f"{file}: is not a JSON object; {again}")
    return meta


def file_name(name: str) -> str:
    """The name of a flow or a link as part of a file's name, whatever is in it."""
    return name.replace("%", "%25").replace("/", "%2F")


def _replace(temporary: Path, target: Path) -> None:
    """Renames `temporary` to `target`; what was there stays until the new folder is complete."""
    old = temporary.with_suffix(".old")
    with ExitStack() as undo:
        if target.exists():
            target.rename(old)
            undo.callback(old.rename, target)
        temporary.rename(target)
        undo.pop_all()
    shutil.rmtree(old, ignore_errors=True)
