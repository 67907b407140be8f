"""Warnings about results: settings without effect, ignored marks, silent flows, equal seeds."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.display import format_significant
from dumbbell.experiment.model import without_options
from dumbbell.experiment.quantities import TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dumbbell.experiment.model import Experiment, Flow
    from dumbbell.results.result import Result

_MOST_NAMED: Final = 3

_BBR: Final = {"bbr": "off", "bbr2": "off", "f-bbr2": "off", "bbr3": "on"}
"""The versions of BBR, and whether they respond to marks by default."""


def warnings_of(result: Result) -> list[str]:
    """The warnings of a result, a sentence each."""
    simulated = result.meta.get("backend") != "linux"
    found = result.experiment.warnings() if simulated else []
    return [
        *found,
        *ignored_marks(result.experiment),
        *failed_connections(result),
        *silent_flows(result.flows),
        *identical_seeds(result.flows),
    ]


def ignored_marks(experiment: Experiment) -> list[str]:
    """A sentence for each BBR that sends ECT on a path with a queue that marks, and ignores marks.

    The experiment is resolved.
    """
    marking = {link.name for link in experiment.links if link.aqm and "ecn=off" not in link.aqm}
    common = experiment.stack_options.get("ecn", "off")
    ignoring = {}
    for flow in experiment.flows:
        if flow.transport != "tcp" or without_options(flow.cc) not in _BBR:
            continue
        ecn = flow.stack_options.get("ecn", "off" if flow.stack else common)
        crossed = chain.from_iterable(experiment.flow_paths(flow))
        if ecn != "off" and marking.intersection(crossed) and (where := _where_ignored(flow)):
            ignoring[flow.cc] = where
    so = 'so it takes capacity from flows that do; write ecn = "off" in its stack_options'
    return [
        f"{cc} sends ECT and does not respond to marks {where}, {so}"
        for cc, where in ignoring.items()
    ]


def _where_ignored(flow: Flow) -> str:
    """Where a BBR flow does not respond to marks; empty if it does on its path."""
    given = dict(re.findall(r"(\w+) *= *([^,)]*[^,) ])", flow.cc))
    if given.get("ecn", _BBR[without_options(flow.cc)]) == "off":
        return "on any path"
    limit = given.get("ecn_max_rtt", "5 ms")
    shortest = min(map(TIME.parse, flow.rtts or [flow.rtt or "0 s"]))
    return f"on paths of more than {limit}" if shortest > TIME.parse(limit) else ""


def identical_seeds(flows: pl.DataFrame) -> list[str]:
    """A sentence if several seeds have the same flows, whose intervals then say nothing."""
    seeds = flows["seed"].n_unique()
    if seeds == 1 or flows.drop("seed").unique().height > flows.height / seeds:
        return []
    reason = "nothing in the experiment is random, and intervals have no width"
    return [f"all {seeds} seeds have the same result: {reason}; set start_jitter"]


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
    lived = (pl.col("end") - pl.col("start")).alias("lived")
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
