"""The report of a reproduction: one file that needs nothing else, and says all there is to say."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from browser import Browser, needs_chromium

from dumbbell import Experiment, papers
from dumbbell.cli.plot import plot_folder
from dumbbell.lab import page_with, read_link
from dumbbell.papers.outcome import MARKS, VERDICTS
from dumbbell.papers.page import write_index, write_paper
from dumbbell.papers.registry import PAPERS
from dumbbell.papers.reproduction import PaperFolder
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

NUMBER_KEYS = {
    *("id", "where", "quantity", "unit", "published", "measured", "low", "high"),
    *("ratio", "settings"),
}


CLAIM_KEYS = ["id", "text", "verdict", "support", "single_runs", "runs", "evidence"]


class Page(HTMLParser):
    """What a page loads, names and holds open."""

    """Scripts are in the page; a script that were loaded would have a ``src``."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self._attributes(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            assert not name.startswith("on"), f"a script in <{tag} {name}>"
            if name == "id" and value is not None:
                self.ids.append(value)
            if name in {"src", "srcset", "data", "poster"} or (name == "href" and tag == "link"):
                self.loaded.append(value or "")
            elif name in {"href", "xlink:href"}:
                self.links.append(value or "")


SHORT = {"tein2": "3 s", "f-bbrv2": "12 s", "ar-udt": "20 s", "dbac": "110 s"}
"""How long the experiments of a paper last here: as long as there is something to measure. What its
report says of the paper is not looked at."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    done = papers.reproduce(["staggered-start"], folder, seeds=3)
    for paper, duration in SHORT.items():
        done += papers.reproduce([paper], folder, seeds=1, duration=duration)
    write_index(done, folder)
    return folder


@pytest.fixture(params=PAPERS)
def folder(out: Path, request: pytest.FixtureRequest) -> Path:
    return out / str(request.param)


@pytest.fixture
def html(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


def test_results_hold_exactly_the_agreed_keys(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    keys = ["paper", "version", "full", "seeds", "numbers", "claims"]
    assert [key for key in results if key != "linux"] == keys
    seeds = 3 if folder.name == "staggered-start" else 1
    assert (results["full"], results["seeds"]) == (False, seeds)
    assert results["paper"] == folder.name
    assert results["numbers"]
    assert results["claims"]
    for number in results["numbers"]:
        assert set(number) - {"linux"} == NUMBER_KEYS
        assert isinstance(number["published"], float)
        assert number["settings"] in {"stated", "assumed", "calibrated"}
    for claim in results["claims"]:
        assert [key for key in claim if key != "linux"] == CLAIM_KEYS
        assert claim["verdict"] in VERDICTS
        assert claim["evidence"]


def test_measured_values_lie_within_their_intervals_and_ratios_are_theirs(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    known = [number for number in results["numbers"] if number["measured"] is not None]
    assert known
    for number in known:
        assert number["low"] is not None or "(1 run" in number["quantity"], "no interval of one run"
        assert number["low"] is None or number["low"] <= number["measured"]
        assert number["high"] is None or number["measured"] <= number["high"]
        assert number["ratio"] == pytest.approx(number["measured"] / number["published"])


def test_the_page_loads_nothing_from_anywhere(html: str) -> None:
    page = Page(html)
    assert page.loaded == ["data:,"]  # the empty icon, so that no browser asks for one
    assert [link for link in page.links if re.match(r"[a-z]+:|//", link)] == []
    assert not re.search(r"@import|url\((?!#)", html)
    assert not {"iframe", "object", "embed"} & set(page.tags)


def test_the_page_closes_what_it_opens_and_names_nothing_twice(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)


def test_every_file_that_the_page_links_is_there(folder: Path, html: str) -> None:
    files = {link.split("#")[0] for link in Page(html).links if not link.startswith("#")}
    assert {"results.json", "../lab.html"} <= files
    assert [file for file in files if not (folder / file).is_file()] == []


def test_every_figure_opens_in_the_laboratory_with_its_experiment(folder: Path, html: str) -> None:
    experiments = {
        path.parent.name: Experiment.load(path) for path in folder.glob("runs/*/experiment.toml")
    }
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", html, re.S)
    assert captions
    for caption in captions:
        links = re.findall(r'href="\.\./lab\.html(#[^"]+)">([^<]+)</a>', caption)
        assert links
        for link, name in links:
            linked, experiment = Experiment.parse(read_link(link).toml), experiments[name]
            assert linked.replace(seeds=experiment.seeds) == experiment
            assert linked.seeds in (1, [1])
    assert html.count(">Open in the laboratory</a>") == len(experiments)


def test_every_figure_is_in_the_page_and_beside_it_in_both_formats(folder: Path, html: str) -> None:
    drawn = sorted(path.stem for path in folder.glob("figure-*.svg"))
    assert drawn == sorted(path.stem for path in folder.glob("figure-*.png"))
    of_paper = {
        "staggered-start": {"figure-2a", "figure-2b", "figure-3a", "figure-3b"},
        "tein2": {"figure-7", "figure-8", "figure-9", "figure-10", "figure-14"},
        "f-bbrv2": {"figure-1", "figure-4", "figure-7a", "figure-7b", "figure-8"},
        "ar-udt": {f"figure-{number}" for number in (5, *range(7, 15))},
        "dbac": {"figure-3", "figure-4", "figure-5", "figure-6"},
    }
    assert of_paper[folder.name] <= set(drawn)
    for name in drawn:
        assert f'<figure id="{name}"' in html
        figure = name.removeprefix("figure-")
        assert f"dumbbell reproduce {folder.name} --figure {figure}<" in html


def test_every_number_and_claim_of_the_results_is_in_the_page(folder: Path, html: str) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    ids = Page(html).ids
    assert {f"number-{number['id']}" for number in results["numbers"]} <= set(ids)
    assert {f"claim-{claim['id']}" for claim in results["claims"]} <= set(ids)
    shown = re.findall(r'<span aria-hidden="true">(.)</span> ([a-z ]+)</span>', html)
    verdicts = Counter(claim["verdict"] for claim in results["claims"])
    none = {"verdict": "not measured"}
    verdicts += Counter(claim.get("linux", none)["verdict"] for claim in results["claims"])
    assert Counter(shown) == {(MARKS[one], one): count for one, count in verdicts.items()}
    assert "✗" not in html


def test_assumed_settings_are_listed_with_their_reasons(folder: Path, html: str) -> None:
    ran = [Result.load(run).experiment for run in sorted((folder / "runs").iterdir())]
    reasons = {(key, reason) for one in ran for key, reason in one.assumed.items()}
    assert reasons
    for key, reason in reasons:
        assert f"<code>{key}</code>" in html
        assert reason.replace("'", "&#39;") in html


def test_pages_follow_the_colour_scheme_and_the_width_of_the_reader(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    assert 'content="width=device-width, initial-scale=1"' in html
    assert "@media print" in html
    colours = re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", html)
    assert "#1b1f24" not in colours  # ink follows the page, also inside figures


@needs_chromium
def test_pages_open_without_a_complaint_and_draw_every_run(out: Path, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        for paper in PAPERS:
            page = out / paper / "index.html"
            browser.requests.clear()
            browser.open(page, width=390)
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            browser.evaluate("[...document.querySelectorAll('.run')].forEach(e => e.open = true)")
            browser.wait_for(
                "[...document.querySelectorAll('.charts')].every(e => e.dataset.drawn)"
            )
            runs = len(list((out / paper / "runs").iterdir()))
            assert browser.evaluate("document.querySelectorAll('[data-drawn]').length") == runs
            assert browser.requests == [page.as_uri()]
        assert browser.complaints == []


def test_a_report_that_is_written_again_from_its_folder_is_the_same(
    out: Path, tmp_path: Path
) -> None:
    page = write_paper(PaperFolder.of(out / "staggered-start").reopen(), tmp_path / "again.html")
    assert page.read_bytes() == (out / "staggered-start" / "index.html").read_bytes()


def test_the_front_page_links_every_paper(out: Path) -> None:
    page = Page((out / "index.html").read_text(encoding="utf-8"))
    # The picture of a paper and its title; papers with the most claims confirmed come first.
    found = {paper: json.loads((out / paper / "results.json").read_text()) for paper in PAPERS}
    shares = {
        paper: sum(claim["verdict"] == "confirmed" for claim in said["claims"])
        / len(said["claims"])
        for paper, said in found.items()
    }
    order = sorted(PAPERS, key=lambda paper: -shares[paper])
    of_papers = [f"{paper}/index.html" for paper in order for _ in range(2)]
    assert page.links == ["lab.html", *of_papers]
    assert (out / "lab.html").read_text() == page_with()
    assert all((out / picture).is_file() for picture in page.loaded[1:])
    assert page.open == []


def test_a_figure_of_a_paper_is_drawn_from_its_runs_for_a_column(out: Path, tmp_path: Path) -> None:
    for name in ("2a", "figure2a", "figure-2a"):
        path = tmp_path / f"{name}.pdf"
        folder = out / "staggered-start"
        plot_folder(folder, name, seed=None, kind="pdf", width="84mm", out=path)
        assert b"/MediaBox [ 0 0 238.1" in path.read_bytes()


def test_a_figure_made_alone_has_the_same_bytes(out: Path, tmp_path: Path) -> None:
    [stem] = papers.draw("staggered-start", ["2a"], tmp_path, seeds=3)
    whole = out / "staggered-start" / "figure-2a"
    for suffix in (".svg", ".png"):
        assert stem.with_suffix(suffix).read_bytes() == whole.with_suffix(suffix).read_bytes()
    assert sorted(path.name for path in (tmp_path / "staggered-start" / "runs").iterdir()) == [
        "reno"
    ]
