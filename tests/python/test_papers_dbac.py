"""The DBAC paper: short runs give all that its report has."""

from __future__ import annotations

from dumbbell.engine.runner import run
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Study, folder_of


def test_every_experiment_says_what_is_not_specified() -> None:
    paper = Study.load(folder_of("dbac")).paper
    for spec in paper.planned.values():
        experiment = Experiment.load(paper.folder / spec.file, overrides=list(spec.changes))
        assert {"flow.single.cc", "stack_options.tso"} <= set(experiment.assumed)
        calibrated = {"flow.multipath.cc", "stack_options.delayed_ack", "link.path-2.jitter"}
        assert calibrated == set(experiment.calibrated)


def test_slow_runs_give_every_number_claim_and_section() -> None:
    study = Study.load(folder_of("dbac"))
    paper = study.paper
    slow = ["duration=120 s", "sample=1 s", "seeds=1", "link.path-2.rate=2 Mbit/s"]
    rates = {
        "failure.toml": 'link.path-1.rates=[["0 s", "5 Mbit/s"], ["50 s", "0 bit/s"]]',
        "testbed.toml": "link.path-1.rate=5 Mbit/s",
        "rival.toml": "link.path-1.rate=5 Mbit/s",
    }
    results = {}
    for spec in paper.planned.values():
        changes = [*spec.changes, *slow, rates[spec.file]]
        results[spec.id] = run(Experiment.load(paper.folder / spec.file, overrides=changes))
    runs = study.runs(results)
    numbers = study.measure(runs)
    assert set(numbers) == {number.id for number in paper.numbers}
    assert set(study.judge(runs)) == {claim.id for claim in paper.claims}
    assert all(section.text or section.figures for section in study.sections(runs, numbers))
