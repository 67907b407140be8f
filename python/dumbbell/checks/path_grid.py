"""The cases of a specification on many paths, spread over its range of rates and round-trip times.

draft-ietf-ccwg-bbr-06, appendix A, names RTTs of 1 ms to 1 s and rates of 64 kbit/s to 10 Gbit/s.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dumbbell.checks.conformance import Path, Trial, flow_of, run_trials, why_not
from dumbbell.engine.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dumbbell.checks.conformance import Case, CaseResult

RATES: Final = (64e3, 10e9)  # bit/s
RTTS: Final = (1e-3, 1.0)  # s

MAX_PACKETS: Final = {"tcp": 3e6, "quic": 5e5}
"""What a run may send at most; a path on which a case takes more is left out of it."""
MAX_RATE: Final = {"tcp": 10e9, "quic": 1e9}

# The fractional parts of the multiples of these fill a square evenly: 1 over the root of
# x^3 = x + 1, and its square (M. Roberts, "The Unreasonable Effectiveness of Quasirandom
# Sequences", 2018).
_STEPS: Final = (0.7548776662466927, 0.5698402909980532)


@dataclass(frozen=True)
class Share:
    """On how many paths an algorithm passes a case."""

    case: Case
    cc: str
    passed: int
    paths: int  # on which it was judged
    failed: tuple[CaseResult, ...]


def spread(number: int, seed: int = 1) -> list[tuple[float, float]]:
    """Rates, bit/s, and round-trip times, s, spread evenly over the logarithms of both."""
    generator = random.Random(seed)
    offsets = [generator.random() for _ in _STEPS]
    points = []
    for n in range(number):
        x, y = ((offset + n * step) % 1 for offset, step in zip(offsets, _STEPS, strict=True))
        rate, rtt = (low * (high / low) ** at for (low, high), at in ((RATES, x), (RTTS, y)))
        points.append((float(f"{rate:.3g}"), float(f"{rtt:.3g}")))
    return points


def path_for(case: Case, rate: float, rtt: float) -> Path:
    """A path for a case: its times are in round trips of at least five packets."""
    longer = (rtt + 5 * 12_000 / rate) / Path().rtt
    return Path(rate, rtt, longer if case.grid == "rounds" else max(1.0, longer))


def is_possible(case: Case, cc: str, path: Path) -> bool:
    """Whether the path is one for the case, and a run of it short enough."""
    transport = flow_of(cc).get("transport", "tcp")
    packets = path.rate * case.settings.get("seconds", 10) * path.stretch / 12_000
    return (
        path.rate * path.rtt / 12_000 >= case.pipe
        and path.rate <= MAX_RATE[transport]
        and packets <= MAX_PACKETS[transport]
    )


def examine(
    cases: Sequence[Case],
    algorithms: Sequence[str],
    version: Callable[[str], int],
    number: int,
    *,
    seed: int = 1,
    jobs: int | None = None,
    progress: Progress = silent,
) -> list[Share]:
    """Runs the cases that scale on a number of paths; returns a share per case and algorithm."""
    pairs = [(case, cc) for case in cases if case.grid for cc in algorithms]
    trials = [
        Trial(case, cc, path)
        for case, cc in pairs
        if why_not(case, cc, version) is None
        for path in (path_for(case, *point) for point in spread(number, seed))
        if is_possible(case, cc, path)
    ]
    done = run_trials(trials, jobs=jobs, progress=progress)
    shares = []
    for case, cc in pairs:
        judged = [one for one in done if (one.case, one.cc) == (case, cc) and one.verdict != "n/a"]
        failed = tuple(one for one in judged if one.verdict == "fail")
        shares.append(Share(case, cc, len(judged) - len(failed), len(judged), failed))
    return shares
