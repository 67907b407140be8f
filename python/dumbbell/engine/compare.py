"""Algorithms compared on one link: `compare`."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from markupsafe import Markup

from dumbbell import _core, metrics
from dumbbell.display import Column, Table
from dumbbell.engine.backend import Backend, sends_packets
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import refuse_other, run_into
from dumbbell.errors import ExperimentError, QuantityError
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.experiment.quantities import TIME
from dumbbell.experiment.user_code import check_names, name_of
from dumbbell.results.storage import file_name
from dumbbell.results.summary import in_notebook, invalid, means

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

_ARGUMENTS: Final = {
    "repeat": "flows",
    "flow": "flows",
    "arrivals": "traffic",
    "sample": "duration",
    "delay": "rtt",
}
"""The arguments whose names are not those of the experiment's keys."""

COMPARED: Final = (
    *("throughput", "goodput", "queue_delay_mean", "queue_delay_p95"),
    *("retransmission_share", "utilisation", "jain"),
)
"""The columns of `Comparison.runs` that there are with and without a competitor."""

SHOWN: Final = (
    *("throughput", "utilisation", "queue_delay_mean", "queue_delay_p95"),
    *("retransmission_share", "jain"),
)
"""The columns that tables show."""

RATE: Final = "100 Mbit/s"
"""The rate of the link if neither it nor a template is given."""

RTT: Final = "40 ms"
"""The same for the round-trip time."""

START_JITTER: Final = "100 ms"
"""Within which time flows start."""

MEAN_SIZE: Final = "100 kB"
"""The mean size of the transfers of `traffic`."""

_SIZES: Final = f"lognormal(mean={MEAN_SIZE}, sigma=1.5)"

_DRAWN: Final = ("throughput", "queue_delay_mean", "retransmission_share", "jain")
_OF_RIVAL: Final = ("rival_throughput", "harm")
_OF_TRAFFIC: Final = ("completed_share", "completion_p50", "completion_p99")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Algorithms compared on one link.

    Attributes:
        results: The result of every algorithm, by its name.
        rival: The result of the competitor's flows alone on the link; None without ``against``.
        runs: One row per algorithm and valid seed (see `Result.valid`): algorithm, seed, throughput
            and goodput of its flows together (bit/s), queue_delay_mean and queue_delay_p95 (means
            over its flows, s), retransmission_share, utilisation (0 to 1), jain (over all flows on
            the link); with a competitor also rival_throughput (bit/s) and harm (at most 1, see
            `metrics.harm`); with traffic also completed_share (0 to 1), completion_p50 and
            completion_p99 of its transfers (s, see `metrics.transfer_summary`).
    """

    results: dict[str, Result]
    rival: Result | None
    runs: pl.DataFrame

    @property
    def flows(self) -> pl.DataFrame:
        """A row per algorithm, valid seed and flow: algorithm, and columns of `metrics.summary`."""
        return pl.concat(
            metrics.summary(result.valid()).with_columns(
                pl.col("flow", "cc").cast(pl.String), algorithm=pl.lit(name)
            )
            for name, result in self.results.items()
        )

    @property
    def invalid(self) -> list[str]:
        """Sentences on the runs that are invalid, and on what tables have instead."""
        named = dict(self.results)
        if self.rival is not None:
            named[f"{self.rival.experiment.flows[0].cc} alone"] = self.rival
        return [said for name, result in named.items() for said in invalid(result, name)]

    def summary(self, *, ci: bool = False) -> pl.DataFrame:
        """One row per algorithm: the means of the metrics of `runs` over the seeds.

        Args:
            ci: Whether to add the ends of the 95 % interval of every mean (Student's t), as
                columns ``..._low`` and ``..._high``; null with one seed.
        """
        return metrics.means_over_seeds(self.with_least, ["algorithm"], ci=ci)

    def table(self) -> Table:
        """The means of the metrics over the seeds, with their 95 % intervals."""
        columns = [*SHOWN, *self._more]
        shown = [Column.of(name) for name in columns]
        if self.rival is not None:
            left = f"Left to {self.rival.experiment.flows[0].cc}"
            shown[len(SHOWN)] = Column.of("rival_throughput", title=left)
        return Table([Column("Algorithm"), *shown], means(self.with_least, ["algorithm"], columns))

    @property
    def with_least(self) -> pl.DataFrame:
        """`runs` with the column ``jain_least``: see `metrics.with_least`."""
        return metrics.with_least(self.runs, self.flows, "algorithm")

    @property
    def _more(self) -> list[str]:
        """The columns that depend on a competitor or on traffic."""
        return [name for name in _OF_RIVAL + _OF_TRAFFIC if name in self.runs.columns]

    def plot(self, title: str = "") -> Figure:
        """Draws the mean of each metric with its interval and its runs, a bar an algorithm.

        Args:
            title: What stands above all panels.
        """
        from dumbbell import figures  # half a second that tables do not need

        drawn = [*_DRAWN, *(name for name in self._more if name != "completed_share")]
        height = 0.6 + 0.32 * len(self.results)
        values = self.runs.group_by("algorithm", maintain_order=True).agg(
            pl.col(drawn).drop_nulls()
        )
        with figures.styled():
            figure, rows = figures.panels(
                -(-len(drawn) // 2), 2, width=figures.PAGE, height=height, share_y=True
            )
            panels = [panel for row in rows for panel in row]
            for metric, panel in zip(drawn, panels, strict=False):
                bars = [
                    _bar(name, figures.style_of(name).label, runs, metric)
                    for name, runs in values.select("algorithm", metric).iter_rows()
                ]
                figures.intervals(panel, pl.DataFrame(bars, schema_overrides={"low": pl.Float64}))
                column = Column.of(metric)
                if metric == "rival_throughput" and self.rival is not None:
                    style = figures.style_of(self.rival.experiment.flows[0].cc)
                    column = Column.of(metric, title=f"Throughput left to {style.label}")
                panel.set_xlabel(column.heading)
            for panel in panels[len(drawn) :]:
                panel.set_visible(False)
            if title:
                figure.suptitle(textwrap.fill(title, 100), fontsize="medium")
        return figure

    def __repr__(self) -> str:
        """The same table."""
        return "\n".join([str(self.table()), *self.invalid])

    def _repr_html_(self) -> str:
        """What a notebook shows: the same table."""
        said = [Markup("<p>{}</p>").format(sentence) for sentence in self.invalid]
        return in_notebook(self.table().html(), *said)


def compare(
    cc: str | type | Sequence[str | type] = ("reno", "cubic", "bbr", "bbr3"),
    *,
    against: str | type | None = None,
    against_flows: int | None = None,
    template: str | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    queue: str | None = None,
    aqm: str | None = None,
    loss: float | str = 0,
    flows: int = 2,
    traffic: str | None = None,
    traffic_cc: str | type = "cubic",
    start_jitter: str = START_JITTER,
    duration: str = "60 s",
    warmup: str | None = None,
    stack: str = "linux",
    ecn: str = "off",
    seeds: int | list[int] = 1,
    jobs: int | None = None,
    until: Until | None = None,
    dask: str | None = None,
    backend: Backend = "simulator",
    retry_invalid: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Compares algorithms on one link, each with flows of its own; what ``dumbbell compare`` runs.

    Args:
        cc: The algorithms, such as ``["reno", "cubic(beta=0.8)"]``, or classes of `dumbbell.cc`.
        against: An algorithm whose flows compete with those of each of the others.
        against_flows: How many flows of it; as many as `flows` if not given.
        template: The kind of path, such as ``"leo"`` or ``"wifi(stations=2)"``; its options have
            rate and RTT.
        rate: The rate of the link; ``"100 Mbit/s"`` if not given.
        rtt: The round-trip time without queues; ``"40 ms"`` if not given.
        queue: How much may wait at the link: ``"100 packets"``, ``"1 MB"``; if not given
            the template's, ``"1 BDP"``, or with `aqm` ``"unlimited"``.
        aqm: Active queue management, such as ``"codel"``; tail drop if it is not given or
            ``"none"``.
        loss: The probability of random loss, such as ``0.01`` or ``"1 %"``.
        flows: How many flows of each algorithm share the link.
        traffic: How short transfers arrive beside them, such as ``"poisson(load=0.3)"``;
            their sizes are lognormal with a mean of 100 kB and a sigma of 1.5.
        traffic_cc: The algorithm of these transfers; ``"same"`` for that of the flows.
        start_jitter: Within which time the flows start, at random. Flows of BBR that start
            together probe together; with ``"20 s"`` they may share otherwise.
        duration: How long each run lasts, such as ``"60 s"``.
        warmup: How long at the start of a run nothing counts, such as ``"10 s"``.
        stack: The TCP stack.
        ecn: ``"off"``, ``"classic"`` (RFC 3168), ``"accurate"`` as DCTCP needs it,
            or ``"l4s"``, which Prague has by itself.
        seeds: How many seeds, or which.
        jobs: How many simulations to run at once; as many as there are processors if not given.
        until: Adds seeds to every algorithm until the interval of a metric is as narrow as this;
            for the simulator.
        dask: The address of a Dask scheduler whose workers simulate.
        backend: ``"simulator"``, or ``"linux"`` for real packets in real time.
        retry_invalid: How often an invalid run is repeated: one with real packets that the machine
            disturbed.
        out: A folder for the results, in which every algorithm has a folder of its own.
        overwrite: Whether other results that are there may be replaced.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Raises:
        ExperimentError: If an argument is not valid; its ``key`` is the argument's name.
        OverwriteError: If `out` holds other results.
        TestbedError: If this machine lacks what real packets need.
        Interrupted: If the user interrupts; then the simulations are stopped too.
    """
    if until:
        until.check(COMPARED, is_real=sends_packets(backend))
    if against_flows is not None and (against is None or against_flows < 1):
        valid = "is a number of at least 1 of flows of `against`"
        raise ExperimentError(valid, key="against_flows")
    with _arguments(_ARGUMENTS):
        algorithms = list(map(name_of, [cc] if isinstance(cc, str | type) else cc))
        check_names(algorithms)
        with _arguments({"cc": "against"}):
            rivals = [] if against is None else [(name_of(against), against_flows or flows)]
        groups = [[(name, flows), *rivals] for name in algorithms] + [[one] for one in rivals]
        path = _path(template, rate, rtt)
        link = Link(name="bottleneck", queue=queue, aqm=aqm, loss=loss, **path)
        rtt = None if template else rtt or RTT
        options = {} if ecn == "off" else {"ecn": ecn}
        others: dict[str, Any] = {"duration": duration, "warmup": warmup, "seeds": seeds}
        others |= {"stack": stack, "stack_options": options, "start_jitter": start_jitter}
        web = None if traffic is None else (traffic, name_of(traffic_cc))
        experiments = [_experiment(group, link, rtt, web, **others) for group in groups]
    is_real = sends_packets(backend)
    for flow in (flow for experiment in experiments for flow in experiment.flows):
        with _arguments({"cc": _OF_FLOW[flow.name or ""]}):
            refuse_other("", flow.cc, flow.command, is_real=is_real)
    names = [*algorithms, *(f"{name} alone" for name, _ in rivals)]
    every = run_into(
        experiments,
        [None if out is None else Path(out) / file_name(name) for name in names],
        values_of,
        jobs=jobs,
        overwrite=overwrite,
        backend=backend,
        retry_invalid=retry_invalid,
        until=until,
        dask=dask,
        progress=progress,
    )
    results = dict(zip(algorithms, every, strict=False))
    rival = every[-1] if rivals else None
    runs = pl.concat(
        _judge(result.valid(), rival and rival.valid()).select(
            pl.lit(name).alias("algorithm"), pl.all()
        )
        for name, result in results.items()
    )
    return Comparison(results, rival, runs)


@contextmanager
def _arguments(names: Mapping[str, str]) -> Iterator[None]:
    """Says of an `ExperimentError` which argument it is about; `names` has those unlike keys."""
    try:
        yield
    except ExperimentError as error:
        key = error.key.rpartition(".")[2]
        raise ExperimentError(error.problem, key=names.get(key, key)) from None


def _path(template: str | None, rate: str | None, rtt: str | None) -> dict[str, Any]:
    """The keys of the link that say which path it is."""
    if template is None:
        return {"rate": rate or RATE, "delay": _half(rtt or RTT)}
    for key, value in (("rate", rate), ("rtt", rtt)):
        if value is not None:
            name = template.partition("(")[0]
            advice = f'write it as an option of the template, "{name}({key}={value})"'
            raise ExperimentError(f"is given beside a template; {advice}", key=key)
    return {"template": template}


def _half(rtt: str) -> str:
    try:
        return TIME.format(TIME.parse(rtt) // 2)
    except QuantityError as error:
        raise ExperimentError(str(error), key="rtt") from None


def _experiment(
    algorithms: list[tuple[str, int]],
    link: Link,
    rtt: str | None,
    traffic: tuple[str, str] | None,
    **others: Any,
) -> Experiment:
    """Flows of an algorithm on the link, so many, beside those of a second one and `traffic`.

    That is how transfers arrive, and their algorithm, or ``same``.
    """
    flows = [
        _flow(name, cc, rtt=rtt, repeat=count)
        for name, (cc, count) in zip(("flow", "against"), algorithms, strict=False)
    ]
    if traffic is not None:
        arrivals, cc = traffic
        cc = algorithms[0][0] if cc == "same" else cc
        flows.append(_flow("traffic", cc, rtt=rtt, arrivals=arrivals, sizes=_SIZES))
    return Experiment(links=[link], flows=flows, **others).resolve()


_OF_FLOW: Final = {"flow": "cc", "against": "against", "traffic": "traffic_cc"}
"""By the name of a flow, the argument that has its algorithm."""


def _flow(name: str, cc: str, **others: Any) -> Flow:
    with _arguments({"cc": _OF_FLOW[name], "arrivals": "traffic"}):
        return Flow(name=name, cc=cc, transport="udt" if _core.needs_udt(cc) else "tcp", **others)


def values_of(metric: str, result: Result) -> list[list[float | None]]:
    """What of an algorithm's runs is to be known well: a column of `COMPARED`."""
    return [_judge(result, None)[metric].to_list()]


def _bar(name: str, label: str, runs: list[float], metric: str) -> dict[str, Any]:
    """A row for `figures.intervals`; without any value there is no bar."""
    is_known = runs and all(map(isfinite, runs))  # an infinite time has no bar
    found = metrics.mean(runs, metric) if is_known else metrics.Estimate(nan, None, None)
    shown = found.scaled(Column.of(metric).scale)
    bar = {"cc": name, "label": label, "limit": None, "published": None}
    return bar | shown.ends | {"runs": list(shown.runs)}


def achieved(result: Result, own: pl.Expr) -> pl.DataFrame:
    """What the flows that `own` chooses achieved together; the columns of `COMPARED` by seed."""
    flows = metrics.summary(result).filter(own)
    runs = metrics.run_summary(result, flows, metrics.link_summary(result))
    return runs.select("seed", *COMPARED)


def _judge(result: Result, rival: Result | None) -> pl.DataFrame:
    """One row a seed of `Comparison.runs`."""
    name = pl.col("flow").cast(pl.String)
    runs = achieved(result, name.str.starts_with("flow"))
    joined = []
    if rival is not None:
        theirs = name.str.starts_with("against")
        alone = metrics.summary(rival).filter(name.str.starts_with("flow"))
        joined.append(_harm(metrics.summary(result).filter(theirs), alone))
    if any(flow.arrivals is not None for flow in result.experiment.flows):
        joined.append(metrics.transfer_summary(result).select("seed", *_OF_TRAFFIC))
    for table in joined:
        runs = runs.join(table, on="seed", how="left", maintain_order="left")
    return runs


def _harm(together: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """By seed, what was left to the rival, and the harm that this is; null if it never sent."""
    left, had = (
        dict(metrics.group_throughput(flows).select("seed", "throughput").iter_rows())
        for flows in (together, alone)
    )
    known = [rate for rate in had.values() if rate is not None]
    usual = sum(known) / len(known) if known else None
    harm = [
        None if rate is None or before is None else metrics.harm(before, rate)
        for seed, rate in left.items()
        for before in [had.get(seed, usual)]
    ]
    return pl.DataFrame(
        {"seed": list(left), "rival_throughput": list(left.values()), "harm": harm},
        schema_overrides={"seed": pl.UInt64, "rival_throughput": pl.Float64, "harm": pl.Float64},
    )
