"""The TEIN2 paper: its tables stand as printed, and settings are marked as what they are."""

from __future__ import annotations

import pytest

from dumbbell import papers
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.units import RATE
from dumbbell.papers import tein2
from dumbbell.papers.frame import Paper, Planned, PublishedTable
from dumbbell.papers.tein2.measures import ALGORITHMS, FOLDER


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.load(FOLDER)


def test_table_2_and_table_3_are_those_of_the_paper(paper: Paper) -> None:
    said = {number.id: number.published for number in paper.numbers}
    assert len(said) == 25 + 20
    assert [said[f"throughput-{rtt}-reno"] for rtt in (10, 50, 100, 150, 200)] == [
        *(590.03, 152.37, 88.96, 52.30, 54.22),
    ]
    assert [said[f"throughput-200-{cc}"] for cc in ("hstcp", "stcp", "bic", "cubic")] == [
        *(167.16, 328.00, 273.62, 206.73),
    ]
    assert [said[f"ratio-6-{cc}"] for cc in ("reno", "hstcp", "stcp", "bic", "cubic")] == [
        *(4.86, 6.28, 13.95, 9.59, 2.07),
    ]


def test_every_number_says_where_it_is_measured(paper: Paper) -> None:
    planned = {one.id for plan in paper.experiments for one in plan.all()}
    assert {number.experiment for number in paper.numbers} <= planned


def test_every_figure_asks_for_experiments_that_there_are(paper: Paper) -> None:
    planned = {one.id for plan in paper.experiments for one in plan.all() if not plan.beyond}
    planned |= {plan.id for plan in paper.experiments if plan.beyond}
    for plate in tein2.PLATES:
        assert set(plate.experiments) <= planned, plate.id


def test_every_experiment_is_valid_and_of_the_kernel_of_the_paper(paper: Paper) -> None:
    for plan in paper.experiments:
        for one in plan.all():
            experiment = Experiment.load(FOLDER / one.file, overrides=list(one.changes))
            assert experiment.stack == "linux-2.6.18"


@pytest.mark.parametrize(
    ("file", "links"),
    [
        ("delay.toml", {"link.host.rate", "link.host.queue"}),
        ("fairness.toml", {"link.router", "link.host.queue", "link.host.jitter", "link.host.loss"}),
        ("friends.toml", {"link.router", "link.host.queue", "link.host.jitter"}),
    ],
)
def test_what_the_paper_leaves_unsaid_is_marked(file: str, links: set[str]) -> None:
    experiment = Experiment.load(FOLDER / file)
    unsaid = {*experiment.assumed, *experiment.calibrated}
    assert {"duration", "stack-options.receive-window", *links} <= unsaid


def test_from_50_ms_on_the_router_is_as_fast_as_the_fastest_flow_of_table_2(paper: Paper) -> None:
    said = {number.id: number.published for number in paper.numbers}
    [near, *far] = (
        max(said[f"throughput-{rtt}-{cc}"] for cc in ALGORITHMS) for rtt in (10, 50, 100, 150, 200)
    )
    rates = {}
    for plan in paper.experiments:
        for one in plan.all():
            if one.id.startswith("delay-"):
                [host] = Experiment.load(FOLDER / one.file, overrides=list(one.changes)).links
                rates[one.chosen["rtt"] == "10"] = RATE.parse(host.rate or "") / 1e6 * 1448 / 1500
    assert rates == {True: pytest.approx(near, rel=0.01), False: pytest.approx(max(far), rel=0.01)}


def test_a_paper_that_is_built_in_is_among_those_that_are_there() -> None:
    assert "tein2" in {paper.id for paper in papers.available()}


def test_a_table_stands_for_a_number_of_every_row_and_column() -> None:
    table = PublishedTable(
        id="x-{a}-{b}",
        experiment="e-{a}",
        where="table 9",
        quantity="{b} at {a}",
        unit="s",
        rows={"a": ["1", "2"]},
        columns={"b": ["c", "d"]},
        published=[[1.0, 2.0], [3.0, 4.0]],
    )
    assert [(n.id, n.experiment, n.quantity, n.published) for n in table.all()] == [
        ("x-1-c", "e-1", "c at 1", 1.0),
        ("x-1-d", "e-1", "d at 1", 2.0),
        ("x-2-c", "e-2", "c at 2", 3.0),
        ("x-2-d", "e-2", "d at 2", 4.0),
    ]
    with pytest.raises(ValueError, match="zip"):
        list(table.model_copy(update={"published": [[1.0], [2.0, 3.0]]}).all())


def test_a_short_name_stands_in_ids_and_what_it_means_in_assignments() -> None:
    plan = Planned(
        id="x-{cc}", file="x.toml", set=["cc={cc}"], each={"cc": ["a"]}, short={"a": "b(c=1)"}
    )
    [one] = plan.all()
    assert (one.id, one.changes, one.chosen) == ("x-a", ("cc=b(c=1)",), {"cc": "a"})
