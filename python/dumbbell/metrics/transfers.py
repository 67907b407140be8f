"""How long transfers took: completion times and slowdown of flows that consist of many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.experiment.quantities import TIME
from dumbbell.metrics.rates import FLOW, no_rows

if TYPE_CHECKING:
    from dumbbell.metrics.rates import Runs, SampledRuns

TRANSFER_METRICS: Final = (
    *("transfers", "completed_share", "completion_p50", "completion_p95", "completion_p99"),
    *("slowdown_mean", "slowdown_p99", "load_offered", "load_carried"),
)
"""The metrics of a flow of many transfers."""


def completion_times(result: SampledRuns) -> pl.DataFrame:
    """How long each transfer took, and how many times as long as on an idle path.

    Formulas: ``took = completed - start``, from the first packet of the handshake until the last
    byte is acknowledged; ``slowdown = took / (2 * base_rtt + 8 * bytes / rate)``, where ``rate``
    is the mean rate of the slowest link of the path: no transfer is faster than a round trip for
    the handshake, one for the data, and the time of its bytes. A response to a request needs no
    handshake, so it is compared with one round trip. Null for a transfer that is not
    complete when the run ends, and the slowdown too without a link that has a rate. Source: the
    slowdown of the literature on flow completion times, such as pFabric (SIGCOMM 2013, section
    5.2).

    Returns:
        Columns seed, flow, cc, start (s), bytes, took (s), slowdown, idle (the time on an idle
        path, s), elapsed (`took`, or until the run's end, s); a row for every transfer that started
        after the warm-up.
    """
    if not result.transfers.width:
        return no_rows(result.flows, _OTHERS)
    return times_of(result.transfers, _with_paths(result))


def times_of(transfers: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """`completion_times` of rows of transfers; `flows` have the columns `PATH` too."""
    start = pl.col("start")
    took = pl.col("completed") - start
    idle = pl.col("round_trips") * pl.col("base_rtt") + 8 * pl.col("bytes") / pl.col("rate")
    elapsed = took.fill_null(pl.col("run_end") - start)
    of_flows = flows.select("seed", "flow", "begin", "base_rtt", *PATH)
    joined = transfers.join(of_flows, on=["seed", "flow"], maintain_order="left")
    counted = joined.filter(start >= pl.col("begin"))
    return counted.select(
        *FLOW, "start", "bytes", took=took, slowdown=took / idle, idle=idle, elapsed=elapsed
    )


def transfer_summary(result: SampledRuns) -> pl.DataFrame:
    """One row per seed and flow of many transfers.

    Formulas: of `completion_times`, the median, the 95th and the 99th percentile, and of the
    slowdown the 99th percentile; interpolated if all transfers are complete, otherwise by Kaplan
    and Meier: a transfer that is not complete at the end takes longer than until then. Infinite if
    the runs are too short for a percentile. The mean slowdown is that of the complete transfers.
    Their share among all that started. The load offered, ``8 * sum(bytes) / (rate * span)`` of all
    that started, where ``rate`` is that of the slowest link of the path, and ``span`` lasts from
    the flow's start to its end. The load carried, of the bytes that arrived, whose ``span`` lasts
    until the last transfer ends, if that is later. Both are of payload; the load of a flow's
    `arrivals` counts headers too. Transfers that the warm-up began count as carried only.
    Source: Kaplan, Meier: "Nonparametric Estimation from Incomplete Observations", JASA 53, 1958.

    Returns:
        Columns seed, flow, cc, transfers, completed_share (0 to 1), completion_p50, completion_p95,
        completion_p99 (s), slowdown_mean, slowdown_p99, load_offered, load_carried (1 is the
        whole rate).
    """
    return summary_of(completion_times(result), _with_paths(result))


def summary_of(times: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """`transfer_summary` of rows of `times_of`; `flows` have the columns `PATH` too."""
    each = times.group_by(FLOW, maintain_order=True).agg(
        *over_transfers(),
        offered=pl.col("bytes").sum(),
        last=(pl.col("start") + pl.col("elapsed")).max(),
    )
    paths = flows.select("seed", "flow", "received", "rate", "begin", "end")
    offered_in = pl.col("end") - pl.col("begin")
    carried_in = pl.max_horizontal("end", "last") - pl.col("begin")
    return each.join(paths, on=["seed", "flow"], maintain_order="left").select(
        *FLOW,
        *TRANSFER_METRICS[:-2],
        load_offered=8 * pl.col("offered") / (pl.col("rate") * offered_in),
        load_carried=8 * pl.col("received") / (pl.col("rate") * carried_in),
    )


def over_transfers() -> list[pl.Expr]:
    """The metrics of a group of transfers, of rows of `times_of`: all but the loads."""
    elapsed = pl.col("elapsed")
    return [
        pl.len().alias("transfers"),
        pl.col("took").is_not_null().mean().alias("completed_share"),
        _quantile(elapsed, 0.5).alias("completion_p50"),
        _quantile(elapsed, 0.95).alias("completion_p95"),
        _quantile(elapsed, 0.99).alias("completion_p99"),
        pl.col("slowdown").mean().alias("slowdown_mean"),
        _quantile(elapsed / pl.col("idle"), 0.99).alias("slowdown_p99"),
    ]


def _quantile(elapsed: pl.Expr, share: float) -> pl.Expr:
    """The time, or slowdown, within which this share of a group of transfers completes."""
    reached = survival(elapsed) <= 1 - share + _ROUNDING
    return (
        pl.when(_IS_COMPLETE.all() | elapsed.is_null().all())
        .then(elapsed.quantile(share, "linear"))
        .otherwise(_in_order(elapsed, elapsed).filter(reached).first().fill_null(math.inf))
    )


def survival(elapsed: pl.Expr) -> pl.Expr:
    """The share of transfers that is not complete after each `elapsed`, from the shortest on.

    The estimate of Kaplan and Meier, of rows of `completion_times`; where two are equal, one that
    is complete comes first.
    """
    ended = _in_order(_IS_COMPLETE, elapsed).cast(pl.Float64)
    at_risk = pl.len() - pl.int_range(pl.len())
    return (1 - ended / at_risk).cum_prod()


def _in_order(values: pl.Expr, elapsed: pl.Expr) -> pl.Expr:
    return values.sort_by([elapsed, ~_IS_COMPLETE])


_IS_COMPLETE: Final = pl.col("took").is_not_null()
_ROUNDING: Final = 1e-9
"""How far products of shares may be off."""


def responsiveness(result: SampledRuns) -> pl.DataFrame:
    """Round trips per minute of flows of transfers of a packet each: the latency under load.

    Formula: ``60 / TM``, where TM is the mean of the shortest 95 % of all ``took / n``, s. A
    transfer of one packet takes n = 2 round trips, one for the handshake and one for the data; a
    response to a request takes n = 1. Those that are not complete count as the longest. Source:
    draft-ietf-ippm-responsiveness, whose foreign probes the transfers are, and whose probes on a
    connection that exists the responses.

    Returns:
        Columns seed, flow, cc, rpm; a row for every flow whose largest transfer is at most
        `PROBE` bytes.
    """
    flow = pl.col("flow").cast(pl.String)
    trips = flow.replace_strict(_round_trips(result), return_dtype=pl.Float64).first()
    round_trip = pl.col("took").fill_null(math.inf).sort() / trips
    kept = (pl.len() * 0.95).ceil().cast(pl.UInt32)
    largest = pl.col("bytes").max().over(FLOW)
    probes = completion_times(result).filter(largest <= PROBE)
    rpm = 60 / round_trip.head(kept).mean()
    return probes.group_by(FLOW, maintain_order=True).agg(rpm=rpm)


def competing(result: Runs, flows: pl.DataFrame) -> pl.DataFrame:
    """The rows of flows that send what they can; those of transfers have a load of their own.

    `flows` is any table with the columns seed and flow.
    """
    return flows.join(result.of_transfers, on=["seed", "flow"], how="anti", maintain_order="left")


PROBE: Final = 1448
"""The largest transfer that fits into a packet, bytes."""

_OTHERS: Final = {
    "start": pl.Float64,
    "bytes": pl.UInt64,
    "took": pl.Float64,
    "slowdown": pl.Float64,
    "idle": pl.Float64,
    "elapsed": pl.Float64,
}

PATH: Final = ("rate", "round_trips", "run_end")
"""What completion times need of a flow beside its own columns: the mean rate of the slowest link of
the path (bit/s, null without), the round trips of a transfer on an idle path, the run's end (s)."""


def _with_paths(result: SampledRuns) -> pl.DataFrame:
    """The flows of a result with the columns `PATH`."""
    name = pl.col("flow").cast(pl.String)
    rate = name.replace_strict(_path_rates(result), return_dtype=pl.Float64, default=None)
    trips = name.replace_strict(_round_trips(result), return_dtype=pl.Float64, default=2.0)
    end = TIME.parse(result.experiment.duration) / 1e9
    return result.flows.with_columns(rate=rate, round_trips=trips, run_end=end)


def _round_trips(result: SampledRuns) -> dict[str, float]:
    """By flow, the round trips of a transfer on an idle path: without a handshake it is one."""
    experiment = result.experiment
    flows = zip(experiment.flows, experiment.flow_names(), strict=True)
    return {name: 2.0 if flow.app is None else 1.0 for flow, names in flows for name in names}


def _path_rates(result: SampledRuns) -> dict[str, float | None]:
    """By flow, the mean rate of the slowest link of its path, bit/s; None if none has a rate."""
    experiment = result.experiment
    duration = TIME.parse(experiment.duration) / 1e9
    names = [link.name for link in experiment.links]
    spans = pl.DataFrame({"seed": 0, "link": names, "begin": 0.0, "end": duration})
    bits = dict(zip(names, result.capacities(spans), strict=True))
    rates: dict[str, float | None] = {}
    for flow, copies in zip(experiment.flows, experiment.flow_names(), strict=True):
        crossed = [bits[link] for path in experiment.flow_paths(flow) for link in path]
        limits = [amount / duration for amount in crossed if amount is not None]
        rates |= dict.fromkeys(copies, min(limits, default=None))
    return rates
