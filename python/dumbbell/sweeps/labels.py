"""What the metrics and the values of axes are called where people read them."""

from __future__ import annotations

from typing import Final

from dumbbell.experiment.units import BDP, PACKETS, RATE, SIZE, TIME

LABELS: Final = {
    "throughput": ("throughput", 1e6, "Mbit/s"),
    "goodput": ("goodput", 1e6, "Mbit/s"),
    "utilisation": ("utilisation", 0.01, "%"),
    "queue_delay_mean": ("queueing delay", 1e-3, "ms"),
    "queue_delay_p95": ("95th percentile of the queueing delay", 1e-3, "ms"),
    "retransmission_share": ("retransmitted", 0.01, "%"),
    "jain": ("Jain's index", 1.0, ""),
}
"""By metric what it is called, and the unit that it is shown in: how much, and its name."""


def on_axis(value: float | str, unit: str | None) -> str:
    """A value on an axis of a sweep, as a file would have it."""
    if isinstance(value, str):
        return value
    for dimension, name, worth in _AXES:
        if name == unit:
            return dimension.format(round(value * worth))
    return f"{value:g}"


_AXES: Final = (
    (RATE, "bit/s", 1),
    (TIME, "s", 10**9),
    (SIZE, "bytes", 1),
    (PACKETS, "packets", 1),
    (BDP, "BDP", 10**6),
)
