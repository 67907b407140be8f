"""What the report tells beside numbers and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.display import Column, Table
from dumbbell.papers.dbac.measures import COMPARED, UNSAID, flow, known, path, testbed
from dumbbell.papers.frame import Section

if TYPE_CHECKING:
    from dumbbell.papers.frame import Runs
    from dumbbell.results.result import Result


def sections(runs: Runs) -> list[Section]:
    """The parts of the report, in order."""
    parts = [
        Section("Windows and throughput", plates=("3", "4", "5", "6")),
        Section(
            "Which window enters LIA's equation",
            (
                "The window of the large path as path 2 sees it: LIA's, as the paper has it; "
                "Reno's, without the root of alpha; CUBIC's own. The paper says that the second "
                "distorts and that the third makes path 2 too slow.",
                "Only with the first is the large path held below CUBIC's window, by equation 6, "
                "and it is held unsteadily (figure 4): alpha grows with that path's round-trip "
                "time, beyond 1 while path 2 is the better one, so that a queue begets a longer "
                "queue until there is loss. The paper has no cap.",
            ),
            tables=(coupling(runs),),
        ),
        Section(
            "Beside a single-path CUBIC flow",
            (
                "On path 2 in the place of Reno, and on path 1 with Reno on path 2 as before. Two "
                "CUBIC flows of different histories share a queue slowly: two runs of 500 s each.",
            ),
            tables=(rivals(runs),),
        ),
        Section(
            "How much hangs on what the paper leaves unsaid",
            (
                "LIA's subflow on path 2 grows by a packet in a thousand acknowledgements, so that "
                "its share is decided by how often it happens to meet a full queue. That hangs on "
                "the order in which single packets arrive: on how often hosts acknowledge, on "
                "bursts, on jitter. How far DBAC keeps LIA's share hangs on it less. Two seeds "
                "each; as above, forty.",
            ),
            tables=(sensitivity(runs),),
        ),
        Section(
            "A path that fails",
            (
                "Path 1 carries nothing from 100 s to 200 s. What was under way there is sent by "
                "path 2 after the first timeout, and the connection goes on with that alone. "
                "The packets that waited at the link go through when it is back, and their "
                "acknowledgements wake the subflow at once: LIA needs minutes to its old rate, "
                "DBAC seconds.",
            ),
            plates=("failure",),
        ),
    ]
    if runs.beyond:
        parts.append(
            Section(
                "Beyond the paper",
                (
                    "Other coupled algorithms, and CUBIC and Reno on each subflow by itself; other "
                    "thresholds; a lossier path 1; and receive buffers that limit.",
                ),
                plates=(
                    "beyond-algorithms",
                    "beyond-threshold",
                    "beyond-loss",
                    "beyond-buffer",
                ),
            )
        )
    return parts


def coupling(runs: Runs) -> Table:
    """Throughput by the window that path 2 sees."""
    cases = {
        "lia": "LIA on both",
        "dbac": "DBAC: the virtual LIA window",
        "dbac-reno": "the virtual Reno window",
        "dbac-cubic": "CUBIC's window",
        "olia": "none: OLIA on both",
    }
    rows = [[label, *_cells(testbed(runs, case))] for case, label in cases.items()]
    columns = [Column("Window"), *_columns("path 1", "path 2", "single-path flow")]
    return Table(columns, rows, "Throughput, Mbit/s, medians over the seeds.")


def rivals(runs: Runs) -> Table:
    """Throughput with CUBIC on either path."""
    rows = [
        [f"{COMPARED[cc]}; CUBIC on path 2", *_cells(runs[f"single-cubic-{cc}"]), ""]
        for cc in COMPARED
    ]
    labels = COMPARED | {"cubic": "CUBIC on each"}
    rows += [
        [f"{label}; CUBIC on path 1", *_cells(result), f"{known(flow(result, 'rival')):.0f}"]
        for cc, label in labels.items()
        for result in [runs[f"rival-{cc}"]]
    ]
    columns = _columns("path 1", "path 2", "single-path flow on path 2", "CUBIC on path 1")
    return Table([Column("Connection"), *columns], rows, "Throughput, Mbit/s.")


def sensitivity(runs: Runs) -> Table:
    """The testbed with other assumptions."""
    cases = {f"unsaid-{name}": label for name, label in UNSAID.items()}
    rows = [
        [label, *(cell for cc in COMPARED for cell in _cells(runs[f"{case}-{cc}"])[:2])]
        for case, label in ({"testbed": "as above"} | cases).items()
    ]
    columns = _columns(
        *(f"{label}, path {number}" for label in COMPARED.values() for number in (1, 2))
    )
    said = ["the paper", "95", "20", "more than 400", "21"]
    return Table([Column("Setting"), *columns], [said, *rows], "Throughput, Mbit/s.")


def _cells(result: Result) -> list[str]:
    one, two, single = path(result, 1), path(result, 2), flow(result, "single")
    return [f"{known(one):.0f}", f"{known(two):.1f}", f"{known(single):.1f}"]


def _columns(*titles: str) -> list[Column]:
    return [Column(title, number=True) for title in titles]
