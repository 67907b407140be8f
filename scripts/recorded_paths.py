"""Compares templates of paths with recorded links, by tables in Markdown.

docs/how-to/paths.md has the tables, and the commands that get the recordings into a folder:

    python scripts/recorded_paths.py recordings lte leo wifi 5g
"""

from __future__ import annotations

import csv
import os
import re
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

os.environ["DUMBBELL_STORE"] = "off"
sys.path.insert(0, str(Path(__file__).resolve().parent / "pages"))

import arguments

import dumbbell
from dumbbell import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

SEEDS: Final = range(1, 11)
SECONDS: Final = 120

RECORDED: Final = (
    "ATT-LTE-driving",
    "ATT-LTE-driving-2016",
    "TMobile-LTE-driving",
    "TMobile-LTE-short",
    "Verizon-LTE-short",
)
ALGORITHMS: Final = ("cubic", "bbr", "bbr3", "bbr3(ack_phase=off)", "noq:bbr3", "copa", "vegas")
OPPORTUNITY: Final = 1500 * 8 / 1e6
"""Mbit of a line of a trace."""

OFFERED: Final = {"leo": "250 Mbit/s", "wifi": "150 Mbit/s", "5g": "420 Mbit/s"}
"""More than each template takes."""
SLOT: Final = 15
"""From one handover of Starlink to the next, s."""
HANDOVER: Final = 12
"""The second of the minute of the first one."""
PINGS: Final = 30
"""How long a run of pings lasts, s."""


def templates(*calls: str) -> dict[str, list[Link]]:
    """The links of each template with ten seeds."""
    found = {}
    for call in calls:
        start = call.removesuffix(")") + (", " if "(" in call else "(")
        found[f"`{call}`"] = [Link(name="link", template=f"{start}seed={seed})") for seed in SEEDS]
    return found


def experiment(link: Link, flow: Flow, seconds: int = SECONDS, sample: float = 0.1) -> Experiment:
    """One flow on the link."""
    return Experiment(
        links=[link], flows=[flow], duration=f"{seconds} s", sample=f"{sample * 1e3:.0f} ms"
    )


def table(head: str, rows: Iterable[Sequence[str]]) -> None:
    """Prints a table in Markdown."""
    print(f"\n| link | {head} |")
    print("|---|" + "---:|" * (head.count("|") + 1))
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


# Traces of opportunities to send


def opportunities(link: Link) -> Array:
    """The times at which a packet may leave, s, in 300 s or until the trace repeats."""
    if isinstance(link.trace, str):
        return np.loadtxt(link.trace) / 1e3
    (resolved,) = experiment(link, Flow(cc="reno"), 300).resolve().links
    return np.array(resolved.trace, dtype=float) / 1e3


def opportunity_rates(times: Array) -> list[float]:
    """Mean, Mbit/s; deviation of a second's rate and of its change over the mean; pauses."""
    rate = np.histogram(times, bins=np.arange(int(times[-1]) + 1))[0] * OPPORTUNITY
    pauses = np.diff(times)
    pauses = pauses[pauses > 0.1]
    mean = rate.mean()
    return [
        mean,
        rate.std() / mean,
        np.diff(rate).std() / mean,
        pauses.sum() / times[-1] * 100,
        len(pauses) / times[-1] * 60,
        pauses.max(),
    ]


def received(link: Link, times: Array, cc: str) -> tuple[float, float]:
    """What a flow receives, as a share of all opportunities, and its mean queueing delay, s."""
    flow = Flow(cc=cc, transport="quic" if ":" in cc else "tcp")
    (row,) = dumbbell.run(experiment(link, flow)).flows.iter_rows(named=True)
    whole, rest = divmod(SECONDS, times[-1])
    capacity = (whole * len(times) + np.sum(times <= rest)) * OPPORTUNITY
    return row["received"] * 8 / 1e6 / capacity, row["queue_delay_mean"]


def lte(folder: Path) -> None:
    """The rates of the traces of mahimahi, and what algorithms do on them."""
    links: dict[str, list[Link]] = {}
    for name in RECORDED:
        trace = str(folder.resolve() / "mahimahi/traces" / f"{name}.down")
        links[name] = [Link(name="link", trace=trace, delay="20 ms", queue="unlimited")]
    links |= templates("lte", "lte(outage=200 ms)")
    found = {name: [(one, opportunities(one)) for one in ones] for name, ones in links.items()}
    rows = []
    for name, ones in found.items():
        mean, *others = np.median([opportunity_rates(times) for _, times in ones], axis=0)
        cells = [f"{mean:.1f}", *(f"{value:.2f}" for value in others[:2])]
        rows.append([name, *cells, f"{others[2]:.0f}", f"{others[3]:.0f}", f"{others[4]:.1f}"])
    table(
        "mean, Mbit/s | deviation | of the change | paused, % | pauses a minute | longest, s", rows
    )
    rows = []
    for name, ones in found.items():
        cells = []
        for cc in ALGORITHMS:
            share, delay = np.median([received(*one, cc) for one in ones], axis=0)
            cells.append(f"{share:.0%}; {delay * 1e3:,.0f}")
        rows.append([name, *cells])
    table(" | ".join(f"`{cc}`" for cc in ALGORITHMS), rows)


# Rates by intervals, and round trips


@dataclass(frozen=True)
class Rates:
    """Runs of a link: what arrives in each interval, Mbit/s."""

    runs: list[Array]
    interval: float
    """Its length, s."""
    starts: list[float] = field(default_factory=list)
    """When each run began, s since a handover."""

    def by(self, seconds: float) -> list[Array]:
        """The means of longer intervals."""
        size = round(seconds / self.interval)
        return [run[: len(run) // size * size].reshape(-1, size).mean(1) for run in self.runs]


@dataclass(frozen=True)
class Pings:
    """Runs of pings."""

    runs: list[tuple[Array, Array]]
    """When each was sent, s since a handover, and its round-trip time, ms."""
    lost: list[float]
    """Of each run, %."""


RATE_HEAD: Final = (
    "runs | mean, Mbit/s | deviation | within 15 s | of the change | slow, % | times a minute "
    "| median length, s"
)
PING_HEAD: Final = "runs | minimum, ms | median above | mean above | p95 above | deviation"
LEO_HEAD: Final = f"{PING_HEAD} | step | lost, median, % | mean, %"


def rate_cells(rates: Rates) -> list[str]:
    """Runs; mean; deviations of the rates of seconds over the mean; slow times."""
    found = []
    lengths: list[float] = []
    for run, seconds in zip(rates.runs, rates.by(1), strict=True):
        mean = seconds.mean()
        edges = np.flatnonzero(np.diff(np.concatenate([[0], run < mean / 2, [0]])))
        times = (edges[1::2] - edges[::2]) * rates.interval
        lengths += list(times)
        whole = max(len(seconds) // SLOT, 1) * SLOT
        within = [part.std() for part in np.split(seconds[:whole], range(SLOT, whole, SLOT))]
        deviations = seconds.std(), np.median(within), np.diff(seconds).std()
        duration = len(run) * rates.interval
        slow = times.sum() / duration * 100, len(times) / duration * 60
        found.append([mean, *(deviation / mean for deviation in deviations), *slow])
    mean, *others = np.median(found, axis=0)
    cells = [str(len(found)), f"{mean:.0f}", *(f"{value:.2f}" for value in others[:3])]
    cells += [f"{others[3]:.1f}", f"{others[4]:.1f}"]
    return [*cells, f"{np.median(lengths):.1f}" if lengths else ""]


def ping_cells(pings: Pings) -> list[str]:
    """Runs; minimum round-trip time; what is above it; deviation."""
    found = []
    for _, rtts in pings.runs:
        low = rtts.min()
        above = (np.median(rtts) - low, rtts.mean() - low, np.percentile(rtts, 95) - low)
        found.append([low, *above, rtts.std()])
    return [str(len(found)), *(f"{value:.1f}" for value in np.median(found, axis=0))]


def leo_cells(pings: Pings) -> list[str]:
    """The same; the change of the median from slot to slot; losses."""
    steps: list[float] = []
    for times, rtts in pings.runs:
        slot = times // SLOT
        parts = [rtts[slot == one] for one in np.unique(slot)]
        steps += list(np.abs(np.diff([np.median(part) for part in parts if len(part) > 35])))
    return [*ping_cells(pings), f"{np.median(steps):.1f}", *losses(pings.lost)]


def losses(lost: Sequence[float]) -> list[str]:
    """Median and mean of the runs."""
    return [f"{np.median(lost):.2f}", f"{np.mean(lost):.2f}"]


def handover(rates: Rates) -> str:
    """What is lost at a handover, in ms of the mean rate."""
    count = round(SLOT / rates.interval)
    profile: list[list[float]] = [[] for _ in range(count)]
    for run, start in zip(rates.runs, rates.starts, strict=True):
        for at, rate in enumerate(run / run.mean()):
            profile[round(start / rates.interval + at) % count].append(rate)
    means = np.array([np.mean(part) for part in profile])
    # The clocks differ by a second or so.
    near = np.arange(-3, 4) % count
    return f"{(np.median(means) - means[near]).sum() * rates.interval * 1e3:.0f} ms"


def simulated_rates(name: str, links: Iterable[Link], interval: float) -> Rates:
    """What arrives of packets over UDP that are always more than the link takes."""
    runs = []
    flow = Flow(cc="none", transport="udp", app_rate=OFFERED[name.strip("`").split("(")[0]])
    for link in links:
        series = dumbbell.run(experiment(link, flow, sample=interval)).series
        runs.append(np.diff(series["received"].to_numpy()) * 8 / 1e6 / interval)
    return Rates(runs, interval, [0.0] * len(runs))


def simulated_pings(links: Iterable[Link]) -> Pings:
    """Round-trip times of five packets a second, and the loss probabilities of the link."""
    runs = []
    lost = []
    flow = Flow(cc="reno", app_rate="60 kbit/s", stack_options={"delayed_ack": False})
    for link in links:
        once = experiment(link, flow, sample=0.2)
        series = dumbbell.run(once).series.drop_nulls("rtt")
        times, rtts = series["t"].to_numpy(), series["rtt"].to_numpy() * 1e3
        for run in range(SECONDS // PINGS):
            inside = times // PINGS == run
            runs.append((times[inside], rtts[inside]))
        loss = once.resolve().links[0].loss
        shares = [float(share) for _, share in loss] if isinstance(loss, list) else [0.0]
        lost.append(float(np.mean(shares)) * 100)
    return Pings(runs, lost)


def compare(rates: dict[str, Rates], calls: Sequence[str], interval: float) -> dict[str, Rates]:
    """Prints the table of rates, the templates below; has all of them."""
    links = templates(*calls)
    found = rates | {name: simulated_rates(name, ones, interval) for name, ones in links.items()}
    table(RATE_HEAD, ([name, *rate_cells(one)] for name, one in found.items()))
    return found


# Starlink


def maine(folder: Path) -> tuple[Rates, Pings]:
    """A car in Maine: UDP at 500 Mbit/s for 120 s each, and pings each 200 ms for 30 s each."""
    base = folder / "starlink-measurement/datasets/maine_starlink_trip/raw/starlink"
    unit = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3}
    row = re.compile(r"-[\d.]+ +sec +[\d.]+ \w*Bytes +([\d.]+) ([KMG]?)bits/sec.*\) *$", re.M)
    runs = []
    starts = []
    for path in sorted(base.glob("*/*/udp_downlink*.out")):
        text = path.read_text()
        rates = [float(rate) * unit[prefix] for rate, prefix in row.findall(text)]
        if len(rates) >= 200:
            runs.append(np.array(rates[:240]))
            (end,) = re.findall(r"End time: (\d+)", text)
            starts.append(int(end) / 1e3 - 120 - HANDOVER)
    answer = re.compile(r"\[(.*)\] \d+ bytes.*time=([\d.]+)")
    pings = []
    lost = []
    for path in sorted(base.glob("*/*/ping*.out")):
        text = path.read_text()
        answers = answer.findall(text)
        if len(answers) > 100:
            rtts = np.array([float(rtt) for _, rtt in answers])
            times = [datetime.fromisoformat(time).timestamp() for time, _ in answers]
            pings.append((np.array(times) - rtts / 1e3 - HANDOVER, rtts))
            ((sent, back),) = re.findall(r"(\d+) packets transmitted, (\d+) received", text)
            lost.append(100 * (1 - int(back) / int(sent)))
    return Rates(runs, 0.5, starts), Pings(pings, lost)


def osnabrueck(folder: Path) -> tuple[Rates, list[str]]:
    """A car at rest in Osnabrück: 15 s of UDP each; the cells of its pings, 25 s each."""
    base = folder / "Starlink-on-the-Road/data"
    with (base / "iperf.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["download_mbps"]]
    starts = [datetime.fromisoformat(row["timestamp_start"]).timestamp() for row in rows]
    breaks = np.flatnonzero(np.diff(starts) > 1.5) + 1
    runs = []
    for part in np.split(np.arange(len(rows)), breaks):
        moved = any(float(rows[at]["average_speed"] or 1) for at in part)
        # The first two seconds are the start of the measurement.
        rates = np.array([float(rows[at]["download_mbps"]) for at in part[2:]])
        if not moved and len(rates) >= 12 and rates.mean() > 5:
            runs.append(rates)
    with (base / "ping.csv").open() as file:
        pings = [row for row in csv.DictReader(file) if row["ping_best"]]
    pings = [row for row in pings if float(row["average_speed"] or 1) == 0]
    low, mean, deviation, lost = (
        np.array([float(row[key]) for row in pings])
        for key in ("ping_best", "ping_avg", "ping_stddev", "packet_loss")
    )
    minimum, above, spread = (f"{np.median(values):.1f}" for values in (low, mean - low, deviation))
    cells = [str(len(pings)), minimum, "", above, "", spread, "", *losses(list(lost))]
    return Rates(runs, 1), cells


def leo(folder: Path) -> None:
    """Starlink in a car that drives and in one at rest."""
    driving, pings = maine(folder)
    rest, cells = osnabrueck(folder)
    calls = ("leo", "leo(variation=0.3, step=16 ms, outage=300 ms, loss=0.002)")
    found = compare({"Maine, driving": driving, "Osnabrück, at rest": rest}, calls, 0.5)
    probes = {name: leo_cells(simulated_pings(ones)) for name, ones in templates(*calls).items()}
    answers = {"Maine, driving": leo_cells(pings), "Osnabrück, at rest": cells}
    table(LEO_HEAD, ([name, *one] for name, one in (answers | probes).items()))
    print("\nLost at a handover:")
    for name, rates in found.items():
        if rates.starts:
            print(f"{name}: {handover(rates)}")


# Wi-Fi and 5G


def zhuge(folder: Path, name: str) -> Rates:
    """Traces that came with Zhuge: rates since the row before, of about 200 ms."""
    base = folder / "zhuge/ns-3.34-diff/real-exp/traces"
    runs = []
    for path in sorted(base.glob(f"{name}_*.pitree-trace")):
        times, rates = np.loadtxt(path).T
        steps = np.diff(times, prepend=times[0] - 0.2)
        sums = np.cumsum(rates * steps)
        grid = np.arange(times[0], times[-1], 0.2)
        runs.append(np.diff(np.interp(grid, times, sums)) / 0.2)
    return Rates(runs, 0.2)


def wifi(folder: Path) -> None:
    """An office and a restaurant; the round-trip times of the template."""
    rates = {"office": zhuge(folder, "office-wifi"), "restaurant": zhuge(folder, "rest-wifi")}
    calls = ("wifi", "wifi(every=12 s, period=400 ms)", "wifi(every=6 s, period=700 ms)")
    compare(rates, calls, 0.2)
    print("\np50, p90 and p99 of the round-trip time above its minimum, ms:")
    for name, ones in templates(*calls).items():
        rtts = np.concatenate([rtts for _, rtts in simulated_pings(ones).runs])
        print(f"{name}: {np.round(np.percentile(rtts, [50, 90, 99]) - rtts.min(), 1)}")


def uplink(folder: Path, kind: str) -> list[Array]:
    """Lists of numbers of one way of moving at millimetre waves."""
    base = folder / "sigcomm-5gmemu-5g-mmWave-uplink-data"
    runs = []
    for path in sorted(base.glob(f"{kind}/5g/*.list")):
        rows = [line.split(",") for line in path.read_text().splitlines() if "," in line]
        runs += [np.array([float(number) for number in row if number]) for row in rows]
    # Before the rates are rows with their times.
    return [run for run in runs if len(run) > 20 and np.any(np.diff(run) < 0)]


def fifth(folder: Path) -> None:
    """Millimetre waves in the hands of pedestrians and in cars, and another link."""
    lumos = folder / "artifact/Video-Streaming/Network-Traces/Lumous5G/5G"
    rates = {}
    for kind in ("static", "walking"):
        # The first second is slow start.
        every = Rates([run[10:] for run in uplink(folder, f"throughput/{kind}")], 0.1)
        rates[f"mmWave uplink, {kind}"] = Rates(every.by(0.2), 0.2)
    for kind in ("walking", "driving"):
        runs = [np.loadtxt(path)[:, 1] for path in sorted(lumos.glob(f"*_{kind}*"))]
        rates[f"mmWave downlink, {kind}"] = Rates(runs, 1)
    rates["xu5g"] = zhuge(folder, "xu5g")
    calls = ("5g", "5g(every=20 s, blocked=10 s, left=0.05)")
    compare(rates, calls, 0.2)
    cells = {}
    for kind in ("static", "walking"):
        rtts = uplink(folder, f"ping/{kind}")
        cells[f"mmWave, {kind}"] = ping_cells(Pings([(np.empty(0), run) for run in rtts], []))
    probes = {name: ping_cells(simulated_pings(ones)) for name, ones in templates(*calls).items()}
    table(PING_HEAD, ([name, *one] for name, one in (cells | probes).items()))


COMPARISONS: Final[dict[str, Callable[[Path], None]]] = {
    "lte": lte,
    "leo": leo,
    "wifi": wifi,
    "5g": fifth,
}


def main() -> None:
    """Prints the tables of the templates that are named."""
    folder = arguments.folder(__doc__)
    for name in sys.argv[2:]:
        COMPARISONS[name](folder)


if __name__ == "__main__":
    main()
