"""Results in the formats of other programs.

| format | files | for |
|---|---|---|
| csv | a file for each table | spreadsheets, R |
| arrow | a file for each table, Arrow IPC | pandas, R, DuckDB |
| qlog | a file for each seed | qvis |
| pcapng | what the ends of logged flows saw | Wireshark, tcptrace |
| mahimahi | a trace for each link | mm-link, Pantheon |
"""

from __future__ import annotations

import shlex
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.errors import ResultError, unknown
from dumbbell.experiment.files import atomic_write
from dumbbell.exports import mahimahi, qlog
from dumbbell.results.result import Result
from dumbbell.results.tables import disk_errors
from dumbbell.sweeps.dataset import is_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dumbbell.experiment.model import Link

    Files = dict[str, Callable[[Path], object]]
    """By their names, what writes them."""

__all__ = ["FORMATS", "export"]


def export(folder: Path, kind: str, out: Path) -> list[Path]:
    """Writes the files of a format into a folder.

    Args:
        folder: A result folder.
        kind: One of `FORMATS`.
        out: Where to write; made if it is not there. Files of these names are replaced.

    Returns:
        The files.

    Raises:
        ResultError: If there is no such format, it is not a result, or it has nothing for it.
    """
    if kind not in FORMATS:
        raise ResultError(f"--format: {unknown('format', kind, list(FORMATS))}")
    if is_dataset(folder):
        instead = f"`dumbbell query 'from runs' {shlex.quote(str(folder))} --csv` gives its rows"
        raise ResultError(f"{folder}: is a sweep, whose runs are kept as rows of tables; {instead}")
    files = FORMATS[kind](Result.load(folder), folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in files.items():
            with atomic_write(out / name) as file, disk_errors():
                write(file)
    except OSError as error:
        raise ResultError(f"{out}: cannot be written: {error.strerror or error}") from error
    return [out / name for name in files]


def _csv(result: Result, _folder: Path) -> Files:
    return {f"{name}.csv": table.write_csv for name, table in result.tables.items()}


def _arrow(result: Result, _folder: Path) -> Files:
    oldest = pl.CompatLevel.oldest()
    return {
        f"{name}.arrow": partial(table.write_ipc, compat_level=oldest)
        for name, table in result.tables.items()
    }


def _qlog(result: Result, folder: Path) -> Files:
    def write(seed: int, path: Path) -> None:
        said = qlog.text(result, seed, folder / f"packets-{seed}-sender.pcapng")
        path.write_text(said, encoding="utf-8")

    return {f"seed-{seed}.qlog": partial(write, seed) for seed in result.seeds}


def _pcapng(_result: Result, folder: Path) -> Files:
    captures = sorted(folder.glob("packets-*.pcapng"))
    if not captures:
        logged = folder.with_name(f"{folder.resolve().name}-logged")
        file, out = (shlex.quote(str(path)) for path in (folder / "experiment.toml", logged))
        again = f"dumbbell run {file} --set 'flow.*.log=true' --out {out}"
        advice = f"run it again: {again}"
        raise ResultError(f"{folder}: none of its flows is logged; {advice}")
    return {path.name: partial(shutil.copyfile, path) for path in captures}


def _mahimahi(result: Result, folder: Path) -> Files:
    def write(link: Link, path: Path) -> None:
        path.write_text(mahimahi.text(link, result.experiment.duration), encoding="ascii")

    links = [link for link in result.experiment.links if link.rate or link.rates or link.trace]
    if not links:
        raise ResultError(f"{folder}: none of its links has a rate, and a trace is one")
    return {f"{_file_name(link.name)}.trace": partial(write, link) for link in links}


def _file_name(name: str) -> str:
    """A name as part of a file's name, whatever is in it."""
    return name.replace("%", "%25").replace("/", "%2F")


FORMATS: Final[dict[str, Callable[[Result, Path], Files]]] = {
    "csv": _csv,
    "arrow": _arrow,
    "qlog": _qlog,
    "pcapng": _pcapng,
    "mahimahi": _mahimahi,
}
"""The formats, and the files of a result in each."""
