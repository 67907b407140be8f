"""What the laboratory's page shows of a scenario, and gives away of it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from lab_in_browser import DONE, MARKS, TWO, click, open_lab, open_link, press, saved, text

from dumbbell import Experiment, metrics, run
from dumbbell.display import Column
from dumbbell.lab import Shared, page_with, read_link, to_fragment

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytestmark = MARKS


def test_another_scenario_is_shown_whole_and_back_returns(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    browser.drag("[data-panel=windows] .u-over", 0.5, 0.75)
    browser.evaluate("document.querySelector('.legend button').click()")
    browser.wait_for("location.hash.includes('&hide=0')")
    select = "document.querySelector('.presets select')"
    browser.evaluate(
        f"{select}.value = 1, {select}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    )
    browser.wait_for("location.hash.length > 100 && !location.hash.includes('&')")
    browser.wait_for(f"{DONE} && !document.querySelector('.legend [aria-pressed=false]')")
    browser.evaluate("history.back()")
    browser.wait_for(f"{DONE} && {select}.selectedOptions[0].textContent === 'Two flows'")
    assert browser.evaluate("location.hash.includes('&hide=0')")


def test_a_link_opens_in_the_page_that_is_there(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    link = to_fragment(Shared(TWO.replace("Two flows", "From a link")))
    browser.evaluate(f"location.hash = {json.dumps(link)}")
    browser.wait_for(f"{DONE} && document.querySelector('.presets').innerText.includes('a link')")
    own = Shared(TWO.replace('"bbr3"', '"own.js:Mine"'), "class Mine extends WindowRule {}")
    browser.evaluate(f"location.hash = {json.dumps(to_fragment(own))}")
    browser.wait_for("document.querySelector('.status')?.innerText.includes('code of its own')")
    # While the page keeps the scenario before in the address, too.
    kept = f"history.replaceState(null, '', {json.dumps('#' + to_fragment(own))})"
    browser.evaluate(f"location.hash = {json.dumps(link)}; {kept}")
    browser.wait_for(f"{DONE} && document.querySelector('.presets').innerText.includes('a link')")
    browser.evaluate(f"location.hash = {json.dumps(link[:60])}")
    browser.wait_for("document.querySelector('.problems')?.innerText.startsWith('the link is')")


def test_of_many_flows_some_of_each_table_are_drawn(browser: Browser, folder: Path) -> None:
    flows = TWO.replace('cc = "bbr3"', 'cc = "reno"\nrepeat = 20')
    open_lab(browser, folder, flows.replace('"cubic"', '"illinois"'))
    names = browser.evaluate(
        "[...document.querySelectorAll('.legend button')].map(e => e.innerText)"
    )
    assert len(names) == 12
    assert "two" in names[-1]
    strokes = "[...document.querySelectorAll('.legend path')].map(e => e.getAttribute('style'))"
    assert len(set(browser.evaluate(strokes))) == 12, "no two look the same"
    dots = "[...document.querySelectorAll('.flows .dot')].map(e => e.style.background)"
    assert len(set(browser.evaluate(dots))) == 2
    assert "each flow from its start to its end" in text(browser, ".tables")


def test_each_subflow_has_its_round_trip_time(browser: Browser, folder: Path) -> None:
    link = TWO[TWO.index("[[link]]") : TWO.index("[[flow]]")]
    links = link.replace("bottleneck", "wifi") + link.replace("bottleneck", "lte")
    flow = '[[flow]]\ncc = "olia"\npaths = [["wifi"], ["lte"]]\n'
    open_lab(browser, folder, f'duration = "3 s"\n{links}{flow}')
    chart = "document.querySelector('[data-panel=round-trips] [role=slider]')"
    browser.evaluate(f"{chart}.focus()")
    for _ in range(50):
        press(browser, "ArrowRight")
    said = browser.evaluate(f"{chart}.ariaValueText")
    assert "over wifi" in text(browser, "[data-panel=round-trips] .states")
    assert "over wifi" in said
    assert "over lte" in said


def test_saved_figures_have_a_key_that_fits(browser: Browser, folder: Path) -> None:
    flows = 'name = "a flow with a name"\ncc = "bbr3"\nrepeat = 9'
    open_lab(browser, folder, TWO.replace('name = "one"\ncc = "bbr3"', flows))
    button = "+ .save button:first-child"
    states = saved(browser, folder / "states", f"[data-panel=states] {button}").read_text()
    assert "STARTUP" in states
    windows = saved(browser, folder / "windows", f"[data-panel=windows] {button}").read_text()
    keys = [int(float(part)) for part in re.findall(r'<path d="M([\d.]+) \d+h16"', windows)]
    assert len(keys) == 10
    assert max(keys) < 720
    assert re.search(r'h16"[^>]*dasharray', windows), "the key is dashed as the line is"


def test_the_page_in_a_page_is_shared_once(browser: Browser, folder: Path) -> None:
    page = folder / "embed.html"
    page.write_text(page_with(Shared(TWO)))
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=f"{page.as_uri()}?embed")
    browser.wait_for(DONE)
    click(browser, "Share")
    browser.wait_for("document.querySelector('.share textarea')?.value.includes('#lab=1.')")
    assert text(browser, ".share p").count("nobody else can open it") == 1
    assert browser.evaluate("document.querySelector('.share textarea').value").count("embed") == 2
    assert "?" not in browser.evaluate("document.querySelector('.share input').value")
    browser.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    browser.evaluate("document.querySelector('.copy button').click()")
    browser.wait_for("document.querySelector('.copy button').textContent === 'Selected'")
    browser.evaluate("document.querySelector('.share input').focus()")
    press(browser, "Escape")
    browser.wait_for("!document.querySelector('.share')")
    assert browser.evaluate("document.activeElement.textContent.trim()") == "Share"
    assert browser.complaints == []


def add_file(browser: Browser, label: str, content: str) -> None:
    """Chooses a file, whose content is a JavaScript expression, where the page asks for one."""
    browser.evaluate(
        "(input => { const files = new DataTransfer();"
        f"files.items.add(new File([{content}], 'any')); input.files = files.files;"
        "input.dispatchEvent(new Event('change', {bubbles: true})); })"
        "([...document.querySelectorAll('.traces label')]"
        f".find(e => e.textContent.includes({json.dumps(label)})).querySelector('input'))"
    )
    browser.wait_for(f"document.querySelector('.traces').innerText.includes('Replace the {label}')")


def test_rates_of_a_file_are_added_to_the_page(browser: Browser, folder: Path) -> None:
    page = folder / "rates.html"
    page.write_text(page_with(Shared(TWO.replace('"cubic"', '"cubic"\napp_rates = "video.txt"'))))
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    browser.wait_for("!!document.querySelector('.problems')")
    assert 'there is no file "video.txt" in this page; add' in text(browser, ".problems")
    add_file(browser, "file video.txt", "'0 2e6\\n4 0\\n'")
    browser.wait_for(DONE)
    browser.wait_for("location.hash.length > 100")
    assert read_link(browser.evaluate("location.href")).traces == {"video.txt": "0 2e6\n4 0\n"}


def test_what_no_link_holds_is_said_where_links_are_made(browser: Browser, folder: Path) -> None:
    page = folder / "large.html"
    toml = TWO.replace('rate = "10 Mbit/s"', 'trace = "a"').replace('"1 s"', '"1 s"\ntrace = "b"')
    page.write_text(page_with(Shared(f'{toml}\ntrace = "c"')))
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    browser.wait_for("location.hash.includes('lab=')")
    for name in "abc":
        add_file(browser, f"file {name}", "'1\\n'.repeat(450000)")
    click(browser, "Share")
    browser.wait_for("!!document.querySelector('.share .problems')")
    assert "has more than 2 MB" in text(browser, ".share .problems")
    assert not browser.evaluate("!!document.querySelector('.share input')")
    browser.wait_for("!location.hash.includes('lab=')")


def test_a_dark_page_is_printed_light_without_its_buttons(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, dark=True)
    theme = "document.documentElement.dataset.theme"
    browser.evaluate(
        f"addEventListener('beforeprint', () => {{ window.printed = {theme}; }}, {{once: true}})"
    )
    browser.pdf(folder / "page.pdf")
    assert browser.evaluate(f"[window.printed, {theme}]") == ["light", "dark"]
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.querySelector('.save').offsetWidth") == 0
    browser.call("Emulation.setEmulatedMedia", media="")


def test_who_wants_less_motion_starts_the_animation(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    reduced = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=reduced)
    browser.call("Page.reload")
    browser.wait_for(DONE)
    click(browser, "Watch")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    assert text(browser, ".controls .main") == "Play"
    browser.call("Emulation.setEmulatedMedia", features=[])


WEB = """
[[flow]]
name = "web"
cc = "cubic"
arrivals = "poisson(load=0.5)"
sizes = "exponential(mean=50 kB)"
"""


def test_transfers_have_a_table_and_a_panel_of_their_times(browser: Browser, folder: Path) -> None:
    toml = TWO[: TWO.index('[[flow]]\nname = "two"')] + WEB
    open_lab(browser, folder, toml)
    table = "[aria-label=Transfers]"
    heads = browser.evaluate(
        f"[...document.querySelectorAll('{table} thead th')].map(e => e.textContent)"
    )
    of_transfers = ("completed_share", "completion_p50", "completion_p95", "completion_p99")
    slowdowns = ("slowdown_mean", "slowdown_p99")
    columns = [Column.of(name).heading for name in ("transfers", *of_transfers, *slowdowns)]
    assert heads == ["Flow of transfers", *columns]
    row = browser.evaluate(
        f"[...document.querySelectorAll('{table} tbody td')].map(e => e.textContent)"
    )
    result = run(Experiment.parse(toml), seeds=1)
    transfers = result.transfers.filter(flow="web")
    assert int(row[0]) == transfers.height
    complete = transfers["completed"].is_not_null().sum()
    assert float(row[1]) == pytest.approx(100 * complete / transfers.height, abs=0.05)
    said = f"{transfers.height - complete} of {transfers.height} transfers"
    assert (said in text(browser, ".tables")) == (complete < transfers.height)
    assert not browser.evaluate("!!document.querySelector('[data-panel=jain]')"), "one other flow"
    chart = "document.querySelector('[data-panel=completion-times] [role=slider]')"
    browser.evaluate(f"{chart}.focus()")
    press(browser, "End")
    last = float(browser.evaluate(f"{chart}.ariaValueText").split()[-1])
    times = metrics.completion_times(result)
    left = times.select(metrics.survival(pl.col("elapsed"))).to_series().min()
    assert isinstance(left, float)
    assert last == pytest.approx(100 * (1 - left), abs=0.2)
    file = saved(browser, folder / "times", "[data-panel=completion-times] + .save button")
    marks = re.findall(r'text-anchor="middle">([^<]+)<', file.read_text())
    assert {"100 ms", "1 s"} <= set(marks)
    assert browser.complaints == []


# The colours near the top of a panel, at two shares of its width.
COLOURS = (
    "((from, to) => {{ const c = document.querySelector('[data-panel={panel}] canvas');"
    "const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
    "const at = (x) => [...data.slice(4 * (30 * c.width + x), 4 * (30 * c.width + x) + 3)].join();"
    "return [from, to].map(share => at(Math.round(54 + share * (c.width - 72)))); }})"
)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_warm_up_is_shaded_over_time(browser: Browser, folder: Path, dark: bool) -> None:
    toml = TWO.replace('"6 s"', '"6 s"\nwarmup = "2 s"', 1) + WEB
    open_lab(browser, folder, toml, dark=dark, width=1280)
    for panel in ("throughputs", "queue-0"):
        inside, outside = browser.evaluate(f"{COLOURS.format(panel=panel)}(0.02, 0.98)")
        assert inside != outside, panel
    inside, outside = browser.evaluate(f"{COLOURS.format(panel='completion-times')}(0.02, 0.98)")
    assert inside == outside, "its axis is another one"
    button = "+ .save button:first-child"
    drawing = saved(
        browser, folder / f"file-{dark}", f"[data-panel=throughputs] {button}"
    ).read_text()
    assert ">warm-up</text>" in drawing
    browser.drag("[data-panel=windows] .u-over", 0.5, 0.75)
    browser.wait_for("location.hash.includes('&zoom=')")
    part = saved(browser, folder / f"part-{dark}", f"[data-panel=throughputs] {button}").read_text()
    assert "warm-up" not in part
    open_lab(browser, folder, TWO, dark=dark, width=1280)
    inside, outside = browser.evaluate(f"{COLOURS.format(panel='throughputs')}(0.02, 0.98)")
    assert inside == outside


def test_metrics_have_the_headings_of_the_command_s_tables(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    heads = "[...document.querySelectorAll('.tables thead .number')].map(e => e.textContent)"
    of_flows = ("throughput", "queue_delay_mean", "queue_delay_p95", "rtt_mean")
    more = ("retransmission_share", "timeouts", "utilisation", "queue_mean", "dropped", "lost")
    assert browser.evaluate(heads) == [Column.of(name).heading for name in (*of_flows, *more)]


@pytest.mark.parametrize("traces", ["abc", ["abc"], {"a": 1}])
def test_a_link_with_traces_that_are_no_texts_is_refused(
    browser: Browser, folder: Path, traces: Any
) -> None:
    open_link(browser, folder, Shared(TWO, traces=traces))
    browser.wait_for(DONE)
    assert text(browser, ".problems").startswith("the link holds no scenario")
    assert browser.complaints == []


@pytest.mark.parametrize("line", ["\n", "[\n", " ", "class\n"])
def test_two_megabytes_in_a_short_link_do_not_stop_the_page(
    browser: Browser, folder: Path, line: str
) -> None:
    count = 950_000 // len(line)
    code = Shared(TWO, f"//{line * count}")
    file = Shared(f"{TWO}{line * count}\n")
    open_lab(browser, folder)
    for shared in (code, file):
        begin = time.monotonic()
        fragment = to_fragment(shared)
        assert len(fragment) < 10_000
        browser.evaluate(f"location.hash = {json.dumps(fragment)}")
        editors = f"document.querySelectorAll('.cm-content').length === {2 if shared.code else 1}"
        browser.wait_for(f"{editors} && !!document.querySelector('.form, .problems')")
        browser.evaluate("new Promise(done => setTimeout(done, 300))")
        assert time.monotonic() - begin < 20


def test_a_double_click_shows_all_of_a_run_whose_windows_end_earlier(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, TWO.replace('"6 s"', '"6.05 s"'), width=1280)
    browser.drag("[data-panel=throughputs] .u-over", 0.5, 0.75)
    browser.wait_for("location.hash.includes('&zoom=')")
    browser.evaluate(
        "document.querySelector('[data-panel=throughputs] .u-over')"
        ".dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))"
    )
    browser.wait_for("!location.hash.includes('&zoom=')")


def test_no_zoom_is_shorter_than_ticks_can_show(browser: Browser, folder: Path) -> None:
    open_link(browser, folder, Shared(TWO), "&tab=toString&zoom=3-3.0000000000000004")
    browser.wait_for(DONE)
    assert text(browser, "[role=tab][aria-selected=true]") == "Run"
    zoom_in = "document.querySelector('[aria-label=\"Zoom in\"]').click()"
    browser.evaluate(
        f"(async () => {{ for (let i = 0; i < 60; i++) {{ {zoom_in};"
        "await new Promise(done => setTimeout(done, 5)); } })()"
    )
    browser.wait_for("location.hash.includes('&zoom=') && !location.hash.endsWith('=3-3')")
    begin, end = map(float, browser.evaluate("location.hash.split('&zoom=')[1]").split("-"))
    assert end - begin == pytest.approx(6 / 1e4, rel=0.01)
    assert browser.complaints == []


def largest_mark(drawing: str) -> float:
    """The largest number on the y axis of a saved figure."""
    return max(map(float, re.findall(r'text-anchor="end">([\d.]+)<', drawing)))


def test_a_long_run_is_saved_as_its_panel_shows_it(browser: Browser, folder: Path) -> None:
    long = TWO.replace('"6 s"', '"100 s"\nsample = "1 ms"\ninternals = false', 1)
    open_lab(browser, folder, long.replace("10 Mbit/s", "2 Mbit/s"))
    button = "[data-panel=windows] + .save button"
    whole = saved(browser, folder / "whole", f"{button}:first-child").read_text()
    assert whole.count('fill="none"') == 2
    labels = re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle">([^<]+)<', whole)
    assert max(float(at) + 3.5 * len(label) for at, label in labels) < 720
    assert saved(browser, folder / "picture", f"{button}:last-child").stat().st_size > 1000
    link = browser.evaluate("location.href.split('&')[0]")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=f"{link}&zoom=0-0.05")
    browser.wait_for(DONE)
    part = saved(browser, folder / "part", f"{button}:first-child").read_text()
    assert largest_mark(part) < largest_mark(whole)
    assert browser.complaints == []


def test_a_figure_that_cannot_be_saved_is_told(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    browser.evaluate("HTMLCanvasElement.prototype.toBlob = (done) => done(null)")
    browser.evaluate(
        "document.querySelector('[data-panel=windows] + .save button:last-child').click()"
    )
    browser.wait_for("!!document.querySelector('.figure .problems')")
    assert "The PNG was not saved" in text(browser, ".figure .problems")
    assert browser.complaints == []
