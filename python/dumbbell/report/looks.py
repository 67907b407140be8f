"""How algorithms look on a page: as in figures, which are the one source of colours and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dumbbell.figures import FAINT, INK, PAPER, look, outline
from dumbbell.figures.bands import BBR

if TYPE_CHECKING:
    from collections.abc import Iterable

NEUTRAL: Final = {INK: "--ink", PAPER: "--paper", FAINT: "--faint"}
"""Colours that follow the page, and the CSS variables that have them there."""


def swatch(cc: str) -> Markup:
    """The marker of an algorithm in its colour, to stand before its name."""
    its = look(cc)
    drawing = f'<path d="{outline(its.marker)}" fill="{its.colour}"/>'
    box = 'class="mark" viewBox="-0.75 -0.75 1.5 1.5"'
    return Markup(f'<svg {box} aria-hidden="true">{drawing}</svg>')


def looks(algorithms: Iterable[str]) -> dict[str, Any]:
    """What the page's script has to know of looks: markers, names, states, neutral colours."""
    known = {cc: look(cc) for cc in algorithms}
    return {
        "markers": {its.marker: outline(its.marker) for its in known.values()},
        "labels": {cc: its.label for cc, its in known.items()},
        "states": [[number, name, colour] for number, (name, colour) in BBR.items()],
        "neutral": NEUTRAL,
        "faint": FAINT,
    }
