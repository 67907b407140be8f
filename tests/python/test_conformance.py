"""The test cases of the BBR draft: built-in versions pass them, what is wrong fails them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dumbbell.checks import cells, path_grid
from dumbbell.checks.bbr_draft import ALGORITHMS, CASES, version
from dumbbell.checks.conformance import CaseResult, examine
from dumbbell.cli.app import app
from dumbbell.experiment.model import Experiment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def verdicts(outcomes: list[CaseResult]) -> dict[tuple[str, str], str]:
    return {(one.case.section, one.cc): one.verdict for one in outcomes}


def only(*sections: str) -> list[CaseResult]:
    """The cases of some sections, of BBRv3 and of changed ones."""
    cases = [case for case in CASES if case.section in sections]
    wrong = ["bbr3(probe_rtt_interval=8 s)", "bbr3(drain_gain=1)", "bbr3(loss_thresh=0.9)", "cubic"]
    return examine(cases, ["bbr3", *wrong], version)


@pytest.fixture(scope="module")
def built_in() -> list[CaseResult]:
    return examine(CASES, ALGORITHMS, version)


KNOWN_FAILURES = {("bbr", "A.3"), ("bbr2", "A.15"), ("f-bbr2", "A.15")}
"""By parts of a packet, as ``conformance.md`` explains; with real packets both cases pass."""


def test_every_version_passes_the_cases_but_the_known_ones(built_in: list[CaseResult]) -> None:
    assert {(one.cc, one.case.section) for one in built_in if one.verdict == "fail"} == (
        KNOWN_FAILURES
    )


def test_only_what_a_version_does_not_have_is_left_out(built_in: list[CaseResult]) -> None:
    left_out = {key for key, verdict in verdicts(built_in).items() if verdict == "n/a"}
    sections = {cc: sorted(s for s, name in left_out if name == cc) for cc in ALGORITHMS}
    assert sections["bbr3"] == ["(A.5)"]
    assert sections["bbr2"] == sections["f-bbr2"] == ["A.4", "A.5", "A.9"]
    assert set(sections["bbr"]) == {
        "A.2",
        "A.4",
        "A.5",
        "(A.5)",
        "A.6",
        "A.8",
        "A.9",
        "A.21",
        "A.22",
    }


def test_every_case_of_the_draft_is_there() -> None:
    sections = {case.section.strip("()") for case in CASES}
    assert sections == {f"A.{number}" for number in range(1, 23)}


def test_an_algorithm_that_breaks_a_rule_fails_the_case_about_it() -> None:
    found = verdicts(only("A.2", "A.3", "A.10"))
    assert all(found[section, "bbr3"] == "pass" for section in ("A.2", "A.3", "A.10"))
    assert found["A.10", "bbr3(probe_rtt_interval=8 s)"] == "fail"
    assert found["A.3", "bbr3(drain_gain=1)"] == "fail"
    assert found["A.2", "bbr3(loss_thresh=0.9)"] == "fail"


def test_an_algorithm_without_states_cannot_be_judged() -> None:
    assert verdicts(only("A.3"))["A.3", "cubic"] == "n/a"


@pytest.mark.parametrize("shown", ["{}", "{'state': math.nan}", "{'state': 0, 'round_count': 1}"])
def test_an_algorithm_that_shows_little_or_nonsense_is_judged_all_the_same(
    shown: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import math\nfrom dumbbell.cc import WindowRule\nclass Mine(WindowRule):\n"
        "    def increase(self, cwnd, acked, path, ack): return acked / cwnd\n"
        "    def decrease(self, cwnd, path, event): return cwnd / 2\n"
        f"    def inspect(self): return {shown}\n"
    )
    outcomes = examine(CASES, [f"{mine}:Mine"], version)
    assert len(outcomes) == len(CASES)
    assert {outcome.verdict for outcome in outcomes} & {"n/a", "fail"}
    assert all("not found" not in outcome.seen for outcome in outcomes)


def test_a_case_that_no_machine_can_run_says_why() -> None:
    cases = [case for case in CASES if case.section == "A.22"]
    [one] = examine(cases, ["bbr3"], version, backend="linux")
    assert one.verdict == "n/a"
    assert "random waits" in one.seen


def test_every_failing_path_of_the_grid_has_an_experiment_to_repeat(tmp_path: Path) -> None:
    cases = [case for case in CASES if case.section == "A.3"]
    shares = path_grid.examine(cases, ["bbr3(drain_gain=1)"], version, 8)
    assert len(shares[0].failed) > 1
    index = cells.write(tmp_path, "bbr", "the draft", shares[0].failed[:1], shares)
    outcomes = json.loads((tmp_path / "outcomes.json").read_text())
    for fail, row in zip(shares[0].failed, outcomes["grid"][0]["failed"], strict=True):
        assert f'href="{row["experiment"]}"' in index.read_text()
        assert Experiment.load(tmp_path / row["experiment"]) == fail.experiment


def test_an_algorithm_of_another_name_is_held_to_the_draft() -> None:
    assert [version(cc) for cc in ("bbr", "f-bbr2(threshold=2)", "bbr3", "mine")] == [1, 2, 3, 3]


def test_the_command_prints_a_table_and_says_by_its_status_that_a_case_failed() -> None:
    done = CliRunner().invoke(app, ["conformance", "bbr", "--cc", "bbr3(probe_rtt_interval=8 s)"])
    assert done.exit_code == 1
    assert "A.21 Handling loss during PROBE_UP" in done.output
    assert "fails A.10: every 8." in done.output


def test_the_command_prints_one_json_object_if_asked_to() -> None:
    done = CliRunner().invoke(app, ["conformance", "bbr", "--cc", "cubic", "--json"])
    assert done.exit_code == 0
    outcomes = json.loads(done.output)["outcomes"]
    assert len(outcomes) == len(CASES)
    assert {one["verdict"] for one in outcomes} == {"n/a"}


def test_a_suite_that_is_not_there_is_answered_with_those_there_are() -> None:
    done = CliRunner().invoke(app, ["conformance", "tcp"])
    assert done.exit_code == 2
    assert "'tcp' is not one of 'bbr'" in done.output
