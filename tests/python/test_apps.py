"""Applications: requests and responses, video clients, and pauses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command import output_of

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, Result, metrics
from dumbbell.results.summary import summary_tables

if TYPE_CHECKING:
    from pathlib import Path

VIDEO = "video(segment=4 s, buffer=20 s)"


def path(rate: str = "10 Mbit/s") -> list[Link]:
    """A link with a base RTT of 40 ms."""
    return [Link(name="access", rate=rate, delay="20 ms", queue="4 BDP")]


def run(rate: str = "10 Mbit/s", duration: str = "60 s", **keys: Any) -> Result:
    """One flow of Reno with these keys."""
    flow = Flow(name="client", cc="reno", **keys)
    return dumbbell.run(Experiment(duration=duration, links=path(rate), flows=[flow]))


def test_a_small_response_takes_a_round_trip_and_the_time_of_its_bytes() -> None:
    result = run(app="requests(think=200 ms, random=off)", sizes="constant(size=1448 B)")
    times = metrics.completion_times(result).drop_nulls("took")
    # A packet of 1500 bytes at 10 Mbit/s, and an acknowledgement without a rate.
    expected = 0.040 + 1500 * 8 / 10e6
    assert times["took"].to_numpy() == pytest.approx(expected, abs=1e-6)
    # The next request comes 200 ms after the response.
    assert times["start"].diff().drop_nulls().to_numpy() == pytest.approx(expected + 0.2, abs=1e-6)
    # One round trip and the bytes are the idle path; headers are not counted.
    assert times["slowdown"].to_numpy() == pytest.approx(expected / (0.04 + 1448 * 8 / 10e6))


def test_messages_have_the_bytes_that_are_asked_for_and_no_more() -> None:
    # A response of 2,000 bytes is a packet of 1,448 and one of 552 bytes, each with 52 of headers.
    result = run("1 Mbit/s", "10 s", app="requests", sizes="constant(size=2000 B)")
    took = metrics.completion_times(result)["took"].drop_nulls()
    assert took[5] == pytest.approx(0.04 + 8 * (2000 + 2 * 52) / 1e6, abs=1e-3)
    for delivered in result.flows.select("received", "delivered").row(0):
        assert 0 <= delivered - 2000 * len(took) <= 2000
    series = result.series["delivered"].to_list()
    assert series == sorted(series)


def test_large_responses_keep_the_window_of_the_connection() -> None:
    result = run(app="requests", sizes="constant(size=1 MB)", duration="20 s")
    took = metrics.completion_times(result).drop_nulls("took")["took"]
    # 1 MB at 10 Mbit/s with headers is 0.83 s; only the first response needs slow start.
    assert took[0] > took[5]
    assert took[5] == pytest.approx(0.04 + 1e6 * 8 / 10e6 * 1500 / 1448, rel=0.1)


def test_a_video_on_a_fast_path_starts_at_once_and_never_stalls() -> None:
    result = run(app=VIDEO, ladder=["1 Mbit/s"], duration="100 s")
    row = metrics.video_summary(result).row(0, named=True)
    assert (row["stalls"], row["switches"], row["bitrate_mean"]) == (0, 0, 1e6)
    # A handshake, and 500 kB, which take at least 0.41 s and a round trip.
    assert 0.49 < row["startup_delay"] < 0.9
    # With the buffer full there is a request every 4 s.
    late = result.segments.filter(pl.col("start") > 40)["start"].diff().drop_nulls()
    assert late.to_numpy() == pytest.approx(4.0, abs=1e-6)


def test_a_video_above_the_capacity_stalls_for_the_difference() -> None:
    result = run("1 Mbit/s", app=VIDEO, ladder=["2 Mbit/s"], duration="100 s")
    segments = result.segments.drop_nulls("completed")
    # 1 MB at 1 Mbit/s, 8.29 s with headers, for 4 s of video.
    stalled = segments["stalled"][2:]
    assert stalled.to_numpy() == pytest.approx(8 * 1500 / 1448 - 4, rel=0.05)
    row = metrics.video_summary(result).row(0, named=True)
    # It stalls before each segment but the first, and until the end.
    assert row["stalls"] == segments.height
    last = 100 - segments["completed"][-1] - 4
    assert row["stall_time"] == pytest.approx(segments["stalled"].sum() + last)


def test_a_video_that_starves_to_the_end_stalls_until_then() -> None:
    links = [Link(name="access", rates=[["0 s", "10 Mbit/s"], ["20 s", "0 bit/s"]], queue="1 MB")]
    flow = Flow(name="client", cc="reno", app=VIDEO, ladder=["1 Mbit/s"], rtt="40 ms")
    result = dumbbell.run(Experiment(duration="100 s", links=links, flows=[flow]))
    row = metrics.video_summary(result).row(0, named=True)
    assert row["stalls"] == 1
    assert 100 - 20 - 20 - 4 < row["stall_time"] < 100 - 20


def test_a_video_of_which_nothing_arrives_never_starts() -> None:
    result = run("100 kbit/s", "30 s", app=VIDEO, ladder=["1 Mbit/s"])
    row = metrics.video_summary(result).row(0, named=True)
    assert (row["segments"], row["startup_delay"], row["stalls"]) == (0, None, 0)


def test_a_buffer_based_client_takes_the_capacity_on_average() -> None:
    """Huang et al., section 3: with a long video the mean rate comes near to the capacity."""
    ladder = ["1 Mbit/s", "2 Mbit/s", "3 Mbit/s", "4 Mbit/s", "5 Mbit/s"]
    result = run("3.7 Mbit/s", app="video(buffer=40 s)", ladder=ladder, duration="400 s")
    row = metrics.video_summary(result).row(0, named=True)
    late = result.segments.drop_nulls("completed").filter(pl.col("start") > 100)
    # 3.7 Mbit/s less headers: between the rates of 3 and 4 Mbit/s.
    assert late["rate"].mean() == pytest.approx(3.7e6 * 1448 / 1500, rel=0.1)
    assert set(late["rate"].to_list()) <= {3e6, 4e6}
    assert row["stalls"] == 0


def test_pauses_have_their_share_of_the_time_over_tcp_and_udp() -> None:
    over: list[dict[str, Any]] = [{"cc": "cubic"}, {"cc": "none", "transport": "udp"}]
    for keys in over:
        flow = Flow(name="f", app="on-off(on=1 s, off=3 s)", app_rate="2 Mbit/s", **keys)
        one = Experiment(duration="400 s", seeds=2, links=path(), flows=[flow])
        result = dumbbell.run(one)
        rates = metrics.summary(result)["goodput"]
        # A quarter of 2 Mbit/s; 100 cycles have a standard deviation of 12 %.
        assert rates.to_numpy() == pytest.approx(0.5e6, rel=0.35)
        assert rates[0] != rates[1]


def test_video_and_responses_are_in_tables_and_json(tmp_path: Path) -> None:
    flows = [
        Flow(name="video", cc="cubic", app=VIDEO),
        Flow(name="web", cc="cubic", app="requests(think=1 s)", sizes="web-search"),
    ]
    one = Experiment(duration="30 s", links=path(), flows=flows)
    (tmp_path / "apps.toml").write_text(one.to_toml())
    said = json.loads(output_of("run", "apps.toml", "--json", cwd=tmp_path))
    loaded = dumbbell.load(tmp_path / "results" / "apps")
    assert isinstance(loaded, Result)
    assert said["video"][0]["segments"] == loaded.segments.drop_nulls("completed").height
    assert said["transfers"][0]["transfers"] == loaded.transfers.height
    titles = [table.columns[0].title for table in summary_tables(loaded)]
    assert titles[2:] == ["Flow of transfers", "Flow of video"]


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"app": "requests"}, "sizes: is missing; it gives the sizes of the responses"),
        ({"app": "video", "bytes": "1 MB"}, 'bytes: is not for app = "video"'),
        ({"app": "video", "transport": "udt"}, '"udt" does not carry app = "video"'),
        ({"app": "on-off"}, "app_rate: is missing"),
        ({"ladder": ["1 Mbit/s"]}, 'ladder: is for app = "video"'),
        ({"app": "video(buffer=30 s, reservoir=20 s)"}, "reservoir and cushion are"),
    ],
)
def test_keys_that_do_not_fit_an_application_are_named(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(ExperimentError) as error:
        Experiment(duration="9 s", links=path(), flows=[Flow(cc="cubic", **keys)])
    assert part in str(error.value)


def test_rates_of_a_file_are_sent_as_they_are_over_udp(tmp_path: Path) -> None:
    (tmp_path / "video.txt").write_text("# s bit/s\n0 2e6\n4 0\n6 4e6\n")
    flow = Flow(name="vbr", cc="none", transport="udp", app_rates="video.txt")
    one = Experiment(duration="10 s", links=path(), flows=[flow])
    (tmp_path / "vbr.toml").write_text(one.to_toml())
    loaded = Experiment.load(tmp_path / "vbr.toml")
    expected = [["0 ms", "2 Mbit/s"], ["4 s", "0 Mbit/s"], ["6 s", "4 Mbit/s"]]
    assert loaded.resolve().flows[0].app_rates == expected
    # 2 Mbit/s for 4 s and 4 Mbit/s for 4 s, in packets of 1200 bytes; a few are on their way.
    received = dumbbell.run(loaded).flows["received"].item()
    assert received == pytest.approx(3e6, rel=0.01)
    (tmp_path / "video.txt").write_text("0 fast\n")
    with pytest.raises(ExperimentError, match="write a time in s and a rate in bit/s"):
        loaded.resolve()
