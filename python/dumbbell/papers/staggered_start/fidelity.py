"""The simulator beside the kernel: the same scenarios, the same counters, sampled alike.

For every flow: throughput, from what was acknowledged; mean RTT, over samples of the smoothed RTT;
retransmitted packets; and, where a flow begins alone, how slow start ended, as the first
``ssthresh`` that was set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.papers.staggered_start import reference

if TYPE_CHECKING:
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result

TARGETS: Final = {
    "throughput": 0.10,
    "rtt": 0.10,
    "retransmitted": 0.25,
    "slow_start_exit": 0.10,
}
"""How far the simulator may be from the kernel, as a share of what the kernel did."""


def compare(runs: Runs) -> pl.DataFrame:
    """All measured scenarios, flow by flow and quantity by quantity.

    Returns:
        Columns scenario, cc, flow, quantity (a key of `TARGETS`); linux, linux_low, linux_high
        (mean and range over the measured runs); simulated, low, high (mean and range over the
        seeds); ratio (simulated over linux, null if linux is 0); verdict: ``"within"`` the
        target; ``"chaotic"`` if it is not, but neither are the measured runs among themselves:
        their range is wider than the target; or ``"off"``.
    """
    rows = []
    for cc in reference.MEASURED:
        rows.append(_beside("pair", cc, runs[f"measured-{cc}"], reference.pair(cc)))
        for queue in reference.QUEUES:
            simulated = runs[f"single-{cc}-{queue:g}"]
            measured = reference.single(cc, queue)
            rows.append(_beside(f"single, {queue:g} BDP", cc, simulated, measured))
    return pl.concat(rows)


def per_flow(result: Result) -> pl.DataFrame:
    """The quantities of `TARGETS` for every seed and flow: bit/s, s, packets, packets."""
    there = result.series.filter(pl.col("delivered") > 0)
    starts = result.flows.select("seed", "flow", "start")
    since = pl.col("t") - pl.col("start")
    left = pl.col("ssthresh").is_finite() & (pl.col("start") < 1.0)
    return (
        there.join(starts, on=["seed", "flow"])
        .group_by("seed", "flow", maintain_order=True)
        .agg(
            throughput=8.0 * pl.col("delivered").last() / since.last(),
            rtt=pl.col("srtt").mean().cast(pl.Float64),
            retransmitted=pl.col("retransmitted").last().cast(pl.Float64),
            slow_start_exit=pl.col("ssthresh").filter(left).first().cast(pl.Float64),
        )
    )


def _beside(scenario: str, cc: str, simulated: Result, measured: Result) -> pl.DataFrame:
    ours, theirs = _spread(simulated), _spread(measured)
    both = theirs.rename({"mean": "linux", "low": "linux_low", "high": "linux_high"}).join(
        ours.rename({"mean": "simulated"}), on=["flow", "quantity"], maintain_order="left"
    )
    target = pl.col("quantity").replace_strict(TARGETS, return_dtype=pl.Float64)
    near = (pl.col("simulated") - pl.col("linux")).abs() <= target * pl.col("linux")
    chaotic = pl.col("linux_high") - pl.col("linux_low") > target * pl.col("linux")
    return both.select(
        pl.lit(scenario).alias("scenario"),
        pl.lit(cc).alias("cc"),
        pl.all(),
        ratio=pl.when(pl.col("linux") > 0).then(pl.col("simulated") / pl.col("linux")),
        verdict=pl.when(near)
        .then(pl.lit("within"))
        .when(chaotic)
        .then(pl.lit("chaotic"))
        .otherwise(pl.lit("off")),
    )


def _spread(result: Result) -> pl.DataFrame:
    long = per_flow(result).unpivot(index=["seed", "flow"], variable_name="quantity").drop_nulls()
    return (
        long.with_columns(pl.col("flow").cast(pl.String))
        .group_by("flow", "quantity", maintain_order=True)
        .agg(
            mean=pl.col("value").mean(),
            low=pl.col("value").min(),
            high=pl.col("value").max(),
        )
    )
