"""``dumbbell export``: what other programs read says what the result says."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import dumbbell
from dumbbell import Result, metrics
from dumbbell.cli.export import export_result
from dumbbell.errors import ResultError
from dumbbell.experiment.capacity import trace_capacity
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.exports import FORMATS, export

LOGGED = """
title = "Logged and not"
duration = "4 s"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "20 packets"
[[flow]]
name = "logged"
cc = "reno"
log = true
[[flow]]
name = "plain"
cc = "bbr"
"""

EVENTS = {
    "recovery:metrics_updated": set(),
    "recovery:congestion_state_updated": {"new"},
    "recovery:packet_lost": {"header"},
    "transport:packet_sent": {"header", "raw", "frames"},
    "transport:packet_received": {"header", "raw", "frames"},
}
"""The events that are used, and what the data of each must have."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "result"
    dumbbell.run(Experiment.parse(LOGGED), out=folder)
    return folder


@pytest.fixture(scope="module")
def qlog(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (path,) = export(folder, "qlog", tmp_path_factory.mktemp("qlog"))
    assert path.name == "seed-1.qlog"
    said: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return said


def text(link: Link, duration: str) -> str:
    """The rate of a link as a trace of mahimahi."""
    flow = Flow(name="f", cc="reno", rtt="1 s")
    experiment = Experiment(links=[link], flows=[flow], duration=duration)
    return experiment.resolve().mahimahi_traces()[link.name]


def of(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["events"] if event["name"] == name]


def test_a_qlog_file_has_all_that_the_schema_requires(qlog: dict[str, Any]) -> None:
    assert (qlog["qlog_version"], qlog["qlog_format"]) == ("draft-02", "JSON")
    assert [trace["title"] for trace in qlog["traces"]] == ["logged", "plain"]
    for trace in qlog["traces"]:
        assert trace["vantage_point"]["type"] == "server"
        assert trace["common_fields"]["time_format"] == "relative"
        assert trace["common_fields"]["reference_time"] == 0
        for event in trace["events"]:
            assert set(event) == {"time", "name", "data"}
            assert set(event["data"]) >= EVENTS[event["name"]]
        assert all(a["time"] <= b["time"] for a, b in pairwise(trace["events"]))


def test_metrics_are_those_of_the_samples_in_bytes_and_milliseconds(
    folder: Path, qlog: dict[str, Any]
) -> None:
    series = Result.load(folder).series.filter(flow="logged")
    updates = of(qlog["traces"][0], "recovery:metrics_updated")
    assert [one["time"] for one in updates] == pytest.approx((series["t"] * 1e3).to_list())
    last, row = updates[-1]["data"], series.row(-1, named=True)
    assert last["congestion_window"] == round(row["cwnd"] * 1448)
    assert last["smoothed_rtt"] == pytest.approx(row["srtt"] * 1e3)
    assert last["packets_in_flight"] == row["in_flight"]
    assert "pacing_rate" not in last  # Reno is not paced
    assert of(qlog["traces"][1], "recovery:metrics_updated")[-1]["data"]["pacing_rate"] > 0


def test_a_logged_flow_has_every_packet_and_what_was_sent_again_was_lost(
    folder: Path, qlog: dict[str, Any]
) -> None:
    logged, plain = qlog["traces"]
    flow = Result.load(folder).flows.filter(flow="logged").row(0, named=True)
    sent = of(logged, "transport:packet_sent")
    assert len(sent) == flow["sent"]
    assert [one["data"]["header"]["packet_number"] for one in sent] == list(range(len(sent)))
    assert len(of(logged, "recovery:packet_lost")) == flow["retransmitted"] > 0
    assert of(plain, "transport:packet_sent") == []


def test_acknowledgements_cover_packets_that_were_sent_before_and_each_once(
    folder: Path, qlog: dict[str, Any]
) -> None:
    trace, _ = qlog["traces"]
    acked: set[int] = set()
    sent: dict[int, int] = {}
    for event in trace["events"]:
        data = event["data"]
        if event["name"] == "transport:packet_sent":
            sent[data["header"]["packet_number"]] = data["raw"]["payload_length"]
        elif event["name"] == "transport:packet_received":
            for frame in data["frames"]:
                for low, high in frame["acked_ranges"]:
                    numbers = set(range(low, high + 1))
                    assert numbers <= set(sent)
                    assert not numbers & acked
                    acked |= numbers
    flow = Result.load(folder).flows.filter(flow="logged").row(0, named=True)
    assert sum(sent[number] for number in acked) == flow["delivered"]


def test_csv_and_arrow_have_the_tables(folder: Path, tmp_path: Path) -> None:
    result = Result.load(folder)
    for kind in ("csv", "arrow"):
        paths = export(folder, kind, tmp_path / kind)
        assert [path.stem for path in paths] == list(result.tables)
    flows = pl.read_csv(tmp_path / "csv" / "flows.csv")
    rates = metrics.throughput(result)["throughput"].to_list()
    assert flows["throughput"].to_list() == pytest.approx(rates)
    assert set(flows.columns) > set(result.flows.columns)
    assert flows["delivered"].to_list() == result.flows["delivered"].to_list()
    with pa.ipc.open_file(tmp_path / "arrow" / "series.arrow") as file:
        table = file.read_all()
    assert table.column_names == result.series.columns
    assert table["cwnd"].to_pylist() == result.series["cwnd"].to_list()
    assert table["flow"].to_pylist() == result.series["flow"].cast(pl.String).to_list()


def test_captures_are_those_of_the_result(folder: Path, tmp_path: Path) -> None:
    paths = export(folder, "pcapng", tmp_path)
    assert [p.name for p in paths] == ["packets-1-receiver.pcapng", "packets-1-sender.pcapng"]
    assert all(path.read_bytes() == (folder / path.name).read_bytes() for path in paths)


@pytest.mark.parametrize(
    ("rate", "length"), [("12 Mbit/s", 1), ("10 Mbit/s", 6), ("1 Gbit/s", 3), ("100 kbit/s", 120)]
)
def test_a_constant_rate_is_a_short_trace_of_exactly_that_rate(rate: str, length: int) -> None:
    times = [int(line) for line in text(Link(name="l", rate=rate), "10 s").split()]
    assert times[-1] == length
    bits = {"12 Mbit/s": 12e6, "10 Mbit/s": 10e6, "1 Gbit/s": 1e9, "100 kbit/s": 1e5}[rate]
    assert trace_capacity(times, 0.0, 12.0) == pytest.approx(bits * 12, rel=1e-9)


def test_rates_that_vary_are_met_to_an_opportunity_at_any_time() -> None:
    link = Link(name="l", rates=[["0 s", "12 Mbit/s"], ["1 s", "0 bit/s"], ["2 s", "6 Mbit/s"]])
    times = [int(line) for line in text(link, "3 s").split()]
    assert times[-1] == 3000
    for until, bits in ((0.5, 6e6), (1.0, 12e6), (1.9, 12e6), (2.5, 15e6)):
        assert trace_capacity(times, 0.0, until) == pytest.approx(bits, abs=12_000)


def test_a_trace_that_ends_in_an_outage_is_as_long_as_the_experiment() -> None:
    link = Link(name="l", rates=[["0 s", "12 Mbit/s"], ["1 s", "0 bit/s"]])
    times = [int(line) for line in text(link, "3 s").split()]
    assert times == [*range(1, 1001), 3000]


def test_a_trace_comes_out_as_it_went_in(tmp_path: Path) -> None:
    times = [0, 0, 3, 7, 7, 9]
    (tmp_path / "in").write_text("".join(f"{time}\n" for time in times))
    link = Link(name="l", trace=times)
    assert text(link, "1 s") == (tmp_path / "in").read_text()


def test_a_damaged_capture_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    capture = copied / "packets-1-sender.pcapng"
    capture.write_bytes(capture.read_bytes()[:-10])
    with pytest.raises(ResultError, match=r"packets-1-sender\.pcapng: the capture is damaged"):
        export(copied, "qlog", tmp_path / "out")


def test_a_trace_stays_in_its_folder_whatever_its_link_is_called(tmp_path: Path) -> None:
    named = Experiment.parse(LOGGED).override("duration=1 s").override("link.*.name=../50%")
    folder = dumbbell.run(named).save(tmp_path / "run")
    (path,) = export(folder, "mahimahi", tmp_path / "out")
    assert path == tmp_path / "out" / "..%2F50%25.trace"
    assert path.is_file()


def test_what_cannot_be_exported_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r'no format is called "cvs" \(did you mean "csv"'):
        export(folder, "cvs", tmp_path)
    with pytest.raises(ResultError, match="is not a result folder"):
        export(tmp_path, "csv", tmp_path)
    plain = tmp_path / "plain"
    text_of = LOGGED.replace("log = true", "").replace('rate = "10 Mbit/s"', "")
    dumbbell.run(
        Experiment.parse(
            text_of.replace('queue = "20 packets"', "")
            .replace("4 s", "1 s")
            .replace('cc = "reno"', 'cc = "reno"\nbytes = "1 kB"')
            .replace('cc = "bbr"', 'cc = "bbr"\nbytes = "1 kB"')
        ),
        out=plain,
    )
    again = r"none of its flows is logged; run it again: dumbbell run .* --out .*/plain-logged$"
    with pytest.raises(ResultError, match=again):
        export(plain, "pcapng", tmp_path / "new")
    with pytest.raises(ResultError, match="none of its links has a rate"):
        export(plain, "mahimahi", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "swept").mkdir()
    (tmp_path / "swept" / "plan.parquet").touch()
    with pytest.raises(ResultError, match=r"is a sweep.*dumbbell query"):
        export(tmp_path / "swept", "csv", tmp_path)
    assert list(FORMATS) == ["csv", "arrow", "qlog", "pcapng", "mahimahi"]


@pytest.mark.parametrize("place", [".", "..", "../result"])
def test_a_result_named_by_dots_is_exported_beside_it(
    folder: Path, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = shutil.copytree(folder, tmp_path / "result")
    inside = result / "sources"
    inside.mkdir()
    monkeypatch.chdir(inside if place == ".." else result)
    export_result(Path(place))
    assert (tmp_path / "result-csv" / "flows.csv").is_file()
    assert not list(result.rglob("*.csv"))
