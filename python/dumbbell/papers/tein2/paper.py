"""High-speed TCP on a Dummynet testbed and over TEIN2 (Lee et al., 2009)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.metrics import throughput
from dumbbell.papers import Runs, Verdict, claim, metric, text
from dumbbell.papers.helpers import label, listed, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.results.result import Result

HIGH_SPEED = ("hstcp", "stcp", "bic", "cubic")
ALGORITHMS = ("reno", *HIGH_SPEED)
RTTS = (10, 50, 100, 150, 200)
RATIOS = (1, 2, 3, 6)
PATHS = {"china": 140, "germany": 270}
"""The paths over TEIN2 and their round-trip times, ms."""
SYNCHRONISED = (PATHS["germany"] / PATHS["china"]) ** 2
"""The least ratio of throughputs that simulation papers derive."""
CAPACITY = 622 * 1448 / 1500
"""Payload that 622 Mbit/s carry, Mbit/s: less 52 bytes of headers in 1500."""


def delay(runs: Runs, cc: str, rtt: int) -> float:
    """Table 2: one flow's throughput, Mbit/s."""
    return runs.value(f"delay-{cc}-{rtt}", flow="flow")


def unfairness(runs: Runs, cc: str, times: int, case: str = "fairness") -> float:
    """Table 3: the throughput of the flow with 10 ms over the other's."""
    return runs.value(f"{case}-{cc}-{times}", "ratio", flow="short", over="long")


def reno_shares(runs: Runs, case: str) -> list[dict[str, float]]:
    """Figures 9 and 10: Reno's share beside each high-speed algorithm (0 to 1), a figure each."""
    return [
        {cc: runs.value(f"{case}-{cc}-{rtt}", "share", flow="reno") for cc in HIGH_SPEED}
        for rtt in (10, 100)
    ]


def use(runs: Runs, experiment: str, path: str) -> float:
    """The used share of a path over TEIN2, both flows at once (0 to 1)."""
    return runs.value(experiment, flow=path) / CAPACITY


@metric("start", unit="Mbit/s", lowest=0)
def start(result: Result) -> list[float]:
    """The throughput over the first 90 s, of the first seed."""
    first = throughput(result.of_seed(result.seeds[0]), until=90.0)
    return (first["throughput"] / 1e6).to_list()


@claim("delay")
def reno_is_far_below(runs: Runs) -> Verdict:
    rates = {rtt: {cc: delay(runs, cc, rtt) for cc in ALGORITHMS} for rtt in RTTS}
    band = max(rates[10].values()) / min(rates[10].values())
    reno = {rtt: rates[rtt]["reno"] / min(rates[rtt][cc] for cc in HIGH_SPEED) for rtt in RTTS[1:]}
    return Verdict(
        band <= 1.25 and all(share < 0.5 for share in reno.values()),
        f"At 10 ms the highest is {band:.2f} times the lowest. Reno over the lowest of the others: "
        + ", ".join(f"{share:.2f} at {rtt} ms" for rtt, share in reno.items())
        + ".",
    )


@claim("order")
def stcp_then_bic(runs: Runs) -> Verdict:
    rates = {rtt: {cc: delay(runs, cc, rtt) for cc in ALGORITHMS} for rtt in RTTS[1:]}
    ordered = {rtt: sorted(ALGORITHMS, key=lambda cc: -rates[rtt][cc]) for rtt in rates}
    return Verdict(
        all(order[:2] == ["stcp", "bic"] for order in ordered.values()),
        "; ".join(f"{rtt} ms: {listed(rates[rtt], 0, order)}" for rtt, order in ordered.items())
        + " (Mbit/s).",
    )


@claim("rtt-fairness")
def order_at_six(runs: Runs) -> Verdict:
    at_six = {cc: unfairness(runs, cc, 6) for cc in ALGORITHMS}
    order = sorted(ALGORITHMS, key=lambda cc: at_six[cc])
    ends = order[0] == "cubic" and order[-1] == "stcp"
    return Verdict(
        ends and min(at_six["bic"], at_six["hstcp"]) > at_six["reno"],
        f"Throughput ratios at an RTT ratio of 6: {listed(at_six, 2, order)}.",
    )


@claim("friendliness")
def friendliness(runs: Runs) -> Verdict:
    near, far = reno_shares(runs, "friends")
    return Verdict(
        min(near.values()) >= 0.4 and max(far.values()) <= 1 / 3,
        f"Reno's share at 10 ms: {listed(near, 2)}; at 100 ms: {listed(far, 2)}.",
    )


@claim("bdp")
def gain_rises(runs: Runs) -> Verdict:
    gains = {
        cc: [
            delay(runs, cc, 10) / delay(runs, "reno", 10),
            *(
                runs.value(f"tein2-{cc}", flow=path) / runs.value("tein2-reno", flow=path)
                for path in PATHS
            ),
        ]
        for cc in HIGH_SPEED
    }
    unfair = {
        cc: runs.value(f"tein2-{cc}", "ratio", flow="china", over="germany") for cc in HIGH_SPEED
    }
    rising = all(gain == sorted(gain) for gain in gains.values())
    between = all(1 < value < SYNCHRONISED for value in unfair.values())
    gained = "; ".join(
        f"{label(cc)} " + ", ".join(f"{g:.1f}" for g in gain) for cc, gain in gains.items()
    )
    return Verdict(
        rising and between,
        f"Throughput over Reno's on the testbed at 10 ms, from China, from Germany: {gained}. "
        f"China over Germany, together: {listed(unfair, 2)}.",
    )


@claim("use")
def used_shares(runs: Runs) -> Verdict:
    china, germany = ({cc: use(runs, f"tein2-{cc}", path) for cc in ALGORITHMS} for path in PATHS)
    reno = (china["reno"] + germany["reno"]) / 2
    enough = all(china[cc] > 0.8 and germany[cc] > 0.5 for cc in HIGH_SPEED)
    return Verdict(
        enough and 0.04 <= reno <= 0.16,
        f"From China: {listed(china, 2)}; from Germany: {listed(germany, 2)}.",
    )


@text("near-table-2", table=0, number="throughput-{x}-{cc}", name="{cc} at {x} ms", columns=RTTS)
@text(
    "near-table-3", table=1, number="ratio-{x}-{cc}", name="{cc} at a ratio of {x}", columns=RATIOS
)
def near(runs: Runs, table: int, number: str, name: str, columns: Sequence[int]) -> str:
    """How many numbers of a table are near the paper's, and which are not."""
    by_id = ratios(runs, runs.paper.tables[table])
    near, fair = (sum(abs(r - 1) <= within for r in by_id.values()) for within in (0.2, 0.4))
    named = {
        name.format(cc=label(cc), x=x): by_id[number.format(cc=cc, x=x)]
        for cc in ALGORITHMS
        for x in columns
    }
    off = [f"{what} ({value:.2f})" for what, value in named.items() if abs(value - 1) > 0.2]
    rest = f" The others: {', '.join(off)}." if off else ""
    return f"{near} of {len(by_id)} are within 20 % of the paper, {fair} within 40 %.{rest}"


@text("reno-shares-polled-near", at=0)
@text("reno-shares-polled-far", at=1)
def polled_shares(runs: Runs, at: int) -> str:
    return listed(reno_shares(runs, "polled-friends")[at], 2)


@text("early-china", path="china")
@text("early-germany", path="germany")
def early(runs: Runs, path: str) -> str:
    """The share that Reno uses if its slow start ends early."""
    return f"{use(runs, 'tein2-early', path):.0%}"


@text("order-at-six", case="fairness")
@text("order-at-six-rarer", case="rarer")
def fairest_first(runs: Runs, case: str) -> str:
    found = {cc: unfairness(runs, cc, 6, case) for cc in ALGORITHMS}
    return listed(found, 1, sorted(ALGORITHMS, key=found.__getitem__))
