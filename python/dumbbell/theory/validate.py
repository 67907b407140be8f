"""Writes ``theory.md``: simulated windows beside response functions, from runs made on the spot.

    python -m dumbbell.theory.validate docs

Nothing in the page is typed by hand. It takes a few minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

import dumbbell
from dumbbell import theory
from dumbbell.experiment import Experiment
from dumbbell.figures import curves, panels, styled, svg
from dumbbell.files import write_text
from dumbbell.metrics import throughput
from dumbbell.papers import estimates
from dumbbell.runner import run_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

RTT: Final = 0.1
MSS: Final = 1448
LOSSES: Final = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

_SEEDS: Final = 5
_EVENTS: Final = {1e-2: 4000, 1e-3: 2000, 1e-4: 400, 1e-5: 200, 1e-6: 40, 1e-7: 8}
"""Losses in a run: fewer where a loss is 10 million packets away."""


@dataclass(frozen=True)
class Case:
    """An algorithm beside the formula for its window.

    Attributes:
        cc: The algorithm, with the options that the formula is for.
        formula: The formula's name.
        window: The average window by the loss, packets.
    """

    cc: str
    formula: str
    window: Callable[[float], float]


CASES: Final = (
    Case("reno", "Mathis, independent losses", lambda p: theory.reno(p, independent=True)),
    Case("reno", "Padhye", lambda p: theory.pftk(p, RTT, rto=RTT + 0.2)),
    Case("hstcp", "RFC 3649", theory.hstcp),
    Case("stcp(low_window=16)", "Kelly", theory.stcp),
    Case(
        "bic",
        "Xu et al.",
        lambda p: theory.bic(p, s_max=16, s_min=0.2, b=1 - 819 / 1024),
    ),
    Case("cubic(hystart=off)", "RFC 9438", lambda p: theory.cubic(p, RTT)),
)
"""What is compared. BIC's formula takes the parameters of Linux."""


def experiment(cc: str, loss: float, window: float) -> Experiment:
    """One flow on a path without a queue that loses packets independently of each other.

    It lasts for a number of losses at the window that theory expects.
    """
    rounds = _EVENTS[loss] / (loss * window)
    duration = max(60.0, rounds * RTT)
    return Experiment.parse(
        f"""
        duration = "{duration:.1f} s"
        seeds = {_SEEDS}
        sample = "{duration / 50:.2f} s"
        start_jitter = "100 ms"
        stack-options.receive-window = 10000000
        [[link]]
        name = "path"
        delay = "{RTT * 500:g} ms"
        loss = {loss}
        [[flow]]
        name = "flow"
        cc = "{cc}"
        """
    )


def measure() -> pl.DataFrame:
    """Simulates all cases.

    Returns:
        Columns cc, formula, loss, theory (packets), value, low, high (packets).
    """
    cells = [(case, loss) for case in CASES for loss in LOSSES]
    wanted = {(case.cc, loss): experiment(case.cc, loss, case.window(loss)) for case, loss in cells}
    found = {}
    for key, result in zip(wanted, run_all(list(wanted.values())), strict=True):
        end = float(result.flows["end"].to_list()[0])
        rates = throughput(result, since=end / 5)["throughput"].to_list()
        found[key] = estimates.median([rate * RTT / (8 * MSS) for rate in rates])
    rows = [
        {
            "cc": case.cc,
            "formula": case.formula,
            "loss": loss,
            "theory": case.window(loss),
            "value": found[case.cc, loss].value,
            "low": found[case.cc, loss].low,
            "high": found[case.cc, loss].high,
        }
        for case, loss in cells
    ]
    return pl.DataFrame(rows)


def draw(table: pl.DataFrame) -> Figure:
    """Windows over loss: simulated as marks with lines, theory as hollow marks."""
    figure, [[axes]] = panels(width=7.16, height=3.6)
    shown = table.filter(pl.col("formula") != "Padhye").with_columns(
        x=pl.col("loss"), published=pl.col("theory")
    )
    curves(axes, shown)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1.5e-2, 7e-8)
    axes.set_xlabel("loss")
    axes.set_ylabel("average window (packets)")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5)
    return figure


def page(table: pl.DataFrame) -> str:
    """The page, from what `measure` found."""
    head = "| Algorithm | Formula | " + " | ".join(f"{loss:.0e}" for loss in LOSSES) + " |"
    lines = [head, "|---|---|" + "---:|" * len(LOSSES)]
    for case in CASES:
        rows = table.filter(pl.col("cc") == case.cc, pl.col("formula") == case.formula)
        cells = [
            f"{row['value']:,.0f} / {row['theory']:,.0f} ({row['value'] / row['theory'] - 1:+.0%})"
            for row in rows.iter_rows(named=True)
        ]
        lines.append(f"| `{case.cc}` | {case.formula} | " + " | ".join(cells) + " |")
    return "\n\n".join([_INTRODUCTION, "\n".join(lines), _FIGURE, _DIFFERENCES, _AGAIN]) + "\n"


def write(docs: Path) -> Path:
    """Runs everything and writes the page and its figure into `docs`."""
    table = measure()
    with styled():
        write_text(docs / "figures/theory.svg", svg(draw(table)))
    write_text(docs / "theory.md", page(table))
    return docs / "theory.md"


_INTRODUCTION: Final = f"""\
# The simulator beside theory

`dumbbell.theory` has the response functions: the average window of a flow over the probability that
a packet is lost. Here they stand beside the simulator (dumbbell {dumbbell.__version__},
`stack = "linux"`): one flow, {RTT * 1000:g} ms, no queue and no limit of rate, every packet lost
independently of all others with the same probability. Medians of {_SEEDS} seeds over the last four
fifths of a run that lasts for {", ".join(f"{n:,} losses at {p:.0e}" for p, n in _EVENTS.items())}.

Simulated / theory (error), packets:"""

_FIGURE: Final = """\
![Average windows over loss: the simulator and theory](figures/theory.svg)

Filled marks: the simulator, with 95 % intervals; hollow marks, dotted: theory."""

_DIFFERENCES: Final = """\
Three differences are known. Mathis's 1.31 is for losses that are independent, as they are here; the
other formulas take one loss after every 1/p packets, and independent ones leave a larger or smaller
average by the shape of the window's growth. At 1e-2 windows are so small that timeouts count, which
Padhye's formula alone knows. At 1e-7 a run sees few losses, and its interval is wide."""

_AGAIN: Final = """\
## Again

```sh
.venv/bin/python -m dumbbell.theory.validate docs
```"""


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1] if len(sys.argv) > 1 else 'docs'))}\n")
