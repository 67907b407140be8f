"""Pages for keyboards and screen readers: axe-core finds nothing serious, keys read charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import needs_chromium

import dumbbell
from dumbbell import papers
from dumbbell.report import write_report

if TYPE_CHECKING:
    from browser import Browser

ROOT = Path(__file__).parents[2]
AXE = ROOT / "tests" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [pytest.mark.slow, needs_chromium]

FILE = """
title = "Two flows"
duration = "6 s"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
name = "one"
cc = "bbr"
[[flow]]
name = "two"
cc = "cubic"
start = "1 s"
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    file = folder / "sweep.toml"
    file.write_text(f'{FILE}[sweep]\n"flow.one.cc" = ["bbr", "reno"]\n')
    dumbbell.run(dumbbell.Experiment.parse(FILE), out=folder / "run", seeds=2)
    dumbbell.sweep(file, out=folder / "sweep", seeds=2)
    [paper] = papers.reproduce([str(ROOT / "examples" / "my-paper")], folder, jobs=2)
    return {
        "run": write_report(folder / "run"),
        "sweep": write_report(folder / "sweep"),
        "paper": paper.folder / "index.html",
        "papers": folder / "index.html",
    }


def serious(browser: Browser) -> list[str]:
    """What axe-core finds in the open page, of serious or critical impact."""
    browser.evaluate(f"{AXE.read_text('utf-8')}; true")
    found: list[str] = browser.evaluate(
        "axe.run({resultTypes: ['violations']}).then(({violations}) => violations"
        ".filter(({impact}) => ['serious', 'critical'].includes(impact))"
        ".map(({id, help, nodes}) => `${id}: ${help}: ${nodes[0].html} (${nodes.length})`))"
    )
    return found


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is missing: npm ci --prefix tests/axe")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", ["run", "sweep", "paper", "papers"])
def test_axe_finds_nothing_serious(
    browser: Browser, pages: dict[str, Path], kind: str, dark: bool
) -> None:
    browser.open(pages[kind], dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    browser.wait_for("[...document.querySelectorAll('.charts')].every(e => e.dataset.drawn)")
    assert serious(browser) == []


def test_arrow_keys_read_the_charts_as_a_mouse_does(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["run"])
    browser.evaluate("document.querySelector('.charts [role=slider]').focus()")
    for _ in range(50):
        key = {"key": "ArrowRight", "code": "ArrowRight"}
        browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
    now, text = browser.evaluate(
        "(e => [e.getAttribute('aria-valuenow'), e.getAttribute('aria-valuetext')])"
        "(document.activeElement)"
    )
    assert float(now) == pytest.approx(3.0, abs=0.1)
    shown = browser.evaluate("[...document.querySelectorAll('.reading')].map(e => e.textContent)")
    assert all(shown), "every panel has a value"
    assert text == "; ".join(shown)
    assert "one" in text
