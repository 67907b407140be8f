"""The BBR draft's open questions: variants on the same paths."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest
from test_report import Page
from typer.testing import CliRunner

from dumbbell import _core
from dumbbell.cli.app import app
from dumbbell.dossier import questions
from dumbbell.dossier.questions import PLACEHOLDER, answer_questions

if TYPE_CHECKING:
    from pathlib import Path

SAID = tomllib.loads(questions._FILE.read_text("utf-8"))


@pytest.mark.parametrize("question", SAID["question"], ids=lambda one: one["id"])
def test_every_answer_names_measures_and_variants_that_there_are(question: dict[str, str]) -> None:
    named = PLACEHOLDER.findall(question["answer"])
    assert named
    assert {measure for measure, _ in named} <= set(question["measures"])
    variants = question["variants"]
    assert {variant for _, variant in named} <= set(variants)
    for said in variants.values():  # type: ignore[attr-defined]
        _core.check_algorithm(questions.Variant.of(said).cc)


@pytest.mark.slow
def test_a_variant_may_set_keys_of_the_scenario(tmp_path: Path) -> None:
    [answer] = answer_questions(tmp_path, paths=12, only=["nearly-limited"])
    by_variant = {one.variant: one for one in answer.differences if one.measure == "idle-nearly"}
    # An application that writes 5 % less than the link carries leaves at least some of it unused.
    assert by_variant["95 % of the rate"].base < 0.05
    assert by_variant["95 % of the rate"].change.value == pytest.approx(0.02, abs=0.02)
    assert by_variant["101 %"].change.value == pytest.approx(0, abs=0.002)


@pytest.mark.slow
def test_variants_are_compared_path_by_path(tmp_path: Path) -> None:
    [answer] = answer_questions(tmp_path, paths=6, only=["drain"])
    by_variant = {(one.variant, one.measure): one for one in answer.differences}
    same = by_variant["0.35, no limit", "delay-start"]
    # Drain ends within three rounds here: the variant without a limit is the same algorithm.
    assert (same.change.value, same.better, same.worse, same.paths) == (0.0, 0, 0, 6)
    other = by_variant["0.5, 3 rounds", "delay-start"]
    assert other.better + other.worse > 0
    assert "{" not in answer.sentence
    said = json.loads((tmp_path / "questions.json").read_text())["questions"]
    assert said == [json.loads(json.dumps(answer.as_json()))]
    assert Page((tmp_path / "index.html").read_text()).open == []


def test_the_study_runs_by_itself_and_in_the_simulator(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["reproduce", "bbr-questions", "dbac", *out])
    assert "runs by itself" in str(done.exception)
    done = CliRunner().invoke(app, ["reproduce", "bbr-questions", "--backend", "linux", *out])
    assert "nothing of it runs with real packets" in str(done.exception)
