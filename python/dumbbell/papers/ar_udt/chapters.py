"""What the report tells beside numbers and claims."""

from __future__ import annotations

from math import sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING

import polars as pl

from dumbbell.display import Column, Table
from dumbbell.metrics import jain, retransmission_share
from dumbbell.papers.ar_udt.measures import (
    FORECASTS,
    LABELS,
    PROTOCOLS,
    PUBLISHED,
    QUEUES,
    RTTS,
    SHORT_LIST,
    alone,
    histogram,
    known,
    rate,
    unsteadiness,
    useful,
)
from dumbbell.papers.frame import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dumbbell.papers.frame import Runs


def sections(runs: Runs) -> list[Section]:
    """The parts of the report, in order."""
    parts = [
        Section(
            "Throughput without random loss",
            (
                "Simulated / published, and their ratio. Whatever comes out of the link counts, as "
                "in a trace of NS-2.",
                _near(runs),
            ),
            tables=(over_time(runs),),
            plates=("7", "8", "9", "10"),
        ),
        Section(
            "Throughput with random loss",
            (
                "That UDT hardly depends on the loss is not what its own equations say. At r bit/s "
                "with packets of 12,000 bits and a loss p, there are p r / 12,000 losses a second; "
                "each takes a ninth of the rate, and 120 Mbit/s come back in a second (equations 1 "
                "to 3, while more than a tenth of the link is free). Both balance at r = sqrt(9 x "
                f"12,000 x 1.2e8 / p), which is {_balance(1e-4):.0f} Mbit/s at 1e-4 and "
                f"{_balance(1e-5):.0f} Mbit/s, more than the link has, at 1e-5. AR-UDT's weights "
                "give a rate back within a few acknowledgements.",
                "That TCP falls most at 1 ms is not what its sawtooth gives, either: at 1e-4 "
                f"Reno's window is sqrt(3 / 2p) = {sqrt(1.5 / 1e-4):.0f} packets on average, and "
                "the path holds 83.",
            ),
            plates=("11", "12", "13", "14"),
        ),
        Section(
            "How the round-trip time is predicted to change",
            (
                "The ratio hardly leaves 0.998 to 1.002, where alpha and beta let AR-UDT choose "
                "between 0.999 and 1 as its weight: whether it is just below 1 or just above "
                "decides, and the first makes the rate 5 % higher every 10 ms at 1 Gbit/s.",
                "Most of the time UDT becomes faster and the queue longer, so that the round-trip "
                "time which the sender smooths grows more often than it falls. The reports as they "
                f"come are noisier, and have the paper's order: {_around_one(runs)}. Figure 5 may "
                "have been made from those; the throughput of AR-UDT speaks for the others.",
            ),
            plates=("5",),
        ),
        Section(
            "What these numbers rest on: losses that nobody repairs",
            (
                "The UDT of NS-2 acknowledges past what is missing. A loss costs a reduction and a "
                "pause until the next report, of 10 ms at most, but the window goes on, and what "
                "is lost stays lost. UDT4, which is what is deployed, waits for it. There the "
                "weights of AR-UDT, which compound, drive the period to its least value until only "
                "the window holds the sender back; the queue overflows in every cycle, the lost "
                "packets are sent again in bursts that overflow it once more, and no "
                "acknowledgement comes until they have arrived. UDT, which loses little, is much "
                "the same over both.",
            ),
            tables=(deployed(runs),),
        ),
        Section(
            "How much hangs on what the paper leaves unsaid",
            (
                "The queue, for which 2700 packets stand, and what the prediction goes by: the "
                "weights w1 and w2 = 1 - w1, for which 0.25 and 0.75 stand, and whether the "
                "round-trip times are those that the sender smooths, as the module does for rate "
                "control, or the reports as they come.",
                "The queue decides whether TCP fills the link, and with short queues whether "
                "AR-UDT is ahead of UDT at all. The weights w1 and w2 hardly matter; what they "
                "weigh does. At 200 ms the paper has AR-UDT 14 % above UDT; here it is "
                f"{_gain(runs, 'time-ar-udt-200'):.0f} %, and with the reports as they come "
                f"{_gain(runs, 'forecast-smooth=off-200'):.0f} %.",
            ),
            tables=(queues(runs), forecasts(runs)),
        ),
        Section(
            "How much hangs on light acknowledgements",
            (
                "UDT4 acknowledges every 64th packet besides what it does every 10 ms; the module "
                "of 2006 does not. There a window of the arrival speed times RTT + 10 ms holds "
                "just what the link carries, the queue does not fill again once UDT has found its "
                "rate, and from 15 s on the standard deviation of its throughput at 50 ms is "
                f"{_drops(runs, 'module-udt-50'):.1f} Mbit/s, where it is "
                f"{_drops(runs, 'time-udt-50'):.1f} with them. The paper tells of five sudden "
                "drops of UDT in figure 8; so light acknowledgements stand for what it ran. "
                "Without them AR-UDT is ahead of UDT at every round-trip time too, but by "
                f"{_gain(runs, 'module-ar-udt-200', 'module-udt-200'):.0f} % at 200 ms.",
            ),
            tables=(acknowledgements(runs),),
        ),
    ]
    if runs.beyond:
        parts.append(
            Section(
                "Beyond the paper: fairness",
                (
                    "What the paper names as future work, with UDT4 as it is deployed, over 100 s "
                    "with a queue of one BDP. Medians over three seeds; where a case has several "
                    "flows of a kind, their mean.",
                    "UDT flows share alike, with different round-trip times too: the rate is "
                    "controlled every 10 ms, not every round trip. AR-UDT leaves next to nothing "
                    "to UDT, CUBIC and BBRv3, and sends many packets again and again when several "
                    "such flows compete.",
                ),
                tables=(fairness(runs),),
            )
        )
    return parts


def over_time(runs: Runs) -> Table:
    """The numbers of the text, simulated beside published."""
    columns = [Column("RTT"), *(Column(LABELS[p], number=True) for p in PROTOCOLS)]
    rows = [
        [f"{rtt} ms"]
        + [
            _beside(known(alone(runs, p, rtt)), PUBLISHED[f"throughput-{rtt}-{p}"])
            for p in PROTOCOLS
        ]
        for rtt in RTTS
    ]
    return Table(columns, rows, "Throughput of one flow, Mbit/s.")


def deployed(runs: Runs) -> Table:
    """UDT and AR-UDT over both transports: goodput, and what is sent again."""
    titles = ["UDT in NS-2", "AR-UDT in NS-2", "UDT4", "AR-UDT over UDT4"]
    titles += ["UDT4 sends again", "AR-UDT sends again"]
    columns = [Column("RTT"), *(Column(title, number=True) for title in titles)]
    rows = []
    for rtt in RTTS:
        module = [runs[f"time-{p}-{rtt}"] for p in ("udt", "ar-udt")]
        real = [runs[f"udt4-{p}-{rtt}"] for p in ("udt4", "ar-udt4")]
        again = [fmean(retransmission_share(result)["retransmission_share"]) for result in real]
        rows.append(
            [f"{rtt} ms"]
            + [f"{known(useful(result)):.0f}" for result in (*module, *real)]
            + [f"{share:.1%}" for share in again]
        )
    return Table(columns, rows, "Data that has come, Mbit/s; packets sent again, of all sent.")


def queues(runs: Runs) -> Table:
    """The numbers of the text with other queues."""
    columns = [Column("Queue")]
    columns += [
        Column(f"{LABELS[p]}, {rtt} ms", number=True) for rtt in SHORT_LIST for p in PROTOCOLS
    ]
    cells = [(p, rtt) for rtt in SHORT_LIST for p in PROTOCOLS]
    rows = [["the paper", *(f"{PUBLISHED[f'throughput-{rtt}-{p}']:.0f}" for p, rtt in cells)]]
    rows.append(["2700 packets", *(f"{known(alone(runs, p, rtt)):.0f}" for p, rtt in cells)])
    for queue in QUEUES:
        found = [known(rate(runs[f"queue-{queue}-{p}-{rtt}"])) for p, rtt in cells]
        rows.append([queue, *(f"{value:.0f}" for value in found)])
    return Table(columns, rows, "Throughput, Mbit/s; one seed but for 2700 packets.")


def forecasts(runs: Runs) -> Table:
    """AR-UDT's numbers with other predictions."""
    columns = [Column("Prediction"), *(Column(f"{rtt} ms", number=True) for rtt in SHORT_LIST)]
    rows = [["w1 = 0.25", *(f"{known(alone(runs, 'ar-udt', rtt)):.0f}" for rtt in SHORT_LIST)]]
    for forecast, label in FORECASTS.items():
        found = [known(rate(runs[f"forecast-{forecast}-{rtt}"])) for rtt in SHORT_LIST]
        rows.append([label, *(f"{value:.0f}" for value in found)])
    return Table(columns, rows, "Throughput of AR-UDT, Mbit/s.")


def acknowledgements(runs: Runs) -> Table:
    """The numbers of the text with and without light acknowledgements."""
    cells = [(p, rtt) for p in ("udt", "ar-udt") for rtt in RTTS]
    columns = [Column("Acknowledged")]
    columns += [Column(f"{LABELS[p]}, {rtt} ms", number=True) for p, rtt in cells]
    rows = [["the paper", *(f"{PUBLISHED[f'throughput-{rtt}-{p}']:.0f}" for p, rtt in cells)]]
    for label, case in {"every 64th packet too": "time", "every 10 ms only": "module"}.items():
        found = [known(rate(runs[f"{case}-{p}-{rtt}"])) for p, rtt in cells]
        rows.append([label, *(f"{value:.0f}" for value in found)])
    return Table(columns, rows, "Throughput, Mbit/s.")


def fairness(runs: Runs) -> Table:
    """Flows that share the link: what each kind gets, how fair that is, what it costs."""
    titles = ("first, Mbit/s", "second, Mbit/s", "Jain's index", "sent again", "queue")
    columns = [Column("Flows"), Column("RTT"), *(Column(title, number=True) for title in titles)]
    rows = []
    for what, rtt, table in _cases(runs):
        seeds = table.partition_by("seed", "kind", as_dict=True)
        shares = {
            kind: median(fmean(t["throughput"]) for (_, k), t in seeds.items() if k == kind)
            for kind in ("first", "second")
        }
        index = median(jain(one["throughput"]) for one in table.partition_by("seed"))
        cells = [f"{share / 1e6:.0f}" for share in shares.values()] + [f"{index:.3f}"]
        again, queue = fmean(table["retransmission_share"]), fmean(table["queue_delay_mean"])
        rows.append([what, rtt, *cells, f"{again:.1%}", f"{1e3 * queue:.1f} ms"])
    return Table(columns, rows, "Sent again and queueing delay: means over flows and seeds.")


def _cases(runs: Runs) -> Iterator[tuple[str, str, pl.DataFrame]]:
    names = {"udt4": "UDT", "ar-udt4": "AR-UDT", "cubic": "CUBIC", "bbr3": "BBRv3"}
    beyond = runs.beyond
    for (cc, pairs, rtt), table in _cells(beyond["beyond-same"], "cc", "pairs", "rtt"):
        yield f"{2 * int(pairs)} {names[cc]}", f"{rtt} ms", table
    for plan in ("beyond-udt", "beyond-tcp"):
        for (cc, other, rtt), table in _cells(beyond[plan], "cc", "other", "rtt"):
            yield f"{names[cc]} beside {names[other]}", f"{rtt} ms", table
    for (cc,), table in _cells(beyond["beyond-rtt"], "cc"):
        yield f"2 {names[cc]}", "10 and 100 ms", table


def _cells(table: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], pl.DataFrame]]:
    kind = pl.col("flow").cast(pl.String).str.split("-").list.first()
    for key, cell in table.with_columns(kind=kind).group_by(by, maintain_order=True):
        yield tuple(str(part) for part in key), cell


def _gain(runs: Runs, adaptive: str, plain: str = "time-udt-200") -> float:
    """By how much AR-UDT's throughput is above UDT's, %."""
    return 100 * (known(rate(runs[adaptive])) / known(rate(runs[plain])) - 1)


def _around_one(runs: Runs) -> str:
    """How the ratio is spread about 1 if the reports are taken as they come."""
    found = []
    for rtt in RTTS:
        shares = dict(histogram(runs[f"ratio-reports-{rtt}"]).iter_rows())
        found.append(f"{shares[1.0]:.0%} up to 1 and {shares[1.002]:.0%} above it at {rtt} ms")
    return ", ".join(found)


def _drops(runs: Runs, experiment: str) -> float:
    """The standard deviation of the throughput in windows of 1 s from 15 s on, Mbit/s."""
    return known(unsteadiness(runs[experiment]))


def _balance(loss: float) -> float:
    """Where UDT's increase and decrease balance, Mbit/s."""
    return sqrt(9 * 12_000 * 1.2e8 / loss) / 1e6


def _near(runs: Runs) -> str:
    ratios = [
        known(alone(runs, p, rtt)) / PUBLISHED[f"throughput-{rtt}-{p}"]
        for p in PROTOCOLS
        for rtt in RTTS
    ]
    near = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
    worst = max(abs(ratio - 1) for ratio in ratios)
    return f"{near} of {len(ratios)} are within 15 % of the paper, all within {worst:.0%}."


def _beside(measured: float, published: float) -> str:
    return f"{measured:.0f} / {published:.0f} ({measured / published:.2f})"
