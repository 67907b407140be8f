"""The laboratory's animation: the queues that it draws, and the run that it plays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lab_in_browser import DONE, MARKS, TWO, choose, click, open_lab, open_link, text

from dumbbell.lab import Shared

if TYPE_CHECKING:
    from browser import Browser

pytestmark = MARKS

LOADED = "document.querySelector('.watch')?.textContent.includes('hops are loaded')"

# How many packets more than the link has queued the animation draws, at every sample.
PHANTOMS = """
(async (toml) => {
  const { ask, end } = await workerOf();
  const source = { toml, code: "", traces: {}, beside: "" };
  const { scenario } = await ask({ kind: "check", source });
  const task = { kind: "watch", source, seed: 1, from: 0, lead: 0, sample: 0.002, allDrops: false };
  const hops = await ask(task);
  end();
  const film = new lab.Film(hops, scenario);
  const stage = lab.stageOf(scenario, 800);
  const { t, queue_packets } = hops.links;
  return [...t.keys()].filter((row) => t[row] > 0.1 && t[row] < hops.until - 1)
    .map((row) => film.at(t[row], stage, 0, () => {})[0] - queue_packets[row]);
})
"""


@pytest.mark.parametrize(
    "keys",
    [
        "",
        'reroutes = [["2 s", "60 ms"], ["4 s", "5 ms"]]',
        'jitter = "30 ms"',
        'reorder = "5 % by 40 ms"',
        'jitter = "20 ms"\nreroutes = [["3 s", "50 ms"]]',
        'aqm = "codel"\njitter = "20 ms"',
    ],
)
def test_the_animation_draws_the_packets_that_the_link_queues(
    browser: Browser, folder: Path, keys: str
) -> None:
    open_lab(browser, folder)
    script = Path(__file__).with_name("lab_digest.js").read_text()
    toml = TWO.replace('queue = "1 BDP"', f'queue = "60 packets"\n{keys}')
    more = browser.evaluate(f"{script}; {PHANTOMS}({json.dumps(toml)})")
    assert len(more) > 2000
    assert max(map(abs, more)) <= 2, "two may enter and leave at the moment of a sample"
    assert sum(map(abs, more)) < 0.05 * len(more)


def test_the_animation_plays_the_seed_that_is_chosen(browser: Browser, folder: Path) -> None:
    open_lab(browser, folder, TWO.replace('"6 s"', '"6 s"\nseeds = 3\nstart_jitter = "1 s"', 1))
    click(browser, "Watch")
    browser.wait_for(LOADED)
    assert "the run with seed 1, the first of 3;" in text(browser, ".watch")
    click(browser, "Run")
    choose(browser, "Seeds", "3")
    browser.wait_for("location.hash.endsWith('&seed=3')")
    click(browser, "Watch")
    browser.wait_for(LOADED)
    assert "the run with seed 3;" in text(browser, ".watch")
    click(browser, "Pause")
    browser.wait_for("location.hash.includes('&tab=watch') && location.hash.includes('&seed=3')")
    link = browser.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    browser.wait_for(LOADED)
    assert "the run with seed 3;" in text(browser, ".watch")
    click(browser, "Run")
    browser.wait_for(DONE)
    assert browser.evaluate("document.querySelector('[aria-label=Seeds]').value") == "3"
    assert "±" not in text(browser, ".tables")
    assert browser.complaints == []


LATE = """\
duration = "14 s"
internals = false
stack_options.receive_window = 200
[[link]]
name = "bottleneck"
rate = "500 Mbit/s"
delay = "2.5 ms"
queue = "4 BDP"
loss = [["0 s", 0], ["12 s", "1 %"]]
[[flow]]
cc = "reno"
"""


def test_a_late_loss_is_reached_while_the_animation_plays(browser: Browser, folder: Path) -> None:
    open_link(browser, folder, Shared(LATE), "&tab=watch&at=1")
    browser.wait_for(LOADED)
    click(browser, "Next loss")
    now = "Number(document.querySelector('.slider.time input').value)"
    browser.wait_for(f"{now} > 11.9 && document.querySelector('.said') === null")
    at = browser.evaluate(now)
    browser.wait_for(f"{now} > {at}")
    assert text(browser, ".controls .main") == "Pause", "it plays"
    assert browser.complaints == []


def test_a_large_scenario_of_a_link_is_not_played_before_run(
    browser: Browser, folder: Path
) -> None:
    large = TWO.replace("10 Mbit/s", "10 Gbit/s").replace('"6 s"', '"600 s"')
    open_link(browser, folder, Shared(large), "&tab=watch")
    browser.wait_for("document.querySelector('#outcome')?.textContent.includes('press Run')")
    assert not browser.evaluate("!!document.querySelector('.watch')")
    refused = TWO.replace('"6 s"', '"6 s"\nsample = "1 us"', 1)
    open_link(browser, folder, Shared(refused), "&tab=watch")
    browser.wait_for("document.querySelector('#outcome')?.textContent.includes('a page takes')")
