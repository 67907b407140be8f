"""Links from the documentation's site into the laboratory: below experiments, and below figures.

A figure opens the experiment that stands above it on the page that explains it, or that of
`EXPERIMENTS`; one of a sweep opens the sweep's first point. A figure of an algorithm in Python
opens nothing, as a page cannot run it.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from pages import theory_page

from dumbbell import Experiment
from dumbbell.lab import Shared, fragment_of, to_fragment
from dumbbell.sweeps.plan import Sweep

ROOT = Path(__file__).resolve().parent.parent
PAPERS = "python/dumbbell/papers"
EXPERIMENTS = {
    "papers/tein2.svg": f"{PAPERS}/tein2/delay.toml",
    "papers/ar-udt.svg": f"{PAPERS}/ar_udt/udt.toml",
    "papers/f-bbrv2.svg": f"{PAPERS}/f_bbrv2/pair.toml",
    "papers/dbac.svg": f"{PAPERS}/dbac/testbed.toml",
    "papers/staggered-start.svg": f"{PAPERS}/staggered_start/pair.toml",
    "validation-linux.svg": f"{PAPERS}/staggered_start/pair.toml",
    "simulator-and-linux.svg": "examples/staggered.toml",
    "validation-singles.svg": "scripts/pages/linux/single.toml",
    "validation-grid.svg": "scripts/pages/linux/single.toml",
    "validation-losses.svg": "scripts/pages/linux/single.toml",
    "ns3.svg": f"{PAPERS}/f_bbrv2/alone.toml",
}
"""The experiment of a figure; one of them if it has many."""

NOT_RUN = {"link.svg", "way-of-a-packet.svg", "architecture.svg"}
"""Drawings that show no experiment."""

BLOCK = re.compile(r"^```toml\n(.*?)^```\n(?:\n<!-- beside: (.*?) -->\n)?", re.M | re.S)
"""An experiment, and a change with which it is compared."""
IMAGE = re.compile(r"\[?!\[[^\]]*\]\((?:[\w./-]*/)?figures/([\w./-]+)\)(?:\]\([^)]*\))?")


def with_links(markdown: str, lab: str) -> str:
    """A page with a link below each of its experiments and figures; `lab` is the laboratory."""
    parts, end = [], 0
    for found in re.finditer(f"(?ms:{BLOCK.pattern})|{IMAGE.pattern}", markdown, re.M | re.S):
        block, change, figure = found.groups()
        fragment = of_block(block) if block else of_figure(figure)
        parts.append(markdown[end : found.end()])
        end = found.end()
        if fragment is not None:
            link = f"[Open in the laboratory]({lab}{fragment and f'#{fragment}'})"
            pair = f", [beside `{change}`]({lab}#{of_pair(block, change)})" if change else ""
            parts.append(f"\n{link}{pair}\n" if block else f"<br>{link}")
    return "".join([*parts, markdown[end:]])


def of_block(text: str) -> str | None:
    """The fragment of an experiment in a page; nothing for another file, or if it needs one."""
    whole = all(part in text for part in ("duration =", "[[link]]", "[[flow]]"))
    if not whole or re.search(r"^trace = |\.py:|\"linux:", text, re.M):
        return None
    if "sweep" in tomllib.loads(text):
        return fragment_of(Sweep.parse(text).experiment(0)) or None
    return to_fragment(Shared(text))


def of_pair(text: str, change: str) -> str:
    """The fragment of an experiment, compared with itself after a change."""
    changed = Experiment.parse(text, overrides=[change]).to_toml()
    return f"{to_fragment(Shared(changed, beside=text))}&tab=compare"


def of_figure(name: str) -> str | None:
    """The fragment of a figure's experiment; empty for the laboratory itself."""
    if name.startswith("lab"):
        return ""
    if name in NOT_RUN:
        return None
    if name == "theory.svg":
        return fragment_of(theory_page.experiment(theory_page.CASES[0], loss=1e-3)) or None
    if name in EXPERIMENTS:
        return fragment_of(Experiment.load(ROOT / EXPERIMENTS[name])) or None
    return of_pages().get(name)


@cache
def of_pages() -> dict[str, str | None]:
    """The experiments that stand above figures, by the figure."""
    found: dict[str, str | None] = {}
    for page in sorted((ROOT / "docs").glob("*/*.md")):
        last = None
        text = page.read_text()
        for match in re.finditer(f"(?ms:{BLOCK.pattern})|{IMAGE.pattern}", text, re.M | re.S):
            block, _, figure = match.groups()
            last = of_block(block) or last if block else last
            if figure and last:
                found.setdefault(figure, last)
    return found
