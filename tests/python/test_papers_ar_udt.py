"""The AR-UDT paper: its numbers stand as printed, and settings are marked as what they are."""

from __future__ import annotations

import pytest

from dumbbell import run
from dumbbell.experiment.model import Experiment
from dumbbell.papers import ar_udt
from dumbbell.papers.ar_udt.measures import FOLDER, histogram, over_time, rates, useful
from dumbbell.papers.frame import Paper


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.load(FOLDER)


def short(file: str, *changes: str) -> Experiment:
    """An experiment of the paper, small enough for a test."""
    small = ("duration=5 s", "seeds=1", "link.bottleneck.rate=50 Mbit/s")
    return Experiment.load(FOLDER / file, overrides=[*small, *changes])


def test_the_numbers_are_those_of_the_paper(paper: Paper) -> None:
    said = {number.id: number.published for number in paper.numbers}
    assert len(said) == 12 + 2
    for protocol, numbers in {
        "ar-udt": [913, 901, 893, 843],
        "tcp": [953, 908, 838, 367],
        "udt": [908, 830, 826, 740],
    }.items():
        assert [said[f"throughput-{rtt}-{protocol}"] for rtt in (1, 50, 100, 200)] == numbers
    assert said["gain-udt"] == round(100 * (843 / 740 - 1)), "the text's own arithmetic"
    assert said["gain-tcp"] == round(100 * (843 / 367 - 1))


def test_every_number_and_figure_asks_for_experiments_that_there_are(paper: Paper) -> None:
    planned = {one.id for plan in paper.experiments for one in plan.all()}
    assert {number.experiment for number in paper.numbers} <= planned
    for plate in ar_udt.PLATES:
        assert set(plate.experiments) <= planned, plate.id


def test_every_experiment_is_valid_and_as_the_paper_states(paper: Paper) -> None:
    for plan in paper.experiments:
        for one in plan.all():
            experiment = Experiment.load(FOLDER / one.file, overrides=list(one.changes))
            [link] = experiment.links
            assert link.rate == "1 Gbit/s"
            assert plan.beyond or experiment.duration == "60 s"


def test_what_the_paper_leaves_unsaid_is_marked() -> None:
    for file in ("tcp.toml", "udt.toml", "udt4.toml"):
        experiment = Experiment.load(FOLDER / file)
        assert "link.bottleneck.queue" in experiment.calibrated
        assert experiment.assumed


def test_what_the_link_carries_is_at_most_its_rate_less_headers() -> None:
    result = run(short("udt.toml", "flow.*.rtt=20 ms"))
    [rate] = rates(result)
    assert 10 < rate <= 50 * 1456 / 1500
    assert (useful(result).value or 0) <= rate
    windows = over_time(result)["throughput"]
    assert len(windows) == 5
    assert windows.mean() == pytest.approx(rate, rel=0.01)


def test_the_histogram_puts_a_ratio_into_the_interval_whose_upper_end_it_is_or_is_below() -> None:
    result = run(short("udt.toml", "flow.*.cc=ar-udt(rules=ns-2, adapt=off)", "sample=10 ms"))
    bins = histogram(result)
    assert bins["share"].sum() == pytest.approx(1.0)
    assert bins["bin"].is_sorted()
    assert 1.0 in bins["bin"], "before there are three reports the ratio is 1"
