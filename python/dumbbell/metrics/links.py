"""How links are used: utilisation, capacity over time, the delay of their queues."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from dumbbell.metrics.rates import MICRO, Moment, Runs, part_of

LINK: Final = ["seed", "link"]
"""The columns that name a link of a run."""

_MOST_STEPS: Final = 4000  # into how many steps of time the capacity of a link is divided, at most


def utilisation(
    result: Runs, *, since: Moment | None = None, until: Moment | None = None
) -> pl.DataFrame:
    """The share of a link's rate that was used, headers and retransmissions included.

    Formula: ``8 * (sent(end) - sent(begin)) / capacity``, where ``capacity`` is ``rate * (end -
    begin)``, or what a rate that varies or a trace lets pass in that time. It begins with the end
    of the warm-up unless `since` is given. From 0 s on the depth of a token bucket, which is full
    then, is added. Source: RFC 5166, section 2.1. Null for a link without a rate, and where nothing
    could pass.

    Returns:
        Columns seed, link, utilisation (0 to 1; a bucket that is not empty at a later `since` may
        let pass more than that).

    Raises:
        DumbbellError: If there is nothing between `since` and `until`, which are numbers of seconds
            or texts such as "30 s".
    """
    begin, end = part_of(result, since, until)
    links = _counted(result, begin)
    return _used(result, links if end is None else links.filter(pl.col("t") <= end + MICRO))


def _used(result: Runs, links: pl.DataFrame) -> pl.DataFrame:
    """The `utilisation` from the first to the last of some samples of each link."""
    t, sent = pl.col("t"), pl.col("sent_bytes")
    spans = links.group_by(LINK, maintain_order=True).agg(
        used=8 * (sent.last() - sent.first()), begin=t.first(), end=t.last()
    )
    share = pl.col("used") / pl.Series(result.capacities(spans), dtype=pl.Float64)
    return spans.select(*LINK, utilisation=share)


def _counted(result: Runs, since: float | None = None) -> pl.DataFrame:
    """The samples of links from a time on, or from the end of the warm-up."""
    if since is not None:
        return result.links.filter(pl.col("t") >= since - MICRO)
    links = result.links.join(result.warmups, on="seed", maintain_order="left")
    return links.filter(pl.col("t") >= pl.col("since") - MICRO).drop("since")


def link_summary(result: Runs) -> pl.DataFrame:
    """One row per seed and link: how it was used, how full it was, what did not get through.

    Formulas: `utilisation`; the mean of the sampled ``queue_bytes``; packets that the queue or its
    AQM dropped (dropped) and that were lost at random, from the end of the warm-up to the end.

    Returns:
        Columns seed, link, utilisation (0 to 1), queue_mean (bytes), dropped, lost (packets).
    """
    links, lost = _counted(result), pl.col("dropped", "lost")
    last = links.group_by(LINK, maintain_order=True).agg(
        pl.col("queue_bytes").mean().alias("queue_mean"), lost.last() - lost.first()
    )
    return _used(result, links).join(last, on=LINK, maintain_order="left")


def link_windows(result: Runs, *, width: float = 1.0) -> pl.DataFrame:
    """The capacity of each link and the rate of what it sent, in windows of time, back to back.

    Formulas: the bits that the link could send in the window, and those that it sent, headers and
    retransmissions included, over the length of the window.

    Args:
        result: The runs.
        width: The length of a window, s; the last one may be shorter.

    Returns:
        Columns seed, link, begin, t (the end of the window, s), capacity (null for a link without a
        rate; 0 in an outage), sent (bit/s).
    """
    t, sent = pl.col("t"), pl.col("sent_bytes").cast(pl.Int64)
    window = (t / width - MICRO).ceil()
    spans = (
        result.links.group_by(*LINK, window=window, maintain_order=True)
        .agg(t.last(), sent.last())
        .with_columns(
            begin=t.shift(1, fill_value=0.0).over(LINK),
            bits=8 * (sent - sent.shift(1, fill_value=0).over(LINK)),
        )
        .filter(t > pl.col("begin"))
    )
    bits = pl.Series(result.capacities(spans.with_columns(end="t")), dtype=pl.Float64)
    lasted, limited = t - pl.col("begin"), pl.lit(bits).is_not_null().any().over("link")
    capacity = pl.when(limited).then(pl.lit(bits).fill_null(0.0) / lasted)
    return spans.select(*LINK, "begin", "t", capacity=capacity, sent=pl.col("bits") / lasted)


def drain_times(result: Runs) -> pl.DataFrame:
    """How long each link takes to send what waits in its queue, sample by sample.

    This is the delay of a packet that arrives then at a first-in first-out queue. It follows from
    the bytes in the queue and from the capacity of the link from then on.

    Returns:
        Columns seed, link, t, drain (s; NaN where it is not known how long it takes).
    """
    tables = []
    for (seed, link), one in result.links.group_by(LINK, maintain_order=True):
        t = one["t"].to_numpy()
        grid = np.linspace(0.0, 2 * t[-1], _MOST_STEPS + 1)
        steps = pl.DataFrame({"seed": seed, "link": link, "begin": grid[:-1], "end": grid[1:]})
        bits = np.array(result.capacities(steps), dtype=np.float64)  # NaN for none
        capacity = np.concatenate(([0.0], np.nancumsum(bits)))
        queue = 8 * one["queue_bytes"].to_numpy()
        sent = np.interp(np.interp(t, grid, capacity) + queue, capacity, grid, right=np.nan)
        drain = np.where(queue > 0, sent - t, 0.0)
        tables.append(one.select(*LINK, "t", drain=pl.Series(drain)))
    return pl.concat(tables)
