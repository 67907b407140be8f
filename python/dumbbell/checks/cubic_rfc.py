"""The test cases of CUBIC's specification, RFC 9438.

``cubic_rfc.toml`` has their experiments, this module what each of them checks. They look at the
window, the slow start threshold and the counters only, which every transport and the kernel show.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.checks.conformance import Case, NotSeenError, Track
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SPECIFICATION: Final = "RFC 9438"
ALGORITHMS: Final = ("cubic", "cubic(slow_start=hystart++, tcp_friendliness=rfc)")
STACKS: Final = ("cubic@quinn", "cubic@noq", "quinn:cubic", "noq:cubic")
"""In QUIC stacks: ours inside them, and their own."""

C: Final = 0.4
BETA: Final = 0.7
ALPHA: Final = 3 * (1 - BETA) / (1 + BETA)

_NEAR: Final = 0.03  # how far a window may be from the equations
_LOOSE: Final = 0.2  # the same of an average


def version(_cc: str) -> int:
    """There is one."""
    return 1


def _experiment(
    keys: Mapping[str, Any],
    *,
    seconds: float,
    flow: Mapping[str, Any] = MappingProxyType({}),
    others: int = 0,
    **link: Any,
) -> Experiment:
    """One flow over 36 Mbit/s, 100 ms and a queue of 20 packets."""
    said = {"delay": "50 ms", "queue": "20 packets"} | link
    if "rates" not in said:
        said.setdefault("rate", "36 Mbit/s")
    if keys.get("transport") == "quic":
        flow = {key: value for key, value in flow.items() if key != "stack_options"}
    late = [Flow(name=f"other-{n + 1}", **keys, start=f"{10 * (n + 1)} s") for n in range(others)]
    return Experiment(
        links=[Link(name="bottleneck", **said)],
        flows=[Flow(name="flow", **keys, **flow), *late],
        duration=f"{seconds:g} s",
        sample="5 ms" if seconds <= 75 else "50 ms",
        internals=False,
    )


@dataclass(frozen=True)
class Reduction:
    """A reduction of the window, and what follows it until the next."""

    time: float
    prior: float  # cwnd before it, packets
    ssthresh: float
    rtt: float  # smoothed, s
    w_max: float  # by section 4.7, packets
    after: Track

    @property
    def is_converging(self) -> bool:
        """Whether fast convergence lowered W_max."""
        return self.w_max < self.prior

    def window(self, t: float, rounds: float) -> float:
        """Figures 1, 2 and 4: the window `t` s and some round trips after the epoch began."""
        k = math.cbrt((self.w_max - self.ssthresh) / C)
        return max(C * (t - k) ** 3 + self.w_max, self.ssthresh + ALPHA * rounds)


def reductions(track: Track) -> list[Reduction]:
    """All reductions, in order: each of them sets ssthresh."""
    samples = track.samples.filter(pl.col("ssthresh").is_finite())
    # TCP's threshold may get the value that it had; there the state shows the reduction. Slow start
    # that ends without a loss sets ssthresh to the window.
    state, ssthresh = pl.col("ca_state"), pl.col("ssthresh")
    enters = (state >= 2) & (state.shift() < 2)
    marked = track.samples.with_columns(
        before=pl.col("cwnd").shift(), enters=enters | (ssthresh != ssthresh.shift())
    ).filter("enters", ssthresh.is_finite(), ssthresh < 0.95 * pl.col("before"))
    times = [*marked["t"], track.last("t") + 1e-9]
    found: list[Reduction] = []
    w_max = 0.0
    for row, (time, end) in zip(marked.iter_rows(named=True), pairwise(times), strict=True):
        prior = row["before"]
        w_max = prior if prior >= w_max else prior * (1 + BETA) / 2
        part = samples.filter(pl.col("t") >= time, pl.col("t") < end)
        after = track._part(part)
        found.append(Reduction(time, prior, row["ssthresh"], row["srtt"], w_max, after))
    return found


def _first(track: Track, after: float, *, converges: bool | None = None) -> Reduction:
    """The first reduction after a time whose epoch lasts for 3 s at least."""
    for one in reductions(track):
        lasts = one.after.samples.height > 0 and one.after.growth("t") >= 3
        if one.time > after and lasts and converges in (None, one.is_converging):
            return one
    raise NotSeenError(f"no epoch of 3 s after {after:g} s")


def _epoch(one: Reduction) -> Iterator[tuple[float, float, float]]:
    """Of samples of an epoch: the time since it began, round trips, and the window.

    It begins when the reduction is over: a round trip later.
    """
    rounds, last, start = 0.0, one.time + one.rtt, one.time + one.rtt
    rtt_now = pl.coalesce("rtt", "srtt")  # the kernel shows the smoothed one only
    for t, cwnd, rtt in one.after.samples.select("t", "cwnd", rtt_now).iter_rows():
        if t >= start:
            rounds += (t - last) / rtt
            last = t
            yield t - start, rounds, cwnd


def follows_cubic(track: Track, *, after: float, converges: bool) -> tuple[bool, str]:
    one = _first(track, after, converges=converges)
    off, when = max(
        (abs(cwnd / one.window(t, rounds) - 1), t) for t, rounds, cwnd in _epoch(one) if t > one.rtt
    )
    return (
        off <= _NEAR,
        f"from {one.ssthresh:.0f} packets, W_max {one.w_max:.0f}: {100 * off:.1f} % off at most, "
        f"{when:.1f} s after the epoch began",
    )


def grows_by(track: Track, *, after: float, alpha: float, beyond: bool) -> tuple[bool, str]:
    """The growth in a round trip while it is above W_cubic: below cwnd_prior, or beyond it."""
    found = [one for one in reductions(track) if one.after.samples.height]
    one = next((one for one in found if one.after.last("t") > after), None)
    if one is None:
        raise NotSeenError(f"no epoch after {after:g} s")
    k = math.cbrt((one.w_max - one.ssthresh) / C)
    inside = [
        (rounds, cwnd)
        for t, rounds, cwnd in _epoch(one)
        if (cwnd >= one.prior + 1) == beyond and cwnd > C * (t - k) ** 3 + one.w_max + 1
    ]
    if len(inside) < 20:
        raise NotSeenError("no growth above W_cubic")
    (first, low), (last, high) = inside[0], inside[-1]
    slope = (high - low) / (last - first)
    return abs(slope / alpha - 1) <= 0.15, f"{slope:.2f} packets a round trip"


def does_not_leap(track: Track) -> tuple[bool, str]:
    """The growth while the round-trip time falls, from 10 s on."""
    now = track.between(9.99, 10.3)
    until = next((one.time for one in reductions(track) if one.time > 9.99), 10.3)
    now = now.between(9.99, min(until, 10.3) - 0.005)
    rounds = now.growth("t") / now.min("srtt")
    grown = now.growth("cwnd")
    return grown <= rounds + 2, f"{grown:.1f} packets in {rounds:.0f} round trips"


def reduces(track: Track, *, on_loss: bool) -> tuple[bool, str]:
    found = reductions(track)
    if not found:
        raise NotSeenError("no reduction")
    lost = track.growth("lost")
    shares = [one.ssthresh / one.prior for one in found]
    return (
        min(shares) >= 0.69 and max(shares) <= 0.71 and (lost > 0) == on_loss,
        f"{len(found)} reductions to {min(shares):.3f} to {max(shares):.3f}, {lost:.0f} lost",
    )


def reaches_one(track: Track) -> tuple[bool, str]:
    least = track.min("cwnd")
    return least < 2, f"cwnd at least {least:.2f} packets"


def times_out(track: Track) -> tuple[bool, str]:
    prior, late = track.between(19.5, 20).last("cwnd"), track.since(20)
    share = _low(late).last("ssthresh") / prior
    least = late.min("cwnd")
    return abs(share / BETA - 1) <= _NEAR, f"ssthresh {share:.2f} cwnd, then cwnd {least:.0f}"


def _low(late: Track) -> Track:
    """The samples with the window of a timeout or of persistent congestion."""
    low = late._part(late.samples.filter(pl.col("cwnd") <= 4))
    if not low.samples.height:
        raise NotSeenError(f"no timeout: cwnd at least {late.min('cwnd'):.1f} packets")
    return low


def restarts(track: Track) -> tuple[bool, str]:
    """The window of the first congestion avoidance after a timeout."""
    late = track.since(_low(track.since(20)).last("t"))
    avoided = late.samples.filter(pl.col("cwnd") >= pl.col("ssthresh"))
    if not avoided.height:
        raise NotSeenError("no congestion avoidance after the timeout")
    start, epoch, ssthresh = (float(avoided[name][0]) for name in ("t", "cwnd", "ssthresh"))
    rows = avoided.filter((pl.col("ssthresh") != ssthresh).cum_sum() == 0, pl.col("t") < start + 3)
    if rows["t"][-1] - start < 1:
        raise NotSeenError("congestion avoidance of less than 1 s after the timeout")
    off, when, rounds, last = 0.0, 0.0, 0.0, start
    for t, cwnd, srtt in rows.select("t", "cwnd", "srtt").iter_rows():
        rounds, last = rounds + (t - last) / srtt, t
        expected = epoch + max(C * (t - start) ** 3, ALPHA * rounds)
        if abs(cwnd / expected - 1) > abs(off):
            off, when = cwnd / expected - 1, t - start
    return abs(off) <= 0.05, f"{100 * off:+.1f} % off, {when:.1f} s after {epoch:.0f} packets"


def _pause(track: Track) -> float:
    """When the application slows down and all that it wrote ahead has been sent, s."""
    limited = track.between(15, 59).samples.filter(pl.col("in_flight") < 0.3 * pl.col("cwnd"))
    if not limited.height:
        raise NotSeenError("never application-limited")
    return float(limited["t"][0])


def rests(track: Track) -> tuple[bool, str]:
    quiet = track.between(_pause(track), 60)
    grown = quiet.max("cwnd") / quiet.first("cwnd") - 1
    return grown <= 0.01, f"{100 * grown:.1f} % of growth in {quiet.growth('t'):.0f} s at 5 Mbit/s"


def resumes(track: Track) -> tuple[bool, str]:
    start = _pause(track)
    one = [one for one in reductions(track) if one.time < start][-1]
    until = next((other.time for other in reductions(track) if other.time > 60), 61.0)
    resumed = track.between(60, min(until, 61))
    t = max(start - one.time - one.rtt, 0)
    expected = max(one.window(t + 1, (t + 1) / one.rtt), resumed.first("cwnd"))
    most = resumed.max("cwnd")
    return (
        most <= 1.05 * expected,
        f"{most:.0f} packets {resumed.growth('t'):.2f} s after the pause, where W_cubic is "
        f"{expected:.0f} after 1 s",
    )


def undoes(track: Track) -> tuple[bool, str]:
    restored = [
        one.after.between(one.time, one.time + 3 * one.rtt).max("cwnd") >= 0.95 * one.prior
        for one in reductions(track)
        if one.after.samples.height
    ]
    return (
        bool(restored) and sum(restored) >= 0.8 * len(restored),
        f"{sum(restored)} of {len(restored)} reductions undone within 3 round trips",
    )


def grows_exponentially(track: Track) -> tuple[bool, str]:
    times = []
    for window in (20, 160):
        reached = track.samples.filter(pl.col("cwnd") >= window)
        if not reached.height:
            raise NotSeenError(f"never came to {window} packets")
        times.append((float(reached["t"][0]), float(reached["srtt"][0])))
    rounds = (times[1][0] - times[0][0]) / times[0][1]
    return 2.5 <= rounds <= 5.2, f"{rounds:.1f} round trips from 20 to 160 packets"


def slows_down(track: Track) -> tuple[bool, str]:
    """Whether slow start ends, or grows less, before the first loss."""
    lost = track.samples.filter(pl.col("lost") > 0)
    until = float(lost["t"][0]) if lost.height else track.last("t")
    before = track.between(0, until - 1e-6)
    ended = before.samples.filter(pl.col("ssthresh").is_finite(), pl.col("ssthresh") < 1e8)
    if ended.height:
        return True, f"{ended['cwnd'][0]:.0f} packets at its end, before a loss"
    # Packets that a loss shows were sent a round trip earlier.
    rtt = before.last("srtt")
    growth = before.last("cwnd") / before.between(until - 2 * rtt, until - rtt).last("cwnd")
    return (
        growth <= 1.6,
        f"{before.last('cwnd'):.0f} packets before a loss, {growth:.2f} a round trip",
    )


def shares(track: Track) -> tuple[bool, str]:
    late = track.result.series.filter(pl.col("t") >= 100)
    of_flows = late.group_by("flow", maintain_order=True).agg(
        growth=pl.col("delivered").last() - pl.col("delivered").first()
    )["growth"]
    ratio = of_flows[1] / of_flows[0]
    return 0.8 <= ratio <= 1.25, f"the second flow has {ratio:.2f} of the first one's throughput"


def averages(track: Track, *, window: float) -> tuple[bool, str]:
    rtt = float(track.result.flows["base_rtt"][0])
    average = track.throughput() * rtt / (8 * track.wire.data)
    off = average / window - 1
    return abs(off) <= _LOOSE, f"{average:.0f} packets on average ({100 * off:+.0f} %)"


def _case(section: str, check: str, **said: Any) -> Case:
    named = ("title", "level", "since", "unreal", "transports")
    known = {key: said.pop(key) for key in named if key in said}
    run = partial(globals()[check], **said.pop("arguments", {}))
    return Case(
        section, setup=_experiment, settings=said, check=run, versions=(1,), needs=(), **known
    )


_FILE: Final = Path(__file__).with_suffix(".toml")
CASES: Final = [_case(**said) for said in tomllib.loads(_FILE.read_text("utf-8"))["case"]]
"""The cases, in the RFC's order."""
