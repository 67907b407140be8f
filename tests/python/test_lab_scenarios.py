"""The scenarios that the laboratory's page begins with."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lab_in_browser import MARKS, open_lab

from dumbbell import Experiment, metrics, run

if TYPE_CHECKING:
    from browser import Browser

ROOT = Path(__file__).parents[2]


def presets() -> list[dict[str, str]]:
    """The scenarios as scripts/lab.py puts them into the page."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import lab  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    found: list[dict[str, str]] = lab.presets()
    return found


def test_scenarios_are_in_groups_and_have_names_of_their_own() -> None:
    found = presets()
    groups = list(dict.fromkeys(one["group"] for one in found))
    assert groups[:4] == ["Exercises", "Basics", "Kinds of path", "Applications"]
    assert all(group.startswith("Paper: ") for group in groups[4:])
    templates = {
        link.template.split("(")[0]
        for one in found
        if one["group"] == "Kinds of path"
        for link in Experiment.parse(one["text"]).links
        if link.template
    }
    assert templates >= {"wifi", "lte", "cable", "leo"}
    names = [one["name"] for one in found]
    assert len(set(names)) == len(names)


def web_transfers(name: str, *overrides: str) -> dict[str, Any]:
    """What the web transfers of an example achieved; infinite is what is not reached."""
    file = ROOT / "examples" / f"{name}.toml"
    result = run(Experiment.load(file, overrides=list(overrides)))
    found = metrics.transfer_summary(result).row(0, named=True)
    return {key: math.inf if value is None else value for key, value in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "link"), [("wifi", "home"), ("lte", "cell"), ("cable", "modem")])
def test_web_transfers_are_faster_beside_bbr_and_in_a_short_queue(name: str, link: str) -> None:
    cubic, bbr = web_transfers(name), web_transfers(name, "flow.*.cc=bbr")
    assert cubic["transfers"] == bbr["transfers"]
    assert bbr["completed_share"] > cubic["completed_share"]
    assert bbr["completion_p50"] < 0.6 * cubic["completion_p50"]
    tried = {"wifi": "aqm=fq_codel", "lte": "queue=100 packets", "cable": "aqm=pie"}
    short = web_transfers(name, f"link.{link}.{tried[name]}")
    assert short["completed_share"] > cubic["completed_share"]
    assert short["completion_p50"] < 0.6 * cubic["completion_p50"]


class TestInThePage:
    """What a visitor sees."""

    pytestmark = MARKS

    def test_the_list_has_the_groups(self, browser: Browser, folder: Path) -> None:
        open_lab(browser, folder)
        labels = "[...document.querySelectorAll('.presets optgroup')].map(e => e.label)"
        assert browser.evaluate(labels) == list(dict.fromkeys(one["group"] for one in presets()))
        counts = "[...document.querySelectorAll('.presets optgroup option')].length"
        assert browser.evaluate(counts) == len(presets()) + 1, "and the file of dumbbell init"
