"""A chunk of runs, simulated and judged: what a thread, or a worker elsewhere, does of a sweep."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core, metrics
from dumbbell.engine import simulation
from dumbbell.engine.cluster import check_build
from dumbbell.errors import DumbbellError
from dumbbell.experiment.capacity import capacity
from dumbbell.results.tables import FinishedRun, FlowInfo, Participants, tables
from dumbbell.sweeps.plan import EFFORT, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tables = dict[str, pl.DataFrame]

SUMMARIES: Final = ("runs", "flows", "links")
"""The tables that are kept of every run."""

SERIES: Final = ("series", "link_series")
"""Those that are kept too if time series are asked for."""


@dataclass(frozen=True)
class Run:
    """One run: its name, its seed, and its scenario without the seed."""

    name: str
    seed: int
    scenario: str
    cost: float


@dataclass
class ChunkMonitor:
    """Shows another thread how far a chunk is.

    Attributes:
        run: The monitor of every run of the chunk; stopping it stops the chunk.
        over: The cost of the runs that are over.
        cost: The cost of the current one.
    """

    run: _core.RunMonitor = field(default_factory=_core.RunMonitor)
    over: float = 0.0
    cost: float = 0.0

    @property
    def done(self) -> float:
        """The cost of what is done."""
        return self.over + self.run.done * self.cost


def simulate(
    runs: Sequence[Run], built: str, series: bool, monitor: ChunkMonitor | None = None
) -> Tables:
    """Simulates some runs; returns what is kept of them, each table with a column ``run`` first.

    Args:
        runs: The runs.
        built: The `build` that they are named after.
        series: Whether time series are kept.
        monitor: Shows the progress; stops the chunk.

    Raises:
        DumbbellError: If the build here is another one.
        InterruptedError: If it was stopped.
    """
    check_build(built, build())
    finished, facts = [], []
    monitor = monitor or ChunkMonitor()
    for number, run in enumerate(runs):
        plain = json.loads(run.scenario) | {"seed": run.seed}
        try:
            algorithms, sources = (flow["cc"] for flow in plain["flows"]), plain.get("sources", {})
            monitor.cost = run.cost
            outcome = simulation.simulate(json.dumps(plain), algorithms, sources, monitor.run)
        except _core.ScenarioError as error:
            raise DumbbellError(f"{error} (run {run.name}, seed {run.seed})") from None
        monitor.over, monitor.cost = monitor.over + run.cost, 0.0
        finished.append(FinishedRun(number, _participants(plain), outcome))
        facts.append(plain)
    names = pl.Series("run", [run.name for run in runs])
    return {
        table: _with_names(frame, names)
        for table, frame in _judge(finished, facts, series=series).items()
    }


@dataclass(frozen=True)
class _Chunk:
    """Unlike runs in common tables, numbered where a result has seeds; see `metrics.Runs`."""

    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    facts: list[dict[str, dict[str, Any]]]

    def capacities(self, spans: pl.DataFrame) -> list[float | None]:
        found = []
        for seed, link, begin, end in spans.select("seed", "link", "begin", "end").iter_rows():
            said = self.facts[seed][link]
            kind = (said["rate_bps"], said["rates"], said["trace_ms"], said["bucket_bytes"])
            found.append(capacity(*kind, begin, end))
        return found


def _judge(finished: list[FinishedRun], facts: list[dict[str, Any]], *, series: bool) -> Tables:
    made = tables(finished, only=("flows", "series", "links"))
    links = [{link["name"]: link for link in plain["links"]} for plain in facts]
    chunk = _Chunk(made["flows"], made["series"], made["links"], links)
    flows, of_links = metrics.summary(chunk), metrics.link_summary(chunk)
    runs = metrics.run_summary(chunk, flows, of_links).with_columns(
        pl.Series(name, [run.output.meta[name] for run in finished]) for name in EFFORT
    )
    kept = {"runs": runs, "flows": flows, "links": of_links}
    return kept | ({"series": chunk.series, "link_series": chunk.links} if series else {})


def _with_names(table: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """The table with the names of its runs in the place of their numbers."""
    labels = [column for column in ("flow", "cc", "link") if column in table.columns]
    run = names.gather(table["seed"])
    return table.select(run, pl.all().exclude("seed")).with_columns(pl.col(labels).cast(pl.String))


def _participants(plain: dict[str, Any]) -> Participants:
    flows = []
    for flow in plain["flows"]:
        stop = flow["stop_ns"] / 1e9 if flow["stop_ns"] else float("inf")
        flows.append(FlowInfo(flow["name"], flow["cc"], stop))
    links = [link["name"] for link in plain["links"]]
    return Participants(plain["duration_ns"] / 1e9, flows, links)
