"""What a run is judged by: rates, delays, losses, fairness, harm.

Every function says its formula, its unit and where it comes from; RFC 5166 ("Metrics for the
Evaluation of Congestion Control Mechanisms") gives the frame. A function that takes a `Result`
gives one row per seed and flow (or link), and never mixes seeds. For convergence see
`dumbbell.metrics.convergence_times`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import polars as pl

from dumbbell.experiment.quantities import TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dumbbell.experiment.model import Experiment


_MICRO: Final = 1e-6
"""Sample times are multiples of the sample interval but for rounding, s."""

FLOW: Final = ["seed", "flow", "cc"]
"""The columns that name a flow of a run."""


class Runs(Protocol):
    """What metrics look at: a `Result`, or anything with such tables of runs, told by `seed`."""

    @property
    def flows(self) -> pl.DataFrame:
        """As `Result.flows`."""

    @property
    def series(self) -> pl.DataFrame:
        """As `Result.series`."""

    @property
    def links(self) -> pl.DataFrame:
        """As `Result.links`."""

    def capacities(self, spans: pl.DataFrame) -> list[float | None]:
        """As `Result.capacities`."""


class SampledRuns(Runs, Protocol):
    """Runs of one experiment: a `Result`."""

    @property
    def experiment(self) -> Experiment:
        """As `Result.experiment`."""

    @property
    def seeds(self) -> list[int]:
        """As `Result.seeds`."""

    @property
    def flow_names(self) -> list[str]:
        """As `Result.flow_names`."""

    def of_seed(self, seed: int) -> Self:
        """As `Result.of_seed`."""


def throughput(result: Runs, *, since: float = 0.0, until: float | None = None) -> pl.DataFrame:
    """Payload that reached the receiver per second while the flow was active.

    Formula: ``8 * (delivered(end) - delivered(begin)) / (end - begin)``, in bit/s, from when the
    flow started (or `since`) to when it ended (or `until`). ``delivered`` counts data bytes that
    were acknowledged, in any order, retransmitted data once; between two samples it is taken to
    grow evenly. Rates over different spans do not add up: for several flows see
    `group_throughput`. Source: RFC 5166, section 2.1.

    Args:
        result: The runs.
        since: When to begin, s.
        until: When to stop, s; the end of the experiment if it is not given.

    Returns:
        Columns seed, flow, cc, throughput.
    """
    return _rates(result, {"delivered": "throughput"}, since, until)


def goodput(result: Runs, *, since: float = 0.0, until: float | None = None) -> pl.DataFrame:
    """Payload that the receiving application could read per second.

    Formula: as `throughput`, of ``received``: data bytes that arrived without a gap before them.
    Source: RFC 2647, section 3.17; RFC 5166, section 2.1.

    Returns:
        Columns seed, flow, cc, goodput (bit/s).
    """
    return _rates(result, {"received": "goodput"}, since, until)


def utilisation(result: Runs, *, since: float = 0.0, until: float | None = None) -> pl.DataFrame:
    """The share of a link's rate that was used, headers and retransmissions included.

    Formula: ``8 * (sent(end) - sent(begin)) / capacity``, where ``capacity`` is ``rate * (end -
    begin)``, or what a rate that varies or a trace lets pass in that time. From 0 s on the depth of
    a token bucket, which is full then, is added. Source: RFC 5166, section 2.1. Null for a link
    without a rate, and where nothing could pass.

    Returns:
        Columns seed, link, utilisation (0 to 1; a bucket that is not empty at a later `since` may
        let pass more than that).
    """
    t, sent = pl.col("t"), pl.col("sent_bytes")
    spans = (
        _between(result.links, since, until)
        .group_by("seed", "link", maintain_order=True)
        .agg(used=8 * (sent.last() - sent.first()), begin=t.first(), end=t.last())
    )
    share = pl.col("used") / pl.Series(result.capacities(spans), dtype=pl.Float64)
    return spans.select("seed", "link", utilisation=share)


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


def retransmission_share(result: Runs) -> pl.DataFrame:
    """The share of the data packets sent that were sent again.

    Formula: ``retransmitted / sent``, both counting packets; 0 for a flow that sent nothing.
    Source: RFC 5166, section 2.3 (loss rates), as the sender sees them.

    Returns:
        Columns seed, flow, cc, retransmission_share (0 to 1).
    """
    return result.flows.select(*FLOW, _RETRANSMITTED)


FLOW_METRICS: Final = ("throughput", "goodput", *_DELAYS, "retransmission_share")
"""The metrics of a flow."""

_RETRANSMITTED: Final = (pl.col("retransmitted") / pl.max_horizontal(pl.col("sent"), 1)).alias(
    "retransmission_share"
)


def jain(rates: Iterable[float]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything.

    Formula: ``(sum x)^2 / (n * sum x^2)``. Source: Jain, Chiu, Hawe: "A Quantitative Measure of
    Fairness and Discrimination for Resource Allocation in Shared Computer Systems", DEC-TR-301,
    1984. If nobody has anything, all are equal: 1.

    Raises:
        ValueError: If there is no rate, or one is negative or not a number.
    """
    shares = list(rates)
    if not shares or not all(rate >= 0 for rate in shares):
        raise ValueError("Jain's index needs at least one rate, and none of them negative or NaN")
    greatest = max(shares)
    if greatest == 0:
        return 1.0
    scaled = [rate / greatest for rate in shares]
    return sum(scaled) ** 2 / (len(scaled) * sum(x * x for x in scaled))


def fairness(result: Runs) -> pl.DataFrame:
    """Jain's index of the throughputs of all flows over the time in which all are there.

    Returns:
        Columns seed, jain; null where no time is common to all flows.
    """
    seeds = result.flows.group_by("seed", maintain_order=True)
    spans = seeds.agg(since=pl.col("start").max(), until=pl.col("end").min())
    since, until = pl.col("since"), pl.col("until")
    rates = _rates(result, {"delivered": "rate"}, since, until, spans.filter(until > since))
    shares = rates.group_by("seed").agg(pl.col("rate").fill_null(0.0))
    index = {seed: jain(rates) for seed, rates in shares.iter_rows()}
    rows = [{"seed": seed, "jain": index.get(seed)} for seed in spans["seed"]]
    return pl.DataFrame(rows, schema={"seed": pl.UInt64, "jain": pl.Float64})


def windows(
    result: SampledRuns, *, width: float = 1.0, since: float = 0.0, whole: bool = False
) -> pl.DataFrame:
    """Throughput and goodput in windows of time, back to back.

    Formula: as `throughput` and `goodput`, over ``(since + (k - 1) width, since + k width]`` for
    k = 1, 2, ..., or over the part of it in which the flow is active: the first window of a flow
    begins when it starts, and the last one ends when it ends. If less than half a window is left at
    the end, it belongs to the window before. A counter at the end of another window is that of the
    last sample in it.

    Args:
        result: The runs.
        width: The length of a window, s; a whole number of sample intervals, as `whole_width` is.
        since: Where the first window begins, s.
        whole: Whether to leave out the windows in which a flow starts or ends.

    Returns:
        Columns seed, flow, cc, window (k), t (the end of the window or of the flow, s), throughput,
        goodput (bit/s).

    Raises:
        ValueError: If `width` is not a whole number of sample intervals.
    """
    if not math.isclose(width, whole_width(result, width), rel_tol=_MICRO):
        every = result.experiment.sample
        problem = f"windows of {width:g} s are no whole number of samples, one every {every}"
        raise ValueError(f"{problem}; choose another width, or another `sample`")
    t, window = pl.col("t"), pl.col("window")
    number = ((t - since) / width - _MICRO).ceil().clip(lower_bound=0).cast(pl.Int64)
    ends = _last_windows(result, width, since, whole=whole)
    before = (
        result.series.lazy()
        .select(*FLOW, pl.col("delivered", "received").cast(pl.Int64), window=number)
        .group_by(*FLOW, "window", maintain_order=True)
        .last()
        .join(ends.select(*FLOW, "start", "end", last="window"), on=FLOW)
        .filter(window < pl.col("last"))
    )
    begin = since + width * (window - 1)
    late, early = pl.col("start") - begin, begin + width - pl.col("end")
    is_last = window == pl.col("last")
    active = width - late.clip(0, None) - pl.when(is_last).then(early).otherwise(0.0)
    counters = pl.col("delivered", "received")
    rates = counters - counters.shift(1, fill_value=0).over(FLOW)
    full = (late <= _MICRO) & (early <= _MICRO) if whole else True
    return (
        pl.concat([before, ends.with_columns(last=window).select(before.collect_schema().names())])
        .sort(*FLOW, "window")
        .with_columns((rates * (8 / active)).cast(pl.Float64), active=active)
        .filter(window >= 1, pl.col("active") > _MICRO, full)
        .with_columns(t=pl.when(is_last).then("end").otherwise(begin + width))
        .sort("seed", "window", "flow")
        .select(*FLOW, "window", "t", throughput="delivered", goodput="received")
        .collect()
    )


def _last_windows(result: SampledRuns, width: float, since: float, *, whole: bool) -> pl.LazyFrame:
    """For every flow that lived after `since` its last window, and its counters at its end.

    Columns: those of `FLOW`, start, end, window, delivered, received (bytes).
    """
    names = {"delivered": "delivered", "received": "received"}
    lived = pl.col("end") - pl.col("start")
    end = (pl.col("end") - since) / width
    number = (end - _MICRO).ceil()
    left = number if whole else number - (end < number - 0.5)
    first = ((pl.col("start") - since) / width + _MICRO).floor().clip(0, None) + 1
    return (
        _rates(result, names, 0.0, None)
        .lazy()
        .join(result.flows.lazy().select(*FLOW, "start", "end"), on=FLOW)
        .filter(lived > 0, pl.col("end") > since + _MICRO)
        .with_columns((pl.col(*names) * (lived / 8)).round().cast(pl.Int64))
        .with_columns(window=pl.max_horizontal(left, first).cast(pl.Int64))
    )


def window_width(result: SampledRuns) -> float:
    """The width of the windows in figures and reports, s: 1 s, or a 50th of a shorter run."""
    duration = TIME.parse(result.experiment.duration) / 1e9
    return whole_width(result, min(1.0, duration / 50))


def whole_width(result: SampledRuns, width: float) -> float:
    """The whole number of sample intervals that is nearest to `width`, at least one, s.

    Results that were sampled at no interval, as those of UDT transfers, have any width.
    """
    if result.experiment.sample is None:
        return width
    sample = TIME.parse(result.experiment.sample) / 1e9
    return max(round(width / sample), 1) * sample


def jain_over_time(result: SampledRuns, *, width: float = 1.0, since: float = 0.0) -> pl.DataFrame:
    """Jain's index of throughput, window by window, over the flows that are there throughout it.

    Args:
        result: The runs.
        width: The length of a window, s; as for `windows`.
        since: Where the first window begins, s.

    Returns:
        Columns seed, window, t (the end of the window, s), jain.

    Raises:
        ValueError: As `windows`.
    """
    x = pl.col("throughput")
    squares = x.len() * (x * x).sum()
    index = pl.when(squares > 0).then(x.sum() ** 2 / squares).otherwise(1.0)
    return (
        windows(result, width=width, since=since, whole=True)
        .with_columns(t=since + width * pl.col("window"))
        .group_by("seed", "window", "t", maintain_order=True)
        .agg(jain=index)
        .sort("seed", "window")
    )


def harm(alone: float, together: float, *, more_is_better: bool = True) -> float:
    """How much of its performance a flow loses to another one: 0 none, 1 all of it.

    Formula: ``(alone - together) / alone`` for what is better the more there is of it (throughput),
    ``(together - alone) / together`` for what is better the less there is (delay, loss). Negative
    if the flow is better off together. Source: Ware, Mukerjee, Seshan, Sherry: "Beyond Jain's
    Fairness Index: Setting the Bar For The Deployment of Congestion Control Algorithms",
    HotNets 2019, section 4.

    Args:
        alone: What the flow achieves by itself.
        together: What it achieves beside the other.
        more_is_better: Which of the two formulas it is.

    Raises:
        ValueError: If one of them is negative or not a number.
    """
    if not (alone >= 0 and together >= 0):
        raise ValueError("harm compares two measures, and none of them may be negative or NaN")
    whole = alone if more_is_better else together
    lost = alone - together if more_is_better else together - alone
    return lost / whole if whole else 0.0


def summary(result: Runs) -> pl.DataFrame:
    """One row per seed and flow with all that flows are judged by.

    Returns:
        Columns seed, flow, cc, throughput, goodput (bit/s), queue_delay_mean, queue_delay_p95 (s),
        retransmission_share (0 to 1), and those of `Result.flows`.
    """
    rates = _rates(result, {"delivered": "throughput", "received": "goodput"}, 0.0, None)
    of_flows = result.flows.select(
        "seed", "flow", *_DELAYS, _RETRANSMITTED, pl.all().exclude(*FLOW, *_DELAYS)
    )
    return rates.join(of_flows, on=["seed", "flow"], maintain_order="left")


def link_summary(result: Runs) -> pl.DataFrame:
    """One row per seed and link: how it was used, how full it was, what did not get through.

    Formulas: `utilisation`; the mean of the sampled ``queue_bytes``; packets that found the queue
    full (dropped) and that were lost at random, from beginning to end.

    Returns:
        Columns seed, link, utilisation (0 to 1), queue_mean (bytes), dropped, lost (packets).
    """
    last = result.links.group_by("seed", "link", maintain_order=True).agg(
        pl.col("queue_bytes").mean().alias("queue_mean"), pl.col("dropped", "lost").last()
    )
    return utilisation(result).join(last, on=["seed", "link"], maintain_order="left")


def group_throughput(flows: pl.DataFrame, by: Sequence[str] = ("seed",)) -> pl.DataFrame:
    """Throughput and goodput of a group of flows, however long each of them lives.

    Formula: ``8 * sum(bytes) / (max(end) - min(start))``: the bytes that each flow delivered while
    it was active, over the time from the first start to the last end. A sum of rates over
    different spans can exceed the capacity of the flows' paths; this rate cannot. Source: RFC 5166,
    section 2.1.

    Args:
        flows: Rows of `summary`.
        by: The columns that name a group.

    Returns:
        Columns `by`, throughput, goodput (bit/s); null for a group in which no flow was active.
    """
    return flows.group_by(by, maintain_order=True).agg(_GROUP_RATES)


_ACTIVE: Final = pl.col("throughput").is_not_null()
_SPAN: Final = pl.col("end").filter(_ACTIVE).max() - pl.col("start").filter(_ACTIVE).min()
_GROUP_RATES: Final = [
    ((pl.col(rate) * (pl.col("end") - pl.col("start"))).sum() / _SPAN).alias(rate)
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
        The columns of `over_flows`; utilisation of the link that is used most; dropped, lost
        (packets, over all links); jain, as `fairness` has it.
    """
    of_links = links.group_by("seed").agg(
        pl.col("utilisation").max(), pl.col("dropped", "lost").sum()
    )
    joined = over_flows(flows)
    for table in (of_links, fairness(result)):
        joined = joined.join(table, on="seed", how="left", maintain_order="left")
    return joined


def _between(table: pl.DataFrame, since: float, until: float | None) -> pl.DataFrame:
    last = float("inf") if until is None else until
    return table.filter(pl.col("t").is_between(since - _MICRO, last + _MICRO))


def _rates(
    result: Runs,
    names: Mapping[str, str],
    since: float | pl.Expr,
    until: float | pl.Expr | None,
    spans: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rates at which counters of bytes grew, bit/s; null for a flow that was not there.

    `names` says what the rate of each counter is called. `since` and `until` may be columns of
    `spans`, which has a row for each seed that matters.
    """
    begin = pl.max_horizontal(pl.col("start"), since)
    end = pl.min_horizontal(pl.col("end"), until)
    flows = _with(spans, result.flows.lazy()).select(
        *FLOW, "start", "completed", *names, begin=begin, end=end
    )
    samples = _samples(result, list(names), flows)
    rates = [
        pl.when(pl.col("end") > pl.col("begin"))
        .then(
            8
            * (_counted(counter, "end") - _counted(counter, "begin"))
            / (pl.col("end") - pl.col("begin"))
        )
        .alias(name)
        for counter, name in names.items()
    ]
    # In one piece: Polars' division may round otherwise where a column is in several.
    return flows.join(samples, **_LEFT).select(*FLOW, *rates).collect().rechunk()


_TIMES: Final = ("begin", "end")
"""When counters are looked at: columns of times."""


def _samples(result: Runs, counters: list[str], flows: pl.LazyFrame) -> pl.LazyFrame:
    """Of each flow and for each of `_TIMES` the sample before it and the one after it."""
    found = []
    for at in _TIMES:
        seen = pl.col("t") <= pl.col(at) + _MICRO
        for column in ("t", *counters):
            value = pl.col(column)
            found.append(value.filter(seen).last().alias(f"{column}_before_{at}"))
            found.append(value.filter(~seen).first().alias(f"{column}_after_{at}"))
    return (
        result.series.lazy()
        .select("seed", "flow", "t", *counters)
        .join(flows.select("seed", "flow", *_TIMES), on=["seed", "flow"], maintain_order="left")
        .group_by("seed", "flow")
        .agg(found)
    )


def _counted(counter: str, at: str) -> pl.Expr:
    """What a counter was at a time of its flow: between samples it grew evenly.

    It is 0 when the flow starts, and all that it will be when the flow has completed.
    """
    t_before, t_after = pl.col(f"t_before_{at}"), pl.col(f"t_after_{at}")
    before = pl.col(f"{counter}_before_{at}").cast(pl.Float64).fill_null(0.0)
    after = pl.col(f"{counter}_after_{at}").cast(pl.Float64).fill_null(before)
    left = pl.max_horizontal("start", t_before)
    right = pl.min_horizontal(t_after, "completed")
    share = ((pl.col(at) - left) / (right - left)).clip(0.0, 1.0).fill_nan(1.0).fill_null(0.0)
    # Nothing was sampled after the end: there the table of flows has the last word.
    whole = pl.col(counter).cast(pl.Float64)
    return pl.when(t_after.is_null()).then(whole).otherwise(before + share * (after - before))


def _with(spans: pl.DataFrame | None, table: pl.LazyFrame) -> pl.LazyFrame:
    return table if spans is None else table.join(spans.lazy(), on="seed", maintain_order="left")


_LEFT: Final[dict[str, Any]] = {"on": ["seed", "flow"], "how": "left", "maintain_order": "left"}


METRICS: Final = (
    throughput,
    goodput,
    group_throughput,
    utilisation,
    queueing_delay,
    retransmission_share,
    jain,
    fairness,
    jain_over_time,
    harm,
)
"""The metrics, for lists of them."""
