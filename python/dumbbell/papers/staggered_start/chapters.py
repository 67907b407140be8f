"""What the report tells beside numbers and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.display import Column, Table
from dumbbell.metrics import intervals
from dumbbell.metrics.convergence_times import AVERAGE, CLOSE, SMOOTH
from dumbbell.papers.frame import Section
from dumbbell.papers.staggered_start import fidelity, reference
from dumbbell.papers.staggered_start.measures import LABELS, LIMIT, PUBLISHED, runs_of
from dumbbell.papers.staggered_start.plates import VARIANTS

if TYPE_CHECKING:
    from dumbbell.papers.frame import Runs

_DEFINITIONS: Final = (
    "Two definitions of convergence, both counted from the start of the second flow.",
    "Windows cross: the paper takes the first time at which the two congestion windows cross while "
    "both are close to their long-run average, and does not say how close. Here windows are "
    f"smoothed by a running median over {SMOOTH:g} s, the long-run average is the mean over the "
    f"last {AVERAGE:g} s, close is within {100 * CLOSE:.0f} % of it, and a crossing during the "
    "second flow's slow start does not count.",
    "Jain's index: the standard definition, the first time from which Jain's index over windows "
    "of 1 s of throughput stays at or above 0.95 for 10 s.",
)


def sections(runs: Runs) -> list[Section]:
    """The parts of the report, in order."""
    parts = [
        Section(
            "The paper's figures",
            ("Figures 2(a) to 3(b) of the paper, in the same order.",),
            plates=("2a", "2b", "3a", "3b"),
        ),
        Section(
            "How long until they share fairly",
            _DEFINITIONS,
            plates=("convergence", "shares"),
        ),
        explanations(runs),
        validation(runs),
    ]
    if runs.beyond:
        parts.append(
            Section(
                "Beyond the paper: other round-trip times, buffers and gaps",
                (
                    "The paper asks for other round-trip times and buffers. Every cell is the "
                    "median of five seeds at 100 Mbit/s; “>” is a median beyond the 120 s that "
                    "were observed after the second flow's start.",
                ),
                plates=("beyond-crossing", "beyond-fair"),
            )
        )
    return parts


def explanations(runs: Runs) -> Section:
    """Paper, simulator and kernel side by side, and the runs that change one thing."""
    columns = [
        Column("Changed"),
        Column("Windows cross (s)", number=True),
        Column("within 120 s", number=True),
        Column("Jain's index (s)", number=True),
        Column("within 120 s", number=True),
    ]
    rows = [
        [f"{LABELS[cc]}: {label}" if name != cc else LABELS[cc], *_times(runs, name)]
        for cc, variants in VARIANTS.items()
        for name, label in variants.items()
    ]
    return Section(
        "What could explain the difference",
        (
            "Where simulator and kernel agree with each other and not with the paper, something in "
            "the paper's emulation may differ. Each of these runs changes one thing.",
            "No HyStart: CUBIC leaves slow start only when packets are lost. Paced: as under "
            "Linux's fq queueing discipline. Token bucket: Mininet shapes with one of 15 kB, so "
            "that ten packets may leave at once after a pause. 417 packets: the same half BDP, "
            "counted in packets. 1667 packets: netem, Mininet's queue, counts what the sender's "
            "stack hands over, and with segmentation offload that may be several segments at "
            "once; here four, so that a limit of 417 holds 2 BDP. Jitter: packets come out of the "
            "link up to 0.1 ms late, as they do from one that is emulated, Mininet's or ours.",
            "Any phase: every ten seconds ProbeRTT makes room on the path, and within 100 ms of "
            "30 s the second BBRv1 flow always starts where it finds that room. Here it starts "
            "anywhere in the cycle, as with real packets, where every new least round-trip time, "
            "by however little, begins the ten seconds anew. A flow that starts just after a "
            f"ProbeRTT gets little at first, and needs up to {_latest(runs, 'bbr-phase')} to catch "
            "up; some runs with real packets took longer still.",
            "The paper's number is within the 95 % interval of, by windows: "
            f"{_which_fit(runs, 'crossing')}; by Jain's index: {_which_fit(runs, 'fair')}.",
        ),
        tables=(Table(columns, rows, "Medians over the seeds."),),
        plates=("variants",),
    )


def validation(runs: Runs) -> Section:
    """The simulator beside the kernel."""
    return Section(
        "Simulator and Linux",
        (
            f"The same scenarios on Linux {reference.KERNEL}, through an emulated link: three runs "
            "of the paper's scenario and single flows with three queues, for the algorithms that "
            "the kernel has. Both are sampled every 100 ms.",
        ),
        tables=(fidelity_table(runs),),
        plates=("linux", "singles"),
    )


def fidelity_table(runs: Runs) -> Table:
    """A row for every measured flow: the simulator, Linux, and the ratio of the two."""
    scale = {"throughput": 1e-6, "rtt": 1e3, "retransmitted": 1.0, "slow_start_exit": 1.0}
    titles = ("Throughput, Mbit/s", "Mean RTT, ms", "Retransmitted", "First ssthresh")
    columns = [Column("Flow"), *(Column(title, number=True) for title in titles)]
    table = fidelity.compare(runs)
    rows = []
    for group in table.partition_by("scenario", "cc", "flow", maintain_order=True):
        scenario, cc, flow = group.select("scenario", "cc", "flow").row(0)
        row = [", ".join((LABELS[cc], scenario, flow)).removesuffix(", alone")]
        by_quantity = {one["quantity"]: one for one in group.iter_rows(named=True)}
        for quantity, unit in scale.items():
            one = by_quantity.get(quantity)
            if one is None:
                row.append("—")
                continue
            ratio = "" if one["ratio"] is None else f" ({one['ratio']:.2f})"
            mark = {"within": "", "chaotic": " ~", "off": " ✗"}[one["verdict"]]
            ours, theirs = _amount(one["simulated"] * unit), _amount(one["linux"] * unit)
            row.append(f"{ours} / {theirs}{ratio}{mark}")
        rows.append(row)
    near = table.filter(pl.col("verdict") == "within").height
    return Table(
        columns,
        rows,
        "Simulator / Linux (ratio): means over the seeds and over the measured runs. "
        f"{near} of {table.height} are within 10 % (25 % for retransmitted packets) "
        "of Linux. ~ is not, but Linux's own runs differ among themselves by more; ✗ is off.",
    )


def _times(runs: Runs, name: str) -> list[str]:
    cells = []
    for column in ("crossing", "fair"):
        values = runs_of(runs[name], column)
        median = intervals.median(values, LIMIT).value
        cells += [f"> {LIMIT:g}" if median is None else f"{median:.0f}", _seen(values)]
    return cells


def _seen(values: list[float | None]) -> str:
    return f"{sum(v is not None for v in values)} of {len(values)}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 200 or value == 0 else f"{value:.1f}"


def _latest(runs: Runs, name: str) -> str:
    """The latest time at which windows cross in any of the runs."""
    times = runs_of(runs[name], "crossing")
    found = [time for time in times if time is not None]
    return f"{max(found):.0f} s" if len(found) == len(times) else f"more than {LIMIT:g} s"


def _which_fit(runs: Runs, column: str) -> str:
    """Says which runs have the paper's number within their confidence interval."""
    fitting = []
    for cc, variants in VARIANTS.items():
        for name, label in variants.items():
            found = intervals.median(runs_of(runs[name], column), LIMIT)
            low = LIMIT if found.low is None else found.low
            high = float("inf") if found.high is None else found.high
            if low <= PUBLISHED[cc] <= high:
                fitting.append(label if name == cc else f"{LABELS[cc]} {label}")
    return ", ".join(fitting) if fitting else "none"
