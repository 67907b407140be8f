"""The F-BBRv2 paper: what is measured inside the algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import dumbbell
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Runs, Study, folder_of
from dumbbell.papers.f_bbrv2.paper import COMPARED, LOSSES, deviation, limits, rtprop, within

if TYPE_CHECKING:
    from dumbbell.results.result import Result

FOLDER = folder_of("f-bbrv2")


@pytest.fixture(scope="module")
def study() -> Study:
    return Study.load(FOLDER)


def short(file: str, *changes: str) -> Result:
    """An experiment of the paper, two seeds and 20 s of it."""
    overrides = [*changes, "duration=20 s", "seeds=2", "internals=true"]
    return dumbbell.run(Experiment.load(FOLDER / file, overrides=overrides))


def test_both_sides_are_told_apart_and_jain_is_the_papers_equation() -> None:
    runs = Runs({"pair": short("pair.toml")})
    bbr, other = (runs.values("pair", flow=flow)[0] for flow in ("bbr", "other"))
    assert runs.values("pair", "gap", flow="bbr", to="other")[0] == pytest.approx(other - bbr)
    jain = (bbr + other) ** 2 / (2 * (bbr**2 + other**2))
    assert runs.values("pair", "jain", flows=["bbr", "other"])[0] == pytest.approx(jain)
    assert 40 < bbr + other < 50


def test_rtprop_is_compared_with_its_first_value() -> None:
    family, pair = short("pair.toml", "flow.other.cc=bbr2"), short("pair.toml")
    assert rtprop(family)["ratio"][0] == 1.0
    assert min(within(family)) > 0.99
    assert max(within(pair)) < 0.2
    assert max(deviation(family)) < min(deviation(pair))


def test_what_limits_cruise_is_a_share_of_the_time() -> None:
    found = limits(short("pair.toml"))
    assert 0 <= found["window"] <= 1
    assert 0 <= found["headroom"] <= 1
    assert 0.04 < found["min_rtt"] < 0.3


def test_of_extensions_the_time_of_false_alarms_is_kept(study: Study) -> None:
    table = study.reduce(short("many.toml", "flow.*.cc=f-bbr2", "flow.*.repeat=2"))
    assert set(table.columns) == {"seed", "flow", "throughput", "detected"}
    assert table["detected"].is_between(0, 1).all()
    cell = table.with_columns(cc=pl.lit("f-bbr2"), flows=pl.lit("2"), queue=pl.lit("1"))
    runs = study.runs({}, extensions={"many": cell})
    [one] = study.paper.specs(["many"], {"cc": ["f-bbr2"], "flows": ["2"], "queue": ["1"]})
    [figure] = (spec for spec in study.paper.figures if spec.id == "many-1")
    assert 0 < (runs.estimate(one, figure.measures[0]).value or 0) < 1


def test_alone_means_the_same_packets_with_every_seed(study: Study) -> None:
    alone = {cc: short("alone.toml", f"flow.*.cc={cc}") for cc in ("bbr", "bbr2", "f-bbr2")}
    cases = [(cc, loss) for cc in COMPARED for loss in LOSSES]
    runs = study.runs({f"alone-{cc}-{loss}": alone[cc] for cc, loss in cases})
    verdict = study.functions["claim"]["alone"]
    assert verdict(runs).holds
    assert not verdict(runs.with_results({"alone-f-bbr2-0": alone["bbr"]})).holds
