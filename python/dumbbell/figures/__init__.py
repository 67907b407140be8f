"""Figures: small functions that draw Polars frames onto matplotlib axes.

Compose them; every one is short::

    run = result.of_seed(1)
    with styled():
        figure, [[above], [below]] = panels(2, 1)
        windows(above, run.series)
        throughputs(below, metrics.windows(run))
        save(figure, Path("windows"))  # windows.svg, windows.png
"""

from dumbbell.figures.comparison import curves, grouped_bars, intervals
from dumbbell.figures.heat import heat_dots, heat_map
from dumbbell.figures.output import FINE, flattened, inline, labelled, save, svg, swatch
from dumbbell.figures.room import is_crowded
from dumbbell.figures.style import (
    COLUMN,
    FAINT,
    INK,
    PAGE,
    PAPER,
    line_styles,
    marker_path,
    named,
    panels,
    pyplot_figure,
    style_of,
    styled,
    styles_of,
)
from dumbbell.figures.timeline import flows, legend, moment, states, throughputs, windows

__all__ = [
    "COLUMN",
    "FAINT",
    "FINE",
    "INK",
    "PAGE",
    "PAPER",
    "curves",
    "flattened",
    "flows",
    "grouped_bars",
    "heat_dots",
    "heat_map",
    "inline",
    "intervals",
    "is_crowded",
    "labelled",
    "legend",
    "line_styles",
    "marker_path",
    "moment",
    "named",
    "panels",
    "pyplot_figure",
    "save",
    "states",
    "style_of",
    "styled",
    "styles_of",
    "svg",
    "swatch",
    "throughputs",
    "windows",
]
