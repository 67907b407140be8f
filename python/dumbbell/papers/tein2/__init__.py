"""High-speed TCP on a Dummynet testbed and over TEIN2 (Lee et al., 2009).

One flow over delay, two flows with different round-trip times, Reno beside each algorithm, and two
long paths that share a link of 622 Mbit/s. The paper does not say how fast the testbed's bottleneck
is, nor its queue, its socket buffers or how long it measured: the experiment files say what stands
for them and why, and the report how much hangs on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dumbbell.metrics import throughput
from dumbbell.papers.frame import Verdict
from dumbbell.papers.tein2.chapters import sections
from dumbbell.papers.tein2.measures import (
    ALGORITHMS,
    HIGH_SPEED,
    LABELS,
    PATHS,
    RATIOS,
    RTTS,
    delay,
    known,
    listed,
    rate,
    ratio,
    reno_shares,
    unfairness,
    use,
)
from dumbbell.papers.tein2.plates import PLATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from dumbbell.papers.frame import Measured, Runs, Verdicts
    from dumbbell.results.result import Result

__all__ = ["PLATES", "judge", "measure", "reduce", "sections"]

_SIMULATIONS_SAY: Final = (PATHS["germany"] / PATHS["china"]) ** 2


def measure(runs: Runs) -> Measured:
    """Measures tables 2 and 3 number by number."""
    numbers = {f"throughput-{rtt}-{cc}": delay(runs, cc, rtt) for rtt in RTTS for cc in ALGORITHMS}
    return numbers | {
        f"ratio-{x}-{cc}": unfairness(runs, cc, x) for cc in ALGORITHMS for x in RATIOS
    }


def judge(runs: Runs, numbers: Measured) -> Verdicts:
    """Checks the claims."""
    over_delay = {
        rtt: {cc: known(numbers[f"throughput-{rtt}-{cc}"]) for cc in ALGORITHMS} for rtt in RTTS
    }
    at_six = {cc: known(numbers[f"ratio-6-{cc}"]) for cc in ALGORITHMS}
    return {
        "delay": _delay(over_delay),
        "order": _order(over_delay),
        "rtt-fairness": _fairness(at_six),
        "friendliness": _friendliness(runs),
        "bdp": _bdp(runs),
        "use": _use(runs),
    }


def reduce(result: Result) -> pl.DataFrame:
    """Keeps the throughput of every flow and seed, bit/s."""
    return throughput(result).select("seed", "flow", "throughput")


def _delay(rates: Mapping[int, Mapping[str, float]]) -> Verdict:
    nearest = rates[RTTS[0]].values()
    band = max(nearest) / min(nearest)
    reno = {rtt: rates[rtt]["reno"] / min(rates[rtt][cc] for cc in HIGH_SPEED) for rtt in RTTS[1:]}
    return Verdict(
        band <= 1.25 and all(share < 0.5 for share in reno.values()),
        f"At 10 ms the highest is {band:.2f} times the lowest. Reno over the lowest of the others: "
        + ", ".join(f"{share:.2f} at {rtt} ms" for rtt, share in reno.items())
        + ".",
    )


def _order(rates: Mapping[int, Mapping[str, float]]) -> Verdict:
    ordered = {rtt: sorted(ALGORITHMS, key=lambda cc: -rates[rtt][cc]) for rtt in RTTS[1:]}
    return Verdict(
        all(order[:2] == ["stcp", "bic"] for order in ordered.values()),
        "; ".join(f"{rtt} ms: {listed(rates[rtt], order)}" for rtt, order in ordered.items())
        + " (Mbit/s).",
    )


def _fairness(at_six: Mapping[str, float]) -> Verdict:
    order = sorted(ALGORITHMS, key=lambda cc: at_six[cc])
    holds = order[0] == "cubic" and order[-1] == "stcp"
    return Verdict(
        holds and min(at_six["bic"], at_six["hstcp"]) > at_six["reno"],
        f"Throughput ratios at an RTT ratio of 6: {listed(at_six, order, '.2f')}.",
    )


def _friendliness(runs: Runs) -> Verdict:
    near, far = reno_shares(runs, "friends")
    return Verdict(
        min(near.values()) >= 0.4 and max(far.values()) <= 1 / 3,
        f"Reno's share at 10 ms: {listed(near, HIGH_SPEED, '.2f')}; at 100 ms: "
        f"{listed(far, HIGH_SPEED, '.2f')}.",
    )


def _bdp(runs: Runs) -> Verdict:
    gains = {}
    for cc in HIGH_SPEED:
        near = known(delay(runs, cc, 10)) / known(delay(runs, "reno", 10))
        gains[cc] = [near] + [
            known(rate(runs[f"tein2-{cc}"], path)) / known(rate(runs["tein2-reno"], path))
            for path in PATHS
        ]
    unfair = {cc: known(ratio(runs[f"tein2-{cc}"], "china", "germany")) for cc in HIGH_SPEED}
    rising = all(gain == sorted(gain) for gain in gains.values())
    between = all(1 < value < _SIMULATIONS_SAY for value in unfair.values())
    gained = "; ".join(
        f"{LABELS[cc]} " + ", ".join(f"{g:.1f}" for g in gain) for cc, gain in gains.items()
    )
    return Verdict(
        rising and between,
        f"Throughput over Reno's on the testbed at 10 ms, from China, from Germany: {gained}. "
        f"China over Germany, together: {listed(unfair, HIGH_SPEED, '.2f')}.",
    )


def _use(runs: Runs) -> Verdict:
    china, germany = ({cc: known(use(runs, cc, path)) for cc in ALGORITHMS} for path in PATHS)
    reno = (china["reno"] + germany["reno"]) / 2
    enough = all(china[cc] > 0.8 and germany[cc] > 0.5 for cc in HIGH_SPEED)
    return Verdict(
        enough and 0.04 <= reno <= 0.16,
        f"From China: {listed(china, ALGORITHMS, '.2f')}; from Germany: "
        f"{listed(germany, ALGORITHMS, '.2f')}.",
    )
