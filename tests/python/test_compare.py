"""`dumbbell.compare`: algorithms on one link, from Python."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from command import complaint_of

import dumbbell
from dumbbell import ExperimentError, OverwriteError, Result, ResultError, metrics
from dumbbell.sweeps.query import query

if TYPE_CHECKING:
    from pathlib import Path

_OF_TRAFFIC = ["completed_share", "completion_p50", "completion_p99"]

HALVES = """
from dumbbell.cc import WindowRule


class Halves(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        return acked / cwnd

    def decrease(self, cwnd, path, event):
        return cwnd / 2
"""


@pytest.fixture(scope="module")
def comparison() -> dumbbell.Comparison:
    return dumbbell.compare(
        ["cubic", "bbr3"], against="reno", rate="20 Mbit/s", duration="5 s", seeds=3
    )


def test_a_comparison_has_a_row_for_every_algorithm_and_seed(
    comparison: dumbbell.Comparison,
) -> None:
    runs = comparison.runs
    assert runs.select("algorithm", "seed").rows() == [
        (name, seed) for name in ("cubic", "bbr3") for seed in (1, 2, 3)
    ]
    assert runs["throughput"].is_between(1e6, 20e6).all()
    assert (runs["throughput"] + runs["rival_throughput"] < 20e6).all()
    assert runs["harm"].is_between(0, 1).all()


def test_its_summary_has_means_and_their_intervals(comparison: dumbbell.Comparison) -> None:
    summary = comparison.summary(ci=True)
    values = comparison.runs.filter(algorithm="cubic")["throughput"].to_list()
    expected = metrics.mean(values)
    cubic = summary.row(0, named=True)
    assert cubic["algorithm"] == "cubic"
    assert (cubic["throughput"], cubic["throughput_low"]) == (expected.value, expected.low)


def test_it_is_shown_as_the_table_of_the_command(comparison: dumbbell.Comparison) -> None:
    lines = repr(comparison).splitlines()
    assert "Harm" in repr(comparison)
    assert max(map(len, lines)) <= 100
    starts = [line.split()[0] for line in lines if line.strip() == line != ""]
    assert starts[1:3] == ["cubic", "bbr3"]
    html = comparison._repr_html_()
    assert html.startswith('<div class="dumbbell">\n<style>')
    assert html.count("<tr>") == 3


def test_its_flows_are_those_of_its_results(comparison: dumbbell.Comparison) -> None:
    flows = comparison.flows.filter(pl.col("algorithm") == "bbr3")
    expected = metrics.summary(comparison.results["bbr3"])
    assert flows["throughput"].to_list() == expected["throughput"].to_list()


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"rtt": "40"}, "rtt"),
        ({"rate": "fast"}, "rate"),
        ({"flows": 0}, "flows"),
        ({"against": "renu"}, "against"),
        ({"against": "reno", "against_flows": 0}, "against_flows"),
        ({"against_flows": 2}, "against_flows"),
        ({"cc": "cubik"}, "cc"),
        ({"cc": "linux:foo"}, "cc"),
        ({"against": "linux:foo"}, "against"),
        ({"traffic": "poisson(every=1 s)", "traffic_cc": "linux:foo"}, "traffic_cc"),
        ({"cc": "test_custom:Reno", "backend": "linux"}, "cc"),
    ],
)
def test_an_argument_that_is_wrong_is_named(arguments: dict[str, object], key: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        dumbbell.compare(**arguments)  # type: ignore[arg-type]
    assert caught.value.key == key


def test_one_flow_may_be_compared_against_several() -> None:
    path = {"rate": "20 Mbit/s", "duration": "5 s"}
    found = dumbbell.compare("bbr", against="cubic", flows=1, against_flows=3, **path)  # type: ignore[arg-type]
    assert found.results["bbr"].flows["cc"].cast(pl.String).to_list() == ["bbr", *["cubic"] * 3]
    assert found.rival is not None
    assert len(found.rival.flows) == 3
    assert 0 < found.runs["throughput"].item() < 20e6


def test_a_rival_that_never_starts_has_no_harm() -> None:
    late = {"rate": "10 Mbit/s", "start_jitter": "1000 s", "duration": "1 s"}
    found = dumbbell.compare("cubic", against="reno", flows=1, **late)  # type: ignore[arg-type]
    assert found.runs.select("rival_throughput", "harm").rows() == [(None, None)]
    found.plot()


def test_aqm_and_ecn_mark_packets_instead_of_dropping_them() -> None:
    settings = {"rate": "20 Mbit/s", "duration": "10 s", "aqm": "codel", "queue": "20 BDP"}
    dropped, marked = (
        dumbbell.compare("reno", ecn=ecn, **settings).runs  # type: ignore[arg-type]
        for ecn in ("off", "classic")
    )
    assert dropped["retransmission_share"][0] > 0
    assert marked["retransmission_share"][0] == 0
    assert marked["queue_delay_mean"][0] < 0.03


def test_traffic_beside_shows_how_long_short_transfers_take() -> None:
    found = dumbbell.compare(
        ["cubic", "bbr"],
        against="reno",
        traffic="poisson(load=0.3)",
        queue="4 BDP",
        duration="20 s",
    )
    assert found.runs.columns[-5:] == ["rival_throughput", "harm", *_OF_TRAFFIC]
    cubic = found.results["cubic"]
    times = metrics.transfer_summary(cubic).row(0, named=True)
    assert found.runs.row(0, named=True)["completion_p50"] == times["completion_p50"]
    # The rival is the flows of Reno, without the transfers.
    rival = metrics.summary(cubic).filter(pl.col("flow").cast(pl.String).str.contains("against"))
    left = metrics.group_throughput(rival)["throughput"].item()
    assert found.runs["rival_throughput"][0] == left
    assert "p99" in str(found.table())


def test_transfers_have_the_algorithm_that_is_asked_for() -> None:
    settings: dict[str, Any] = {"traffic": "poisson(load=0.3)", "duration": "2 s"}
    for asked, used in (("same", ["reno", "bbr"]), ("vegas", ["vegas", "vegas"])):
        found = dumbbell.compare(["reno", "bbr"], traffic_cc=asked, **settings)
        flows = [result.experiment.flows[-1] for result in found.results.values()]
        assert [flow.cc for flow in flows] == used
    with pytest.raises(ExperimentError, match="no algorithm is called") as error:
        dumbbell.compare(["reno"], traffic_cc="renu", **settings)
    assert error.value.key == "traffic_cc"


def test_transfers_that_do_not_end_are_in_the_table_and_in_no_bar() -> None:
    found = dumbbell.compare(["cubic", "bbr"], template="lte", traffic="poisson(load=0.3)")
    cubic, bbr = found.runs.iter_rows(named=True)
    assert cubic["completed_share"] < bbr["completed_share"] < 1
    assert cubic["completion_p50"] == math.inf > bbr["completion_p50"]
    bars = [panel for panel in found.plot().axes if "completion" in panel.get_xlabel()]
    widths = [panel.patches[0].get_width() for panel in bars]  # type: ignore[attr-defined]
    assert np.isnan(widths).tolist() == [True, True]
    assert all(jain > 0.5 for jain in found.runs["jain"])  # of the two flows, without the transfers


def test_the_folder_of_a_comparison_is_told_from_that_of_a_result(tmp_path: Path) -> None:
    out = tmp_path / "out"
    dumbbell.compare(["reno", "cubic"], duration="1 s", out=out)
    said = rf"it holds those of {out}/cubic, {out}/reno; name one of them"
    with pytest.raises(ResultError, match=said):
        Result.load(out)
    with pytest.raises(ResultError, match=said):
        query("from flows", out)


def test_results_are_written_into_folders_and_another_comparison_is_refused(
    tmp_path: Path,
) -> None:
    settings = {"rate": "20 Mbit/s", "duration": "5 s", "out": tmp_path / "out"}
    compared = dumbbell.compare(["reno", "cubic"], against="bbr", **settings)  # type: ignore[arg-type]
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["bbr alone", "cubic", "reno"]
    reno = Result.load(tmp_path / "out" / "reno")
    assert reno.flows.equals(compared.results["reno"].flows)
    with pytest.raises(OverwriteError, match="reno: holds another result"):
        dumbbell.compare("reno", flows=3, **settings)  # type: ignore[arg-type]


def test_an_algorithm_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    problem = 'cc: "cubic" is named twice; name every algorithm once'
    with pytest.raises(ExperimentError, match=problem):
        dumbbell.compare(["cubic", "reno", "cubic"], out=tmp_path / "out")
    with pytest.raises(ExperimentError, match="cc: names no algorithm"):
        dumbbell.compare([])
    said = complaint_of("compare", "--cc", "cubic,reno,cubic", cwd=tmp_path)
    assert said == f"--{problem}"


def test_names_that_differ_by_a_slash_have_folders_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/b.py", "a_b.py"):
        (tmp_path / name).write_text(HALVES)
    names = [f"{tmp_path}/a/b.py:Halves", f"{tmp_path}/a_b.py:Halves"]
    dumbbell.compare(names, duration="1 s", rate="1 Mbit/s", out=tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_it_plots_a_panel_for_each_metric(comparison: dumbbell.Comparison) -> None:
    panels = comparison.plot().axes
    assert panels[0].get_xlabel() == "Throughput (Mbit/s)"
    assert len(panels) == 6
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["CUBIC", "BBRv3"]


def test_real_packets_have_no_limit_on_the_interval() -> None:
    with pytest.raises(dumbbell.ExperimentError, match="until: is for the simulator"):
        dumbbell.compare("reno", until=dumbbell.Until(0.05), backend="linux")


def test_a_metric_that_runs_do_not_have_is_refused_before_any_run(tmp_path: Path) -> None:
    until = dumbbell.Until(0.05, "jane")
    link = dumbbell.Link(name="a", rate="1 Mbit/s", delay="5 ms")
    experiment = dumbbell.Experiment(links=[link], flows=[dumbbell.Flow(cc="reno")], duration="1 s")
    problem = re.escape('metric: no metric is called "jane" (did you mean "jain"?)')
    for refused in (
        lambda: dumbbell.run(experiment, until=until, out=tmp_path / "out"),
        lambda: dumbbell.compare("reno", until=until, out=tmp_path / "out"),
        lambda: dumbbell.sweep(
            experiment, {"flow.*.cc": ["reno"]}, until=until, out=tmp_path / "out"
        ),
    ):
        with pytest.raises(dumbbell.ExperimentError, match=f"^{problem}"):
            refused()
    assert not (tmp_path / "out").exists()
