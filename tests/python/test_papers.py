"""Papers: what they say is kept as it was said, and what is measured is told honestly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dumbbell import papers
from dumbbell.errors import DumbbellError
from dumbbell.experiment.model import Experiment
from dumbbell.metrics import intervals
from dumbbell.papers.frame import Number, Paper, Planned, PublishedNumber
from dumbbell.papers.page import interval, measured, rank, single_runs

FOLDER = Path(papers.__file__).parent


@pytest.fixture
def paper() -> Paper:
    [only] = [paper for paper in papers.available() if paper.id == "staggered-start"]
    return only


def number(runs: list[float | None]) -> Number:
    said = PublishedNumber(
        id="x", experiment="reno", where="table 1", quantity="time", unit="s", published=90.0
    )
    return Number(said, intervals.median(runs, 120.0), "assumed")


def test_published_convergence_times_are_those_of_section_v(paper: Paper) -> None:
    said = {one.id: (one.published, one.unit) for one in paper.numbers}
    for definition in ("crossing", "fair"):
        assert said[f"reno-{definition}"] == (90.0, "s")
        assert said[f"cubic-{definition}"] == (40.0, "s")
        assert said[f"bbr-{definition}"] == (15.0, "s")
        assert said[f"bbr3-{definition}"] == (25.0, "s")
    assert said["reno-over-bbr"] == (6.0, "1")
    assert len(said) == 9


def test_every_number_says_where_it_stands_in_the_paper(paper: Paper) -> None:
    assert {one.where.partition(",")[0] for one in paper.numbers} == {"Section V"}
    assert [claim.id for claim in paper.claims] == ["order", "six-times", "stability"]


def test_the_scenario_is_the_one_that_the_paper_states() -> None:
    experiment = Experiment.load(FOLDER / "staggered_start" / "pair.toml")
    [link] = experiment.links
    assert (link.rate, link.queue, link.loss) == ("100 Mbit/s", "0.5 BDP", 0.0)
    assert [(flow.rtt, flow.start) for flow in experiment.flows] == [
        ("100 ms", "0 s"),
        ("100 ms", "30 s"),
    ]


def test_what_the_paper_leaves_unsaid_is_marked_as_assumed() -> None:
    experiment = Experiment.load(FOLDER / "staggered_start" / "pair.toml")
    assert {"duration", "start_jitter", "stack"} <= set(experiment.assumed)
    assert experiment.calibrated == {}


def test_every_experiment_of_every_paper_is_valid_and_has_a_name_of_its_own(paper: Paper) -> None:
    for plan in paper.experiments:
        concrete = list(plan.all())
        for one in concrete:
            Experiment.load(FOLDER / "staggered_start" / one.file, overrides=list(one.changes))
        assert plan.beyond or len({one.id for one in concrete}) == len(concrete)


def test_a_plan_stands_for_every_combination_of_its_settings() -> None:
    plan = Planned(
        id="{cc}-{q}", file="x.toml", set=["cc={cc}"], each={"cc": ["a", "b"], "q": ["1", "2"]}
    )
    assert [(one.id, one.changes) for one in plan.all()] == [
        ("a-1", ("cc=a",)),
        ("a-2", ("cc=a",)),
        ("b-1", ("cc=b",)),
        ("b-2", ("cc=b",)),
    ]


def test_a_number_has_exactly_the_keys_of_the_results_file() -> None:
    row = number([80.0, 90.0, 100.0]).as_json()
    assert list(row) == [
        *("id", "where", "quantity", "unit", "published", "measured", "low", "high"),
        *("ratio", "settings"),
    ]
    assert row["measured"] == 90.0
    assert row["ratio"] == 1.0
    assert row["quantity"] == "time (median of 3 runs)"


def test_a_number_tells_how_many_runs_did_not_converge() -> None:
    one = number([80.0, 90.0, 100.0, None])
    assert one.as_json()["quantity"] == "time (median of 4 runs, 1 of 4 not within 120 s)"
    assert measured(one) == "95"
    assert interval(one) == "80 to > 120"


def test_a_number_says_where_the_one_run_of_a_paper_would_stand() -> None:
    several, late, one = number([80.0, 90.0, 100.0]), number([95.0, None]), number([80.0])
    assert (single_runs(several), rank(several)) == ("runs 80 to 100", "≥ 2 of 3 runs")
    assert (single_runs(late), rank(late)) == ("runs 95 to > 120", "≥ 0 of 2 runs")
    assert (single_runs(one), rank(one)) == ("", "")


def test_a_median_beyond_the_limit_is_null_in_json_and_more_than_the_limit_in_words() -> None:
    one = number([80.0, None, None])
    row = one.as_json()
    assert (row["measured"], row["high"], row["ratio"]) == (None, None, None)
    assert measured(one) == "> 120"
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_an_unknown_paper_is_refused_with_the_list_of_papers(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match='no paper "nobody"; there are staggered-start'):
        papers.reproduce(["nobody"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_refused_with_the_list_of_figures(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match='no figure "9z"; there are 2a, 2b, 3a, 3b'):
        papers.draw("staggered-start", ["9z"], tmp_path)
    assert list(tmp_path.iterdir()) == []
