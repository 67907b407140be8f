"""What a run gives: its tables, with numbers in the place of names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.results.tables import SUBFLOW_TABLES, TABLES

if TYPE_CHECKING:
    from dumbbell import _core

ALL_TABLES: Final = (*TABLES, *SUBFLOW_TABLES.values())
"""The tables of a run."""


@dataclass(frozen=True, eq=False)
class TableOutput:
    """A run whose tables are data frames: one with real packets, or from the store.

    Attributes:
        health: How well the machine did with real packets: lateness of packets (``late_mean_s``,
            ``late_p99_s``, ``late_max_s``, and when the latest was due, ``late_max_at_s``), packets
            that devices dropped, the share of the processors that was stolen, whether they were
            kept from sleeping (``awake``), whether the kernel had too little memory for TCP
            (``short_of_memory``). Empty for a simulation.
        invalid_reasons: Why the run is invalid; empty if it is valid.
    """

    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    internals: pl.DataFrame
    subflows: pl.DataFrame
    subflow_series: pl.DataFrame
    subflow_internals: pl.DataFrame
    meta: _core.Meta
    health: dict[str, Any] = field(default_factory=dict)
    invalid_reasons: list[str] = field(default_factory=list)

    @property
    def capture(self) -> None:
        """Packets are not recorded."""


def frames(output: TableOutput | _core.RunOutput) -> dict[str, pl.DataFrame]:
    """The tables of a run by their names."""
    return {name: pl.DataFrame(getattr(output, name)) for name in ALL_TABLES}
