"""Multipath flows: what files say of them, and what results hold of their subflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import dumbbell
from dumbbell import Experiment, ExperimentError, Result, metrics

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
duration = "5 s"
sample = "500 ms"
seeds = 2
start_jitter = "100 ms"
link = [
  { name = "wifi", rate = "20 Mbit/s", delay = "10 ms" },
  { name = "lte", rate = "10 Mbit/s", delay = "30 ms" },
]
flow = [
  { name = "laptop", cc = "reno", path = ["wifi"] },
  { name = "phone", cc = "lia", paths = [["wifi"], ["lte"]] },
]
"""


@pytest.fixture(scope="module")
def result() -> Result:
    return dumbbell.run(Experiment.parse(TEXT))


def test_a_resolved_experiment_says_what_each_subflow_is(result: Result) -> None:
    phone = result.experiment.flows[1]
    assert (phone.scheduler, phone.rtts) == ("default", ["20 ms", "60 ms"])
    assert (phone.path, phone.rtt, phone.return_paths) == (None, None, [[], []])
    assert result.experiment.resolve() == result.experiment


def test_a_queue_in_bdp_goes_by_the_longest_path_that_crosses_it() -> None:
    links = Experiment.parse(TEXT).resolve().links
    assert [link.queue for link in links] == ["50 kB", "75 kB"]


def test_a_result_has_the_connection_and_its_subflows(result: Result) -> None:
    assert result.flow_names == ["laptop", "phone"]
    assert result.subflows["flow"].to_list() == 2 * ["phone/1", "phone/2"]
    phone = result.flows.filter(pl.col("flow") == "phone")
    assert (
        phone["sent"].to_list()
        == result.subflows.group_by("seed", maintain_order=True)
        .agg(pl.col("sent").sum())["sent"]
        .to_list()
    )
    shown = result.subflow_internals["name"].cast(pl.String).unique().to_list()
    assert shown == ["alpha"]


def test_metrics_are_those_of_subflows_if_asked(result: Result) -> None:
    parts = result.by_subflow()
    rates = metrics.throughput(parts)
    assert rates["flow"].cast(pl.String).to_list() == 2 * ["laptop", "phone/1", "phone/2"]
    assert parts.by_subflow() is parts
    # Alone: beside the laptop up to 1 MB waits for data of the slower path at the end.
    alone = dumbbell.run(Experiment.parse(TEXT).replace(flows=result.experiment.flows[1:]))
    whole, both = (metrics.throughput(of)["throughput"].sum() for of in (alone, alone.by_subflow()))
    assert whole == pytest.approx(both, rel=0.05)


def test_a_saved_result_comes_back_with_its_subflows(result: Result, tmp_path: Path) -> None:
    back = Result.load(result.save(tmp_path / "out"))
    assert back.subflow_series.equals(result.subflow_series)
    assert back.of_seed(2).subflows["seed"].unique().to_list() == [2]
    again = dumbbell.run(Experiment.load(tmp_path / "out" / "experiment.toml"))
    assert again.subflow_series.equals(result.subflow_series)


def test_the_order_of_flows_in_a_file_changes_nothing(result: Result) -> None:
    flows = Experiment.parse(TEXT).flows
    turned = dumbbell.run(Experiment.parse(TEXT).replace(flows=flows[::-1]))
    for each in (result, turned):
        assert each.subflows["delivered"].to_list() == result.subflows["delivered"].to_list()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rtt": "50 ms"}, "rtt: is given beside paths; a flow of several paths has rtts"),
        ({"rtts": ["50 ms"]}, "rtts: has 1, but there are 2 paths; write one for each"),
        ({"rtts": ["5 ms", "60 ms"]}, r'rtts\[0\]: "5 ms" is less than the delay of its links'),
        ({"return_paths": [["moon"], []]}, r'return_paths\[0\]\[0\]: no link is called "moon"'),
        ({"transport": "udt", "cc": "udt"}, 'transport: "udt" has one path'),
        ({"stack_options": {"mss": 24}}, "mss: 24 bytes have no room .* at least 25 bytes"),
    ],
)
def test_keys_that_do_not_fit_a_multipath_flow_are_errors(
    changes: dict[str, object], said: str
) -> None:
    laptop, phone = Experiment.parse(TEXT).flows

    def change() -> None:
        Experiment.parse(TEXT).replace(flows=[laptop, phone.replace(**changes)]).resolve()

    with pytest.raises(ExperimentError, match=said):
        change()


def test_a_column_without_a_sum_is_null_for_a_connection_and_never_nan(result: Result) -> None:
    phone = result.series.filter(pl.col("flow") == "phone")
    assert phone["srtt"].null_count() == phone.height
    for table in result.tables:
        floats = getattr(result, table).select(pl.col(pl.Float32, pl.Float64).is_nan().any())
        assert not any(floats.row(0)), table


def test_bbr_takes_a_small_receive_window_for_the_bandwidth_as_in_linux() -> None:
    """Linux 6.18: 21.06 to 21.46 Mbit/s, and 0.79 to 0.86 (seven runs); nine here, with jitter."""
    limited = Experiment.parse("""
        duration = "30 s"
        seeds = 9
        stack_options = { receive_window = 33 }
        link = [
          { name = "first", rate = "33 Mbit/s", queue = "261 packets", jitter = "5 us" },
          { name = "second", rate = "16.5 Mbit/s", queue = "261 packets", jitter = "5 us" },
        ]
        flow = [{ cc = "bbr", paths = [["first"], ["second"]], rtts = ["12 ms", "24 ms"] }]
    """)
    goodput = metrics.goodput(dumbbell.run(limited).by_subflow())
    first, second = (
        paths["goodput"].to_list() for _, paths in goodput.group_by("flow", maintain_order=True)
    )
    assert first == pytest.approx([21.21e6] * 9, rel=0.03)
    assert second == pytest.approx([0.833e6] * 9, rel=0.06)


def test_subflows_end_when_their_connection_has_sent_all() -> None:
    phone = Experiment.parse(TEXT).flows[1].replace(bytes="1 MB")
    finite = dumbbell.run(Experiment.parse(TEXT).replace(duration="30 s", flows=[phone]))
    ends = dict(finite.flows.select("seed", "end").iter_rows())
    assert max(ends.values()) < 5
    assert finite.subflows["end"].to_list() == [ends[seed] for seed in finite.subflows["seed"]]
    parts = finite.by_subflow()
    whole, both = (metrics.goodput(of)["goodput"].sum() for of in (finite, parts))
    assert both == pytest.approx(whole, rel=0.05)
    windows = metrics.windows(parts)
    assert windows["t"].max() == max(ends.values())
