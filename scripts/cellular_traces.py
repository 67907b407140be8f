"""Compares the template `lte` with recorded links: its rates, and what algorithms do on it.

The traces are those of mahimahi (https://github.com/ravinet/mahimahi, folder traces):

    git clone --depth 1 https://github.com/ravinet/mahimahi
    python scripts/cellular_traces.py mahimahi/traces
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

os.environ["DUMBBELL_STORE"] = "off"

import dumbbell
from dumbbell import Experiment, Flow, Link

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORDED: Final = (
    "ATT-LTE-driving",
    "ATT-LTE-driving-2016",
    "TMobile-LTE-driving",
    "TMobile-LTE-short",
    "Verizon-LTE-short",
)
TEMPLATES: Final = ("lte", "lte(outage=200 ms)")
SEEDS: Final = range(1, 11)
ALGORITHMS: Final = ("cubic", "bbr", "bbr3", "bbr3(ack_phase=off)", "noq:bbr3", "copa", "vegas")
SECONDS: Final = 120
OPPORTUNITY: Final = 1500 * 8 / 1e6
"""Mbit of a line of a trace."""


def links(folder: Path) -> dict[str, list[Link]]:
    """The recorded links, by name, and those of each template with ten seeds."""
    found = {}
    for name in RECORDED:
        trace = str(folder.resolve() / f"{name}.down")
        found[name] = [Link(name="link", trace=trace, delay="20 ms", queue="unlimited")]
    for template in TEMPLATES:
        start = template.removesuffix(")") + (", " if "(" in template else "(")
        found[f"`{template}`"] = [
            Link(name="link", template=f"{start}seed={seed})") for seed in SEEDS
        ]
    return found


def experiment(link: Link, cc: str, seconds: int) -> Experiment:
    """One flow on the link."""
    transport = "quic" if ":" in cc else "tcp"
    flow = Flow(cc=cc, transport=transport)
    return Experiment(links=[link], flows=[flow], duration=f"{seconds} s")


def opportunities(link: Link) -> NDArray[np.float64]:
    """The times at which a packet may leave, s, in 300 s or until the trace repeats."""
    if isinstance(link.trace, str):
        return np.loadtxt(link.trace) / 1e3
    (resolved,) = experiment(link, "reno", 300).resolve().links
    return np.array(resolved.trace, dtype=float) / 1e3


def rates(times: NDArray[np.float64]) -> list[float]:
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


def flow(link: Link, times: NDArray[np.float64], cc: str) -> tuple[float, float]:
    """What a flow receives, as a share of all opportunities, and its mean queueing delay, s."""
    (row,) = dumbbell.run(experiment(link, cc, SECONDS)).flows.iter_rows(named=True)
    whole, rest = divmod(SECONDS, times[-1])
    capacity = (whole * len(times) + np.sum(times <= rest)) * OPPORTUNITY
    return row["received"] * 8 / 1e6 / capacity, row["queue_delay_mean"]


def main() -> None:
    """Prints both tables."""
    found = {
        name: [(link, opportunities(link)) for link in ones]
        for name, ones in links(Path(sys.argv[1])).items()
    }
    print(
        "| link | mean, Mbit/s | deviation | of the change | paused, % | pauses a minute "
        "| longest, s |"
    )
    print("|---|" + "---:|" * 6)
    for name, ones in found.items():
        mean, *others = np.median([rates(times) for _, times in ones], axis=0)
        cells = [f"{mean:.1f}", *(f"{value:.2f}" for value in others[:2])]
        cells += [f"{others[2]:.0f}", f"{others[3]:.0f}", f"{others[4]:.1f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| link | " + " | ".join(f"`{cc}`" for cc in ALGORITHMS) + " |")
    print("|---|" + "---:|" * len(ALGORITHMS))
    for name, ones in found.items():
        cells = []
        for cc in ALGORITHMS:
            share, delay = np.median([flow(*one, cc) for one in ones], axis=0)
            cells.append(f"{share:.2f}, {delay * 1e3:,.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
