"""Papers with real packets: what is run, what counts, and what the report says of it.

The packets of these tests are simulated ones that are said to be real.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dumbbell import figures
from dumbbell.engine.kernel import TestbedError
from dumbbell.engine.runner import run_all
from dumbbell.metrics import intervals, throughput
from dumbbell.papers import available, real, reproduction
from dumbbell.papers.frame import Paper, Plate, Reproduction, Runs, Section, Verdict
from dumbbell.papers.known import home
from dumbbell.papers.real import counted
from dumbbell.papers.reproduction import Effort, figure_of, reopen, reproduce_paper

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

PAPER = """
id = "tiny"
title = "One flow"
authors = ["Nobody"]
venue = "2026"
summary = "How fast is it?"

[[number]]
id = "rate"
experiment = "reno"
where = "table 1"
quantity = "throughput"
unit = "Mbit/s"
published = 8.0

[[claim]]
id = "fast"
where = "table 1"
text = "It is fast."
check = "It is."

[[experiment]]
id = "{cc}"
file = "one.toml"
set = ["flow.one.cc={cc}"]
each = { cc = ["reno", "cubic"] }

[[real]]
id = "reno"
set = ["link.bottleneck.rate=5 Mbit/s"]
why = "Half as fast, for a test."
"""

FILE = """
duration = "2 s"
seeds = 2

[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "1 BDP"

[[flow]]
name = "one"
"""


def rate(runs: Runs) -> intervals.Estimate:
    return intervals.median(throughput(runs["reno"])["throughput"] / 1e6)


def judge(runs: Runs, _measured: Mapping[str, intervals.Estimate]) -> dict[str, Verdict]:
    # What a claim needs a kernel may not show, and nothing is claimed of its runs.
    assert runs["reno"].meta["backend"] == "simulator"
    return {"fast": Verdict(True, "Very.")}


def draw(runs: Runs) -> Figure:
    figure, [[axes]] = figures.panels()
    axes.axhline(rate(runs).value or 0)
    return figure


def plate(name: str, *needed: str) -> Plate:
    return Plate(id=name, title=name, caption="A line.", draw=draw, experiments=needed)


STUDY = SimpleNamespace(
    PLATES=[plate("1", "reno"), plate("2", "reno", "cubic")],
    measure=lambda runs: {"rate": rate(runs)},
    judge=judge,
    sections=lambda _runs: [Section("Figures", plates=("1", "2"))],
)


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paper:
    home = tmp_path / "tiny"
    home.mkdir()
    (home / "paper.toml").write_text(PAPER)
    (home / "one.toml").write_text(FILE)
    said = Paper.load(home)
    monkeypatch.setattr(reproduction, "_study", lambda _paper: STUDY)
    monkeypatch.setattr(reproduction, "home", lambda _paper: home)
    monkeypatch.setattr(reproduction, "load", lambda _paper: said)
    return said


class Machine:
    """Stands for a machine with real packets; spoils the runs of some seeds."""

    def __init__(self, *spoiled: int) -> None:
        self.spoiled = {str(seed): ["packets were 9 ms late"] for seed in spoiled}
        self.runs: list[int] = []

    def __call__(self, experiments: list[Any], **options: Any) -> list[Result]:
        assert options["backend"] == "linux"
        results = []
        for place, result in enumerate(run_all(experiments)):
            self.runs += result.seeds
            meta = {"backend": "linux", "kernel": "6.18", "spoiled": self.spoiled}
            results.append(replace(result, meta=result.meta | meta))
            options["finished"](place, results[place])
        return results


def reproduce(paper: Paper, out: Path, *, with_real: bool = True) -> Reproduction:
    effort = Effort(1, None, None, lambda _what, _share: None, with_real)
    return reproduce_paper(paper, out, effort, beyond=False)


def test_a_number_is_published_simulated_simulated_alike_and_real(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "run_all", Machine(2))
    done = reproduce(paper, tmp_path)
    (number,) = done.numbers
    assert number.found.value == pytest.approx(9.0, rel=0.1)
    assert number.real is not None
    assert number.real.found.value == pytest.approx(4.5, rel=0.1)
    assert number.real.alike is not None
    assert number.real.alike.value == pytest.approx(4.5, rel=0.1)
    assert len(number.real.alike.runs) == 2, "the seeds of the real runs that count, no others"
    assert (len(number.real.found.runs), number.real.count) == (2, "2 runs, 1 spoiled left out")
    said = json.loads((tmp_path / "tiny" / "results.json").read_text())["numbers"][0]["real"]
    assert (said["runs"], said["spoiled"]) == (2, 1)


def test_the_report_shows_figures_side_by_side_and_says_what_is_otherwise(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "run_all", Machine(2))
    reproduce(paper, tmp_path)
    page = (tmp_path / "tiny" / "index.html").read_text()
    assert page.index('id="figure-1"') < page.index('id="figure-1-real"')
    assert 'id="figure-real"' in page
    assert "figure-2-real" not in page, "CUBIC was not run with real packets"
    for text in ("Half as fast, for a test.", "packets were 9 ms late", "left out", "Linux 6.18"):
        assert text in page
    assert reopen(tmp_path / "tiny").real is not None
    assert figure_of(paper, "1-real", tmp_path / "tiny") is not None


def test_runs_that_are_there_are_kept_and_told_of(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    monkeypatch.setattr(real, "run_all", machine)
    first, again, later = (reproduce(paper, tmp_path, with_real=r) for r in (True, True, False))
    assert machine.runs == [1, 2, 3]
    assert [one.numbers[0].real for one in (again, later)] == [first.numbers[0].real] * 2


def test_runs_are_kept_and_marked_if_all_are_spoiled(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "run_all", Machine(1, 2, 3))
    (number,) = reproduce(paper, tmp_path).numbers
    assert number.real is not None
    assert number.real.count == "3 runs, spoiled"
    assert "verdict fails" in (tmp_path / "tiny" / "index.html").read_text()


def test_what_the_machine_lacks_is_said_before_anything_is_simulated(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_experiments: Any, **_options: Any) -> list[Result]:
        raise TestbedError("run as root")

    monkeypatch.setattr(real, "run_all", refuse)
    monkeypatch.setattr(reproduction, "run_all", None)
    with pytest.raises(TestbedError, match="run as root"):
        reproduce(paper, tmp_path)
    assert not (tmp_path / "tiny" / "runs").exists()


def test_counts_of_runs_are_words() -> None:
    assert [counted(1, 0), counted(3, 0), counted(2, 1), counted(0, 1), counted(1, 1)] == [
        *("1 run", "3 runs", "2 runs, 1 spoiled left out", "1 run, spoiled"),
        "1 run, 1 spoiled left out",
    ]


@pytest.mark.parametrize("said", available(), ids=lambda one: one.id)
def test_what_papers_run_with_real_packets_is_theirs_and_can_be_run(said: Paper) -> None:
    from dumbbell.experiment.model import Experiment
    from dumbbell.experiment.resolve import resolve

    for plan in said.real:
        for one in plan.all(said.planned):
            file = home(said.id) / one.file
            experiment = resolve(Experiment.load(file, overrides=list(one.changes)))
            assert experiment.stack == "linux"
            in_the_kernel = [flow.cc for flow in experiment.flows if flow.transport == "tcp"]
            assert not [cc for cc in in_the_kernel if "(" in cc], "kernels cannot"
