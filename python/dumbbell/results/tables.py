"""From the simulator's columns to tables with names: of one run, or of many unlike ones."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import polars as pl

from dumbbell.errors import ResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from dumbbell import _core

TABLES: Final = ("flows", "series", "links", "internals")
"""The tables of a result."""

COLUMNS: Final = {
    "flows": (
        *("seed", "flow", "cc", "start", "end", "completed", "sent", "retransmitted", "lost"),
        *("delivered", "received", "timeouts", "recoveries", "spurious", "base_rtt"),
        *("queue_delay_mean", "queue_delay_p50", "queue_delay_p95", "queue_delay_p99", "rtt_mean"),
    ),
    "series": (
        *("seed", "flow", "cc", "t", "cwnd", "ssthresh", "srtt", "rtt", "min_rtt", "pacing_rate"),
        *("delivery_rate", "in_flight", "sent", "retransmitted", "lost", "delivered", "received"),
        "ca_state",
    ),
    "links": (
        *("seed", "link", "t", "queue_packets", "queue_bytes", "sent_bytes"),
        *("dropped", "lost", "marked"),
    ),
    "internals": ("seed", "flow", "cc", "t", "name", "value"),
}
"""The columns of each table of a result."""

SUBFLOW_TABLES: Final = {
    "flows": "subflows",
    "series": "subflow_series",
    "internals": "subflow_internals",
}
"""Those that a result with multipath flows has of their subflows too."""


def read_table(file: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Reads a table, or some columns of it. What its path has in brackets is no pattern.

    Raises:
        ResultError: If the file is not whole.
    """
    try:
        return pl.read_parquet(file, columns=columns, glob=False)
    except pl.exceptions.ComputeError as error:
        raise ResultError(f"{file}: cannot be read, a part of it is missing: {error}") from error


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turns what Polars raises on a full disk into the `OSError` that everything else raises."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code)) from error


def columns_of(file: Path) -> list[str]:
    """The names of a table's columns."""
    return pl.scan_parquet(file, glob=False).collect_schema().names()


@dataclass(frozen=True)
class FlowInfo:
    """A flow, or a subflow: its name, its algorithm, and when it stops, s (infinity: never)."""

    name: str
    cc: str
    stop: float


@dataclass(frozen=True, eq=False)
class Participants:
    """The flows and links of a run, in the order in which the simulator numbers them.

    Attributes:
        duration: How long the run lasts, s.
        flows: Its flows.
        links: The names of its links.
        subflows: The subflows of its multipath flows.
    """

    duration: float
    flows: list[FlowInfo]
    links: list[str]
    subflows: list[FlowInfo] = field(default_factory=list)


class RunOutput(Protocol):
    """What an engine returns of a run, with the tables of `TABLES` (numbers in place of names)."""

    @property
    def capture(self) -> _core.Capture | None:
        """Its packets, if flows are logged."""

    @property
    def meta(self) -> _core.Meta:
        """How much was simulated."""


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over: the seed of its rows, its flows and links, and its output."""

    seed: int
    participants: Participants
    output: RunOutput


def tables(runs: Sequence[FinishedRun], only: Collection[str] = TABLES) -> dict[str, pl.DataFrame]:
    """The tables of some runs, one below the other in their order.

    Args:
        runs: The runs; those that share a `Participants` cost less.
        only: Which of `TABLES`.
    """
    flows = _Names(runs, lambda those: those.flows)
    links = _Names(runs, lambda those: [FlowInfo(name, "", np.inf) for name in those.links])
    made = {
        table: _named(runs, table, links if table == "links" else flows)
        for table in TABLES
        if table in only
    }
    if any(run.participants.subflows for run in runs):
        parts = _Names(runs, lambda those: those.subflows, algorithms=flows.algorithms)
        for table, of_subflows in SUBFLOW_TABLES.items():
            if table in made:
                made[of_subflows] = _named(runs, of_subflows, parts)
    return made


class _Names:
    """The flows, subflows or links of all runs, in which each `Participants` has an offset."""

    def __init__(
        self,
        runs: Sequence[FinishedRun],
        of: Callable[[Participants], list[FlowInfo]],
        algorithms: list[str] | None = None,
    ) -> None:
        self.offsets: dict[int, int] = {}
        flows: list[FlowInfo] = []
        stops: list[float] = []
        for those in (run.participants for run in runs):
            if id(those) not in self.offsets:
                self.offsets[id(those)] = len(flows)
                flows += of(those)
                stops += [min(flow.stop, those.duration) for flow in of(those)]
        names, used = [flow.name for flow in flows], [flow.cc for flow in flows]
        self.algorithms = algorithms or list(dict.fromkeys(used))
        self.names = pl.Series(names, dtype=pl.Enum(list(dict.fromkeys(names))))
        self.used = pl.Series(used, dtype=pl.Enum(self.algorithms))
        self.stops = pl.Series(stops, dtype=pl.Float64)


def _named(runs: Sequence[FinishedRun], table: str, names: _Names) -> pl.DataFrame:
    """A table with seeds, and with names in the place of numbers.

    A flow ends when it has sent all, or is stopped, or the experiment is over.
    """
    frames = []
    for run in runs:
        index, *rest = map(_without_nan, pl.DataFrame(getattr(run.output, table)).get_columns())
        offset = names.offsets[id(run.participants)]
        index = index + offset if offset else index
        seed = pl.Series("seed", np.full(len(index), run.seed, dtype=np.uint64))
        name = names.names.gather(index)
        if table == "links":
            frames.append(pl.DataFrame([seed, name.alias("link"), *rest]))
            continue
        frame = pl.DataFrame(
            [seed, name.alias("flow"), names.used.gather(index).alias("cc"), *rest]
        )
        if table in ("flows", "subflows"):
            end: Any = pl.min_horizontal(pl.col("completed"), names.stops.gather(index))
            first = ["seed", "flow", "cc", "start", "end"]
            frame = frame.with_columns(end=end).select(*first, pl.all().exclude(first))
        frames.append(frame)
    return pl.concat(frames, rechunk=False)


def _without_nan(column: pl.Series) -> pl.Series:
    """The column with null where the engine has NaN, as before the first round-trip sample."""
    return column.fill_nan(None) if column.dtype.is_float() and column.is_nan().any() else column
