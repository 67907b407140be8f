"""Figures: small functions that draw Polars frames onto matplotlib axes.

Compose them; every one is short::

    with styled():
        figure, [[above], [below]] = panels(2, 1)
        windows(above, series)
        round_trips(below, series)
        save(figure, Path("windows"))  # windows.svg, windows.png
"""

from dumbbell.figures.bands import states
from dumbbell.figures.bars import intervals
from dumbbell.figures.curves import curves, grouped_bars
from dumbbell.figures.heat import heat_dots, heat_map
from dumbbell.figures.lines import (
    flows,
    legend,
    moment,
    queue,
    round_trips,
    throughputs,
    warning,
    windows,
)
from dumbbell.figures.output import (
    Picture,
    inline,
    labelled,
    publish,
    render,
    save,
    svg,
    swatch,
)
from dumbbell.figures.style import (
    COLUMN,
    FAINT,
    INK,
    PAGE,
    PAPER,
    Look,
    Stroke,
    look,
    named,
    new_figure,
    outline,
    panels,
    stroke,
    styled,
)

__all__ = [
    "COLUMN",
    "FAINT",
    "INK",
    "PAGE",
    "PAPER",
    "Look",
    "Picture",
    "Stroke",
    "curves",
    "flows",
    "grouped_bars",
    "heat_dots",
    "heat_map",
    "inline",
    "intervals",
    "labelled",
    "legend",
    "look",
    "moment",
    "named",
    "new_figure",
    "outline",
    "panels",
    "publish",
    "queue",
    "render",
    "round_trips",
    "save",
    "states",
    "stroke",
    "styled",
    "svg",
    "swatch",
    "throughputs",
    "warning",
    "windows",
]
