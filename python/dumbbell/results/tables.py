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
    """A run that is over: what its rows are numbered, who took part, and what came out."""

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
        table: _named(runs, table, *((links, ("link",)) if table == "links" else (flows, _FLOW)))
        for table in TABLES
        if table in only
    }
    if "flows" in made:
        made["flows"] = _with_ends(made["flows"], runs, flows)
    if any(run.participants.subflows for run in runs):
        parts = _Names(runs, lambda those: those.subflows, known=flows)
        for whole, table in SUBFLOW_TABLES.items():
            if whole in made:
                made[table] = _named(runs, table, parts, _FLOW)
        if "subflows" in made:
            made["subflows"] = _with_ends(made["subflows"], runs, parts)
    return made


_FLOW: Final = ("flow", "cc")


class _Names:
    """The flows, subflows or links of all runs, in which each `Participants` has an offset."""

    def __init__(
        self,
        runs: Sequence[FinishedRun],
        of: Callable[[Participants], list[FlowInfo]],
        known: _Names | None = None,
    ) -> None:
        self.of = of
        self.flows: list[FlowInfo] = []
        self.offsets: dict[int, int] = {}
        for run in runs:
            if id(run.participants) not in self.offsets:
                self.offsets[id(run.participants)] = len(self.flows)
                self.flows += of(run.participants)
        names = [flow.name for flow in self.flows]
        algorithms = [flow.cc for flow in self.flows]
        self.algorithms: list[str] = known.algorithms if known else list(dict.fromkeys(algorithms))
        self.series = {
            "flow": pl.Series("flow", names, dtype=pl.Enum(list(dict.fromkeys(names)))),
            "cc": pl.Series("cc", algorithms, dtype=pl.Enum(self.algorithms)),
        }
        self.series["link"] = self.series["flow"].alias("link")


def _named(
    runs: Sequence[FinishedRun], table: str, names: _Names, labels: tuple[str, ...]
) -> pl.DataFrame:
    """A table with names in the place of numbers, and with seeds."""
    frames = []
    for run in runs:
        index, *rest = map(_without_nan, pl.DataFrame(getattr(run.output, table)).get_columns())
        offset = names.offsets[id(run.participants)]
        index = index + offset if offset else index
        seed = pl.Series("seed", np.full(len(index), run.seed, dtype=np.uint64))
        frames.append(
            pl.DataFrame([seed, *(names.series[label].gather(index) for label in labels), *rest])
        )
    return pl.concat(frames, rechunk=False)


def _without_nan(column: pl.Series) -> pl.Series:
    """The column with null where the engine has NaN, as before the first round-trip sample."""
    return column.fill_nan(None) if column.dtype.is_float() and column.is_nan().any() else column


def _with_ends(table: pl.DataFrame, runs: Sequence[FinishedRun], names: _Names) -> pl.DataFrame:
    """When every flow ended: when it had sent all, or was stopped, or the experiment was over."""
    last: dict[int, list[float]] = {}
    for run in runs:
        if id(run.participants) not in last:
            flows, duration = names.of(run.participants), run.participants.duration
            last[id(run.participants)] = [min(flow.stop, duration) for flow in flows]
    ends = np.concatenate([last[id(run.participants)] for run in runs])
    end: Any = pl.min_horizontal(pl.col("completed"), pl.Series(ends, dtype=pl.Float64))
    first = ["seed", *_FLOW, "start", "end"]
    return table.with_columns(end=end).select(*first, pl.all().exclude(*first))
