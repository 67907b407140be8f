"""Metrics of some flows of each run of a sweep, such as ``share of bbr``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.errors import ExperimentError, unknown
from dumbbell.experiment.model import without_options
from dumbbell.figures import style_of
from dumbbell.metrics import over_flows
from dumbbell.metrics.fairness import jain_of

if TYPE_CHECKING:
    from dumbbell.sweeps.dataset import Dataset

FAIR: Final = "(fair share)"
"""The column beside the share of some flows: the part that they are of all flows."""

_COUNTS: Final = ("sent", "retransmitted", "timeouts", "recoveries")
"""The columns of ``flows`` that are added up over some flows."""


def of_some(dataset: Dataset, metric: str, name: str) -> tuple[str, str, pl.DataFrame]:
    """A metric of some flows, what these are called, and its value by run.

    Args:
        dataset: The sweep.
        metric: A column of `over_flows`; ``share`` of what all flows delivered; ``jain``, of the
            throughputs of these flows, each over its own time; or a counter of ``flows``, added up.
        name: An algorithm, with or without its options, a ``[[flow]]`` table, or a flow.

    Returns:
        The metric, the name as figures write it, and the columns run, `metric` and `FAIR`.

    Raises:
        ExperimentError: If there is no such metric, or no such flow.
    """
    flows = dataset.table("flows").with_columns(pl.col("flow", "cc").cast(pl.String))
    whose, some = _flows_of(flows, name)
    whole = pl.col("delivered").sum().over("run")
    fair = some.cast(pl.Float64).mean().over("run").alias(FAIR)
    flows = flows.with_columns(fair, share=pl.col("delivered") / whole).filter(some)
    more = flows.group_by("run", maintain_order=True).agg(
        pl.sum("share"),
        pl.first(FAIR),
        jain_of(pl.col("throughput")).alias("jain"),
        # Kernels do not count recoveries of flows that share one.
        *(pl.when(pl.col(name).null_count() == 0).then(pl.sum(name)) for name in _COUNTS),
    )
    values = over_flows(flows, ["run"]).join(more, on="run")
    known = [column for column in values.columns if column not in ("run", FAIR)]
    if metric not in known:
        raise ExperimentError(unknown("metric of flows", metric, known), key="metric")
    return metric, whose, values.select("run", metric, FAIR)


def _flows_of(flows: pl.DataFrame, name: str) -> tuple[str, pl.Expr]:
    """The flows of an algorithm, with or without its options, of a [[flow]] table, or one."""
    algorithms, names = (flows[key].unique(maintain_order=True).to_list() for key in ("cc", "flow"))
    bases = {cc: without_options(cc) for cc in algorithms}
    same = [cc for cc, base in bases.items() if name in (base, base.rpartition(":")[2])]
    if name in algorithms or len(same) == 1:
        cc = name if name in algorithms else same[0]
        return style_of(cc).label, pl.col("cc") == cc
    members = [one for one in names if re.fullmatch(rf"{re.escape(name)}(-\d+)?", one)]
    if not members:
        known = dict.fromkeys([*algorithms, *names])
        raise ExperimentError(unknown("algorithm or flow", name, list(known)), key="metric")
    return name, pl.col("flow").is_in(members)
