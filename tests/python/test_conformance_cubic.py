"""The test cases of RFC 9438: our CUBIC, changed ones, and those of QUIC stacks."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dumbbell.checks import bbr_draft, path_grid
from dumbbell.checks.conformance import examine, flow_of
from dumbbell.checks.cubic_rfc import ALGORITHMS, CASES, version
from dumbbell.cli.app import app
from dumbbell.errors import ExperimentError, OverwriteError
from dumbbell.experiment.model import Experiment

if TYPE_CHECKING:
    from pathlib import Path as FilePath

pytestmark = pytest.mark.slow

DEVIATIONS = {
    "t excludes application-limited periods",
    "ECN echoes reduce cwnd down to 1 packet",
    "After a timeout K = 0 and W_max = cwnd_epoch",
    "Reno-friendly region: alpha_cubic = 1 from cwnd_prior on",
}
"""Where our CUBIC is as Linux's, by the head of crates/cc/src/cubic.rs."""

AVERAGE = "Table 2, p = 1e-02: 12 packets on average"
"""The case nearest to its limit: 18 and 19 % below, computed exactly and in whole packets."""


def failures(cc: str, *titles: str) -> set[str]:
    cases = [case for case in CASES if not titles or case.title in titles]
    results = examine(cases, [cc], version)
    assert len(results) == (len(titles) or len(CASES))
    return {one.case.title for one in results if one.verdict == "fail"}


def test_a_case_has_one_section_and_all_stand_in_the_rfcs_order() -> None:
    sections = [[int(part) for part in case.section.split(".")] for case in CASES]
    assert sections == sorted(sections)


def test_cubic_differs_from_its_rfc_only_where_linux_does() -> None:
    assert failures(ALGORITHMS[0]) == DEVIATIONS
    assert failures("cubic(arithmetic=exact)", AVERAGE) == set()


def test_the_option_for_the_rfcs_alpha_passes_the_case_about_it() -> None:
    title = "Reno-friendly region: alpha_cubic = 1 from cwnd_prior on"
    assert failures("cubic(tcp_friendliness=rfc)", title) == set()


@pytest.mark.parametrize(
    ("cc", "title"),
    [
        ("cubic(c=2)", "W_cubic(t) after a loss (Figures 1 and 2)"),
        ("reno", "W_cubic(t) after a loss (Figures 1 and 2)"),
        ("cubic(beta=0.8)", "beta_cubic = 0.7 on loss"),
        ("cubic(beta=0.8)", "beta_cubic = 0.7 on an ECN echo"),
        ("cubic(fast_convergence=off)", "Fast convergence"),
        ("reno", "Reno-friendly region: alpha_cubic = 0.53"),
        ("cubic(slow_start=standard)", "Slow start slows down before a loss, as HyStart++ does"),
        ("reno", "Table 1, p = 1e-04: 187 packets on average"),
        ("reno", "ssthresh = beta_cubic * cwnd at a timeout"),
    ],
)
def test_an_algorithm_that_breaks_a_rule_fails_its_case(cc: str, title: str) -> None:
    assert failures(cc, title) == {title}


@pytest.mark.parametrize("cc", ["quinn:cubic", "noq:cubic"])
def test_the_stacks_cubic_has_k_of_the_older_rfc(cc: str) -> None:
    # K = cbrt(W_max (1 - beta) / C), RFC 8312, is wrong once fast convergence has lowered W_max.
    titles = ["W_cubic(t) after a loss (Figures 1 and 2)", "Fast convergence"]
    assert failures(cc, *titles) == {"Fast convergence"}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("bbr3", {"cc": "bbr3"}),
        (
            "bbr3(drain_gain=1)@noq",
            {"cc": "bbr3(drain_gain=1)", "transport": "quic", "stack": "noq"},
        ),
        ("quinn:bbr", {"cc": "quinn:bbr", "transport": "quic", "stack": "quinn"}),
        ("at@home.py:Mine", {"cc": "at@home.py:Mine"}),
    ],
)
def test_a_name_says_which_stack_an_algorithm_runs_in(name: str, keys: dict[str, str]) -> None:
    assert flow_of(name) == keys


def test_paths_are_spread_over_the_drafts_range() -> None:
    points = path_grid.spread(64)
    assert points == path_grid.spread(64) != path_grid.spread(64, seed=2)
    assert all(64e3 <= rate <= 10e9 and 1e-3 <= rtt <= 1 for rate, rtt in points)
    # Every one of 4 by 4 equal parts of the square has a path.
    parts = {
        (int(4 * math.log(rate / 64e3, 10e9 / 64e3)), int(4 * math.log(rtt / 1e-3, 1e3)))
        for rate, rtt in points
    }
    assert len(parts) == 16


def shares(cc: str) -> path_grid.Share:
    cases = [case for case in bbr_draft.CASES if case.section == "A.7"]
    [share] = path_grid.examine(cases, [cc], bbr_draft.version, 8)
    return share


def test_bbr_stays_in_startup_on_every_path_while_application_limited() -> None:
    share = shares("bbr3")
    assert (share.passed, share.failed) == (share.paths, ())
    assert share.paths >= 4


def test_a_failure_on_a_path_comes_with_its_experiment() -> None:
    cases = [case for case in bbr_draft.CASES if case.section == "A.3"]
    [share] = path_grid.examine(cases, ["bbr3(drain_gain=1)"], bbr_draft.version, 8)
    assert share.passed == 0
    assert share.paths == len(share.failed) > 0
    fail = share.failed[0]
    assert fail.experiment is not None
    assert fail.experiment.links[0].rate == f"{fail.path.rate / 1e6:.6g} Mbit/s"


def test_the_command_writes_a_page_and_the_experiment_of_every_cell(tmp_path: FilePath) -> None:
    out = tmp_path / "cells"
    arguments = ["conformance", "cubic", "--cc", "cubic,quinn:cubic", "--case", "4.7"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    assert done.exit_code == 1
    assert "quinn:cubic fails 4.7" in done.output
    files = sorted(out.glob("runs/*.toml"))
    assert len(files) == 2
    assert [Experiment.load(file).flows[0].cc for file in files] == ["cubic", "quinn:cubic"]
    outcomes = json.loads((out / "outcomes.json").read_text())["outcomes"]
    assert [one["verdict"] for one in outcomes] == ["pass", "fail"]
    page = (out / "index.html").read_text()
    assert all(f'href="runs/{file.name}"' in page for file in files)


def test_the_folder_of_other_cells_is_not_replaced(tmp_path: FilePath) -> None:
    (tmp_path / "index.html").write_text("mine")
    arguments = ["conformance", "cubic", "--cc", "cubic", "--case", "4.7", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, OverwriteError)
    assert CliRunner().invoke(app, [*arguments, "--overwrite"]).exit_code == 0
    assert (tmp_path / "index.html").read_text() != "mine"


def test_a_case_that_is_not_there_is_answered_with_those_there_are() -> None:
    done = CliRunner().invoke(app, ["conformance", "cubic", "--case", "9.9"])
    assert isinstance(done.exception, ExperimentError)
    assert done.exception.key == "--case"
    assert "4.10" in done.exception.problem


@pytest.mark.parametrize(
    ("suite", "more", "valid"),
    [("cubic", [], "leave --grid out"), ("bbr", ["--backend", "linux"], "leave --backend out")],
)
def test_other_paths_are_refused_where_there_are_none(
    suite: str, more: list[str], valid: str
) -> None:
    done = CliRunner().invoke(app, ["conformance", suite, "--grid", "4", *more])
    assert isinstance(done.exception, ExperimentError)
    assert done.exception.key == "--grid"
    assert valid in done.exception.problem
