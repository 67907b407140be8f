"""The form of the laboratory's page: what it writes into the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab_in_browser import DONE, MARKS, TWO, choose, click, file_of, open_lab, press, text

from dumbbell import Experiment

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

pytestmark = MARKS

TABLES = """\
duration = "3 s"
seeds = [
  1,  # the first
  2,
]
stack_options.ecn = "off"

[[link]]
name = "access"
rate = "20 Mbit/s"
delay = "1 ms"

[[link]]
name = "core"
rate = "10 Mbit/s"
delay = "10 ms"

[[flow]]
name = "one"
cc = "udt"
transport = "udt"
path = ["access", "core"]

[flow.transport_options]
window = 1000

[[flow]]
name = "two"
cc = "cubic"
path = ["access", "core"]

[flow.stack_options]
initial_window = 4

[assumed]
"flow.one.cc" = "It is not said."
"""


def test_flows_are_added_and_removed_with_their_tables(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TABLES)
    click(browser, "Add a flow")
    browser.wait_for(f"document.querySelectorAll('.flows tbody tr').length === 3 && {DONE}")
    flows = Experiment.parse(file_of(browser)).flows
    assert flows[2].path == ["access", "core"]
    assert [dict(flow.stack_options) for flow in flows] == [{}, {"initial_window": 4}, {}]
    browser.evaluate("document.querySelector('[aria-label=\"Remove two\"]').click()")
    browser.wait_for(f"document.querySelectorAll('.flows tbody tr').length === 2 && {DONE}")
    assert "initial_window" not in file_of(browser)
    assert browser.evaluate("document.activeElement.textContent") == "Add a flow"


def test_the_options_of_a_transport_go_with_it(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TABLES)
    choose(browser, "Algorithm of one", "reno")
    browser.wait_for(f"document.querySelector('.cm-content').innerText.includes('reno') && {DONE}")
    assert "transport" not in file_of(browser)


def test_values_of_several_lines_and_dotted_keys_are_replaced(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, TABLES)
    choose(browser, "Seeds ", "3")
    browser.wait_for(f"document.querySelector('.tables').innerText.includes('3 seeds') && {DONE}")
    choose(browser, "ECN", "l4s")
    browser.wait_for(f"document.querySelector('.cm-content').innerText.includes('l4s') && {DONE}")
    assert 'seeds = 3\nstack_options.ecn = "l4s"\n' in file_of(browser)


def test_a_file_with_inline_tables_has_no_form(browser: Browser, folder: Path) -> None:
    links = 'link = [{ name = "bottleneck", rate = "10 Mbit/s", delay = "10 ms" }]\n'
    open_lab(browser, folder, f'duration = "2 s"\n{links}[[flow]]\ncc = "cubic"\n')
    assert "writes them in another way" in text(browser, ".scenario")
    assert browser.evaluate("document.querySelectorAll('.scenario .slider').length") == 0


RATE = "document.querySelector('[aria-label=\"Rate, written\"]')"
QUEUE = "document.querySelector('[aria-label=\"Queue, written\"]')"


def test_a_wrong_value_stays_in_its_field_until_it_is_right(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    browser.evaluate(f"{QUEUE}.focus(), {QUEUE}.select()")
    browser.call("Input.insertText", text="abc")
    press(browser, "Enter")
    browser.wait_for(f"{QUEUE}.ariaInvalid === 'true' && {QUEUE}.value === 'abc'")
    assert browser.evaluate("!!document.querySelector('.results.stale')")
    browser.evaluate(f"{QUEUE}.select()")
    browser.call("Input.insertText", text="1 BDP")
    press(browser, "Enter")
    browser.wait_for(f"{QUEUE}.ariaInvalid === 'false' && {QUEUE}.value === '1 BDP' && {DONE}")
    for label, value, key in (
        ("RTT, written", "0", "rtt"),
        ("Duration ", "0", "duration"),
        ("Start of two, s", "-1", "start"),
    ):
        open_lab(browser, folder)
        choose(browser, label, value)
        browser.wait_for("!!document.querySelector('.problems')")
        assert key in text(browser, ".problems")
        assert "lacks a unit" not in text(browser, ".problems")


def test_a_kind_of_path_is_chosen_and_left(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder)
    choose(browser, "Kind of path", "lte")
    browser.wait_for(f"{RATE}.value === 'set by lte' && {DONE}")
    [link] = Experiment.parse(file_of(browser)).links
    assert (link.template, link.rate, link.queue) == ("lte", None, None)
    assert "delay" not in file_of(browser)
    assert browser.evaluate(f"{RATE}.disabled && {RATE}.closest('label').title").startswith(
        "The template sets it"
    )
    assert browser.evaluate(f"{QUEUE}.disabled") is False, "a trace has a mean rate"
    choose(browser, "Kind of path", "cable")
    browser.wait_for(f"{RATE}.value === '100 Mbit/s' && {DONE}")
    choose(browser, "Kind of path", "")
    browser.wait_for(
        f"!document.querySelector('.cm-content').innerText.includes('cable') && {DONE}"
    )
    [link] = Experiment.parse(file_of(browser)).links
    assert (link.template, link.rate, link.delay) == (None, "100 Mbit/s", "10 ms")
    assert browser.complaints == []


def test_a_template_with_options_is_that_kind_of_path(browser: Browser, folder: Path) -> None:
    options = "leo(rate=20 Mbit/s, seed=3)"
    link = f'[[link]]\nname = "sky"\ntemplate = "{options}"\n\n[[flow]]\ncc = "cubic"\n'
    open_lab(browser, folder, f'duration = "3 s"\n\n{link}')
    kind = "document.querySelector('.choice select')"
    browser.wait_for(f"{kind}.value === 'leo'")
    values = (
        "['Rate', 'RTT'].map(one => document.querySelector(`[aria-label=\"${one}, written\"]`))"
    )
    assert browser.evaluate(f"{values}.map(e => e.value + e.disabled)") == ["set by leotrue"] * 2


def test_the_form_opens_on_the_bottleneck(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TABLES)
    assert browser.evaluate("document.querySelector('.choice select').selectedOptions[0].text") == (
        "core"
    )
    choose(browser, "Rate, written", "50")
    browser.wait_for(f"{RATE}.value === '50 Mbit/s' && {DONE}")
    access, core = Experiment.parse(file_of(browser)).links
    assert (access.rate, core.rate) == ("20 Mbit/s", "50 Mbit/s")
    choose(browser, "Link", "0")
    browser.wait_for(f"{RATE}.value === '20 Mbit/s'")


def test_a_loss_model_stays_when_keys_are_pressed_on_its_slider(
    browser: Browser, folder: Path
) -> None:
    loss = 'loss = "gilbert-elliott(p=1e-3, r=0.3)"'
    open_lab(browser, folder, TWO.replace("[[flow]]", f"{loss}\n\n[[flow]]", 1))
    slider = (
        "[...document.querySelectorAll('.scenario .slider')]"
        ".find(e => e.textContent.startsWith('Loss')).querySelector('input')"
    )
    assert browser.evaluate(f"{slider}.disabled")
    browser.evaluate(
        f"{slider}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowLeft', bubbles: true}}))"
    )
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert loss in file_of(browser)


def test_udt_that_carries_another_algorithm_carries_the_next_one(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, TABLES.replace('cc = "udt"', 'cc = "cubic"'))
    choose(browser, "Algorithm of one", "reno")
    browser.wait_for(f"document.querySelector('.cm-content').innerText.includes('reno') && {DONE}")
    [one, _] = Experiment.parse(file_of(browser)).flows
    assert (one.cc, one.transport, one.transport_options) == ("reno", "udt", {"window": 1000})


def test_ecn_is_put_into_an_empty_inline_table(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TABLES.replace('stack_options.ecn = "off"', "stack_options = {}"))
    choose(browser, "ECN", "l4s")
    browser.wait_for(f"document.querySelector('.cm-content').innerText.includes('l4s') && {DONE}")
    assert 'stack_options = { ecn = "l4s" }\n' in file_of(browser)
