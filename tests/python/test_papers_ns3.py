"""The flows of ns-3, and the simulator and a paper's report beside them."""

from __future__ import annotations

import ns3_flows
import pytest

import dumbbell
from dumbbell import metrics
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Paper, folder_of

FOLDER = folder_of("f-bbrv2")


def throughputs(run: str) -> list[float]:
    return ns3_flows.of(run)["throughput"].to_list()


def jain(run: str) -> str:
    return f"{metrics.jain(throughputs(run)):.2f}"


def test_the_report_shows_what_ns3_did() -> None:
    tables = {
        table.id: {row.label: row.cells for row in table.rows}
        for table in Paper.load(FOLDER).comparisons
    }
    alone, pairs = tables["ns3-alone"], tables["ns3-pairs"]
    for release, lossless, lossy in (
        ("3.39", "earlier-alone-0", "earlier-alone-0.5"),
        ("3.44", "alone-TcpBbr", "paper-0.5"),
    ):
        shown = [f"{throughputs(run)[0]:.1f}" for run in (lossless, lossy)]
        assert alone[f"ns-3 {release}"] == shown
    for words, run in {
        "segments of 536 bytes": "segment-536",
        "socket buffers of 131,072 bytes": "buffers",
        "access link with 100 packets": "access-queue",
        "FQ-CoDel above the devices": "fq-codel",
    }.items():
        assert alone[f"ns-3 3.44, its default {words}"] == [f"{throughputs(run)[0]:.1f}", ""]
    for words, start in {
        "started together": "together",
        "BBRv1 30 ms earlier": "bbr-first",
        "CUBIC 30 ms earlier": "cubic-first",
    }.items():
        shallow, deep = (jain(f"earlier-{queue}-{start}") for queue in ("0.7", "4"))
        assert pairs[f"ns-3 3.39, {words}: Jain's index"] == [shallow, "", deep, ""]
    runs = [f"pair-{queue}" for queue in ns3_flows.QUEUES]
    assert pairs["ns-3 3.44: Jain's index"] == [jain(run) for run in runs]
    for place, name in enumerate(("BBRv1", "CUBIC")):
        shown = [f"{throughputs(run)[place]:.1f}" for run in runs]
        assert pairs[f"ns-3 3.44: {name}, Mbit/s"] == shown


def test_a_run_that_ns3_did_not_make_is_refused() -> None:
    with pytest.raises(ValueError, match="no run of ns-3 is called pair-9"):
        ns3_flows.of("pair-9")


def test_cubic_with_ns3s_hystart_loses_the_packets_of_ns3s_cubic() -> None:
    cc = "flow.*.cc=cubic(slow_start=hystart-ns3)"
    cubic = [cc, "duration=60 s", "start_jitter=0 s", "seeds=1"]
    ours = dumbbell.run(Experiment.load(FOLDER / "alone.toml", overrides=cubic))
    theirs = ns3_flows.of("alone-TcpCubic").row(0, named=True)
    assert ours.flows["retransmitted"].to_list() == [theirs["retransmitted"]]
    assert 8 * ours.flows["delivered"][0] / 60e6 == pytest.approx(theirs["throughput"], rel=0.002)
