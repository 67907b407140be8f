"""Tables of what the flows and links of a result achieved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
from markupsafe import Markup

from dumbbell import metrics
from dumbbell.display import Column, Table, format_significant
from dumbbell.figures import labelled
from dumbbell.metrics import intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.results.result import Result

_MOST_FLOWS: Final = 20
"""More flows than this are shown together with those of the same [[flow]] table."""

MBIT, MS, _KB, PERCENT = 1e-6, 1e3, 1e-3, 1e2

MEANS: Final = "Means over the seeds; below them their 95 % intervals (Student's t)."

_OF_FLOW: Final = {
    "throughput": MBIT,
    "goodput": MBIT,
    "queue_delay_mean": MS,
    "queue_delay_p95": MS,
    "rtt_mean": MS,
    "retransmission_share": PERCENT,
    "timeouts": 1.0,
}
SHARE: Final = (pl.col("retransmitted").sum() / pl.max_horizontal(pl.col("sent").sum(), 1)).alias(
    "retransmission_share"
)


@dataclass(frozen=True)
class Summary:
    """What the runs of a result are judged by, each looked up once."""

    flows: pl.DataFrame
    links: pl.DataFrame
    jain: list[float]

    @classmethod
    def of(cls, result: Result) -> Summary:
        """Looks up what `result` is judged by."""
        return cls(metrics.summary(result), metrics.link_summary(result), _jain(result))


def summary_tables(result: Result, judged: Summary | None = None) -> list[Table]:
    """The flows of a result, then its links."""
    judged = judged or Summary.of(result)
    return [_flows(result, judged), _links(judged)]


def _flows(result: Result, judged: Summary) -> Table:
    """Flows one by one or, if they are many, those of one [[flow]] table together."""
    together = len(result.flow_names) > _MOST_FLOWS
    columns = [Column("Flow"), Column("Algorithm")]
    titles = ("Throughput, Mbit/s", "Goodput, Mbit/s", "Queueing delay, ms", "its p95, ms")
    columns += numbers((*titles, "Mean RTT, ms", "Retransmitted, %", "Timeouts"))
    groups = result.experiment.flow_names()
    listed = groups if together else [[name] for names in groups for name in names]
    labels = {
        name: names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        for names in listed
        for name in names
    }
    label = pl.col("flow").cast(pl.String).replace_strict(labels, return_dtype=pl.String)
    means = [pl.col(name).mean() for name in _OF_FLOW if name != "retransmission_share"]
    found = by_seed(
        judged.flows.with_columns(label.alias("label")), ["label", "cc"], [*means, SHARE]
    )
    rows = [
        [flow, labelled(cc), *(mean_of(seeds[name], scale) for name, scale in _OF_FLOW.items())]
        for (flow, cc), seeds in found.items()
    ]
    notes = ["Means of the flows named."] if together else []
    if judged.jain:
        notes.append(f"Jain's index {format_significant(intervals.mean(judged.jain).value)}.")
    if len(result.seeds) > 1:
        notes.append(MEANS)
    return Table(columns, rows, " ".join(notes))


def _links(judged: Summary) -> Table:
    titles = ("Utilisation, %", "Mean queue, kB", "Packets dropped", "Lost at random")
    scales = {"utilisation": PERCENT, "queue_mean": _KB, "dropped": 1.0, "lost": 1.0}
    found = by_seed(judged.links, ["link"], [pl.col(list(scales)).mean()])
    rows = [
        [link, *(mean_of(seeds[name], scale) for name, scale in scales.items())]
        for (link,), seeds in found.items()
    ]
    return Table([Column("Link"), *numbers(titles)], rows)


def mean_of(runs: Sequence[float], scale: float) -> Markup:
    """The mean over seeds, with its interval below it if there are several."""
    if not runs:
        return Markup("—")
    found = intervals.mean([run * scale for run in runs])
    said = format_significant(found.value)
    if found.low is None:
        return Markup(said)
    between = f"{format_significant(found.low)} to {format_significant(found.high)}"
    return Markup(f'{said}<br><span class="soft small">{between}</span>')


def by_seed(
    table: pl.DataFrame, by: list[str], values: Sequence[pl.Expr]
) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """For each group the values of its seeds, by column; what is null is left out."""
    found = table.group_by(*by, "seed", maintain_order=True).agg(*values)
    groups: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in found.iter_rows(named=True):
        group = groups.setdefault(tuple(str(row[name]) for name in by), {})
        for name in found.columns[len(by) + 1 :]:
            seeds = group.setdefault(name, [])
            if row[name] is not None:
                seeds.append(float(row[name]))
    return groups


def _jain(result: Result) -> list[float]:
    """Jain's index of every seed; none if there is one flow."""
    if len(result.flow_names) == 1:
        return []
    return [value for value in metrics.fairness(result)["jain"].to_list() if value is not None]


def numbers(titles: Sequence[str]) -> list[Column]:
    """Columns of numbers with these titles."""
    return [Column(title, number=True) for title in titles]


def notebook(result: Result) -> str:
    """What a notebook shows of a result: its flows, and its links."""
    title = result.experiment.title
    parts = [Markup("<b>{}</b>").format(title)] if title else []
    parts += [table.html() for table in summary_tables(result)]
    said = Markup("<p><b>Spoiled</b>, {}.</p>")
    parts += [said.format(complaint) for complaint in result.complaints]
    return Markup('<div class="dumbbell">\n{}\n{}\n</div>').format(_STYLE, Markup("\n").join(parts))


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
