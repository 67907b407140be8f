"""AR-UDT beside UDT and TCP on a link of 1 Gbit/s (An, Wang, Kim and Cho)."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING

import polars as pl

from dumbbell import figures, metrics
from dumbbell.metrics import intervals
from dumbbell.papers import Runs, Table, Verdict, claim, figure, metric, number, table, text
from dumbbell.papers.helpers import grid, listed, minus, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.results.result import Result

LABELS = {"ar-udt": "AR-UDT", "tcp": "TCP", "udt": "UDT"}
RTTS = (1, 50, 100, 200)
LOSSES = ("1e-7", "1e-6", "1e-5", "1e-4")
BIN = 0.002
"""Width of an interval of figure 5."""
PAYLOAD = {"tcp": 1460 / 1500, "udt": 1456 / 1500}
"""The share of payload in a full packet, by transport."""


def carried(result: Result) -> pl.DataFrame:
    """Payload that the link has carried, bytes, by seed and time.

    As in a trace of NS-2, everything counts that leaves the link: retransmitted packets too.
    """
    [flow] = result.experiment.flows
    payload = pl.col("sent_bytes") * PAYLOAD[flow.transport]
    return result.links.select("seed", "t", carried=payload)


def over_time(result: Result) -> pl.DataFrame:
    """The throughput in windows of 1 s, Mbit/s: columns seed, t (their end), throughput."""
    grown = pl.col("carried") - pl.col("carried").shift(1).over("seed")
    rate = 8 * grown / (pl.col("t") - pl.col("t").shift(1).over("seed")) / 1e6
    return carried(result).select("seed", "t", throughput=rate).drop_nulls()


def histogram(result: Result) -> pl.DataFrame:
    """Figure 5: columns bin (its upper end, which belongs to it) and share (0 to 1), ascending."""
    ratios = result.internals.filter(pl.col("name") == "rtt_ratio")["value"]
    upper = (((ratios - 1.0) / BIN - 1e-9).ceil().cast(pl.Int64)).alias("bin")
    counted = upper.value_counts().sort("bin")
    share = pl.col("count") / pl.col("count").sum()
    return counted.select((pl.col("bin") * BIN + 1.0).round(4), share=share)


@metric("carried", unit="Mbit/s", lowest=0)
def mean_carried(result: Result) -> list[float]:
    """The mean rate of `carried`."""
    last = carried(result).group_by("seed", maintain_order=True).last()
    return (8 * last["carried"] / last["t"] / 1e6).to_list()


@metric("goodput", unit="Mbit/s", lowest=0)
def goodput(result: Result) -> list[float]:
    return (metrics.goodput(result)["goodput"] / 1e6).to_list()


@metric("retransmitted", unit="%", lowest=0)
def retransmitted(result: Result) -> list[float]:
    return (100 * metrics.retransmission_share(result)["retransmission_share"]).to_list()


@metric("caused", unit="%", lowest=0)
def caused(result: Result) -> list[float]:
    """Packets that the queue dropped, of all that were sent."""
    sent = result.flows.group_by("seed", maintain_order=True).agg(pl.col("sent").sum())
    last = result.links.group_by("seed", maintain_order=True).last()
    return (100 * last["dropped"] / sent["sent"]).to_list()


@metric("goodput-of", unit="Mbit/s", lowest=0)
def goodput_of(result: Result, flow: str) -> list[float]:
    """The goodput of one of several flows."""
    return (metrics.goodput(result).filter(flow=flow)["goodput"] / 1e6).to_list()


@metric("unsteadiness", unit="Mbit/s", lowest=0)
def unsteadiness(result: Result) -> list[float]:
    """The standard deviation of the throughput in windows of 1 s from 15 s on."""
    late = over_time(result).filter(pl.col("t") > 15.0)
    spread = late.group_by("seed", maintain_order=True).agg(pl.col("throughput").std())
    return spread["throughput"].to_list()


def rate(runs: Runs, experiment: str) -> float:
    return runs.value(experiment, "carried")


def named(values: Mapping[str, float], digits: int = 0) -> str:
    return listed(values, digits, label=LABELS.__getitem__)


def alone(runs: Runs) -> dict[int, dict[str, float]]:
    """Figures 7 to 10: throughputs, Mbit/s, by round-trip time and protocol."""
    return {rtt: {p: rate(runs, f"time-{p}-{rtt}") for p in LABELS} for rtt in RTTS}


def lossy(runs: Runs, rtt: int) -> dict[str, dict[str, float]]:
    """Figures 11 to 14: throughputs, Mbit/s, by loss and protocol."""
    return {loss: {p: rate(runs, f"loss-{p}-{rtt}-{loss}") for p in LABELS} for loss in LOSSES}


def kept(runs: Runs, rtt: int, loss: str) -> dict[str, float]:
    """The share of the throughput at a loss of 1e-7 that remains, by protocol."""
    rates = lossy(runs, rtt)
    return {p: rates[loss][p] / rates["1e-7"][p] for p in LABELS}


@number("gain-udt", plain="time-udt-200")
@number("gain-tcp", plain="time-tcp-200")
def gain_over(runs: Runs, plain: str, adaptive: str = "time-ar-udt-200") -> Estimate:
    """By how much AR-UDT's throughput is above that of another protocol, %."""
    other = rate(runs, plain)
    return intervals.median([100 * (one / other - 1) for one in runs.values(adaptive, "carried")])


@claim("order")
def order(runs: Runs) -> Verdict:
    rates = alone(runs)
    best = {rtt: max(LABELS, key=of.__getitem__) for rtt, of in rates.items()}
    return Verdict(
        best[1] == "tcp" and best[100] == best[200] == "ar-udt",
        "; ".join(f"{rtt} ms: {named(of)}" for rtt, of in rates.items()) + " (Mbit/s).",
    )


@claim("never-worse")
def never_worse(runs: Runs) -> Verdict:
    gains = {rtt: rates["ar-udt"] / rates["udt"] for rtt, rates in alone(runs).items()}
    return Verdict(
        min(gains.values()) >= 1,
        "AR-UDT over UDT: " + ", ".join(f"{x:.3f} at {rtt} ms" for rtt, x in gains.items()) + ".",
    )


@claim("stable")
def stable(runs: Runs) -> Verdict:
    spread = {p: runs.value(f"time-{p}-50", "unsteadiness") for p in LABELS}
    return Verdict(
        spread["ar-udt"] < spread["udt"] and spread["ar-udt"] <= spread["tcp"],
        f"Standard deviations: {named(spread, 1)} (Mbit/s).",
    )


@claim("loss-near")
def loss_near(runs: Runs) -> Verdict:
    light, medium, heavy = (kept(runs, 1, loss) for loss in LOSSES[1:])
    flat = all(min(light[p], medium[p]) >= 0.95 and heavy[p] < medium[p] for p in LABELS)
    remain = (f"{LABELS[p]} {light[p]:.2f}, {medium[p]:.2f}, {heavy[p]:.2f}" for p in LABELS)
    return Verdict(
        flat and min(heavy, key=heavy.__getitem__) == "tcp",
        f"Of the throughput at 1e-7 remain at 1e-6, 1e-5 and 1e-4: {'; '.join(remain)}.",
    )


@claim("loss-far")
def loss_far(runs: Runs) -> Verdict:
    heavy = {rtt: kept(runs, rtt, "1e-4") for rtt in RTTS[1:]}
    flat = all(min(shares["udt"], shares["ar-udt"]) >= 0.8 for shares in heavy.values())
    remain = (f"{named(shares, 2)} at {rtt} ms" for rtt, shares in heavy.items())
    return Verdict(
        flat and all(shares["tcp"] < 1 / 3 for shares in heavy.values()),
        f"Of the throughput at 1e-7 remains at 1e-4: {'; '.join(remain)}.",
    )


@claim("loss-best")
def loss_best(runs: Runs) -> Verdict:
    rates = lossy(runs, 50)
    best = [max(LABELS, key=of.__getitem__) for of in rates.values()]
    return Verdict(
        best[1:] == ["ar-udt"] * 3,
        "; ".join(f"{loss}: {named(of)}" for loss, of in rates.items()) + " (Mbit/s).",
    )


@claim("loss-tcp")
def loss_tcp(runs: Runs) -> Verdict:
    least = {
        rtt: [min(LABELS, key=of.__getitem__) for of in lossy(runs, rtt).values()]
        for rtt in RTTS[2:]
    }
    slowest = (
        f"slowest at {rtt} ms: " + ", ".join(LABELS[p] for p in names)
        for rtt, names in least.items()
    )
    return Verdict(
        all(names == ["tcp"] * len(LOSSES) for names in least.values()),
        f"{'; '.join(slowest)} (losses of {', '.join(LOSSES)}).",
    )


@claim("ratio")
def ratio(runs: Runs) -> Verdict:
    found, confirmed = [], True
    for rtt in RTTS:
        bins = runs.kept(f"ratio-{rtt}", histogram).sort("share", descending=True).head(3)
        confirmed &= bins["bin"].to_list()[:2] == [1.0, 1.002]
        shares = ", ".join(f"{share:.0%} up to {bin_:g}" for bin_, share in bins.iter_rows())
        found.append(f"{rtt} ms: {shares}")
    return Verdict(confirmed, "; ".join(found) + ".")


@figure("5")
def draw_ratios(runs: Runs) -> Figure:
    """How often which ratio of round-trip times is predicted."""
    drawn, [line] = figures.panels(
        1, len(RTTS), width=figures.PAGE, height=1.9, share_x=True, share_y=True
    )
    for rtt, axes in zip(RTTS, line, strict=True):
        bins = runs.kept(f"ratio-{rtt}", histogram)
        colour = figures.style_of("udt").colour
        axes.bar(bins["bin"] - BIN / 2, bins["share"], width=BIN * 0.92, color=colour)
        axes.set(xlim=(0.985, 1.015), xlabel="R(t+1) / R(t)", title=f"RTT {rtt} ms")
    line[0].set_ylabel("share of acknowledgements")
    return drawn


@figure("7", rtt=1)
@figure("8", rtt=50)
@figure("9", rtt=100)
@figure("10", rtt=200)
def draw_over_time(runs: Runs, rtt: int) -> Figure:
    """Throughput over time, the first seed."""
    drawn, [[axes]] = figures.panels(height=2.3)
    for protocol, cc in (("ar-udt", "ar-udt"), ("tcp", "reno"), ("udt", "udt")):
        result = runs[f"time-{protocol}-{rtt}"]
        first = over_time(result.of_seed(result.seeds[0]))
        named = first.with_columns(name=pl.lit(LABELS[protocol]), cc=pl.lit(cc))
        figures.flows(axes, named, "throughput")
    axes.set(xlim=(0, 60), ylim=(0, 1050), ylabel="throughput (Mbit/s)", title=f"RTT {rtt} ms")
    figures.legend(axes)
    return drawn


@table("fairness")
def fairness(runs: Runs) -> Table:
    """Flows that share the link: what each kind gets, how fair that is, what it costs."""
    rows = {}
    kind = pl.col("flow").str.split("-").list.first()
    for template in runs.paper.extensions:
        cells = runs.extensions[template.id].group_by([*template.each], maintain_order=True)
        for key, cell in cells:
            chosen = dict(zip(template.each, map(str, key), strict=True))
            names = [runs.paper.label(chosen[of]) for of in ("cc", "other") if of in chosen]
            count = 2 * int(chosen.get("pairs", 1))
            flows = " beside ".join(names) if len(names) > 1 else f"{count} {names[0]}"
            by_kind = cell.group_by("seed", kind=kind).agg(pl.col("throughput").mean() / 1e6)
            shares = [by_kind.filter(kind=which)["throughput"] for which in ("first", "second")]
            index = median(metrics.jain(one["throughput"]) for one in cell.partition_by("seed"))
            rows[f"{flows}, {chosen.get('rtt', '10 and 100')} ms"] = [
                *(f"{median(share):.0f}" for share in shares),
                f"{index:.3f}",
                f"{fmean(cell['retransmission_share']):.1%}",
                f"{1e3 * fmean(cell['queue_delay_mean']):.1f} ms",
            ]
    titles = ("first, Mbit/s", "second, Mbit/s", "Jain's index", "retransmitted", "queue")
    note = "Retransmitted and queueing delay: means over flows and seeds."
    return grid("Flows, RTT", titles, rows, note)


@text("gain", plain="time-udt-200")
@text("gain-from-reports", plain="time-udt-200", adaptive="forecast-smooth=off-200")
@text("gain-module", plain="module-udt-200", adaptive="module-ar-udt-200")
def gain(runs: Runs, **experiments: str) -> str:
    return minus(f"{gain_over(runs, **experiments).value:.0f}")


@text("blast")
def blast(runs: Runs) -> str:
    """RBUDP's goodput at 200 ms, next to no loss, Mbit/s."""
    return f"{runs.value('related-rbudp-200-1e-7', 'goodput'):.0f}"


@text("around-one")
def around_one(runs: Runs) -> str:
    """How the ratio is spread about 1 if the reports are taken as they come."""
    found = []
    for rtt in RTTS:
        shares = dict(runs.kept(f"ratio-reports-{rtt}", histogram).iter_rows())
        found.append(f"{shares[1.0]:.0%} up to 1 and {shares[1.002]:.0%} above it at {rtt} ms")
    return ", ".join(found)


@text("deviation-module", experiment="module-udt-50")
@text("deviation", experiment="time-udt-50")
def deviation(runs: Runs, experiment: str) -> str:
    return f"{runs.value(experiment, 'unsteadiness'):.1f}"


@text("near")
def near(runs: Runs) -> str:
    """How many numbers of the text are near the paper's."""
    [throughputs] = runs.paper.tables
    off = [abs(ratio - 1) for ratio in ratios(runs, throughputs).values()]
    within = sum(one <= 0.15 for one in off)
    return f"{within} of {len(off)} are within 15 % of the paper, all within {max(off):.0%}."
