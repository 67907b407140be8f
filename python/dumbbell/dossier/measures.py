"""What is measured of a run: a number that is the worse the larger it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from dumbbell.display import Column
from dumbbell.sweeps.work import SERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dumbbell.sweeps.dataset import Dataset

PROPOSED: Final = "proposed"
"""The algorithm in question has the flows whose names begin so; its column has this name."""

USUAL: Final = "cubic"
"""What short flows are compared with: the default of today's systems."""

CALL_RATE: Final = 1.5e6
"""The maximum rate of a call's media, bit/s (RFC 8867, section 4.3)."""


SETTLED: Final = 1 / 3
"""After this share of a run, what is lost is not the overshoot of a first slow start."""


@dataclass(frozen=True)
class Kind:
    """A kind of measure.

    Attributes:
        name: Its name in files.
        column: How it is shown.
        measure: What gives the columns run and value.
        is_relative: Whether it compares with other algorithms on the same path.
        reference: The one algorithm that all are compared with, of which it says nothing.
        least_flows: With fewer flows of the algorithm it says nothing of a path.
        of_series: Whether it is taken from time series.
    """

    name: str
    column: Column
    measure: Callable[[Runs], pl.DataFrame]
    is_relative: bool = False
    reference: str = ""
    least_flows: int = 1
    of_series: bool = False


class Runs:
    """The runs of a scenario: a row for each path and algorithm.

    Attributes:
        runs: The runs, with the metrics of each.
        flows: Their flows.
        series: The time series of the flows, where they were kept.
        link_series: The same of the links.
        axes: What differs between paths.
        grid: The axes that every path has with each of their values.
    """

    def __init__(self, dataset: Dataset, grid: Sequence[str] = ()) -> None:
        """Reads what the sweep of a scenario kept.

        Args:
            dataset: The sweep.
            grid: The axes that every path has with each of their values.
        """
        self.runs, self.flows = dataset.table("runs"), dataset.table("flows")
        kept = [
            dataset.table(name) if name in dataset.tables else pl.DataFrame() for name in SERIES
        ]
        self.series, self.link_series = kept
        self.axes = [name for name in dataset.axes if not name.startswith(PROPOSED)]
        self.grid = list(grid)

    @classmethod
    def of(
        cls,
        runs: pl.DataFrame,
        flows: pl.DataFrame,
        axes: Sequence[str],
        series: Sequence[pl.DataFrame] = (pl.DataFrame(), pl.DataFrame()),
    ) -> Runs:
        """The same of tables that no sweep kept; `series` are those of flows and of links."""
        made = cls.__new__(cls)
        made.runs, made.flows, made.grid = runs, flows, []
        made.series, made.link_series = series
        made.axes = [name for name in axes if not name.startswith(PROPOSED)]
        return made

    def flows_of(self, role: str) -> pl.DataFrame:
        """The flows whose names begin with `role`."""
        return self.flows.filter(pl.col("flow").str.starts_with(role))

    def of_flows(self, role: str, **values: pl.Expr) -> pl.DataFrame:
        """By run, aggregates of the flows whose names begin with `role`."""
        return self.flows_of(role).group_by("run", maintain_order=True).agg(**values)

    def beside(self, found: pl.DataFrame, usual: pl.Expr) -> pl.DataFrame:
        """The same measure of the run with the `usual` algorithm on the same path: ``reference``.

        No row where that run is missing, as real packets' may.

        Args:
            found: Columns run, value.
            usual: The algorithm, an expression of the columns of `runs`.
        """
        keys = [*self.axes, "seed"]
        placed = self.runs.select("run", PROPOSED, *keys).join(found, on="run")
        others = placed.select(*keys, usual=PROPOSED, reference="value")
        return placed.with_columns(usual=usual).join(others, on=[*keys, "usual"])


def _of_runs(value: pl.Expr) -> Callable[[Runs], pl.DataFrame]:
    return lambda of: of.runs.select("run", value=value)


def _loss(of: Runs) -> pl.DataFrame:
    """The share of packets that full queues drop; of neither the warm-up counts."""
    sent = of.flows.group_by("run", maintain_order=True).agg(pl.col("sent").sum())
    both = of.runs.join(sent, on="run", maintain_order="left")
    return both.select("run", value=pl.col("dropped") / pl.max_horizontal("sent", 1))


def _queueing(of: Runs) -> pl.DataFrame:
    """The mean delay of queues: their mean length over the rate of what leaves them (Little's law).

    The delays of packets are beyond that of the shortest route; this is the queue's alone.
    """
    t, sent = pl.col("t"), pl.col("sent_bytes")
    rate = pl.max_horizontal(sent.max() - sent.min(), 1) / (t.max() - t.min())
    links = of.link_series.group_by("run", "link", maintain_order=True)
    each = links.agg(value=pl.col("queue_bytes").mean() / rate)
    return each.group_by("run", maintain_order=True).agg(pl.col("value").sum())


def _idle(of: Runs) -> pl.DataFrame:
    """The share that stays unused of what flows without congestion control leave of a link."""
    received = pl.col("received")
    fixed = received.filter(pl.col("cc") == "none").sum() / pl.max_horizontal(received.sum(), 1)
    shares = of.flows.group_by("run", maintain_order=True).agg(fixed=fixed)
    both = of.runs.join(shares, on="run", maintain_order="left")
    used = pl.col("utilisation")
    return both.select("run", value=(1 - used) / (1 - used * pl.col("fixed")))


def _loss_ratio(of: Runs) -> pl.DataFrame:
    compared = of.beside(_loss(of), pl.lit("reno"))
    return compared.select("run", value=pl.col("value") / pl.col("reference"))


def _persistence(of: Runs) -> pl.DataFrame:
    return of.of_flows(PROPOSED, value=pl.col("retransmitted").mean())


def _rise(series: pl.DataFrame, column: str, begins: pl.DataFrame) -> pl.DataFrame:
    """By run, the sum over flows or links of what `column` counted after ``since``, as ``rise``.

    Args:
        series: Time series whose `column` counts from the start of a run.
        column: The column.
        begins: Columns run, since (s).
    """
    later = series.join(begins, on="run").filter(pl.col("t") >= pl.col("since"))
    whose = "flow" if "flow" in series.columns else "link"
    each = later.group_by("run", whose, maintain_order=True).agg(
        rise=pl.col(column).max() - pl.col(column).min()
    )
    return each.group_by("run", maintain_order=True).agg(pl.col("rise").sum())


def _sustained_loss(of: Runs) -> pl.DataFrame:
    """The share of packets that full queues drop after `SETTLED` of a run."""
    begins = of.series.group_by("run", maintain_order=True).agg(since=pl.col("t").max() * SETTLED)
    sent = _rise(of.series, "sent", begins)
    both = _rise(of.link_series, "dropped", begins).join(sent, on="run", suffix="_sent")
    return both.select("run", value=pl.col("rise") / pl.max_horizontal("rise_sent", 1))


def _latecomer(of: Runs) -> pl.DataFrame:
    """The part that a late flow lacks of half of what it and the first have since it started."""
    begins = of.of_flows(f"{PROPOSED}-late", since=pl.col("start").min())
    is_late = pl.col("flow").str.starts_with(f"{PROPOSED}-late")
    late = _rise(of.series.filter(is_late), "delivered", begins)
    both = late.join(_rise(of.series.filter(~is_late), "delivered", begins), on="run")
    has, other = pl.col("rise").cast(pl.Float64), pl.col("rise_right").cast(pl.Float64)
    return both.select("run", value=1 - 2 * has / pl.max_horizontal(has + other, 1.0))


def _slowdown(of: Runs) -> pl.DataFrame:
    took = (pl.col("completed").fill_nan(None).fill_null(pl.col("end")) - pl.col("start")).mean()
    short = pl.col("flow").str.contains("short")
    found = of.flows.filter(short).group_by("run", maintain_order=True).agg(value=took)
    compared = of.beside(found, pl.lit(USUAL))
    return compared.select("run", value=pl.col("value") / pl.col("reference"))


def _least_share(of: Runs) -> pl.DataFrame:
    """What the flow that has least lacks of its fair share."""
    rate = pl.col("throughput").fill_null(0.0)
    share = rate.min() * rate.len() / pl.max_horizontal(rate.sum(), 1e-9)
    return of.of_flows(PROPOSED, value=1 - share)


def _beside_own_kind(of: Runs, value: pl.Expr) -> pl.DataFrame:
    """A value of the standard flows, and the ``reference``: that beside as many of their own."""
    return of.beside(of.of_flows("existing", value=value), pl.col("existing"))


def _harm_delay(of: Runs) -> pl.DataFrame:
    compared = _beside_own_kind(of, pl.col("queue_delay_mean").mean())
    return compared.select("run", value=pl.col("value") / pl.col("reference"))


def _harm_loss(of: Runs) -> pl.DataFrame:
    share = pl.col("retransmitted").sum() / pl.max_horizontal(pl.col("sent").sum(), 1)
    compared = _beside_own_kind(of, share)
    return compared.select("run", value=pl.col("value") - pl.col("reference"))


def _displacement(of: Runs) -> pl.DataFrame:
    """The part of their fair share that standard flows lack; below 0 if they have more."""
    own = _starvation(of)
    return own.select("run", value=-pl.col("value"))


def _harm(of: Runs) -> pl.DataFrame:
    """Harm beyond that of its own kind (Ware et al., HotNets 2019, section 4)."""
    compared = _beside_own_kind(of, pl.col("throughput").fill_null(0.0).sum())
    return compared.select("run", value=1 - pl.col("value") / pl.col("reference"))


def _harm_least(of: Runs) -> pl.DataFrame:
    """The same of the standard flow that has least: the sum hides one starved flow of several."""
    compared = _beside_own_kind(of, pl.col("throughput").fill_null(0.0).min())
    # Where the least has nothing among its own kind either, nothing is taken from it.
    has, had = (pl.max_horizontal(name, 1.0) for name in ("value", "reference"))
    return compared.select("run", value=1 - has / had)


def _starvation(of: Runs) -> pl.DataFrame:
    """The part of its fair share that the algorithm lacks: as many flows, as much of the sum."""
    rate = pl.col("throughput").fill_null(0.0).sum()
    own = of.of_flows(PROPOSED, own=rate, flows=pl.len())
    both = own.join(of.of_flows("existing", other=rate, others=pl.len()), on="run")
    share = pl.col("own") / (pl.col("own") + pl.col("other"))
    fair = pl.col("flows") / (pl.col("flows") + pl.col("others"))
    return both.select("run", value=1 - share / fair)


def _cost(of: Runs) -> pl.DataFrame:
    """What flows lose beside standard ones: 1 - G of draft-irtf-iccrg-tcpeval-01, 6.1.3."""
    own = of.of_flows(PROPOSED, value=pl.col("throughput").fill_null(0.0).sum())
    compared = of.beside(own, pl.col("existing"))
    return compared.select("run", value=1 - pl.col("value") / pl.col("reference"))


def _time_of(role: str) -> Callable[[Runs], pl.DataFrame]:
    """How long a flow takes for its last byte; until the end of the run if it does not arrive."""
    done = pl.col("completed").fill_nan(None).fill_null(pl.col("end"))
    return lambda of: of.of_flows(role, value=(done - pl.col("start")).first())


def _ratio(of: Runs) -> pl.DataFrame:
    """The throughput of the faster of two flows over that of the slower one."""
    test = of.flows.filter(pl.col("flow").is_in([f"{PROPOSED}-one", f"{PROPOSED}-two"]))
    rate = pl.col("throughput").fill_null(0.0)
    value = rate.max() / pl.max_horizontal(rate.min(), 1.0)
    return test.group_by("run", maintain_order=True).agg(value=value)


def _unfairness_own(of: Runs) -> pl.DataFrame:
    """1 - Jain's index of the throughput of the algorithm's flows, each over its own time."""
    rate = pl.col("throughput").fill_null(0.0)
    squares = pl.max_horizontal(rate.len() * (rate * rate).sum(), 1.0)
    return of.of_flows(PROPOSED, value=1 - rate.sum() ** 2 / squares)


def _hops(of: Runs) -> pl.DataFrame:
    """The mean throughput of the flows over one bottleneck over that of the flow over all."""
    rate = pl.col("throughput").fill_null(0.0).mean()
    single = of.of_flows(f"{PROPOSED}-one", single=rate)
    both = single.join(of.of_flows(f"{PROPOSED}-all", all=rate), on="run")
    value = pl.col("single") / pl.max_horizontal("all", 1.0)
    return both.select("run", value=value)


def _call_rate(of: Runs) -> pl.DataFrame:
    """The part that a call lacks of its maximum rate, or of a fair share if that is less."""
    rate = pl.col("throughput").fill_null(0.0).sum()
    flows = of.of_flows(PROPOSED, others=rate, flows=pl.len())
    both = of.of_flows("call", has=rate).join(flows, on="run")
    share = (pl.col("has") + pl.col("others")) / (pl.col("flows") + 1)
    fair = pl.min_horizontal(pl.lit(CALL_RATE), pl.max_horizontal(share, 1.0))
    return both.select("run", value=1 - pl.col("has") / fair)


def _frames(of: Runs) -> pl.DataFrame:
    """The 95th percentile of the delay of frames; null without media, and if more are lost."""
    if "frame_delay_p95" not in of.runs.columns:
        return of.runs.select("run", value=pl.lit(None, dtype=pl.Float64))
    arrived = pl.col("frames_lost") <= 0.05
    return of.runs.select("run", value=pl.when(arrived).then("frame_delay_p95"))


def _media_delay(of: Runs) -> pl.DataFrame:
    return of.of_flows("media", value=pl.col("queue_delay_p95").max())


def _media_loss(of: Runs) -> pl.DataFrame:
    share = pl.col("lost").sum() / pl.max_horizontal(pl.col("sent").sum(), 1)
    return of.of_flows("media", value=share)


def _share(title: str, lowest: float = 0.0) -> Column:
    return Column(title, number=True, unit="%", scale=100.0, lowest=lowest, highest=1.0)


def _change(title: str) -> Column:
    """What may be negative: a gain, or more than the fair share."""
    return _share(title, -math.inf)


def _delay(title: str) -> Column:
    return _amount(title, unit="ms", scale=1e3)


def _amount(title: str, unit: str = "", scale: float = 1.0) -> Column:
    return Column(title, number=True, unit=unit, scale=scale, lowest=0.0)


_UNFAIRNESS: Final = Column("1 - Jain's index", number=True, lowest=0.0, highest=1.0)


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "waste",
            _share("Capacity not carrying new data"),
            _of_runs(1 - pl.col("goodput") / pl.col("rate")),
        ),
        Kind("persistence", _amount("Retransmissions per flow"), _persistence),
        Kind("delay", _delay("Mean queueing delay"), _of_runs(pl.col("queue_delay_mean"))),
        Kind("queueing", _delay("Mean delay in queues"), _queueing, of_series=True),
        Kind("loss", _share("Packets dropped"), _loss),
        Kind(
            "loss_ratio",
            _amount("Packets dropped", "times Reno's"),
            _loss_ratio,
            is_relative=True,
            reference="reno",
        ),
        Kind(
            "sustained_loss",
            _share("Packets dropped in the last two thirds"),
            _sustained_loss,
            of_series=True,
        ),
        Kind(
            "unfairness",
            _UNFAIRNESS,
            _of_runs(1 - pl.col("jain")),
            least_flows=2,
        ),
        Kind(
            "least_share",
            _change("Fair share missing of the least flow"),
            _least_share,
            least_flows=2,
        ),
        Kind(
            "latecomer",
            _change("Late flow's fair share missing"),
            _latecomer,
            least_flows=2,
            of_series=True,
        ),
        Kind(
            "slowdown",
            _amount("Completion time of short flows", "times CUBIC's"),
            _slowdown,
            is_relative=True,
            reference=USUAL,
        ),
        Kind("harm", _change("Throughput taken from standard flows"), _harm, is_relative=True),
        Kind(
            "harm_least",
            _change("Throughput taken from the least standard flow"),
            _harm_least,
            is_relative=True,
        ),
        Kind(
            "harm_delay",
            _amount("Delay of standard flows", "times that among their own"),
            _harm_delay,
            is_relative=True,
        ),
        Kind("harm_loss", _change("Losses added to standard flows"), _harm_loss, is_relative=True),
        Kind("displacement", _change("Fair share that flows beside it lack"), _displacement),
        Kind("cost", _change("Own throughput lost"), _cost, is_relative=True),
        Kind("unfairness_own", _UNFAIRNESS, _unfairness_own),
        Kind(
            "ramp",
            _amount("Time of a new flow's last byte", "s"),
            _time_of(f"{PROPOSED}-new"),
        ),
        Kind("time", _amount("Time of the transfer", "s"), _time_of(PROPOSED)),
        Kind("ratio", _amount("Throughput of the faster flow", "times"), _ratio),
        Kind(
            "hops",
            _amount("Throughput over one bottleneck", "times that over all"),
            _hops,
        ),
        Kind(
            "transfers",
            _amount("Mean slowdown of complete transfers"),
            _of_runs(pl.col("slowdown_mean")),
        ),
        Kind("delay_p95", _delay("p95 queueing delay"), _of_runs(pl.col("queue_delay_p95"))),
        Kind("starvation", _change("Own fair share missing"), _starvation),
        Kind("media_delay", _delay("p95 queueing delay of the UDP stream"), _media_delay),
        Kind("media_loss", _share("Packets lost of the UDP stream"), _media_loss),
        Kind("call_rate", _change("Rate that the call lacks"), _call_rate),
        Kind("frames", _delay("p95 delay of frames"), _frames),
        Kind("idle", _share("Capacity unused"), _idle),
        Kind(
            "retransmitted",
            _share("Packets retransmitted"),
            _of_runs(pl.col("retransmission_share")),
        ),
    )
}
"""All kinds, by name."""


def standard(cc: str) -> str:
    """The standard algorithm that `cc` is compared with, path by path: CUBIC, or Reno if it is."""
    return USUAL if cc != USUAL else "reno"


def values(of: Runs, kind: Kind) -> pl.DataFrame:
    """A measure of every run.

    Returns:
        Columns path (its number, from 0), the axes of the scenario, seed, cc, run, value; null
        where there is none, as the index of flows that never sent. A run that is compared with one
        that is missing has no row.
    """
    keys = [*of.axes, "seed"]
    paths = of.runs.select(keys).unique(maintain_order=True).with_row_index("path")
    placed = of.runs.select(*keys, "run", cc=PROPOSED).join(paths, on=keys, maintain_order="left")
    how: Literal["inner", "left"] = "inner" if kind.is_relative else "left"
    found = placed.join(kind.measure(of), on="run", how=how, maintain_order="left")
    value = pl.col("value").cast(pl.Float64).fill_nan(None)
    return found.select("path", *keys, "cc", "run", value=value)


def with_enough_flows(of: Runs, found: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    """The `values` on paths with as many flows of the algorithm as the measure needs."""
    enough = of.of_flows(PROPOSED, flows=pl.len()).filter(pl.col("flows") >= kind.least_flows)
    return found.join(enough.select("run"), on="run", how="semi", maintain_order="left")


def worst_of_grid(of: Runs, found: pl.DataFrame) -> pl.DataFrame:
    """The `values` with one row for each random path and algorithm: the worst over the grids.

    Runs on the same path do not count twice: they would make intervals too narrow.
    """
    if not of.grid:
        return found
    keys = [name for name in (*of.axes, "seed") if name not in of.grid]
    paths = found.select(keys).unique(maintain_order=True).with_row_index("path")
    missing = pl.col("value").is_null().any()
    worst = pl.when(missing).then(None).otherwise(pl.col("value").max()).alias("value")
    merged = found.group_by(*keys, "cc", maintain_order=True).agg(worst, pl.col("run").first())
    joined = merged.join(paths, on=keys, maintain_order="left")
    return joined.select("path", *keys, "cc", "run", "value")
