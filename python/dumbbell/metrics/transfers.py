"""How long transfers took: completion times and slowdown of flows that consist of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.experiment.quantities import TIME
from dumbbell.metrics.rates import FLOW

if TYPE_CHECKING:
    from dumbbell.metrics.rates import SampledRuns

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
    the handshake, one for the data, and the time of its bytes. Null for a transfer that is not
    complete when the run ends, and the slowdown too without a link that has a rate. Source: the
    slowdown of the literature on flow completion times, such as pFabric (SIGCOMM 2013, section
    5.2).

    Returns:
        Columns seed, flow, cc, start (s), bytes, took (s), slowdown; a row for every transfer that
        started.
    """
    if not result.transfers.width:
        return pl.DataFrame(schema=_SCHEMA)
    rates = _path_rates(result)
    took = pl.col("completed") - pl.col("start")
    idle = 2 * pl.col("base_rtt") + 8 * pl.col("bytes") / pl.col("rate")
    of_flows = result.flows.select("seed", "flow", "base_rtt").with_columns(
        rate=pl.col("flow").cast(pl.String).replace_strict(rates, return_dtype=pl.Float64)
    )
    joined = result.transfers.join(of_flows, on=["seed", "flow"], maintain_order="left")
    return joined.select(*FLOW, "start", "bytes", took=took, slowdown=took / idle)


def transfer_summary(result: SampledRuns) -> pl.DataFrame:
    """One row per seed and flow of many transfers.

    Formulas: of `completion_times`, the median, the 95th and the 99th percentile (interpolated),
    and of the slowdown the mean and the 99th percentile, over the transfers that are complete;
    their share among all that started; the load offered, ``8 * sum(bytes) / (rate * span)`` of all
    that started, and the load carried, of the bytes that arrived, where ``rate`` is that of the
    slowest link of the path, and ``span`` lasts from the flow's start to its end. Transfers that
    are not complete count in no percentile: with a load near 1 these are too low.

    Returns:
        Columns seed, flow, cc, transfers, completed_share (0 to 1), completion_p50, completion_p95,
        completion_p99 (s), slowdown_mean, slowdown_p99, load_offered, load_carried (1 is the
        whole rate).
    """
    took, slowdown, complete = pl.col("took"), pl.col("slowdown"), pl.col("took").is_not_null()
    times = completion_times(result).group_by(FLOW, maintain_order=True)
    each = times.agg(
        transfers=pl.len(),
        completed_share=complete.mean(),
        completion_p50=took.median(),
        completion_p95=took.quantile(0.95, "linear"),
        completion_p99=took.quantile(0.99, "linear"),
        slowdown_mean=slowdown.mean(),
        slowdown_p99=slowdown.quantile(0.99, "linear"),
        offered=pl.col("bytes").sum(),
    )
    rate = (
        pl.col("flow")
        .cast(pl.String)
        .replace_strict(_path_rates(result), return_dtype=pl.Float64, default=None)
    )
    bits = rate * (pl.col("end") - pl.col("start")) / 8
    spans = result.flows.select("seed", "flow", "received", bits=bits)
    return each.join(spans, on=["seed", "flow"], maintain_order="left").select(
        *FLOW,
        *TRANSFER_METRICS[:-2],
        load_offered=pl.col("offered") / pl.col("bits"),
        load_carried=pl.col("received") / pl.col("bits"),
    )


_SCHEMA: Final = {
    "seed": pl.UInt64,
    "flow": pl.String,
    "cc": pl.String,
    "start": pl.Float64,
    "bytes": pl.UInt64,
    "took": pl.Float64,
    "slowdown": pl.Float64,
}


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
