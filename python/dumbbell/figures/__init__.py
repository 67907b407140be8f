"""Figures: small functions that draw Polars frames onto matplotlib axes.

Compose them; every one is short::

    run = result.of_seed(1)
    with styled():
        figure, [[above], [below]] = panels(2, 1)
        windows(above, run.series)
        round_trips(below, run.series)
        save(figure, Path("windows"))  # windows.svg, windows.png
"""

from dumbbell.figures.comparison import curves, grouped_bars, intervals
from dumbbell.figures.heat import heat_dots, heat_map
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
    LineStyle,
    Style,
    line_style,
    marker_path,
    named,
    new_figure,
    panels,
    pyplot_figure,
    style_of,
    styled,
)
from dumbbell.figures.timeline import (
    capacity,
    flows,
    legend,
    moment,
    queue,
    queueing_delay,
    round_trips,
    states,
    throughputs,
    warning,
    windows,
)

__all__ = [
    "COLUMN",
    "FAINT",
    "INK",
    "PAGE",
    "PAPER",
    "LineStyle",
    "Picture",
    "Style",
    "capacity",
    "curves",
    "flows",
    "grouped_bars",
    "heat_dots",
    "heat_map",
    "inline",
    "intervals",
    "labelled",
    "legend",
    "line_style",
    "marker_path",
    "moment",
    "named",
    "new_figure",
    "panels",
    "publish",
    "pyplot_figure",
    "queue",
    "queueing_delay",
    "render",
    "round_trips",
    "save",
    "states",
    "style_of",
    "styled",
    "svg",
    "swatch",
    "throughputs",
    "warning",
    "windows",
]
