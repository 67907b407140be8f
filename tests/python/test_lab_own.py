"""Algorithms in JavaScript, written in the laboratory's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from lab_in_browser import (
    DONE,
    MARKS,
    TWO,
    choose,
    click,
    file_of,
    open_lab,
    open_link,
    press_button,
    scripted,
    text,
)
from test_accessible import AXE, serious

from dumbbell.lab import Shared, page_with

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytestmark = MARKS

MINE = """\
class Mine extends WindowRule {
  increase(cwnd, acked, path, ack) {
    return acked / cwnd;
  }
  decrease(cwnd, path, event) {
    return cwnd / 2;
  }
}
"""


def start_own_code(browser: Browser, folder: Path, code: str) -> None:
    """Opens a scenario whose first flow has own code, and starts it."""
    page = folder / "own.html"
    toml = TWO.replace('"bbr3"', '"own.js:Mine"')
    page.write_text(page_with(Shared(toml, code)))
    browser.call("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.open(page)
    browser.wait_for("document.querySelector('.status')?.textContent.includes('code of its own')")
    assert not browser.evaluate(DONE), "code that came with the page waits to be started"
    click(browser, "Run")


def test_own_code_in_a_worker_behaves_as_the_same_rule_built_in(
    browser: Browser, folder: Path
) -> None:
    start_own_code(browser, folder, MINE)
    browser.wait_for(DONE)
    own = text(browser, ".tables tbody tr:first-child")
    open_lab(browser, folder, TWO.replace('"bbr3"', '"reno(arithmetic=exact)"'))
    built_in = text(browser, ".tables tbody tr:first-child")
    assert own.replace("Mine", "Reno (arithmetic=exact)") == built_in


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return acked / cwnd;", "return path.a.b;", "Mine: line 3: Cannot read properties"),
        ("return acked / cwnd;", "return NaN;", "Mine: the increase is NaN after increase; an"),
        ("return acked / cwnd;", "for (;;);", "own.js: the code has not returned for 5 s"),
        ("return acked / cwnd;", "return (;", "own.js, line 3: Uncaught SyntaxError"),
        ("WindowRule", "Object", "extends none of WindowRule, RoundControl and"),
        ("return cwnd / 2;", "return path.a.b;", "s of simulated time"),
        ("class Mine", "for (;;);\nclass Mine", "own.js: the code has not returned for 5 s"),
        ("return acked / cwnd;", "return document.title;", "document is not defined"),
        ("return acked / cwnd;", "importScripts('http://a/');", "failed to load"),
    ],
)
def test_own_code_that_fails_is_told(
    browser: Browser, folder: Path, old: str, new: str, said: str
) -> None:
    start_own_code(browser, folder, MINE.replace(old, new))
    browser.wait_for("!!document.querySelector('.problems')")
    assert said in text(browser, ".problems")


ROUND = """\
class Mine extends RoundControl {
  on_round(path, report) {
    if (report.number > 5) BAD;
  }
}
"""
EVENTS = """\
class Mine extends CongestionControl {
  on_ack(path, ack) {}
  on_congestion(path, event) {}
  on_established(path) {
    this.timer = path.now + 1;
  }
  on_timer(path) {
    BAD;
  }
}
"""


@pytest.mark.parametrize(
    ("code", "bad", "said"),
    [
        (ROUND, "this.a.b.c", "Mine: line 3: Cannot read properties"),
        (ROUND, "this.cwnd = NaN", "Mine: cwnd is NaN after on_round; a window is"),
        (ROUND, "for (;;);", "own.js: the code has not returned for 5 s"),
        (EVENTS, "this.a.b.c", "Mine: line 8: Cannot read properties"),
        (EVENTS, "this.timer = path.now", "Mine: timer is 1.0"),
        (EVENTS, "this.pacing_rate = -1", "Mine: pacing_rate is -1 after on_timer"),
        (EVENTS, "while (true) this.x = 1", "own.js: the code has not returned for 5 s"),
    ],
)
def test_errors_of_rounds_and_events_have_line_and_time(
    browser: Browser, folder: Path, code: str, bad: str, said: str
) -> None:
    start_own_code(browser, folder, code.replace("BAD", bad))
    browser.wait_for("!!document.querySelector('.problems')")
    found = text(browser, ".problems")
    assert said in found
    assert "own.js" in found or re.search(r"after [\d.]+ m?s of simulated time", found)


@pytest.mark.parametrize("base", ["WindowRule", "RoundControl", "CongestionControl"])
def test_a_first_own_algorithm_is_a_click_away(browser: Browser, folder: Path, base: str) -> None:
    open_lab(browser, folder)
    choose(browser, "as a", base)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    press_button(browser, "Write an algorithm")
    browser.wait_for(f"document.querySelector('.tables').textContent.includes('Mine') && {DONE}")
    assert "own.js:Mine" in file_of(browser)
    assert f"class Mine extends {base}" in text(browser, ".file")
    assert browser.evaluate("document.activeElement.ariaLabel") == "Your algorithm"
    if AXE.is_file():
        assert serious(browser) == []


COUNTED = """
window.workers = 0;
window.Worker = class extends Worker {
  constructor(url) {
    super(url);
    window.workers += 1;
  }
  terminate() {
    super.terminate();
    window.workers -= 1;
  }
};
"""


@pytest.mark.parametrize(
    ("old", "new"), [("return cwnd / 2;", "return (;"), ("class Mine", "for (;;);\nclass Mine")]
)
def test_broken_own_code_starts_no_worker_by_itself(
    browser: Browser, folder: Path, old: str, new: str
) -> None:
    with scripted(browser, COUNTED):
        start_own_code(browser, folder, MINE.replace(old, new))
        browser.wait_for("!!document.querySelector('.problems')")
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
        assert browser.evaluate("window.workers") == 1, "the one without own code"


def test_classes_in_comments_and_functions_are_left_out(browser: Browser, folder: Path) -> None:
    more = "/*\nclass Old extends WindowRule {}\n*/\nfunction f() {\n  class Inner {}\n}\n"
    start_own_code(browser, folder, more + MINE)
    browser.wait_for(DONE)
    choose(browser, "Algorithm of one", "own.js:Old")
    browser.wait_for("!!document.querySelector('.problems')")
    assert "Old: there is no class Old; there is Mine, after" in text(browser, ".problems")


def test_own_code_that_no_flow_uses_yet_waits_too(browser: Browser, folder: Path) -> None:
    open_link(browser, folder, Shared(TWO, MINE), "&tab=compare&rank=0")
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length === 8")
    browser.evaluate("document.querySelector('.compare input[type=checkbox]').click()")
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length > 20")
    browser.wait_for(
        "/^\\d+ algorithms/.test(document.querySelector('.compare [role=status]').textContent)"
    )
    assert "Mine" not in text(browser, ".compare .tables")
    choose(browser, "Algorithm of one", "own.js:Mine")
    browser.wait_for("document.querySelector('.status')?.textContent.includes('code of its own')")
    assert "Press Run" in text(browser, "#outcome")
    click(browser, "Run")
    browser.wait_for("document.querySelector('.compare .tables')?.textContent.includes('Mine')")


def test_the_state_of_own_code_is_not_called_as_bbr_s(browser: Browser, folder: Path) -> None:
    code = MINE.replace("  decrease", "  inspect() {\n    return { state: 2 };\n  }\n  decrease")
    start_own_code(browser, folder, code)
    browser.wait_for(DONE)
    assert not browser.evaluate("!!document.querySelector('[data-panel=states]')")
    choose(browser, "Variable of the algorithms", "state")
    browser.wait_for("!!document.querySelector('[data-panel=internals]')")
