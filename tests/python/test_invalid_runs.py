"""Runs that the machine disturbed are marked wherever a result is shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dumbbell
from dumbbell import engine
from dumbbell.cli.plot import plot_folder
from dumbbell.cli.run import _show_both
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.figures.result import draw
from dumbbell.report.result import result_pages
from dumbbell.results.result import Result
from dumbbell.results.summary import side_by_side
from dumbbell.sweeps.query import query

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def invalidate(folder: Path, *seeds: int) -> Result:
    """The result of a folder, in which some runs are invalid."""
    meta = folder / "meta.json"
    said = {str(seed): ["the latest packet was 30 ms late", "it's busy"] for seed in seeds}
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"invalid": said}))
    return Result.load(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    link = Link(name="bottleneck", rate="1 Mbit/s", delay="10 ms", queue="1 BDP")
    experiment = Experiment(links=[link], flows=[Flow(cc="reno")], duration="1 s", seeds=3)
    dumbbell.run(experiment, out=tmp_path / "run")
    return tmp_path / "run"


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_result_knows_its_invalid_runs_and_what_is_left_without_them(folder: Path) -> None:
    assert Result.load(folder).invalid_runs == {}
    result = invalidate(folder, 1, 3)
    assert list(result.invalid_runs) == [1, 3]
    assert result.invalid_reasons[1] == "run 3: the latest packet was 30 ms late; it's busy"
    assert result.valid().seeds == [2]
    assert result.of_seed(2).invalid_runs == {}
    assert invalidate(folder, 1, 2, 3).valid().seeds == [1, 2, 3], (
        "they are kept if there are no others"
    )


def test_added_seeds_bring_what_was_wrong_with_them(folder: Path) -> None:
    done, parts = Result.load(folder), []
    closed = [{"flow": "1", "t": 0.5, "reason": "timed out"}]
    for seed in (1, 3):
        wrong = {"failures": {str(seed): closed}, "invalid": {str(seed): ["late"]}, "stored": 1}
        parts.append(replace(done.of_seed(seed), meta=done.meta | wrong))
    both = parts[0].concat(parts[1])
    assert len([text for text in both.warnings if "the stack closed the connection" in text]) == 2
    assert both.invalid_runs == {1: ["late"], 3: ["late"]}
    assert both.meta["stored"] == 2


def test_a_figure_is_of_a_sound_run_or_says_that_it_is_not(folder: Path) -> None:
    assert "invalid" not in words(draw(invalidate(folder, 1), "windows"))
    assert "invalid" in words(draw(invalidate(folder, 1, 2, 3), "windows"))
    assert "invalid" in words(draw(invalidate(folder, 2).of_seed(2), "windows"))


@pytest.fixture
def both(tmp_path: Path) -> tuple[Result, Result]:
    """Simulated runs that differ, and the same as if they had real packets, the first invalid."""
    link = Link(name="bottleneck", rate="1 Mbit/s", delay="10 ms", loss=0.05)
    experiment = Experiment(links=[link], flows=[Flow(cc="reno")], duration="3 s", seeds=3)
    simulated = dumbbell.run(experiment, out=tmp_path / "run")
    real = invalidate(tmp_path / "run", 1)
    return simulated, replace(real, meta=real.meta | {"kernel": "6.18.1"})


def test_simulated_runs_have_the_seeds_of_the_valid_real_ones(
    both: tuple[Result, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _show_both(*both, tmp_path, tmp_path)
    said = capsys.readouterr().out
    values = [re.search(f"{which} +(.*)", said) for which in ("simulated", "Linux 6.18")]
    simulated, real = (found[1] for found in values if found)
    assert simulated == real


def test_a_figure_of_two_results_is_of_one_seed_or_says_of_which(
    both: tuple[Result, Result],
) -> None:
    simulated, real = both

    def legend(seed: int) -> str:
        figure = draw(simulated, "windows", seed=seed, beside={"other": real})
        shown = figure.axes[0].get_legend()
        return " ".join(text.get_text() for text in shown.get_texts()) if shown else ""

    assert "other" in legend(3)
    assert "seed" not in legend(3)
    assert "other, seed 2" in legend(1)


def test_a_share_of_marks_that_only_one_result_has_is_shown(both: tuple[Result, Result]) -> None:
    simulated, real = both
    marks = pl.lit(3, dtype=pl.UInt64)
    for marked in (simulated, real):
        changed = replace(marked, flows=marked.flows.with_columns(marked=marks))
        pair = [changed if one is marked else one for one in both]
        table = side_by_side(pair)[0]
        assert "Marked" in table.text(200)


def test_the_command_line_warns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invalidate(folder, 2)
    plot_folder(folder, None, seed=None, kind=None, width=None, out=None)
    assert "invalid, run 2: the latest packet was 30 ms late; it's busy" in capsys.readouterr().err


def test_tables_have_the_valid_runs_and_say_so(folder: Path) -> None:
    valid, all_invalid = str(invalidate(folder, 1, 3)), str(invalidate(folder, 1, 2, 3))
    assert valid.splitlines()[-2:] == [
        "Invalid, run 3: the latest packet was 30 ms late; it's busy.",
        "Tables have the other runs.",
    ]
    assert valid.startswith(repr(invalidate(folder, 1, 3).of_seed(2)))
    assert all_invalid.endswith("No run is valid: tables have these.")


def test_means_intervals_and_reports_are_of_the_valid_runs(folder: Path) -> None:
    result, valid = invalidate(folder, 1, 3), Result.load(folder).of_seed(2)
    for by in ("flow", "cc", "run"):
        assert_frame_equal(result.summary(by, ci=True), valid.summary(by, ci=True))
    [page] = result_pages({"run": result}, {"run": "run"})
    [same] = result_pages({"run": valid}, {"run": "run"})
    assert (page.overview, page.tables) == (same.overview, same.tables)
    assert page.invalid[-1] == "Tables have the other runs."


def test_comparisons_are_of_the_valid_runs_and_say_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = invalidate(folder, 1, 3)
    monkeypatch.setattr(engine.compare, "run_into", lambda asked, *_, **__: [of for _ in asked])
    found = dumbbell.compare(["reno", "cubic"])
    assert found.runs["seed"].to_list() == found.flows["seed"].to_list() == [2, 2]
    assert repr(found).splitlines()[-3:] == [
        "Invalid, cubic, run 1: the latest packet was 30 ms late; it's busy.",
        "Invalid, cubic, run 3: the latest packet was 30 ms late; it's busy.",
        "Tables have the other runs.",
    ]


def test_sql_can_leave_them_out(folder: Path) -> None:
    invalidate(folder, 2)
    valid = query("select seed from flows where seed not in (select seed from invalid)", folder)
    assert valid["seed"].to_list() == [1, 3]
    assert query("select why from invalid", folder)["why"].to_list()[1] == "it's busy"
    invalidate(folder)
    assert query("from invalid", folder).rows() == []
    assert query("from invalid", folder).columns == ["seed", "why"]
