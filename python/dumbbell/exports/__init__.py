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
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import _core
from dumbbell.errors import ResultError, unknown
from dumbbell.experiment.files import atomic_write, make_folder, writing
from dumbbell.metrics import summary
from dumbbell.results.result import Result
from dumbbell.results.storage import file_name
from dumbbell.sweeps.dataset import is_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    Files = dict[str, Callable[[Path], object]]
    """By their names, what writes them."""

__all__ = ["FORMATS", "beside", "export"]


def beside(folder: Path, ending: str) -> Path:
    """A folder beside another one, such as the current one: its name and an ending."""
    place = folder.resolve()
    parent = place.parent if folder.name in ("", "..") else folder.parent
    return parent / f"{place.name}-{ending}"


def export(folder: Path, kind: str, out: Path) -> list[Path]:
    """Writes the files of one of `FORMATS`, which replace those of such names; returns them."""
    if kind not in FORMATS:
        raise ResultError(unknown("format", kind, list(FORMATS)))
    if is_dataset(folder):
        instead = f"`dumbbell query 'from runs' {shlex.quote(str(folder))} --csv` gives its rows"
        raise ResultError(f"{folder}: is a sweep, whose runs are kept as rows of tables; {instead}")
    files = FORMATS[kind](Result.load(folder), folder)
    with writing(out):
        make_folder(out)
        for name, write in files.items():
            with atomic_write(out / name) as file:
                write(file)
    return [out / name for name in files]


def _tables(result: Result) -> dict[str, pl.DataFrame]:
    """The tables of a result, flows with their metrics, as SQL has them."""
    return result.tables | {"flows": summary(result)}


def _csv(result: Result, _folder: Path) -> Files:
    return {f"{name}.csv": table.write_csv for name, table in _tables(result).items()}


def _arrow(result: Result, _folder: Path) -> Files:
    oldest = pl.CompatLevel.oldest()
    return {
        f"{name}.arrow": partial(table.write_ipc, compat_level=oldest)
        for name, table in _tables(result).items()
    }


def _qlog(result: Result, folder: Path) -> Files:
    def write(seed: int, path: Path) -> None:
        capture = folder / f"packets-{seed}-sender.pcapng"
        try:
            text = _qlog_text(result, seed, capture.read_bytes() if capture.is_file() else None)
        except ValueError as error:
            raise ResultError(f"{capture}: {error}") from None
        path.write_text(text, encoding="utf-8")

    return {f"seed-{seed}.qlog": partial(write, seed) for seed in result.seeds}


def _qlog_text(result: Result, seed: int, capture: bytes | None) -> str:
    """One seed of a result as qlog, with the packets that its senders saw."""
    run, experiment = result.of_seed(seed), result.experiment
    repeated = zip(experiment.flows, experiment.payloads(), strict=True)
    sent = [(flow.transport.upper(), mss) for flow, mss in repeated for _ in range(flow.repeat)]
    transports = pl.DataFrame(sent, schema=["transport", "payload"], orient="row")
    flows = run.flows.select("flow", "cc").hstack(transports).rows()
    measured = pl.col("t", "cwnd", "ssthresh", "srtt", "rtt", "min_rtt", "pacing_rate")
    samples = run.series.select(
        pl.col("flow").to_physical(), measured.fill_null(float("nan")), "in_flight", "ca_state"
    ).rows()
    description = f"dumbbell {result.meta['version']}, seed {seed}"
    return _core.qlog(experiment.title or "dumbbell", description, flows, samples, capture)


def _pcapng(_result: Result, folder: Path) -> Files:
    captures = sorted(folder.glob("packets-*.pcapng"))
    if not captures:
        logged = beside(folder, "logged")
        file, out = (shlex.quote(str(path)) for path in (folder / "experiment.toml", logged))
        again = f"dumbbell run {file} --set 'flow.*.log=true' --out {out}"
        advice = f"run it again: {again}"
        raise ResultError(f"{folder}: none of its flows is logged; {advice}")
    return {path.name: partial(shutil.copyfile, path) for path in captures}


def _mahimahi(result: Result, folder: Path) -> Files:
    traces = result.experiment.mahimahi_traces()
    if not traces:
        raise ResultError(f"{folder}: none of its links has a rate, and a trace is one")
    return {
        f"{file_name(link)}.trace": partial(Path.write_text, data=text, encoding="ascii")
        for link, text in traces.items()
    }


FORMATS: Final[dict[str, Callable[[Result, Path], Files]]] = {
    "csv": _csv,
    "arrow": _arrow,
    "qlog": _qlog,
    "pcapng": _pcapng,
    "mahimahi": _mahimahi,
}
"""The formats, and the files of a result in each."""
