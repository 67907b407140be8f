"""One look for every figure: size, type, and one colour and marker per algorithm.

The colours are Okabe and Ito's palette (https://jfly.uni-koeln.de/color/), which stays
distinguishable under the common colour-vision deficiencies; every algorithm also has a marker, so
that a figure survives a black-and-white printer. ``INK`` and ``PAPER`` are the only neutral
colours used: :func:`dumbbell.figures.output.inline` turns them into CSS variables, and the same
drawing serves light and dark pages.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.axes import Axes

INK: Final = "#1b1f24"
PAPER: Final = "#ffffff"
FAINT: Final = "#8a9099"
"""For what is context and not data: readable on light and on dark."""

COLUMN: Final = 3.5
"""Width of one column of a two-column paper, inches."""
PAGE: Final = 7.16
"""Width of both columns, inches."""

_BLUE, _VERMILLION, _GREEN, _PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
_ORANGE, _SKY = "#b87f00", "#3a97cc"  # darkened: they would be too pale on white paper
_BROWN, _INDIGO, _GREY = "#8c564b", "#5b5ea6", "#6b7078"

STYLE: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.xmargin": 0.0,
    "figure.facecolor": PAPER,
    "font.size": 8,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "grid.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "pdf.fonttype": 42,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
    "savefig.facecolor": PAPER,
    "svg.hashsalt": "dumbbell",  # identifiers in an SVG follow from its content alone
    "text.color": INK,
    "text.hinting": "none",  # text is as wide at every resolution
    "xtick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.color": INK,
    "ytick.labelsize": 7.5,
}

# A fallback without a bold face is used all the same, and nobody need be told.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

_FONT: Final = "DejaVu Sans"
"""Comes with matplotlib: the same on every machine."""
_FONTS_FOR_WHAT_IT_LACKS: Final = (
    *(f"Noto Sans CJK {region}" for region in ("KR", "JP", "SC", "TC")),
    *("NanumGothic", "Malgun Gothic", "Apple SD Gothic Neo"),
    *("IPAGothic", "Yu Gothic", "Hiragino Sans"),
    *("WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC"),
)
"""Of a flow called 흐름 or 流 the characters come from one of these, where it is installed."""


@cache
def _fonts() -> list[str]:
    installed = set(font_manager.get_font_names())
    return [_FONT, *(font for font in _FONTS_FOR_WHAT_IT_LACKS if font in installed)]


@dataclass(frozen=True)
class Style:
    """How an algorithm appears everywhere: its name, its colour and its marker."""

    label: str
    colour: str
    marker: str


_STYLES: Final = {
    "reno": Style("Reno", _VERMILLION, "o"),
    "cubic": Style("CUBIC", _BLUE, "s"),
    "cubic-2006": Style("CUBIC (2006)", _GREY, "H"),
    "bbr": Style("BBRv1", _GREEN, "^"),
    "bbr2": Style("BBRv2", _ORANGE, "<"),
    "f-bbr2": Style("F-BBRv2", _VERMILLION, "p"),
    "bbr3": Style("BBRv3", _PURPLE, "D"),
    "hstcp": Style("HSTCP", _ORANGE, "v"),
    "stcp": Style("STCP", _SKY, "P"),
    "bic": Style("BIC", _BROWN, "X"),
    "htcp": Style("H-TCP", _INDIGO, "d"),
    "hybla": Style("Hybla", _BROWN, "h"),
    "westwood": Style("Westwood+", _BLUE, "v"),
    "illinois": Style("Illinois", _VERMILLION, "<"),
    "yeah": Style("YeAH", _GREY, "p"),
    "vegas": Style("Vegas", _ORANGE, "P"),
    "ledbat++": Style("LEDBAT++", _GREY, "v"),
    "dctcp": Style("DCTCP", _GREEN, "X"),
    "copa": Style("Copa", _SKY, "X"),
    "lia": Style("LIA", _SKY, "v"),
    "olia": Style("OLIA", _PURPLE, "<"),
    "balia": Style("BALIA", _GREEN, ">"),
    "wvegas": Style("wVegas", _BROWN, "<"),
    "dbac": Style("DBAC", _INDIGO, "P"),
    "fast": Style("FAST", _INDIGO, "*"),
    "udt": Style("UDT", _ORANGE, "H"),
    "ar-udt": Style("AR-UDT", _GREEN, "d"),
}
_OTHERS: Final = [(_ORANGE, "v"), (_BROWN, "P"), (FAINT, "X")]


def style_of(cc: str) -> Style:
    """Returns the style of an algorithm; options, as in ``cubic(hystart=off)``, change the label.

    An algorithm without a style of its own gets one from its name alone, so it is the same in
    every figure and run.
    """
    name, _, options = cc.partition("(")
    name = name.strip().rpartition(":")[2]  # of the user's own only the class
    base = _STYLES.get(name)
    if base is None:
        colour, marker = _OTHERS[sum(name.encode()) % len(_OTHERS)]
        base = Style(name, colour, marker)
    if not options:
        return base
    return Style(f"{base.label} ({options.rstrip(')').strip()})", base.colour, base.marker)


DISTINCT: Final = 3
"""How many flows of an algorithm look different; further ones look alike."""


@dataclass(frozen=True)
class LineStyle:
    """How one of several flows of an algorithm is drawn.

    Attributes:
        colour: Its colour.
        width: Of the line, points.
        dash: As matplotlib writes it: ``-``, ``--``, ``:``.
        marker: Of the first flow; the others have none.
    """

    colour: str
    width: float
    dash: str
    marker: str | None


def line_style(cc: str, rank: int) -> LineStyle:
    """The line of the flow that is number `rank` (from 0) of those of its algorithm.

    The first has the algorithm's colour and marker, the second is in ink: two flows of one
    algorithm stay apart in any colour vision and in print.
    """
    style = style_of(cc)
    return LineStyle(
        (style.colour, INK, FAINT)[min(rank, 2)],
        (1.1, 0.8, 0.7)[min(rank, 2)],
        ("-", "-", "--", ":")[min(rank, 3)],
        style.marker if rank == 0 else None,
    )


def marker_path(marker: str) -> str:
    """A marker as an SVG path: about 1 wide, its middle at 0, y downwards."""
    style = MarkerStyle(marker)
    polygons = style.get_path().transformed(style.get_transform()).to_polygons()
    points = (np.asarray(polygon, dtype=np.float64).tolist() for polygon in polygons)
    lines = ("L".join(f"{x:.3f} {-y:.3f}" for x, y in polygon) for polygon in points)
    return "".join(f"M{line}Z" for line in lines)


@contextmanager
def styled() -> Iterator[None]:
    """The house's style for everything that is drawn inside; what the caller had comes back."""
    style = STYLE | {"font.family": _fonts()}
    with mpl.rc_context(cast("Any", style)):  # its keys are literals to the type checker
        yield


def named(name: object) -> str:
    """A user's name as matplotlib shows it: what is between two $ is no formula.

    Nor does a legend leave it out for the _ that it begins with.
    """
    text = str(name).replace("$", r"\$")
    return f"\u2060{text}" if text.startswith("_") else text


def new_figure(**options: Any) -> Figure:
    """An empty figure that no window and no notebook shows by itself."""
    figure = Figure(**options)
    FigureCanvasAgg(figure)
    return figure


def pyplot_figure() -> Callable[..., Figure]:
    """What makes figures that a notebook or a window shows; call it outside `styled`."""
    from matplotlib import pyplot

    # Loads the backend, whose settings `styled` would undo.
    pyplot.draw_if_interactive()  # type: ignore[no-untyped-call]
    return pyplot.figure


def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = COLUMN,
    height: float = 2.1,
    share_x: bool = False,
    share_y: bool = False,
    row_heights: Sequence[float] | None = None,
    make: Callable[..., Figure] = new_figure,
) -> tuple[Figure, list[list[Axes]]]:
    """Returns an empty figure of ``rows`` x ``columns`` panels; call it inside `styled`.

    Args:
        rows: Panels from top to bottom.
        columns: Panels from left to right.
        width: Of the whole figure, inches.
        height: Of one row on average, inches.
        share_x: Whether all panels have the same x axis.
        share_y: Whether all panels of a row have the same y axis.
        row_heights: Relative heights of the rows; equal if not given.
        make: What makes the figure, such as ``pyplot.figure``.
    """
    figure = make(figsize=(width, height * rows), layout="constrained")
    axes = figure.subplots(
        rows,
        columns,
        squeeze=False,
        sharex=share_x,
        sharey="row" if share_y else False,
        height_ratios=row_heights,
    )
    return figure, [list(row) for row in axes]
