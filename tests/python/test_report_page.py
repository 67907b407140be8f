"""The report of results: read as a file, and used in a browser as a reader uses it."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from browser import needs_chromium
from hypothesis import given
from hypothesis import strategies as st

import dumbbell
from dumbbell import Experiment, Flow, Link, Result, figures
from dumbbell.errors import ResultError
from dumbbell.report import contents, write_report
from dumbbell.report.series import charts, downsampled, short
from dumbbell.sweeps.dataset import Dataset

if TYPE_CHECKING:
    from browser import Browser

PAIR = """
title = "A pair <of flows>"
duration = "12 s"
seeds = 2
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
start = "2 s"
[assumed]
"link.bottleneck.queue" = "Nothing is said of the queue."
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results side by side; one of them is invalid."""
    results = tmp_path_factory.mktemp("pages") / "results"
    pair = dumbbell.Experiment.parse(PAIR)
    dumbbell.run(pair, out=results / "pair")
    dumbbell.run(pair.override("flow.one.cc=bbr3"), seeds=1, out=results / "third" / "version")
    meta = results / "third" / "version" / "meta.json"
    told = json.loads(meta.read_text()) | {"invalid": {"1": ["the machine was busy", "late"]}}
    meta.write_text(json.dumps(told))
    return results


@pytest.fixture(scope="module")
def one(folder: Path) -> Path:
    return write_report(folder / "pair")


@pytest.fixture(scope="module")
def several(folder: Path) -> Path:
    return write_report(folder)


def packed(html: str) -> dict[str, Any]:
    """The runs that a page holds, by their id."""
    texts = re.findall(r'<script type="text/plain" id="([^"]+)"[^>]*>([^<]+)</script>', html)
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in texts}


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True)))
def test_numbers_in_a_page_have_four_significant_digits(values: list[float]) -> None:
    for value, shown in zip(values, short(np.array(values)), strict=True):
        if not math.isfinite(value):
            assert shown is None
        elif 1e-18 < abs(value) < 1e18:
            assert shown == pytest.approx(value, rel=5.001e-4)
            assert shown == float(f"{shown:.4g}")


def test_the_page_of_a_result_holds_the_samples_of_its_seeds(folder: Path, one: Path) -> None:
    runs = packed(one.read_text("utf-8"))
    assert [run["seed"] for run in runs.values()] == [1, 2]
    result = Result.load(folder / "pair").of_seed(1)
    run = runs["run-1-1"]
    assert [flow["name"] for flow in run["flows"]] == ["one", "two"]
    panel = next(panel for panel in run["panels"] if panel["title"] == "Congestion window")
    t = np.cumsum(run["times"][panel["x"]]) * 1e-6
    for flow, drawn in zip(("one", "two"), panel["y"], strict=True):
        own = result.series.filter(flow=flow)
        pairs = zip(t, drawn, strict=True)
        assert dict(zip(own["t"].round(6), own["cwnd"], strict=True)) == pytest.approx(
            {round(at, 6): value for at, value in pairs if value is not None}, rel=1e-3
        )


def test_colours_and_markers_are_those_of_the_figures(one: Path) -> None:
    html = one.read_text("utf-8")
    found = re.search(r'id="looks">(.+?)</script>', html)
    assert found
    looks = json.loads(found.group(1))
    for flow in packed(html)["run-1-1"]["flows"]:
        look = figures.style_of(flow["cc"])
        assert (flow["colour"], flow["marker"]) == (look.colour, look.marker)
        assert looks["markers"][look.marker] == figures.marker_path(look.marker)
        assert f'd="{figures.marker_path(look.marker)}" fill="{look.colour}"' in html


def test_flows_of_one_algorithm_have_markers_that_the_page_draws(tmp_path: Path) -> None:
    link = Link(name="bottleneck", rate="5 Mbit/s", delay="5 ms")
    flows = Experiment(links=[link], flows=[Flow(cc="cubic", repeat=5)], duration="1 s")
    dumbbell.run(flows, out=tmp_path / "five")
    html = write_report(tmp_path / "five").read_text("utf-8")
    found = re.search(r'id="looks">(.+?)</script>', html)
    assert found
    markers = [flow["marker"] for flow in packed(html)["run-1-1"]["flows"]]
    assert len(set(markers)) == 5
    assert set(markers) <= set(json.loads(found.group(1))["markers"])


def test_the_page_tells_settings_versions_and_how_to_run_it_again(folder: Path, one: Path) -> None:
    html = one.read_text("utf-8")
    assert "<code>link.bottleneck.queue</code></td><td>25 kB</td><td>assumed</td>" in html
    assert "Nothing is said of the queue." in html
    assert f"dumbbell run {folder / 'pair' / 'experiment.toml'}" in html
    assert f"dumbbell {dumbbell.__version__}, Python" in html
    assert "A pair &lt;of flows&gt;" in html
    assert "<of flows>" not in html


@pytest.mark.parametrize("place", [".", "../latest", "pair"])
def test_commands_of_a_page_name_a_folder_that_exists(
    folder: Path, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A result, a link to it, or a folder that holds a result of its own name.
    home = tmp_path / "pair"
    shutil.copytree(folder / "pair", home if place != "pair" else home / "pair")
    (tmp_path / "latest").symlink_to(home)
    monkeypatch.chdir(tmp_path if place == "pair" else home)
    html = write_report(Path(place), tmp_path / "page.html").read_text("utf-8")
    named = re.search(r"dumbbell run (\S+experiment\.toml)", html)
    assert named
    assert Path(named[1]).is_file()


def test_states_of_a_page_are_named_as_those_of_their_algorithm() -> None:
    text = PAIR.replace('cc = "cubic"', 'cc = "c4"', 1)
    run = charts(dumbbell.run(dumbbell.Experiment.parse(text), seeds=1), 1, 300)
    shown = {band["flow"]: {span[2] for span in band["spans"]} for band in run["states"]}
    assert shown["one"] <= {"STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"}
    assert shown["two"] <= {"INITIAL", "RECOVERY", "CRUISING", "PROBING", "PUSHING"}
    assert len(shown["one"]) > 1 < len(shown["two"])


def test_the_page_tells_its_size_and_has_little(one: Path) -> None:
    size = one.stat().st_size
    assert size < 150_000
    assert f"needs nothing else and has {size / 1e3:.0f} kB" in one.read_text("utf-8")


def test_invalid_runs_are_marked_in_the_overview_and_with_their_reason(several: Path) -> None:
    html = several.read_text("utf-8")
    assert "1 experiment invalid" in html
    assert "run 1: the machine was busy; late" in html
    assert 'data-seed="1, invalid"' in html
    assert html.count('<span class="verdict alert">invalid</span>') == 3  # 2 rows, its heading


def test_results_are_found_at_any_depth_and_partial_ones_are_not(folder: Path) -> None:
    hidden = folder / ".pair.1.partial"
    shutil.copytree(folder / "pair", hidden)
    try:
        found = contents(folder)
    finally:
        shutil.rmtree(hidden)
    assert isinstance(found, dict)
    assert list(found) == ["pair", "third/version"]


def test_what_holds_no_result_is_refused_with_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="there is no such folder"):
        contents(tmp_path / "nowhere")
    with pytest.raises(ResultError, match=r"holds no result; name a folder that `dumbbell run`"):
        contents(tmp_path)
    (tmp_path / "out" / "tein2").mkdir(parents=True)
    (tmp_path / "out" / "tein2" / "results.json").write_text("{}")
    with pytest.raises(ResultError, match=r"name one of them: .*out/tein2$"):
        contents(tmp_path / "out")


def test_a_result_with_a_report_in_it_can_be_replaced(folder: Path, one: Path) -> None:
    assert one == folder / "pair" / "report.html"
    Result.load(folder / "pair").save(folder / "pair")
    assert one.exists(), "it is of the same result"
    other = Result.load(folder / "pair")
    replace(other, meta=other.meta | {"engine": "another"}).save(folder / "pair", overwrite=True)
    assert not one.exists()
    write_report(folder / "pair")


def test_thinning_keeps_the_peaks_of_every_interval_in_their_order() -> None:
    t = np.arange(1000.0)
    column = np.zeros(1000)
    column[[123, 124, 777]] = [5.0, -5.0, 9.0]
    column[500:600] = np.nan
    places, [kept], every = downsampled(t, [column], 100)
    assert every == 20
    assert len(places) == len(kept) == 100
    assert (np.diff(places) > 0).all()
    assert kept[np.searchsorted(places, 120) :][:2].tolist() == [5.0, -5.0]
    assert 9.0 in kept
    assert np.isnan(kept[(places >= 500) & (places < 600)]).all()
    assert downsampled(t, [column], 1000)[2] == 1


def test_a_multipath_flow_is_drawn_by_its_subflows() -> None:
    text = PAIR.replace('name = "two"\ncc = "cubic"', 'cc = "lia"\nname = "two"')
    text = text.replace('start = "2 s"', 'paths = [["bottleneck"], ["bottleneck"]]')
    run = charts(dumbbell.run(dumbbell.Experiment.parse(text), seeds=1), 1, 300)
    assert [flow["name"] for flow in run["flows"]] == ["one", "two/1", "two/2"]
    assert [flow["dash"] for flow in run["flows"]] == ["-", "-", "--"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node is installed to check the script")
def test_the_scripts_are_valid() -> None:
    assets = Path(dumbbell.__file__).parent / "report" / "assets"
    for script in ("page.js", "charts.js", "heat.js"):
        subprocess.run(["node", "--check", assets / script], check=True)


@needs_chromium
@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_draw_without_a_complaint_or_a_request_and_fit_the_screen(
    browser: Browser, one: Path, several: Path, width: int, dark: bool
) -> None:
    for page in (one, several):
        browser.complaints.clear()
        browser.requests.clear()
        browser.open(page, width=width, dark=dark)
        assert browser.complaints == []
        assert browser.requests == [page.as_uri()]
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert browser.evaluate("document.querySelectorAll('.charts canvas').length") >= 6
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")


@needs_chromium
def test_dragging_over_one_panel_zooms_all_of_its_run(browser: Browser, one: Path) -> None:
    browser.open(one)
    before = painted(browser)
    browser.drag('[data-panel="Throughput"] .u-over', 0.25, 0.5)
    browser.wait_for("document.querySelector('.charts').dataset.span")
    begin, end = span(browser)
    assert begin == pytest.approx(3.0, abs=0.1)
    assert end == pytest.approx(6.0, abs=0.1)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    after = painted(browser)
    assert len(after) == 6  # window, throughput, states, RTT, pacing rate, queue
    assert all(x != y for x, y in zip(before, after, strict=True))
    browser.evaluate("document.querySelector('.tools [aria-label=\"Later\"]').click()")
    assert span(browser) == pytest.approx([begin + 1.5, end + 1.5], abs=0.1)
    browser.evaluate("document.querySelector('.tools [aria-label=\"The whole run\"]').click()")
    assert span(browser) == [0, 12]


@needs_chromium
def test_a_finger_zooms_as_a_mouse_does(browser: Browser, one: Path) -> None:
    browser.open(one, width=390)
    left, top, width = browser.evaluate(
        "(() => { const chart = document.querySelector('.u-over'); chart.scrollIntoView();"
        "const b = chart.getBoundingClientRect(); return [b.left, b.top + 20, b.width]; })()"
    )
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    touches = [[{"x": left + share * width, "y": top}] for share in (0.2, 0.4, 0.6, 0.8)]
    for kind, points in zip(
        ("touchStart", "touchMove", "touchMove", "touchMove", "touchEnd"),
        [*touches, []],
        strict=True,
    ):
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    browser.wait_for("document.querySelector('.charts').dataset.span")
    begin, end = span(browser)
    assert 0 < begin < end < 12


@needs_chromium
def test_another_seed_can_be_chosen_and_a_flow_be_hidden(browser: Browser, one: Path) -> None:
    browser.open(one)
    first = painted(browser)
    browser.evaluate(
        "(() => { const s = document.querySelector('select'); s.value = 'run-1-2';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    browser.wait_for("document.querySelector('.charts').dataset.drawn === 'run-1-2'")
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    second = painted(browser)
    assert first != second
    browser.evaluate("document.querySelector('.legend button').click()")
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    assert painted(browser) != second


@needs_chromium
def test_paper_says_whose_curves_there_are_and_has_no_empty_part(
    browser: Browser, tmp_path: Path
) -> None:
    dumbbell.run(dumbbell.Experiment.parse(PAIR.partition("[assumed]")[0]), out=tmp_path / "r")
    browser.open(write_report(tmp_path / "r"))
    assert "Curves: " not in browser.evaluate("document.body.innerText")
    browser.evaluate(
        "(() => { const e = document.querySelector('select'); e.selectedIndex = 1;"
        "e.dispatchEvent(new Event('change')); })()"
    )
    browser.call("Emulation.setEmulatedMedia", media="print")
    text = browser.evaluate("document.body.innerText")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert "Curves: seed 2" in text
    assert "Settings" not in text


@needs_chromium
def test_a_flow_may_have_any_name_and_what_is_below_the_cursor_is_told(
    browser: Browser, tmp_path: Path
) -> None:
    text = PAIR.replace("one", "queue").replace("two", "the-other-flow-2").replace("cubic", "bbr3")
    dumbbell.run(dumbbell.Experiment.parse(text), seeds=1, out=tmp_path / "named")
    browser.open(write_report(tmp_path / "named"))
    before = painted(browser)
    browser.evaluate("document.querySelector('.legend button').click()")
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    after = painted(browser)
    assert after[0] != before[0]
    assert after[-1] == before[-1]  # the link's queue
    browser.move('[data-panel="State"] .u-over', [0.4, 0.5])
    browser.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
    told = browser.evaluate("[...document.querySelectorAll('.reading')].map(e => e.textContent)")
    assert re.fullmatch(r"(6|5\.\d+) s: queue PROBE_BW, the-other-flow-2 [A-Z]+", told[2])
    assert re.fullmatch(r"(6|5\.\d+) s: the-other-flow-2 [\d.]+", told[1])


@pytest.fixture(scope="module")
def sweep(folder: Path) -> Path:
    """A sweep over a rate and an algorithm."""
    file = folder.parent / "sweep.toml"
    axes = '"link.bottleneck.rate" = ["5 Mbit/s", "10 Mbit/s"]\n"flow.one.cc" = ["bbr", "reno"]'
    text = PAIR.partition("[assumed]")[0].replace("12 s", "3 s").replace("seeds = 2\n", "")
    file.write_text(f"{text}[sweep]\n{axes}\n")
    dumbbell.sweep(file, out=folder.parent / "swept", seeds=2)
    return folder.parent / "swept"


def test_the_page_of_a_sweep_holds_the_means_of_its_points(sweep: Path) -> None:
    html = write_report(sweep).read_text("utf-8")
    points = packed(html)["points"]
    runs = Dataset(sweep).table("runs")
    assert points["axes"]["rate"]["names"] == ["5 Mbit/s", "10 Mbit/s"]
    for name in ("jain", "utilisation"):
        worth = 0.01 if name == "utilisation" else 1.0
        own = means(runs, name)
        assert points["points"][name] == pytest.approx([x / worth for x in own], rel=1e-3)
    assert "4 points, 2 seeds, 8 runs" in html
    assert f"dumbbell sweep {sweep}/sweep.toml --out {sweep}" in html


@needs_chromium
def test_the_heat_map_of_a_sweep_shows_what_is_chosen(browser: Browser, sweep: Path) -> None:
    browser.complaints.clear()
    browser.requests.clear()
    page = write_report(sweep)
    browser.open(page, width=390)
    browser.wait_for("document.querySelector('.heat').dataset.drawn")
    assert browser.evaluate("document.querySelectorAll('.cells td').length") == 4
    browser.evaluate(
        "(() => { const s = document.querySelector('[data-choice=Metric] select');"
        "s.value = 'jain'; s.dispatchEvent(new Event('change')); })()"
    )
    assert browser.evaluate("document.querySelector('.cells caption').textContent").startswith(
        "Jain's index"
    )
    shown = browser.evaluate("[...document.querySelectorAll('.cells td')].map(x => +x.textContent)")
    runs = Dataset(sweep).table("runs")
    assert sorted(shown) == pytest.approx(sorted(means(runs, "jain")), abs=0.002)
    assert (browser.complaints, browser.requests) == ([], [page.as_uri()])
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


@needs_chromium
def test_a_mean_of_a_heat_map_has_no_point_left_out(browser: Browser, tmp_path: Path) -> None:
    loads, queues = '["poisson(load=0.2)", "poisson(load=4)"]', '["1 BDP", "2 BDP"]'
    axes = f'"flow.web.arrivals" = {loads}\n"link.bottleneck.queue" = {queues}\n'
    flow = 'name = "web"\ncc = "reno"\nsizes = "exponential(mean=100 kB)"\n'
    text = PAIR.partition("[[flow]]")[0].replace("12 s", "8 s").replace("seeds = 2\n", "")
    file = tmp_path / "web.toml"
    file.write_text(f"{text}[[flow]]\n{flow}[sweep]\n{axes}")
    swept = dumbbell.sweep(file, out=tmp_path / "web", seeds=1)
    few, many = (
        swept.runs["completion_p99"].to_list()[:2],
        swept.runs["completion_p99"].to_list()[2:],
    )
    assert max(few) < min(many) == math.inf
    browser.complaints.clear()
    browser.open(write_report(tmp_path / "web"))
    browser.wait_for("document.querySelector('.heat').dataset.drawn")

    def shown(axis: str) -> list[str]:
        for choice, value in (("Metric", "completion_p99"), ("across", axis), ("down", axis)):
            browser.evaluate(
                f"(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change')); }})"
                f"(document.querySelector('[data-choice={choice}] select'))"
            )
        cells = "[...document.querySelectorAll('.cells td')].map(x => x.textContent)"
        texts: list[str] = browser.evaluate(cells)
        return texts

    first, second = shown("arrivals")
    assert float(first.replace(",", "")) == pytest.approx(1e3 * sum(few) / 2, rel=0.01)
    assert [second, *shown("queue")] == ["\N{EM DASH}"] * 3
    assert browser.complaints == []


def means(runs: pl.DataFrame, metric: str) -> list[float]:
    """The mean of a metric at every point, in their order."""
    by_point = runs.group_by("point", maintain_order=True).agg(pl.col(metric).mean())
    return [float(value) for value in by_point[metric]]


def span(browser: Browser) -> list[float]:
    text: str = browser.evaluate("document.querySelector('.charts').dataset.span")
    return [float(edge) for edge in text.split()]


def painted(browser: Browser) -> list[str]:
    pictures: list[str] = browser.evaluate(
        "[...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())"
    )
    return pictures


def test_a_result_without_a_title_is_named_once(tmp_path: Path) -> None:
    text = "\n".join(line for line in PAIR.splitlines() if not line.startswith("title"))
    for name in ("near", "far"):
        dumbbell.run(dumbbell.Experiment.parse(text), seeds=1, out=tmp_path / name)
    html = write_report(tmp_path).read_text()
    assert "<h3>near</h3>" in html
    assert 'small">near, ' not in html
