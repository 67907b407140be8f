"""Flows of ns-3, made by ``scripts/ns3`` and kept in ``ns3/``, and the simulator beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import figures
from dumbbell.metrics import throughput
from dumbbell.papers import Runs, Table, figure, table, text
from dumbbell.papers.helpers import beside, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

VERSION: Final = "3.44"
EARLIER_VERSION: Final = "3.39"
"""Of the year in which the paper was written: its runs are called ``earlier-*``."""

ALONE: Final = {
    "newreno": ("TcpNewReno", "reno"),
    "cubic": ("TcpCubic", "cubic"),
    "bbr": ("TcpBbr", "bbr"),
}
"""Algorithms that ran alone: what ns-3 calls them, and whose look they have."""

SETTINGS: Final = {
    "alone-TcpBbr": "as assumed, 60 s",
    "segment-536": "segments of 536 bytes, ns-3's default",
    "buffers": "socket buffers of 131,072 bytes, ns-3's default",
    "access-queue": "100 packets in the access link, ns-3's default",
    "fq-codel": "FQ-CoDel above the devices, as ns-3 installs it",
}
"""What was changed for one BBRv1 flow alone, by the run."""

QUEUES: Final = ("0.7", "1", "4", "7")
"""Buffer sizes of the pairs of BBRv1 and CUBIC, BDP."""

EARLIER: Final = {
    queue: [f"earlier-{queue}-{start}" for start in ("together", "bbr-first", "cubic-first")]
    for queue in ("0.7", "4")
}
"""Pairs in the earlier ns-3: they begin at once, or one 30 ms before the other."""

_FOLDER: Final = Path(__file__).parent / "ns3"


@cache
def flows() -> pl.DataFrame:
    """A row a flow: run, settings, flow, cc, throughput (Mbit/s), rtt (ms), packets, timeouts."""
    return pl.read_csv(_FOLDER / "runs.csv", glob=False)


@cache
def windows() -> pl.DataFrame:
    """Samples of single flows: run, t (s), cwnd and ssthresh (packets), srtt (s) and counters."""
    return pl.read_csv(_FOLDER / "windows.csv", glob=False)


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


@table("ns3-published")
def published(runs: Runs) -> Table:
    """The paper's numbers on BBRv1 in ns-3 and here."""
    rows = {
        f"alone, loss {loss} %, Mbit/s": [
            said,
            f"{of(f'earlier-alone-{loss}')['throughput'][0]:.1f}",
            f"{of(run)['throughput'][0]:.1f}",
            f"{runs.value(f'alone-bbr-{loss}'):.1f}",
        ]
        for loss, said, run in (("0", "42.9", "alone-TcpBbr"), ("0.5", "40.2", "paper-0.5"))
    }
    for queue in QUEUES:
        here = f"minute-{queue}"
        ours = [runs.value(here, flow=side) for side in ("bbr", "other")]
        index = runs.value(here, "jain", flows=["bbr", "other"])
        earlier = ", ".join(f"{jain(name):.2f}" for name in EARLIER.get(queue, []))
        rows[f"beside CUBIC, {queue} BDP: BBRv1 + CUBIC, Mbit/s (Jain)"] = [
            "(0.74)" if queue == "0.7" else "",
            f"({earlier})" if earlier else "",
            _shares(of(f"pair-{queue}")["throughput"].to_list(), jain(f"pair-{queue}")),
            _shares(ours, index),
        ]
    note = (
        f"Here alone 150 s, beside CUBIC 60 s, medians; ns-3 {VERSION} 60 s, with loss 150 s, one "
        f"run; ns-3 {EARLIER_VERSION} 150 s, of pairs Jain's index alone: both flows start at "
        "once, BBRv1 30 ms earlier, CUBIC 30 ms earlier."
    )
    titles = ["paper", f"ns-3 {EARLIER_VERSION}", f"ns-3 {VERSION}", "here"]
    return grid("BBRv1", titles, rows, note)


def _shares(rates: list[float], index: float) -> str:
    return f"{rates[0]:.1f} + {rates[1]:.1f} ({index:.2f})"


@table("ns3-varied")
def varied(_runs: Runs) -> Table:
    """One BBRv1 flow alone in ns-3, one setting changed at a time."""
    rows = {label: [f"{of(run)['throughput'][0]:.1f}"] for run, label in SETTINGS.items()}
    note = "Without loss; changed settings 20 s. The paper has 42.9."
    return grid("ns-3, one BBRv1 flow alone", ["Mbit/s"], rows, note)


@table("ns3-flows")
def flow_by_flow(runs: Runs) -> Table:
    """Every flow that ran in both: the simulator, ns-3, and the ratio of the two."""
    rows = {}
    for name, (theirs, _) in ALONE.items():
        for loss in ("0", "0.5"):
            run = f"alone-{theirs}-{loss}".removesuffix("-0")
            as_long = f"minute-{name}-{loss}"
            if run == "alone-TcpBbr-0.5":
                run, as_long = "paper-0.5", "alone-bbr-0.5"
            if run in flows()["run"]:
                [flow] = of(run).iter_rows(named=True)
                rows[f"{theirs}, alone, loss {loss} %"] = _row(runs, as_long, "bbr", flow)
    for queue in QUEUES:
        for side, flow in zip(
            ("bbr", "other"), of(f"pair-{queue}").iter_rows(named=True), strict=True
        ):
            label = f"{flow['cc']}, pair, {queue} BDP"
            rows[label] = _row(runs, f"minute-{queue}", side, flow)
    note = (
        "Simulator / ns-3 (ratio), 60 s, BBRv1 with random loss 150 s: means over the seeds, one "
        "run of ns-3."
    )
    return grid("Flow", ["Throughput, Mbit/s", "Mean RTT, ms", "Retransmitted"], rows, note)


def _row(runs: Runs, experiment: str, flow: str, theirs: dict[str, float]) -> list[str]:
    ours = runs.kept(experiment, _measured).row(by_predicate=pl.col("flow") == flow, named=True)
    digits = {"throughput": 2, "rtt": 1, "retransmitted": 0}
    return [beside(ours[name], theirs[name], count) for name, count in digits.items()]


def _measured(result: Result) -> pl.DataFrame:
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


@text("ns3-index-range")
def index_range(_runs: Runs) -> str:
    """Between what the indices of the earlier ns-3 lie at 0.7 BDP."""
    indices = [jain(name) for name in EARLIER["0.7"]]
    return f"{min(indices):.2f} to {max(indices):.2f}"


@text("ns3-earlier-lossy")
def earlier_throughput(_runs: Runs) -> str:
    """BBRv1 alone with loss in the earlier ns-3, Mbit/s."""
    return f"{of('earlier-alone-0.5')['throughput'][0]:.1f}"


@figure("ns3")
def draw_ns3(runs: Runs) -> Figure:
    """Windows of one flow alone: the simulator over ns-3."""
    drawn, [line] = figures.panels(1, len(ALONE), width=figures.PAGE, height=1.9)
    for axes, (name, (theirs, look)) in zip(line, ALONE.items(), strict=True):
        result = runs[f"minute-{name}-0"]
        ours = result.of_seed(result.seeds[0]).series
        measured = windows().filter(pl.col("run") == f"alone-{theirs}")
        axes.plot(ours["t"], ours["cwnd"], color=figures.style_of(look).colour, linewidth=2.4)
        axes.plot(measured["t"], measured["cwnd"], color=figures.INK, linewidth=0.7)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, 60)
        axes.set_title(theirs)
        axes.set_xlabel("time (s)")
    line[0].set_ylabel("cwnd (packets)")
    return drawn
