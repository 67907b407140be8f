"""The test cases of the BBR internet draft (draft-ietf-ccwg-bbr-06, appendix A).

``bbr_draft.toml`` has their experiments, this module what each of them checks.
"""

from __future__ import annotations

import tomllib
from functools import partial
from itertools import pairwise
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.checks.conformance import Case, NotSeenError, Path, Track
from dumbbell.experiment.model import Experiment, Flow, Link, without_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


STARTUP, DRAIN, PROBE_BW, PROBE_RTT, UP, DOWN, CRUISE, REFILL = range(8)
"""States as ``inspect`` numbers them; `PROBE_BW` is BBRv1's."""

NAMES: Final = ("STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT", "UP", "DOWN", "CRUISE", "REFILL")
"""What the draft calls them."""

ALGORITHMS: Final = ("bbr", "bbr2", "f-bbr2", "bbr3")  # the versions of BBR that are built in
STACKS: Final = (
    *(f"{cc}@{stack}" for stack in ("quinn", "noq") for cc in ("bbr", "bbr3")),
    "quinn:bbr",
    "noq:bbr3",
)
"""In QUIC stacks: ours inside them, and their own."""

SPECIFICATION: Final = "draft-ietf-ccwg-bbr-06, appendix A"
_VERSIONS: Final = {"bbr": 1, "bbr2": 2, "f-bbr2": 2, "quinn:bbr": 1}

_USUAL: Final = Path()
_CHANGE: Final = 10.0  # when the rate changes in A.15 and A.16, s
_SAMPLES: Final = 1e5  # of a run at most
_SETTLED: Final = 5.0  # from when on all that A.22's application wrote at first has been sent, s


def version(cc: str) -> int:
    """Which version of BBR an algorithm is; an unknown one is held to what the draft specifies."""
    return _VERSIONS.get(without_options(cc.partition("@")[0]), 3)


def _experiment(
    keys: Mapping[str, Any],
    *,
    path: Path = _USUAL,
    seconds: float = 10,
    clumps: dict[str, int] | None = None,
    flow: Mapping[str, Any] = MappingProxyType({}),
    **link: Any,
) -> Experiment:
    """One flow over 50 Mbit/s, 40 ms and 4 BDP, with the settings of ``bbr_draft.toml``.

    On another path rates, delays and times are changed in proportion.
    """
    said = {"delay": "20 ms", "queue": "4 BDP"} | link
    if clumps:
        said["trace"] = [clumps["ms"]] * clumps["packets"]
    elif "rates" not in said:
        said.setdefault("rate", "50 Mbit/s")
    if keys.get("transport") == "quic":
        flow = {key: value for key, value in flow.items() if key != "stack_options"}
    if path != _USUAL:
        said, flow = _scaled(said, path), _scaled(flow, path)
    return Experiment(
        links=[Link(name="bottleneck", **said)],
        flows=[Flow(name="flow", **keys, **flow)],
        duration=f"{seconds * path.stretch:g} s",
        sample=f"{1e6 * max(path.sample, seconds * path.stretch / _SAMPLES):.6g} us",
        internals=True,
    )


def _scaled(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a link or a flow on another path."""
    faster, base = path.rate / Path().rate, Path()

    def rate(said: str) -> str:
        number, unit = said.split()
        return f"{float(number) * faster:.6g} {unit}"

    def moment(said: str) -> str:
        number, unit = said.split()
        return f"{float(number) * path.stretch:.6g} {unit}"

    changed = dict(settings)
    for key in ("rate", "app_rate"):
        if key in changed:
            changed[key] = rate(changed[key])
    for key in ("rates", "app_rates"):
        if key in changed:
            changed[key] = [[moment(when), rate(one)] for when, one in changed[key]]
    if "delay" in changed:
        number, unit = changed["delay"].split()
        changed["delay"] = f"{float(number) * path.rtt / base.rtt:.6g} {unit}"
    if changed.get("queue", "").endswith("BDP"):
        bdp = path.rate * path.rtt / 8 / 1500
        packets = float(changed["queue"].split()[0]) * bdp
        changed["queue"] = f"{max(packets, 4):.0f} packets"
    return changed


def _change(track: Track, state: int) -> tuple[Track, Track]:
    """The first stay in a state that PROBE_RTT does not interrupt, and the one after it."""
    for stay, after in pairwise(track.stays()):
        if stay.state == state and after.state != PROBE_RTT:
            return stay, after
    raise NotSeenError(f"never came to and left {NAMES[state]}")


def _ends_in(track: Track, state: int, *allowed: int) -> bool:
    """Whether every stay in a state is followed by one of others; the last may be unfinished.

    PROBE_RTT may come at any time.
    """
    pairs = pairwise(stay.state for stay in track.stays())
    return all(after in (*allowed, PROBE_RTT) for before, after in pairs if before == state)


def _share_of_link(track: Track, share: float = 1.0) -> float:
    """The throughput over a share of the link's rate."""
    wire = track.wire
    return track.throughput() / (share * track.path.rate * wire.data / wire.size)


def _bandwidth(track: Track) -> float:
    """The last max_bw as a share of the link's rate."""
    return 8 * track.last("max_bw") / (track.path.rate * track.payload)


def _delay(track: Track, event: pl.Expr) -> float:
    """The time from the change of the rate to the first sample with an event, s."""
    change = _CHANGE * track.path.stretch
    seen = track.since(change).samples.filter(event)
    return float(seen["t"][0]) - change if seen.height else float("inf")


def _slower_in(state: int, share: float, track: Track) -> dict[str, Any]:
    """The rate falls as soon as the flow comes into a state.

    If it comes there more than once, then when no PROBE_RTT follows soon.
    """
    rtts = [stay.began for stay in track.stays(PROBE_RTT)]
    times = [max(stay.began, track.path.sample) for stay in track.stays(state)] or [1.0]
    quiet = [t for t in times if not any(t < rtt < t + 4 for rtt in rtts)]
    began = (quiet or times)[0]
    rates = [["0 s", "50 Mbit/s"], [f"{1e3 * began:.0f} ms", f"{50 * share:g} Mbit/s"]]
    return {"seconds": began + 10, "rates": rates}


def _paused_in_refill(track: Track) -> dict[str, Any]:
    """Writes slowly for a round trip when REFILL begins. The connection was open after another."""
    began = next((stay.began for stay in track.stays(REFILL) if stay.began > _SETTLED), None)
    if began is None:
        raise NotSeenError(f"never came to {NAMES[REFILL]}")
    pause, end = (f"{1e3 * (began + shift):.0f} ms" for shift in (-track.path.rtt, 0.0))
    [case] = (case for case in CASES if case.section == "A.22")
    writes = case.settings["flow"]["app_rates"]
    return {"flow": {"app_rates": [*writes, [pause, "5 Mbit/s"], [end, "48 Mbit/s"]]}}


def startup_plateau(track: Track) -> tuple[bool, str]:
    startup, after = _change(track, STARTUP)
    rounds_of = startup.samples.group_by("round_count", maintain_order=True)
    best, grew = 0.0, 0.0
    for number, bandwidth in rounds_of.agg(pl.col("max_bw").last()).iter_rows():
        if bandwidth >= 1.25 * best:
            best, grew = bandwidth, number
    rounds = after.first("round_count") - grew
    at_exit = 8 * after.first("max_bw") / (track.path.rate * track.payload)
    full = after.first("full_bw_reached") == 1
    return (
        after.state == DRAIN and full and 3 <= rounds <= 4 and abs(at_exit - 1) <= 0.02,
        f"{NAMES[after.state]} {rounds:.0f} rounds after the last growth by 25 %, max_bw "
        f"{100 * at_exit:.1f} % of the link",
    )


def startup_loss(track: Track) -> tuple[bool, str]:
    states = [stay.state for stay in track.stays()][:3]
    seen = ", ".join(NAMES[state] for state in states)
    # Among so few packets DRAIN and DOWN may be over before a sample shows them; from STARTUP there
    # is no other way.
    return (
        states[0] == STARTUP
        and states[1:2] in ([DRAIN], [DOWN], [CRUISE])
        and track.last("full_bw_reached") == 1,
        f"{seen}; inflight_longterm {track.last('inflight_longterm'):.0f} packets",
    )


def drain_inflight(track: Track) -> tuple[bool, str]:
    drain, _ = _change(track, DRAIN)
    gain, left = drain.max("pacing_gain"), drain.last("in_flight") / track.bdp
    return (
        0.3 <= gain <= 0.5 and 0.9 <= left <= 1.1,
        f"gain {gain:.2f}, {left:.2f} BDP in flight at its end",
    )


def drain_time(track: Track) -> tuple[bool, str]:
    drain, _ = _change(track, DRAIN)
    rounds, left = drain.growth("round_count"), drain.last("in_flight") / track.bdp
    return 3 <= rounds <= 4 and left > 1, f"{rounds:.0f} rounds, {left:.2f} BDP left"


def up_plateau(track: Track) -> tuple[bool, str]:
    rounds = [up.growth("round_count") for up in track.stays(UP)]
    lost = track.last("lost")
    return (
        bool(rounds) and min(rounds) >= 2 and lost == 0 and _ends_in(track, UP, DOWN),
        f"{len(rounds)} probes of {min(rounds, default=0):.0f} to {max(rounds, default=0):.0f} "
        f"rounds, {lost:.0f} packets lost",
    )


def up_queue(track: Track) -> tuple[bool, str]:
    reached = [up.max("in_flight") / track.bdp for up in track.stays(UP)]
    return (
        bool(reached) and min(reached) >= 1.2 and max(reached) <= 1.35,
        f"{len(reached)} probes up to {min(reached, default=0):.2f} to "
        f"{max(reached, default=0):.2f} BDP in flight",
    )


def up_loss(track: Track) -> tuple[bool, str]:
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
        left and max(late) <= 2 * track.path.rtt and bound < float("inf"),
        f"{len(ups)} probes, over within {1e3 * max(late):.0f} ms of a loss; inflight_longterm "
        f"{bound:.0f} packets",
    )


def stays_in_startup(track: Track) -> tuple[bool, str]:
    states = {stay.state for stay in track.stays()}
    return states <= {STARTUP, PROBE_RTT}, ", ".join(NAMES[state] for state in sorted(states))


def down_inflight(track: Track) -> tuple[bool, str]:
    pairs = pairwise(track.stays())
    downs = [down for down, after in pairs if (down.state, after.state) == (DOWN, CRUISE)]
    left = [down.last("in_flight") / track.bdp for down in downs]
    # The kernel's are in units of 2^-16.
    gains = sorted({round(gain, 4) for down in downs for gain in down.samples["pacing_gain"]})
    return (
        bool(left) and max(left) <= 1.05 and set(gains) <= {0.75, 0.9},
        f"{len(downs)} times, {max(left, default=0):.2f} BDP in flight at most at its end, gain "
        + ", ".join(f"{gain:g}" for gain in gains),
    )


def down_time(track: Track) -> tuple[bool, str]:
    slow = track.last("t") - 10
    down, after = _change(track.since(slow + 3 * track.path.sample), DOWN)
    return (
        after.state == REFILL and down.growth("t") >= 1,
        f"{down.growth('t'):.2f} s, then {NAMES[after.state]}",
    )


def probe_rtt(track: Track) -> tuple[bool, str]:
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
        half = visit.last("bw") * visit.last("min_rtt") / track.wire.counted / 2
        over.append(visit.last("cwnd") - (4 if v1 else max(half, 4)))
    good = (
        all(every <= gap <= every + 0.4 for gap in gaps)
        and all(abs(one) <= 2 for one in over)
        and all(0.2 - 2 * track.path.sample <= one <= 0.4 for one in lasted)
        and _ends_in(late, PROBE_RTT, PROBE_BW if v1 else CRUISE)
    )
    return (
        good,
        f"every {min(gaps):.2f} to {max(gaps):.2f} s, for {min(lasted):.2f} to {max(lasted):.2f} "
        f"s, with {min(over):+.0f} to {max(over):+.0f} packets beside "
        + ("4" if v1 else "half a BDP"),
    )


def no_probe_rtt(track: Track) -> tuple[bool, str]:
    visits = len(track.stays(PROBE_RTT))
    return visits == 0 and track.last("sent") >= 9, f"{visits} visits to PROBE_RTT"


def aggregation(track: Track) -> tuple[bool, str]:
    extra, cwnd = track.max("extra_acked"), track.max("cwnd") / track.bdp
    used = _share_of_link(track)
    return (
        extra >= 40 and cwnd > 2 and used >= 0.9 and _bandwidth(track) >= 0.9,
        f"extra_acked {extra:.0f} packets, window {cwnd:.1f} BDP, {100 * used:.0f} % of the link, "
        f"max_bw {100 * _bandwidth(track):.0f} %",
    )


def tiny_bdp(track: Track) -> tuple[bool, str]:
    windows = (stay.min("cwnd") for stay in track.stays() if stay.state != PROBE_RTT)
    least = min(windows, default=0.0)
    used = _share_of_link(track, 64e3 / track.path.rate)
    return (
        least >= 4 and used >= 0.9,
        f"window at least {least:.0f}, {100 * used:.0f} % of the link",
    )


def tiny_bdp_outside(track: Track) -> tuple[bool, str]:
    """A.14 from outside: PROBE_RTT's window is 4 packets too."""
    least, used = track.min("cwnd"), _share_of_link(track, 64e3 / track.path.rate)
    return (
        least >= 4 and used >= 0.9,
        f"window at least {least:.0f}, {100 * used:.0f} % of the link",
    )


def ten_times_more(track: Track) -> tuple[bool, str]:
    took = _delay(track, 8 * pl.col("max_bw") >= 0.95 * 2 * track.path.rate * track.payload)
    return took <= 10 * track.path.stretch, f"95 % of the new rate after {took:.1f} s"


def ten_times_less(track: Track) -> tuple[bool, str]:
    stretch = track.path.stretch
    took = _delay(track, 8 * pl.col("max_bw") <= 1.05 * 0.2 * track.path.rate * track.payload)
    seen = f"max_bw is the new rate after {took:.1f} s"
    if not track.has("bw_shortterm"):
        return took <= 10 * stretch, seen
    lowered = _delay(track, pl.col("bw_shortterm").is_finite())
    good = took <= 10 * stretch and lowered <= stretch
    return good, f"bw_shortterm set after {lowered:.2f} s, {seen}"


def policer(track: Track) -> tuple[bool, str]:
    lost = track.growth("lost") / track.growth("sent")
    used = _share_of_link(track, 0.2)
    return (
        lost <= 0.05 and used >= 0.7,
        f"{100 * lost:.1f} % lost, {100 * used:.0f} % of the token rate",
    )


def spurious_recovery(track: Track) -> tuple[bool, str]:
    episodes = int(track.result.flows["spurious"][0])
    used = _share_of_link(track)
    return (
        episodes > 0 and used >= 0.9,
        f"{episodes} episodes found spurious, {100 * used:.0f} % of the link",
    )


def back_to_startup(track: Track) -> tuple[bool, str]:
    visits = len(track.stays(PROBE_RTT))
    return (
        visits > 0 and _ends_in(track, PROBE_RTT, STARTUP),
        f"{visits} visits to PROBE_RTT, each followed by STARTUP",
    )


def up_after_bound(track: Track) -> tuple[bool, str]:
    cuts = 0
    for before, after in pairwise(track.stays()):
        if before.state == UP and after.state == DOWN:
            high = before.max("inflight_longterm")
            cuts += high < float("inf") and after.first("inflight_longterm") < high
    lost = track.last("lost") / track.last("sent")
    # DOWN may be shorter than the time between two samples.
    return (
        cuts > 0 and _ends_in(track, UP, DOWN, CRUISE) and lost < 0.02,
        f"{cuts} probes lowered inflight_longterm and went to DOWN, {100 * lost:.2f} % lost",
    )


def refill_pause(track: Track) -> tuple[bool, str]:
    stays = track.stays()
    parts = zip(stays, stays[1:], stays[2:], strict=False)
    late = [part for part in parts if part[1].state == REFILL and part[1].began > _SETTLED]
    if not late:
        raise NotSeenError(f"never came to and left {NAMES[REFILL]}")
    before, refill, after = late[0]
    kept = refill.min("max_bw") / before.last("max_bw")
    left = refill.min("in_flight")
    later = track.since(after.began + 1).throughput() / (0.96 * track.path.rate)
    return (
        after.state == UP and kept >= 1.0 and later >= 0.95,
        f"{NAMES[after.state]} after REFILL, max_bw {100 * kept:.0f} % of what it was while in "
        f"flight fell to {left:.0f} packets; then {100 * later:.0f} % of "
        "what the application writes",
    )


def fills_ten_times_more(track: Track) -> tuple[bool, str]:
    """A.15 from outside: what is delivered."""
    late = track.since(_CHANGE + 10)
    used = _share_of_link(late, 2.0)
    return used >= 0.9, f"{100 * used:.0f} % of the new rate from 10 s after the change on"


def policer_outside(track: Track) -> tuple[bool, str]:
    """A.17 from outside: the kernel tells what it retransmitted."""
    again = track.growth("retransmitted") / track.growth("sent")
    used = _share_of_link(track, 0.2)
    return (
        again <= 0.05 and used >= 0.7,
        f"{100 * again:.1f} % retransmitted, {100 * used:.0f} % of the token rate",
    )


_VISIBLE: Final[dict[str, Callable[[Track], tuple[bool, str]]]] = {
    "A.15": fills_ten_times_more,
    "A.14": tiny_bdp_outside,
    "A.17": policer_outside,
}
"""Checks that need no variables of the algorithm, where the kernel shows too few."""

_THEN: Final[dict[str, Callable[[Track], dict[str, Any]]]] = {
    "A.4": partial(_slower_in, DRAIN, 0.3),
    "A.9": partial(_slower_in, UP, 0.8),
    "A.22": _paused_in_refill,
}
"""What is different in a second experiment, from what the first one recorded."""


def _case(section: str, check: str, **said: Any) -> Case:
    named = ("title", "versions", "since", "grid", "pipe", "transports", "unreal")
    known = {key: said.pop(key) for key in named if key in said}
    return Case(
        section,
        setup=_experiment,
        settings=said,
        check=globals()[check],
        then=_THEN.get(section),
        is_repeated_later=section in {"A.9", "A.22"},
        visible=_VISIBLE.get(section),
        **known,
    )


_FILE: Final = FilePath(__file__).with_suffix(".toml")
CASES: Final = [_case(**said) for said in tomllib.loads(_FILE.read_text("utf-8"))["case"]]
"""The cases, in the draft's order."""
