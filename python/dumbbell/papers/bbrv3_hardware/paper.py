"""Self-induced queueing delay of BBRv3 (Bless, Lihotzki and Zitterbart, 2025).

Queueing delays are in minimum round-trip times, as in the authors' slides: the bytes that wait at
the bottleneck over its rate, sampled 10 times a second from beginning to end.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures
from dumbbell.experiment.quantities import RATE
from dumbbell.metrics.convergence_times import HOLD, convergence
from dumbbell.papers import Runs, Verdict, claim, figure, metric
from dumbbell.papers.helpers import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

RTTS = ("10", "20", "50")
BUFFERS = ("0.8", "1", "2", "8")
MANY = ("4", "8", "16", "32")
SETTLED = 10.0
"""From when on bandwidth estimates are judged, s."""
WINDOW = 5.0
"""The highest queueing delay of each of these many seconds is a peak: BBRv3 probes at least once in
them (draft-ietf-ccwg-bbr-06, section 5.3.3.8.3: 2 to 3 s later)."""
UP = 5.0
"""The state ProbeBW_UP, as ``inspect`` shows it."""
LATE_LIMIT = 53.0 - 2.0 - HOLD
"""How long after the second flow's start a run shows that flows share fairly, s."""


def rate(result: Result) -> float:
    """The rate of the bottleneck, bit/s."""
    return RATE.parse(result.experiment.links[0].rate or "")


def delays(result: Result) -> pl.DataFrame:
    """Columns seed, t (s), delay (RTTmin): the queueing delay of a packet that arrives then."""
    rtt = result.flows["base_rtt"].min()
    delay = 8 * pl.col("queue_bytes").cast(pl.Float64) / rate(result) / rtt
    return result.links.select("seed", "t", delay=delay)


def by_seed(table: pl.DataFrame, value: pl.Expr) -> list[float]:
    return table.group_by("seed", maintain_order=True).agg(value=value)["value"].to_list()


@metric("queue", unit="RTTmin", lowest=0)
def queue(result: Result, quantile: float = 0.5) -> list[float]:
    return by_seed(delays(result), pl.col("delay").quantile(quantile, "linear"))


@metric("mean_queue", unit="RTTmin", lowest=0)
def mean_queue(result: Result, since: float, until: float) -> list[float]:
    return by_seed(
        delays(result).filter(pl.col("t").is_between(since, until)), pl.col("delay").mean()
    )


@metric("long", unit="1", lowest=0, highest=1)
def long_queue(result: Result, least: float) -> list[float]:
    """The share of the time with a queueing delay of at least so many RTTmin."""
    return by_seed(delays(result), (pl.col("delay") >= least).mean())


@metric("peak", unit="RTTmin", lowest=0)
def peak(result: Result) -> list[float]:
    """The median over windows of 5 s, the first left out, of the highest queueing delay."""
    late = delays(result).filter(pl.col("t") > WINDOW)
    window = (pl.col("t") / WINDOW).ceil()
    peaks = late.group_by("seed", window, maintain_order=True).agg(pl.col("delay").max())
    return by_seed(peaks, pl.col("delay").median())


@metric("interval", unit="s", lowest=0)
def interval(result: Result) -> list[float]:
    """The mean time from one ProbeBW_UP to the next."""
    state = result.internals.filter(pl.col("name") == "state")
    is_up = pl.col("value") == UP
    begins = is_up & ~is_up.shift(1, fill_value=False).over("seed")
    return by_seed(state.filter(begins), pl.col("t").diff().mean())


def estimated(result: Result) -> pl.DataFrame:
    """The sum of the flows' max_bw over what the link can carry of it: seed, t (s), ratio."""
    payload = 1448 / 1500  # of a packet on the wire: max_bw counts the payload
    ratio = 8 * pl.col("value").sum() / rate(result) / payload
    found = result.internals.filter(pl.col("name") == "max_bw", pl.col("t") >= SETTLED)
    return found.group_by("seed", "t", maintain_order=True).agg(ratio=ratio)


@metric("above", unit="1", lowest=0, highest=1)
def above(result: Result, share: float = 0.0) -> list[float]:
    """The share of the time in which the flows together estimate more than the link's rate."""
    return by_seed(estimated(result), (pl.col("ratio") > 1 + share).mean())


@metric("fair", unit="s", lowest=0)
def fair(result: Result) -> list[float | None]:
    return convergence(result)["fair"].to_list()


def listed(values: Iterable[float], digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


@claim("peaks")
def peaks(runs: Runs) -> Verdict:
    v3, v1, cubic = (runs.value(f"one-{cc}-100-50", "peak") for cc in ("bbr3", "bbr", "cubic"))
    said = f"BBRv3 {v3:.2f}, BBRv1 {v1:.2f}, CUBIC {cubic:.2f} RTTmin."
    return Verdict(v3 >= 2 * v1 and v3 <= cubic / 4, said)


@claim("faster")
def faster(runs: Runs) -> Verdict:
    slow, fast = (
        [runs.value(f"one-bbr3-{mbits}-{rtt}", "queue", quantile=0.75) for rtt in RTTS]
        for mbits in (100, 500)
    )
    worse = all(b >= 2 * a for a, b in zip(slow, fast, strict=True))
    return Verdict(
        worse and all(short > long for short, long in pairwise(fast)),
        f"75th percentiles for 10, 20 and 50 ms: {listed(slow)} RTTmin at 100 Mbit/s, "
        f"{listed(fast)} RTTmin at 500 Mbit/s.",
    )


@claim("half")
def half(runs: Runs) -> Verdict:
    shares = {
        buffer: [runs.value(f"two-100-{rtt}-{buffer}", "long", least=0.9) for rtt in RTTS]
        for buffer in ("2", "8")
    }
    said = (f"{listed(values)} with {buffer} BDP" for buffer, values in shares.items())
    return Verdict(
        all(share > 0.5 for values in shares.values() for share in values),
        f"Share of the time for 10, 20 and 50 ms: {'; '.join(said)}.",
    )


@claim("several")
def several(runs: Runs) -> Verdict:
    shares = {
        flows: [runs.value(f"many-100-{flows}-{rtt}", "long", least=1.0) for rtt in RTTS]
        for flows in MANY
    }
    said = (f"{listed(values)} with {flows} flows" for flows, values in shares.items())
    return Verdict(
        all(share > 0.5 for values in shares.values() for share in values),
        f"Share of the time for 10, 20 and 50 ms: {'; '.join(said)}.",
    )


@claim("overestimate")
def overestimate(runs: Runs) -> Verdict:
    two = [runs.value(f"two-100-{rtt}-8", "above") for rtt in RTTS]
    one = [runs.value(f"one-bbr3-100-{rtt}", "above", share=0.01) for rtt in RTTS]
    return Verdict(
        min(two) > 0.9 and max(one) < 0.1,
        f"Share of the time for 10, 20 and 50 ms: {listed(two)} with two flows, {listed(one)} with "
        "one.",
    )


@claim("more")
def more(runs: Runs) -> Verdict:
    medians = {
        rtt: [
            runs.value(f"two-100-{rtt}-8", "queue"),
            *(runs.value(f"many-100-{flows}-{rtt}", "queue") for flows in MANY),
        ]
        for rtt in RTTS
    }
    said = (f"{rtt} ms: {listed(values)}" for rtt, values in medians.items())
    return Verdict(
        all(few < many for values in medians.values() for few, many in pairwise(values)),
        f"Medians in RTTmin for 2, 4, 8, 16 and 32 flows. {'; '.join(said)}.",
    )


@claim("rtt")
def rtt_unfairness(runs: Runs) -> Verdict:
    ratios = [
        runs.value(f"rtt-{buffer}", "ratio", flow="second", over="first") for buffer in ("0.8", "8")
    ]
    said = f"The flow with 50 ms has {listed(ratios, 1)} times as much with 0.8 and 8 BDP."
    return Verdict(min(ratios) > 1, said)


@claim("cubic")
def beside_cubic(runs: Runs) -> Verdict:
    shares = [runs.value(f"cubic-{buffer}", "share", flow="first") for buffer in BUFFERS]
    said = f"BBRv3's share with 0.8, 1, 2 and 8 BDP: {listed(shares)}."
    return Verdict(min(shares) > 0.6, said)


@claim("late")
def late(runs: Runs) -> Verdict:
    together, apart = (
        math.inf if found is None else found
        for found in (
            runs.median(f"late-{start}", "fair", limit=LATE_LIMIT).value for start in (0, 2)
        )
    )
    said = f"Started together {together:.0f} s, 2 s apart {apart:.0f} s."
    return Verdict(apart > together, said)


@figure("one")
def draw_one(runs: Runs) -> Figure:
    """Distributions of the queueing delay: rates and round-trip times; algorithms."""
    drawn, [line] = figures.panels(1, 2, width=figures.PAGE, height=2.6)
    cases = [(f"one-bbr3-{rate}-{rtt}", rate, rtt) for rtt in RTTS for rate in ("100", "500")]
    for name, mbits, rtt in cases:
        style = figures.style_of(runs.paper.looks[rtt])
        dashes = "-" if mbits == "100" else "--"
        text = f"{rtt} ms, {mbits} Mbit/s"
        line[0].plot(*distribution(runs, name), color=style.colour, linestyle=dashes, label=text)
    for cc in ("bbr3", "bbr", "cubic"):
        style = figures.style_of(cc)
        xy = distribution(runs, f"one-{cc}-100-50")
        line[1].plot(*xy, color=style.colour, label=label(cc))
    line[0].set(title="BBRv3", xlim=(0, 2), ylabel="share of samples")
    line[1].set(title="100 Mbit/s, 50 ms", xlim=(0, 8.2))
    for axes in line:
        axes.set(ylim=(0, 1.02), xlabel="queueing delay (RTTmin)")
        axes.legend(loc="lower right")
    return drawn


def distribution(runs: Runs, experiment: str) -> tuple[Sequence[float], Sequence[float]]:
    """The queueing delays of all runs in order, and which share of them is at most as long."""
    found = sorted(runs.kept(experiment, delays)["delay"])
    return found, [(place + 1) / len(found) for place in range(len(found))]


@figure("probes")
def draw_probes(runs: Runs) -> Figure:
    """The queueing delay of BBRv3 and of BBRv1 over the first 16 s, as in the slide."""
    drawn, [[axes]] = figures.panels(height=2.3)
    for cc in ("bbr3", "bbr"):
        first = runs.kept(f"one-{cc}-100-50", delays)
        one = first.filter(pl.col("seed") == first["seed"][0])
        axes.plot(one["t"], one["delay"], color=figures.style_of(cc).colour, label=label(cc))
    axes.set(xlim=(0, 16), ylim=(0, None), xlabel="time (s)", ylabel="queueing delay (RTTmin)")
    figures.legend(axes)
    return drawn


@figure("late")
def draw_late(runs: Runs) -> Figure:
    """The queueing delay over time, by the start of the second flow."""
    drawn, [[axes]] = figures.panels(height=2.3)
    for start, cc in (("0", "bbr3"), ("2", "cubic")):
        window = (pl.col("t") - 1e-9).floor() + 0.5
        means = (
            runs.kept(f"late-{start}", delays)
            .group_by("seed", t=window)
            .agg(pl.col("delay").mean())
            .group_by("t")
            .agg(pl.col("delay").median())
            .sort("t")
        )
        colour = figures.style_of(cc).colour
        axes.plot(means["t"], means["delay"], color=colour, label=f"{start} s later")
    axes.set(xlim=(0, 53), ylim=(0, None), xlabel="time (s)", ylabel="queueing delay (RTTmin)")
    figures.legend(axes)
    return drawn
