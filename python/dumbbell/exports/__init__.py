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

import shutil
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.errors import ResultError
from dumbbell.exports import mahimahi, qlog
from dumbbell.files import write_text
from dumbbell.results import Result
from dumbbell.stacks import unknown
from dumbbell.sweeps.dataset import is_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        instead = f"`dumbbell query 'from runs' {folder} --csv` gives its rows"
        raise ResultError(f"{folder}: is a sweep, whose runs are kept as rows of tables; {instead}")
    result = Result.load(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        return FORMATS[kind](result, folder, out)
    except OSError as error:
        raise ResultError(f"{out}: cannot be written: {error.strerror or error}") from error


def _csv(result: Result, _folder: Path, out: Path) -> list[Path]:
    paths = []
    for name in result.tables:
        path = out / f"{name}.csv"
        getattr(result, name).write_csv(path)
        paths.append(path)
    return paths


def _arrow(result: Result, _folder: Path, out: Path) -> list[Path]:
    paths = []
    for name in result.tables:
        path = out / f"{name}.arrow"
        getattr(result, name).write_ipc(path, compat_level=pl.CompatLevel.oldest())
        paths.append(path)
    return paths


def _qlog(result: Result, folder: Path, out: Path) -> list[Path]:
    paths = []
    for seed in result.seeds:
        path = out / f"seed-{seed}.qlog"
        write_text(path, qlog.text(result, seed, folder / f"packets-{seed}-sender.pcapng"))
        paths.append(path)
    return paths


def _pcapng(_result: Result, folder: Path, out: Path) -> list[Path]:
    captures = sorted(folder.glob("packets-*.pcapng"))
    if not captures:
        advice = f"run it again: dumbbell run {folder / 'experiment.toml'} --set 'flow.*.log=true'"
        raise ResultError(f"{folder}: none of its flows is logged; {advice}")
    return [shutil.copyfile(path, out / path.name) for path in captures]


def _mahimahi(result: Result, folder: Path, out: Path) -> list[Path]:
    paths = []
    for link in result.experiment.links:
        if link.rate is None and link.rates is None and link.trace is None:
            continue
        path = out / f"{link.name}.trace"
        write_text(path, mahimahi.text(link, result.experiment.duration))
        paths.append(path)
    if not paths:
        raise ResultError(f"{folder}: none of its links has a rate, and a trace is one")
    return paths


FORMATS: Final[dict[str, Callable[[Result, Path, Path], list[Path]]]] = {
    "csv": _csv,
    "arrow": _arrow,
    "qlog": _qlog,
    "pcapng": _pcapng,
    "mahimahi": _mahimahi,
}
"""The formats, and what writes them."""
