"""Figures: small functions that draw Polars frames onto matplotlib axes.

Compose them: :func:`panels` makes the empty figure, the functions of :mod:`.lines`, :mod:`.bars`
and :mod:`.heat` draw onto its axes, :func:`save` writes SVG and PNG.
"""

from dumbbell.figures.bars import intervals
from dumbbell.figures.heat import heat_map
from dumbbell.figures.lines import (
    flows,
    legend,
    moment,
    period,
    queue,
    round_trips,
    throughputs,
    windows,
)
from dumbbell.figures.output import inline, save, svg
from dumbbell.figures.style import COLUMN, PAGE, Look, look, panels

__all__ = [
    "COLUMN",
    "PAGE",
    "Look",
    "flows",
    "heat_map",
    "inline",
    "intervals",
    "legend",
    "look",
    "moment",
    "panels",
    "period",
    "queue",
    "round_trips",
    "save",
    "svg",
    "throughputs",
    "windows",
]
