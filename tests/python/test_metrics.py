"""Metrics on results made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest
from hand_made import result, zero
from hypothesis import given
from hypothesis import strategies as st

import dumbbell
from dumbbell import DumbbellError, Experiment, Flow, Link, Result, metrics

KILOBYTE_A_MS = 1e6  # bytes per second: 8 Mbit/s, all of the link


def test_throughput_is_the_acknowledged_bits_per_second_from_start_to_end() -> None:
    run = result({"a": lambda t: 1e5 * t})
    assert metrics.throughput(run)["throughput"].to_list() == [8e5]


def test_throughput_of_a_part_counts_only_that_part() -> None:
    run = result({"a": lambda t: 1e5 * min(t, 4)})
    assert metrics.throughput(run, until=4)["throughput"].item() == pytest.approx(8e5)
    assert metrics.throughput(run, since=2, until=6)["throughput"].item() == pytest.approx(4e5)
    assert metrics.throughput(run, since=4)["throughput"].item() == pytest.approx(0)


def test_throughput_of_a_late_flow_counts_from_its_start() -> None:
    run = result({"a": lambda t: 1e5 * (t - 5)}, starts={"a": 5.0})
    assert metrics.throughput(run)["throughput"].item() == pytest.approx(8e5)


def test_between_samples_what_was_delivered_is_taken_to_grow_evenly() -> None:
    run = result({"a": lambda t: 1e5 * t}, step=2.0)
    assert metrics.throughput(run, since=2.9, until=3.1)["throughput"].item() == pytest.approx(8e5)
    late = result({"a": lambda t: 1e5 * t, "b": lambda t: 1e5 * (t - 1)}, starts={"b": 1}, step=4.0)
    assert metrics.fairness(late)["jain"].item() == pytest.approx(1)


def test_what_is_delivered_after_a_flow_was_stopped_is_not_counted() -> None:
    run = result({"a": lambda t: 1e5 * min(t, 8)})  # stopped at 2 s, with much in the queue
    stopped = replace(run, flows=run.flows.with_columns(end=pl.lit(2.0)))
    assert metrics.throughput(stopped)["throughput"].item() == pytest.approx(8e5)


def test_a_flow_that_completed_between_samples_delivered_all_of_it_until_then() -> None:
    run = result({"a": lambda t: 1e5 * min(t, 0.5)}, step=1.0)
    flows = run.flows.with_columns(end=pl.lit(0.5), completed=pl.lit(0.5))
    assert metrics.throughput(replace(run, flows=flows))["throughput"].item() == pytest.approx(8e5)


def test_windows_that_are_no_whole_number_of_samples_are_refused() -> None:
    run = result({"a": lambda t: 1e5 * t}, step=0.25)
    assert metrics.whole_width(run, 0.6) == 0.5
    assert metrics.windows(run, width=0.5).height == 20
    for width in (0.1, 0.6):
        with pytest.raises(ValueError, match=r"no whole number of samples, one every 0\.25 s"):
            metrics.windows(run, width=width)


def test_a_flow_that_was_not_there_has_no_throughput() -> None:
    run = result({"a": lambda t: 1e5 * (t - 5)}, starts={"a": 5.0})
    assert metrics.throughput(run, until=5)["throughput"].item() is None


def test_goodput_counts_what_arrived_in_order() -> None:
    run = result({"a": lambda t: 1e5 * t})  # of which half is in order
    assert metrics.goodput(run)["goodput"].to_list() == [4e5]


def test_utilisation_is_what_the_link_sent_over_what_it_could() -> None:
    run = result({"a": lambda t: 0.25e6 * t, "b": lambda t: 0.5e6 * t})
    assert metrics.utilisation(run)["utilisation"].to_list() == [pytest.approx(0.75)]


def test_utilisation_of_a_part_counts_only_that_part() -> None:
    run = result({"a": lambda t: 1e6 * min(t, 5)})
    assert metrics.utilisation(run)["utilisation"].item() == pytest.approx(0.5)
    assert metrics.utilisation(run, until=5)["utilisation"].item() == pytest.approx(1)
    assert metrics.utilisation(run, since=5)["utilisation"].item() == pytest.approx(0)


def test_retransmission_share_is_of_packets_sent() -> None:
    assert metrics.retransmission_share(result({"a": lambda t: t}))[
        "retransmission_share"
    ].to_list() == [0.25]


def test_jain_is_one_if_all_are_equal_and_one_nth_if_one_has_it_all() -> None:
    assert metrics.jain([3, 3, 3, 3]) == 1
    assert metrics.jain([3, 0, 0, 0]) == 0.25


def test_jain_of_flows_that_all_have_nothing_is_undefined() -> None:
    assert math.isnan(metrics.jain([0, 0]))
    run = result({"a": zero, "b": zero})
    assert metrics.fairness(run)["jain"].to_list() == [None]
    [reno] = dumbbell.compare("reno", rtt="2 s", duration="1 s").table().rows
    assert reno[-1] is None


def test_jain_gives_the_value_of_its_paper() -> None:
    """Jain, Chiu, Hawe, section 3: of n users, k have all, equally: the index is k/n."""
    assert metrics.jain([5] * 3 + [0] * 7) == pytest.approx(0.3)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=20).filter(any), st.floats(1e-3, 1e3))
def test_jain_lies_between_one_nth_and_one_and_knows_no_scale(
    rates: list[float], scale: float
) -> None:
    index = metrics.jain(rates)
    assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9
    if all(rate == 0 or rate > 1e-100 for rate in rates):
        assert metrics.jain([scale * rate for rate in rates]) == pytest.approx(index)


@pytest.mark.parametrize("rates", [[], [-1.0], [math.nan]])
def test_jain_of_what_is_no_rate_is_an_error(rates: list[float]) -> None:
    with pytest.raises(ValueError, match="Jain"):
        metrics.jain(rates)


def test_fairness_is_judged_while_all_flows_are_there() -> None:
    run = result(
        {"a": lambda t: 2e5 * min(t, 5) + 1e5 * max(t - 5, 0), "b": lambda t: 1e5 * (t - 5)},
        starts={"b": 5.0},
    )
    assert metrics.fairness(run).rows() == [(1, pytest.approx(1))]


def test_flows_that_never_meet_have_neither_fairness_nor_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither in a run of its own, nor among others whose flows are looked at a few at once."""
    run = result({"a": lambda t: 1e5 * t, "b": lambda t: 3e5 * t})
    apart = replace(run, flows=run.flows.with_columns(begin=pl.Series([0.0, 9.0]), end=9.0))
    assert metrics.fairness(apart).rows() == [(1, None)]
    assert metrics.shares_by_half(apart).rows() == []
    seed = pl.lit(2, dtype=pl.UInt64)
    both = {
        name: pl.concat([getattr(apart, name), getattr(run, name).with_columns(seed=seed)])
        for name in ("flows", "series")
    }
    monkeypatch.setattr("dumbbell.metrics.rates._FLOWS_AT_ONCE", 2)
    assert metrics.fairness(replace(run, **both)).rows() == [(1, None), (2, pytest.approx(0.8))]


def test_shares_by_half_are_those_of_algorithms_while_all_flows_are_there() -> None:
    run = result(
        {"a": lambda t: 1e5 * t, "b": lambda t: 1e5 * (t - 2) + 2e5 * max(t - 6, 0)},
        starts={"b": 2.0},
    )
    named = {name: getattr(run, name).with_columns(cc="flow") for name in ("flows", "series")}
    shares = metrics.shares_by_half(replace(run, **named))
    assert shares.select("cc", "first", "second").rows() == [
        ("a", pytest.approx(1 / 2), pytest.approx(1 / 4)),
        ("b", pytest.approx(1 / 2), pytest.approx(3 / 4)),
    ]


def test_windows_give_the_rate_of_every_second() -> None:
    run = result({"a": lambda t: 1e5 * t * t}, duration=3)
    table = metrics.windows(run)
    assert table["t"].to_list() == [1, 2, 3]
    assert table["throughput"].to_list() == pytest.approx([8e5, 24e5, 40e5])
    assert table["goodput"].to_list() == pytest.approx([4e5, 12e5, 20e5])


def test_windows_can_begin_anywhere_and_end_with_the_flow() -> None:
    run = result({"a": lambda t: 1e5 * t}, duration=3)
    table = metrics.windows(run, since=0.5)
    assert table["t"].to_list() == [1.5, 2.5, 3.0]
    assert table["throughput"].to_list() == pytest.approx([8e5, 8e5, 8e5])
    assert metrics.windows(run, since=0.5, whole=True)["t"].to_list() == [1.5, 2.5]


def test_a_flow_that_lives_for_less_than_a_window_has_one_with_its_rate() -> None:
    run = result(
        {"long": lambda t: 5e5 * t, "short": lambda t: 1e5 * min(t - 4.1, 0.5)},
        starts={"short": 4.1},
    )
    ends = pl.when(pl.col("flow") == "short").then(4.6).otherwise("end")
    run = replace(run, flows=run.flows.with_columns(end=ends, completed=ends))
    short = metrics.windows(run).filter(pl.col("flow") == "short")
    assert short.select("window", "t", "throughput").rows() == [(5, 4.6, pytest.approx(8e5))]
    assert metrics.windows(run, whole=True).filter(pl.col("flow") == "short").is_empty()


def test_what_is_left_of_a_flow_after_a_window_belongs_to_that_window() -> None:
    run = result({"a": lambda t: 1e5 * min(t, 3.2)}, starts={"a": 0.5})
    stopped = replace(run, flows=run.flows.with_columns(end=pl.lit(3.2)))
    table = metrics.windows(stopped)
    assert table["t"].to_list() == [1, 2, 3.2]
    lengths = pl.Series([0.5, 1, 1.2])
    total = (table["throughput"] * lengths).sum()
    assert total == pytest.approx(metrics.throughput(stopped)["throughput"].item() * 2.7)


def test_jain_over_time_counts_the_flows_that_are_there_throughout_a_window() -> None:
    run = result(
        {"a": lambda t: 3e5 * t, "b": lambda t: 1e5 * (t - 1.5)}, starts={"b": 1.5}, duration=4
    )
    table = metrics.jain_over_time(run)
    assert table["t"].to_list() == [1, 2, 3, 4]
    assert table["jain"].to_list() == [None, None, *[pytest.approx(0.8)] * 2]  # 4^2 / (2 (9+1))


def test_a_part_of_a_run_is_given_in_seconds_or_with_a_unit() -> None:
    run = result({"a": lambda t: 1e5 * t})
    for rate in (metrics.throughput, metrics.goodput, metrics.utilisation):
        assert rate(run, since="2 s", until="4 s").equals(rate(run, since=2, until=4))
        for since, until in ((5, 3), (10, None), (None, "0 s"), (-1, None)):
            with pytest.raises(DumbbellError, match="leave nothing of a run of 10 s; write 0 <= s"):
                rate(run, since=since, until=until)
    with pytest.raises(DumbbellError, match='"3 m" has the unknown unit "m"'):
        metrics.throughput(run, since="3 m")
    by_text = metrics.windows(run, width="2 s", since="1 s")
    assert by_text.equals(metrics.windows(run, width=2, since=1))


def test_harm_is_the_share_of_a_performance_that_is_lost() -> None:
    """Ware et al., section 4.1: 15 Mbit/s alone, 5 together is a harm of 0.67."""
    assert metrics.harm(15, 5) == pytest.approx(2 / 3)
    assert metrics.harm(10, 10) == 0
    assert metrics.harm(10, 0) == 1
    assert metrics.harm(10, 12) < 0


def test_harm_to_what_is_better_the_less_there_is_of_it() -> None:
    assert metrics.harm(40, 160, more_is_better=False) == pytest.approx(0.75)
    assert metrics.harm(0, 0, more_is_better=False) == 0
    assert metrics.harm(0.01, 0, more_is_better=False) == -math.inf


def test_harm_between_what_cannot_be_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="harm"):
        metrics.harm(-1, 1)


def test_the_summary_has_a_row_for_every_flow_with_all_metrics() -> None:
    summary = metrics.summary(result({"a": lambda t: 1e5 * t, "b": lambda t: 2e5 * t}))
    assert summary.select("flow", "throughput", "goodput").rows() == [
        ("a", 8e5, 4e5),
        ("b", 16e5, 8e5),
    ]
    assert summary["queue_delay_p95"].to_list() == [0.01, 0.01]
    assert summary["retransmission_share"].dtype == pl.Float64


def test_the_rates_of_flows_do_not_depend_on_how_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = Link(name="bottleneck", rate="5 Mbit/s", delay="5 ms", queue="20 packets")
    flows = [Flow(cc="reno", path=["bottleneck"], start=f"{n / 10} s") for n in range(7)]
    runs = dumbbell.run(Experiment(links=[link], flows=flows, duration="2 s"), seeds=2)
    whole = metrics.summary(runs)
    monkeypatch.setattr("dumbbell.metrics.rates._FLOWS_AT_ONCE", 3)
    assert metrics.summary(runs).equals(whole)


def test_flows_together_have_their_bytes_over_the_time_that_they_span() -> None:
    """One has the link for 5 s, then both share it: together they fill it, and no more."""
    run = result(
        {"a": lambda t: 1e6 * min(t, 5) + 5e5 * max(t - 5, 0), "b": lambda t: 5e5 * (t - 5)},
        starts={"b": 5.0},
    )
    summary = metrics.summary(run)
    assert summary["throughput"].sum() == pytest.approx(1.25 * 8e6)  # of rates over unlike spans
    assert metrics.group_throughput(summary).rows() == [(1, pytest.approx(8e6), pytest.approx(4e6))]


def test_flows_that_were_not_there_count_for_nothing_in_a_group() -> None:
    run = result({"a": lambda t: 1e5 * min(t, 5), "b": zero}, starts={"b": 9.0})
    never = replace(run, flows=run.flows.with_columns(end=pl.Series([5.0, 9.0])))
    summary = metrics.summary(never)
    assert metrics.group_throughput(summary)["throughput"].item() == pytest.approx(8e5)
    late = metrics.group_throughput(summary.filter(pl.col("flow") == "b"))
    assert late["throughput"].to_list() == [None]


def test_what_no_flow_has_is_a_table_without_rows() -> None:
    some = result({"a": zero})
    for tell in (metrics.transfer_summary, metrics.frame_summary, metrics.video_summary):
        table = tell(some)
        assert table.is_empty()
        assert table.schema["flow"] == some.flows.schema["flow"]


def test_the_summary_of_links_tells_use_queue_and_drops() -> None:
    summary = metrics.link_summary(result({"a": lambda t: 1e6 * t}))
    assert summary.select("link", "utilisation", "queue_mean", "dropped").rows() == [
        ("bottleneck", pytest.approx(1), 1500, 10)
    ]


def test_capacity_and_rate_of_a_link_in_windows() -> None:
    run = rated(result({"a": lambda t: 0.5e6 * t}))
    found = metrics.link_windows(run, width=2.5)
    assert found["t"].to_list() == [2.5, 5, 7.5, 10]
    assert found["sent"].to_list() == pytest.approx([4e6] * 4)
    assert found["capacity"].to_list() == pytest.approx([8e6, 4e6, 0, 8e6])


def test_a_queue_takes_as_long_to_drain_as_the_link_takes_to_send_it() -> None:
    run = rated(result({"a": zero}))
    delays = dict(metrics.drain_times(run).select(pl.col("t").round(3), "drain").iter_rows())
    expected = {1.0: 1.5e-3, 4.0: 3.5015, 5.5: 2.0015, 7.4: 0.1015, 10.0: 1.5e-3}
    assert {t: delays[t] for t in expected} == pytest.approx(expected, abs=6e-3)
    empty = replace(run, links=run.links.with_columns(queue_bytes=0))
    assert metrics.drain_times(empty)["drain"].max() == 0


def rated(run: Result) -> Result:
    """The result over a link with an outage: 8 Mbit/s, nothing from 3.75 s to 7.5 s."""
    steps = [["0 s", "8 Mbit/s"], ["3.75 s", "0 Mbit/s"], ["7.5 s", "8 Mbit/s"]]
    link = Link(name="bottleneck", rates=steps, delay="5 ms")
    return replace(run, experiment=run.experiment.replace(links=[link]))
