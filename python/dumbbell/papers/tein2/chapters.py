"""What the report tells beside numbers and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.papers.frame import Column, Paper, Section, Table
from dumbbell.papers.tein2.measures import (
    ALGORITHMS,
    FOLDER,
    LABELS,
    QUEUES,
    RATES,
    RATIOS,
    RTTS,
    SHORT_LIST,
    delay,
    known,
    rate,
    unfairness,
    unfairness_of_pipes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.papers.estimates import Estimate
    from dumbbell.papers.frame import Runs

_PUBLISHED = {number.id: number.published for number in Paper.load(FOLDER).numbers}


def sections(runs: Runs) -> list[Section]:
    """The parts of the report, in order."""
    parts = [
        Section(
            "Tables 2 and 3",
            (
                "Simulated / published, and their ratio.",
                f"Table 2: {_within(_ratios_of_table_2(runs))} "
                f"Table 3: {_within(_ratios_of_table_3(runs))}",
            ),
            tables=(table_2(runs), table_3(runs)),
            plates=("7", "8"),
        ),
        Section(
            "What could explain table 3",
            (
                "Two flows that share one droptail queue lose packets together, and the one with "
                "the shorter round-trip time recovers first: far less fair than the paper says. "
                "In Dummynet a delay belongs to a pipe. If each flow has a pipe, and a queue, of "
                "its own and they share only a wire of 1 Gbit/s, most ratios are nearer the "
                "paper's: what is shared decides, and the paper does not say what was.",
            ),
            tables=(table_3(runs, unfairness_of_pipes, "Table 3 with a pipe for each flow."),),
        ),
        Section("TCP friendliness", plates=("9", "10")),
        Section("Over TEIN2", plates=("11", "14")),
        Section(
            "How much hangs on what the paper leaves unsaid",
            (
                "The same flows with another bottleneck queue (300 packets in table 2) or "
                "rate (725 Mbit/s): throughput in Mbit/s, one seed each. The queue decides where "
                "slow start ends and how much a burst loses.",
            ),
            tables=(sensitivity(runs),),
        ),
    ]
    if runs.beyond:
        parts.append(
            Section(
                "Beyond the paper",
                ("FAST, CUBIC as of RFC 9438 and BBRv3 beside the algorithms of 2009.",),
                plates=("beyond-delay", "beyond-10g", "beyond-fairness", "beyond-tein2"),
            )
        )
    return parts


def table_2(runs: Runs) -> Table:
    """Throughput over delay, simulated beside published."""
    columns = [Column("RTT"), *(Column(LABELS[cc], number=True) for cc in ALGORITHMS)]
    rows = [
        [f"{rtt} ms"]
        + [
            _beside(known(delay(runs, cc, rtt)), _PUBLISHED[f"throughput-{rtt}-{cc}"], ".0f")
            for cc in ALGORITHMS
        ]
        for rtt in RTTS
    ]
    return Table(columns, rows, "Table 2: throughput of one flow, Mbit/s.")


def table_3(
    runs: Runs,
    measure: Callable[[Runs, str, int], Estimate] = unfairness,
    note: str = "Table 3: throughput of the flow with 10 ms over the other's.",
) -> Table:
    """Throughput ratios, simulated beside published."""
    columns = [Column("Algorithm"), *(Column(f"RTT ratio {x}", number=True) for x in RATIOS)]
    rows = [
        [LABELS[cc]]
        + [
            _beside(known(measure(runs, cc, x)), _PUBLISHED[f"ratio-{x}-{cc}"], ".2f")
            for x in RATIOS
        ]
        for cc in ALGORITHMS
    ]
    return Table(columns, rows, note)


def sensitivity(runs: Runs) -> Table:
    """Table 2 with other queues and rates."""
    columns = [Column("Bottleneck")]
    columns += [
        Column(f"{LABELS[cc]}, {rtt} ms", number=True) for rtt in SHORT_LIST for cc in ALGORITHMS
    ]
    cases = [(f"queue of {queue} packets", f"queue-{queue}") for queue in QUEUES]
    cases += [(f"{speed} Mbit/s", f"rate-{speed}") for speed in RATES]
    rows = [
        [label]
        + [
            f"{known(rate(runs[f'{case}-{cc}-{rtt}'])):.0f}"
            for rtt in SHORT_LIST
            for cc in ALGORITHMS
        ]
        for label, case in cases
    ]
    said = [
        f"{_PUBLISHED[f'throughput-{rtt}-{cc}']:.0f}" for rtt in SHORT_LIST for cc in ALGORITHMS
    ]
    return Table(columns, [["the paper", *said], *rows], "Throughput, Mbit/s.")


def _ratios_of_table_2(runs: Runs) -> list[float]:
    return [
        known(delay(runs, cc, rtt)) / _PUBLISHED[f"throughput-{rtt}-{cc}"]
        for cc in ALGORITHMS
        for rtt in RTTS
    ]


def _ratios_of_table_3(runs: Runs) -> list[float]:
    return [
        known(unfairness(runs, cc, x)) / _PUBLISHED[f"ratio-{x}-{cc}"]
        for cc in ALGORITHMS
        for x in RATIOS
    ]


def _within(ratios: list[float]) -> str:
    near = sum(abs(ratio - 1) <= 0.2 for ratio in ratios)
    fair = sum(abs(ratio - 1) <= 0.4 for ratio in ratios)
    return f"{near} of {len(ratios)} within 20 % of the paper, {fair} within 40 %."


def _beside(measured: float, published: float, form: str) -> str:
    return f"{measured:{form}} / {published:{form}} ({measured / published:.2f})"
