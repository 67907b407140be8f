"""Results: the tables of an experiment, and the folder that keeps them.

A result folder explains itself: ``experiment.toml`` as resolved (running it again gives the same
bytes), ``meta.json`` (version, seeds, machine, wall time), and ``flows.parquet``,
``series.parquet``, ``links.parquet``, ``internals.parquet``, each with a ``seed`` column first. If
flows are logged, ``packets-SEED-sender.pcapng`` and ``packets-SEED-receiver.pcapng`` hold what each
end of them saw. The tables are Polars frames over the simulator's own memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from dumbbell import metrics
from dumbbell.errors import DumbbellError, unknown
from dumbbell.experiment.capacity import capacity, parse_rates
from dumbbell.experiment.quantities import RATE, SIZE, TIME
from dumbbell.results import storage
from dumbbell.results.tables import (
    OPTIONAL,
    SUBFLOW_TABLES,
    TABLES,
    FinishedRun,
    FlowInfo,
    Participants,
    RunOutput,
)
from dumbbell.results.tables import tables as tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from dumbbell.experiment.model import Experiment
    from dumbbell.metrics.rates import Moment
    from dumbbell.results.tables import Capture

# Entries of `Result.meta` that add up, and those that have what some seeds have, by seed.
_SUMS: Final = ("wall_s", "data_packets", "events", "stored")
_BY_SEED: Final = ("failures", "invalid", "testbed")


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of an experiment, for all its seeds.

    In every table the first column is ``seed``; ``flow`` (or ``link``) is the name, an Enum in the
    order of the file, and ``cc`` the flow's algorithm. Units: s, bit/s, bytes, packets.

    Attributes:
        experiment: The experiment as resolved.
        meta: version, seeds, machine, wall_s, data_packets, events.
        flows: One row per seed and flow: start, begin (its start or the end of the warm-up,
            whichever is later, but at most end), end, completed, and what counted since then: sent,
            retransmitted, lost, marked, delivered, received, timeouts, recoveries, spurious,
            base_rtt, queue_delay_mean, queue_delay_p50, queue_delay_p95, queue_delay_p99, rtt_mean,
            rtt_samples.
        series: One row per seed, flow and sample: t, cwnd, ssthresh, srtt, rtt, min_rtt,
            pacing_rate, delivery_rate, in_flight, sent, retransmitted, lost, delivered, received,
            ca_state.
        links: One row per seed, link and sample: t, queue_packets, queue_bytes, sent_bytes,
            dropped, lost, marked.
        internals: One row per seed, flow, sample and named internal of the algorithm: t, name,
            value.
        subflows, subflow_series, subflow_internals: As `flows`, `series` and `internals`, for the
            subflows of multipath flows, which are called ``flow/1``, ``flow/2``... in the order of
            their paths; without rows or columns if there are none.
        transfers: One row per seed and transfer of the flows that consist of many: start, bytes,
            completed, sent, retransmitted, timeouts; without rows or columns if there are none.
        frames: One row per seed and frame of the flows of media: start, bytes, completed; without
            rows or columns if there are none.
        segments: One row per seed and segment of the flows with a video client: start, bytes,
            completed, rate, duration, buffer, stalled, playing; without rows or columns if there
            are none.
        captures: By seed, the packets of the flows that are logged; empty for a result that was
            read from a folder.
    """

    experiment: Experiment
    meta: dict[str, Any]
    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    internals: pl.DataFrame
    subflows: pl.DataFrame = field(default_factory=pl.DataFrame)
    subflow_series: pl.DataFrame = field(default_factory=pl.DataFrame)
    subflow_internals: pl.DataFrame = field(default_factory=pl.DataFrame)
    transfers: pl.DataFrame = field(default_factory=pl.DataFrame)
    frames: pl.DataFrame = field(default_factory=pl.DataFrame)
    segments: pl.DataFrame = field(default_factory=pl.DataFrame)
    captures: Mapping[int, Capture] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The table of its flows: means over the seeds, with their 95 % intervals."""
        from dumbbell.results.summary import invalid, summary_tables

        flows = str(summary_tables(self.valid(), label=str)[0])
        return "\n".join([flows, *invalid(self)])

    def _repr_html_(self) -> str:
        """What a notebook shows of it: its flows, and its links."""
        from dumbbell.results.summary import notebook

        return notebook(self)

    def summary(
        self, by: Literal["flow", "cc", "run"] = "flow", *, ci: bool = False
    ) -> pl.DataFrame:
        """What was achieved: means over the valid seeds of throughput, delay, retransmissions.

        Args:
            by: One row per ``"flow"``; per algorithm (``"cc"``), of all its flows together; or one
                row for the whole ``"run"``, with the utilisation of its links and Jain's index.
            ci: Whether to add the ends of the 95 % interval of every mean (Student's t), as
                columns ``..._low`` and ``..._high``; null with one seed.

        Returns:
            Columns flow and cc, or cc, or none, and the metrics: throughput, goodput (bit/s; of
            flows together see `dumbbell.metrics.group_throughput`), queue_delay_mean,
            queue_delay_p95 (s), retransmission_share (0 to 1); for ``"run"`` also utilisation
            (0 to 1), jain, dropped, lost (packets).

        Raises:
            DumbbellError: If `by` is none of these.
        """
        valid = self.valid()
        flows = metrics.summary(valid)
        if by == "flow":
            kept = flows.select("seed", "flow", "cc", *metrics.FLOW_METRICS)
            return metrics.means_over_seeds(kept, ["flow", "cc"], ci=ci)
        if by == "cc":
            kept = metrics.over_flows(flows, ["cc", "seed"])
            return metrics.means_over_seeds(kept, ["cc"], ci=ci)
        if by == "run":
            kept = metrics.run_summary(valid, flows, metrics.link_summary(valid))
            kept = metrics.with_least(kept, flows)
            return metrics.means_over_seeds(kept, [], ci=ci)
        raise DumbbellError(unknown("summary", by, ["flow", "cc", "run"]))

    def throughput(
        self, *, since: Moment | None = None, until: Moment | None = None
    ) -> pl.DataFrame:
        """The throughput of every flow and seed while it is active, bit/s.

        See `dumbbell.metrics.throughput`.
        """
        return metrics.throughput(self, since=since, until=until)

    def jain(self) -> pl.DataFrame:
        """Jain's index of every seed, while all flows are active; see `dumbbell.metrics.fairness`.

        Returns:
            Columns seed, jain (1 / number of flows to 1).
        """
        return metrics.fairness(self)

    def plot(
        self, kind: str = "overview", *, ax: Axes | None = None, seed: int | None = None
    ) -> Axes | list[Axes]:
        """Draws one seed over time, as ``dumbbell plot`` does.

        Args:
            kind: ``"windows"`` (congestion windows), ``"throughputs"``, ``"states"``,
                ``"round-trips"``, ``"queues"``, all of these (``"overview"``), or ``"links"``:
                capacity, throughput and queueing delay of every link; ``"internals"``, or the name
                of one; ``"video"``, ``"frame-delays"``, ``"completion-times"``.
            ax: The Matplotlib axes to draw on, for figures with one panel; new ones if not given.
            seed: Which seed; the first valid one if not given.

        Returns:
            The axes; if there are several panels, a list of them from top to bottom.

        Raises:
            DumbbellError: If there is no such figure or seed, there is nothing to show in it, or
                `ax` is given for several panels.
        """
        from dumbbell.figures.result import plot

        return plot(self, kind, axes=ax, seed=seed)

    @property
    def source(self) -> str:
        """What made the runs: ``"simulated"``, or ``"Linux 6.18"`` of real packets."""
        kernel = self.meta.get("kernel")
        return f"Linux {'.'.join(kernel.split('.')[:2])}" if kernel else "simulated"

    @property
    def seeds(self) -> list[int]:
        """The seeds of these runs."""
        return self.flows["seed"].unique(maintain_order=True).to_list()

    @property
    def flow_names(self) -> list[str]:
        """The names of all flows, in the order of the file."""
        return self.flows["flow"].unique(maintain_order=True).to_list()

    def by_subflow(self) -> Result:
        """The same with the subflows in the place of every multipath flow.

        Metrics and figures of it are those of the subflows.
        """
        if self.subflows.is_empty():
            return self
        parts: dict[str, list[str]] = {}
        for name in self.subflows["flow"].unique(maintain_order=True):
            parts.setdefault(name.rpartition("/")[0], []).append(name)
        order = [name for flow in self.flow_names for name in parts.get(flow, [flow])]
        keys = {"flow": pl.Enum(order), "cc": self.flows["cc"].dtype}
        changed = {}
        for table, of_subflows in SUBFLOW_TABLES.items():
            plain, split = (
                getattr(self, name).with_columns(pl.col("flow", "cc").cast(pl.String))
                for name in (table, of_subflows)
            )
            plain = plain.filter(~pl.col("flow").is_in(list(parts)))
            both = pl.concat([plain, split], how="vertical_relaxed").cast(keys)
            by = ["seed"] if table == "flows" else ["seed", "t"]
            changed[table] = both.sort(*by, "flow", maintain_order=True)
        return Result(
            self.experiment,
            self.meta,
            flows=changed["flows"],
            series=changed["series"],
            internals=changed["internals"],
            links=self.links,
            transfers=self.transfers,
            frames=self.frames,
            segments=self.segments,
        )

    def capacity(self, link: str, begin: float, end: float) -> float | None:
        """Bits that a link could send from `begin` to `end`, s; None if that is no limit, or none.

        It is the same for every seed.

        Raises:
            DumbbellError: If there is no such link.
        """
        links = {one.name: one for one in self.experiment.links}
        if link not in links:
            raise DumbbellError(unknown("link", link, list(links)))
        said = links[link]
        rate = RATE.parse(said.rate) if said.rate else None
        rates = parse_rates(said.rates) if said.rates else None
        trace = said.trace if isinstance(said.trace, list) else None
        bucket = SIZE.parse(said.burst) if said.burst else None
        return capacity(rate, rates, trace, bucket, begin, end)

    def capacities(self, spans: pl.DataFrame) -> list[float | None]:
        """The `capacity` of each row of a table with the columns seed, link, begin, end (s)."""
        rows = spans.select("link", "begin", "end").iter_rows()
        return [self.capacity(link, begin, end) for link, begin, end in rows]

    @property
    def of_transfers(self) -> pl.DataFrame:
        """The flows that consist of many transfers, be it none so far: columns seed, flow."""
        flows = zip(self.experiment.flows, self.experiment.flow_names(), strict=True)
        names = [name for flow, copies in flows if flow.sizes is not None for name in copies]
        flow = pl.col("flow").cast(pl.String)
        return self.flows.select("seed", "flow").filter(flow.is_in(names))

    @property
    def warmups(self) -> pl.DataFrame:
        """When the warm-up ends, by seed: columns seed, since (s)."""
        warmup = _warmup(self.experiment)
        return pl.DataFrame({"seed": pl.Series(self.seeds, dtype=pl.UInt64), "since": warmup})

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that there are, by their names."""
        there = {name: getattr(self, name) for name in (*TABLES, *OPTIONAL)}
        return {name: table for name, table in there.items() if name in TABLES or table.width}

    def of_seed(self, seed: int) -> Result:
        """The part of the result that belongs to one seed."""
        return self if self.seeds == [seed] else self.of_seeds([seed])

    def of_seeds(self, seeds: list[int]) -> Result:
        """The runs with these seeds alone."""
        chosen = pl.col("seed").is_in(seeds)
        tables: Any = {name: table.filter(chosen) for name, table in self.tables.items()}
        captures = {seed: self.captures[seed] for seed in self.captures if seed in seeds}
        return replace(self, **tables, captures=captures)

    @property
    def invalid_runs(self) -> dict[int, list[str]]:
        """Why runs are not to be trusted, by their seed: real packets, and a machine in the way."""
        seeds = self.seeds
        return {seed: why for seed, why in invalid_runs(self.meta).items() if seed in seeds}

    @property
    def warnings(self) -> list[str]:
        """Settings without effect and flows that sent nothing, a sentence each."""
        from dumbbell.results.warnings import warnings_of

        return warnings_of(self)

    @property
    def invalid_reasons(self) -> list[str]:
        """The runs that are invalid, each with its reasons, in words."""
        return [f"run {seed}: {'; '.join(why)}" for seed, why in self.invalid_runs.items()]

    def valid(self) -> Result:
        """The same without the runs that are invalid; all of them if every one is."""
        invalid = self.invalid_runs
        left = [seed for seed in self.seeds if seed not in invalid]
        return self.of_seeds(left) if invalid and left else self

    def with_seeds_of(self, real: Result) -> Result:
        """The runs with the seeds of the valid runs of `real`; all of them if none has one."""
        seeds = [seed for seed in real.valid().seeds if seed in self.seeds]
        return self.of_seeds(seeds) if seeds else self

    def concat(self, more: Result) -> Result:
        """This result and one of other seeds of the same experiment, as one of all seeds."""
        tables: Any = {
            name: pl.concat([t for t in (getattr(self, name), getattr(more, name)) if t.width])
            for name in self.tables | more.tables
        }
        seeds = [*self.seeds, *more.seeds]
        metas = (self.meta, more.meta)
        meta = {key: sum(one[key] for one in metas) for key in _SUMS}
        for key in _BY_SEED:
            if found := self.meta.get(key, {}) | more.meta.get(key, {}):
                meta[key] = found
        experiment = self.experiment.replace(seeds=seeds)
        captures = {**self.captures, **more.captures}
        meta = self.meta | meta | {"seeds": seeds}
        return Result(experiment, meta, **tables, captures=captures)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the result folder, completely or not at all.

        The same result, or fewer runs of the same experiment, are replaced. A link is followed.

        Args:
            folder: The folder.
            overwrite: Whether another result that is there may be replaced.

        Raises:
            OverwriteError: If another result is there.
            ResultError: If something else is there, or the folder cannot be written.
        """
        expected = storage.identity(self.experiment, self.meta)
        with storage.reserve(folder, expected, self.seeds, overwrite=overwrite) as place:
            self.write(place)
        return Path(folder)

    def write(self, place: storage.Write) -> None:
        """Writes the result folder that was reserved for it; see `save`."""
        place(self.experiment, self.meta, self.tables, self.captures)

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Reads a result folder.

        Raises:
            ResultError: If it is not one.
        """
        experiment, meta, tables = storage.load(folder)
        return cls(experiment, meta, **tables)


def _warmup(experiment: Experiment) -> float:
    """When the warm-up of an experiment ends, s; 0 without one."""
    return TIME.parse(experiment.warmup, zero=True) / 1e9 if experiment.warmup else 0.0


def invalid_runs(meta: Mapping[str, Any]) -> dict[int, list[str]]:
    """Why runs are invalid, by their seed, as ``meta.json`` has it; empty if none is."""
    said: Mapping[str, list[str]] = meta.get("invalid") or {}
    return {int(seed): why for seed, why in said.items()}


def collect(
    experiment: Experiment, outputs: Mapping[int, RunOutput], meta: dict[str, Any]
) -> Result:
    """Puts the outputs of all seeds of a resolved experiment together."""
    flows, subflows = [], []
    for flow, names in zip(experiment.flows, experiment.flow_names(), strict=True):
        stop = TIME.parse(flow.stop) / 1e9 if flow.stop else float("inf")
        for name in names:
            flows.append(FlowInfo(name, flow.cc, stop))
            parts = range(1, len(flow.paths or ()) + 1)
            subflows += [FlowInfo(f"{name}/{part}", flow.cc, stop) for part in parts]
    duration = TIME.parse(experiment.duration) / 1e9
    links = [link.name for link in experiment.links]
    those = Participants(duration, _warmup(experiment), flows, links, subflows)
    made = tables_of([FinishedRun(seed, those, output) for seed, output in outputs.items()])
    captures = {
        seed: output.capture for seed, output in outputs.items() if output.capture is not None
    }
    return Result(experiment, meta, **made, captures=captures)
