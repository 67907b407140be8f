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

from dumbbell.checks.conformance import Case, Finding, NotSeenError
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.checks.conformance import Stay, Track

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
_SETTLED: Final = 5.0
"""From when on all that A.22's application wrote at first has been sent, s."""

_SLOW_APPLICATION: Final = {"app_rate": "5 Mbit/s"}
_CLUMPS: Final = [20] * 83
"""A trace: 83 packets every 20 ms are 49.8 Mbit/s."""

CASES: Final[list[Case]] = []
"""The cases, in the draft's order."""


def version(cc: str) -> int:
    """Which version of BBR an algorithm is; an unknown one is held to what the draft specifies."""
    return _VERSIONS.get(cc.partition("(")[0].strip(), 3)


def _flow(
    cc: str, *, seconds: float, flow: dict[str, Any] | None = None, **link: Any
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
    setup: Callable[[str], Experiment] | None = None,
    then: Callable[[str, Track], Experiment] | None = None,
    seconds: float = 10,
    **changes: Any,
) -> Callable[[Callable[[Track], Finding]], Callable[[Track], Finding]]:
    """Makes a case of a check, which sees the samples from `since` on, s.

    The title is the check's docstring if not given. Without `setup` the experiment is one flow for
    `seconds`, with `changes` as for `_flow`.
    """

    def add(check: Callable[[Track], Finding]) -> Callable[[Track], Finding]:
        make = setup or partial(_flow, seconds=seconds, **changes)
        late = (lambda track: check(track.between(since))) if since else check
        about = title or (check.__doc__ or "").removesuffix(".")
        CASES.append(Case(section, about, make, late, versions, then))
        return check

    return add


def _walk(track: Track) -> list[int]:
    return [stay.state for stay in track.stays()]


def _all(track: Track, state: int) -> list[Stay]:
    return [stay for stay in track.stays() if stay.state == state]


def _change(track: Track, state: int) -> tuple[Stay, Stay]:
    """The first stay in a state and the one after it."""
    stays = track.stays()
    for stay, after in pairwise(stays):
        if stay.state == state:
            return stay, after
    raise NotSeenError(f"never came to and left {NAMES[state]}")


def _named(states: list[int]) -> str:
    return ", ".join(NAMES[state] for state in states)


def _max(samples: pl.DataFrame, variable: str) -> float:
    return float(samples[variable].max())  # type: ignore[arg-type]


def _min(samples: pl.DataFrame, variable: str) -> float:
    return float(samples[variable].min())  # type: ignore[arg-type]


def _share_of_link(track: Track, rate: float = _RATE) -> float:
    return track.throughput() / (rate * _PAYLOAD)


def _bandwidth(track: Track, rate: float = _RATE) -> float:
    return 8 * track.last("max_bw") / (rate * _PAYLOAD)


def _slower_in(state: int, share: float, cc: str, track: Track, **link: Any) -> Experiment:
    """As the plain flow, but the rate falls as soon as the flow comes into a state.

    If it comes there more than once, then when no PROBE_RTT follows soon.
    """
    rtts = [stay.began for stay in _all(track, PROBE_RTT)]
    times = [max(stay.began, _SAMPLE) for stay in _all(track, state)] or [1.0]
    quiet = [t for t in times if not any(t < rtt < t + 4 for rtt in rtts)]
    began = (quiet or times)[0]
    rates = [["0 s", "50 Mbit/s"], [f"{1e3 * began:.0f} ms", f"{50 * share:g} Mbit/s"]]
    return _flow(cc, seconds=began + 10, rates=rates, **link)


@_case("A.1", _ALL)
def _startup_plateau(track: Track) -> Finding:
    """Exiting STARTUP on bandwidth plateau."""
    startup, after = _change(track, STARTUP)
    rounds_of = startup.samples.group_by("round_count", maintain_order=True)
    best, grew = 0.0, 0.0
    for number, bandwidth in rounds_of.agg(pl.col("max_bw").last()).iter_rows():
        if bandwidth >= 1.25 * best:
            best, grew = bandwidth, number
    rounds = float(after.samples["round_count"][0]) - grew
    at_exit = 8 * float(after.samples["max_bw"][0]) / (_RATE * _PAYLOAD)
    full = after.samples["full_bw_reached"][0] == 1
    return Finding(
        after.state == DRAIN and full and 3 <= rounds <= 4 and abs(at_exit - 1) <= 0.02,
        f"{NAMES[after.state]} {rounds:.0f} rounds after the last growth by 25 %, max_bw "
        f"{100 * at_exit:.1f} % of the link",
    )


@_case("A.2", _BOUNDED, seconds=5, flow={"app_rate": "20 Mbit/s"}, loss=0.2)
def _startup_loss(track: Track) -> Finding:
    """Exiting STARTUP on loss when application-limited."""
    states = _walk(track)
    full = track.last("full_bw_reached") == 1
    return Finding(
        states[:2] == [STARTUP, DRAIN] and full,
        f"{_named(states[:3])}; inflight_longterm {track.last('inflight_longterm'):.0f} packets",
    )


@_case("A.3", _ALL)
def _drain_inflight(track: Track) -> Finding:
    """Exiting DRAIN based on inflight."""
    drain, _ = _change(track, DRAIN)
    gain = _max(drain.samples, "pacing_gain")
    left = float(drain.samples["in_flight"][-1]) / _BDP
    return Finding(
        0.3 <= gain <= 0.5 and 0.9 <= left <= 1.1,
        f"gain {gain:.2f}, {left:.2f} BDP in flight at its end",
    )


@_case("A.4", _V3, then=partial(_slower_in, DRAIN, 0.3))
def _drain_time(track: Track) -> Finding:
    """Exiting DRAIN based on time."""
    drain, _ = _change(track, DRAIN)
    rounds = float(drain.samples["round_count"][-1] - drain.samples["round_count"][0])
    left = float(drain.samples["in_flight"][-1]) / _BDP
    return Finding(3 <= rounds <= 4 and left > 1, f"{rounds:.0f} rounds, {left:.2f} BDP left")


@_case("A.5", _V3)
def _up_plateau(track: Track) -> Finding:
    """Exiting PROBE_UP on bandwidth plateau."""
    ups = _all(track, UP)
    rounds = [float(up.samples["round_count"][-1] - up.samples["round_count"][0]) for up in ups]
    lost = track.last("lost")
    return Finding(
        bool(rounds) and min(rounds) >= 2 and lost == 0 and _ends_in(track, UP, DOWN),
        f"{len(ups)} probes of {min(rounds, default=0):.0f} to {max(rounds, default=0):.0f} "
        f"rounds, {lost:.0f} packets lost",
    )


@_case("(A.5)", frozenset({2}))
def _up_queue(track: Track) -> Finding:
    """Exiting PROBE_UP on 1.25 BDP, BBRv2's rule."""
    ups = _all(track, UP)
    reached = [_max(up.samples, "in_flight") / _BDP for up in ups]
    return Finding(
        bool(reached) and min(reached) >= 1.2 and max(reached) <= 1.35,
        f"{len(ups)} probes up to {min(reached, default=0):.2f} to {max(reached, default=0):.2f} "
        "BDP in flight",
    )


def _ends_in(track: Track, state: int, *allowed: int) -> bool:
    """Whether every stay in a state is followed by one of others; the last may be unfinished.

    PROBE_RTT may come at any time.
    """
    states = _walk(track)
    return all(
        after in (*allowed, PROBE_RTT) for before, after in pairwise(states) if before == state
    )


@_case("A.6", _BOUNDED, seconds=30, flow={"app_rate": "20 Mbit/s"}, loss=0.05)
def _up_loss(track: Track) -> Finding:
    """Exiting PROBE_UP on loss when application-limited."""
    ups, bound = _all(track, UP), track.last("inflight_longterm")
    if not ups:
        raise NotSeenError("never came to UP")
    late = []
    for up in ups:
        hit = up.samples.filter(pl.col("lost") > pl.col("lost").first())
        late.append(up.ended - hit["t"][0] if hit.height else 0.0)
    # Among so few packets DOWN may be over before a sample shows it; from UP there is no other way.
    left = _ends_in(track, UP, DOWN, CRUISE, REFILL)
    return Finding(
        left and max(late) <= 2 * _RTT and bound < float("inf"),
        f"{len(ups)} probes, over within {1e3 * max(late):.0f} ms of a loss; inflight_longterm "
        f"{bound:.0f} packets",
    )


@_case("A.7", _ALL, seconds=30, flow=_SLOW_APPLICATION)
def _stays_in_startup(track: Track) -> Finding:
    """Never exiting STARTUP when application-limited with no loss."""
    states = set(_walk(track))
    return Finding(states <= {STARTUP, PROBE_RTT}, _named(sorted(states)))


@_case("A.8", _BOUNDED)
def _down_inflight(track: Track) -> Finding:
    """Exiting PROBE_DOWN on inflight."""
    downs = [
        down
        for down, after in pairwise(track.stays())
        if down.state == DOWN and after.state == CRUISE
    ]
    left = [float(down.samples["in_flight"][-1]) / _BDP for down in downs]
    gains = {float(gain) for down in downs for gain in down.samples["pacing_gain"]}
    return Finding(
        bool(left) and max(left) <= 1.05 and gains <= {0.75, 0.9},
        f"{len(downs)} times, {max(left, default=0):.2f} BDP in flight at most at its end, gain "
        + ", ".join(f"{gain:g}" for gain in sorted(gains)),
    )


@_case("A.9", _V3, then=partial(_slower_in, UP, 0.8, delay="10 ms"), seconds=30, delay="10 ms")
def _down_time(track: Track) -> Finding:
    """Exiting PROBE_DOWN after max time."""
    slow = track.last("t") - 10
    down, after = _change(track.between(slow + 3 * _SAMPLE), DOWN)
    return Finding(
        after.state == REFILL and down.ended - down.began >= 1,
        f"{down.ended - down.began:.2f} s, then {NAMES[after.state]}",
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
def _probe_rtt(track: Track) -> Finding:
    """Entering and exiting PROBE_RTT."""
    v1 = not track.has("inflight_longterm")
    every = 10.0 if v1 else 5.0
    late = track.between(10)
    visits = _all(late, PROBE_RTT)
    gaps = [after.began - before.began for before, after in pairwise(visits)]
    if len(gaps) < 2:
        raise NotSeenError(f"came to PROBE_RTT {len(visits)} times in 45 s")
    lasted = [visit.ended - visit.began for visit in visits[:-1]]
    # The window over what it shall be, at the end of each visit.
    over = []
    for visit in visits[:-1]:
        end = visit.samples.row(-1, named=True)
        half = end["bw"] * end["min_rtt"] / 1448 / 2
        over.append(end["cwnd"] - (4 if v1 else max(half, 4)))
    good = (
        all(every <= gap <= every + 0.4 for gap in gaps)
        and all(abs(one) <= 2 for one in over)
        and all(0.2 - 2 * _SAMPLE <= one <= 0.4 for one in lasted)
        and _ends_in(late, PROBE_RTT, PROBE_BW if v1 else CRUISE)
    )
    return Finding(
        good,
        f"every {min(gaps):.2f} to {max(gaps):.2f} s, for {min(lasted):.2f} to {max(lasted):.2f} "
        f"s, with {min(over):+.0f} to {max(over):+.0f} packets beside "
        + ("4" if v1 else "half a BDP"),
    )


@_case("A.11", _ALL, seconds=60, flow={"app_rate": "1930 bit/s"})
def _no_probe_rtt(track: Track) -> Finding:
    """Skipping PROBE_RTT due to application-limited sending."""
    visits = len(_all(track, PROBE_RTT))
    return Finding(visits == 0 and track.last("sent") >= 9, f"{visits} visits to PROBE_RTT")


@_case(
    "A.13",
    _ALL,
    since=5.0,
    seconds=20,
    trace=_CLUMPS,
    title="Achieving expected cruise bandwidth on a link with aggregation",
)
@_case("A.12", _ALL, since=1.0, seconds=3, trace=_CLUMPS)
def _aggregation(track: Track) -> Finding:
    """Achieving expected STARTUP bandwidth on a link with aggregation."""
    extra = _max(track.samples, "extra_acked")
    cwnd = _max(track.samples, "cwnd") / _BDP
    used = _share_of_link(track)
    return Finding(
        extra >= 40 and cwnd > 2 and used >= 0.9 and _bandwidth(track) >= 0.9,
        f"extra_acked {extra:.0f} packets, window {cwnd:.1f} BDP, {100 * used:.0f} % of the link, "
        f"max_bw {100 * _bandwidth(track):.0f} %",
    )


@_case("A.14", _ALL, since=10.0, seconds=40, rate="64 kbit/s", delay="10 ms", queue="20 packets")
def _tiny_bdp(track: Track) -> Finding:
    """Correctly managing sub-packet BDPs."""
    least = _min(track.samples.filter(pl.col("state") != PROBE_RTT), "cwnd")
    used = _share_of_link(track, 64e3)
    return Finding(
        least >= 4 and used >= 0.9, f"window at least {least:.0f}, {100 * used:.0f} % of the link"
    )


@_case("A.15", _ALL, seconds=25, rates=[["0 s", "10 Mbit/s"], ["10 s", "100 Mbit/s"]])
def _ten_times_more(track: Track) -> Finding:
    """Increasing bandwidth 10x and ensuring full bandwidth is reached."""
    reached = track.samples.filter(
        pl.col("t") > 10, 8 * pl.col("max_bw") >= 0.95 * 100e6 * _PAYLOAD
    )
    took = float(reached["t"][0]) - 10 if reached.height else float("inf")
    return Finding(took <= 10, f"95 % of the new rate after {took:.1f} s")


@_case(
    "A.16", _ALL, seconds=30, rates=[["0 s", "100 Mbit/s"], ["10 s", "10 Mbit/s"]], queue="0.5 BDP"
)
def _ten_times_less(track: Track) -> Finding:
    """Decreasing bandwidth 10x and ensuring max bandwidth adapts down."""
    late = track.between(10)
    true = late.samples.filter(8 * pl.col("max_bw") <= 1.05 * 10e6 * _PAYLOAD)
    took = float(true["t"][0]) - 10 if true.height else float("inf")
    bounded = ""
    good = took <= 10
    if track.has("bw_shortterm"):
        first = late.samples.filter(pl.col("bw_shortterm").is_finite())
        lowered = float(first["t"][0]) - 10 if first.height else float("inf")
        bounded, good = f"bw_shortterm set after {lowered:.2f} s, ", good and lowered <= 1
    return Finding(good, f"{bounded}max_bw is the new rate after {took:.1f} s")


@_case("A.17", _ALL, since=20.0, seconds=40, rate="10 Mbit/s", burst="60 kB", queue="2 packets")
def _policer(track: Track) -> Finding:
    """Handling token bucket policers."""
    first, last = track.samples.row(0, named=True), track.samples.row(-1, named=True)
    lost = (last["lost"] - first["lost"]) / (last["sent"] - first["sent"])
    used = _share_of_link(track, 10e6)
    return Finding(
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
def _spurious_recovery(track: Track) -> Finding:
    """Handling spurious fast recovery."""
    episodes = int(track.result.flows["spurious"][0])
    used = _share_of_link(track)
    return Finding(
        episodes > 0 and used >= 0.9,
        f"{episodes} episodes found spurious, {100 * used:.0f} % of the link",
    )


@_case("A.20", _ALL, seconds=30, flow=_SLOW_APPLICATION)
def _back_to_startup(track: Track) -> Finding:
    """Entering and exiting PROBE_RTT during STARTUP."""
    states = _walk(track)
    visits = states.count(PROBE_RTT)
    return Finding(
        visits > 0 and _ends_in(track, PROBE_RTT, STARTUP),
        f"{visits} visits to PROBE_RTT, each followed by STARTUP",
    )


@_case("A.21", _BOUNDED, seconds=40, queue="0.1 BDP")
def _up_after_bound(track: Track) -> Finding:
    """Handling loss during PROBE_UP after inflight_longterm is set."""
    cuts = 0
    for before, after in pairwise(track.stays()):
        if before.state == UP and after.state == DOWN:
            high = _max(before.samples, "inflight_longterm")
            cuts += high < float("inf") and float(after.samples["inflight_longterm"][0]) < high
    lost = track.last("lost") / track.last("sent")
    return Finding(
        cuts > 0 and _ends_in(track, UP, DOWN) and lost < 0.02,
        f"{cuts} probes lowered inflight_longterm and went to DOWN, {100 * lost:.2f} % lost",
    )


def _pausing(cc: str, *pauses: list[str]) -> Experiment:
    """An application that first fills the pipe, then writes nearly as fast as the link sends."""
    steps = [["0 s", "100 Mbit/s"], ["500 ms", "30 Mbit/s"], ["3 s", "48 Mbit/s"], *pauses]
    return _flow(cc, seconds=20, flow={"app_rates": steps})


def _paused_in_refill(cc: str, track: Track) -> Experiment:
    """Writes slowly for a round trip when REFILL begins. The connection was open after another."""
    began = next((stay.began for stay in _all(track, REFILL) if stay.began > _SETTLED), None)
    if began is None:
        raise NotSeenError(f"never came to {NAMES[REFILL]}")
    pause, end = (f"{1e3 * (began + shift):.0f} ms" for shift in (-_RTT, 0.0))
    return _pausing(cc, [pause, "5 Mbit/s"], [end, "48 Mbit/s"])


@_case("A.22", _BOUNDED, setup=_pausing, then=_paused_in_refill)
def _refill_pause(track: Track) -> Finding:
    """Handling application-limited sending during PROBE_REFILL."""
    stays = track.stays()
    refills = [
        part
        for part in zip(stays, stays[1:], stays[2:], strict=False)
        if part[1].state == REFILL and part[1].began > _SETTLED
    ]
    if not refills:
        raise NotSeenError(f"never came to and left {NAMES[REFILL]}")
    before, refill, after = refills[0]
    kept = _min(refill.samples, "max_bw") / float(before.samples["max_bw"][-1])
    left = _min(refill.samples, "in_flight")
    later = track.between(after.began + 1).throughput() / 48e6
    return Finding(
        after.state == UP and kept >= 1.0 and later >= 0.95,
        f"{NAMES[after.state]} after REFILL, max_bw {100 * kept:.0f} % of what it was while in "
        f"flight fell to {left:.0f} packets; then {100 * later:.0f} % of "
        "what the application writes",
    )
