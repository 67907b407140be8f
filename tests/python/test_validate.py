"""The plan of cells in which the simulator is compared with Linux, and the verdicts on them."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from arguments import folder
from command import dumbbell
from linux_grid_page import shown_ratio

from dumbbell.checks import linux_cells, linux_grid
from dumbbell.checks.linux_cells import Cell
from dumbbell.engine.runner import run_all
from dumbbell.errors import DumbbellError
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.experiment.quantities import RATE, TIME


def test_the_cells_cover_rates_and_delays_evenly() -> None:
    cells = linux_cells.cells()
    assert len({cell.name for cell in cells}) == len(cells) == 132
    links = [cell.experiment.links[0] for cell in cells]
    first = [link.rate or (link.rates or [["", ""]])[0][1] for link in links]
    rates = [RATE.parse(rate) / 1e6 for rate in first]
    flows = [cell.experiment.flows[0] for cell in cells]
    rtts = [
        TIME.parse(rtt) / 1e6
        if (rtt := flow.rtts[0] if flow.rtts else flow.rtt)
        else TIME.parse(link.delay) / 5e5
        for flow, link in zip(flows, links, strict=True)
    ]
    for values, (low, high) in ((rates, linux_cells.RATES), (rtts, linux_cells.RTTS)):
        assert low <= min(values)
        assert max(values) <= high
        # Each third of the range, on a logarithmic scale, has about a third of the cells.
        thirds = [low * (high / low) ** (i / 3) for i in range(4)]
        for one, other in pairwise(thirds):
            assert 0.25 < sum(one <= value <= other for value in values) / len(cells) < 0.45


def test_the_second_path_has_half_the_rate_and_twice_the_round_trip() -> None:
    for cell in (cell for cell in linux_cells.cells() if cell.family == "multipath"):
        rates = [RATE.parse(link.rate or "") for link in cell.experiment.links]
        rtts = [TIME.parse(rtt) for rtt in cell.experiment.flows[0].rtts or []]
        assert rates[1] == pytest.approx(rates[0] / 2, rel=1e-5)
        assert rtts[1] == 2 * rtts[0]
        assert ("receive_window" in cell.experiment.stack_options) == ("+buffer" in cell.name)


def test_a_seed_gives_one_plan_and_the_quick_one_is_a_part_of_it() -> None:
    cells, quick = linux_cells.cells(), linux_cells.cells(quick=True)
    assert cells == linux_cells.cells()
    assert len(quick) == 43
    assert all(cell in cells for cell in quick)
    assert {cell.family for cell in quick} == {cell.family for cell in cells}
    other = linux_cells.cells(2)
    assert [cell.name for cell in other] == [cell.name for cell in cells]
    assert other != cells


@pytest.mark.parametrize(
    ("simulated", "linux", "verdict"),
    [
        ([[100.0], [100.0]], [102.0, 103.0], "agrees"),
        ([[100.0], [100.0]], [104.0, 105.0], "differs"),
        ([[100.0]], [104.0], "differs"),
        # Chaotic cells: the mean difference decides. One seed whose variations differ little:
        ([[99.5, 100.0, 100.5]], [101.0], "agrees"),
        ([[99.5, 100.0, 100.5]], [105.0], "differs"),
        # The mean is near, but the variations are far apart.
        ([[80.0, 100.0, 120.0]], [101.0], "undecided"),
        # The variations are alike, but Linux is not beside them.
        ([[99.9, 100.0, 100.1]] * 3, [81.0, 100.0, 119.0], "undecided"),
        # Transfers that are not complete.
        ([[math.inf], [math.inf]], [math.inf, math.inf], "agrees"),
        ([[100.0], [100.0]], [math.inf, math.inf], "differs"),
        ([[100.0, 100.0, math.inf]] * 3, [100.0, 100.0, 101.0], "agrees"),
    ],
)
def test_a_verdict_needs_a_known_difference(
    simulated: list[list[float]], linux: list[float], verdict: str
) -> None:
    assert linux_grid.judge(simulated, linux, 3.0) == verdict


def test_transfers_that_are_not_complete_take_longer_than_any() -> None:
    link = Link(name="bottleneck", rate="20 Mbit/s", delay="5 ms", queue="50 packets")
    for complete, expected in ((1, math.inf), (2, 1.0)):
        sizes = ["10 kB"] * complete + ["100 MB"] * (3 - complete)
        flows = [Flow(name=f"transfer-{n}", cc="reno", bytes=of) for n, of in enumerate(sizes)]
        [run] = run_all([Experiment(duration="1 s", links=[link], flows=flows)])
        found = {metric: value for _, metric, value in linux_grid._achieved(run)}
        assert found["completion"] == pytest.approx(expected, abs=1.0)
    unfinished = {"metric": "completion", "linux": [math.inf, math.inf]}
    assert linux_grid._bound(unfinished) == 0.1e-3
    assert not linux_grid._varies(unfinished)
    assert linux_grid._varies(unfinished | {"linux": [1.0, math.inf]})


def test_a_mean_difference_has_the_interval_of_a_textbook() -> None:
    # Student's t at 95 % is 1.833 for 9 degrees of freedom, 6.314 for 1 (any table).
    low, high = linux_grid._difference([[1.0, -1.0] * 5], [0.0])
    error = (10 / 9 * 1.1) ** 0.5
    assert (low, high) == pytest.approx((-1.833 * error, 1.833 * error), rel=1e-3)
    # Seeds that differ far more than their variations: the two differences alone count.
    low, high = linux_grid._difference([[0.0, 0.1], [0.1, 0.0]], [9.95, -9.85])
    assert (low, high) == pytest.approx((-6.314 * 9.9, 6.314 * 9.9), rel=1e-3)


def test_alike_are_distributions_with_the_same_ranks_and_enough_runs() -> None:
    draws = np.random.default_rng(1)
    linux = draws.normal(100, 20, 30)
    simulated = draws.normal(100, 20, (30, 8)).tolist()
    assert linux_grid.judge(simulated, linux.tolist(), 3.0) == "undecided"
    assert linux_grid.are_alike(simulated, linux.tolist())
    assert not linux_grid.are_alike(simulated[:7], linux[:7].tolist()), "too few"
    # A chance of 0.76 that the simulator has more: one standard deviation between the means.
    assert not linux_grid.are_alike(simulated, (linux - 20).tolist())


def test_unequal_distributions_are_alike_in_five_of_a_hundred_trials() -> None:
    # Normal distributions whose means are 0.742 standard deviations apart: the chance is 0.7.
    draws = np.random.default_rng(2)
    trials = [
        linux_grid.are_alike(
            draws.normal(0.742, 1, (20, 8)).tolist(), draws.normal(0, 1, 20).tolist()
        )
        for _ in range(500)
    ]
    assert sum(trials) <= 0.05 * 500


def _measured(**changes: Any) -> pl.DataFrame:
    """What stands for the measurement of a cell: a simulation, with other settings."""
    link = Link(name="bottleneck", rate="20 Mbit/s", queue="50 packets", loss=0.001)
    flow = Flow(name="reno", cc="reno", rtt="20 ms")
    one = Experiment(duration="5 s", links=[link], flows=[flow], internals=False)
    cell = Cell("one", "losses", one)
    runs = [cell.run(seed).replace(**changes) for seed in (1, 2, 3)]
    rows = [row for run in run_all(runs) for row in linux_grid._rows(cell, run)]
    return pl.DataFrame(rows, linux_grid.SCHEMA, orient="row")


def test_runs_with_the_same_losses_are_set_beside_each_other() -> None:
    compared = linux_grid.compare(_measured())
    assert compared["verdict"].to_list() == ["agrees"] * 3
    for linux, simulated in compared.select("linux", "simulated").iter_rows():
        # Of the variations of each seed the first one is without jitter.
        assert simulated[:: len(simulated) // len(linux)] == linux
    other = linux_grid.compare(_measured(stack_options={"initial_window": 1, "mss": 1000}))
    assert "differs" in other["verdict"].to_list()


def test_a_run_of_a_late_testbed_does_not_count() -> None:
    late = _measured().with_columns(invalid=pl.when(run=2).then(pl.lit("late")))
    compared = linux_grid.compare(late)
    assert [len(values) for values in compared["linux"]] == [2, 2, 2]
    assert "Of 3 runs with real packets 1 " in linux_grid.agreement(compared, late).note


def test_cells_are_chosen_by_name_and_an_unknown_one_is_refused() -> None:
    plan = linux_cells.cells()
    some = linux_cells.matching(["late-bbr-*", "alone-reno-2"], plan)
    assert [cell.name for cell in some] == ["alone-reno-2", *(f"late-bbr-{n}" for n in (1, 2, 3))]
    with pytest.raises(DumbbellError, match="no cell is called 'late-vegas'"):
        linux_cells.matching(["alone-*", "late-vegas"], plan)


def test_validate_says_that_a_folder_has_no_measurements(tmp_path: Path) -> None:
    done = dumbbell("validate", "--no-measure", "--out", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing was measured there; leave out --no-measure" in " ".join(done.stderr.split())


def test_validate_says_why_no_run_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = _measured().with_columns(invalid=pl.format("late by {} ms", "run"))
    monkeypatch.setattr(linux_grid, "measured", lambda *_: late)
    done = dumbbell("validate", "--no-measure", "--out", "some", cwd=tmp_path)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "some: no run counts, as all are invalid (one, run 1: late by 1 ms; one, run 2" in said


@pytest.mark.parametrize(
    ("simulated", "linux", "shown"),
    [
        ([3, 3, 9], [2], 1.5),
        ([0], [0], 1.0),
        ([4], [0, 0, 9], 2.1),
        ([0], [4], 0.47),
        ([9], [1], 2.1),
    ],
)
def test_marks_beyond_the_edge_of_the_figure_are_at_the_edge(
    simulated: list[float], linux: list[float], shown: float
) -> None:
    assert shown_ratio({"simulated": simulated, "linux": linux}) == shown


@pytest.mark.parametrize("given", [["--help"], ["docs", "-h"], []])
def test_an_option_is_no_folder_for_the_scripts_of_pages(
    given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["page.py", *given])
    with pytest.raises(SystemExit, match="Writes a page"):
        folder("Writes a page.")


def test_the_scripts_of_pages_take_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["page.py"])
    assert folder("Writes a page.", "docs") == Path("docs")
    monkeypatch.setattr(sys, "argv", ["page.py", "site", "9"])
    assert folder("Writes a page.", "docs") == Path("site")
