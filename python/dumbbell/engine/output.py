"""What a run gives: its tables, with numbers in the place of names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from dumbbell import _core

TABLES: Final = (
    *("flows", "series", "links", "internals"),
    *("subflows", "subflow_series", "subflow_internals"),
)
"""The tables of a run."""


@dataclass(frozen=True, eq=False)
class TableOutput:
    """A run whose tables are data frames: one with real packets, or from the store."""

    flows: pl.DataFrame
    series: pl.DataFrame
    links: pl.DataFrame
    internals: pl.DataFrame
    subflows: pl.DataFrame
    subflow_series: pl.DataFrame
    subflow_internals: pl.DataFrame
    meta: _core.Meta

    @property
    def capture(self) -> None:
        """Packets are not recorded."""


def frames(output: TableOutput | _core.RunOutput) -> dict[str, pl.DataFrame]:
    """The tables of a run by their names."""
    return {name: pl.DataFrame(getattr(output, name)) for name in TABLES}
