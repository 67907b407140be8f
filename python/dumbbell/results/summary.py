"""Tables of what the flows and links of a result achieved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
from markupsafe import Markup

from dumbbell import metrics
from dumbbell.display import Cell, Column, Table
from dumbbell.metrics.intervals import LEAST, estimates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

_MOST_FLOWS: Final = 20
"""More flows than this are shown together with those of the same [[flow]] table."""

MEANS: Final = "Means over the seeds; below them their 95 % intervals (Student's t)."

_OF_FLOWS: Final = (
    *("throughput", "goodput", "queue_delay_mean", "queue_delay_p95", "rtt_mean"),
    *("retransmission_share", "loss_share", "marked_share", "timeouts", "took"),
)
_LARGE: Final = 0.1  # a share that changes by so much between the halves of a run has not settled
_SMALL: Final = 0.03  # nor has one that changes by so much, and by `_PART` of the least share
_PART: Final = 0.4
_UNRELIABLE: Final = ("udp", "rtp")
_OF_TRANSFERS: Final = tuple(name for name in metrics.TRANSFER_METRICS if name != "load_carried")
_OF_LINKS: Final = ("utilisation", "queue_mean", "dropped", "lost")


@dataclass(frozen=True)
class Summary:
    """What the runs of a result are judged by, each computed once."""

    flows: pl.DataFrame
    links: pl.DataFrame
    jain: pl.DataFrame
    unsettled: list[str]

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Computes what `result` is judged by."""
        flows, links = metrics.summary(result), metrics.link_summary(result)
        return cls(flows, links, metrics.fairness(result), unsettled(result))


def _marked(cc: str) -> str:
    """An algorithm's name behind its marker."""
    from dumbbell.figures import labelled  # half a second that tables in a terminal do not need

    return labelled(cc)


def summary_tables(
    result: Result, summary: Summary | None = None, label: Callable[[str], str] = _marked
) -> list[Table]:
    """The flows of a result, its links, and transfers: means over the seeds, with their intervals.

    There is a table of transfers if a flow consists of many, one of media if a flow has frames, and
    one of video if a flow has a video client.
    `label` is how algorithms are named.
    """
    summary = summary or Summary.of(result)
    names = [name for name in _OF_LINKS if name in summary.links.columns]
    rows = means(summary.links, ["link"], names)
    links = Table([Column("Link"), *map(Column.of, names)], rows)
    tables = [_flows(result, summary, label), links]
    if result.transfers.width:
        tables.append(_transfers(result, label))
    if result.frames.width:
        tables.append(_media(result, label))
    if result.segments.width:
        tables.append(_video(result, label))
    return tables


def _transfers(result: Result, label: Callable[[str], str]) -> Table:
    """The completion times of the flows that consist of many transfers."""
    summary = metrics.transfer_summary(result)
    rows = [
        [flow, label(str(cc)), *row]
        for flow, cc, *row in means(summary, ["flow", "cc"], _OF_TRANSFERS)
    ]
    notes = ["Slowdown: the completion time over the least possible."]
    notes += [*still_running(summary), *([MEANS] if len(result.seeds) > 1 else [])]
    columns = [Column("Flow of transfers"), Column("Algorithm"), *map(Column.of, _OF_TRANSFERS)]
    return Table(columns, rows, " ".join(notes))


def still_running(summary: pl.DataFrame) -> list[str]:
    """What to know about percentiles if not all transfers are complete, by `completed_share`."""
    if summary["completed_share"].min() == 1:
        return []
    return [
        "Some transfers were still running at the end. Percentiles count each as longer than its "
        "time so far (Kaplan and Meier); a dash means that too few have finished for that "
        "percentile."
    ]


def _media(result: Result, label: Callable[[str], str]) -> Table:
    """The frames of the flows of media."""
    summary = metrics.frame_summary(result)
    rows = [
        [flow, label(str(cc)), *row]
        for flow, cc, *row in means(summary, ["flow", "cc"], metrics.FRAME_METRICS)
    ]
    note = "Frame delay: from capture to the last packet; late: above 400 ms."
    columns = [Column("Flow of media"), Column("Algorithm"), *map(Column.of, metrics.FRAME_METRICS)]
    return Table(columns, rows, f"{note} {MEANS}" if len(result.seeds) > 1 else note)


def _video(result: Result, label: Callable[[str], str]) -> Table:
    """What the video clients played."""
    summary = metrics.video_summary(result)
    rows = [
        [flow, label(str(cc)), *row]
        for flow, cc, *row in means(summary, ["flow", "cc"], metrics.VIDEO_METRICS)
    ]
    columns = [Column("Flow of video"), Column("Algorithm"), *map(Column.of, metrics.VIDEO_METRICS)]
    return Table(columns, rows, MEANS if len(result.seeds) > 1 else "")


def _flows(result: Result, summary: Summary, label: Callable[[str], str]) -> Table:
    """Flows one by one or, if they are many, those of one [[flow]] table together."""
    together = len(result.flow_names) > _MOST_FLOWS
    labels = group_names(result.experiment) if together else {n: n for n in result.flow_names}
    losses = _losses(result, has_marks=_has_marks(result))
    of_some = ("loss_share", "marked_share")
    columns = [name for name in _OF_FLOWS if name not in of_some or name in losses]
    if not summary.flows["completed"].count():
        columns.remove("took")
    described = zip(result.experiment.flows, result.experiment.flow_names(), strict=True)
    sized = [name for flow, names in described if flow.bytes is not None for name in names]
    sent, by = pl.col("sent").sum(), ["flow", "cc"]
    each = (
        summary.flows.with_columns(
            pl.col("flow").cast(pl.String).replace_strict(labels, return_dtype=pl.String),
            # That of a flow counts, as that of a transfer, if it started after the warm-up. It is
            # infinite if the run ended first.
            took=pl.when(pl.col("begin") == pl.col("start")).then(
                (pl.col("completed") - pl.col("start")).fill_null(
                    pl.when(pl.col("flow").cast(pl.String).is_in(sized)).then(math.inf)
                )
            ),
            **losses,
        )
        .group_by(*by, "seed", maintain_order=True)
        .agg(
            pl.col([name for name in columns if name not in losses]).mean(),
            pl.col("base_rtt").mean().alias(f"rtt_mean{LEAST}"),
            # The sum of nothing but nulls is 0; of flows that sent nothing there is no share.
            *(
                pl.when(pl.col(name).count() > 0, sent > 0).then(pl.col(name).sum() / sent)
                for name in losses
            ),
        )
    )
    rows = [[flow, label(str(cc)), *row] for flow, cc, *row in means(each, by, columns)]
    notes = []
    jain = summary.jain["jain"].drop_nulls().to_list()
    if jain:
        value = Column.of("jain").format(metrics.mean(jain).value)
        notes.append(f"{jain_title(result)} {value}.")
    if "took" in columns and each["took"].is_infinite().any():
        notes.append("Completion time: a dash where a flow had not completed at the end of a run.")
    notes += [*spans(result), *summary.unsettled]
    if len(result.seeds) > 1:
        notes.append(MEANS)
    titles = [Column("Flow or mean of flows" if together else "Flow"), Column("Algorithm")]
    return Table([*titles, *map(Column.of, columns)], rows, " ".join(notes))


def jain_title(result: Result) -> str:
    """The title of Jain's index: flows of transfers have a load of their own and are left out."""
    return "Jain's index" + " without transfers" * (not result.of_transfers.is_empty())


def group_names(experiment: Experiment) -> dict[str, str]:
    """By flow, the flows of its [[flow]] table: ``flow-1 to flow-100``."""
    return {
        name: f"{names[0]} to {names[-1]}" if len(names) > 1 else name
        for names in experiment.flow_names()
        for name in names
    }


def _has_marks(result: Result) -> bool:
    """Whether a packet arrived with an ECN mark."""
    return "marked" in result.flows.columns and result.flows["marked"].sum() > 0


def _losses(result: Result, *, has_marks: bool) -> dict[str, pl.Expr]:
    """The packets of each flow that its share of losses or marks counts, by the name of the share.

    Over UDP and RTP nothing is retransmitted. What another sender marks lost may arrive, so there
    its retransmissions count.
    """
    flows = zip(result.experiment.flows, result.experiment.flow_names(), strict=True)
    unreliable = [name for flow, names in flows if flow.transport in _UNRELIABLE for name in names]
    marks = {"marked_share": pl.col("marked")} if has_marks else {}
    if not unreliable:
        return {"retransmission_share": pl.col("retransmitted")} | marks
    is_unreliable = pl.col("flow").cast(pl.String).is_in(unreliable)
    return marks | {
        "retransmission_share": pl.when(~is_unreliable).then("retransmitted"),
        "loss_share": pl.when(is_unreliable).then("lost"),
    }


def spans(result: Result) -> list[str]:
    """What to know about the time that counts: rates over different spans do not add up."""
    warmup = _uncounted(result)
    if len({flow.start for flow in result.experiment.flows}) == 1:
        return warmup
    span = "from its start to its end; together: over the whole run"
    if warmup:
        begin = result.experiment.warmup
        span = f"from its start or from {begin} to its end; together: from {begin} on"
    return [f"Throughput: each flow {span}.", *warmup]


def unsettled(*results: Result, of: Sequence[str] = ()) -> list[str]:
    """Which algorithms' shares still changed within runs.

    Args:
        results: Results of flows that send what they can; others say nothing.
        of: For each of them the algorithm to speak of; that whose share changed most if not given.
    """
    asked = zip(results, of or [""] * len(results), strict=True)
    found = [change for one, cc in asked if (change := _change(one, cc))]
    if not found:
        return []
    (cc, first, second), *others = found
    said = (
        f"{cc} has {100 * first:.0f} % of the throughput in the first half of the time in which "
        f"all flows are there, {100 * second:.0f} % in the second"
    )
    more = "".join(f"; {cc} {100 * a:.0f} % and {100 * b:.0f} %" for cc, a, b in others)
    return [f"Not settled: {said}{more}. A longer run, or a warm-up, changes the means."]


def _change(result: Result, of: str) -> tuple[str, float, float] | None:
    """The algorithm whose share changed most, and its share in the first and second half."""
    flows = [flow for flow in result.experiment.flows if not flow.arrivals]
    is_greedy = all(
        flow.transport not in _UNRELIABLE and not (flow.app or flow.app_rate or flow.app_rates)
        for flow in flows
    )
    if not is_greedy or len({flow.cc for flow in flows}) < 2:
        return None
    shares = metrics.shares_by_half(result).group_by("cc", maintain_order=True)
    rows = shares.agg(pl.col("first", "second").mean()).drop_nulls().rows()
    asked = [row for row in rows if row[0] == of] or rows
    most = max(asked, key=lambda row: abs(row[2] - row[1]), default=("", 0.0, 0.0))
    return None if _is_settled(*most[1:]) else most


def _is_settled(first: float, second: float) -> bool:
    """Whether a share has not changed much, for its size and for that of the others."""
    change, least = abs(second - first), min(first, second, 1 - first, 1 - second)
    return change < _LARGE and (change < _SMALL or change < _PART * least)


def _uncounted(result: Result) -> list[str]:
    """That the warm-up does not count, if there is one."""
    warmup = result.experiment.warmup
    return [f"The first {warmup} do not count (warm-up)."] if warmup else []


def side_by_side(results: Sequence[Result]) -> list[Table]:
    """What each flow achieved in several results of one experiment: a row a result.

    If a flow consists of many transfers, another table has their completion times.
    """
    has_marks = any(map(_has_marks, results))
    losses = _losses(results[0], has_marks=has_marks)
    columns = ["throughput", "queue_delay_mean", "rtt_mean", *losses]
    note = " ".join(_uncounted(results[0]))
    flows = partial(_with_losses, losses=losses)
    tables = [_beside("Flow", results, flows, columns, note)]
    if all(one.transfers.width for one in results):
        summary = metrics.transfer_summary
        tables.append(_beside("Flow of transfers", results, summary, _OF_TRANSFERS))
    return tables


def _with_losses(result: Result, losses: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """The summary of flows, with the shares of `losses`."""
    sent = pl.col("sent")
    shares = {name: pl.when(sent > 0).then(lost / sent) for name, lost in losses.items()}
    summary = metrics.summary(result)
    return summary.with_columns(pl.col("base_rtt").alias(f"rtt_mean{LEAST}"), **shares)


def _beside(
    title: str,
    results: Sequence[Result],
    summary: Callable[[Result], pl.DataFrame],
    columns: Sequence[str],
    note: str = "",
) -> Table:
    """Columns of the summaries of several results, the rows of a flow one below the other."""
    rows: list[list[Cell]] = []
    found = [
        {
            (str(flow), str(cc)): row
            for flow, cc, *row in means(summary(one), ["flow", "cc"], columns)
        }
        for one in results
    ]
    for flow in found[0]:
        pairs = zip(results, found, strict=True)
        rows += [[*flow, of.source, *one[flow]] for of, one in pairs if flow in one]
    titles = [Column(title), Column("Algorithm"), Column("Runs")]
    return Table([*titles, *map(Column.of, columns)], rows, note)


def means(table: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> list[list[Cell]]:
    """A row for each group: what it is called, and the mean of each column with its interval.

    Nulls are left out; a group without any value has None. A column such as ``jain_least`` has what
    another cannot be less than.
    """
    least = [f"{name}{LEAST}" for name in columns if f"{name}{LEAST}" in table.columns]
    groups = table.group_by(by, maintain_order=True).agg(
        pl.col(name).cast(pl.Float64).drop_nulls() for name in [*columns, *least]
    )
    names = ([str(cell) for cell in groups[name]] for name in by)
    found = (estimates(groups, name) for name in columns)
    return [list(row) for row in zip(*names, *found, strict=True)]


def invalid(result: Result, name: str = "") -> list[str]:
    """Sentences on the runs that are invalid, and on what tables have instead.

    `name` tells the result from others.
    """
    if not result.invalid_runs:
        return []
    has_valid = len(result.invalid_runs) < len(result.seeds)
    left = "Tables have the other runs." if has_valid else "No run is valid: tables have these."
    of = f"{name}, " if name else ""
    return [*(f"Invalid, {of}{reason}." for reason in result.invalid_reasons), left]


def notebook(result: Result) -> str:
    """What a notebook shows of a result: its flows, and its links."""
    title = result.experiment.title
    parts = [Markup("<b>{}</b>").format(title)] if title else []
    parts += [table.html() for table in summary_tables(result.valid())]
    parts += [Markup("<p>{}</p>").format(said) for said in invalid(result)]
    return in_notebook(*parts)


def in_notebook(*parts: Markup) -> str:
    """HTML as a notebook shows it: numbers to the right, intervals smaller than values."""
    whole = Markup('<div class="dumbbell">\n{}\n{}\n</div>')
    return str(whole.format(_STYLE, Markup("\n").join(parts)))


_STYLE: Final = Markup("""\
<style>
.dumbbell table { border-collapse: collapse; font-size: 90%; }
.dumbbell th, .dumbbell td { padding: 0.2em 0.6em; text-align: left; vertical-align: top; }
.dumbbell .number { text-align: right; }
.dumbbell th { vertical-align: bottom; }
.dumbbell td { white-space: nowrap; }
.dumbbell .small { font-size: 85%; }
.dumbbell .soft { opacity: 0.7; }
.dumbbell .mark { display: inline; width: 0.7em; height: 0.7em; margin-right: 0.4em; }
</style>
""")
