"""QUIC flows: unmodified stacks in the simulator, from files and from Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command import dumbbell as command

import dumbbell
from dumbbell import Experiment, Flow, Link, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = Path(__file__).parents[2] / "examples" / "quic.toml"
LINK = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms")


def run(flows: Sequence[Flow], **keys: Any) -> Result:
    given: dict[str, Any] = {"duration": "20 s", "links": [LINK], "flows": list(flows)}
    return dumbbell.run(Experiment(**given | keys))


def quic(cc: str, **keys: Any) -> Flow:
    return Flow(cc=cc, transport="quic", **keys)


def test_a_quic_flow_has_the_same_columns_as_a_tcp_flow() -> None:
    flows = [quic("quinn:cubic", name="quic"), Flow(cc="cubic", name="tcp")]
    result = run(flows, seeds=[1, 2, 3, 4, 5], start_jitter="100 ms")
    rows = result.series.group_by("flow").agg(pl.col("cwnd", "srtt", "sent", "delivered").max())
    assert rows.null_count().to_numpy().sum() == 0
    assert rows.height == 2
    summary = result.summary()
    assert summary.filter(pl.col("flow") == "quic")["throughput"][0] > 5
    # Two CUBICs with the same round-trip time share the link; how, differs from run to run.
    rates = summary.sort("flow")["throughput"].to_list()
    assert min(rates) / max(rates) > 0.6


def test_the_same_seed_gives_the_same_tables() -> None:
    flows = [quic("quinn:bbr", name="a"), quic("noq:cubic", name="b"), quic("bbr3", name="c")]
    first, second = (run(flows, start_jitter="50 ms", seeds=[seed]) for seed in (7, 7))
    assert first.series.equals(second.series)
    assert first.flows.equals(second.flows)


def test_an_algorithm_in_python_controls_a_quic_flow(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from dumbbell.cc import CongestionControl\n\n\n"
        "class Constant(CongestionControl):\n"
        "    def __init__(self, init):\n        super().__init__(init)\n        self.cwnd = 20\n\n"
        "    def on_ack(self, path, ack):\n        pass\n\n"
        "    def on_congestion(self, path, event):\n        pass\n"
    )
    result = run([quic(f"{file}:Constant")], duration="5 s")
    late = result.series.filter(pl.col("t") > 2)
    assert late["cwnd"].min() == pytest.approx(20, abs=0.1)
    # 20 packets of 1452 bytes per round trip of 40 ms are 5.8 Mbit/s.
    row = result.flows.row(0, named=True)
    assert row["delivered"] * 8 / 5 == pytest.approx(20 * 1419 * 8 / 0.0406, rel=0.06)


def test_real_tls_gives_the_same_table_as_the_null_handshake() -> None:
    null, tls = (
        run([quic("quinn:cubic", transport_options={"crypto": crypto})], duration="5 s")
        for crypto in ("null", "rustls")
    )
    assert null.series.equals(tls.series)


def test_the_example_shows_that_both_fill_the_link_alone() -> None:
    result = dumbbell.run(Experiment.load(EXAMPLE, overrides=["seeds=1"]))
    for flow, begin, end in (("tcp", 5, 19), ("quic", 65, 79)):
        rows = result.series.filter(
            (pl.col("flow") == flow) & pl.col("t").is_between(begin, end)
        ).sort("t")
        received = rows["received"][-1] - rows["received"][0]
        # Data is 1448 of 1500 bytes of a packet over TCP and 1419 of 1480 over QUIC.
        assert received * 8 / (end - begin) == pytest.approx(19.2e6, rel=0.03)


def test_a_connection_that_the_stack_closes_is_warned_of(tmp_path: Path) -> None:
    outage = Link(
        name="bottleneck", rate="20 Mbit/s", delay="20 ms", loss=[["0 s", 0], ["2 s", 0.999999]]
    )
    flow = quic("quinn:cubic", name="video", transport_options={"idle_timeout": "1 s"})
    result = run([flow], links=[outage], duration="5 s")
    [failure] = result.meta["failures"]["1"]
    # RFC 9000, section 10.1: a second after the first packet behind the last that arrived.
    assert failure["t"] == pytest.approx(3.05, abs=0.1)
    assert (failure["flow"], failure["reason"]) == ("video", "timed out")
    said = f'"video" (seed 1): the stack closed the connection at {failure["t"]:.3g} s: timed out'
    assert said in result.warnings
    loaded = Result.load(result.save(tmp_path / "result"))
    assert said in loaded.warnings
    assert run([flow], duration="5 s").warnings == []


def test_media_in_datagrams_lose_what_the_link_loses() -> None:
    lossy = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms", loss=0.01)
    media = quic("cubic", app_rate="2 Mbit/s", transport_options={"datagrams": True})
    other = Flow(cc="none", transport="udp", app_rate="2 Mbit/s")
    for flow in (media, other):
        row = run([flow], links=[lossy]).flows.row(0, named=True)
        # Binomial: 1 % of some 4,300 datagrams, within four standard deviations.
        assert row["lost"] / row["sent"] == pytest.approx(0.01, abs=0.006)
        assert row["received"] * 8 / 20 == pytest.approx(2e6 * 0.99, rel=0.01)
        assert (row["delivered"], row["retransmitted"]) == (row["received"], 0)


def test_the_command_line_runs_a_quic_flow_and_warns_of_an_unseeded_one(tmp_path: Path) -> None:
    times = ("--set", "duration=5 s", "--set", "flow.tcp.stop=4 s", "--set", "flow.quic.start=1 s")
    stack = ("--set", "flow.quic.stack=noq", "--set", "flow.quic.cc=noq:bbr3")
    done = command("run", str(EXAMPLE), *times, *stack, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^quic +noq:bbr3", done.stdout, flags=re.M)
    assert "runs with the same seed differ" in done.stderr


def test_a_logged_flow_has_the_qlog_of_its_stack_in_the_result(tmp_path: Path) -> None:
    flows = [quic("quinn:cubic", name="a/b", log=True), quic("noq:cubic", name="plain")]
    result = run(flows, duration="2 s")
    folder = result.save(tmp_path / "result")
    assert [file.name for file in folder.glob("*.sqlog")] == ["qlog-1-a%2Fb.sqlog"]
    records = (folder / "qlog-1-a%2Fb.sqlog").read_text().split("\x1e")[1:]
    sent = [one for one in map(json.loads, records) if one.get("name", "").endswith(":packet_sent")]
    assert len(sent) == result.flows.filter(pl.col("flow") == "a/b")["sent"].item()
    # The folder can be written again, and read.
    result.save(folder)
    assert Result.load(folder).flows.equals(result.flows)
