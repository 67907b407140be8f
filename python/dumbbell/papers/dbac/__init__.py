"""DBAC beside LIA on a testbed of a large and a small path (Han, 2024).

The paper leaves open which algorithm the single-path TCP runs, DBAC's threshold, and how its hosts
acknowledge; the experiment files say what stands for them and why, and the report how much hangs on
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dumbbell.metrics import throughput
from dumbbell.papers.dbac.chapters import sections
from dumbbell.papers.dbac.measures import (
    COMPARED,
    flow,
    greatest_window,
    known,
    path,
    rates,
    testbed,
)
from dumbbell.papers.dbac.plates import PLATES
from dumbbell.papers.frame import Verdict

if TYPE_CHECKING:
    from dumbbell.papers.frame import Measured, Runs, Verdicts
    from dumbbell.results.result import Result

__all__ = ["PLATES", "judge", "measure", "reduce", "sections"]


def measure(runs: Runs) -> Measured:
    """Measures the numbers of figures 3 and 6."""
    throughputs = {
        f"{cc}-path-{number}": path(testbed(runs, cc), number)
        for cc in COMPARED
        for number in (1, 2)
    }
    return throughputs | {"lia-greatest-window": greatest_window(testbed(runs, "lia"), 1)}


def judge(runs: Runs, _numbers: Measured) -> Verdicts:
    """Checks the claims."""
    return {
        "use": _use(runs),
        "fair-small": _fair_small(runs),
        "virtual": _virtual(runs),
        "fair-cubic": _fair_cubic(runs),
    }


def reduce(result: Result) -> pl.DataFrame:
    """Keeps the throughput of every flow and subflow and seed, bit/s."""
    table = throughput(result.by_subflow()).with_columns(pl.col("flow").cast(pl.String))
    return table.select("seed", "flow", "throughput")


def _use(runs: Runs) -> Verdict:
    lia, dbac = (known(path(testbed(runs, cc), 1)) for cc in COMPARED)
    runs_of_lia = rates(testbed(runs, "lia"))["multipath/1"].to_list()
    return Verdict(
        dbac > 400 and lia < 100,
        f"Of 500 Mbit/s DBAC has {dbac:.0f} ({dbac / 5:.0f} %) and LIA {lia:.0f} "
        f"({lia / 5:.0f} %): {dbac / lia:.1f} times as much. Single runs of LIA have from "
        f"{min(runs_of_lia):.0f} to {max(runs_of_lia):.0f}: at a loss of 1e-6 there are about five "
        "losses in 500 s, and the paper shows one run.",
    )


def _fair_small(runs: Runs) -> Verdict:
    lia, dbac = (known(path(testbed(runs, cc), 2)) for cc in COMPARED)
    singles = [known(flow(testbed(runs, cc), "single")) for cc in COMPARED]
    return Verdict(
        abs(dbac / lia - 1) <= 0.1,
        f"The subflow on path 2 has {lia:.1f} Mbit/s with LIA and {dbac:.1f} with DBAC "
        f"({100 * (dbac / lia - 1):+.0f} %); the single-path flow {singles[0]:.1f} and "
        f"{singles[1]:.1f}.",
    )


def _virtual(runs: Runs) -> Verdict:
    cases = ("lia", "dbac", "dbac-cubic")
    lia, virtual, itself = (known(path(testbed(runs, cc), 2)) for cc in cases)
    return Verdict(
        itself < 0.9 * lia,
        f"On path 2: {itself:.1f} Mbit/s with CUBIC's own window, {virtual:.1f} with the virtual "
        f"one, {lia:.1f} with LIA.",
    )


def _fair_cubic(runs: Runs) -> Verdict:
    left = {cc: known(flow(runs[f"rival-{cc}"], "rival")) for cc in ("cubic", "dbac", "lia")}
    taken = {cc: known(path(runs[f"rival-{cc}"], 1)) for cc in left}
    return Verdict(
        left["dbac"] >= 0.9 * left["cubic"],
        f"Beside DBAC ({taken['dbac']:.0f} Mbit/s on path 1) the CUBIC flow has "
        f"{left['dbac']:.0f} Mbit/s, beside plain CUBIC ({taken['cubic']:.0f}) "
        f"{left['cubic']:.0f}, beside LIA ({taken['lia']:.0f}) {left['lia']:.0f}.",
    )
