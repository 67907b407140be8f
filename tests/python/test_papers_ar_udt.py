"""The AR-UDT paper: what is measured of the link and of the predicted ratio."""

from __future__ import annotations

import pytest

from dumbbell import run
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Paper, folder_of
from dumbbell.papers.ar_udt.paper import goodput, histogram, mean_carried, over_time

FOLDER = folder_of("ar-udt")


def short(file: str, *changes: str) -> Experiment:
    """An experiment of the paper, small enough for a test."""
    small = ("duration=5 s", "seeds=1", "link.bottleneck.rate=50 Mbit/s")
    return Experiment.load(FOLDER / file, overrides=[*small, *changes])


def test_gains_are_the_arithmetic_of_the_text() -> None:
    said = Paper.load(FOLDER).published
    assert said["gain-udt"] == round(100 * (843 / 740 - 1))
    assert said["gain-tcp"] == round(100 * (843 / 367 - 1))


def test_every_experiment_is_as_the_paper_states() -> None:
    for template in Paper.load(FOLDER).experiments:
        for spec in template.all():
            experiment = Experiment.load(FOLDER / spec.file, overrides=list(spec.changes))
            [link] = experiment.links
            assert link.rate == "1 Gbit/s"
            assert template.extension or experiment.duration == "60 s"


def test_what_the_link_carries_is_at_most_its_rate_less_headers() -> None:
    result = run(short("udt.toml", "flow.*.rtt=20 ms"))
    [rate] = mean_carried(result)
    assert 10 < rate <= 50 * 1456 / 1500
    assert goodput(result)[0] <= rate
    windows = over_time(result)["throughput"]
    assert len(windows) == 5
    assert windows.mean() == pytest.approx(rate, rel=0.01)


def test_the_histogram_counts_a_ratio_in_the_interval_that_it_ends() -> None:
    result = run(short("udt.toml", "flow.*.cc=ar-udt(rules=ns-2, adapt=off)", "sample=10 ms"))
    bins = histogram(result)
    assert bins["share"].sum() == pytest.approx(1.0)
    assert bins["bin"].is_sorted()
    assert 1.0 in bins["bin"], "before there are three reports the ratio is 1"
