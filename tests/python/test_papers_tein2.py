"""The TEIN2 paper: its experiments are of its kernel and of its table 2."""

from __future__ import annotations

import pytest

from dumbbell.experiment.model import Experiment
from dumbbell.experiment.quantities import RATE
from dumbbell.papers import Paper, folder_of


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.load(folder_of("tein2"))


def test_every_experiment_is_of_the_kernel_of_the_paper(paper: Paper) -> None:
    for spec in paper.planned.values():
        experiment = Experiment.load(paper.folder / spec.file, overrides=list(spec.changes))
        assert experiment.stack == "linux-2.6.18"
        assert "stack_options.receive_window" in {*experiment.assumed, *experiment.calibrated}


def test_from_50_ms_on_the_router_is_as_fast_as_the_fastest_flow(paper: Paper) -> None:
    [near, *far] = (
        max(paper.published[f"throughput-{rtt}-{cc}"] for cc in ("reno", "hstcp", "stcp"))
        for rtt in (10, 50, 100, 150, 200)
    )
    rates = {}
    for spec in paper.planned.values():
        if spec.id.startswith("delay-"):
            changes = list(spec.changes)
            [host] = Experiment.load(paper.folder / spec.file, overrides=changes).links
            rates[spec.settings["rtt"] == "10"] = RATE.parse(host.rate or "") / 1e6 * 1448 / 1500
    assert rates == {True: pytest.approx(near, rel=0.01), False: pytest.approx(max(far), rel=0.01)}
