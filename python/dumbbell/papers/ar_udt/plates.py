"""The figures of this reproduction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures
from dumbbell.metrics import intervals
from dumbbell.papers.ar_udt.measures import (
    BIN,
    LABELS,
    LOOKS,
    LOSSES,
    PROTOCOLS,
    RTTS,
    histogram,
    lossy,
    over_time,
)
from dumbbell.papers.frame import Plate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dumbbell.papers.frame import Runs


def draw_ratios(runs: Runs) -> Figure:
    """How often which ratio of round-trip times is predicted: the paper's figure 5."""
    figure, [line] = figures.panels(
        1, len(RTTS), width=figures.PAGE, height=1.9, share_x=True, share_y=True
    )
    colour = figures.look("udt").colour
    for rtt, axes in zip(RTTS, line, strict=True):
        bins = histogram(runs[f"ratio-{rtt}"])
        middle = (bins["bin"] - BIN / 2).to_numpy()
        axes.bar(middle, bins["share"].to_numpy(), width=BIN * 0.92, color=colour)
        axes.set_xlim(0.985, 1.015)
        axes.set_title(f"RTT {rtt} ms")
        axes.set_xlabel("R(t+1) / R(t)")
    line[0].set_ylabel("share of acknowledgements")
    return figure


def draw_over_time(rtt: int, runs: Runs) -> Figure:
    """Throughput over time, the first seed: the paper's figures 7 to 10."""
    figure, [[axes]] = figures.panels(height=2.3)
    parts = []
    for protocol in PROTOCOLS:
        result = runs[f"time-{protocol}-{rtt}"]
        first = over_time(result).filter(pl.col("seed") == result.seeds[0])
        look = {"name": LABELS[protocol], "cc": LOOKS[protocol]}
        parts.append(first.with_columns(pl.lit(v).alias(k) for k, v in look.items()))
    figures.flows(axes, pl.concat(parts), "throughput")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_xlim(0, 60)
    axes.set_ylim(0, 1050)
    axes.set_title(f"RTT {rtt} ms")
    figures.legend(axes)
    return figure


def draw_over_loss(rtt: int, runs: Runs) -> Figure:
    """Throughput over the random loss: the paper's figures 11 to 14."""
    figure, [[axes]] = figures.panels(height=2.3)
    rows = [
        intervals.point(LOOKS[protocol], float(loss), lossy(runs, protocol, rtt, loss))
        for protocol in PROTOCOLS
        for loss in LOSSES
    ]
    figures.curves(axes, rows)
    axes.set_xscale("log")
    axes.set_xlim(8e-8, 1.25e-4)
    axes.set_xlabel("loss")
    axes.set_ylabel("throughput (Mbit/s)")
    axes.set_ylim(0, 1050)
    axes.set_title(f"RTT {rtt} ms")
    _legend(axes)
    return figure


def _legend(axes: Axes) -> None:
    lines, _ = axes.get_legend_handles_labels()
    names = [LABELS[protocol] for protocol in PROTOCOLS]
    axes.legend(
        lines, names, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, columnspacing=1.0
    )


PLATES = (
    Plate(
        id="5",
        title="Predicted over last round-trip time",
        caption="UDT as it is: it only predicts. Intervals of 0.002, their upper ends included.",
        draw=draw_ratios,
        experiments=tuple(f"ratio-{rtt}" for rtt in RTTS),
        wide=True,
    ),
    *(
        Plate(
            id=f"{7 + place}",
            title=f"Throughput over time at {rtt} ms",
            caption="One flow alone, windows of 1 s, the first seed.",
            draw=partial(draw_over_time, rtt),
            experiments=tuple(f"time-{protocol}-{rtt}" for protocol in PROTOCOLS),
        )
        for place, rtt in enumerate(RTTS)
    ),
    *(
        Plate(
            id=f"{11 + place}",
            title=f"Throughput over random loss at {rtt} ms",
            caption="One flow alone; medians over the seeds and their 95 % intervals.",
            draw=partial(draw_over_loss, rtt),
            experiments=tuple(f"loss-{p}-{rtt}-{loss}" for p in PROTOCOLS for loss in LOSSES),
        )
        for place, rtt in enumerate(RTTS)
    ),
)
"""All figures."""
