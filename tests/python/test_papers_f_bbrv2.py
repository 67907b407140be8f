"""The F-BBRv2 paper: its numbers stand as printed, and settings are marked as what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import dumbbell
from dumbbell.experiment.model import Experiment
from dumbbell.papers import f_bbrv2
from dumbbell.papers.f_bbrv2 import beside_ns3, measures, reference
from dumbbell.papers.f_bbrv2.measures import FOLDER, QUEUES
from dumbbell.papers.frame import Paper, Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumbbell.results.result import Result


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.load(FOLDER)


def short(file: str, *changes: str) -> Result:
    """An experiment of the paper, one seed and 20 s of it."""
    overrides = [*changes, "duration=20 s", "seeds=2", "internals=true"]
    return dumbbell.run(Experiment.load(FOLDER / file, overrides=overrides))


def test_table_3_and_the_numbers_of_the_text_are_those_of_the_paper(paper: Paper) -> None:
    said = {number.id: number.published for number in paper.numbers}
    assert len(said) == 6 + 9
    assert [said[f"alone-0-{cc}"] for cc in ("bbr", "bbr2", "f-bbr2")] == [42.9, 47.6, 47.6]
    assert [said[f"alone-0.5-{cc}"] for cc in ("bbr", "bbr2", "f-bbr2")] == [40.2, 42.2, 42.2]
    assert (said["gap-bbr2-4"], said["gap-f-bbr2-4"]) == (31.5, 12)
    assert (said["jain-bbr2-4"], said["jain-f-bbr2-4"]) == (0.70, 0.92)


def test_every_number_and_figure_asks_for_experiments_that_there_are(paper: Paper) -> None:
    planned = {one.id for plan in paper.experiments for one in plan.all() if not plan.beyond}
    assert {number.experiment for number in paper.numbers} <= planned
    planned |= {plan.id for plan in paper.experiments if plan.beyond}
    for plate in f_bbrv2.PLATES:
        assert set(plate.experiments) <= planned, plate.id


def test_every_experiment_is_valid(paper: Paper) -> None:
    for plan in paper.experiments:
        for one in plan.all():
            Experiment.load(FOLDER / one.file, overrides=list(one.changes))


def test_what_the_paper_leaves_unsaid_is_marked() -> None:
    for file in ("alone.toml", "pair.toml"):
        assert {"stack", "start_jitter"} <= set(Experiment.load(FOLDER / file).assumed)


def test_both_sides_are_told_apart_and_jain_is_the_papers_equation() -> None:
    result = short("pair.toml")
    row = measures.rates(result).row(0, named=True)
    bbr, other = row["bbr"], row["other"]
    assert row["gap"] == pytest.approx(other - bbr)
    assert row["jain"] == pytest.approx((bbr + other) ** 2 / (2 * (bbr**2 + other**2)))
    assert 40 < bbr + other < 50


def test_rtprop_is_compared_with_its_first_value() -> None:
    family = short("pair.toml", "flow.other.cc=bbr2")
    assert measures.rtprop(family)["ratio"][0] == 1.0
    among = measures.steadiness(family).rows(named=True)
    beside = measures.steadiness(short("pair.toml")).rows(named=True)
    assert min(row["within"] for row in among) > 0.99
    assert max(row["within"] for row in beside) < 0.2
    deviations = [max(row["deviation"] for row in among), min(row["deviation"] for row in beside)]
    assert deviations == sorted(set(deviations))


def test_what_limits_cruise_is_a_share_of_the_time() -> None:
    found = measures.limits(short("pair.toml"))
    assert 0 <= found["window"] <= 1
    assert 0 <= found["headroom"] <= 1
    assert 0.04 < found["min_rtt"] < 0.3


def test_beyond_the_paper_the_time_of_false_alarms_is_kept() -> None:
    table = f_bbrv2.reduce(short("many.toml", "flow.*.cc=f-bbr2", "flow.*.repeat=2"))
    assert set(table.columns) == {"seed", "flow", "throughput", "detected"}
    assert table["detected"].is_between(0, 1).all()
    sides = f_bbrv2.plates.sides(table, [])
    assert sides["share"].is_between(0, 1).all()


@pytest.fixture(scope="module")
def runs(paper: Paper) -> Runs:
    """Stand-ins: every experiment of one kind is the same short run."""
    planned = [one for plan in paper.experiments if not plan.beyond for one in plan.all()]
    singles = {one.chosen.get("cc", "reno") for one in planned if one.file == "alone.toml"}
    alone = {cc: short("alone.toml", f"flow.*.cc={cc}") for cc in sorted(singles)}
    pair = short("pair.toml", "flow.bbr.cc=f-bbr2")
    results: Mapping[str, Result] = {
        one.id: alone[one.chosen.get("cc", "reno")] if one.file == "alone.toml" else pair
        for one in planned
    }
    return Runs(results, {})


def test_every_number_and_claim_of_the_paper_is_examined(paper: Paper, runs: Runs) -> None:
    numbers = f_bbrv2.measure(runs)
    claims = f_bbrv2.judge(runs, numbers)
    assert set(numbers) == {number.id for number in paper.numbers}
    assert set(claims) == {claim.id for claim in paper.claims}
    assert claims["alone"].holds
    changed = replace(runs, results={**runs.results, "alone-f-bbr2-0": runs["alone-bbr-0"]})
    assert not f_bbrv2.judge(changed, numbers)["alone"].holds


def test_the_report_has_a_table_with_every_buffer(runs: Runs) -> None:
    tables = [table for part in f_bbrv2.sections(runs) for table in part.tables]
    assert any(len(table.columns) == 1 + len(QUEUES) for table in tables)
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_every_run_of_ns3_that_is_told_of_is_kept() -> None:
    assert reference.flows()["throughput"].is_between(0, 50).all()
    for queue in beside_ns3.QUEUES:
        assert reference.of(f"pair-{queue}")["cc"].to_list() == ["TcpBbr", "TcpCubic"]
    for names in beside_ns3.EARLIER.values():
        for name in names:
            assert reference.of(name)["cc"].to_list() == ["TcpBbr", "TcpCubic"]
    with pytest.raises(ValueError, match="no run of ns-3 is called pair-9"):
        reference.of("pair-9")


def test_what_is_told_of_bbrv1_in_the_earlier_ns3_is_what_was_measured() -> None:
    told = " ".join(beside_ns3.TEXT)
    indexes = [reference.jain(name) for name in beside_ns3.EARLIER["0.7"]]
    assert f"anywhere from {min(indexes):.2f} to {max(indexes):.2f}" in told
    assert f"it is at {reference.of('earlier-alone-0.5')['throughput'][0]:.1f} Mbit/s there" in told


def test_cubic_with_ns3s_hystart_loses_the_packets_that_ns3s_cubic_loses() -> None:
    cubic = ["flow.*.cc=cubic(hystart=ns-3)", "duration=60 s", "start_jitter=0 s", "seeds=1"]
    ours = dumbbell.run(Experiment.load(FOLDER / "alone.toml", overrides=cubic))
    theirs = reference.of("alone-TcpCubic").row(0, named=True)
    assert ours.flows["retransmitted"].to_list() == [theirs["retransmitted"]]
    assert 8 * ours.flows["delivered"][0] / 60e6 == pytest.approx(theirs["throughput"], rel=0.002)
