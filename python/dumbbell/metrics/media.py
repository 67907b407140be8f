"""How media arrived: frame delays, frames that are lost or late, and the rate of the media."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.metrics.rates import FLOW, no_rows

if TYPE_CHECKING:
    from dumbbell.metrics.rates import SampledRuns

FRAME_METRICS: Final = (
    *("frames", "media_rate", "frame_delay_mean", "frame_delay_p95", "frame_delay_p99"),
    *("frames_lost", "frames_late"),
)
"""The metrics of a flow of media."""

LATE: Final = 0.4
"""A frame is late above this delay, s: the limit of one-way delay in ITU-T G.114."""

IN_TRANSIT: Final = 1.0
"""An incomplete frame that was captured within so long before the end may still arrive, s."""

_OTHERS: Final = {
    "start": pl.Float64,
    "bytes": pl.UInt64,
    "delay": pl.Float64,
}


def frame_delays(result: SampledRuns) -> pl.DataFrame:
    """The delay of each frame of media.

    Formula: ``delay = completed - start``, from the capture until the last packet of the frame
    arrives: the time in the sender's queue, in the network, and of pacing. Null for a frame that is
    not complete when the run ends; nothing is retransmitted.

    Returns:
        Columns seed, flow, cc, start (s), bytes, delay (s); a row for every frame.
    """
    if not result.frames.width:
        return no_rows(result.flows, _OTHERS)
    return delays_of(result.frames)


def delays_of(frames: pl.DataFrame) -> pl.DataFrame:
    """`frame_delays` of rows of frames."""
    return frames.select(*FLOW, "start", "bytes", delay=pl.col("completed") - pl.col("start"))


def frame_summary(result: SampledRuns) -> pl.DataFrame:
    """One row per seed and flow of media.

    Formulas: of `frame_delays` the mean, the 95th and the 99th percentile (interpolated) over the
    frames that are complete; the shares of all frames that are lost, which are not complete
    although captured more than a second before the end, and late, complete after more than 400 ms
    (ITU-T G.114); and the rate of the media in complete frames, ``8 * sum(bytes) / span``, where
    ``span`` lasts from the flow's start to its end. Frames captured in the warm-up do not count.

    Returns:
        Columns seed, flow, cc, frames, media_rate (bit/s), frame_delay_mean, frame_delay_p95,
        frame_delay_p99 (s), frames_lost, frames_late (0 to 1).
    """
    return frames_of(frame_delays(result), result.flows)


def frames_of(delays: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """`frame_summary` of rows of `delays_of`; `flows` are those of a result."""
    groups = counted_frames(delays, flows).group_by(FLOW, maintain_order=True)
    return groups.agg(*over_frames()).select(*FLOW, *FRAME_METRICS)


def counted_frames(delays: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The rows of `delays_of` that count, with the ends and spans of their flows."""
    spans = flows.select("seed", "flow", "begin", "end", span=pl.col("end") - pl.col("begin"))
    known = delays.join(spans, on=["seed", "flow"], maintain_order="left")
    return known.filter(pl.col("start") >= pl.col("begin"))


def over_frames() -> list[pl.Expr]:
    """The metrics of a group of frames, of rows of `counted_frames`."""
    delay = pl.col("delay")
    is_over = pl.col("start") < pl.col("end") - IN_TRANSIT
    arrived = pl.col("bytes").filter(delay.is_not_null()).sum()
    return [
        pl.len().alias("frames"),
        (8 * arrived / pl.col("span").max()).alias("media_rate"),
        delay.mean().alias("frame_delay_mean"),
        delay.quantile(0.95, "linear").alias("frame_delay_p95"),
        delay.quantile(0.99, "linear").alias("frame_delay_p99"),
        (delay.is_null() & is_over).mean().alias("frames_lost"),
        (delay > LATE).fill_null(value=False).mean().alias("frames_late"),
    ]
