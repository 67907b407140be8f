"""Sweeps from Python: `dumbbell.sweep`, its tables and its figure."""

from __future__ import annotations

import gc
import tempfile
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import dumbbell
from dumbbell import DumbbellError, Experiment, ExperimentError, Flow, Link, metrics
from dumbbell.cli.app import app
from dumbbell.results.summary import means
from dumbbell.sweeps.plan import Sweep
from dumbbell.sweeps.result import LiveTable

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = Experiment(
    links=[Link(name="l", rate="10 Mbit/s", delay="10 ms")],
    flows=[Flow(name="one", cc="reno"), Flow(name="two", cc="cubic")],
    duration="3 s",
    start_jitter="100 ms",
    seeds=2,
)
AXES = {"flow.one.cc": ["reno", "bbr3"], "link.l.queue": ["0.5 BDP", "2 BDP"]}


@pytest.fixture(scope="module")
def swept() -> dumbbell.SweepResult:
    return dumbbell.sweep(EXPERIMENT, AXES)


def test_a_sweep_has_a_row_for_every_point_and_seed(swept: dumbbell.SweepResult) -> None:
    assert swept.axes == ["cc", "queue"]
    assert swept.runs.select("cc", "queue", "seed").rows() == [
        (cc, queue, seed) for cc in ("reno", "bbr3") for queue in (0.5, 2.0) for seed in (1, 2)
    ]
    assert swept.flows.height == 16
    assert swept.links.height == 8


def test_what_is_shown_of_a_running_sweep_may_get_more_columns(
    swept: dumbbell.SweepResult,
) -> None:
    """Only runs with transfers have columns of these."""
    live = LiveTable(Sweep.of(EXPERIMENT, AXES).axes)
    live.add(swept.runs)
    first = live.table().rows
    live.add(swept.runs.with_columns(transfers=pl.lit(3)))
    both = live.table().rows
    assert [row[1] for row in both] == [8, 8]
    assert [row[2:] for row in both] == [row[2:] for row in first]


def test_its_rows_are_those_of_the_experiment_run_alone(swept: dumbbell.SweepResult) -> None:
    alone = dumbbell.run(EXPERIMENT.override("flow.one.cc=bbr3", "link.l.queue=2 BDP"))
    rows = swept.runs.filter(cc="bbr3", queue=2.0)
    together = metrics.group_throughput(metrics.summary(alone))
    assert rows["throughput"].to_list() == together["throughput"].to_list()


def test_its_summary_has_means_and_intervals_of_points(swept: dumbbell.SweepResult) -> None:
    summary = swept.summary(ci=True)
    assert summary.select("cc", "queue").rows()[0] == ("reno", 0.5)
    values = swept.runs.filter(cc="reno", queue=0.5)["jain"].to_list()
    assert summary["jain_high"][0] == metrics.mean(values, "jain").high
    assert "0.5 BDP" in repr(swept)
    html = swept._repr_html_()
    assert type(html) is str
    assert html.startswith('<div class="dumbbell">\n<style>')
    assert "<table>" in html


def test_its_figure_has_a_line_for_each_of_a_group(swept: dumbbell.SweepResult) -> None:
    ax = swept.plot("queue", "utilisation", by="cc")
    assert ax.get_legend_handles_labels()[1] == ["Reno", "BBRv3"]
    assert ax.get_ylabel() == "Utilisation (%)\nmean, 95 % interval, 2 runs"
    line = ax.lines[0]
    reno = swept.summary().filter(pl.col("cc") == "reno")
    assert np.asarray(line.get_xdata()).tolist() == [0.5, 2.0]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx(
        (reno["utilisation"] * 100).to_list()
    )
    band = ax.collections[0].get_paths()[0].vertices
    low = swept.summary(ci=True)["utilisation_low"].head(2) * 100
    assert np.min(band, axis=0)[1] == pytest.approx(low.min())
    text = swept.plot("cc", "jain", by="queue", ax=ax)
    assert text is ax


def test_a_figure_of_what_there_is_not_is_refused(swept: dumbbell.SweepResult) -> None:
    with pytest.raises(DumbbellError, match='no axis is called "rate"'):
        swept.plot("rate")
    alone = dumbbell.sweep(EXPERIMENT, {"link.l.rate": ["5 Mbit/s"]}, seeds=1)
    with pytest.raises(DumbbellError, match='no axis is called "cc"; choose from rate'):
        alone.plot("cc", by="cc")
    with pytest.raises(DumbbellError, match=r'no axis is called "c".*; choose from rate, cc'):
        alone.plot("rate", by="c")
    with pytest.raises(DumbbellError, match='no metric of a run is called "speed"'):
        swept.plot("queue", "speed")


def test_metrics_of_some_flows_are_those_of_the_command(swept: dumbbell.SweepResult) -> None:
    rows = swept.flows.filter(pl.col("point") == 0)
    of = pl.col("delivered").filter(pl.col("flow") == "two").sum() / pl.col("delivered").sum()
    shares = rows.group_by("seed", maintain_order=True).agg(of)["delivered"].to_list()
    expected = metrics.mean(shares, "share")
    for name in ("share of two", "share of cubic"):
        found = swept.means(name).row(0, named=True)
        assert found == {"cc": "reno", "queue": 0.5, "n": 2} | {
            "mean": pytest.approx(expected.value),
            "low": expected.low,
            "high": expected.high,
        }
    assert swept.plot("queue", "share of cubic", by="cc").get_ylabel().startswith("CUBIC's share")
    rates = rows.filter(pl.col("flow") == "one")["throughput"]
    assert swept.means("throughput of one")["mean"][0] == pytest.approx(rates.mean())
    reno = swept.flows.filter(pl.col("point") == 0, pl.col("cc").cast(pl.String) == "reno")
    recoveries = reno.group_by("seed").agg(pl.sum("recoveries"))["recoveries"].mean()
    assert swept.means("recoveries of reno")["mean"][0] == recoveries
    assert swept.means("jain of one")["mean"][0] == 1.0
    with pytest.raises(DumbbellError, match=r'or flow is called "three"; .* bbr3, one, two'):
        swept.means("share of three")


def test_a_sweep_in_a_folder_is_resumed_loaded_and_queried(tmp_path: Path) -> None:
    first = dumbbell.sweep(EXPERIMENT, {"link.l.rate": ["5 Mbit/s"]}, out=tmp_path / "s").runs
    more = dumbbell.sweep(EXPERIMENT, {"link.l.rate": ["5 Mbit/s", "8 Mbit/s"]}, out=tmp_path / "s")
    loaded = dumbbell.load(tmp_path / "s")
    assert isinstance(loaded, dumbbell.SweepResult)
    assert loaded.runs.equals(more.runs)
    assert more.runs.head(2).equals(first)
    found = dumbbell.query("select count(*) as runs from runs", tmp_path / "s")
    assert found["runs"].item() == 4


@pytest.mark.parametrize(
    ("name", "command"),
    [("plan.parquet", "query"), ("plan.parquet", "plot"), ("sweep.toml", "report")],
)
def test_a_damaged_file_of_a_sweep_is_named(tmp_path: Path, name: str, command: str) -> None:
    folder = tmp_path / "s"
    dumbbell.sweep(EXPERIMENT, {"link.l.rate": ["5 Mbit/s"]}, out=folder)
    (folder / name).write_bytes(b'title = "PAR1')
    with pytest.raises(DumbbellError, match=f"{name}['\"]?: "):
        app(["query", "from runs", str(folder)] if command == "query" else [command, str(folder)])


def test_a_sweep_keeps_its_temporary_folder_only_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for jobs in (0, -1):
        with pytest.raises(DumbbellError):
            dumbbell.sweep(EXPERIMENT, AXES, jobs=jobs)
        assert list(tmp_path.iterdir()) == []
    swept = dumbbell.sweep(EXPERIMENT, {"link.l.rate": ["5 Mbit/s"]}, seeds=1)
    assert list(tmp_path.iterdir()) == [swept.folder]
    del swept
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_axes_that_are_wrong_or_missing_are_named() -> None:
    with pytest.raises(DumbbellError, match="a sweep needs axes"):
        dumbbell.sweep(EXPERIMENT)
    with pytest.raises(ExperimentError, match=r"link\.l\.rat"):
        dumbbell.sweep(EXPERIMENT, {"link.l.rat": ["5 Mbit/s"]})


def test_no_interval_is_below_what_its_quantity_can_be(swept: dumbbell.SweepResult) -> None:
    least = swept.summary(ci=True).filter(pl.col("jain_low") < 0.5)
    assert least.is_empty()
    unlike = pl.DataFrame({"seed": [1, 2], "jain": [0.5, 1.0], "jain_least": [0.5, 0.5]})
    assert metrics.means_over_seeds(unlike, [], ci=True).row(0) == (0.75, 0.5, 1.0)
    rtt = pl.DataFrame({"flow": ["a"] * 2, "rtt_mean": [0.04, 0.09], "rtt_mean_least": [0.04] * 2})
    [[_, found]] = means(rtt, ["flow"], ["rtt_mean"])
    assert isinstance(found, metrics.Estimate)
    assert found.low == 0.04
