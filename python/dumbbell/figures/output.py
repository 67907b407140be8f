"""From a figure to files and to pages: SVG, PNG, and SVG that takes its page's colours.

The same figure gives the same bytes: no dates, no random identifiers, and no fonts of the machine
but for characters that matplotlib's own font lacks.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from dumbbell.experiment.files import atomic_write
from dumbbell.figures.style import INK, PAGE, PAPER, marker_path, style_of, styled, styles_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

# Of tables that a font has beside its glyphs, and a PDF goes without.
logging.getLogger("fontTools.subset").setLevel(logging.ERROR)

_DPI: Final = 200
FINE: Final = 600
"""Dots per inch of a picture for a paper."""
_FLATTEST: Final = 0.75  # a narrower figure is no lower than this: its type stays as large
_METADATA: Final = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
"""Without what differs from time to time."""


def save(
    figure: Figure,
    stem: Path,
    kinds: Sequence[str] = ("svg", "png"),
    *,
    width: float | None = None,
    dpi: int = _DPI,
) -> list[Path]:
    """Writes ``stem.svg`` and ``stem.png``, or files of other kinds, and returns them.

    Type keeps its size when the width changes, and the panels are laid out anew. A PDF has its
    fonts embedded as TrueType (type 42, which journals ask for), an SVG has outlines.

    Args:
        figure: The figure.
        stem: The file without its suffix.
        kinds: Of svg, png and pdf.
        width: Of the figure, inches; as it was drawn if not given. The height goes with it.
        dpi: Of a PNG, dots per inch.
    """
    if width is not None:
        was, height = figure.get_size_inches()
        figure.set_size_inches(width, height * flattened(width, was))
    with _drawing():
        figure.draw_without_rendering()  # lays it out, once for all files
        # "none" would lay it out again, to no effect, for each of them
        figure.set_layout_engine(None)
        contents = {kind: _content(figure, kind, dpi) for kind in kinds}
    files = {stem.with_name(f"{stem.name}.{kind}"): made for kind, made in contents.items()}
    for path, content in files.items():
        with atomic_write(path) as file:
            file.write_bytes(content)
    return list(files)


def flattened(width: float, of: float = PAGE) -> float:
    """The height, as a share of its own, of a figure that was `of` this width, both in inches."""
    return max(width / of, _FLATTEST)


def svg(figure: Figure) -> str:
    """Returns the figure as the text of an SVG file."""
    with _drawing():
        return _content(figure, "svg").decode()


def _content(figure: Figure, kind: str, dpi: int = _DPI) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return buffer.getvalue()


@contextmanager
def _drawing() -> Iterator[None]:
    """In the house's style; characters that no font has are told of once, not each time."""
    with warnings.catch_warnings(record=True) as told, styled():
        warnings.simplefilter("always")
        yield
    lacks = {}
    for one in told:
        if glyph := re.match(r"Glyph (\d+) .* missing from font", str(one.message)):
            lacks[chr(int(glyph[1]))] = True
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if lacks:
        what = f"a figure shows boxes for {' '.join(lacks)}, which no font has that it can use"
        warnings.warn(f"{what}; Noto Sans CJK has Chinese, Japanese and Korean", stacklevel=3)


def inline(text: str, name: str, title: str) -> str:
    """Returns an SVG ready to stand inside an HTML page.

    Ink and paper become the CSS variables ``--ink`` and ``--paper``, the size follows the page,
    identifiers begin with ``name`` so that two figures do not share any, and ``title`` is what a
    screen reader says.
    """
    opening, _, rest = text[text.index("<svg") :].partition(">")
    view = re.search(r'viewBox="[^"]+"', opening)
    if view is None:
        raise ValueError("an SVG without a viewBox cannot be scaled to a page")
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    rest = re.sub(r'\bid="', f'id="{name}-', rest)
    rest = re.sub(r'(href="|url\()#', rf"\1#{name}-", rest).replace("xlink:href", "href")
    rest = rest.replace(INK, "var(--ink)").replace(PAPER, "var(--paper)")
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<svg role="img" aria-label="{label}" {view[0]}>{rest}'


def swatch(cc: str, among: Iterable[str] = ()) -> Markup:
    """The marker of an algorithm in its colour, as an SVG to stand before its name in a page.

    It is as in a figure of the algorithms that it is `among`.
    """
    its = styles_of([*among, cc])[cc]
    drawing = f'<path d="{marker_path(its.marker)}" fill="{its.colour}"/>'
    box = 'class="mark" viewBox="-0.75 -0.75 1.5 1.5"'
    return Markup(f'<svg {box} aria-hidden="true">{drawing}</svg>')


def labelled(cc: str, among: Iterable[str] = ()) -> Markup:
    """An algorithm's name behind its marker, which is as of `swatch`."""
    return Markup("{}{}").format(swatch(cc, among), style_of(cc).label)
