"""What metrics and terms mean, for ``dumbbell explain`` and the reference."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

from dumbbell import display, metrics

if TYPE_CHECKING:
    from collections.abc import Callable

TERMS: Final = {
    "BDP": (
        "The bandwidth-delay product: a link's rate times the longest base RTT of the flows that "
        "cross it, headers included. Unit: bytes, or packets of 1,500 bytes. "
        "Source: RFC 7323, section 1.1."
    ),
    "RTT": (
        "The round-trip time: from when a packet is sent until its acknowledgement arrives. The "
        "column `rtt_mean` has the mean of all that the sender measured. "
        "Unit: s in data, ms in printed tables. Source: RFC 2681."
    ),
    "base RTT": (
        "The round-trip time without queues: the sum of the propagation delays of a path and its "
        "return path, the column `base_rtt`. Unit: s. Source: RFC 5166, section 2.2."
    ),
    "loss share": (
        "The share of the packets sent that was lost, of flows over UDP and RTP, which retransmit "
        "nothing: `loss_share` is `lost / sent`. Unit: % in printed tables (Lost). "
        "Source: RFC 5166, section 2.3."
    ),
    "marked share": (
        "The data packets of a flow that arrived with an ECN mark (CE), as a share of those that "
        "it sent: `marked_share` is `marked / sent`, shown where there are marks. "
        "Unit: % in printed tables (Marked). Source: RFC 3168, section 5; RFC 9331, section 5."
    ),
}
"""Terms that are not metrics, and what each means."""

_ROW: Final = frozenset({"seed", "flow", "cc", "link", "window", "t", "start", "bytes", "by"})


def names() -> list[str]:
    """The names that `definition` knows, without the columns of tables."""
    shown = [column.title for name, column in display.COLUMNS.items() if _function_of(name)]
    functions = [metric.__name__.replace("_", " ") for metric in metrics.LISTED]
    return [*dict.fromkeys([*TERMS, *functions, *shown])]


def definition(name: str) -> str | None:
    """What a metric or term means, in a few lines: its formula, unit and source.

    Args:
        name: A term, a metric, or the column of a metric, as a table of results names it or as it
            is printed: ``BDP``, ``queueing delay``, ``queue_delay_p95``, ``Jain's index``.

    Returns:
        Plain text; None if there is no such metric or term.
    """
    wanted = _folded(name)
    titles = {_folded(shown.title): column for column, shown in reversed(display.COLUMNS.items())}
    for term, meaning in TERMS.items():
        if _folded(term) == wanted or f"`{titles.get(wanted, wanted)}`" in meaning:
            return f"{term}: {_plain(meaning)}"
    for metric in metrics.LISTED:
        if _folded(metric.__name__) == wanted:
            return _text(metric)
    function = _function_of(titles.get(wanted, wanted.replace(" ", "_")))
    return _text(function) if function else None


def _function_of(column: str) -> Callable[..., object] | None:
    """The metric that gives a column: the one with its name, or the first that returns it."""
    for metric in metrics.LISTED:
        if metric.__name__ == column:
            return metric
    return next((one for one in metrics.LISTED if column in _columns(one)), None)


def _columns(metric: Callable[..., object]) -> set[str]:
    """The columns that a metric returns, without those that say what a row is of."""
    returned = re.sub(r"\(.*?\)", "", _returned(metric)).partition(";")[0]
    return set(re.findall(r"\w+", returned)) - _ROW if returned.startswith("Columns") else set()


def _text(metric: Callable[..., object]) -> str:
    """The docstring of a metric without its arguments, a line for each paragraph."""
    paragraphs = re.split(r"\n(?=\w+:\n)", inspect.getdoc(metric) or "")[0].split("\n\n")
    lines = [" ".join(paragraph.split()) for paragraph in paragraphs]
    of_metric = (name for name in display.COLUMNS if _function_of(name) == metric)
    printed = ", ".join(display.COLUMNS[name].heading for name in of_metric)
    lines += [_returned(metric), f"In printed tables: {printed}." if printed else ""]
    lines += [f"In Python: dumbbell.metrics.{metric.__name__}"]
    return f"{metric.__name__}: {_plain(chr(10).join(filter(None, lines)))}"


def _returned(metric: Callable[..., object]) -> str:
    """What a metric returns, as its docstring says."""
    found = re.search(r"^Returns:\n((?: .*\n?)+)", inspect.getdoc(metric) or "", re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _folded(name: str) -> str:
    return name.casefold().replace("_", " ").replace("\u2019", "'").strip()


def _plain(text: str) -> str:
    return text.replace("`", "")
