"""From templates to a page: one file with its style, its script and its data in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from dumbbell.display import format_significant
from dumbbell.experiment.files import write_text
from dumbbell.figures import FAINT, INK, PAPER, labelled, marker_path, style_of, swatch
from dumbbell.figures.style import APART, OTHERS
from dumbbell.figures.timeline import STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HERE: Final = Path(__file__).parent
CHARTS: Final = ("uPlot.min.js", "page.js", "charts.js")
HEAT: Final = ("page.js", "heat.js")
"""The scripts of a page with time series, and of one with a heat map."""

_SIZE: Final = "@size-of-this-file@"


def write(path: Path, template: str, scripts: Sequence[str] = (), **context: Any) -> None:
    """Fills in one of the ``templates``, with scripts of ``assets``, and writes the page."""
    embedded = [Markup(_asset(script).replace("</script", "<\\/script")) for script in scripts]
    style = Markup(_asset("uPlot.min.css") if "uPlot.min.js" in scripts else "")
    filled = _environment().get_template(template)
    page = filled.render(context, scripts=embedded, script_style=style, size=_SIZE)
    about = page.replace(_SIZE, size(len(page))) + "\n"  # as long as the page, whatever it says
    write_text(path, page.replace(_SIZE, size(len(about.encode()))) + "\n")


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (_HERE / "templates" / "style.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    filters = (format_significant, labelled, swatch)
    environment.filters |= {function.__name__: function for function in filters}
    return environment


def looks(algorithms: Iterable[str]) -> dict[str, Any]:
    """What the page's script has to know of looks: markers, names, states, neutral colours."""
    known = {cc: style_of(cc) for cc in algorithms}
    styles = [*known.values(), *map(style_of, APART)]
    markers = sorted({its.marker for its in styles} | {marker for _, marker in OTHERS})
    return {
        "markers": {marker: marker_path(marker) for marker in markers},
        "labels": {cc: its.label for cc, its in known.items()},
        "states": STATES,
        "neutral": _NEUTRAL,
        "faint": FAINT,
    }


_NEUTRAL: Final = {INK: "--ink", PAPER: "--paper", FAINT: "--faint"}
"""Colours that follow the page, and the CSS variables that have them there."""


def size(count: int) -> str:
    """A number of bytes as people say it."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
