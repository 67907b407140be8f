"""BBRv3 beside its own kind and beside CUBIC (Zeynali et al., PAM 2024), by the abstract."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dumbbell import figures
from dumbbell.metrics import throughput
from dumbbell.metrics.convergence_times import HOLD, convergence
from dumbbell.papers import Runs, Verdict, claim, figure, metric, text
from dumbbell.papers.helpers import label
from dumbbell.papers.standard_figures import interval_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dumbbell.results.result import Result

BUFFERS = ("1", "16")
RTTS = ("20", "50", "100")
LIMIT = 120.0 - HOLD
"""How long after the second flow's start a run shows that flows share fairly, s."""


@metric("fair", unit="s", lowest=0)
def fair(result: Result) -> list[float | None]:
    return convergence(result)["fair"].to_list()


@metric("late_share", unit="1", lowest=0, highest=1)
def late_share(result: Result) -> list[float]:
    """The second flow's share of the throughput from 20 s on, when both have started."""
    rates = throughput(result, since=20.0).pivot("flow", index="seed", values="throughput")
    return (rates["second"] / (rates["first"] + rates["second"])).to_list()


def time(runs: Runs, cc: str, buffer: str, start: str) -> float:
    """The median time until the flows share fairly, s; infinity beyond the time observed."""
    found = runs.median(f"pair-{cc}-{buffer}-{start}", "fair", limit=LIMIT).value
    return math.inf if found is None else found


def seconds(found: float) -> str:
    return f"more than {LIMIT:g} s" if math.isinf(found) else f"{found:.0f} s"


def share(runs: Runs, cc: str, buffer: str, rtt: str) -> float:
    return runs.value(f"cubic-{cc}-{buffer}-{rtt}", "share", flow="first")


@claim("quicker")
def quicker(runs: Runs) -> Verdict:
    holds, said = True, []
    for buffer in BUFFERS:
        times = {cc: time(runs, cc, buffer, "together") for cc in ("bbr", "bbr2", "bbr3")}
        holds &= times["bbr3"] < min(times["bbr"], times["bbr2"])
        listed = ", ".join(f"{label(cc)} {seconds(found)}" for cc, found in times.items())
        said.append(f"{buffer} BDP: {listed}")
    return Verdict(holds, f"{'; '.join(said)}.")


@claim("apart")
def apart(runs: Runs) -> Verdict:
    holds, said = True, []
    for buffer in BUFFERS:
        near, far = (time(runs, "bbr3", buffer, start) for start in ("together", "apart"))
        holds &= far >= near + 5
        said.append(f"{buffer} BDP: together {seconds(near)}, 30 s apart {seconds(far)}")
    return Verdict(holds, f"{'; '.join(said)}.")


@claim("long")
def long_rtt(runs: Runs) -> Verdict:
    shares = {
        (cc, buffer): [
            runs.value(f"rtt-{cc}-{buffer}-{order}", "late_share") for order in ("first", "second")
        ]
        for cc in ("bbr2", "bbr3")
        for buffer in BUFFERS
    }
    said = (
        f"{label(cc)}, {buffer} BDP: {first:.2f} if it starts first, {second:.2f} if second"
        for (cc, buffer), (first, second) in shares.items()
    )
    return Verdict(
        min(map(min, shares.values())) > 0.5,
        f"Share of the flow with 50 ms. {'; '.join(said)}.",
    )


@claim("no-room")
def no_room(runs: Runs) -> Verdict:
    shares = {buffer: [share(runs, "bbr3", buffer, rtt) for rtt in RTTS] for buffer in BUFFERS}
    return Verdict(min(map(min, shares.values())) >= 0.8, _shares(shares))


@claim("shallow")
def shallow(runs: Runs) -> Verdict:
    shares = {buffer: [share(runs, "bbr3", buffer, rtt) for rtt in RTTS] for buffer in BUFFERS}
    small, large = shares.values()
    larger = all(one > other for one, other in zip(small, large, strict=True))
    return Verdict(larger and min(small) > 0.5, _shares(shares))


def _shares(shares: dict[str, list[float]]) -> str:
    said = (
        f"{', '.join(f'{one:.2f}' for one in found)} with {buffer} BDP"
        for buffer, found in shares.items()
    )
    return f"BBRv3's share at 20, 50 and 100 ms: {'; '.join(said)}."


@text("share-1", buffer="1")
@text("share-16", buffer="16")
def share_at_50(runs: Runs, buffer: str) -> str:
    return f"{100 * share(runs, 'bbr3', buffer, '50'):.0f} %"


@figure("long")
def draw_long(runs: Runs) -> Figure:
    """Shares of the flow with the longer round-trip time, by algorithm, buffer and order."""
    drawn, [[axes]] = figures.panels(height=2.3)
    rows = [
        interval_row(cc, "", runs.median(f"rtt-{cc}-{buffer}-{order}", "late_share"))
        | {"group": f"{label(cc)}\n{buffer} BDP", "member": f"it starts {order}"}
        for cc in ("bbr2", "bbr3")
        for buffer in BUFFERS
        for order in ("second", "first")
    ]
    groups, members = (list(dict.fromkeys(row[key] for row in rows)) for key in ("group", "member"))
    figures.grouped_bars(axes, rows, groups, members)
    axes.axhline(0.5, color=figures.FAINT, linewidth=0.6)
    axes.set(ylim=(0, 1), ylabel="share of the 50 ms flow")
    return drawn
