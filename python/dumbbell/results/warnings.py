"""Warnings about results: settings without effect, silent flows, equal seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.display import format_significant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dumbbell.results.result import Result

_MOST_NAMED: Final = 3


def warnings_of(result: Result) -> list[str]:
    """The warnings of a result, a sentence each."""
    is_simulated = result.meta.get("backend") != "linux"
    return [
        *result.experiment.warnings(is_simulated=is_simulated),
        *failed_connections(result),
        *silent_flows(result.flows),
        *identical_seeds(result.flows),
    ]


def identical_seeds(flows: pl.DataFrame) -> list[str]:
    """A sentence if several seeds have the same flows, whose intervals then say nothing.

    In a table of a sweep, which has the columns ``run`` and ``point``, that is so of single points.
    """
    kept = pl.struct(pl.all().exclude("run", "seed")).n_unique()
    points = flows.group_by(flows["point"] if "point" in flows.columns else pl.lit(0).alias("all"))
    of = points.agg(pl.col("seed").n_unique().alias("seeds"), kept.alias("kept"), pl.len())
    same = of.filter(pl.col("seeds") > 1, pl.col("kept") * pl.col("seeds") <= pl.col("len"))
    if same.is_empty():
        return []
    where = f" at {same.height:,} of {of.height:,} point(s)" if "point" in flows.columns else ""
    reason = "nothing in the experiment is random, and intervals have no width"
    seeds = max(same["seeds"].to_list())
    return [f"all {seeds} seeds have the same result{where}: {reason}; set start_jitter"]


def failed_connections(result: Result) -> list[str]:
    """A sentence for every connection that its stack closed before its time."""
    found = [
        f'"{one["flow"]}" (seed {seed}): the stack closed the connection at '
        f"{format_significant(one['t'])} s: {one['reason']}"
        for seed, failures in result.meta.get("failures", {}).items()
        if int(seed) in result.seeds
        for one in failures
    ]
    more = len(found) - _MOST_NAMED
    return found[:_MOST_NAMED] + ([f"{more} more connections were closed so"] if more > 0 else [])


def silent_flows(flows: pl.DataFrame) -> list[str]:
    """A sentence on the flows that sent no data in a run, if there are some."""
    lived = (pl.col("end") - pl.col("begin")).alias("lived")
    silent = flows.with_columns(lived).filter(pl.col("sent") == 0, pl.col("lived") > 0)
    if silent.is_empty():
        return []
    row = silent.row(0, named=True)
    waited, rtt = (format_significant(row[name]) for name in ("lived", "base_rtt"))
    within = f"within {waited} s, and a round trip takes {rtt} s"
    names = _listed(silent["flow"].unique(maintain_order=True))
    return [f"{names}: no data was sent; no handshake was completed {within}"]


def _listed(names: Iterable[str]) -> str:
    listed = [f'"{name}"' for name in names]
    more = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
