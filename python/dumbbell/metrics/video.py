"""How a video played: its bitrate, stalls, switches and startup delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics.rates import FLOW, MICRO, no_rows

if TYPE_CHECKING:
    from dumbbell.metrics.rates import SampledRuns

VIDEO_METRICS: Final = (
    *("segments", "bitrate_mean", "startup_delay", "stalls", "stall_time", "switches"),
)
"""The metrics of a flow with a video client."""

_OTHERS: Final = dict.fromkeys(VIDEO_METRICS, pl.Float64)


def video_summary(result: SampledRuns) -> pl.DataFrame:
    """One row per seed and flow with a video client.

    Formulas, over the segments that are complete: their number; the mean of their rates; the time
    from the flow's start until playback starts, null if it never does; the number and the sum of
    stalls, in which there was nothing to play after that; and how often the rate of a segment
    differs from that of the one before. A stall that lasts until the flow's end counts until then.
    Segments requested in the warm-up count for the startup delay alone. Source: Huang et al., "A
    buffer-based approach to rate adaptation", SIGCOMM 2014.

    Returns:
        Columns seed, flow, cc, segments, bitrate_mean (bit/s), startup_delay (s), stalls,
        stall_time (s), switches.
    """
    if not result.segments.width:
        return no_rows(result.flows, _OTHERS)
    return video_of(result.segments, result.flows)


def video_of(segments: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """`video_summary` of rows of segments; `flows` are those of a result."""
    spans = flows.select("seed", "flow", "begin", "end", flow_start="start")
    known = segments.join(spans, on=["seed", "flow"], maintain_order="left")
    completed, is_playing = pl.col("completed"), pl.col("playing") > 0
    counts = completed.is_not_null() & (pl.col("start") >= pl.col("begin"))
    rate, stalled = pl.col("rate").filter(counts), pl.col("stalled").filter(counts)
    empty = (completed + pl.col("buffer")).filter(is_playing).last()
    last = (pl.col("end").first() - empty.clip(pl.col("begin").first())).clip(0).fill_null(0.0)
    return known.group_by(FLOW, maintain_order=True).agg(
        segments=counts.sum(),
        bitrate_mean=rate.mean(),
        startup_delay=completed.filter(is_playing).min() - pl.col("flow_start").first(),
        stalls=(stalled > 0).sum() + (last > MICRO).cast(pl.UInt32),
        stall_time=stalled.sum() + last,
        switches=(rate.diff() != 0).sum(),
    )
