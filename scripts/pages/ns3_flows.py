"""Flows of ns-3, made and kept by ``scripts/ns3``, and the simulator beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import figures
from dumbbell.engine.runner import run_all
from dumbbell.experiment.model import Experiment
from dumbbell.metrics import throughput
from dumbbell.papers import folder_of
from dumbbell.papers.helpers import beside, grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from dumbbell.display import Table
    from dumbbell.results.result import Result

VERSION: Final = "3.44"

ALONE: Final = {
    "alone-TcpNewReno": ["flow.*.cc=reno", "stack_options.byte_counting=false"],
    "alone-TcpCubic": ["flow.*.cc=cubic(slow_start=hystart-ns3)"],
    "alone-TcpBbr": ["flow.*.cc=bbr"],
}
"""The runs of one flow without random loss, and the same in the simulator."""

LOSSY: Final = "paper-0.5"
"""The run of BBRv1 with a random loss of 0.5 %."""

QUEUES: Final = ("0.7", "1", "4", "7")
"""Buffer sizes of the pairs of BBRv1 and CUBIC, BDP."""

_FOLDER: Final = Path(__file__).parents[1] / "ns3"


@cache
def flows() -> pl.DataFrame:
    """A row a flow: run, settings, flow, cc, throughput (Mbit/s), rtt (ms), packets, timeouts."""
    return pl.read_csv(_FOLDER / "runs.csv")


@cache
def windows() -> pl.DataFrame:
    """Samples of single flows: run, t (s), cwnd and ssthresh (packets), srtt (s) and counters."""
    return pl.read_csv(_FOLDER / "windows.csv")


def of(run: str) -> pl.DataFrame:
    """The flows of one run, in their order.

    Raises:
        ValueError: If there is no such run.
    """
    rows = flows().filter(pl.col("run") == run)
    if rows.is_empty():
        raise ValueError(f"no run of ns-3 is called {run}")
    return rows


def simulate() -> dict[str, Result]:
    """Simulates what ns-3 ran, nearly all for a minute; by the name of the run."""
    paper = folder_of("f-bbrv2")
    minute = ["duration=60 s", "seeds=4", "link.bottleneck.loss=0 %"]
    lossy = ["flow.*.cc=bbr", "link.bottleneck.loss=0.5 %"]
    pair = ["duration=60 s", "seeds=8", "flow.bbr.cc=bbr"]
    experiments = {
        **{
            run: Experiment.load(paper / "alone.toml", overrides=[*minute, *changes])
            for run, changes in ALONE.items()
        },
        LOSSY: Experiment.load(paper / "alone.toml", overrides=lossy),
        **{
            f"pair-{queue}": Experiment.load(
                paper / "pair.toml", overrides=[*pair, f"link.bottleneck.queue={queue} BDP"]
            )
            for queue in QUEUES
        },
    }
    return dict(zip(experiments, run_all(list(experiments.values())), strict=True))


def flow_by_flow(simulated: Mapping[str, Result]) -> Table:
    """Every flow that ran in both: the simulator, ns-3, and the ratio of the two."""
    rows = {}
    for run, result in simulated.items():
        here = _means(result)
        for flow in of(run).iter_rows(named=True):
            name = result.flow_names[flow["flow"]]
            ours = here.row(by_predicate=pl.col("flow") == name, named=True)
            rows[f"{flow['cc']}, {_scenario(run)}"] = _row(ours, flow)
    note = (
        "Simulator / ns-3 (ratio), 60 s, BBRv1 with random loss 150 s: means over the seeds, one "
        "run of ns-3."
    )
    return grid("Flow", ["Throughput, Mbit/s", "Mean RTT, ms", "Retransmitted"], rows, note)


def _scenario(run: str) -> str:
    kind, _, queue = run.partition("-")
    return f"pair, {queue} BDP" if kind == "pair" else f"alone, loss {0.5 * (run == LOSSY):g} %"


def _row(ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    digits = {"throughput": 2, "rtt": 1, "retransmitted": 0}
    return [beside(ours[name], theirs[name], count) for name, count in digits.items()]


def _means(result: Result) -> pl.DataFrame:
    """Means over the seeds, a row a flow: Mbit/s, ms, packets."""
    rtt = result.series.group_by("seed", "flow").agg(rtt=pl.col("srtt").mean() * 1e3)
    return (
        throughput(result)
        .join(rtt, on=["seed", "flow"])
        .join(result.flows.select("seed", "flow", "retransmitted"), on=["seed", "flow"])
        .with_columns(pl.col("flow").cast(pl.String), pl.col("throughput") / 1e6)
        .group_by("flow")
        .agg(pl.col("throughput", "rtt", "retransmitted").cast(pl.Float64).mean())
    )


def draw_windows(simulated: Mapping[str, Result]) -> Figure:
    """Windows of one flow alone: the simulator over ns-3."""
    drawn, [line] = figures.panels(1, len(ALONE), width=figures.PAGE, height=1.9)
    for axes, run in zip(line, ALONE, strict=True):
        result = simulated[run]
        ours = result.of_seed(result.seeds[0]).series
        theirs = windows().filter(pl.col("run") == run)
        colour = figures.style_of(str(ours["cc"][0])).colour
        axes.plot(ours["t"], ours["cwnd"], color=colour, linewidth=2.4)
        axes.plot(theirs["t"], theirs["cwnd"], color=figures.INK, linewidth=0.7)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, 60)
        axes.set_title(run.removeprefix("alone-"))
        axes.set_xlabel("time (s)")
    line[0].set_ylabel("cwnd (packets)")
    return drawn
