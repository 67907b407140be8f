"""The DBAC paper: what it does not specify."""

from __future__ import annotations

from dumbbell.experiment.model import Experiment
from dumbbell.papers import Paper, folder_of


def test_every_experiment_says_what_is_not_specified() -> None:
    paper = Paper.load(folder_of("dbac"))
    for spec in paper.planned.values():
        experiment = Experiment.load(paper.folder / spec.file, overrides=list(spec.changes))
        assert {"flow.single.cc", "stack_options.tso"} <= set(experiment.assumed)
        calibrated = {"flow.multipath.cc", "stack_options.delayed_ack"}
        assert calibrated == set(experiment.calibrated)
