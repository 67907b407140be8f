"""From the simulator's columns to tables with names: of one run, or of many unlike ones."""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
import polars as pl
import polars.selectors as cs

from dumbbell.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from os import PathLike

    from dumbbell import _core

TABLES: Final = ("flows", "series", "links", "internals")  # the tables of a result

SUBFLOW_TABLES: Final = {
    "flows": "subflows",
    "series": "subflow_series",
    "internals": "subflow_internals",
}
"""Those that a result with multipath flows has of their subflows too."""

TRANSFERS: Final = "transfers"
"""The table that a result with flows of many transfers has of these."""

FRAMES: Final = "frames"
"""The table that a result with flows of media has of their frames."""

SEGMENTS: Final = "segments"
"""The table that a result with video clients has of the segments of video."""


def _columns() -> dict[str, dict[str, dict[str, str]]]:
    said = tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8"))
    every = said.pop("every")
    for table, columns in said.items():
        first = ("seed", "link") if table == "links" else ("seed", "flow", "cc")
        said[table] = {name: every[name] for name in first} | columns
    return said | {split: said[table] for table, split in SUBFLOW_TABLES.items()}


COLUMNS: Final = _columns()
"""The columns of each table that a result may have, with ``unit`` and ``meaning``.

Names are those of `_NAMES`, numbers all others.
"""

_NAMES: Final = ("flow", "cc", "link", "name")

OPTIONAL: Final = (*SUBFLOW_TABLES.values(), TRANSFERS, FRAMES, SEGMENTS)
"""The tables that not every result has."""

_ALL: Final = (*TABLES, *OPTIONAL)


def explanation(column: str) -> str | None:
    """What a column is, a line for each of its meanings; None if no table has it."""
    tables: dict[str, list[str]] = {}
    for table, columns in COLUMNS.items():
        if said := columns.get(column):
            unit = f" Unit: {said['unit']}." if said["unit"] else ""
            tables.setdefault(f"{column}: {said['meaning']}.{unit}", []).append(table)
    lines = [f"{said} Tables: {', '.join(names)}." for said, names in tables.items()]
    return "\n".join(lines).replace("`", "") or None


def read_table(file: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Reads a table, or some columns of it. What its path has in brackets is no pattern."""
    with _reading(file):
        return pl.read_parquet(file, columns=columns, glob=False)


def columns_of(file: Path) -> list[str]:
    """The names of the columns of a table."""
    with _reading(file):
        return pl.scan_parquet(file, glob=False).collect_schema().names()


def notes_of(file: Path) -> dict[str, str]:
    """What was noted in a table's file beside its rows."""
    with _reading(file):
        return pl.read_parquet_metadata(file)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise ResultError(f"{file}: cannot be read, a part of it is missing: {error}") from error


def check_columns(file: Path, table: str, frame: pl.DataFrame) -> None:
    """Checks the columns that `COLUMNS` has of the table that a file of a result holds."""
    again = "run the experiment again"
    for name in COLUMNS[table]:
        if name not in frame.columns:
            problem = f"lacks the column {name}, as results of other versions do"
            raise ResultError(f"{file}: {problem}; {again}")
        column = frame[name]
        is_right, valid = column.dtype.is_numeric(), "numbers"
        if name in _NAMES:
            is_named = column.dtype in (pl.Enum, pl.Categorical) and not column.null_count()
            is_right, valid = is_named, "a name (of the type Enum or Categorical) in every row"
        if not is_right:
            problem = f"has the column {name} as {column.dtype}, which is to be {valid}"
            raise ResultError(f"{file}: {problem}; {again}")


@dataclass(frozen=True)
class FlowInfo:
    """A flow, or a subflow: its name, its algorithm, and when it stops, s (infinity: never)."""

    name: str
    cc: str
    stop: float


@dataclass(frozen=True, eq=False)
class Participants:
    """The flows and links of a run, in the order in which the simulator numbers them."""

    duration: float  # how long the run lasts, s
    warmup: float  # what happens before this time does not count, s
    flows: list[FlowInfo]
    links: list[str]  # the names of its links
    subflows: list[FlowInfo] = field(default_factory=list)  # the subflows of its multipath flows


class Capture(Protocol):
    """The packets of the logged flows of a run."""

    def write(self, path: str | PathLike[str], side: Literal["sender", "receiver"]) -> None:
        """Writes the packets as the hosts of one side saw them, as pcapng."""

    @property
    def logs(self) -> Sequence[int]:
        """The numbers of the flows whose senders wrote a log of their own, such as qlog."""

    def write_log(self, path: str | PathLike[str], flow: int) -> None:
        """Writes the log of one of them."""


@dataclass(frozen=True, eq=False)
class RunOutput:
    """What a run gives: its tables, with numbers in the place of names."""

    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    internals: pl.DataFrame
    subflows: pl.DataFrame
    subflow_series: pl.DataFrame
    subflow_internals: pl.DataFrame
    meta: _core.Meta  # how much was simulated
    transfers: pl.DataFrame = field(default_factory=pl.DataFrame)
    frames: pl.DataFrame = field(default_factory=pl.DataFrame)
    segments: pl.DataFrame = field(default_factory=pl.DataFrame)
    # How well the machine did with real packets. Lateness of packets: ``late_mean_s``,
    # ``late_p99_s``, ``late_max_s``, and when the latest was due, ``late_max_at_s``. ``stalls_s``:
    # when a processor went on after each stop, and how long it had stopped. Packets that devices
    # dropped. The share of the processors that was stolen. Whether they were kept from sleeping:
    # ``awake``. Whether the kernel had too little memory for TCP: ``short_of_memory``. Empty for a
    # simulation.
    health: dict[str, Any] = field(default_factory=dict)
    # Why the run is invalid; empty if it is valid.
    invalid_reasons: list[str] = field(default_factory=list)
    capture: Capture | None = None  # the packets of the flows that are logged

    @classmethod
    def of(cls, output: _core.RunOutput) -> RunOutput:
        """The output of the simulator, whose memory the data frames share."""
        tables: dict[str, Any] = {name: pl.DataFrame(getattr(output, name)) for name in _ALL}
        return cls(**tables, meta=output.meta, capture=output.capture)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables by their names."""
        return {name: getattr(self, name) for name in _ALL}


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over: the seed of its rows, its flows and links, and its output."""

    seed: int
    participants: Participants
    output: RunOutput | _core.RunOutput


def tables(
    runs: Sequence[FinishedRun], only: Collection[str] = (*TABLES, TRANSFERS, FRAMES, SEGMENTS)
) -> dict[str, pl.DataFrame]:
    """The tables of some runs, one below the other in their order.

    Args:
        runs: The runs; those that share a `Participants` cost less.
        only: Which of `TABLES`, `TRANSFERS`, `FRAMES` and `SEGMENTS`.
    """
    those = {id(run.participants): run.participants for run in runs}.items()
    flows = _Names({key: one.flows for key, one in those})
    subflows = _Names({key: one.subflows for key, one in those}, flows.algorithms)
    links = _Names({key: [FlowInfo(name, "", inf) for name in one.links] for key, one in those})
    made = {
        table: _named(runs, table, links if table == "links" else flows)
        for table in TABLES
        if table in only
    }
    for table, of_subflows in SUBFLOW_TABLES.items():
        if table in only and len(subflows.names):
            made[of_subflows] = _named(runs, of_subflows, subflows)
    for table in (TRANSFERS, FRAMES, SEGMENTS):
        if table in only and any(len(getattr(run.output, table)) for run in runs):
            made[table] = _named(runs, table, flows)
    return made


class _Names:
    """The flows, subflows or links of all runs; those of a `Participants` begin at its offset."""

    def __init__(
        self, groups: Mapping[int, list[FlowInfo]], algorithms: list[str] | None = None
    ) -> None:
        starts = accumulate(map(len, groups.values()), initial=0)
        self.offsets = dict(zip(groups, starts, strict=False))
        every = [flow for group in groups.values() for flow in group]
        names, used = [flow.name for flow in every], [flow.cc for flow in every]
        self.algorithms = algorithms or list(dict.fromkeys(used))
        self.names = pl.Series(names, dtype=pl.Enum(list(dict.fromkeys(names))))
        self.used = pl.Series(used, dtype=pl.Enum(self.algorithms))
        self.stops = pl.Series([flow.stop for flow in every], dtype=pl.Float64)


def _subflows(run: FinishedRun) -> pl.DataFrame:
    """The subflows of a run, each complete when its connection is."""
    flows, subflows = (pl.DataFrame(table) for table in (run.output.flows, run.output.subflows))
    numbers = {flow.name: number for number, flow in enumerate(run.participants.flows)}
    of = [numbers[one.name.rpartition("/")[0]] for one in run.participants.subflows]
    completed = dict(zip(flows.to_series(), flows["completed"], strict=True))
    those = [completed[of[number]] for number in subflows.to_series()]
    return subflows.with_columns(completed=pl.Series(those, dtype=pl.Float64))


def _named(runs: Sequence[FinishedRun], table: str, names: _Names) -> pl.DataFrame:
    """A table with seeds, names in the place of numbers, and null where the engine has NaN.

    NaN is a sample that does not exist, as before the first round-trip sample. What a flow does
    counts from its start or the end of the warm-up on, whichever is later. It ends when all its
    data is acknowledged, or it is stopped, or the experiment is over.
    """
    parts = [
        _subflows(run) if table == "subflows" else pl.DataFrame(getattr(run.output, table))
        for run in runs
    ]
    frame = pl.concat(parts).with_columns(cs.float().fill_nan(None))

    def by_row(values: Sequence[float], dtype: type) -> Any:
        return np.repeat(np.array(values, dtype=dtype), [len(part) for part in parts])

    index, *rest = frame.get_columns()
    index = index + by_row([names.offsets[id(run.participants)] for run in runs], np.int64)
    seed = pl.Series("seed", by_row([run.seed for run in runs], np.uint64))
    name = names.names.gather(index)
    if table == "links":
        return pl.DataFrame([seed, name.alias("link"), *rest])
    cc = names.used.gather(index).alias("cc")
    frame = pl.DataFrame([seed, name.alias("flow"), cc, *rest])
    if table in ("flows", "subflows"):
        stop = names.stops.gather(index)
        over = pl.Series(by_row([run.participants.duration for run in runs], np.float64))
        warm = pl.Series(by_row([run.participants.warmup for run in runs], np.float64))
        first = ["seed", "flow", "cc", "start", "begin", "end"]
        frame = frame.with_columns(end=pl.min_horizontal("completed", stop, over))
        # Nothing of a flow counts that is over before the end of the warm-up.
        warm_end = pl.min_horizontal(warm, "end")
        frame = frame.with_columns(begin=pl.max_horizontal("start", warm_end))
        frame = frame.select(*first, pl.all().exclude(first))
    return frame
