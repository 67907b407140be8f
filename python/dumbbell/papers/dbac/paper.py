"""DBAC beside LIA on a testbed of a large and a small path (Han, 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures
from dumbbell.papers import Measure, Runs, Verdict, claim, figure, metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

COMPARED = {"lia": "LIA", "dbac": "DBAC"}
BOTH = Measure(metric="throughput", flow="multipath/*")
LATE = 100.0
"""From when on the effect of slow start is over, s."""


def path(runs: Runs, experiment: str, number: int) -> float:
    """The throughput of the subflow on a path, Mbit/s."""
    return runs.value(experiment, flow=f"multipath/{number}")


@metric("max_cwnd", unit="packets", lowest=0)
def max_cwnd(result: Result, flow: str) -> list[float]:
    """The largest window of a subflow after slow start."""
    there = (pl.col("flow") == flow) & (pl.col("t") >= LATE)
    largest = result.subflow_series.filter(there).group_by("seed", maintain_order=True)
    return largest.agg(pl.col("cwnd").max())["cwnd"].to_list()


@claim("use")
def use(runs: Runs) -> Verdict:
    lia, dbac = (path(runs, f"testbed-{cc}", 1) for cc in COMPARED)
    runs_of_lia = runs.values("testbed-lia", flow="multipath/1")
    return Verdict(
        dbac > 400 and lia < 100,
        f"Of 500 Mbit/s DBAC has {dbac:.0f} ({dbac / 5:.0f} %) and LIA {lia:.0f} "
        f"({lia / 5:.0f} %): {dbac / lia:.1f} times as much. Single runs of LIA have from "
        f"{min(runs_of_lia):.0f} to {max(runs_of_lia):.0f}: at a loss of 1e-6 there are about five "
        "losses in 500 s, and the paper shows one run.",
    )


@claim("fair-small")
def fair_small(runs: Runs) -> Verdict:
    lia, dbac = (path(runs, f"testbed-{cc}", 2) for cc in COMPARED)
    singles = [runs.value(f"testbed-{cc}", flow="single") for cc in COMPARED]
    return Verdict(
        abs(dbac / lia - 1) <= 0.1,
        f"The subflow on path 2 has {lia:.1f} Mbit/s with LIA and {dbac:.1f} with DBAC "
        f"({100 * (dbac / lia - 1):+.0f} %); the single-path flow {singles[0]:.1f} and "
        f"{singles[1]:.1f}.",
    )


@claim("virtual")
def virtual(runs: Runs) -> Verdict:
    cases = ("lia", "dbac", "dbac-cubic")
    lia, virtual, itself = (path(runs, f"testbed-{cc}", 2) for cc in cases)
    return Verdict(
        itself < 0.9 * lia,
        f"On path 2: {itself:.1f} Mbit/s with CUBIC's own window, {virtual:.1f} with the virtual "
        f"one, {lia:.1f} with LIA.",
    )


@claim("fair-cubic")
def fair_cubic(runs: Runs) -> Verdict:
    left = {cc: runs.value(f"rival-{cc}", flow="rival") for cc in ("cubic", "dbac")}
    taken = {cc: path(runs, f"rival-{cc}", 1) for cc in left}
    return Verdict(
        left["dbac"] >= 0.9 * left["cubic"],
        f"Beside DBAC ({taken['dbac']:.0f} Mbit/s on path 1) the CUBIC flow has "
        f"{left['dbac']:.0f} Mbit/s, beside plain CUBIC ({taken['cubic']:.0f}) "
        f"{left['cubic']:.0f}.",
    )


@figure("4")
def large_path(runs: Runs) -> Figure:
    """DBAC's window and its virtual one on path 1."""
    drawn, [[axes]] = figures.panels(height=2.4)
    result = runs["testbed-dbac"]
    one = (pl.col("seed") == result.seeds[0]) & (pl.col("flow") == "multipath/1")
    virtual = result.subflow_internals.filter(
        one & (pl.col("name").cast(pl.String) == "virtual window")
    ).select("t", cwnd="value", name=pl.lit("virtual window"))
    window = result.subflow_series.filter(one).select("t", "cwnd", name=pl.lit("window"))
    both = pl.concat([window, virtual], how="vertical_relaxed").with_columns(cc=pl.lit("dbac"))
    figures.windows(axes, both)
    axes.set_ylabel("subflow 1 (packets)")
    figures.legend(axes)
    return drawn


@figure("beyond-buffer")
def buffer(runs: Runs) -> Figure:
    """Throughput of the connection over its receive buffer, a panel an algorithm."""
    drawn, [line] = figures.panels(1, 2, width=figures.PAGE, height=2.5)
    for axes, (cc, label) in zip(line, COMPARED.items(), strict=True):
        for rank, scheduler in enumerate(("lowest-rtt", "blest", "ecf")):
            chosen = {"cc": [cc], "scheduler": [scheduler]}
            specs = runs.paper.specs(["beyond-buffer"], chosen)
            axes.plot(
                [float(spec.settings["MB"]) for spec in specs],
                [runs.estimate(spec, BOTH).value or 0.0 for spec in specs],
                color=("#0072b2", "#d55e00", "#8a9099")[rank],
                linestyle=("-", "-", "--")[rank],
                label=scheduler,
            )
        axes.set_xlabel("receive buffer (MB)")
        axes.set_ylabel(f"{label}, both paths (Mbit/s)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right")
    return drawn
