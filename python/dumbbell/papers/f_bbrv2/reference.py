"""Flows measured in ns-3: what ``scripts/ns3`` keeps in the folder ``ns3``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import polars as pl

VERSION: Final = "3.44"
"""The version of ns-3."""

EARLIER: Final = "3.39"
"""One of the year in which the paper was written: its runs are called ``earlier-*``."""

_FOLDER: Final = Path(__file__).parent / "ns3"


@cache
def flows() -> pl.DataFrame:
    """A row a flow: run, settings, flow, cc, throughput (Mbit/s), rtt (ms), packets, timeouts."""
    return pl.read_csv(_FOLDER / "runs.csv", glob=False)


def has(run: str) -> bool:
    """Whether a run of that name is kept."""
    return run in flows()["run"]


def of(run: str) -> pl.DataFrame:
    """The flows of one run, in their order.

    Raises:
        ValueError: If there is no such run.
    """
    rows = flows().filter(pl.col("run") == run)
    if rows.is_empty():
        raise ValueError(f"no run of ns-3 is called {run}")
    return rows


def jain(run: str) -> float:
    """Jain's index of a run of two flows."""
    first, second = of(run)["throughput"]
    return float((first + second) ** 2 / (2 * (first**2 + second**2)))


@cache
def windows() -> pl.DataFrame:
    """Samples of single flows: run, t (s), cwnd and ssthresh (packets), srtt (s) and counters."""
    return pl.read_csv(_FOLDER / "windows.csv", glob=False)
