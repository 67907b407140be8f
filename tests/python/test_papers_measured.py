"""What papers come with of Linux: the values of measured runs, and what is made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dumbbell.errors import DumbbellError
from dumbbell.papers import Study, folder_of
from dumbbell.papers.linux import FILE, Measurements

if TYPE_CHECKING:
    from pathlib import Path

MEASURED = ("staggered-start", "tein2", "f-bbrv2", "dbac")


@pytest.fixture(scope="module", params=MEASURED)
def study(request: pytest.FixtureRequest) -> Study:
    return Study.load(folder_of(request.param))


@pytest.fixture(scope="module")
def measured(study: Study) -> Measurements:
    found = Measurements.load(study.paper.folder)
    assert found is not None
    return found


def test_a_file_has_the_kernel_the_date_and_the_runs(study: Study, measured: Measurements) -> None:
    assert measured.source.kernel.startswith("6.18")
    assert measured.source.date.startswith("2026-11-")
    assert measured.source.note
    assert measured.counts.keys() <= study.paper.planned.keys()
    assert {asked[0] for asked in measured.values} <= measured.counts.keys()
    for asked, values in measured.values.items():
        valid, invalid = measured.counts[asked[0]]
        assert len(values) == (valid or invalid)


def test_a_file_gives_numbers_and_verdicts(study: Study, measured: Measurements) -> None:
    numbers, verdicts = measured.numbers(study), measured.judge(study)
    assert numbers
    assert numbers.keys() <= {number.id for number in study.paper.numbers}
    assert verdicts.keys() == {claim.id for claim in study.paper.claims}
    for found in verdicts.values():
        assert (found.verdict == "not measured") == (not found.evidence)


def test_a_file_that_is_written_is_read_as_it_was(measured: Measurements, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps(measured.as_json()))
    again = Measurements.load(tmp_path)
    assert again is not None
    assert again.source == measured.source
    assert (again.values, again.matched) == (measured.values, measured.matched)
    assert again.counts == measured.counts


@pytest.mark.parametrize("text", ["", "[]", '{"kernel": "6.18"}', '{"values": [{"metric": 1}]}'])
def test_a_damaged_file_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DumbbellError, match=r"linux\.json: is damaged"):
        Measurements.load(tmp_path)


def test_a_paper_without_a_file_was_not_measured(tmp_path: Path) -> None:
    assert Measurements.load(tmp_path) is None
