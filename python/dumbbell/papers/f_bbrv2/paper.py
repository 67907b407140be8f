"""F-BBRv2: BBRv2 that asserts itself against CUBIC (Cho and Cho, 2024)."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures
from dumbbell.metrics import throughput
from dumbbell.papers import Runs, Table, Verdict, claim, figure, metric, reduce, table, text
from dumbbell.papers.helpers import grid, label, minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

COMPARED = ("bbr2", "f-bbr2")
LOSSES = ("0", "0.5")
QUEUES = ("0.5", "0.7", "1", "2", "4", "7")
CRUISE = 6.0
"""The state ProbeBW_CRUISE, as ``inspect`` shows it."""
FIRST = 10.0
"""From when on RTprop is judged, s: the life of a minimum."""


def jain(runs: Runs, experiment: str) -> float:
    return runs.value(experiment, "jain", flows=["bbr", "other"])


def rtprop(result: Result) -> pl.DataFrame:
    """RTprop of the first flow: columns seed, t (s), rtprop (s), ratio (to its first value)."""
    values = result.internals.filter(
        pl.col("flow") == "bbr", pl.col("name") == "min_rtt", pl.col("value") > 0
    ).select("seed", "t", rtprop=pl.col("value").cast(pl.Float64))
    return values.with_columns(ratio=pl.col("rtprop") / pl.col("rtprop").first().over("seed"))


@metric("within", unit="1", lowest=0)
def within(result: Result) -> list[float]:
    """The share of the time from 10 s on in which RTprop is within 1.2 times its first value."""
    late = rtprop(result).filter(pl.col("t") >= FIRST).group_by("seed", maintain_order=True)
    return late.agg((pl.col("ratio") <= 1.2).mean())["ratio"].to_list()


@metric("deviation", unit="1", lowest=0)
def deviation(result: Result) -> list[float]:
    """The standard deviation of RTprop over its first value, from 10 s on."""
    late = rtprop(result).filter(pl.col("t") >= FIRST).group_by("seed", maintain_order=True)
    return late.agg(pl.col("ratio").std())["ratio"].to_list()


def smoothed(result: Result) -> pl.DataFrame:
    """The first flow's smoothed RTT, means over 5 s and all seeds: t (s), srtt (s)."""
    series = result.series.filter(pl.col("flow") == "bbr", pl.col("srtt") > 0)
    window = ((pl.col("t") / 5.0).floor() + 0.5) * 5.0
    return series.group_by(t=window).agg(pl.col("srtt").cast(pl.Float64).mean()).sort("t")


def limits(result: Result) -> dict[str, float]:
    """What limits the first flow in Cruise.

    Shares of Cruise (0 to 1): ``window``, in which the window is full, and ``headroom``, in which
    the window is what is safe less headroom; medians: ``min_rtt`` (s), ``max_bw`` (Mbit/s).
    """
    inside = result.internals.filter(pl.col("flow") == "bbr").pivot(
        "name", index=["seed", "t"], values="value"
    )
    series = result.series.filter(pl.col("flow") == "bbr").select("seed", "t", "cwnd", "in_flight")
    cruise = inside.join(series, on=["seed", "t"]).filter(
        pl.col("state") == CRUISE, pl.col("t") >= FIRST
    )
    found = cruise.select(
        window=(pl.col("in_flight") >= pl.col("cwnd") - 2).mean(),
        headroom=(pl.col("cwnd") >= 0.85 * pl.col("inflight_longterm") - 2).mean(),
        min_rtt=pl.col("min_rtt").median(),
        max_bw=pl.col("max_bw").median() * 8e-6,
    )
    return found.cast(pl.Float64).fill_null(math.nan).row(0, named=True)


@reduce
def keep(result: Result) -> pl.DataFrame:
    """The throughput of every flow and seed, and its share of the time with CUBIC detected."""
    rates = throughput(result).select("seed", "flow", "throughput")
    seen = result.internals.filter(pl.col("name") == "cubic_detected")
    share = seen.group_by("seed", "flow").agg(detected=pl.col("value").mean())
    kept = rates.join(share, on=["seed", "flow"], how="left")
    return kept.with_columns(pl.col("flow").cast(pl.String))


def counters(result: Result) -> pl.DataFrame:
    """What the flows sent and lost: equal for two algorithms that do the same."""
    return result.flows.select("seed", "sent", "delivered", "lost", "retransmitted")


@claim("alone")
def alone(runs: Runs) -> Verdict:
    same = {}
    for loss in LOSSES:
        one, other = (runs.kept(f"alone-{cc}-{loss}", counters) for cc in COMPARED)
        same[loss] = one.equals(other)
    said = (f"loss {loss} %: {'' if equal else 'not '}the same" for loss, equal in same.items())
    return Verdict(all(same.values()), ", ".join(said) + ".")


@claim("shallow")
def shallow(runs: Runs) -> Verdict:
    losses = {
        queue: jain(runs, f"pair-bbr2-{queue}") - jain(runs, f"pair-f-bbr2-{queue}")
        for queue in QUEUES[:4]
    }
    return Verdict(
        max(losses.values()) <= 0.02,
        "BBRv2's less F-BBRv2's index: "
        + ", ".join(f"{loss:+.3f} at {queue} BDP" for queue, loss in losses.items())
        + ".",
    )


@claim("deep")
def deep(runs: Runs) -> Verdict:
    holds, said = True, []
    for queue in ("4", "7"):
        pairs = {cc: f"pair-{cc}-{queue}" for cc in COMPARED}
        rates = {
            cc: [runs.value(pair, flow=flow) for flow in ("bbr", "other")]
            for cc, pair in pairs.items()
        }
        own, other = rates["bbr2"]
        before, after = (beside - its for its, beside in rates.values())
        holds &= own < other / 2 and after <= before / 2
        said.append(
            f"{queue} BDP: "
            + ", ".join(f"{label(cc)} {a:.1f} beside {b:.1f}" for cc, (a, b) in rates.items())
            + " Mbit/s"
        )
    return Verdict(holds, "; ".join(said) + ".")


@claim("fair")
def fair(runs: Runs) -> Verdict:
    indices = {queue: jain(runs, f"pair-f-bbr2-{queue}") for queue in QUEUES}
    return Verdict(
        min(indices.values()) >= 0.9,
        ", ".join(f"{index:.2f} at {queue} BDP" for queue, index in indices.items()) + ".",
    )


@claim("rtprop")
def steady_rtprop(runs: Runs) -> Verdict:
    pairs = ("family-bbr2", "pair-bbr2-4")
    near, far = (runs.values(pair, "within") for pair in pairs)
    wild, far_wild = (runs.values(pair, "deviation") for pair in pairs)
    return Verdict(
        min(near) >= 0.99 and max(far) < 0.5 and min(far_wild) > max(wild),
        f"Within 1.2 times the first value for {100 * fmean(near):.1f} % of the time beside "
        f"BBRv2, for {100 * fmean(far):.1f} % beside CUBIC (single runs "
        f"{100 * min(far):.1f} to {100 * max(far):.1f} %). Standard deviation of the "
        f"ratio: {max(wild):.4f} at most beside BBRv2, {min(far_wild):.2f} to "
        f"{max(far_wild):.2f} beside CUBIC.",
    )


@figure("4", cc="bbr2")
@figure("4-v3", cc="bbr3")
def draw_rtprop(runs: Runs, cc: str) -> Figure:
    """RTprop over time, beside another such flow and beside CUBIC."""
    drawn, [[axes]] = figures.panels(height=2.3)
    for experiment, other in ((f"pair-{cc}-4", "cubic"), (f"family-{cc}", cc)):
        seeds = runs.kept(experiment, rtprop).partition_by("seed", maintain_order=True)
        for seed in seeds[1:]:
            colour = figures.style_of(other).colour
            axes.plot(seed["t"], seed["rtprop"] * 1e3, color=colour, linewidth=0.5, alpha=0.5)
        first = seeds[0].with_columns(name=pl.lit(f"beside {label(other)}"), cc=pl.lit(other))
        figures.flows(axes, first, "rtprop", scale=1e3)
    axes.axhline(48, color=figures.INK, linewidth=0.8, linestyle=":")
    axes.annotate("1.2", (149, 48), fontsize=7, ha="right", va="bottom")
    axes.set(xlim=(0, 150), ylim=(0, 220), ylabel=f"RTprop of a {label(cc)} flow (ms)")
    figures.legend(axes)
    return drawn


@figure("reroute")
def draw_reroute(runs: Runs) -> Figure:
    """RTprop and smoothed RTT over time while the route is longer."""
    drawn, [[left, right]] = figures.panels(1, 2, width=figures.PAGE, height=2.3)
    for cc in COMPARED:
        result, look = runs[f"reroute-{cc}"], {"name": pl.lit(label(cc)), "cc": pl.lit(cc)}
        first = rtprop(result.of_seed(result.seeds[0]))
        figures.flows(left, first.with_columns(**look), "rtprop", scale=1e3)
        figures.flows(right, smoothed(result).with_columns(**look), "srtt", scale=1e3)
    names = {left: ("RTprop (ms)", 60), right: ("smoothed RTT (ms)", 140)}
    for axes, (name, top) in names.items():
        figures.moment(axes, 50, "longer")
        figures.moment(axes, 100, "as before")
        axes.set(xlim=(0, 150), ylim=(0, top), ylabel=name)
    left.axhline(48, color=figures.INK, linewidth=0.8, linestyle=":")
    figures.legend(right)
    return drawn


@table("inside")
def table_inside(runs: Runs) -> Table:
    """What limits BBRv2 and F-BBRv2 in Cruise."""
    rows = {}
    for queue in ("4", "7"):
        for cc in COMPARED:
            found = runs.kept(f"pair-{cc}-{queue}", limits)
            shares = [f"{100 * found[what]:.0f} %" for what in ("window", "headroom")]
            ends = [f"{1e3 * found['min_rtt']:.0f}", f"{found['max_bw']:.1f}"]
            rows[f"{label(cc)}, {queue} BDP"] = [*shares, *ends]
    titles = ["Window full", "Window is 0.85 inflight_longterm"]
    titles += ["RTprop (ms)", "Bandwidth (Mbit/s)"]
    return grid("Beside CUBIC", titles, rows, "In ProbeBW_CRUISE: shares of the time, and medians.")


@table("misfires")
def table_misfires(runs: Runs) -> Table:
    """How long F-BBRv2 flows detect CUBIC where there is none."""
    found = runs.extensions["family"].group_by("flows", "queue").agg(pl.col("detected").mean())
    share = {(flows, queue): value for flows, queue, value in found.iter_rows()}
    queues = sorted({queue for _, queue in share}, key=float)
    rows = {
        str(2 * count): [f"{100 * share[str(count), queue]:.1f} %" for queue in queues]
        for count in sorted({int(flows) for flows, _ in share})
    }
    note = "Share of the time in which F-BBRv2 flows detect CUBIC, without any."
    return grid("Flows", [f"{queue} BDP" for queue in queues], rows, note)


@table("reroute")
def table_reroute(runs: Runs) -> Table:
    """What a longer route does to BBRv2 and F-BBRv2."""
    rows = {}
    for cc in COMPARED:
        result = runs[f"reroute-{cc}"]
        means = smoothed(result)
        spans = [means.filter(pl.col("t").is_between(*span)) for span in ((10, 50), (60, 100))]
        rtts = [1e3 * fmean(span["srtt"]) if span.height else math.nan for span in spans]
        while_longer = pl.col("t").is_between(60, 100), pl.col("name") == "cubic_detected"
        detected = result.internals.filter(*while_longer)["value"]  # BBRv2 has no such variable
        share = fmean(detected) if len(detected) else 0.0
        rows[label(cc)] = [f"{100 * share:.0f} %", *(f"{rtt:.0f}" for rtt in rtts)]
    titles = ["Detects CUBIC", "RTT before (ms)", "RTT while longer (ms)"]
    note = "The route is 10 ms longer from 50 to 100 s. Before: 10 to 50 s; longer: 60 to 100 s."
    return grid("Two flows of", titles, rows, note)


@text("ahead-1", name="pair-{}-1")
@text("ahead-acked-4", name="{}-4-acked")
@text("ahead-access-1", name="{}-1-access")
@text("ahead-twice-1", name="{}-1-twice")
@text("ahead-twice-4", name="{}-4-twice")
def ahead(runs: Runs, name: str) -> str:
    """By how much CUBIC is ahead of BBRv2 and of F-BBRv2, Mbit/s."""
    gaps = [runs.value(name.format(cc), "gap", flow="bbr", to="other") for cc in COMPARED]
    return minus(f"{gaps[0]:.1f} and {gaps[1]:.1f}")


@text("index-twice-bbr2", experiment="bbr2-4-twice")
@text("index-twice-f-bbr2", experiment="f-bbr2-4-twice")
def index(runs: Runs, experiment: str) -> str:
    return f"{jain(runs, experiment):.2f}"


@text("indices-acked")
def indices(runs: Runs) -> str:
    """F-BBRv2's index at every buffer size if every packet is acknowledged and CUBIC is first."""
    said = [f"{jain(runs, f'f-bbr2-{queue}-acked'):.2f} at {queue}" for queue in QUEUES]
    return f"{', '.join(said)} BDP"
