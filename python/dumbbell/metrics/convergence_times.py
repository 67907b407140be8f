"""When flows that started at different times come to share a link, and how well they go on.

Choi, Kim and Lee ("Evaluation of the Convergence Characteristics between Flows for Various TCP
Congestion Control Schemes using Mininet") take the first time, counted from the start of the
second flow, at which the two congestion windows cross while both are close to their long-run
average: `crossing_time`. They do not say how close; `CLOSE` does here. The standard definition,
reported beside it, is `fair_time`: when Jain's index reaches 0.95 and stays there for 10 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view

from dumbbell.metrics.rates import SampledRuns, windows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


CLOSE: Final = 0.25
"""A window is close to its average if it differs by no more than this share of the average."""

AVERAGE: Final = 60.0
"""The long-run average of a window is its mean over the last this many seconds."""

SMOOTH: Final = 1.0
"""Windows are smoothed by a running median of this many seconds, so that what lasts less than half
of it (BBR's ProbeRTT: 200 ms at a window of 4 packets) neither crosses nor leaves the average."""

FAIR: Final = 0.95
"""Jain's index at which two flows count as sharing fairly."""

HOLD: Final = 10
"""How many windows in a row the index must stay there."""


def crossing_time(
    t: ArrayLike,
    earlier: ArrayLike,
    later: ArrayLike,
    start: float,
    *,
    settled: float | None = None,
    close: float = CLOSE,
) -> float | None:
    """Convergence (a): when two congestion windows first cross near their averages.

    Both windows are smoothed by a running median over `SMOOTH` seconds. The answer is the first
    sample after `start` where the sign of ``later - earlier`` differs from that of the sample
    before, and each smoothed window lies within ``close`` (25 %) of the mean of the unsmoothed
    one over the last `AVERAGE` (60) seconds. Reno's and CUBIC's sawtooth stays within 25 % of its
    mean for most of a period, and leaves it only around its ends. A window that shoots through its
    average in slow start is not close to it in the paper's sense: what counts begins `SMOOTH`
    after the second flow left slow start.

    Args:
        t: Sample times, evenly spaced, s.
        earlier: Congestion window of the flow that started first, packets.
        later: Congestion window of the flow that started second, packets; NaN before it started.
        start: When the second flow started, s.
        settled: When the second flow left slow start, s; None for one without.
        close: How far from its average a window may be, as a share of the average.

    Returns:
        Seconds from `start`, or None if the windows never cross so.
    """
    times = np.asarray(t, dtype=np.float64)
    there = times >= start
    if int(there.sum()) < 2:
        return None
    times = times[there]
    step = (times[-1] - times[0]) / (len(times) - 1)
    reach = round(SMOOTH / step / 2)
    near = times >= (-np.inf if settled is None else settled + SMOOTH)
    smoothed = []
    for cwnd in (earlier, later):
        window = np.asarray(cwnd, dtype=np.float64)[there]
        mean = window[times >= times[-1] - AVERAGE].mean()
        if not np.isfinite(mean):
            return None  # the flow ended earlier
        padded = np.pad(window, reach, constant_values=np.nan)
        smooth = np.nanmedian(sliding_window_view(padded, 2 * reach + 1), axis=1)
        near &= np.abs(smooth - mean) <= close * mean
        smoothed.append(smooth)
    sign = np.sign(smoothed[1] - smoothed[0])
    crossed = np.concatenate(([False], (sign[1:] != sign[:-1]) & (sign[:-1] != 0)))
    found = np.flatnonzero(crossed & near)
    return float(times[found[0]] - start) if found.size else None


def fair_time(rates: ArrayLike, *, width: float = 1.0) -> float | None:
    """Convergence (b): when Jain's index of throughput reaches 0.95 and stays there for 10 s.

    Args:
        rates: Throughput of every flow (columns) in windows back to back (rows), the first of
            which begins when the last flow starts; any unit.
        width: The length of a window, s.

    Returns:
        Seconds from the start of the last flow to the beginning of the first window from which the
        index stays at or above 0.95 for 10 windows, or None if it never does. Later windows in
        which no flow has any throughput, as while a link fails, are passed over. The resolution is
        the width of a window: 0 means that the first window is fair already.
    """
    x = np.asarray(rates, dtype=np.float64)
    squares = x.shape[1] * (x * x).sum(axis=1)
    if len(x) < HOLD:
        return None
    idle = ~(squares > 0)
    fair = (x.sum(axis=1) ** 2 >= FAIR * squares) | idle
    held = sliding_window_view(fair, HOLD).all(axis=1)
    found = np.flatnonzero(held & ~idle[: 1 - HOLD])
    return float(found[0] * width) if found.size else None


def share_variance(rates: ArrayLike) -> float | None:
    """Stability: the variance of the first flow's share of the throughput, window by window.

    Formula: ``var(x_1 / sum x)`` over the windows after convergence (population variance). 0 is
    perfectly stable; two flows that took turns would have 0.25. None without a window.

    Args:
        rates: Throughput of every flow (columns) in windows (rows); any unit.
    """
    x = np.asarray(rates, dtype=np.float64)
    if x.size == 0:
        return None
    total = x.sum(axis=1)
    share = x[total > 0, 0] / total[total > 0]
    return float(share.var()) if share.size else None


def convergence(
    result: SampledRuns, earlier: str | None = None, later: str | None = None
) -> pl.DataFrame:
    """How two flows of an experiment converge, seed by seed.

    Args:
        result: The runs.
        earlier: The flow that starts first; the first in the file if it is not given.
        later: The flow that starts second; the second in the file if it is not given.

    Returns:
        Columns seed, crossing (definition a, s), fair (definition b, s), share_variance (over the
        1 s windows after convergence by definition b, to the end); null where there is none. Times
        count from the start of `later`. That of definition b is a whole number of 1 s windows: 0
        means that both had a fair share in the first second already. A window in which only one
        of them is active is not fair.

    Raises:
        ValueError: If there is no such flow, or the samples of the result are not 1 s or a whole
            part of it from each other.
    """
    names = result.flow_names
    if len(names) < 2:
        raise ValueError("convergence takes two flows, and there is one")
    pair = [earlier or names[0], later or names[1]]
    for name in pair:
        if name not in names:
            raise ValueError(f'there is no flow "{name}"; there are {", ".join(names)}')
    if pair[0] == pair[1]:
        raise ValueError(f'convergence takes two flows, and "{pair[0]}" is one')
    starts = result.flows.filter(pl.col("flow") == pair[1]).select("seed", since="start")
    rates = windows(result, since=starts, whole=True)
    tables = [table.filter(pl.col("flow").is_in(pair)) for table in (result.series, rates)]
    parts = [(table.clear(), table.partition_by("seed", as_dict=True)) for table in tables]
    rows = []
    for seed, start in starts.iter_rows():
        series, shares = (of_seed.get((seed,), empty) for empty, of_seed in parts)
        rows.append((seed, *_converge(series, shares, pair, start)))
    columns = dict.fromkeys(("crossing", "fair", "share_variance"), pl.Float64)
    return pl.DataFrame(rows, schema={"seed": pl.UInt64, **columns}, orient="row")


def _converge(
    series: pl.DataFrame, rates: pl.DataFrame, pair: list[str], start: float
) -> tuple[float | None, float | None, float | None]:
    """Of one run: the times, and the stability, of `convergence`."""
    cwnd = series.pivot("flow", pair, index="t", values="cwnd").sort("t")
    later = series.filter((pl.col("flow") == pair[1]) & pl.col("ssthresh").is_finite())
    settled = float(later["t"][0]) if later.height else None
    crossing = crossing_time(cwnd["t"], cwnd[pair[0]], cwnd[pair[1]], start, settled=settled)
    shares = (
        rates.pivot("flow", pair, index="window", values="throughput")
        .sort("window")
        .select(pair)
        .filter(pl.any_horizontal(pl.all().is_not_null()))  # not after the end of both
        .fill_null(0.0)
        .to_numpy()
    )
    fair = fair_time(shares)
    return crossing, fair, None if fair is None else share_variance(shares[int(fair) :])
