"""The test cases of the BBR internet draft (draft-ietf-ccwg-bbr-06, appendix A).

The draft is about BBRv3. What its predecessors do otherwise is checked where the rule has a
counterpart; cases about rules that a version does not have are left out for it.

In A.4 the rate falls to 30 %, not by 10 %: with Drain's gain of 0.35 the
queue would else be gone long before the three rounds. In A.9 it falls to 80 % on a path of 20 ms:
on a longer one PROBE_RTT came before the time was over. In A.11 the application writes a packet
every 6 s, from the beginning on, so the flow never leaves Startup. Where the draft gives no number,
ours stand in the checks, as the 10 s of A.15 and A.16. In A.22 the application writes
nearly as fast as the link sends, as it could not take back what it has written ahead; in its pause
it writes a tenth of that, for without any data no round would end. Of A.12 and A.13 only what is
left unused is checked, as clumps of acknowledgements give a max_bw above the mean.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.checks.conformance import Case, NotSeenError
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.checks.conformance import Track

    Check = Callable[[Track], tuple[bool, str]]

STARTUP, DRAIN, PROBE_BW, PROBE_RTT, UP, DOWN, CRUISE, REFILL = range(8)
"""States as ``inspect`` numbers them; `PROBE_BW` is BBRv1's."""

NAMES: Final = ("STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT", "UP", "DOWN", "CRUISE", "REFILL")
"""What the draft calls them."""

ALGORITHMS: Final = ("bbr", "bbr2", "f-bbr2", "bbr3")
"""The versions of BBR that are built in."""

_VERSIONS: Final = {"bbr": 1, "bbr2": 2, "f-bbr2": 2}
_ALL: Final = frozenset({1, 2, 3})
_BOUNDED: Final = frozenset({2, 3})
_V3: Final = frozenset({3})

_RATE: Final = 50e6
_PAYLOAD: Final = 1448 / 1500
_RTT: Final = 0.04
_BDP: Final = _RATE * _RTT / 8 / 1500
_SAMPLE: Final = 0.002
_CHANGE: Final = 10.0
"""When the rate changes in A.15 and A.16, s."""

_SLOW_APPLICATION: Final = {"app_rate": "5 Mbit/s"}
_CLUMPS: Final = [20] * 83
"""A trace: 83 packets every 20 ms are 49.8 Mbit/s."""

_WRITES: Final = [["0 s", "100 Mbit/s"], ["500 ms", "30 Mbit/s"], ["3 s", "48 Mbit/s"]]
"""A.22's application, which first fills the pipe, then writes nearly as fast as the link sends."""

_SETTLED: Final = 5.0
"""From when on all that it wrote at first has been sent, s."""

CASES: Final[list[Case]] = []
"""The cases, in the draft's order."""


def version(cc: str) -> int:
    """Which version of BBR an algorithm is; an unknown one is held to what the draft specifies."""
    return _VERSIONS.get(cc.partition("(")[0].strip(), 3)


def _experiment(
    cc: str, *, seconds: float = 10, flow: dict[str, Any] | None = None, **link: Any
) -> Experiment:
    """One flow over 50 Mbit/s, 40 ms and 4 BDP, with changes."""
    bottleneck: dict[str, Any] = {"name": "bottleneck", "delay": "20 ms", "queue": "4 BDP"}
    if not {"rates", "trace"} & set(link):
        bottleneck["rate"] = "50 Mbit/s"
    return Experiment(
        links=[Link(**(bottleneck | link))],
        flows=[Flow(name="flow", cc=cc, **(flow or {}))],
        duration=f"{seconds:g} s",
        sample=f"{1e3 * _SAMPLE:g} ms",
        internals=True,
    )


def _case(
    section: str,
    versions: frozenset[int],
    *,
    title: str = "",
    since: float = 0.0,
    then: Callable[[Track], dict[str, Any]] | None = None,
    **settings: Any,
) -> Callable[[Check], Check]:
    """Makes a case of a check, which sees the samples from `since` on, s.

    The title is the check's docstring if not given. The settings are those of `_experiment`; `then`
    gives those that are different in a second experiment.
    """

    def add(check: Check) -> Check:
        about = title or (check.__doc__ or "").removesuffix(".")
        late = (lambda track: check(track.since(since))) if since else check
        CASES.append(Case(section, about, versions, _experiment, settings, late, then))
        return check

    return add


def _change(track: Track, state: int) -> tuple[Track, Track]:
    """The first stay in a state and the one after it."""
    for stay, after in pairwise(track.stays()):
        if stay.state == state:
            return stay, after
    raise NotSeenError(f"never came to and left {NAMES[state]}")


def _ends_in(track: Track, state: int, *allowed: int) -> bool:
    """Whether every stay in a state is followed by one of others; the last may be unfinished.

    PROBE_RTT may come at any time.
    """
    pairs = pairwise(stay.state for stay in track.stays())
    return all(after in (*allowed, PROBE_RTT) for before, after in pairs if before == state)


def _share_of_link(track: Track, rate: float = _RATE) -> float:
    return track.throughput() / (rate * _PAYLOAD)


def _bandwidth(track: Track) -> float:
    """The last max_bw as a share of the link's rate."""
    return 8 * track.last("max_bw") / (_RATE * _PAYLOAD)


def _delay(track: Track, event: pl.Expr) -> float:
    """The time from the change of the rate to the first sample with an event, s."""
    seen = track.since(_CHANGE).samples.filter(event)
    return float(seen["t"][0]) - _CHANGE if seen.height else float("inf")


def _slower_in(state: int, share: float, track: Track) -> dict[str, Any]:
    """The rate falls as soon as the flow comes into a state.

    If it comes there more than once, then when no PROBE_RTT follows soon.
    """
    rtts = [stay.began for stay in track.stays(PROBE_RTT)]
    times = [max(stay.began, _SAMPLE) for stay in track.stays(state)] or [1.0]
    quiet = [t for t in times if not any(t < rtt < t + 4 for rtt in rtts)]
    began = (quiet or times)[0]
    rates = [["0 s", "50 Mbit/s"], [f"{1e3 * began:.0f} ms", f"{50 * share:g} Mbit/s"]]
    return {"seconds": began + 10, "rates": rates}


def _paused_in_refill(track: Track) -> dict[str, Any]:
    """Writes slowly for a round trip when REFILL begins. The connection was open after another."""
    began = next((stay.began for stay in track.stays(REFILL) if stay.began > _SETTLED), None)
    if began is None:
        raise NotSeenError(f"never came to {NAMES[REFILL]}")
    pause, end = (f"{1e3 * (began + shift):.0f} ms" for shift in (-_RTT, 0.0))
    return {"flow": {"app_rates": [*_WRITES, [pause, "5 Mbit/s"], [end, "48 Mbit/s"]]}}


@_case("A.1", _ALL)
def _startup_plateau(track: Track) -> tuple[bool, str]:
    """Exiting STARTUP on bandwidth plateau."""
    startup, after = _change(track, STARTUP)
    rounds_of = startup.samples.group_by("round_count", maintain_order=True)
    best, grew = 0.0, 0.0
    for number, bandwidth in rounds_of.agg(pl.col("max_bw").last()).iter_rows():
        if bandwidth >= 1.25 * best:
            best, grew = bandwidth, number
    rounds = after.first("round_count") - grew
    at_exit = 8 * after.first("max_bw") / (_RATE * _PAYLOAD)
    full = after.first("full_bw_reached") == 1
    return (
        after.state == DRAIN and full and 3 <= rounds <= 4 and abs(at_exit - 1) <= 0.02,
        f"{NAMES[after.state]} {rounds:.0f} rounds after the last growth by 25 %, max_bw "
        f"{100 * at_exit:.1f} % of the link",
    )


@_case("A.2", _BOUNDED, seconds=5, flow={"app_rate": "20 Mbit/s"}, loss=0.2)
def _startup_loss(track: Track) -> tuple[bool, str]:
    """Exiting STARTUP on loss when application-limited."""
    states = [stay.state for stay in track.stays()][:3]
    seen = ", ".join(NAMES[state] for state in states)
    return (
        states[:2] == [STARTUP, DRAIN] and track.last("full_bw_reached") == 1,
        f"{seen}; inflight_longterm {track.last('inflight_longterm'):.0f} packets",
    )


@_case("A.3", _ALL)
def _drain_inflight(track: Track) -> tuple[bool, str]:
    """Exiting DRAIN based on inflight."""
    drain, _ = _change(track, DRAIN)
    gain, left = drain.max("pacing_gain"), drain.last("in_flight") / _BDP
    return (
        0.3 <= gain <= 0.5 and 0.9 <= left <= 1.1,
        f"gain {gain:.2f}, {left:.2f} BDP in flight at its end",
    )


@_case("A.4", _V3, then=partial(_slower_in, DRAIN, 0.3))
def _drain_time(track: Track) -> tuple[bool, str]:
    """Exiting DRAIN based on time."""
    drain, _ = _change(track, DRAIN)
    rounds, left = drain.growth("round_count"), drain.last("in_flight") / _BDP
    return 3 <= rounds <= 4 and left > 1, f"{rounds:.0f} rounds, {left:.2f} BDP left"


@_case("A.5", _V3)
def _up_plateau(track: Track) -> tuple[bool, str]:
    """Exiting PROBE_UP on bandwidth plateau."""
    rounds = [up.growth("round_count") for up in track.stays(UP)]
    lost = track.last("lost")
    return (
        bool(rounds) and min(rounds) >= 2 and lost == 0 and _ends_in(track, UP, DOWN),
        f"{len(rounds)} probes of {min(rounds, default=0):.0f} to {max(rounds, default=0):.0f} "
        f"rounds, {lost:.0f} packets lost",
    )


@_case("(A.5)", frozenset({2}))
def _up_queue(track: Track) -> tuple[bool, str]:
    """Exiting PROBE_UP on 1.25 BDP, BBRv2's rule."""
    reached = [up.max("in_flight") / _BDP for up in track.stays(UP)]
    return (
        bool(reached) and min(reached) >= 1.2 and max(reached) <= 1.35,
        f"{len(reached)} probes up to {min(reached, default=0):.2f} to "
        f"{max(reached, default=0):.2f} BDP in flight",
    )


@_case("A.6", _BOUNDED, seconds=30, flow={"app_rate": "20 Mbit/s"}, loss=0.05)
def _up_loss(track: Track) -> tuple[bool, str]:
    """Exiting PROBE_UP on loss when application-limited."""
    ups, bound = track.stays(UP), track.last("inflight_longterm")
    if not ups:
        raise NotSeenError("never came to UP")
    late = []
    for up in ups:
        hit = up.samples.filter(pl.col("lost") > pl.col("lost").first())
        late.append(up.last("t") - hit["t"][0] if hit.height else 0.0)
    # Among so few packets DOWN may be over before a sample shows it; from UP there is no other way.
    left = _ends_in(track, UP, DOWN, CRUISE, REFILL)
    return (
        left and max(late) <= 2 * _RTT and bound < float("inf"),
        f"{len(ups)} probes, over within {1e3 * max(late):.0f} ms of a loss; inflight_longterm "
        f"{bound:.0f} packets",
    )


@_case("A.7", _ALL, seconds=30, flow=_SLOW_APPLICATION)
def _stays_in_startup(track: Track) -> tuple[bool, str]:
    """Never exiting STARTUP when application-limited with no loss."""
    states = {stay.state for stay in track.stays()}
    return states <= {STARTUP, PROBE_RTT}, ", ".join(NAMES[state] for state in sorted(states))


@_case("A.8", _BOUNDED)
def _down_inflight(track: Track) -> tuple[bool, str]:
    """Exiting PROBE_DOWN on inflight."""
    pairs = pairwise(track.stays())
    downs = [down for down, after in pairs if (down.state, after.state) == (DOWN, CRUISE)]
    left = [down.last("in_flight") / _BDP for down in downs]
    gains = sorted({float(gain) for down in downs for gain in down.samples["pacing_gain"]})
    return (
        bool(left) and max(left) <= 1.05 and set(gains) <= {0.75, 0.9},
        f"{len(downs)} times, {max(left, default=0):.2f} BDP in flight at most at its end, gain "
        + ", ".join(f"{gain:g}" for gain in gains),
    )


@_case("A.9", _V3, then=partial(_slower_in, UP, 0.8), seconds=30, delay="10 ms")
def _down_time(track: Track) -> tuple[bool, str]:
    """Exiting PROBE_DOWN after max time."""
    slow = track.last("t") - 10
    down, after = _change(track.since(slow + 3 * _SAMPLE), DOWN)
    return (
        after.state == REFILL and down.growth("t") >= 1,
        f"{down.growth('t'):.2f} s, then {NAMES[after.state]}",
    )


# Fills the pipe at first. Then the application is slower than the link: there is no queue, and no
# round-trip time is lower than another.
@_case(
    "A.10",
    _ALL,
    seconds=55,
    flow={"app_rate": "40 Mbit/s"},
    rates=[["0 s", "30 Mbit/s"], ["5 s", "100 Mbit/s"]],
)
def _probe_rtt(track: Track) -> tuple[bool, str]:
    """Entering and exiting PROBE_RTT."""
    v1 = not track.has("inflight_longterm")
    every = 10.0 if v1 else 5.0
    late = track.since(10)
    visits = late.stays(PROBE_RTT)
    gaps = [after.began - before.began for before, after in pairwise(visits)]
    if len(gaps) < 2:
        raise NotSeenError(f"came to PROBE_RTT {len(visits)} times in 45 s")
    lasted = [visit.growth("t") for visit in visits[:-1]]
    # The window over what it shall be, at the end of each visit.
    over = []
    for visit in visits[:-1]:
        half = visit.last("bw") * visit.last("min_rtt") / 1448 / 2
        over.append(visit.last("cwnd") - (4 if v1 else max(half, 4)))
    good = (
        all(every <= gap <= every + 0.4 for gap in gaps)
        and all(abs(one) <= 2 for one in over)
        and all(0.2 - 2 * _SAMPLE <= one <= 0.4 for one in lasted)
        and _ends_in(late, PROBE_RTT, PROBE_BW if v1 else CRUISE)
    )
    return (
        good,
        f"every {min(gaps):.2f} to {max(gaps):.2f} s, for {min(lasted):.2f} to {max(lasted):.2f} "
        f"s, with {min(over):+.0f} to {max(over):+.0f} packets beside "
        + ("4" if v1 else "half a BDP"),
    )


@_case("A.11", _ALL, seconds=60, flow={"app_rate": "1930 bit/s"})
def _no_probe_rtt(track: Track) -> tuple[bool, str]:
    """Skipping PROBE_RTT due to application-limited sending."""
    visits = len(track.stays(PROBE_RTT))
    return visits == 0 and track.last("sent") >= 9, f"{visits} visits to PROBE_RTT"


@_case(
    "A.13",
    _ALL,
    since=5.0,
    seconds=20,
    trace=_CLUMPS,
    title="Achieving expected cruise bandwidth on a link with aggregation",
)
@_case("A.12", _ALL, since=1.0, seconds=3, trace=_CLUMPS)
def _aggregation(track: Track) -> tuple[bool, str]:
    """Achieving expected STARTUP bandwidth on a link with aggregation."""
    extra, cwnd = track.max("extra_acked"), track.max("cwnd") / _BDP
    used = _share_of_link(track)
    return (
        extra >= 40 and cwnd > 2 and used >= 0.9 and _bandwidth(track) >= 0.9,
        f"extra_acked {extra:.0f} packets, window {cwnd:.1f} BDP, {100 * used:.0f} % of the link, "
        f"max_bw {100 * _bandwidth(track):.0f} %",
    )


@_case("A.14", _ALL, since=10.0, seconds=40, rate="64 kbit/s", delay="10 ms", queue="20 packets")
def _tiny_bdp(track: Track) -> tuple[bool, str]:
    """Correctly managing sub-packet BDPs."""
    windows = (stay.min("cwnd") for stay in track.stays() if stay.state != PROBE_RTT)
    least = min(windows, default=0.0)
    used = _share_of_link(track, 64e3)
    return (
        least >= 4 and used >= 0.9,
        f"window at least {least:.0f}, {100 * used:.0f} % of the link",
    )


@_case("A.15", _ALL, seconds=25, rates=[["0 s", "10 Mbit/s"], ["10 s", "100 Mbit/s"]])
def _ten_times_more(track: Track) -> tuple[bool, str]:
    """Increasing bandwidth 10x and ensuring full bandwidth is reached."""
    took = _delay(track, 8 * pl.col("max_bw") >= 0.95 * 100e6 * _PAYLOAD)
    return took <= 10, f"95 % of the new rate after {took:.1f} s"


@_case(
    "A.16", _ALL, seconds=30, rates=[["0 s", "100 Mbit/s"], ["10 s", "10 Mbit/s"]], queue="0.5 BDP"
)
def _ten_times_less(track: Track) -> tuple[bool, str]:
    """Decreasing bandwidth 10x and ensuring max bandwidth adapts down."""
    took = _delay(track, 8 * pl.col("max_bw") <= 1.05 * 10e6 * _PAYLOAD)
    seen = f"max_bw is the new rate after {took:.1f} s"
    if not track.has("bw_shortterm"):
        return took <= 10, seen
    lowered = _delay(track, pl.col("bw_shortterm").is_finite())
    return took <= 10 and lowered <= 1, f"bw_shortterm set after {lowered:.2f} s, {seen}"


@_case("A.17", _ALL, since=20.0, seconds=40, rate="10 Mbit/s", burst="60 kB", queue="2 packets")
def _policer(track: Track) -> tuple[bool, str]:
    """Handling token bucket policers."""
    lost = track.growth("lost") / track.growth("sent")
    used = _share_of_link(track, 10e6)
    return (
        lost <= 0.05 and used >= 0.7,
        f"{100 * lost:.1f} % lost, {100 * used:.0f} % of the token rate",
    )


@_case(
    "A.19",
    _ALL,
    since=10.0,
    seconds=20,
    rates=[["0 s", "50 Mbit/s"], ["5 s", "0 bit/s"], ["5600 ms", "50 Mbit/s"]],
    queue="unlimited",
    title="Handling spurious RTO recovery",
)
@_case("A.18", _ALL, since=5.0, seconds=30, reorder="0.1 % by 30 ms")
def _spurious_recovery(track: Track) -> tuple[bool, str]:
    """Handling spurious fast recovery."""
    episodes = int(track.result.flows["spurious"][0])
    used = _share_of_link(track)
    return (
        episodes > 0 and used >= 0.9,
        f"{episodes} episodes found spurious, {100 * used:.0f} % of the link",
    )


@_case("A.20", _ALL, seconds=30, flow=_SLOW_APPLICATION)
def _back_to_startup(track: Track) -> tuple[bool, str]:
    """Entering and exiting PROBE_RTT during STARTUP."""
    visits = len(track.stays(PROBE_RTT))
    return (
        visits > 0 and _ends_in(track, PROBE_RTT, STARTUP),
        f"{visits} visits to PROBE_RTT, each followed by STARTUP",
    )


@_case("A.21", _BOUNDED, seconds=40, queue="0.1 BDP")
def _up_after_bound(track: Track) -> tuple[bool, str]:
    """Handling loss during PROBE_UP after inflight_longterm is set."""
    cuts = 0
    for before, after in pairwise(track.stays()):
        if before.state == UP and after.state == DOWN:
            high = before.max("inflight_longterm")
            cuts += high < float("inf") and after.first("inflight_longterm") < high
    lost = track.last("lost") / track.last("sent")
    return (
        cuts > 0 and _ends_in(track, UP, DOWN) and lost < 0.02,
        f"{cuts} probes lowered inflight_longterm and went to DOWN, {100 * lost:.2f} % lost",
    )


@_case("A.22", _BOUNDED, then=_paused_in_refill, seconds=20, flow={"app_rates": _WRITES})
def _refill_pause(track: Track) -> tuple[bool, str]:
    """Handling application-limited sending during PROBE_REFILL."""
    stays = track.stays()
    parts = zip(stays, stays[1:], stays[2:], strict=False)
    late = [part for part in parts if part[1].state == REFILL and part[1].began > _SETTLED]
    if not late:
        raise NotSeenError(f"never came to and left {NAMES[REFILL]}")
    before, refill, after = late[0]
    kept = refill.min("max_bw") / before.last("max_bw")
    left = refill.min("in_flight")
    later = track.since(after.began + 1).throughput() / 48e6
    return (
        after.state == UP and kept >= 1.0 and later >= 0.95,
        f"{NAMES[after.state]} after REFILL, max_bw {100 * kept:.0f} % of what it was while in "
        f"flight fell to {left:.0f} packets; then {100 * later:.0f} % of "
        "what the application writes",
    )
