"""From templates to a page: one file with its style, its script and its data in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup

from dumbbell.experiment.toml import write_text
from dumbbell.report import text
from dumbbell.report.looks import swatch

if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE: Final = Path(__file__).parent
_SIZE: Final = "@size-of-this-file@"


def write(path: Path, template: str, scripts: Sequence[str] = (), **context: Any) -> int:
    """Fills in a template, writes the page, and returns how many bytes it has.

    Args:
        path: The file.
        template: Which one of the folder ``templates``.
        scripts: Scripts of the folder ``assets`` to put in, in this order.
        **context: What the template shows.
    """
    embedded = [Markup(_asset(script).replace("</script", "<\\/script")) for script in scripts]
    style = _asset("uPlot.min.css") if "uPlot.min.js" in scripts else ""
    page = (
        _environment()
        .get_template(template)
        .render(context, scripts=embedded, script_style=Markup(style), size=_SIZE)
    )
    told = text.size(len(page.encode()))
    whole = page.replace(_SIZE, told) + "\n"
    write_text(path, whole)
    return len(whole.encode())


def part(template: str, **context: Any) -> str:
    """Fills in a template that is no page, for others to show."""
    return _environment().get_template(template).render(context)


@cache
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
    filters = (
        text.measured,
        text.interval,
        text.single_runs,
        text.rank,
        text.unit,
        text.figures,
        swatch,
    )
    environment.filters |= {f.__name__: f for f in filters}
    return environment
