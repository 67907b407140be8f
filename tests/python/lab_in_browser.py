"""The laboratory's page in headless Chromium: what tests do with it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from browser import Browser, needs_chromium

from dumbbell.lab import Shared, page_with, to_fragment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARKS = [pytest.mark.slow, needs_chromium]

TWO = """\
title = "Two flows"
duration = "6 s"  # not long

[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "1 BDP"

[[flow]]
name = "one"
cc = "bbr3"

[[flow]]
name = "two"
cc = "cubic"
start = "1 s"
"""
# The results are there, and each chart is drawn, which happens after the page has its elements.
DONE = (
    "(!!document.querySelector('[data-done=true]')"
    " && [...document.querySelectorAll('.panel [role=slider]')]"
    ".every(e => e.querySelector('.u-over')))"
)


def open_lab(browser: Browser, folder: Path, toml: str = TWO, **options: Any) -> None:
    """Opens the page from the disk, with a scenario in it, and waits for its results."""
    page = folder / "lab.html"
    page.write_text(page_with(Shared(toml)))
    browser.call("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.open(page, **options)
    browser.wait_for(DONE)


def open_link(browser: Browser, folder: Path, shared: Shared | str, view: str = "") -> None:
    """Opens a link, a scenario or a fragment, in the page from the disk; waits for nothing."""
    page = folder / "link.html"
    page.write_text(page_with())
    fragment = shared if isinstance(shared, str) else to_fragment(shared)
    browser.call("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.call("Page.navigate", url=f"{page.as_uri()}#{fragment}{view}")


@contextmanager
def scripted(browser: Browser, script: str) -> Iterator[None]:
    """Runs a script before those of each page that is opened."""
    found = browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)
    yield
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **found)


def text(browser: Browser, selector: str) -> str:
    found: str = browser.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")
    return found


def click(browser: Browser, label: str) -> None:
    """Clicks the button that says this."""
    clicked = browser.evaluate(
        f"(e => e ? (e.click(), true) : false)([...document.querySelectorAll('button')]"
        f".find(e => e.textContent.trim() === {json.dumps(label)}))"
    )
    assert clicked, label


def press_button(browser: Browser, label: str) -> None:
    """Presses the button that says this as who uses the keyboard does: it has the focus."""
    browser.evaluate(
        "[...document.querySelectorAll('button')]"
        f".find(e => e.textContent.trim() === {json.dumps(label)}).focus()"
    )
    click(browser, label)


def choose(browser: Browser, label: str, value: str) -> None:
    """Chooses a value, or writes it, in the field of this label."""
    browser.evaluate(
        f"(e => {{ e.value = {json.dumps(value)};"
        "e.dispatchEvent(new Event(e.type === 'range' ? 'input' : 'change', {bubbles: true})); })"
        f"(document.querySelector('[aria-label=' + CSS.escape({json.dumps(label)}) + ']') ??"
        f" [...document.querySelectorAll('label')].find(e => e.textContent.startsWith"
        f"({json.dumps(label)})).querySelector('input, select'))"
    )


def file_of(browser: Browser) -> str:
    """The text in the editor."""
    lines: list[str] = browser.evaluate(
        "[...document.querySelectorAll('.cm-line')].map(e => e.textContent)"
    )
    return "\n".join(lines)


def write(browser: Browser, old: str, new: str) -> None:
    """Selects a text in the editor and types another one over it."""
    browser.evaluate(
        "(async () => { const line = [...document.querySelectorAll('.cm-line')]"
        f".find(e => e.textContent.includes({json.dumps(old)}));"
        "document.querySelector('.cm-content').focus();"
        "const range = document.createRange(); range.selectNodeContents(line);"
        "getSelection().removeAllRanges(); getSelection().addRange(range);"
        "await new Promise(done => setTimeout(done, 50)); })()"
    )
    browser.call("Input.insertText", text=new)


def press(browser: Browser, key: str) -> None:
    """Presses a key."""
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def saved(browser: Browser, folder: Path, button: str) -> Path:
    """Clicks a button that saves a file, and waits for the file."""
    folder.mkdir()
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.evaluate(f"document.querySelector({json.dumps(button)}).click()")
    for _ in range(500):
        if done := [file for file in folder.iterdir() if file.suffix != ".crdownload"]:
            return done[0]
        browser.evaluate("new Promise(done => setTimeout(done, 20))")
    raise AssertionError("nothing was saved")


def table(browser: Browser, place: str) -> dict[str, dict[str, str]]:
    """A table's cells, by what their row and their column are called."""
    rows: list[list[str]] = browser.evaluate(
        f"[...document.querySelectorAll({json.dumps(f'{place} tr')})]"
        ".map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    [_, *heads], *body = rows
    return {name: dict(zip(heads, cells, strict=True)) for name, *cells in body}


def numbers(cell: str) -> list[float | None]:
    """The value of a cell and half the width of its interval; None for a dash."""
    parts = cell.replace(",", "").replace("\N{MINUS SIGN}", "-").split("±")
    return [None if part.strip() == "\N{EN DASH}" else float(part) for part in parts]
