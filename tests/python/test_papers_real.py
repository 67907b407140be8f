"""Papers with real packets: what is run, what counts, and what the report says of it.

The packets of these tests are simulated ones that are said to be real.
"""

from __future__ import annotations

import json
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dumbbell.engine import measurements
from dumbbell.engine.kernel import TestbedError
from dumbbell.engine.runner import run_all
from dumbbell.errors import OverwriteError
from dumbbell.papers import Paper, Study, available, reproduction
from dumbbell.papers.reproduction import PaperFolder, RunOptions
from dumbbell.papers.testbed import counted

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from dumbbell.papers import Reproduction
    from dumbbell.results.result import Result

pytestmark = pytest.mark.slow

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
measure = { metric = "throughput" }

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

[[figure]]
id = "1"
heading = "1"
caption = "A line."
experiment = "reno"

[[figure]]
id = "2"
heading = "2"
caption = "A line."
experiment = "{cc}"

[[testbed]]
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


CODE = """
from dumbbell import figures
from dumbbell.papers import Runs, Verdict, claim, figure


@claim("fast")
def fast(runs: Runs) -> Verdict:
    # A claim may need what a kernel does not show; Linux has no verdict on it then.
    assert runs["reno"].meta["backend"] == "simulator"
    return Verdict(True, "Very.")


@figure("1")
@figure("2")
def draw(runs: Runs) -> object:
    drawn, [[axes]] = figures.panels()
    axes.axhline(runs.value("reno"))
    return drawn
"""

REPORT = """
## Figures

{figure 1}
{figure 2}
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    folder = tmp_path / "paper"
    folder.mkdir()
    for name, content in {
        "paper.toml": PAPER,
        "one.toml": FILE,
        "paper.py": CODE,
        "report.md": REPORT,
    }.items():
        (folder / name).write_text(content)
    return Study.load(folder)


class Machine:
    """Stands for a machine with real packets; the runs of some seeds are invalid."""

    def __init__(self, *invalid: int, kernel: str | None = None) -> None:
        self.invalid = {str(seed): ["packets were 9 ms late"] for seed in invalid}
        self.kernel = kernel or platform.release()
        self.runs: list[int] = []

    def __call__(self, experiments: list[Any], **options: Any) -> Generator[Result, None, None]:
        assert options["backend"] == "linux"
        for result in run_all(experiments):
            self.runs += result.seeds
            meta = {"backend": "linux", "kernel": self.kernel, "invalid": self.invalid}
            yield replace(result, meta=result.meta | meta)


def reproduce(study: Study, out: Path, *, with_real: bool = True) -> Reproduction:
    options = RunOptions(1, None, None, lambda _what, _share: None, with_real)
    return PaperFolder(study, out / "tiny", options).reproduce()


def test_a_number_is_published_simulated_simulated_alike_and_real(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "run_each", Machine(2))
    done = reproduce(study, tmp_path)
    (number,) = done.numbers
    assert number.measured.value == pytest.approx(9.0, rel=0.1)
    assert number.testbed is not None
    assert number.testbed.measured.value == pytest.approx(4.5, rel=0.1)
    assert number.testbed.matched is not None
    assert number.testbed.matched.value == pytest.approx(4.5, rel=0.1)
    assert len(number.testbed.matched.runs) == 2, "the seeds of the real runs that count, no others"
    assert (len(number.testbed.measured.runs), number.testbed.count) == (
        2,
        "2 runs, 1 invalid left out",
    )
    said = json.loads((tmp_path / "tiny" / "results.json").read_text())["numbers"][0]["linux"]
    assert (said["runs"], said["invalid"]) == (2, 1)
    (claim,) = done.claims
    assert (claim.simulated.verdict, claim.linux.verdict) == ("confirmed", "not measured")


def test_the_report_shows_figures_side_by_side_and_says_what_is_otherwise(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.18")
    monkeypatch.setattr(measurements, "run_each", Machine(2))
    reproduce(study, tmp_path)
    page = (tmp_path / "tiny" / "index.html").read_text()
    assert page.index('id="figure-1"') < page.index('id="figure-1-real"')
    assert 'id="figure-real"' in page
    assert "figure-2-real" not in page, "CUBIC was not run with real packets"
    for text in ("Half as fast, for a test.", "packets were 9 ms late", "left out", "Linux 6.18"):
        assert text in page
    folder = PaperFolder(study, tmp_path / "tiny")
    assert folder.reopen().testbed is not None
    assert folder.figure("1-real") is not None


def test_runs_that_are_there_are_kept_and_told_of(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    monkeypatch.setattr(measurements, "run_each", machine)
    first, again, later = (reproduce(study, tmp_path, with_real=r) for r in (True, True, False))
    assert machine.runs == [1, 2, 3]
    assert [one.numbers[0].testbed for one in (again, later)] == [first.numbers[0].testbed] * 2


def test_runs_of_another_kernel_are_shown_but_are_no_measurement_of_this_one(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "run_each", Machine(kernel="5.4"))
    first = reproduce(study, tmp_path)
    assert reproduce(study, tmp_path, with_real=False).numbers == first.numbers
    machine = Machine()
    monkeypatch.setattr(measurements, "run_each", machine)
    with pytest.raises(OverwriteError, match=r"real packets \(Linux 5\.4, 3 runs\)"):
        reproduce(study, tmp_path)
    assert machine.runs == []
    options = RunOptions(1, testbed=True, overwrite=True)
    real = PaperFolder(study, tmp_path / "tiny", options).reproduce().testbed
    assert real is not None
    assert real.runs["reno"].meta["kernel"] == platform.release()


def test_runs_are_kept_and_marked_if_all_are_invalid(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "run_each", Machine(1, 2, 3))
    (number,) = reproduce(study, tmp_path).numbers
    assert number.testbed is not None
    assert number.testbed.count == "3 runs, invalid"
    assert "verdict alert" in (tmp_path / "tiny" / "index.html").read_text()


def test_a_verdict_of_invalid_runs_only_names_their_experiment(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CODE.replace('assert runs["reno"].meta["backend"] == "simulator"', 'runs.value("reno")')
    (study.paper.folder / "paper.py").write_text(code)
    study = Study.load(study.paper.folder)
    for folder, invalid in (("some", (2,)), ("all", (1, 2, 3))):
        monkeypatch.setattr(measurements, "run_each", Machine(*invalid))
        (claim,) = reproduce(study, tmp_path / folder).claims
        assert claim.linux.invalid == (("reno",) if folder == "all" else ())
        page = (tmp_path / folder / "tiny/index.html").read_text()
        assert ("All runs of reno are invalid." in page) == (folder == "all")


def test_what_the_machine_lacks_is_said_before_anything_is_simulated(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_experiments: Any, **_options: Any) -> list[Result]:
        raise TestbedError("run as root")

    monkeypatch.setattr(measurements, "run_each", refuse)
    monkeypatch.setattr(reproduction, "run_each", None)
    with pytest.raises(TestbedError, match="run as root"):
        reproduce(study, tmp_path)
    assert not (tmp_path / "tiny" / "runs").exists()


def test_counts_of_runs_are_words() -> None:
    assert [counted(1, 0), counted(3, 0), counted(2, 1), counted(0, 1), counted(1, 1)] == [
        *("1 run", "3 runs", "2 runs, 1 invalid left out", "1 run, invalid"),
        "1 run, 1 invalid left out",
    ]


@pytest.mark.parametrize("said", available(), ids=lambda one: one.id)
def test_what_papers_run_with_real_packets_is_theirs_and_can_be_run(said: Paper) -> None:
    from dumbbell.experiment.model import Experiment

    for plan in said.testbed:
        for one in plan.all(said.planned):
            file = said.folder / one.file
            experiment = Experiment.load(file, overrides=list(one.changes)).resolve()
            assert experiment.stack == "linux"
            in_the_kernel = [flow.cc for flow in experiment.flows if flow.transport == "tcp"]
            assert not [cc for cc in in_the_kernel if "(" in cc], "kernels cannot"
