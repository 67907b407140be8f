"""Rates of flows: over their life, between two times, in windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias

import polars as pl

from dumbbell.errors import DumbbellError
from dumbbell.experiment.quantities import TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumbbell.experiment.model import Experiment


MICRO: Final = 1e-6
"""Sample times are multiples of the sample interval but for rounding, s."""

Moment: TypeAlias = float | str
"""A time of a run: a number of seconds, or a text such as "30 s"."""

FLOW: Final = ["seed", "flow", "cc"]
"""The columns that name a flow of a run."""


def no_rows(flows: pl.DataFrame, others: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    """A table with those of `FLOW` and other columns of flows, without a row."""
    return (
        flows.select(FLOW)
        .clear()
        .with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in others.items())
    )


class Runs(Protocol):
    """What metrics look at: a `Result`, or anything with such tables of runs, told by `seed`.

    All members are those of `Result`.
    """

    @property
    def flows(self) -> pl.DataFrame: ...

    @property
    def series(self) -> pl.DataFrame: ...

    @property
    def links(self) -> pl.DataFrame: ...

    @property
    def transfers(self) -> pl.DataFrame: ...

    @property
    def of_transfers(self) -> pl.DataFrame: ...

    @property
    def warmups(self) -> pl.DataFrame: ...

    def capacities(self, spans: pl.DataFrame) -> list[float | None]: ...


class SampledRuns(Runs, Protocol):
    """What figures, and metrics in windows, look at: a `Result`, the runs of one experiment."""

    @property
    def experiment(self) -> Experiment: ...

    @property
    def seeds(self) -> list[int]: ...

    @property
    def flow_names(self) -> list[str]: ...

    @property
    def internals(self) -> pl.DataFrame: ...

    @property
    def frames(self) -> pl.DataFrame: ...

    @property
    def segments(self) -> pl.DataFrame: ...

    @property
    def invalid_runs(self) -> Mapping[int, list[str]]: ...

    def of_seed(self, seed: int) -> Self: ...

    def by_subflow(self) -> Self: ...

    def valid(self) -> Self: ...


def seconds(moment: Moment) -> float:
    """A time in s."""
    return TIME.parse(moment, zero=True) / 1e9 if isinstance(moment, str) else moment


def part_of(
    result: Runs, since: Moment | None, until: Moment | None
) -> tuple[float | None, float | None]:
    """The part of runs between two times, in s; None where none is given.

    Raises:
        DumbbellError: If the part is empty, or one of them is no time.
    """
    begin, end = (None if moment is None else seconds(moment) for moment in (since, until))
    if begin is None and end is None:
        return None, None
    first = float(result.warmups["since"].max()) if begin is None else begin  # type: ignore[arg-type]
    sampled = not result.links.is_empty()
    last = float(result.links["t"].max()) if sampled else math.inf  # type: ignore[arg-type]
    if not 0 <= first < min(last, math.inf if end is None else end):
        given = f"since = {first:g} s and until = {last if end is None else end:g} s"
        problem = f"{given} leave nothing of a run of {last:g} s"
        raise DumbbellError(f"{problem}; write 0 <= since < until, with since before its end")
    return begin, end


def throughput(
    result: Runs, *, since: Moment | None = None, until: Moment | None = None
) -> pl.DataFrame:
    """Payload acknowledged to the sender per second while the flow was active.

    Formula: ``8 * (delivered(end) - delivered(begin)) / (end - begin)``, in bit/s, from when the
    flow started or the warm-up was over (or `since`) to when it ended (or `until`). ``delivered``
    counts data bytes that were acknowledged, in any order, retransmitted data once; between two
    samples it is taken to grow evenly. Rates over different spans do not add up: for several flows
    see `group_throughput`. Source: RFC 5166, section 2.1.

    Args:
        result: The runs.
        since: When to begin, in s or as "30 s"; the end of the warm-up if it is not given.
        until: When to stop, in s or as "60 s"; the end of the experiment if it is not given.

    Returns:
        Columns seed, flow, cc, throughput; null for a flow that was not there.

    Raises:
        DumbbellError: If there is nothing between `since` and `until`.
    """
    return rates_between(result, {"delivered": "throughput"}, *part_of(result, since, until))


def goodput(
    result: Runs, *, since: Moment | None = None, until: Moment | None = None
) -> pl.DataFrame:
    """Payload that the receiving application could read per second.

    Formula: as `throughput`, of ``received``: data bytes that arrived without a gap before them. In
    a short flow it may exceed `throughput`, as an acknowledgement is still on its way.
    Source: RFC 2647, section 3.17; RFC 5166, section 2.1.

    Returns:
        Columns seed, flow, cc, goodput (bit/s).
    """
    return rates_between(result, {"received": "goodput"}, *part_of(result, since, until))


def windows(
    result: SampledRuns,
    *,
    width: Moment = 1.0,
    since: Moment | pl.DataFrame = 0.0,
    whole: bool = False,
) -> pl.DataFrame:
    """Throughput and goodput in windows of time, back to back.

    Formula: as `throughput` and `goodput`, over ``(since + (k - 1) width, since + k width]`` for
    k = 1, 2, ..., or over the part of it in which the flow is active: the first window of a flow
    begins when it starts, and the last one ends when it ends. If less than half a window is left at
    the end, it belongs to the window before. A counter at the end of another window is that of the
    last sample in it.

    Args:
        result: The runs.
        width: The length of a window, in s or as "1 s"; a whole number of sample intervals, as
            `whole_width` is.
        since: Where the first window begins, in s or as "30 s"; or a table with a row for each seed
            that matters, and the columns seed and since.
        whole: Whether to leave out the windows in which a flow starts or ends.

    Returns:
        Columns seed, flow, cc, window (k), t (the end of the window or of the flow, s), throughput,
        goodput (bit/s).

    Raises:
        ValueError: If `width` is not a whole number of sample intervals.
    """
    width = seconds(width)
    if not math.isclose(width, whole_width(result, width), rel_tol=MICRO):
        every = result.experiment.sample
        problem = f"windows of {width:g} s are no whole number of samples, one every {every}"
        raise ValueError(f"{problem}; choose another width, or another `sample`")
    t, window, first = pl.col("t"), pl.col("window"), pl.col("since")
    if not isinstance(since, pl.DataFrame):
        seeds = pl.Series(result.seeds, dtype=pl.UInt64)
        since = pl.DataFrame({"seed": seeds, "since": seconds(since)})
    number = ((t - first) / width - MICRO).ceil().clip(lower_bound=0).cast(pl.Int64)
    ends = _last_windows(result, width, since, whole=whole)
    before = (
        result.series.lazy()
        .join(since.lazy(), on="seed", maintain_order="left")
        .select(*FLOW, pl.col("delivered", "received").cast(pl.Int64), window=number)
        .group_by(*FLOW, "window", maintain_order=True)
        .last()
        .join(ends.select(*FLOW, "start", "end", "since", last="window"), on=FLOW)
        .filter(window < pl.col("last"))
    )
    begin = first + width * (window - 1)
    late, early = pl.col("start") - begin, begin + width - pl.col("end")
    is_last = window == pl.col("last")
    active = width - late.clip(0, None) - pl.when(is_last).then(early).otherwise(0.0)
    counters = pl.col("delivered", "received")
    rates = counters - counters.shift(1, fill_value=0).over(FLOW)
    full = (late <= MICRO) & (early <= MICRO) if whole else True
    return (
        pl.concat([before, ends.with_columns(last=window).select(before.collect_schema().names())])
        .sort(*FLOW, "window")
        .with_columns((rates * (8 / active)).cast(pl.Float64), active=active)
        .filter(window >= 1, pl.col("active") > MICRO, full)
        .with_columns(t=pl.when(is_last).then("end").otherwise(begin + width))
        .sort("seed", "window", "flow")
        .select(*FLOW, "window", "t", throughput="delivered", goodput="received")
        .collect()
    )


def _last_windows(
    result: SampledRuns, width: float, since: pl.DataFrame, *, whole: bool
) -> pl.LazyFrame:
    """For every flow that lived after `since` its last window, and its counters at its end.

    Columns: those of `FLOW`, start, end, since, window, delivered, received (bytes).
    """
    names = {"delivered": "delivered", "received": "received"}
    lived = pl.col("end") - pl.col("start")
    end = (pl.col("end") - pl.col("since")) / width
    number = (end - MICRO).ceil()
    left = number if whole else number - (end < number - 0.5)
    first = ((pl.col("start") - pl.col("since")) / width + MICRO).floor().clip(0, None) + 1
    return (
        rates_between(result, names, 0.0)
        .lazy()
        .join(result.flows.lazy().select(*FLOW, "start", "end"), on=FLOW)
        .join(since.lazy(), on="seed")
        .filter(lived > 0, pl.col("end") > pl.col("since") + MICRO)
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


def rates_between(
    result: Runs,
    names: Mapping[str, str],
    since: float | pl.Expr | None = None,
    until: float | pl.Expr | None = None,
    spans: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rates at which counters of bytes grew, bit/s; null for a flow that was not there.

    `names` says what the rate of each counter is called. `since` and `until` may be columns of
    `spans`, which has a row for each seed that matters; flows of other seeds have no row. Without
    `since` the warm-up is left out.
    """
    begin = pl.col("begin") if since is None else pl.max_horizontal(pl.col("start"), since)
    end = pl.min_horizontal(pl.col("end"), until)
    every = result.flows
    if spans is not None:
        every = every.join(spans, on="seed", maintain_order="left")
    counted = pl.col("begin").alias("counted")
    flows = every.lazy().select(*FLOW, "start", "completed", *names, counted, begin=begin, end=end)
    span = pl.col("end") - pl.col("begin")
    rates = [
        pl.when(span > 0)
        .then(8 * (_counted(counter, "end") - _counted(counter, "begin")) / span)
        .alias(name)
        for counter, name in names.items()
    ]
    parts = []
    for first in range(0, max(every.height, 1), _FLOWS_AT_ONCE):
        these = every.slice(first, _FLOWS_AT_ONCE).select("seed", "flow")
        part = flows.slice(first, _FLOWS_AT_ONCE)
        samples = _samples(_near(result.series, these), list(names), part)
        joined = part.join(samples, on=["seed", "flow"], how="left", maintain_order="left")
        # In one piece: Polars' division may round otherwise where a column is in several.
        parts.append(joined.select(*FLOW, *rates).collect().rechunk())
    return pl.concat(parts)


_FLOWS_AT_ONCE: Final = 5000
"""For how many flows samples are looked up together, which takes 7 kB for each."""


def _near(series: pl.DataFrame, flows: pl.DataFrame) -> pl.LazyFrame:
    """The samples of seeds and flows from the first to the last of these, for a quick join."""
    near = pl.lit(value=True)
    for column in ("seed", "flow"):
        numbers = flows[column].to_physical()
        near &= pl.col(column).to_physical().is_between(numbers.min(), numbers.max())
    return series.lazy().filter(near)


_TIMES: Final = ("counted", "begin", "end")  # when counters are looked at: columns of times


def _samples(series: pl.LazyFrame, counters: list[str], flows: pl.LazyFrame) -> pl.LazyFrame:
    """Of each flow and for each of `_TIMES` the sample before it and the one after it."""
    found = []
    for at in _TIMES:
        seen = pl.col("t") <= pl.col(at) + MICRO
        for column in ("t", *counters):
            value = pl.col(column)
            found.append(value.filter(seen).last().alias(f"{column}_before_{at}"))
            found.append(value.filter(~seen).first().alias(f"{column}_after_{at}"))
    return (
        series.select("seed", "flow", "t", *counters)
        .join(flows.select("seed", "flow", *_TIMES), on=["seed", "flow"], maintain_order="left")
        .group_by("seed", "flow")
        .agg(found)
    )


def _counted(counter: str, at: str) -> pl.Expr:
    """What a counter was at a time of its flow, from the flow's start on.

    Nothing was sampled after the end: there the table of flows, which counts from `counted` on, has
    the last word.
    """
    whole = pl.col(counter).cast(pl.Float64) + _sampled(counter, "counted")
    return pl.when(pl.col(f"t_after_{at}").is_null()).then(whole).otherwise(_sampled(counter, at))


def _sampled(counter: str, at: str) -> pl.Expr:
    """What a counter was by the samples before and after a time: between them it grew evenly.

    It is 0 when the flow starts, and all that it will be when the flow has completed.
    """
    t_before, t_after = pl.col(f"t_before_{at}"), pl.col(f"t_after_{at}")
    before = pl.col(f"{counter}_before_{at}").cast(pl.Float64).fill_null(0.0)
    after = pl.col(f"{counter}_after_{at}").cast(pl.Float64).fill_null(before)
    left = pl.max_horizontal("start", t_before)
    right = pl.min_horizontal(t_after, "completed")
    share = ((pl.col(at) - left) / (right - left)).clip(0.0, 1.0).fill_nan(1.0).fill_null(0.0)
    return before + share * (after - before)
