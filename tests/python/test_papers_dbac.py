"""The DBAC paper: its numbers stand as printed, and settings are marked as what they are."""

from __future__ import annotations

import pytest

from dumbbell.engine.runner import run
from dumbbell.experiment.model import Experiment
from dumbbell.papers import dbac
from dumbbell.papers.dbac.measures import FOLDER
from dumbbell.papers.frame import Paper, Runs


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.load(FOLDER)


def test_the_numbers_are_those_of_the_paper(paper: Paper) -> None:
    said = {number.id: number.published for number in paper.numbers}
    assert said == {
        "lia-path-1": 95,
        "lia-path-2": 20,
        "dbac-path-1": 400,
        "dbac-path-2": 21,
        "lia-greatest-window": 1300,
    }


def test_every_experiment_is_valid_and_says_what_is_unsaid(paper: Paper) -> None:
    for plan in paper.experiments:
        for one in plan.all():
            experiment = Experiment.load(FOLDER / one.file, overrides=list(one.changes))
            assert {"flow.single.cc", "stack-options.tso"} <= set(experiment.assumed)
            calibrated = {"flow.multipath.cc", "stack-options.delayed-ack", "link.path-2.jitter"}
            assert calibrated == set(experiment.calibrated)


def test_every_figure_asks_for_experiments_that_there_are(paper: Paper) -> None:
    planned = {one.id for plan in paper.experiments for one in plan.all() if not plan.beyond}
    planned |= {plan.id for plan in paper.experiments if plan.beyond}
    for plate in dbac.PLATES:
        assert set(plate.experiments) <= planned, plate.id


def test_slow_runs_give_every_number_claim_and_section(paper: Paper) -> None:
    slow = ["duration=120 s", "sample=1 s", "seeds=1", "link.path-2.rate=2 Mbit/s"]
    rates = {
        "failure.toml": 'link.path-1.rates=[["0 s", "5 Mbit/s"], ["50 s", "0 bit/s"]]',
        "testbed.toml": "link.path-1.rate=5 Mbit/s",
        "rival.toml": "link.path-1.rate=5 Mbit/s",
    }
    results = {}
    for one in (one for plan in paper.experiments if not plan.beyond for one in plan.all()):
        changes = [*one.changes, *slow, rates[one.file]]
        results[one.id] = run(Experiment.load(FOLDER / one.file, overrides=changes))
    runs = Runs(results, {})
    numbers = dbac.measure(runs)
    assert set(numbers) == {number.id for number in paper.numbers}
    assert set(dbac.judge(runs, numbers)) == {claim.id for claim in paper.claims}
    assert all(section.text or section.plates for section in dbac.sections(runs))
