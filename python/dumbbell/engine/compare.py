"""Algorithms compared on one link: `compare`."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core, figures, metrics
from dumbbell.display import Column, Table
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import run_into
from dumbbell.errors import ExperimentError, QuantityError
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.experiment.quantities import TIME
from dumbbell.results.summary import in_notebook, means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from dumbbell.engine.runner import Backend
    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

_GROUPS: Final = ("flow", "against")
"""The names of the flows of the algorithm in question, and of those that compete with it."""

_ARGUMENTS: Final = {"repeat": "flows", "flow": "flows", "sample": "duration", "delay": "rtt"}
"""The arguments whose names are not those of the experiment's keys."""

RUN_METRICS: Final = (
    *("throughput", "goodput", "queue_delay_mean", "queue_delay_p95"),
    *("retransmission_share", "utilisation", "jain"),
)
"""The columns of `Comparison.runs` that there are with and without a competitor."""

SHOWN: Final = (
    *("throughput", "utilisation", "queue_delay_mean", "queue_delay_p95"),
    *("retransmission_share", "jain"),
)
"""The columns that tables show."""

_DRAWN: Final = (
    *("throughput", "queue_delay_mean", "retransmission_share", "jain"),
    *("rival_throughput", "harm"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Algorithms compared on one link.

    Attributes:
        results: The result of every algorithm, by its name.
        rival: The result of the competitor's flows alone on the link; None without ``against``.
        runs: One row per algorithm and seed: algorithm, seed, throughput and goodput of its flows
            together (bit/s), queue_delay_mean and queue_delay_p95 (means over its flows, s),
            retransmission_share, utilisation (0 to 1), jain (over all flows on the link); with a
            competitor also rival_throughput (bit/s) and harm (0 to 1, see `metrics.harm`).
    """

    results: dict[str, Result]
    rival: Result | None
    runs: pl.DataFrame

    @property
    def flows(self) -> pl.DataFrame:
        """One row per algorithm, seed and flow: algorithm, and the columns of `metrics.summary`."""
        return pl.concat(
            metrics.summary(result).with_columns(
                pl.col("flow", "cc").cast(pl.String), algorithm=pl.lit(name)
            )
            for name, result in self.results.items()
        )

    def summary(self, *, ci: bool = False) -> pl.DataFrame:
        """One row per algorithm: the means of the metrics of `runs` over the seeds.

        Args:
            ci: Whether to add the ends of the 95 % interval of every mean (Student's t), as
                columns ``..._low`` and ``..._high``; null with one seed.
        """
        return metrics.means_over_seeds(self.runs, ["algorithm"], ci=ci)

    def table(self) -> Table:
        """The means of the metrics over the seeds, with their 95 % intervals."""
        columns, shown = list(SHOWN), [Column.of(name) for name in SHOWN]
        if self.rival is not None:
            name = self.rival.experiment.flows[0].cc
            columns += ["rival_throughput", "harm"]
            shown += [Column.of(columns[-2], title=f"Left to {name}"), Column.of("harm")]
        rows = means(self.runs, ["algorithm"], columns)
        return Table([Column("Algorithm"), *shown], rows)

    def plot(self) -> Figure:
        """Draws the mean of each metric with its interval and its runs, a bar an algorithm."""
        drawn = [name for name in _DRAWN if name in self.runs.columns]
        count = len(self.results)
        with figures.styled():
            figure, panels = figures.panels(
                len(drawn) // 2, 2, width=figures.PAGE, height=0.6 + 0.32 * count, share_y=True
            )
            for metric, panel in zip(drawn, (one for row in panels for one in row), strict=True):
                column = Column.of(metric)
                bars = [
                    _bar(name, runs[metric].drop_nulls().to_list(), metric)
                    for (name,), runs in self.runs.group_by("algorithm", maintain_order=True)
                ]
                figures.intervals(panel, pl.DataFrame(bars, schema_overrides={"low": pl.Float64}))
                panel.set_xlabel(column.heading)
        return figure

    def __repr__(self) -> str:
        """The same table."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """What a notebook shows: the same table."""
        return in_notebook(self.table().html())


def compare(
    cc: str | Sequence[str] = ("reno", "cubic", "bbr", "bbr3"),
    *,
    against: str | None = None,
    rate: str = "100 Mbit/s",
    rtt: str = "40 ms",
    queue: str = "1 BDP",
    aqm: str | None = None,
    loss: float | str = 0,
    flows: int = 2,
    duration: str = "60 s",
    stack: str = "linux",
    ecn: str = "off",
    seeds: int | list[int] = 1,
    jobs: int | None = None,
    until: Until | None = None,
    backend: Backend = "simulator",
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = silent,
) -> Comparison:
    """Compares algorithms on one link, each with flows of its own; what ``dumbbell compare`` runs.

    Flows start within 100 ms of each other, at random.

    Args:
        cc: The algorithms, such as ``["reno", "cubic(hystart=off)"]``.
        against: An algorithm of which as many flows compete with each of the others.
        rate: The rate of the link, such as ``"100 Mbit/s"``.
        rtt: The round-trip time without queues, such as ``"40 ms"``.
        queue: How much may wait at the link: ``"1 BDP"``, ``"100 packets"``, ``"1 MB"``.
        aqm: Active queue management, such as ``"codel"``; tail drop if not given.
        loss: The probability of random loss, such as ``0.01`` or ``"1 %"``.
        flows: How many flows of each algorithm share the link.
        duration: How long each run lasts, such as ``"60 s"``.
        stack: The TCP stack.
        ecn: ``"off"``, ``"classic"`` (RFC 3168), or ``"accurate"`` as DCTCP needs it.
        seeds: How many seeds, or which.
        jobs: How many simulations to run at once; as many as there are processors if not given.
        until: Adds seeds to every algorithm until the interval of a metric is as narrow as this;
            for the simulator.
        backend: ``"simulator"``, or ``"linux"`` for real packets in real time.
        out: A folder for the results, in which every algorithm has a folder of its own.
        overwrite: Whether other results that are there may be replaced.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Raises:
        ExperimentError: If an argument is not valid; its ``key`` is the argument's name.
        DumbbellError: If `until` is given with real packets.
        OverwriteError: If `out` holds other results.
        TestbedError: If this machine lacks what real packets need.
    """
    algorithms = [cc] if isinstance(cc, str) else list(cc)
    rivals = [] if against is None else [against]
    settings: dict[str, Any] = {
        "rate": rate,
        "rtt": rtt,
        "queue": queue,
        "aqm": aqm,
        "loss": loss,
        "flows": flows,
        "duration": duration,
        "stack": stack,
        "ecn": ecn,
        "seeds": seeds,
    }
    experiments = [_experiment([name, *rivals], **settings) for name in algorithms]
    if rivals:
        experiments.append(_experiment(rivals, **settings))
    names = [*algorithms, *(f"{name} alone" for name in rivals)]
    every = run_into(
        experiments,
        [None if out is None else Path(out) / name.replace("/", "_") for name in names],
        values_of,
        jobs=jobs,
        overwrite=overwrite,
        backend=backend,
        until=until,
        progress=progress,
    )
    results = dict(zip(algorithms, every, strict=False))
    rival = every[-1] if rivals else None
    runs = pl.concat(
        _judge(result, rival).select(pl.lit(name).alias("algorithm"), pl.all())
        for name, result in results.items()
    )
    return Comparison(results, rival, runs)


def values_of(metric: str, result: Result) -> list[list[float | None]]:
    """What of an algorithm's runs is to be known well: a column of `RUN_METRICS`."""
    return [_judge(result, None)[metric].to_list()]


def _bar(name: str, runs: list[float], metric: str) -> dict[str, Any]:
    """A row for `figures.intervals`; without any value there is no bar."""
    found = metrics.mean(runs, metric) if runs else metrics.Estimate(nan, None, None)
    shown = found.scaled(Column.of(metric).scale)
    bar = {"cc": name, "label": figures.style_of(name).label, "limit": None, "published": None}
    return bar | shown.ends | {"runs": list(shown.runs)}


def achieved(result: Result, own: pl.Expr) -> pl.DataFrame:
    """What the flows that `own` chooses achieved together, one row a seed.

    Returns:
        The columns of `metrics.over_flows`; utilisation of the link that is used most; jain over
        all flows.
    """
    runs = metrics.over_flows(metrics.summary(result).filter(own))
    used = metrics.utilisation(result).group_by("seed").agg(pl.col("utilisation").max())
    for table in (used, metrics.fairness(result)):
        runs = runs.join(table, on="seed", how="left", maintain_order="left")
    return runs


def _experiment(
    algorithms: Sequence[str],
    *,
    rate: str,
    rtt: str,
    queue: str,
    aqm: str | None,
    loss: float | str,
    flows: int,
    duration: str,
    stack: str,
    ecn: str,
    seeds: int | list[int],
) -> Experiment:
    """An experiment in which `flows` flows of each of the algorithms share the link."""
    try:
        delay = TIME.format(TIME.parse(rtt) // 2)
    except QuantityError as error:
        raise ExperimentError(str(error), key="rtt") from None
    try:
        link = Link(name="bottleneck", rate=rate, delay=delay, queue=queue, aqm=aqm, loss=loss)
        experiment = Experiment(
            links=[link],
            flows=[
                _flow(name, cc, rtt=rtt, repeat=flows)
                for name, cc in zip(_GROUPS, algorithms, strict=False)
            ],
            duration=duration,
            seeds=seeds,
            stack=stack,
            stack_options={} if ecn == "off" else {"ecn": ecn},
            start_jitter="100 ms",
        )
        return experiment.resolve()
    except ExperimentError as error:
        key = error.key.rpartition(".")[2]
        raise ExperimentError(error.problem, key=_ARGUMENTS.get(key, key)) from None


def _flow(name: str, cc: str, *, rtt: str, repeat: int) -> Flow:
    try:
        transport = "udt" if _core.needs_udt(cc) else "tcp"
        return Flow(name=name, cc=cc, rtt=rtt, repeat=repeat, transport=transport)
    except ExperimentError as error:
        key = "against" if name == "against" and error.key == "cc" else error.key
        raise ExperimentError(error.problem, key=key) from None


def _judge(result: Result, rival: Result | None) -> pl.DataFrame:
    """One row a seed of `Comparison.runs`."""
    own = pl.col("flow").cast(pl.String).str.starts_with("flow")
    runs = achieved(result, own)
    if rival is None:
        return runs
    harm = _harm(metrics.summary(result).filter(~own), metrics.summary(rival))
    return runs.join(harm, on="seed", how="left", maintain_order="left")


def _harm(together: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """By seed, what was left to the rival, and the harm that this is."""
    left, had = (
        dict(metrics.group_throughput(flows).select("seed", "throughput").iter_rows())
        for flows in (together, alone)
    )
    usual = sum(had.values()) / len(had)
    harm = [metrics.harm(had.get(seed, usual), rate) for seed, rate in left.items()]
    return pl.DataFrame(
        {"seed": list(left), "rival_throughput": list(left.values()), "harm": harm},
        schema_overrides={"seed": pl.UInt64},
    )
