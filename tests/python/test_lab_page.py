"""The laboratory's page in a browser, as a lecturer uses it."""

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
    press,
    saved,
    text,
    write,
)
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
    [none, aqms] = properties["link"]["items"]["properties"]["aqm"]["anyOf"]
    assert none == {"enum": ["none"]}  # in the form: tail drop
    assert options_of(browser, "Queue management") == ["", *aqms["anyOf"][0]["enum"]]
    assert options_of(browser, "ECN") == properties["stack_options"]["properties"]["ecn"]["enum"]
    aqm = "document.querySelector('.choice option[value=step]').closest('select').value"
    assert browser.evaluate(aqm) == "step"


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


def test_what_is_being_written_stays_when_the_page_is_redrawn(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder)
    field = "document.querySelector('[aria-label=\"Queue, written\"]')"
    browser.evaluate(f"{field}.focus(), {field}.select()")
    browser.call("Input.insertText", text="8")
    browser.evaluate("document.querySelector('.legend button').click()")
    browser.wait_for("document.querySelector('.legend button').ariaPressed === 'false'")
    assert browser.evaluate(f"{field}.value") == "8"
    browser.evaluate(f"{field}.blur()")
    browser.wait_for(f"{field}.value === '8 BDP' && {DONE}")
    assert 'queue = "8 BDP"' in file_of(browser)


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


def test_keys_that_follow_fast_are_all_written(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    title = 'title = "Why two flows fight over one queue'
    write(browser, "title =", title[:1])
    for key in title[1:]:
        browser.call("Input.insertText", text=key)
    browser.wait_for(f"{DONE} && document.querySelector('.presets').textContent.includes('fight')")
    assert file_of(browser).startswith(f'{title}"\n')


def test_seeds_are_bands_and_the_table_has_intervals(browser: Browser, folder: Path) -> None:
    toml = TWO.replace('"6 s"', '"6 s"\nseeds = 3\nstart_jitter = "100 ms"')
    open_lab(browser, folder, toml)
    assert "±" in text(browser, ".tables")
    assert "(seed 1)" in text(browser, "[data-panel=states] .head")
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
        ('"6 s"', '"6 s"\nseeds = [9007199254740993]', "seeds up to 9,007,199,254,740,991"),
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


def test_a_paused_animation_jumps_to_where_the_loss_is_seen(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    click(browser, "Watch")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    click(browser, "Pause")
    # The cross of a drop, in the colour of errors.
    crosses = (
        "(c => { const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "for (let i = 0; i < data.length; i += 4)"
        " if (data[i] > 140 && data[i + 1] < 60 && data[i + 2] < 60) return true; return false; })"
        "(document.querySelector('.stage canvas'))"
    )
    choose(browser, "Time", "0")
    browser.wait_for(f"document.querySelector('.said') === null && !{crosses}")
    click(browser, "Next loss")
    browser.wait_for(f"document.querySelector('.said') === null && {crosses}")


def test_a_link_into_a_deep_queue_shows_all_packets_of_the_path(
    browser: Browser, folder: Path
) -> None:
    [deep, *_] = TWO.replace("1 BDP", "40 BDP").rsplit("[[flow]]", 1)
    deep = deep.replace('"bbr3"', '"cubic(slow_start=standard)"')
    page = folder / "deep.html"
    page.write_text(page_with())
    browser.call("Page.navigate", url="about:blank")
    fragment = f"{to_fragment(Shared(deep))}&tab=watch&at=5&paused"
    browser.call("Page.navigate", url=f"{page.as_uri()}#{fragment}")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    coloured = browser.evaluate(
        "new Promise(done => requestAnimationFrame(() => setTimeout(done, 100))).then(() =>"
        "(c => { const [x, width] = [Math.round(0.6 * c.width), Math.round(0.25 * c.width)];"
        "const data = c.getContext('2d').getImageData(x, 0, width, 0.6 * c.height).data;"
        "let count = 0; for (let i = 0; i < data.length; i += 4)"
        " count += data[i] === 0 && data[i + 1] === 114 && data[i + 2] === 178 ? 1 : 0;"
        "return count; })(document.querySelector('.stage canvas')))"
    )
    assert coloured > 100, "packets are on the link, though they waited long before it"


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
    assert "Add the file lte.trace" in text(browser, ".traces")
    page.write_text(
        page_with(Shared(toml, traces={"lte.trace": "\n".join(map(str, range(1, 99)))}))
    )
    browser.open(page)
    browser.wait_for(DONE)
    assert "Replace the file" in text(browser, ".traces")


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


def test_a_link_opens_the_animation_at_its_time_playing_or_paused(
    browser: Browser, folder: Path
) -> None:
    page = folder / "moment.html"
    page.write_text(page_with())
    browser.call("Page.navigate", url="about:blank")
    fragment = f"{to_fragment(Shared(TWO))}&tab=watch&at=4.5"
    browser.call("Page.navigate", url=f"{page.as_uri()}#{fragment}")
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    click(browser, "Pause")
    at = browser.evaluate("Number(document.querySelector('.slider.time input').value)")
    assert at == pytest.approx(4.5, abs=0.2)
    browser.wait_for("/&tab=watch&at=4\\.\\d+&paused$/.test(location.hash)")
    at = browser.evaluate("Number(document.querySelector('.slider.time input').value)")
    link = browser.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    browser.wait_for("document.querySelector('.watch')?.textContent.includes('hops are loaded')")
    browser.evaluate("new Promise(done => setTimeout(done, 200))")
    then = browser.evaluate("Number(document.querySelector('.slider.time input').value)")
    assert then == pytest.approx(at, abs=1e-5)


def test_a_link_keeps_zoom_hidden_flows_and_variable(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    browser.wait_for("location.hash.length > 100")
    assert "&" not in browser.evaluate("location.hash")
    browser.drag("[data-panel=windows] .u-over", 0.5, 0.75)
    browser.evaluate("document.querySelector('.legend button:last-of-type').click()")
    choose(browser, "Variable of the algorithms", "bw")
    browser.wait_for("/&zoom=[\\d.]+-[\\d.]+&hide=1&variable=bw$/.test(location.hash)")
    link = browser.evaluate("location.href")
    assert read_link(link).toml == TWO
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    browser.wait_for(DONE)
    chart = "document.querySelector('[data-panel=windows] [role=slider]')"
    shown = browser.evaluate(f"[{chart}.ariaValueMin, {chart}.ariaValueMax].map(Number)")
    assert shown == pytest.approx([3.0, 4.5], abs=0.1)
    pressed = "[...document.querySelectorAll('.legend button')].map(e => e.ariaPressed)"
    assert browser.evaluate(pressed) == ["true", "false"]
    assert browser.evaluate("!!document.querySelector('[data-panel=internals]')")
    choose(browser, "Variable of the algorithms", "")
    click(browser, "All")
    browser.evaluate("document.querySelector('.legend button:last-of-type').click()")
    browser.wait_for("!location.hash.includes('&')")


@pytest.mark.parametrize(
    "view", ["zoom=5-1", "zoom=.-9", "zoom=7-8", "hide=,", "hide=7,99999999999", "variable=x"]
)
def test_a_senseless_view_in_a_link_shows_everything(
    browser: Browser, folder: Path, view: str
) -> None:
    page = folder / "view.html"
    page.write_text(page_with())
    browser.complaints.clear()
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=f"{page.as_uri()}#{to_fragment(Shared(TWO))}&{view}")
    browser.wait_for(DONE)
    chart = "document.querySelector('[data-panel=windows] [role=slider]')"
    assert browser.evaluate(f"[{chart}.ariaValueMin, {chart}.ariaValueMax].map(Number)") == [0, 6]
    pressed = "[...document.querySelectorAll('.legend button')].map(e => e.ariaPressed)"
    assert browser.evaluate(pressed) == ["true", "true"]
    assert browser.complaints == []
