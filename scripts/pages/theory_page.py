"""Writes ``explanation/theory.md``: simulated windows beside response functions.

    python scripts/pages/theory_page.py docs

Nothing in the page is typed by hand. It takes a minute or two.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import theory
from dumbbell._core import __version__
from dumbbell.engine.runner import run_all
from dumbbell.experiment.files import write_text
from dumbbell.experiment.model import Experiment
from dumbbell.figures import curves, panels, styled, svg
from dumbbell.metrics import intervals, throughput

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

RTT: Final = 0.1
MSS: Final = 1448
LOSSES: Final = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

_PERIODS: Final = {1e-2: 1000, 1e-3: 500, 1e-4: 100, 1e-5: 40, 1e-6: 20, 1e-7: 8}
"""Periodic losses in a run: fewer where a loss is 10 million packets away."""

_SEEDS: Final = 3
"""Runs where losses are independent; where they are periodic all runs are nearly the same."""


@dataclass(frozen=True)
class Case:
    """An algorithm beside the formula for its window.

    Attributes:
        cc: The algorithm, with the options that the formula is for.
        formula: The formula's name.
        window: The average window by the loss, packets.
        independent: Whether the formula is for independent losses rather than periodic ones.
    """

    cc: str
    formula: str
    window: Callable[[float], float]
    independent: bool = False


_EXACT = ~pl.col("formula").str.contains("independent") & ~pl.col("formula").is_in(
    ["Kelly", "Xu et al."]
)
"""What is drawn and summed up: averages over time of what is built in, periodic losses."""

CASES: Final = (
    Case("reno", "Mathis", theory.reno),
    Case(
        "reno",
        "Mathis, independent losses",
        lambda p: theory.reno(p, independent=True),
        independent=True,
    ),
    Case(
        "reno",
        "Padhye, independent losses",
        lambda p: theory.pftk(p, RTT, rto=RTT + 0.2),
        independent=True,
    ),
    Case("hstcp", "RFC 3649", theory.hstcp),
    Case("stcp(low_window=16)", "Kelly", theory.stcp),
    Case("stcp(low_window=16)", "Kelly, over time", lambda p: theory.stcp(p, over_time=True)),
    Case(
        "bic(ack_ratio=off)",
        "Xu et al.",
        lambda p: theory.bic(p, s_max=16, s_min=0.2, b=1 - 819 / 1024),
    ),
    Case("bic(ack_ratio=off)", "Linux", theory.bic_linux),
    Case("cubic(slow_start=standard)", "RFC 9438", lambda p: theory.cubic(p, RTT)),
)
"""What is compared. Xu's formula takes the parameters of Linux."""


def experiment(case: Case, loss: float) -> Experiment:
    """One flow on a path so fast that no queue forms, which loses packets as the formula assumes.

    It begins at the window that theory expects, and lasts for a number of losses at that window.
    """
    window = case.window(loss)
    duration = max(30.0, _PERIODS[loss] / (loss * window) * RTT)
    name, _, options = case.cc.rstrip(")").partition("(")
    begin = f"initial_ssthresh={window:.0f}"
    return Experiment.parse(
        f"""
        duration = "{duration:.1f} s"
        seeds = {_SEEDS if case.independent else 1}
        sample = "{duration / 50:.2f} s"
        start_jitter = "100 ms"
        stack_options.receive_window = 10000000
        [[link]]
        name = "path"
        rate = "1 Tbit/s"
        queue = "unlimited"
        delay = "{RTT * 500:g} ms"
        loss = {loss if case.independent else f'"periodic(every={1 / loss:.0f})"'}
        [[flow]]
        name = "flow"
        cc = "{name}({", ".join(filter(None, [options, begin]))})"
        """
    )


def windows(result: Result) -> list[float]:
    """The average window of every seed after the first quarter, packets."""
    end = float(result.flows["end"].to_list()[0])
    rates = throughput(result, since=end / 4)["throughput"].to_list()
    return [rate * RTT / (8 * MSS) for rate in rates]


def measure() -> pl.DataFrame:
    """Simulates all cases.

    Returns:
        Columns cc, formula, loss, theory (packets), value, low, high (packets).
    """
    cells = [(case, loss) for case in CASES for loss in LOSSES]
    wanted = {(case.cc, case.independent, loss): experiment(case, loss) for case, loss in cells}
    found = {}
    for key, result in zip(wanted, run_all(list(wanted.values())), strict=True):
        found[key] = intervals.median(windows(result))
    rows = [
        {
            "cc": case.cc,
            "formula": case.formula,
            "loss": loss,
            "theory": case.window(loss),
        }
        | found[case.cc, case.independent, loss].ends
        for case, loss in cells
    ]
    return pl.DataFrame(rows)


def draw(table: pl.DataFrame) -> Figure:
    """Windows over loss: simulated as marks with lines, theory as hollow marks."""
    figure, [[axes]] = panels(width=7.16, height=3.6)
    shown = table.filter(_EXACT).with_columns(x=pl.col("loss"), published=pl.col("theory"))
    curves(axes, shown.iter_rows(named=True))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1.5e-2, 7e-8)
    axes.set_xlabel("loss")
    axes.set_ylabel("average window (packets)")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
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
    parts = [_INTRODUCTION, _stated(table), "\n".join(lines), _FIGURE, _DIFFERENCES, _AGAIN]
    return "\n\n".join(parts) + "\n"


def _stated(table: pl.DataFrame) -> str:
    """The largest error of each algorithm where windows are not small."""
    error = (pl.col("value") / pl.col("theory") - 1).abs().max()
    large = table.filter(_EXACT, pl.col("loss") < 5e-3)
    worst = large.group_by("cc", maintain_order=True).agg(error=error)
    listed = ", ".join(f"`{cc}` {share:.0%}" for cc, share in worst.iter_rows())
    at = table.filter(_EXACT, (pl.col("loss") / 1e-5 - 1).abs() < 1e-9).select(error)
    return (
        f"Largest error from 1e-3 to 1e-7 with periodic losses: {listed}; of all of them at 1e-5, "
        f"{at.item():.0%}.\n\nSimulated / theory (error), packets:"
    )


def write(docs: Path) -> Path:
    """Runs everything and writes the page and its figure into `docs`."""
    table = measure()
    with styled():
        write_text(docs / "figures/theory.svg", svg(draw(table)))
    write_text(docs / "explanation/theory.md", page(table))
    return docs / "explanation/theory.md"


_INTRODUCTION: Final = f"""\
# The simulator beside theory

`dumbbell.theory` has the response functions: the average window of a flow over the probability that
a packet is lost. Here they stand beside the simulator (dumbbell {__version__},
`stack = "linux"`): one flow, {RTT * 1000:g} ms, 1 Tbit/s, at which no queue forms. Most formulas
assume that every n-th packet is lost, as here (`loss = "periodic(every=n)"`). Where a formula is
for independent losses, so is the run, and the number is the median of {_SEEDS} seeds. A run begins
at the window that theory expects and lasts for
{", ".join(f"{n:,} losses at {p:.0e}" for p, n in _PERIODS.items())}; its first quarter does not
count."""

_FIGURE: Final = """\
![Average windows over loss: the simulator and theory](../figures/theory.svg)

Filled marks: the simulator, with 95 % intervals; hollow marks, dotted: theory."""

_DIFFERENCES: Final = """\
BIC runs as in its formulas, without the factor that makes Linux's about twice as fast with delayed
acknowledgements. CUBIC rarely exceeds the window of its last loss here, so both estimates of Reno's
window (`tcp_friendliness`) are the formula's.

Four differences are known:

- Only Padhye's formula has the round trip that a recovery takes, and the timeouts that occur at
  1e-2. The round trip matters most where losses are few round trips apart, as they always are for
  Scalable TCP.
- Kelly's 0.08 over the loss is the average over packets; the average over time is 6 % less.
- The formula of Xu et al. is for the paper's binary search, which goes half of the way in a round
  trip. Linux's goes a quarter, and takes 40 round trips for the last 8 packets.
- At 1e-7 runs have few losses. With independent ones the interval is wide, and BIC and CUBIC are
  still decreasing from their window before the first loss, by 5 % a round trip."""

_AGAIN: Final = """\
## Reproduce this page

<!-- not run: takes minutes, and rewrites this page -->
```sh
.venv/bin/python scripts/pages/theory_page.py docs
```"""


if __name__ == "__main__":
    import arguments  # beside this script; the site imports this as a module

    sys.stdout.write(f"{write(arguments.folder(__doc__, 'docs'))}\n")
