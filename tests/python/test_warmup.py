"""The warm-up: what happens before it ends counts in no metric."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, Result, metrics


def experiment(**changes: object) -> Experiment:
    """Two flows, the second of which starts in the warm-up, and transfers."""
    link = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms", queue="1 BDP")
    flows = [
        Flow(name="first", cc="cubic"),
        Flow(name="second", cc="reno", start="5 s"),
        Flow(name="web", cc="reno", arrivals="poisson(load=0.1)", sizes="constant(size=20 kB)"),
    ]
    settings: dict[str, object] = {"links": [link], "flows": flows, "duration": "20 s"}
    return Experiment(**(settings | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole() -> Result:
    return dumbbell.run(experiment())


@pytest.fixture(scope="module")
def warm() -> Result:
    return dumbbell.run(experiment(warmup="8 s"))


def test_rates_are_those_after_it(whole: Result, warm: Result) -> None:
    for metric in (metrics.throughput, metrics.goodput):
        assert_frame_equal(metric(warm), metric(whole, since=8.0))
        assert_frame_equal(metric(warm, since=0.0), metric(whole))


def test_links_are_those_after_it(whole: Result, warm: Result) -> None:
    assert_frame_equal(metrics.utilisation(warm), metrics.utilisation(whole, since=8.0))
    later = whole.links.filter(pl.col("t") >= 8)
    expected = later["dropped"][-1] - later["dropped"][0]
    assert metrics.link_summary(warm)["dropped"].to_list() == [expected]
    assert metrics.link_summary(warm)["queue_mean"].item() == later["queue_bytes"].mean()


def test_transfers_that_start_in_it_do_not_count(whole: Result, warm: Result) -> None:
    times = metrics.completion_times(whole).filter(pl.col("start") >= 8)
    assert_frame_equal(metrics.completion_times(warm), times)
    assert metrics.transfer_summary(warm)["transfers"].item() == times.height


def test_figures_and_convergence_look_at_all_of_the_run(whole: Result, warm: Result) -> None:
    assert_frame_equal(metrics.windows(warm), metrics.windows(whole))
    assert_frame_equal(metrics.convergence(warm), metrics.convergence(whole))


def test_one_between_two_samples_has_a_sample_of_its_own(whole: Result) -> None:
    between = dumbbell.run(experiment(warmup="8.123 s"))
    assert set(between.series["t"]) - set(whole.series["t"]) == {8.123}
    assert_frame_equal(metrics.windows(between), metrics.windows(whole))


def test_a_flow_that_is_over_before_has_no_rate_and_no_warning() -> None:
    flows = [Flow(name="brief", cc="reno", bytes="100 kB"), Flow(name="long", cc="reno")]
    result = dumbbell.run(experiment(flows=flows, warmup="8 s"))
    assert metrics.throughput(result)["throughput"].is_null().to_list() == [True, False]
    assert result.flows["sent"][0] == 0
    assert result.flows["begin"][0] == result.flows["end"][0]
    assert result.warnings == []


def test_calls_and_videos_count_from_it_on() -> None:
    flows = [
        Flow(name="call", cc="gcc", transport="rtp", app_rate="1 Mbit/s"),
        Flow(name="video", cc="cubic", app="video"),
    ]
    found = dumbbell.run(experiment(flows=flows, warmup="8 s"))
    frames = found.frames.filter(pl.col("start") >= 8)
    assert metrics.frame_summary(found)["frames"].item() == frames.height < found.frames.height
    later = found.segments.filter(pl.col("start") >= 8, pl.col("completed").is_not_null())
    assert metrics.video_summary(found)["segments"].item() == later.height


def test_a_sweep_leaves_it_out_too(warm: Result) -> None:
    swept = dumbbell.sweep(experiment(), {"warmup": ["8 s", "12 s"]})
    expected = metrics.throughput(warm)["throughput"].to_list()
    first = swept.flows.filter(pl.col("warmup") == 8)
    assert first["throughput"].to_list() == expected
    assert swept.links["utilisation"].n_unique() == 2


def test_the_table_says_that_it_does_not_count(warm: Result) -> None:
    said = " ".join(repr(warm).split())
    assert "each flow from its start or from 8 s to its end; together: from 8 s on" in said
    assert "The first 8 s do not count" in said


def test_one_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ExperimentError, match=r'warmup: "20 s" is not before the end, "20 s"'):
        experiment(warmup="20 s")
    flows = [Flow(name="one", cc="reno")]
    without = dumbbell.run(experiment(flows=flows, warmup="0 s", duration="2 s"))
    assert without.flows["begin"].item() == 0
