"""Media over RTP: frames, their delays, and what files may say about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command import output_of
from polars.testing import assert_frame_equal

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, Result, metrics
from dumbbell.results.summary import summary_tables

if TYPE_CHECKING:
    from pathlib import Path


def call(cc: str = "gcc", rate: str = "5 Mbit/s", **keys: Any) -> Experiment:
    """A video call of at most 1 Mbit/s on a path of 20 ms."""
    given: dict[str, Any] = {"app_rate": "1 Mbit/s", "transport": "rtp", **keys}
    link = Link(name="access", rate=rate, delay="20 ms", queue="200 ms")
    return Experiment(duration="8 s", links=[link], flows=[Flow(name="call", cc=cc, **given)])


def test_an_idle_path_delays_frames_by_what_pacing_and_path_take() -> None:
    options = {"fps": 25, "size_noise": 0, "start_rate": "1 Mbit/s"}
    result = dumbbell.run(call(transport_options=options))
    row = metrics.frame_summary(result).row(0, named=True)
    # One at the very end too.
    assert (row["frames"], row["frames_lost"], row["frames_late"]) == (201, 0, 0)
    # 5000 bytes in 5 packets of 1000 at 2.5 Mbit/s: the last leaves 12.8 ms after the capture, and
    # takes 20 ms and the time of its 1028 bytes at 5 Mbit/s.
    expected = 4 * 1000 * 8 / 2.5e6 + 0.020 + 1028 * 8 / 5e6
    assert row["frame_delay_mean"] == pytest.approx(expected, abs=1e-4)
    # Headers of 20 bytes in each packet are no media.
    assert row["media_rate"] == pytest.approx(1e6 * 980 / 1000, rel=0.01)


def test_metrics_of_frames_follow_from_their_rows() -> None:
    result = dumbbell.run(call("scream", rate="600 kbit/s"))
    delays = metrics.frame_delays(result)
    took = result.frames["completed"] - result.frames["start"]
    assert delays["delay"].to_list() == took.to_list()
    row = metrics.frame_summary(result).row(0, named=True)
    assert row["frame_delay_p95"] == pytest.approx(took.quantile(0.95, "linear"))
    late = result.frames.filter(took > 0.4).height / result.frames.height
    assert row["frames_late"] == pytest.approx(late)


def test_media_is_in_tables_json_storage_and_sweeps(tmp_path: Path) -> None:
    (tmp_path / "call.toml").write_text(call().to_toml())
    said = json.loads(output_of("run", "call.toml", "--json", cwd=tmp_path))["media"][0]
    loaded = dumbbell.load(tmp_path / "results" / "call")
    assert isinstance(loaded, Result)
    assert said["frames"] == loaded.frames.height == 201
    assert_frame_equal(loaded.frames, dumbbell.run(call()).frames)
    titles = [column.title for column in summary_tables(loaded)[-1].columns]
    assert titles[:2] == ["Flow of media", "Algorithm"]
    text = call().to_toml() + '[sweep]\n"flow.call.cc" = ["gcc", "scream"]\n'
    (tmp_path / "calls.toml").write_text(text)
    swept = dumbbell.sweep(tmp_path / "calls.toml", out=tmp_path / "out")
    flows = swept.dataset.table("flows")
    assert flows["frames"].to_list() == [201, 201]
    assert flows["frame_delay_p95"].is_not_null().all()


def test_media_pauses_at_a_rate_of_zero() -> None:
    rates = [["0 s", "1 Mbit/s"], ["2 s", "0 bit/s"], ["5 s", "1 Mbit/s"]]
    result = dumbbell.run(call(app_rate=None, app_rates=rates))
    starts = result.frames["start"]
    assert starts.filter(starts.is_between(2, 5, closed="left")).is_empty()
    assert starts.filter(starts >= 5).len() == 76


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"cc": "cubic"}, '"cubic" does not control media over RTP; choose from scream, gcc'),
        ({"app_rate": None}, "app_rate: is missing; it is the maximum rate of the media"),
        ({"transport_options": {"fps": 0}}, "transport_options.fps: 0 is not a whole number"),
        ({"transport_options": {"ecn": "l4s"}}, "gcc does not react to marks"),
        (
            {"app_rate": "3 Mbit/s", "transport_options": {"min_rate": "4 Mbit/s"}},
            "transport_options.min_rate: is above the maximum, the flow's app_rate of 3 Mbit/s",
        ),
        ({"transport": "tcp"}, '"gcc" controls the rate of media; write transport = "rtp"'),
        ({"bytes": "1 MB"}, "bytes: is not for media over RTP"),
    ],
)
def test_keys_that_do_not_fit_media_are_named(keys: dict[str, Any], part: str) -> None:
    with pytest.raises(ExperimentError, match="flow") as error:
        call(**keys)
    assert part in str(error.value)


def test_scream_uses_l4s_marks_to_keep_the_queue_short() -> None:
    """SCReAMv2 aims at two marks a round trip (draft, "Discussion"), not at a standing queue."""
    link = Link(name="access", rate="5 Mbit/s", delay="20 ms", aqm="dualpi2")
    delays = {}
    for ecn in ("off", "l4s"):
        options = {"ecn": ecn, "size_noise": 0}
        flow = Flow(cc="scream", transport="rtp", app_rate="20 Mbit/s", transport_options=options)
        result = dumbbell.run(Experiment(duration="20 s", links=[link], flows=[flow]))
        delays[ecn] = result.flows["queue_delay_p95"].item()
        if ecn == "l4s":
            assert result.links.select(pl.col("marked").max()).item() > 100
    assert delays["l4s"] < 0.7 * delays["off"]
