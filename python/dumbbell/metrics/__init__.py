"""Metrics: what a run is judged by, convergence, and intervals of what varies with the seed.

Every function says its formula, its unit and where it comes from; RFC 5166 ("Metrics for the
Evaluation of Congestion Control Mechanisms") gives the frame. A function that takes a `Result`
gives one row per seed and flow (or link), and never mixes seeds.
"""

from dumbbell.metrics.convergence_times import (
    convergence,
    crossing_time,
    fair_time,
    share_variance,
)
from dumbbell.metrics.fairness import (
    fairness,
    harm,
    jain,
    jain_over_time,
    shares_by_half,
    with_least,
)
from dumbbell.metrics.intervals import Estimate, mean, means_over_seeds, median
from dumbbell.metrics.links import drain_times, link_summary, link_windows, utilisation
from dumbbell.metrics.media import FRAME_METRICS, frame_delays, frame_summary
from dumbbell.metrics.rates import (
    Runs,
    SampledRuns,
    goodput,
    throughput,
    whole_width,
    window_width,
    windows,
)
from dumbbell.metrics.summaries import (
    FLOW_METRICS,
    RUN_METRICS,
    group_throughput,
    over_flows,
    queueing_delay,
    retransmission_share,
    run_summary,
    summary,
)
from dumbbell.metrics.transfers import (
    TRANSFER_METRICS,
    competing,
    completion_times,
    responsiveness,
    survival,
    transfer_summary,
)
from dumbbell.metrics.video import VIDEO_METRICS, video_summary

LISTED = (
    throughput,
    goodput,
    group_throughput,
    utilisation,
    queueing_delay,
    retransmission_share,
    jain,
    fairness,
    jain_over_time,
    shares_by_half,
    harm,
    crossing_time,
    fair_time,
    share_variance,
    completion_times,
    transfer_summary,
    responsiveness,
    frame_delays,
    frame_summary,
    video_summary,
)
"""The metrics that `dumbbell list` and the reference show."""

__all__ = [
    "FLOW_METRICS",
    "FRAME_METRICS",
    "LISTED",
    "RUN_METRICS",
    "TRANSFER_METRICS",
    "VIDEO_METRICS",
    "Estimate",
    "Runs",
    "SampledRuns",
    "competing",
    "completion_times",
    "convergence",
    "crossing_time",
    "drain_times",
    "fair_time",
    "fairness",
    "frame_delays",
    "frame_summary",
    "goodput",
    "group_throughput",
    "harm",
    "jain",
    "jain_over_time",
    "link_summary",
    "link_windows",
    "mean",
    "means_over_seeds",
    "median",
    "over_flows",
    "queueing_delay",
    "responsiveness",
    "retransmission_share",
    "run_summary",
    "share_variance",
    "shares_by_half",
    "summary",
    "survival",
    "throughput",
    "transfer_summary",
    "utilisation",
    "video_summary",
    "whole_width",
    "window_width",
    "windows",
    "with_least",
]
