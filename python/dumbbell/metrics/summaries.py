"""What a run is judged by, in one table: of its flows, of groups of them, of the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics.fairness import fairness
from dumbbell.metrics.rates import FLOW, Runs, rates_between

if TYPE_CHECKING:
    from collections.abc import Sequence


def queueing_delay(result: Runs) -> pl.DataFrame:
    """How long data packets waited: their one-way delay beyond the path's propagation delay.

    Formula: over all data packets of a flow that arrived, ``arrival - departure - base``, where
    ``base`` is the propagation delay: the time that a packet itself takes to be sent, 12 ms for
    1500 bytes at 1 Mbit/s, counts as waiting. Its mean, and its 95th percentile from a histogram
    of all packets (not of samples) that tells delays apart by an eighth. Source: RFC 5166,
    section 2.2.

    Returns:
        Columns seed, flow, cc, queue_delay_mean, queue_delay_p95 (s).
    """
    return result.flows.select(*FLOW, *_DELAYS)


_DELAYS: Final = ("queue_delay_mean", "queue_delay_p95")
_RETRANSMITTED: Final = (pl.col("retransmitted") / pl.max_horizontal("sent", 1)).alias(
    "retransmission_share"
)
FLOW_METRICS: Final = ("throughput", "goodput", *_DELAYS, "retransmission_share")
"""The metrics of a flow."""

RUN_METRICS: Final = (
    *("throughput", "goodput", "utilisation", *_DELAYS, "retransmission_share"),
    *("jain", "dropped", "lost"),
)
"""The metrics of a run."""


def retransmission_share(result: Runs) -> pl.DataFrame:
    """The share of the data packets sent that were retransmissions.

    Formula: ``retransmitted / sent``, both counting packets; 0 for a flow that sent nothing.
    Source: RFC 5166, section 2.3 (loss rates), as the sender sees them.

    Returns:
        Columns seed, flow, cc, retransmission_share (0 to 1).
    """
    return result.flows.select(*FLOW, _RETRANSMITTED)


def summary(result: Runs) -> pl.DataFrame:
    """One row per seed and flow with all that flows are judged by.

    Returns:
        Columns seed, flow, cc, throughput, goodput (bit/s), queue_delay_mean, queue_delay_p95 (s),
        retransmission_share (0 to 1), and those of `Result.flows`.
    """
    rates = rates_between(result, {"delivered": "throughput", "received": "goodput"})
    of_flows = result.flows.select(
        "seed", "flow", *_DELAYS, _RETRANSMITTED, pl.all().exclude(*FLOW, *_DELAYS)
    )
    return rates.join(of_flows, on=["seed", "flow"], maintain_order="left")


def group_throughput(flows: pl.DataFrame, by: Sequence[str] = ("seed",)) -> pl.DataFrame:
    """Throughput and goodput of a group of flows, however long each of them lives.

    Formula: ``8 * sum(bytes) / (max(end) - min(begin))``: the bytes that each flow delivered while
    it was active and counted, over the time from the first begin to the last end. A sum of rates
    over different spans can exceed the capacity of the flows' paths; this rate cannot. Source: RFC
    5166, section 2.1.

    Args:
        flows: Rows of `summary`.
        by: The columns that name a group.

    Returns:
        Columns `by`, throughput, goodput (bit/s); null for a group in which no flow was active.
    """
    return flows.group_by(by, maintain_order=True).agg(_GROUP_RATES)


_ACTIVE: Final = pl.col("throughput").is_not_null()
_SPAN: Final = pl.col("end").filter(_ACTIVE).max() - pl.col("begin").filter(_ACTIVE).min()
_GROUP_RATES: Final = [
    ((pl.col(rate) * (pl.col("end") - pl.col("begin"))).sum() / _SPAN).alias(rate)
    for rate in ("throughput", "goodput")
]


def over_flows(flows: pl.DataFrame, by: Sequence[str] = ("seed",)) -> pl.DataFrame:
    """What groups of flows achieved together, one row a group.

    Args:
        flows: Rows of `summary`.
        by: The columns that name a group.

    Returns:
        Columns `by`, throughput, goodput (bit/s, see `group_throughput`), queue_delay_mean,
        queue_delay_p95 (means over the flows, s), retransmission_share (of all packets of these
        flows).
    """
    sent = pl.max_horizontal(pl.col("sent").sum(), 1)
    return flows.group_by(by, maintain_order=True).agg(
        *_GROUP_RATES,
        pl.col(*_DELAYS).mean(),
        retransmission_share=pl.col("retransmitted").sum() / sent,
    )


def run_summary(result: Runs, flows: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """One row per seed with all that a run is judged by.

    Args:
        result: The runs.
        flows: Their `summary`.
        links: Their `link_summary`.

    Returns:
        Columns seed and `RUN_METRICS`: those of `over_flows`; utilisation of the link that is used
        most; dropped, lost (packets, over all links); jain, as `fairness` has it.
    """
    of_links = links.group_by("seed").agg(
        pl.col("utilisation").max(), pl.col("dropped", "lost").sum()
    )
    joined = over_flows(flows)
    for table in (of_links, fairness(result)):
        joined = joined.join(table, on="seed", how="left", maintain_order="left")
    return joined
