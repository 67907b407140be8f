"""The laboratory's page, with a scenario in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dumbbell.lab.link import Shared, to_fragment

_PAGE: Final = Path(__file__).with_name("lab.html")
NAME: Final = "lab.html"
"""The file of the page in a folder of reports; they link to it."""

_PLACE: Final = '<meta name="scenario" content="">'


def page_with(shared: Shared | None = None) -> str:
    """The text of the page; it begins with the scenario, if one is given."""
    page = _PAGE.read_text(encoding="utf-8")
    if shared is None:
        return page
    return page.replace(_PLACE, f'<meta name="scenario" content="{to_fragment(shared)}">', 1)
