"""One look for every figure: size, type, and one colour and marker per algorithm.

The colours are Okabe and Ito's palette (https://jfly.uni-koeln.de/color/), which stays
distinguishable under the common colour-vision deficiencies; every algorithm also has a marker, so
that a figure survives a black-and-white printer. ``INK`` and ``PAPER`` are the only neutral
colours used: :func:`dumbbell.figures.output.inline` turns them into CSS variables, and the same
drawing serves light and dark pages.
"""

from __future__ import annotations

import logging
import tomllib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from dumbbell import _core
from dumbbell.experiment.linux_algorithms import object_of
from dumbbell.experiment.model import without_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_STYLE: Final = mpl.rc_params_from_file(
    Path(__file__).with_name("dumbbell.mplstyle"), use_default_template=False
)
_INSTALLED: Final = set(font_manager.get_font_names())
# Looking for the others again with every text would take a quarter of the time.
_STYLE["font.family"] = [font for font in _STYLE["font.family"] if font in _INSTALLED]
INK: Final = str(_STYLE["text.color"])
PAPER: Final = str(_STYLE["figure.facecolor"])
FAINT: Final = "#8a9099"
"""For what is context and not data: readable on light and on dark."""

COLUMN: Final = 3.5
"""Width of one column of a two-column paper, inches."""
PAGE: Final = 7.16
"""Width of both columns, inches."""

# A fallback without a bold face is used all the same, and nobody need be told.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Style:
    """How an algorithm appears everywhere."""

    label: str
    colour: str
    marker: str

    @property
    def look(self) -> tuple[str, str]:
        """Its colour and marker."""
        return self.colour, self.marker


_SAID: Final = tomllib.loads(Path(__file__).with_name("styles.toml").read_text("utf-8"))
COLOURS: Final[dict[str, str]] = _SAID["colours"]
"""The colours of algorithms and groups by their names."""

_STYLES: Final = {
    cc: Style(its["label"], COLOURS[its["colour"]], its["marker"])
    for cc, its in _SAID["algorithms"].items()
}
OTHERS: Final = [(COLOURS["orange"], "v"), (COLOURS["brown"], "P"), (FAINT, "X")]
"""Colours and markers of algorithms without a style of their own."""


def style_of(cc: str) -> Style:
    """Returns the style of an algorithm; options, as in ``cubic(beta=0.8)``, change the label.

    An algorithm without a style of its own gets one from its name alone, so it is the same in
    every figure and run.
    """
    of_linux, file = _core.linux_algorithm(cc), object_of(cc)
    if of_linux is not None:
        return Style(file.name if file else f"Linux's {of_linux}", *_others(of_linux)[0])
    name, _, options = cc.partition("(")
    name = name.strip().rpartition(":")[2]  # of the user's own only the class
    style = _STYLES.get(name) or Style(name, *_others(name)[0])
    if options:
        style = replace(style, label=f"{style.label} ({options.rstrip(')').strip()})")
    return style


def _others(name: str) -> list[tuple[str, str]]:
    """Colours and markers of an algorithm without a style of its own, the first choice first."""
    first = sum(name.encode()) % len(OTHERS)
    return OTHERS[first:] + OTHERS[:first]


def styles_of(algorithms: Iterable[str]) -> dict[str, Style]:
    """The styles of the algorithms in one figure.

    They are as of `style_of`, but those without a style of their own get different ones, as far
    as they go.
    """
    styles = {cc: style_of(cc) for cc in algorithms}
    bases = {cc: without_options(cc) for cc in styles}
    taken = {base: styles[cc].look for cc, base in bases.items() if base in _STYLES}
    for cc, base in bases.items():
        if base not in taken:
            choice = _others(base.rpartition(":")[2])
            free = (look for look in choice if look not in taken.values())
            taken[base] = next(free, choice[0])
        colour, marker = taken[base]
        styles[cc] = replace(styles[cc], colour=colour, marker=marker)
    return styles


_DASHES: Final = ((1.1, "-"), (1.0, "--"), (1.0, ":"), (0.8, "-."))
APART: Final = ("cubic", "reno", "bbr", "bbr3", "hstcp", "stcp", "bic", "htcp")
"""Algorithms whose colours and markers flows have that are all of one algorithm."""


@dataclass(frozen=True)
class LineStyle:
    """How one of several flows is drawn: ``dash`` as matplotlib writes it."""

    colour: str
    width: float  # points
    dash: str
    marker: str  # filled for the first flow of an algorithm, hollow for others
    rank: int  # which of the flows of its algorithm, with any options, it is, from 0

    @property
    def look(self) -> tuple[str, str, str]:
        """What tells it from others; flows that no style is left for have the same."""
        return self.colour, self.dash, self.marker


def line_styles(algorithms: Sequence[str]) -> list[LineStyle]:
    """The lines of the flows in one figure, by their algorithms.

    All have the colour and the marker of their algorithm. Of several flows of one, also with other
    options, the first is solid, and others are dashed and have hollow markers: they stay apart in
    any colour vision and in print. So is the first flow of an algorithm whose colour another one
    has. Three or more flows of a single algorithm have colours and markers of their own, as those
    of the algorithm would tell nothing.
    """
    styles, seen, lines = styles_of(algorithms), Counter[tuple[str, str]](), []
    of_colour = Counter[str]()
    are_alike = len({style.look for style in styles.values()}) == 1 and len(algorithms) > 2
    for cc in algorithms:
        look = colour, marker = styles[cc].look
        place = of_colour[colour]
        if are_alike:
            looks = _looks_apart(look)
            place = min(place, len(looks) - 1)
            colour, marker = looks[place]
            place %= len(_DASHES)
        width, dash = _DASHES[min(place, len(_DASHES) - 1)]
        lines.append(LineStyle(colour, width, dash, marker, rank=seen[look]))
        seen[look] += 1
        of_colour[look[0]] += 1
    return lines


def _looks_apart(first: tuple[str, str]) -> list[tuple[str, str]]:
    """Colours and markers that all differ, beginning with those of an algorithm."""
    looks = [_STYLES[cc].look for cc in APART]
    colours = [first[0], *(colour for colour, _ in looks if colour != first[0])]
    markers = [first[1], *(marker for _, marker in looks if marker != first[1])]
    return list(zip(colours, markers, strict=False))[: len(APART)]


def marker_path(marker: str) -> str:
    """A marker as an SVG path: about 1 wide, its middle at 0, y downwards."""
    style = MarkerStyle(marker)
    polygons = style.get_path().transformed(style.get_transform()).to_polygons()
    points = (np.asarray(polygon, dtype=np.float64).tolist() for polygon in polygons)
    lines = ("L".join(f"{x:.3f} {-y:.3f}" for x, y in polygon) for polygon in points)
    return "".join(f"M{line}Z" for line in lines)


def styled() -> AbstractContextManager[None]:
    """The house's style for everything that is drawn inside; what the caller had comes back."""
    return mpl.rc_context(_STYLE)


def named(name: object) -> str:
    """A user's name as matplotlib shows it: what is between two $ is no formula.

    Nor does a legend leave it out for the _ that it begins with.
    """
    text = str(name).replace("$", r"\$")
    return f"\u2060{text}" if text.startswith("_") else text


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
    make: Callable[..., Figure] = Figure,
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
    return figure, axes.tolist()


def legend_above(axes: Axes, handles: Iterable[Artist], labels: Iterable[str], **look: Any) -> None:
    """Puts a legend above a panel, where it hides no data; `look` is as of `Axes.legend`."""
    axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.0), **look)
