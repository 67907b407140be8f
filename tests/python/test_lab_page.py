"""The laboratory's page in a browser, as a lecturer uses it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from lab_in_browser import DONE, MARKS, TWO, choose, click, file_of, open_lab, saved, text, write
from PIL import Image
from test_accessible import AXE, serious

from dumbbell import _core
from dumbbell.lab import Shared, page_with, read_link, to_fragment

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytestmark = MARKS


def test_the_page_opens_from_a_disk_and_asks_for_nothing(browser: Browser, folder: Path) -> None:
    browser.requests.clear()
    open_lab(browser, folder)
    assert {url.split(":")[0] for url in browser.requests} <= {"about", "file", "blob", "data"}
    assert browser.complaints == []
    panels = browser.evaluate("[...document.querySelectorAll('.panel')].map(e => e.dataset.panel)")
    assert panels == ["windows", "throughputs", "states", "round-trips", "queue-0", "jain"]
    rows = browser.evaluate(
        "[...document.querySelectorAll('.tables tbody tr')].map(e => e.cells[0].textContent)"
    )
    assert [row.split()[0] for row in rows] == ["one", "two", "bottleneck"]


def test_the_form_changes_the_file_and_keeps_comments(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    choose(browser, "Algorithm of one", "reno")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('\"reno\"')")
    browser.wait_for(f"{DONE} && !document.querySelector('[data-panel=states]')")
    choose(browser, "Queue", "200")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('32 BDP')")
    assert 'duration = "6 s"  # not long' in file_of(browser)
    assert file_of(browser).count("[[flow]]") == 2
    click(browser, "Add a flow")
    browser.wait_for(f"document.querySelectorAll('.flows tbody tr').length === 3 && {DONE}")
    assert file_of(browser).count("[[flow]]") == 3
    assert browser.complaints == []


def test_the_form_follows_the_file(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    write(browser, "rate =", 'rate = "20 Mbit/s"')
    browser.wait_for("document.querySelector('.slider .value').value === '20 Mbit/s'")
    browser.wait_for(DONE)


def options_of(browser: Browser, label: str) -> list[str]:
    """The values that a field of the form offers."""
    found: list[str] = browser.evaluate(
        "[...[...document.querySelectorAll('label')]"
        f".find(e => e.textContent.startsWith({json.dumps(label)})).querySelectorAll('option')]"
        ".map(e => e.value)"
    )
    return found


def test_the_form_offers_every_aqm_and_ecn_of_the_schema(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TWO.replace('queue = "1 BDP"', 'aqm = "step(threshold=2 ms)"'))
    browser.wait_for("!!document.querySelector('.choice option[value=step]')")
    properties = json.loads(_core.experiment_schema())["properties"]
    [aqms, *_] = properties["link"]["items"]["properties"]["aqm"]["anyOf"]
    assert options_of(browser, "Queue management") == ["", *aqms["enum"]]
    assert options_of(browser, "ECN") == properties["stack_options"]["properties"]["ecn"]["enum"]
    assert browser.evaluate("document.querySelector('.choice select').value") == "step"


def test_a_form_makes_an_l4s_scenario(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    choose(browser, "Algorithm of one", "prague")
    browser.wait_for("document.querySelector('.status')?.textContent.includes('dualpi2')")
    choose(browser, "Queue management", "dualpi2")
    browser.wait_for(f"{DONE} && !document.querySelector('.warning')")
    choose(browser, "ECN", "l4s")
    browser.wait_for("document.querySelector('.cm-content').textContent.includes('\"l4s\"')")
    browser.wait_for(DONE)
    assert 'aqm = "dualpi2"' in file_of(browser)
    assert browser.complaints == []


def test_values_are_written_beside_the_sliders(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    for label, value, line in (
        ("Queue", "8", 'queue = "8 BDP"'),
        ("Rate", "2.5 Gbit/s", 'rate = "2.5 Gbit/s"'),
        ("RTT", "7", 'delay = "3.5 ms"'),
        ("Loss", "1", 'loss = "1 %"'),
    ):
        choose(browser, f"{label}, written", value)
        browser.wait_for(
            "[...document.querySelectorAll('.cm-line')]"
            f".some(e => e.textContent === {json.dumps(line)})"
        )
    choose(browser, "Queue, written", "much")
    browser.wait_for("!!document.querySelector('.problems')")
    assert "queue" in text(browser, ".problems")
    choose(browser, "Queue, written", "1 BDP")
    browser.wait_for("!document.querySelector('.problems')")


def test_a_mistake_is_marked_at_its_line(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    write(browser, '"cubic"', 'cc = "cubik"')
    browser.wait_for("!!document.querySelector('.problems')")
    said = text(browser, ".problems")
    assert said.startswith("Line 16: flow.two.cc: ")
    assert 'did you mean "cubic"?' in said
    browser.wait_for("!!document.querySelector('.cm-lintRange-error, .cm-lint-marker-error')")
    write(browser, "cubik", 'cc = "cubic"')
    browser.wait_for(f"!document.querySelector('.problems') && {DONE}")


def test_seeds_are_bands_and_the_table_has_intervals(browser: Browser, folder: Path) -> None:
    toml = TWO.replace('"6 s"', '"6 s"\nseeds = 3\nstart_jitter = "100 ms"')
    open_lab(browser, folder, toml)
    assert "±" in text(browser, ".tables")
    assert "Means of 3 seeds" in text(browser, ".tables")
    choose(browser, "Seeds", "2")
    browser.wait_for(
        f"{DONE} && !document.querySelector('.tables').textContent.includes('3 seeds')"
    )


def test_a_long_run_waits_and_can_be_cancelled(browser: Browser, folder: Path) -> None:
    toml = TWO.replace("10 Mbit/s", "1 Gbit/s").replace('"6 s"', '"600 s"')
    page = folder / "long.html"
    page.write_text(page_with(Shared(toml)))
    browser.open(page)
    browser.wait_for("document.querySelector('.status')?.textContent.includes('packets')")
    assert "million packets" in text(browser, ".status")
    click(browser, "Run")
    browser.wait_for("document.querySelector('progress')?.value > 0")
    click(browser, "Cancel")
    browser.wait_for("!document.querySelector('progress')")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"6 s"', '"6 s"\nsample = "1 us"', "would have 252 million rows"),
        ('"6 s"', '"6 s"\nseeds = 20000', "would have 50.4 million rows"),
        ('"cubic"', '"cubic"\nrepeat = 100000', "flow: are 100001 flows, and a page takes 10000"),
        (
            '"1 BDP"',
            '"30000000 packets"\n[stack_options]\nreceive_window = 16000000',
            "hold 30 million",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_number(
    browser: Browser, folder: Path, old: str, new: str, said: str
) -> None:
    page = folder / "large.html"
    page.write_text(page_with(Shared(TWO.replace(old, new))))
    browser.complaints.clear()
    browser.open(page)
    browser.wait_for("!!document.querySelector('.problems')")
    assert said in text(browser, ".problems")
    assert browser.complaints == []


def test_the_animation_plays_stops_and_finds_losses(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    click(browser, "Watch")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    before = text(browser, ".slider.time output")
    browser.wait_for(f"document.querySelector('.slider.time output').textContent !== '{before}'")
    click(browser, "Pause")
    now = "Number(document.querySelector('.slider.time input').value)"
    at = browser.evaluate(now)
    click(browser, "Next loss")
    browser.wait_for(f"{now} > {at} && document.querySelector('.said') === null")
    at = browser.evaluate(now)
    click(browser, "Step ▸")
    browser.wait_for(f"{now} > {at}")
    drawn = browser.evaluate(
        "(c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size)"
        "(document.querySelector('.stage canvas'))"
    )
    assert drawn > 10, "something is drawn"
    assert browser.complaints == []


def test_sharing_gives_a_link_that_brings_the_scenario_back(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    choose(browser, "Algorithm of two", "vegas")
    browser.wait_for("location.hash.length > 100")
    click(browser, "Share")
    browser.wait_for("document.querySelector('.share input')?.value.includes('#lab=1.')")
    link = browser.evaluate("document.querySelector('.share input').value")
    assert read_link(link).toml == file_of(browser)
    assert "vegas" in read_link(link).toml
    assert len(link) < 2000
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    browser.wait_for(DONE)
    assert "vegas" in file_of(browser)


@pytest.mark.parametrize(
    "fragment", ["lab=1.@@@", "lab=9.abc", "lab=1.AAAA", to_fragment(Shared("x"))[:-4]]
)
def test_a_bad_link_is_told_and_another_shown(
    browser: Browser, folder: Path, fragment: str
) -> None:
    page = folder / "bad.html"
    page.write_text(page_with())
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=f"{page.as_uri()}#{fragment}")
    browser.wait_for(DONE)
    assert text(browser, ".problems").startswith("the link is ")
    assert browser.complaints == []


def test_a_hostile_title_is_text(browser: Browser, folder: Path) -> None:
    title = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    open_lab(browser, folder, TWO.replace("Two flows", title))
    assert title in text(browser, ".presets")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.complaints == []


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
    open_lab(browser, folder, TWO.replace('"bbr3"', '"reno"'))
    built_in = text(browser, ".tables tbody tr:first-child")
    assert own.replace("Mine", "Reno") == built_in


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
    click(browser, "Write an algorithm")
    browser.wait_for(f"document.querySelector('.tables').textContent.includes('Mine') && {DONE}")
    assert "own.js:Mine" in file_of(browser)
    assert f"class Mine extends {base}" in text(browser, ".scenario")
    if AXE.is_file():
        assert serious(browser) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_the_page_fits_any_width(browser: Browser, folder: Path, dark: bool, width: int) -> None:
    open_lab(browser, folder, dark=dark, width=width)
    for tab in ("Watch", "Run"):
        click(browser, tab)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    if AXE.is_file():
        for tab in ("Run", "Watch"):
            click(browser, tab)
            click(browser, "Share")
            assert serious(browser) == []


def test_a_figure_is_saved_as_svg_and_as_png(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, dark=True)
    buttons = "[data-panel=windows] + .save button"
    file = saved(browser, folder / "svg", f"{buttons}:first-child")
    assert file.name == "two-flows-windows.svg"
    drawing = file.read_text()
    assert drawing.startswith("<svg")
    assert drawing.count('fill="none"') == 2
    picture = saved(browser, folder / "png", f"{buttons}:last-child")
    assert picture.name == "two-flows-windows.png"
    with Image.open(picture) as image:
        found = image.convert("RGB").getcolors(1 << 20)
        assert found is not None
        colours = {colour for _, colour in found}
        assert image.size == (1440, 516)
        assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255), "as on paper"
    assert {(0, 114, 178), (213, 94, 0)} & colours, "the colours of the algorithms"


def test_a_first_result_is_there_within_seconds(browser: Browser, folder: Path) -> None:
    page = folder / "first.html"
    page.write_text(page_with())
    browser.open(page)
    browser.wait_for(DONE)
    painted = browser.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert painted < 10_000, "far less on an idle machine; this one may be busy"


def test_a_trace_comes_with_the_page_or_is_asked_for(browser: Browser, folder: Path) -> None:
    toml = TWO.replace('rate = "10 Mbit/s"', 'trace = "lte.trace"')
    page = folder / "trace.html"
    page.write_text(page_with(Shared(toml)))
    browser.open(page)
    browser.wait_for("!!document.querySelector('.problems')")
    assert 'there is no file "lte.trace" in this page' in text(browser, ".problems")
    assert "Add the trace lte.trace" in text(browser, ".traces")
    page.write_text(
        page_with(Shared(toml, traces={"lte.trace": "\n".join(map(str, range(1, 99)))}))
    )
    browser.open(page)
    browser.wait_for(DONE)
    assert "Replace the trace" in text(browser, ".traces")


def test_every_control_is_reached_by_tab(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    browser.evaluate("document.activeElement.blur(), document.body.focus()")
    seen = set()
    for _ in range(60):
        for kind in ("keyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9
            )
        seen.add(
            browser.evaluate(
                "(e => e.getAttribute('aria-label') ?? e.closest('label')?.textContent"
                " ?? e.textContent)(document.activeElement)"
            )
        )
        if browser.evaluate("document.activeElement.className.includes('cm-content')"):
            break  # there Tab is the editor's last stop; Shift+Tab leaves it backwards
    for part in ("Rate", "RTT", "Queue", "Share", "Algorithm of one", "Add a flow"):
        assert any(part in one for one in seen), part
    browser.evaluate("document.querySelector('.slider input').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight")
    browser.wait_for("document.querySelector('.slider .value').value === '11 Mbit/s'")


def press(browser: Browser, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def test_keys_read_a_chart_and_choose_where_the_animation_begins(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder)
    browser.evaluate("document.querySelector('[data-panel=windows] [role=slider]').focus()")
    for _ in range(51):
        press(browser, "ArrowRight")
    chart = "document.activeElement"
    now = float(browser.evaluate(f"{chart}.getAttribute('aria-valuenow')"))
    assert now == pytest.approx(3.0, abs=0.1)
    assert "one" in browser.evaluate(f"{chart}.getAttribute('aria-valuetext')")
    readings = "[...document.querySelectorAll('.reading')].map(e => e.textContent)"
    assert all(browser.evaluate(readings)), "every panel is read"
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter")
    browser.evaluate("document.querySelector('[role=tab][aria-selected=true]').focus()")
    press(browser, "ArrowRight")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    click(browser, "Pause")
    at = browser.evaluate("Number(document.querySelector('.slider.time input').value)")
    assert at == pytest.approx(now, abs=0.5)


def test_a_link_opens_the_animation_at_its_time(browser: Browser, folder: Path) -> None:
    page = folder / "moment.html"
    page.write_text(page_with())
    browser.call("Page.navigate", url="about:blank")
    fragment = f"{to_fragment(Shared(TWO))}&tab=watch&at=4.5"
    browser.call("Page.navigate", url=f"{page.as_uri()}#{fragment}")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    click(browser, "Pause")
    at = browser.evaluate("Number(document.querySelector('.slider.time input').value)")
    assert at == pytest.approx(4.5, abs=0.2)
    browser.wait_for("/&tab=watch&at=4\\./.test(location.hash)")
