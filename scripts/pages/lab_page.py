#!/usr/bin/env python3
"""Takes the screenshots of docs/how-to/lab.md: results, animation, and two scenarios compared."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from browser import Browser  # noqa: E402

FIGURES = ROOT / "docs/figures"
WIDTH, HEIGHT = 1280, 940


def main() -> None:
    """Opens the page, waits for results, for a loss in the animation, for a comparison."""
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        browser.open(ROOT / "python/dumbbell/lab/lab.html", width=WIDTH, height=HEIGHT)
        browser.wait_for("!!document.querySelector('[data-done=true]')")
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
        shoot(browser, "lab.png", (0, 0, WIDTH, HEIGHT))
        browser.evaluate("document.getElementById('tab-watch').click()")
        browser.wait_for("document.querySelector('.watch')?.textContent.includes('are loaded')")
        for label in ("Pause", "Next loss"):
            browser.evaluate(
                f"[...document.querySelectorAll('button')].find(e => e.textContent === '{label}')"
                ".click()"
            )
        for _ in range(2):
            browser.evaluate(
                "[...document.querySelectorAll('button')].find(e => e.textContent === 'Step ▸')"
                ".click(), new Promise(done => setTimeout(done, 200))"
            )
        shoot(browser, "lab-watch.png", (460, 102, WIDTH, 640))
        browser.evaluate("document.getElementById('tab-compare').click()")
        browser.wait_for("document.querySelector('#outcome .main')?.textContent.includes('as A')")
        browser.evaluate("document.querySelector('#outcome .main').click()")
        browser.wait_for("!!document.querySelector('.pair')")
        browser.evaluate(
            "(e => { e.value = '8'; e.dispatchEvent(new Event('change', {bubbles: true})); })"
            "(document.querySelector('[aria-label=\"Queue, written\"]'))"
        )
        browser.wait_for(
            "!!document.querySelector('.differences') && !!document.querySelector('.pair .panel')"
            " && !!document.querySelector('[data-done=true]')"
        )
        browser.evaluate("new Promise(done => setTimeout(done, 500))")
        shoot(browser, "lab-compare.png", (460, 65, WIDTH, HEIGHT))


def shoot(browser: Browser, name: str, part: tuple[int, int, int, int]) -> None:
    """Takes a picture of a part of the page, in 256 colours."""
    path = FIGURES / name
    browser.screenshot(path, height=HEIGHT)
    picture = Image.open(path).convert("RGB").crop(part)
    # The usual method, median cut, gives small areas, such as those of legends, other colours.
    picture.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


if __name__ == "__main__":
    main()
