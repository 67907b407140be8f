"""The F-BBRv2 paper: what is measured inside the algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import dumbbell
from dumbbell.experiment.model import Experiment
from dumbbell.papers import Runs, Study, folder_of
from dumbbell.papers.f_bbrv2.paper import QUEUES, deviation, limits, rtprop, within

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    runs = study.runs({}, {"many": cell})
    [one] = runs.cells(["many"], {"cc": ["f-bbr2"], "flows": ["2"], "queue": ["1"]})
    [figure] = (spec for spec in study.paper.figures if spec.id == "many-1")
    assert 0 < (one.estimate(figure.measures[0]).value or 0) < 1


@pytest.fixture(scope="module")
def runs(study: Study) -> Runs:
    """Stand-ins: every experiment of one kind is the same short run."""
    planned = study.paper.planned.values()
    singles = {one.chosen.get("cc", "reno") for one in planned if one.file == "alone.toml"}
    alone = {cc: short("alone.toml", f"flow.*.cc={cc}") for cc in sorted(singles)}
    pair = short("pair.toml", "flow.bbr.cc=f-bbr2")
    results: Mapping[str, Result] = {
        one.id: alone[one.chosen.get("cc", "reno")] if one.file == "alone.toml" else pair
        for one in planned
    }
    return study.runs(results)


def test_every_number_and_claim_of_the_paper_is_examined(study: Study, runs: Runs) -> None:
    assert set(study.measure(runs)) == {number.id for number in study.paper.numbers}
    claims = study.judge(runs)
    assert set(claims) == {claim.id for claim in study.paper.claims}
    assert claims["alone"].confirmed
    changed = runs.with_results({"alone-f-bbr2-0": runs["alone-bbr-0"]})
    assert not study.judge(changed)["alone"].confirmed


def test_the_report_has_a_table_with_every_buffer(study: Study, runs: Runs) -> None:
    sections = study.sections(runs, study.measure(runs))
    tables = [table for part in sections for table in part.tables]
    assert any(len(table.columns) == 1 + len(QUEUES) for table in tables)
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
