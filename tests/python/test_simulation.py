"""What holds of every simulation, whatever its topology and seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from dumbbell import Experiment, Flow, Link, _core, metrics, run
from dumbbell._core import needs_udt
from dumbbell.results.tables import TABLES

if TYPE_CHECKING:
    from random import Random

    from dumbbell import Result

few = settings(max_examples=25)


@st.composite
def experiments(draw: st.DrawFn, *, transports: tuple[str, ...] = ("tcp", "udt")) -> Experiment:
    """One to three links in a row, one to four flows over some of them, of any algorithm."""
    links = [
        Link(
            name=f"link-{number}",
            rate=f"{draw(st.integers(1, 50))} Mbit/s",
            delay=f"{draw(st.integers(0, 30))} ms",
            queue=f"{draw(st.integers(2, 100))} packets",
            loss=draw(st.sampled_from([0.0, 1e-3, 0.05])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    names = [link.name for link in links]
    flows = []
    for number in range(draw(st.integers(1, 4))):
        first = draw(st.integers(0, len(names) - 1))
        last = draw(st.integers(first, len(names) - 1))
        transport = draw(st.sampled_from(transports))
        algorithms = [cc for cc in _core.algorithms() if transport == "udt" or not needs_udt(cc)]
        stacks = st.sampled_from(list(_core.stacks())) if transport == "tcp" else st.none()
        flows.append(
            Flow(
                name=f"flow-{number}",
                cc=draw(st.sampled_from(algorithms)),
                path=names[first : last + 1],
                rtt=f"{draw(st.integers(100, 200))} ms",
                start=f"{draw(st.integers(0, 900))} ms",
                transport=transport,
                stack=draw(stacks),
            )
        )
    seed = draw(st.integers(0, 2**32))
    return Experiment(links=links, flows=flows, duration="3 s", seeds=[seed], start_jitter="100 ms")


def assert_same(one: Result, other: Result) -> None:
    for table in TABLES:
        assert_frame_equal(getattr(one, table), getattr(other, table), check_exact=True)


@few
@given(experiments())
def test_the_same_seed_gives_the_same_result(experiment: Experiment) -> None:
    assert_same(run(experiment), run(experiment))


@few
@given(experiments(), st.randoms())
def test_the_order_of_flows_changes_nothing_but_their_order(
    experiment: Experiment, random: Random
) -> None:
    flows = experiment.flows.copy()
    random.shuffle(flows)

    def in_order(table: pl.DataFrame) -> pl.DataFrame:
        texts = table.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))
        by = [name for name in ("flow", "link", "t", "name") if name in texts.columns]
        return texts.sort(by)

    one, other = run(experiment), run(experiment.replace(flows=flows))
    for table in TABLES:
        first, second = in_order(getattr(one, table)), in_order(getattr(other, table))
        assert_frame_equal(first, second, check_exact=True)


@few
@given(experiments())
def test_windows_are_numbers_of_at_least_one_packet(experiment: Experiment) -> None:
    series = run(experiment).series
    assert series["cwnd"].is_finite().all()
    assert (series["cwnd"] >= 1).all()


@few
@given(experiments())
def test_nobody_receives_more_than_was_sent(experiment: Experiment) -> None:
    result = run(experiment)
    mss = 1456  # UDT's; TCP's is less.
    flows = result.flows
    assert (flows["received"] <= (flows["sent"] - flows["retransmitted"]) * mss).all()
    assert (flows["delivered"] <= (flows["sent"] - flows["retransmitted"]) * mss).all()
    assert (flows["retransmitted"] <= flows["sent"]).all()


@few
@given(experiments(transports=("tcp",)))
def test_packets_are_conserved(experiment: Experiment) -> None:
    """On one link: dropped + lost + gone through + waiting + being sent = sent.

    What goes through is data packets of 1500 bytes, and at most three SYNs of 60 bytes a flow,
    which do not count as sent.
    """
    alone = experiment.replace(
        links=experiment.links[:1],
        flows=[flow.replace(path=["link-0"]) for flow in experiment.flows],
    )
    result = run(alone)
    link = result.links.filter(pl.col("t") == pl.col("t").max()).row(0, named=True)
    data, handshakes = divmod(link["sent_bytes"], 1500)
    assert handshakes % 60 == 0
    through = data + handshakes // 60
    accounted = link["dropped"] + link["lost"] + through + link["queue_packets"]
    syns = 3 * len(alone.flows)
    assert -1 <= accounted - result.flows["sent"].sum() <= syns


@few
@given(experiments())
def test_counters_never_go_back_and_time_goes_on(experiment: Experiment) -> None:
    result = run(experiment)
    counters = ["t", "sent", "retransmitted", "lost", "delivered", "received"]
    for column in counters:
        grows = pl.col(column).cast(pl.Float64).diff().over("flow").drop_nulls() >= 0
        assert result.series.select(grows.all()).item()


@few
@given(experiments(), st.lists(st.integers(1001, 3000), min_size=4, max_size=4))
def test_flows_together_never_exceed_the_rate_of_a_link_they_share(
    experiment: Experiment, stops: list[int]
) -> None:
    flows = [
        flow.replace(stop=f"{stop} ms") for flow, stop in zip(experiment.flows, stops, strict=False)
    ]
    result = run(experiment.replace(flows=flows))
    summary = metrics.summary(result)
    for link in experiment.links:
        users = [flow.name for flow in flows if link.name in (flow.path or ())]
        group = summary.filter(pl.col("flow").cast(pl.String).is_in(users))
        for rate in metrics.group_throughput(group)["throughput"].drop_nulls():
            begin, end = group.select(pl.col("start").min(), pl.col("end").max()).row(0)
            capacity = result.capacity(link.name, begin, end)
            assert capacity is None or rate * (end - begin) <= capacity * (1 + 1e-9)


@few
@given(experiments())
def test_what_was_not_measured_is_null_in_every_table_and_never_nan(
    experiment: Experiment,
) -> None:
    result = run(experiment)
    for table in result.tables:
        floats = getattr(result, table).select(pl.col(pl.Float32, pl.Float64).is_nan().any())
        assert not any(floats.row(0)), table
    assert result.series["srtt"].null_count() > 0  # before the first acknowledgement


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_like_flows_behind_like_access_links_get_alike(names: list[str]) -> None:
    access = [
        Link(name=name, rate="50 Mbit/s", delay="5 ms", queue="1000 packets") for name in names
    ]
    bottleneck = Link(name="bottleneck", rate="50 Mbit/s", delay="15 ms", queue="1 BDP")
    flows = [Flow(name=name, cc="cubic", path=[name, "bottleneck"]) for name in ("a", "b")]
    links = [*access, bottleneck]
    each = run(Experiment(links=links, flows=flows, duration="60 s", seeds=8, start_jitter="1 s"))
    received = dict(each.flows.group_by("flow").agg(pl.sum("received")).iter_rows())
    share = received["a"] / sum(received.values())
    # 0.93 and 0.07 with ties by the order of links.
    assert 0.4 < share < 0.6


def test_seeds_may_be_a_range() -> None:
    link = Link(name="b", rate="10 Mbit/s", delay="5 ms")
    experiment = Experiment(duration="1 s", links=[link], flows=[Flow(cc="reno")])
    assert run(experiment, seeds=range(2, 4)).seeds == [2, 3]
