"""The measured Linux flows, as results: whatever takes a simulated `Result` takes them too."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import polars as pl

from dumbbell.experiment.model import Experiment
from dumbbell.results.result import Result
from dumbbell.results.tables import read_table

MEASURED: Final = ("reno", "cubic", "bbr")
"""The algorithms that were measured."""

KERNEL: Final = "6.18"
"""The version of Linux."""

QUEUES: Final = (0.5, 1.0, 2.0)
"""The queues of the runs with one flow, BDP."""

MSS: Final = 1448
"""Payload bytes of a full segment."""

_FOLDER: Final = Path(__file__).parent
_GRID: Final = 10
"""Samples a second."""


def pair(cc: str) -> Result:
    """Three runs of the paper's scenario, 120 s; a run stands where a simulation has its seed."""
    changes = [f"flow.*.cc={cc}", "link.bottleneck.queue=624 kB", "duration=120 s", "seeds=3"]
    return _result("pair", cc, "pair.toml", changes)


def single(cc: str, queue: float) -> Result:
    """One run of a single flow, 60 s, with a queue of `queue` BDP."""
    return _result(f"single-{queue:g}", cc, "single.toml", [f"flow.*.cc={cc}", "seeds=1"])


def _result(scenario: str, cc: str, file: str, changes: list[str]) -> Result:
    experiment = Experiment.load(_FOLDER / file, overrides=changes)
    names = [name for names in experiment.flow_names() for name in names]
    flow = pl.col("flow").replace_strict(dict(enumerate(names)), return_dtype=pl.Enum(names))
    rows = _flows().filter(pl.col("scenario") == scenario, pl.col("cc") == cc)
    if rows.is_empty():
        raise ValueError(f"no flow of {cc} was measured in scenario {scenario}")
    # The last tick that all flows of a run have: a mean over nothing would be no number.
    ends = pl.col("tick").max().over("run", "flow").min().over("run")
    series = rows.filter(pl.col("tick") <= ends).select(
        seed=pl.col("run").cast(pl.UInt64),
        flow=flow,
        cc=pl.col("cc"),
        t=pl.col("tick") / _GRID,
        cwnd=pl.col("cwnd").cast(pl.Float32),
        ssthresh=pl.col("ssthresh").cast(pl.Float32).fill_null(float("inf")),
        srtt=(pl.col("srtt_us") / 1e6).cast(pl.Float32),
        retransmitted=pl.col("retransmitted").cast(pl.UInt64),
        delivered=pl.col("delivered").cast(pl.UInt64) * MSS,
        received=pl.col("bytes_acked"),
        ca_state=pl.col("phase"),
    )
    starts = {name: 30.0 * i for i, name in enumerate(names)}
    flows = series.group_by("seed", "flow", "cc", maintain_order=True).agg(
        start=pl.col("flow").first().cast(pl.String).replace_strict(starts),
        end=pl.col("t").last(),
        completed=pl.lit(None, pl.Float64),
        retransmitted=pl.col("retransmitted").last(),
        delivered=pl.col("delivered").last(),
        received=pl.col("received").last(),
    )
    meta = {"kernel": KERNEL, "seeds": series["seed"].unique(maintain_order=True).to_list()}
    unseen = pl.DataFrame(schema={"seed": pl.UInt64})
    return Result(experiment, meta, flows, series, links=unseen, internals=unseen)


@cache
def _flows() -> pl.DataFrame:
    return read_table(_FOLDER / "linux" / "flows.parquet")
