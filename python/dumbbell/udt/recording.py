"""A real transfer as a result, so that it is plotted and queried as a simulated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import _core
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.experiment.quantities import RATE, TIME
from dumbbell.results.result import Result
from dumbbell.results.storage import machine
from dumbbell.results.tables import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dumbbell.udt.transfer import Report

_FLOATS: Final = ("cwnd", "ssthresh", "srtt", "rtt", "min_rtt", "pacing_rate", "delivery_rate")
_COUNTS: Final = ("sent", "retransmitted", "lost", "delivered", "received")
_UNKNOWN: Final = [name for name in COLUMNS["flows"] if name.startswith("queue_delay")]


def record(reports: Mapping[str, tuple[str, Report]], *, title: str, taken: bool = False) -> Result:
    """The result of transfers.

    The link of the experiment stands for the path, of which no more is known than its shortest
    round-trip time and the highest rate that crossed it: ``meta.json`` says so.

    Args:
        reports: By the name of the flow its algorithm and its transfer, which begins at 0 s.
        title: The title of the experiment.
        taken: Whether this end received the data; its own counters of sending then say nothing.
    """
    samples = {name: _series(report, taken=taken) for name, (_, report) in reports.items()}
    fastest = max(report.rate for _, report in reports.values())
    algorithms = {name: cc for name, (cc, _) in reports.items()}
    experiment = _experiment(title, algorithms, fastest, pl.concat(samples.values()))
    flows = _table(algorithms, lambda name: _end(samples[name]))
    series = _table(algorithms, lambda name: samples[name].drop("timeouts", "recoveries"))
    meta = {
        "version": _core.__version__,
        "seeds": [1],
        "backend": "sockets",
        "estimated": ["link.rate", "link.delay"],
        "machine": machine(),
        "wall_s": sum(report.seconds for _, report in reports.values()),
        "data_packets": flows["sent"].sum(),
        "events": 0,
    }
    return Result(
        experiment,
        meta,
        flows=flows,
        series=series.sort("t", maintain_order=True),
        links=pl.DataFrame(schema=_LINKS),
        internals=_table(algorithms, lambda name: _internals(reports[name][1])),
    )


def _experiment(
    title: str, algorithms: Mapping[str, str], fastest: float, samples: pl.DataFrame
) -> Experiment:
    """The experiment that stands for transfers, of which the fastest had so many bit/s."""
    ends: Any = samples.select(pl.col("t").max(), pl.col("min_rtt").min())
    duration, shortest = ends.row(0)
    link = Link(
        name="path",
        rate=RATE.format(max(round(fastest), 1)),
        delay=TIME.format(max(round((shortest or _SHORTEST) * 5e8), 1)),
    )
    return Experiment(
        title=title,
        duration=TIME.format(max(round(duration * 1e9), 1)),
        links=[link],
        flows=[Flow(name=name, cc=cc, transport="udt") for name, cc in algorithms.items()],
    )


def _table(algorithms: Mapping[str, str], part: Callable[[str], pl.DataFrame]) -> pl.DataFrame:
    """The parts of all flows below each other, each with seed, flow and algorithm."""
    flow = pl.Enum(list(algorithms))
    algorithm = pl.Enum(list(dict.fromkeys(algorithms.values())))
    labelled = [
        part(name).select(
            pl.lit(1, dtype=pl.UInt64).alias("seed"),
            pl.lit(name, dtype=flow).alias("flow"),
            pl.lit(cc, dtype=algorithm).alias("cc"),
            pl.all(),
        )
        for name, cc in algorithms.items()
    ]
    return pl.concat(labelled)


def _series(report: Report, *, taken: bool) -> pl.DataFrame:
    """The samples of all connections of a transfer, one after the other."""
    frame = pl.DataFrame(report.monitor.series())
    parts = []
    passed: dict[str, float] = dict.fromkeys(("t", *_COUNTS), 0.0)
    for part in frame.partition_by("connection", maintain_order=True):
        moved = part.with_columns(pl.col(name) + passed[name] for name in passed)
        passed = {name: moved[name][-1] for name in passed}
        parts.append(moved)
    whole = pl.concat(parts)
    source, copy = ("received", "delivered") if taken else ("delivered", "received")
    whole = whole.with_columns(pl.col(source).alias(copy))
    return whole.select(
        pl.col("t"),
        *(pl.col(name).cast(pl.Float32).fill_nan(None) for name in _FLOATS),
        pl.col("in_flight").cast(pl.UInt32),
        *(pl.col(name).cast(pl.UInt64) for name in _COUNTS),
        pl.col("ca_state").cast(pl.UInt8),
        pl.col("timeouts", "recoveries").cast(pl.UInt32),
    )


def _internals(report: Report) -> pl.DataFrame:
    rows = report.monitor.internals()
    schema = {"connection": pl.UInt64, "t": pl.Float64, "name": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(pl.col("name").cast(pl.Categorical))
    # Times of connections that broke off are not on the clock of the last one.
    last = frame["connection"].max() if frame.height else 0
    return frame.filter(pl.col("connection") == last).drop("connection")


def _end(series: pl.DataFrame) -> pl.DataFrame:
    """The row of a flow: the last sample's counters."""
    last = series.tail(1)
    return last.select(
        pl.lit(0.0).alias("start"),
        pl.lit(0.0).alias("begin"),
        pl.col("t").alias("end"),
        pl.col("t").alias("completed"),
        *(pl.col(name) for name in _COUNTS),
        pl.col("timeouts", "recoveries"),
        pl.lit(0, dtype=pl.UInt32).alias("spurious"),
        pl.lit(0, dtype=pl.UInt64).alias("marked"),
        pl.col("min_rtt").cast(pl.Float64).alias("base_rtt"),
        *(pl.lit(None, dtype=pl.Float64).alias(name) for name in _UNKNOWN),
        pl.lit(series["rtt"].mean(), dtype=pl.Float64).alias("rtt_mean"),
        pl.lit(series["rtt"].count(), dtype=pl.UInt64).alias("rtt_samples"),
    )


_SHORTEST: Final = 0.001
"""The shortest round-trip time if none was measured, s."""

_LINKS: Final[dict[str, Any]] = dict.fromkeys(COLUMNS["links"], pl.UInt64) | {
    "link": pl.Enum(["path"]),
    "t": pl.Float64,
    "queue_packets": pl.UInt32,
}
"""The table of links, about which nothing is measured."""
