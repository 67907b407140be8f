"""Warnings about results: settings without effect, flows that sent nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

_MOST_NAMED: Final = 3

WITHOUT_ECN: Final = (
    "without accurate ECN dctcp reacts to losses only, as Reno does; "
    'write ecn = "accurate" in [stack_options], and a queue that marks'
)


def warnings_of(result: Result) -> list[str]:
    """The warnings of a result, a sentence each."""
    experiment, found = result.experiment, []
    if result.meta.get("backend") == "linux":
        if any(flow.log for flow in experiment.flows):
            found.append("log = true is ignored: packets of the kernel are not recorded")
    elif is_without_ecn(experiment):
        found.append(WITHOUT_ECN)
    return found + silent_flows(result.flows)


def is_without_ecn(experiment: Experiment) -> bool:
    """Whether a flow runs DCTCP over a stack that does not echo every mark."""
    for flow in experiment.flows:
        if not is_dctcp(flow.cc):
            continue
        own = flow.stack_options
        options = own if flow.stack is not None else experiment.stack_options | own
        if (_core.stacks()[flow.stack or experiment.stack] | options)["ecn"] != "accurate":
            return True
    return False


def is_dctcp(cc: str) -> bool:
    """Whether an algorithm, with or without options, is DCTCP."""
    return cc.partition("(")[0].strip() == "dctcp"


def silent_flows(flows: pl.DataFrame) -> list[str]:
    """A sentence on the flows that sent no data in a run, if there are some."""
    lived = (pl.col("end") - pl.col("start")).alias("lived")
    silent = flows.with_columns(lived).filter(pl.col("sent") == 0, pl.col("lived") > 0)
    if silent.is_empty():
        return []
    row = silent.row(0, named=True)
    within = f"within {row['lived']:.3g} s, and a round trip takes {row['base_rtt']:.3g} s"
    names = _listed(silent["flow"].unique(maintain_order=True))
    return [f"{names}: no data was sent; no handshake was completed {within}"]


def _listed(names: Iterable[str]) -> str:
    listed = [f'"{name}"' for name in names]
    more = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
