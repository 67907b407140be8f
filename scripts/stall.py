"""Searches for bursts, or outages of the link, after which a flow stalls, as CC-Fuzz does.

    python scripts/stall.py bbr link 1200 1 [STACK]

Ray and Seshan ("CC-Fuzz: genetic algorithm-based fuzzing for stress testing congestion control
algorithms", HotNets 2022) found traffic for which a BBR stalls for good. Here a flow has 20 MB to
send over 12 Mbit/s, 13.9 s on an idle path. In the first 5 s there are five bursts of UDP of up to
2.5 MB (``traffic``), or five outages of 10 ms to 1.5 s (``link``); queue and round-trip time are
drawn too. Differential evolution looks for the longest transfer. The worst path is written as an
experiment into the current folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import differential_evolution

from dumbbell import Experiment
from dumbbell.engine.runner import run_all

EVENTS: Final = 5
DURATION: Final = 100.0
BYTES: Final = 20_000_000
GENERATION: Final = 24


def experiment(place: np.ndarray, cc: str, mode: str, stack: str) -> str:
    """The file of a place in the unit cube: queue, round-trip time, and two numbers an event."""
    queue, rtt = int(10 * 200 ** place[0]), 10 * 10 ** place[1]
    starts = 0.1 + 5 * place[2::2]
    events = sorted(zip(starts, place[3::2], strict=True))
    text = f'duration = "{DURATION:g} s"\nstack = "{stack}"\n'
    text += f'[[link]]\nname = "bottleneck"\nqueue = "{queue} packets"\n'
    if mode == "link":
        points = [(0.0, 12)]
        for start, length in events:
            begin = max(start, points[-1][0] + 0.001)
            points += [(begin, 0), (begin + 0.01 * 150**length, 12)]
        rates = ", ".join(f'["{t:.4f} s", "{rate} Mbit/s"]' for t, rate in points)
        text += f"rates = [{rates}]\n"
    else:
        text += 'rate = "12 Mbit/s"\n'
    text += f'[[flow]]\nname = "flow"\ncc = "{cc}"\nrtt = "{rtt:.1f} ms"\nbytes = "{BYTES} B"\n'
    for number, (start, rate) in enumerate(events if mode == "traffic" else ()):
        text += f'[[flow]]\nname = "burst-{number}"\ncc = "none"\ntransport = "udp"\n'
        text += f'rtt = "20 ms"\nstart = "{start:.4f} s"\n'
        text += f'app_rates = [["0 s", "{1000 * rate + 1:.1f} Mbit/s"], ["0.02 s", "0 bit/s"]]\n'
    return text


def times(places: np.ndarray, cc: str, mode: str, stack: str) -> np.ndarray:
    """How long the transfer takes at each place, s; longer than a run for what is missing then."""
    experiments = [Experiment.parse(experiment(place, cc, mode, stack)) for place in places]
    found = []
    for result in run_all(experiments):
        flow = result.flows.row(0, named=True)
        done = flow["completed"]
        missing = 1 - flow["delivered"] / BYTES
        found.append(DURATION * (1 + missing) if done is None or np.isnan(done) else done)
    return np.array(found)


def main() -> None:
    """Searches, and prints the longest time."""
    cc, mode, budget, seed, *rest = sys.argv[1:]
    stack = rest[0] if rest else "linux"
    axes = 2 + 2 * EVENTS
    found = differential_evolution(
        lambda places: -times(places.T, cc, mode, stack),
        [(0, 1 - 1e-9)] * axes,
        popsize=GENERATION // axes,
        maxiter=int(budget) // GENERATION,
        polish=False,
        vectorized=True,
        updating="deferred",
        rng=np.random.default_rng(int(seed)),
        tol=0,
    )
    file = Path(f"worst-{cc}-{mode}-{stack}-{seed}.toml")
    file.write_text(experiment(found.x, cc, mode, stack))
    print(f"{cc} {mode} {stack} seed {seed}: {-found.fun:.1f} s, {file}")


if __name__ == "__main__":
    main()
