"""The two papers on BBRv3 that run by their name: what their metrics measure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from dumbbell import papers, run
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Runs, Study, folder_of

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.results.result import Result

HARDWARE = folder_of("bbrv3-hardware")


@pytest.fixture(scope="module")
def study() -> Study:
    return Study.load(HARDWARE)


def runs_of(study: Study, *changes: str) -> Runs:
    """A run of the file of flows, as the experiment ``x``."""
    experiment = Experiment.load(HARDWARE / "flows.toml", overrides=["seeds=2", *changes])
    return study.runs({"x": run(experiment)})


@pytest.fixture(scope="module")
def cubic(study: Study) -> Runs:
    """CUBIC alone in a queue of 8 BDP, that is of 8 minimum round-trip times."""
    return runs_of(study, "flow.flow.cc=cubic", "link.bottleneck.rate=10 Mbit/s")


def test_the_peaks_of_cubic_are_the_whole_buffer(cubic: Runs) -> None:
    assert cubic.value("x", "peak") == pytest.approx(8, rel=0.03)


def test_a_queue_in_minimum_rtts_is_the_excess_of_the_smoothed_rtt(cubic: Runs) -> None:
    late = pl.col("srtt").filter(pl.col("t") > 10).cast(pl.Float64)
    excess = cubic["x"].series.group_by("seed").agg(late.median() / 0.010 - 1)["srtt"].median()
    assert cubic.value("x", "queue") == pytest.approx(excess, rel=0.05)


def test_a_share_of_the_time_is_consistent_with_the_median(cubic: Runs) -> None:
    median = cubic.value("x", "queue")
    assert cubic.value("x", "long", least=0.95 * median) > 0.5
    assert cubic.value("x", "long", least=1.05 * median) < 0.5


def test_a_flow_alone_does_not_estimate_more_than_the_link_carries(study: Study) -> None:
    alone = runs_of(study, "duration=20 s", "link.bottleneck.rate=20 Mbit/s")
    assert alone.value("x", "above", share=0.01) == 0


def test_two_bbrv3_flows_have_the_queue_of_the_testbed(study: Study) -> None:
    published = study.paper.published["two-100-20-8"]
    found = runs_of(study, "flow.flow.rtt=20 ms", "flow.flow.repeat=2", "duration=30 s")
    assert found.value("x", "queue") == pytest.approx(published, rel=0.1)


def test_the_longer_rtt_prevails_whichever_flow_starts_first() -> None:
    study = Study.load(folder_of("bbrv3-promises"))
    results: dict[str, Result] = {}
    for order in ("first", "second"):
        spec = study.paper.planned[f"rtt-bbr3-1-{order}"]
        changes = [*spec.changes, "duration=40 s", "seeds=1"]
        results[order] = run(Experiment.load(study.paper.folder / spec.file, overrides=changes))
    runs = study.runs(results)
    assert min(runs.value(order, "late_share") for order in results) > 0.75


def test_a_table_shows_as_many_decimals_as_its_paper_says(study: Study) -> None:
    result = run(Experiment.load(HARDWARE / "flows.toml", overrides=["duration=54 s", "seeds=1"]))
    runs = study.runs(dict.fromkeys(study.paper.planned, result))
    sections = study.sections(runs, study.measure(runs))
    [two] = [
        table for one in sections for table in one.tables if table.columns[0].title == "1 Gbit/s"
    ]
    assert [str(row[1]).split()[2] for row in two.rows] == ["1.14", "1.16", "1.05"]


def test_a_paper_without_numbers_has_no_section_of_numbers(tmp_path: Path) -> None:
    [done] = papers.reproduce("bbrv3-promises", tmp_path, seeds=1, duration="32 s")
    assert done.numbers == []
    page = (tmp_path / "bbrv3-promises" / "index.html").read_text()
    assert "Published and measured numbers" not in page
    said = json.loads((tmp_path / "bbrv3-promises" / "results.json").read_text())
    assert [claim["id"] for claim in said["claims"]] == [one.id for one in done.paper.claims]
