"""The laboratory's comparisons: two scenarios, and algorithms on one path."""

from __future__ import annotations

import json
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

from dumbbell.display import Column
from dumbbell.lab import Shared, page_with, read_link, to_fragment

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytestmark = MARKS

WEB = """\
duration = "6 s"
[[link]]
name = "lte"
template = "lte"
[[flow]]
name = "download"
cc = "reno"
[[flow]]
name = "web"
cc = "cubic"
arrivals = "poisson(load=0.3)"
sizes = "exponential(mean=50 kB)"
"""

BOTH = f"{DONE} && document.querySelectorAll('.pair .panel').length > 0"


def cells(browser: Browser, table: str) -> list[list[str]]:
    """The texts of a table's body."""
    found: list[list[str]] = browser.evaluate(
        f"[...document.querySelectorAll('{table} tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    return found


def open_pair(browser: Browser, folder: Path, a: str, b: str, *, width: int = 1280) -> None:
    """Opens the page at the comparison of two scenarios."""
    page = folder / "pair.html"
    page.write_text(page_with())
    browser.call("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.open(page, width=width)
    fragment = f"#{to_fragment(Shared(b, beside=a))}&tab=compare"
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=page.as_uri() + fragment)
    browser.wait_for(BOTH)


def test_a_kept_scenario_stands_beside_the_changed_one(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, width=1280)
    click(browser, "Compare")
    press_button(browser, "Keep this scenario as A")
    browser.wait_for("document.querySelector('.pair')?.textContent.includes('are the same so far')")
    assert browser.evaluate("document.activeElement.className") == "pair"
    choose(browser, "Algorithm of one", "reno")
    browser.wait_for(f"{BOTH} && !!document.querySelector('.differences')")
    assert cells(browser, ".differences") == [["flow.one.cc", "bbr3", "reno"]]
    heads = browser.evaluate("[...document.querySelectorAll('.panel h3')].map(e => e.textContent)")
    assert [head for head in heads if "window" in head] == [
        "A: Congestion window",
        "B: Congestion window",
    ]
    assert [head for head in heads if "state" in head] == ["A: BBR's state"]
    click(browser, "Swap A and B")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('\"bbr3\"')")
    browser.wait_for(
        f"{BOTH} && document.querySelector('.differences tbody')?.rows[0].cells[1].textContent"
        " === 'reno'"
    )
    press_button(browser, "Drop A")
    browser.wait_for("!document.querySelector('.pair')")
    assert browser.evaluate("document.activeElement.ariaLabel") == "Two scenarios"
    assert browser.complaints == []


def test_both_sides_have_the_same_axes_and_their_differences(
    browser: Browser, folder: Path
) -> None:
    seeds = TWO.replace('"6 s"', '"6 s"\nseeds = 3\nstart_jitter = "50 ms"')
    open_pair(browser, folder, seeds, seeds.replace("1 BDP", "8 BDP"))
    labels = browser.evaluate("[...document.querySelectorAll('.pair canvas')].map(e => e.height)")
    assert len(labels) == 12
    assert ["link.bottleneck.queue", "25 kB", "200 kB"] in cells(browser, ".differences")
    rows = {row[0]: row[1:] for row in cells(browser, ".numbers")}
    a, b, difference = (
        float(one.split()[0].replace("\N{MINUS SIGN}", "-")) for one in rows["Mean queue (kB)"]
    )
    assert b > a
    assert difference == pytest.approx(b - a, abs=0.11)
    assert "±" in rows["Mean queue (kB)"][2]
    if AXE.is_file():
        assert serious(browser) == []


def test_a_link_brings_both_scenarios_and_the_command_runs_one(
    browser: Browser, folder: Path
) -> None:
    open_pair(browser, folder, TWO.replace("bbr3", "reno"), TWO)
    browser.wait_for("location.hash.includes('&tab=compare')")
    link = read_link(browser.evaluate("location.href"))
    assert link.beside == TWO.replace("bbr3", "reno")
    assert link.toml == TWO == file_of(browser)
    assert browser.complaints == []


def test_own_code_of_the_kept_scenario_waits_for_the_user(browser: Browser, folder: Path) -> None:
    code = (
        "class Mine extends WindowRule { increase(c, a) { return a / c } decrease(c) { return 2 } }"
    )
    page = folder / "own.html"
    page.write_text(page_with(Shared(TWO, code, beside=TWO.replace('"bbr3"', '"own.js:Mine"'))))
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    browser.wait_for("document.querySelector('.status')?.textContent.includes('code of its own')")
    click(browser, "Compare")
    browser.wait_for("document.querySelector('#outcome').textContent.includes('Press Run')")
    click(browser, "Run")
    browser.wait_for(BOTH)
    assert cells(browser, ".differences") == [["flow.one.cc", "own.js:Mine", "bbr3"]]


def test_results_of_an_earlier_a_are_not_shown_as_the_new_one_s(
    browser: Browser, folder: Path
) -> None:
    open_pair(browser, folder, TWO.replace("bbr3", "reno"), TWO)
    large = TWO.replace("10 Mbit/s", "1 Gbit/s").replace('"6 s"', '"600 s"')
    fragment = f"#{to_fragment(Shared(TWO, beside=large))}&tab=compare"
    browser.evaluate(f"location.hash = {json.dumps(fragment)}")
    browser.wait_for("document.querySelector('.pair')?.textContent.includes('million packets')")
    assert not browser.evaluate("!!document.querySelector('.pair .results')")


def test_a_swap_of_large_scenarios_swaps_their_results(browser: Browser, folder: Path) -> None:
    large = TWO.replace("Two flows", "Fast").replace("10 Mbit/s", "1 Gbit/s")
    page = folder / "swap.html"
    page.write_text(page_with(Shared(large.replace('"6 s"', '"100 s"\nsample = "100 ms"', 1))))
    browser.call("Page.navigate", url="about:blank")
    browser.complaints.clear()
    browser.open(page)
    browser.wait_for("document.querySelector('.status')?.textContent.includes('packets')")
    press_button(browser, "Run")
    browser.wait_for(DONE)
    assert browser.evaluate("document.activeElement.ariaLabel") == "Runs"
    click(browser, "Compare")
    click(browser, "Keep this scenario as A")
    browser.wait_for(BOTH)
    choose(browser, "Scenario", "0")
    browser.wait_for(f"{BOTH} && document.querySelector('.pair h2').textContent === 'A: Fast'")
    before = {row[0]: row[1:3] for row in cells(browser, ".numbers")}
    click(browser, "Swap A and B")
    second = "document.querySelectorAll('.pair h2')[1].textContent"
    browser.wait_for(f"{BOTH} && {second} === 'B: Fast'")
    browser.wait_for("!document.querySelector('.results.stale')")
    assert not browser.evaluate("!!document.querySelector('progress')"), "nothing runs again"
    after = {row[0]: row[1:3] for row in cells(browser, ".numbers")}
    assert after["Mean queue (kB)"] == before["Mean queue (kB)"][::-1]
    assert browser.complaints == []


def test_a_mistake_in_the_kept_scenario_is_told(browser: Browser, folder: Path) -> None:
    page = folder / "wrong.html"
    page.write_text(page_with(Shared(TWO, beside=TWO.replace("bbr3", "bbr9"))))
    browser.open(page)
    browser.wait_for(DONE)
    click(browser, "Compare")
    browser.wait_for("!!document.querySelector('.pair .problems')")
    assert "Line 12: flow.one.cc" in text(browser, ".pair .problems")


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_two_scenarios_fit_any_width(browser: Browser, folder: Path, width: int) -> None:
    open_pair(browser, folder, TWO, TWO.replace("1 BDP", "4 BDP"), width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_algorithms_are_compared_on_the_path_and_one_is_chosen(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, TWO.replace('"6 s"', '"6 s"\nseeds = 2\nstart_jitter = "9 ms"'))
    click(browser, "Compare")
    click(browser, "Algorithms on this path")
    browser.wait_for(
        "document.querySelector('.compare')?.textContent.includes('8 algorithms on this path')"
        " && document.querySelectorAll('.compare tbody tr').length === 8"
    )
    rates = browser.evaluate(
        "[...document.querySelectorAll('.compare tbody tr')]"
        ".map(e => parseFloat(e.cells[1].textContent))"
    )
    assert rates == sorted(rates, reverse=True)
    assert "±" in text(browser, ".compare")
    if AXE.is_file():
        assert serious(browser) == []
    choose(browser, "Flow", "1")
    browser.wait_for("location.hash.endsWith('&tab=compare&rank=1')")
    link = browser.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length === 8")
    click(browser, "Vegas")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('\"vegas\"')")
    assert browser.complaints == []


def test_algorithms_are_ranked_by_the_completion_of_transfers(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, WEB)
    click(browser, "Compare")
    click(browser, "Algorithms on this path")
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length === 8")
    choose(browser, "In the order of", "completion_p99")
    heads = "[...document.querySelectorAll('.compare thead th')].map(e => e.textContent)"
    at = browser.evaluate(heads).index(Column.of("completion_p99").heading)
    browser.wait_for("document.querySelector('.compare p select')?.value === 'completion_p99'")
    found = [row[at] for row in cells(browser, ".compare")]
    times = [float(time.replace(",", "")) for time in found if time != "\N{EN DASH}"]
    assert len(times) > 1
    assert times == sorted(times)
    assert set(found[len(times) :]) <= {"\N{EN DASH}"}, "what is not reached is last"


def test_a_lecturer_makes_five_links_that_open_what_was_shown(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, width=1280)
    links = []

    def keep_link() -> None:
        """What a lecturer copies into the notes."""
        click(browser, "Share")
        browser.wait_for("document.querySelectorAll('.share input').length === 3")
        browser.evaluate("new Promise(done => setTimeout(done, 400))")
        links.append(browser.evaluate("document.querySelectorAll('.share input')[1].value"))
        click(browser, "Close")

    choose(browser, "Scenario", "0")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('BBR against')")
    browser.wait_for(DONE)
    keep_link()
    click(browser, "Compare")
    click(browser, "Keep this scenario as A")
    choose(browser, "Queue, written", "8")
    browser.wait_for(f"{BOTH} && !!document.querySelector('.differences')")
    keep_link()
    choose(browser, "Algorithm of bbr", "bbr3")
    browser.wait_for(f"{BOTH} && document.querySelectorAll('.differences tbody tr').length === 2")
    keep_link()
    click(browser, "Watch")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    click(browser, "Pause")
    choose(browser, "Time", "20")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    keep_link()
    click(browser, "Run")
    choose(browser, "Queue management", "fq_codel")
    browser.wait_for(DONE)
    keep_link()
    parts = [link.split("](lab.html#")[1].rstrip(")") for link in links]
    assert [part.partition("&")[2] for part in parts] == [
        *("", "tab=compare", "tab=compare", "tab=watch&at=20&paused", ""),
    ]
    assert all(link.startswith("[BBR against CUBIC](lab.html#") for link in links)
    shared = [read_link(f"#{part}") for part in parts]
    assert [one.beside != "" for one in shared] == [False, True, True, True, True]
    assert 'queue = "8 BDP"' in shared[1].toml
    assert 'cc = "bbr3"' in shared[2].toml
    assert "fq_codel" in shared[4].toml
    assert max(map(len, links)) < 700
    assert browser.complaints == []


MINE = (
    "class Mine extends WindowRule { increase(c, a) { return a / c } decrease(c) { return c / 2 } }"
)
OWN = TWO.replace('"bbr3"', '"own.js:Mine"')


def test_own_code_is_ranked_among_built_in_algorithms(browser: Browser, folder: Path) -> None:
    open_link(browser, folder, Shared(OWN, MINE), "&tab=compare&rank=0")
    browser.wait_for("document.querySelector('.status')?.textContent.includes('code of its own')")
    click(browser, "Run")
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length === 9")
    assert "9 algorithms on this path" in text(browser, ".compare")
    assert browser.complaints == []


def test_own_code_runs_beside_a_scenario_without_any(browser: Browser, folder: Path) -> None:
    open_link(browser, folder, Shared(OWN, MINE, beside=TWO), "&tab=compare")
    browser.wait_for("document.querySelector('.status')?.textContent.includes('code of its own')")
    click(browser, "Run")
    browser.wait_for(BOTH)
    for value in ("20", "10", "20"):
        choose(browser, "Rate, written", value)
        browser.wait_for(f"document.querySelector('.cm-content').innerText.includes('{value} M')")
    browser.wait_for(
        f"{BOTH} && !document.querySelector('.pair .stale') && !document.querySelector('progress')"
    )
    click(browser, "Keep B as A")
    browser.wait_for(
        "document.querySelector('.pair')?.textContent.includes('are the same so far')"
        " && !document.querySelector('progress')"
    )
    assert browser.complaints == []


FATAL = """
let checks = 0;
window.Worker = class extends Worker {
  postMessage(message) {
    if (message.task?.kind !== "check" || ++checks !== 2) return super.postMessage(message);
    const data = { id: message.id, failure: "The engine stopped.", fatal: true };
    setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
  }
};
"""


def test_what_waits_for_a_worker_that_stops_is_done_by_another(
    browser: Browser, folder: Path
) -> None:
    with scripted(browser, FATAL):
        open_link(browser, folder, Shared(TWO, beside=TWO.replace("bbr3", "reno")))
        browser.wait_for(DONE)
        click(browser, "Compare")
        browser.wait_for("!!document.querySelector('.pair .problems')")
        assert text(browser, ".pair .problems") == "The engine stopped."


def test_a_ranking_of_what_is_too_large_is_refused(browser: Browser, folder: Path) -> None:
    large = (
        TWO.replace('"1 BDP"', '"9 packets"')
        .replace("10 Mbit/s", "1 kbit/s")
        .replace('"6 s"', '"6 s"\nsample = "1 us"', 1)
    )
    open_link(browser, folder, Shared(large), "&tab=compare&rank=0")
    browser.wait_for("document.querySelector('.compare')?.textContent.includes('would have')")
    assert browser.evaluate("document.querySelectorAll('.compare tbody tr').length") == 0
