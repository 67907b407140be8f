"""A chunk of runs, simulated and judged: what a thread, or a worker elsewhere, does of a sweep."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core, metrics
from dumbbell.engine import kernel, simulation
from dumbbell.engine.cluster import check_build, check_sources
from dumbbell.errors import DumbbellError
from dumbbell.experiment.capacity import capacity
from dumbbell.metrics.media import counted_frames, delays_of, frames_of, over_frames
from dumbbell.metrics.transfers import over_transfers, summary_of, times_of
from dumbbell.metrics.video import video_of
from dumbbell.results.tables import (
    FRAMES,
    SEGMENTS,
    TRANSFERS,
    FinishedRun,
    FlowInfo,
    Participants,
    RunOutput,
    tables,
)
from dumbbell.sweeps.plan import EFFORT, Run, build

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tables = dict[str, pl.DataFrame]

SUMMARIES: Final = ("runs", "flows", "links")  # the tables that are kept of every run
FAILED_POINT: Final = "failed_point"
"""An attribute of exceptions of simulations: the point in which they were raised."""
RUNNING_POINT: Final = "running_point"
"""An attribute of other exceptions that end a sweep: a point that had begun and not ended."""
SERIES: Final = ("series", "link_series")  # those that are kept too if time series are asked for


@dataclass
class ChunkMonitor:
    """Shows another thread how far a chunk is."""

    work: float = 0.0  # the cost of all of its runs
    # The monitor of every run of the chunk; stopping it stops the chunk.
    run: _core.RunMonitor | kernel.RunMonitor = field(default_factory=_core.RunMonitor)
    over: float = 0.0  # the cost of the runs that are over
    cost: float = 0.0  # the cost of the current one
    point: int | None = None  # the point of the current one, once the chunk has begun
    invalid: list[str] = field(default_factory=list)  # why runs with real packets are left out

    @property
    def done(self) -> float:
        """The cost of what is done."""
        return self.over + self.run.done * self.cost


@dataclass(frozen=True)
class _Chunk:
    """Unlike runs in common tables, numbered where a result has seeds; see `metrics.Runs`."""

    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    scenarios: list[dict[str, Any]]
    transfers: pl.DataFrame = field(default_factory=pl.DataFrame)
    frames: pl.DataFrame = field(default_factory=pl.DataFrame)
    segments: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def of_transfers(self) -> pl.DataFrame:
        """The flows that consist of many transfers: columns seed, flow."""
        those = {
            (number, flow["name"])
            for number, scenario in enumerate(self.scenarios)
            for flow in scenario["flows"]
            if "transfers" in flow or "requests" in flow.get("app", {})
        }
        every = self.flows.select("seed", "flow")
        return every.filter([row in those for row in every.iter_rows()])

    @property
    def warmups(self) -> pl.DataFrame:
        ends = [_warmup(scenario) for scenario in self.scenarios]
        seeds = pl.Series(range(len(ends)), dtype=pl.UInt64)
        return pl.DataFrame({"seed": seeds, "since": ends})

    def capacities(self, spans: pl.DataFrame) -> list[float | None]:
        keys = ("rate_bps", "rates", "trace_ms", "bucket_bytes")
        limits = {
            (number, link["name"]): [link[key] for key in keys]
            for number, scenario in enumerate(self.scenarios)
            for link in scenario["links"]
        }
        rows = spans.select("seed", "link", "begin", "end").iter_rows()
        return [capacity(*limits[number, link], *span) for number, link, *span in rows]

    def with_paths(self) -> pl.DataFrame:
        """The flows with the columns `PATH`."""
        spans = [
            (number, link["name"], 0.0, scenario["duration_ns"] / 1e9)
            for number, scenario in enumerate(self.scenarios)
            for link in scenario["links"]
        ]
        rows = pl.DataFrame(spans, schema=["seed", "link", "begin", "end"], orient="row")
        bits = {span[:2]: limit for span, limit in zip(spans, self.capacities(rows), strict=True)}
        rates: dict[tuple[int, str], float | None] = {}
        trips: dict[tuple[int, str], float] = {}
        for number, scenario in enumerate(self.scenarios):
            duration = scenario["duration_ns"] / 1e9
            for flow in scenario["flows"]:
                crossed = [bits[number, link] for link in flow["path"]]
                limits = [amount / duration for amount in crossed if amount is not None]
                rates[number, flow["name"]] = min(limits, default=None)
                trips[number, flow["name"]] = 1.0 if flow.get("app") else 2.0
        flows = self.flows.select("seed", pl.col("flow").cast(pl.String)).iter_rows()
        named = list(flows)
        ends = [scenario["duration_ns"] / 1e9 for scenario in self.scenarios]
        return self.flows.with_columns(
            rate=pl.Series([rates[key] for key in named], dtype=pl.Float64),
            round_trips=pl.Series([trips[key] for key in named], dtype=pl.Float64),
            run_end=pl.Series([ends[number] for number, _ in named], dtype=pl.Float64),
        )


def simulate(
    runs: Sequence[Run], built: str, series: bool, monitor: ChunkMonitor | None = None
) -> Tables:
    """Simulates some runs; returns what is kept of them, each table with a column ``run`` first.

    The runs are named after the `build` that is `built`; one of another build is an error. If
    `monitor` stops the chunk, that is an `InterruptedError`; a worker of a cluster has none.
    """
    check_build(built, build())
    is_worker = monitor is None
    monitor = monitor or ChunkMonitor()
    assert not isinstance(monitor.run, kernel.RunMonitor), "it is a simulation's"
    outputs, scenarios = [], []
    for run in runs:
        scenario = run.point.scenario_of(run.seed)
        algorithms = [flow["cc"] for flow in scenario["flows"]]
        sources = scenario.get("sources", {})
        if is_worker:
            check_sources(sources)
        monitor.cost, monitor.point = run.point.cost, run.point.number
        try:
            output = simulation.simulate(json.dumps(scenario), algorithms, sources, monitor.run)
        except _core.ScenarioError as error:
            raise DumbbellError(f"{error} (run {run.name}, seed {run.seed})") from None
        except Exception as error:
            setattr(error, FAILED_POINT, run.point.number)
            raise
        monitor.over, monitor.cost = monitor.over + monitor.cost, 0.0
        outputs.append(output)
        scenarios.append(scenario)
    return judged(runs, outputs, scenarios, series)


def judged(
    runs: Sequence[Run],
    outputs: Sequence[_core.RunOutput | RunOutput],
    scenarios: list[dict[str, Any]],
    series: bool,
) -> Tables:
    """What is kept of runs, by their outputs and scenarios: as `simulate`."""
    finished = [
        FinishedRun(number, _participants(scenario), output)
        for number, (scenario, output) in enumerate(zip(scenarios, outputs, strict=True))
    ]
    made = tables(finished, only=("flows", "series", "links", TRANSFERS, FRAMES, SEGMENTS))
    chunk = _Chunk(**made, scenarios=scenarios)
    flows, links = metrics.summary(chunk), metrics.link_summary(chunk)
    effort = {name: [output.meta[name] for output in outputs] for name in EFFORT}
    summary = metrics.run_summary(chunk, flows, links).hstack(pl.DataFrame(effort))
    kept = {"runs": summary, "flows": flows, "links": links}
    if chunk.transfers.width:
        kept |= _with_transfers(chunk, kept["runs"], kept["flows"])
    if chunk.frames.width:
        kept |= with_frames(chunk.frames, chunk.flows, kept["runs"], kept["flows"])
    if chunk.segments.width:
        of_flows = video_of(chunk.segments, chunk.flows).drop("cc")
        keys = ["seed", "flow"]
        kept["flows"] = kept["flows"].join(of_flows, on=keys, how="left", maintain_order="left")
    kept |= {"series": chunk.series, "link_series": chunk.links} if series else {}
    names = pl.Series("run", [run.name for run in runs])
    return {name: _with_names(table, names) for name, table in kept.items()}


def _with_transfers(chunk: _Chunk, runs: pl.DataFrame, flows: pl.DataFrame) -> Tables:
    """The tables of runs and flows with the metrics of their transfers, null without any."""
    rated = chunk.with_paths()
    times = times_of(chunk.transfers, rated)
    of_runs = times.group_by("seed").agg(over_transfers())
    of_flows = summary_of(times, rated).drop("cc")
    return {
        "runs": runs.join(of_runs, on="seed", how="left", maintain_order="left"),
        "flows": flows.join(of_flows, on=["seed", "flow"], how="left", maintain_order="left"),
    }


def with_frames(
    frames: pl.DataFrame, of: pl.DataFrame, runs: pl.DataFrame, flows: pl.DataFrame
) -> Tables:
    """The tables of runs and flows with the metrics of their media, null without any.

    Args:
        frames: The frames, as a result has them.
        of: The flows, as a result has them.
        runs: The metrics of the runs.
        flows: The metrics of the flows.
    """
    delays = delays_of(frames)
    known = counted_frames(delays, of)
    of_runs = known.group_by("seed").agg(over_frames())
    of_flows = frames_of(delays, of).drop("cc")
    return {
        "runs": runs.join(of_runs, on="seed", how="left", maintain_order="left"),
        "flows": flows.join(of_flows, on=["seed", "flow"], how="left", maintain_order="left"),
    }


def _with_names(table: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """The table with the names of its runs in the place of their numbers."""
    labels = [column for column in ("flow", "cc", "link") if column in table.columns]
    run = names.gather(table["seed"])
    return table.select(run, pl.all().exclude("seed")).with_columns(pl.col(labels).cast(pl.String))


def _participants(scenario: dict[str, Any]) -> Participants:
    flows = []
    for flow in scenario["flows"]:
        stop = flow["stop_ns"] / 1e9 if "stop_ns" in flow else float("inf")
        flows.append(FlowInfo(flow["name"], flow["cc"], stop))
    links = [link["name"] for link in scenario["links"]]
    return Participants(scenario["duration_ns"] / 1e9, _warmup(scenario), flows, links)


def _warmup(scenario: dict[str, Any]) -> float:
    """When the warm-up of a scenario ends, s; 0 without one."""
    return float(scenario.get("warmup_ns", 0) / 1e9)
