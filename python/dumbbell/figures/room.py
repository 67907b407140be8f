"""Room for words: whether they overlap in a figure, and how those at an axis do not."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox, BboxBase

_LINE: Final = 0.16
"""Labels that stand this close, inches, have no room but upright."""


def meet(boxes: Iterable[Bbox]) -> bool:
    """Whether two of some boxes have more in common than an edge."""
    return any(
        min(one.x1, other.x1) - max(one.x0, other.x0) > 1
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
        for one, other in combinations(boxes, 2)
    )


def leave(whole: BboxBase, boxes: Iterable[Bbox]) -> bool:
    """Whether one of some boxes is not all inside the whole."""
    return any(
        box.x0 < whole.x0 - 1
        or box.x1 > whole.x1 + 1
        or box.y0 < whole.y0 - 1
        or box.y1 > whole.y1 + 1
        for box in boxes
    )


def is_crowded(figure: Figure) -> bool:
    """Whether words in a figure overlap, or leave it."""
    with laid_out(figure):
        words = [text for text in _words(figure) if text.get_visible() and text.get_text().strip()]
        boxes = {text: text.get_window_extent() for text in words}
    level = (box for text, box in boxes.items() if text.get_rotation() % 90 == 0)
    return leave(figure.bbox, boxes.values()) or meet(level)


def _words(figure: Figure) -> Iterator[Text]:
    """All texts that are drawn: matplotlib keeps ticks that are out of view."""
    for axes in figure.axes:
        yield from (child for child in axes.get_children() if isinstance(child, Text))
        if legend := axes.get_legend():
            yield from (*legend.get_texts(), legend.get_title())
        if axes.axison:
            for axis in (axes.xaxis, axes.yaxis):
                yield axis.label
                yield from _labels(axis)


def _labels(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [
        tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()
    ]


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Lays a figure out, so that words in it can be measured.

    Panels come back to their places: laid out from others, a figure has other bytes.
    """
    places = [(axes, axes.get_position(original=True).frozen()) for axes in figure.axes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever saves it tells
        figure.draw_without_rendering()
    yield
    for axes, place in places:
        axes.set_position(place)
        axes.set_in_layout(True)


def give_room(axes: Axes, *, are_numbers: bool) -> None:
    """Leaves some labels of the x axis out if they overlap and `are_numbers`, else turns them.

    The figure was laid out.
    """
    labels = axes.get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    if not isinstance(axes.xaxis.get_major_locator(), FixedLocator) or not _touch(boxes):
        return
    if are_numbers:
        step = next(n for n in range(2, len(boxes) + 1) if not _touch(boxes[::n]))
        names = [label.get_text() for label in labels]
        axes.set_xticks(axes.get_xticks()[::step], names[::step])
        return
    apart = axes.bbox.width / len(labels) / axes.figure.dpi
    for label in labels:
        if apart < _LINE:
            label.set(rotation=90)
        else:
            label.set(rotation=30, ha="right", rotation_mode="anchor")


def _touch(boxes: list[Bbox]) -> bool:
    return any(left.x1 + 2 > right.x0 for left, right in pairwise(boxes))
