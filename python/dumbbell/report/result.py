"""Pages of results: their tables, their settings, and the packed series of their runs."""

from __future__ import annotations

import json
import shlex
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from markupsafe import Markup, escape

from dumbbell import metrics
from dumbbell.display import Cell, Column, Table
from dumbbell.engine.compare import SHOWN
from dumbbell.figures import labelled
from dumbbell.figures.result import MOST_FLOWS
from dumbbell.lab.link import fragment_of
from dumbbell.report import series
from dumbbell.results.summary import MEANS, Summary, group_names, invalid, means, summary_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

_NUMBERS: Final = 1_200_000
"""How many numbers all series of a page may have together: some three megabytes."""
_FEWEST, _MOST = 240, 3000
_SEEDS: Final = 10  # of how many seeds the page of one result has the series


@dataclass(frozen=True)
class ResultPage:
    """A result as a page shows it."""

    id: str  # what links to it
    name: str  # its folder
    title: str  # what it is about
    algorithms: list[str]  # of its flows
    overview: list[list[Cell]]  # its rows of the table that tells of all results
    tables: list[Table]  # flows, then links
    # The packed series of runs: ``id``, ``seed``, ``invalid``, ``text``.
    drawn: list[dict[str, Any]]
    note: str  # what is not drawn
    # What is assumed or calibrated: key, value, kind, reason.
    settings: list[tuple[str, str, str, str]]
    toml: str  # the experiment as it was resolved
    meta: dict[str, Any]  # version, seeds, machine, wall time
    invalid: list[str]  # sentences on its invalid runs; empty if none is
    commands: list[tuple[str, str]]  # what to type to make it, and its figures, again
    fragment: str  # of its link into the laboratory; empty if the page cannot run it


def result_pages(results: Mapping[str, Result], places: Mapping[str, str]) -> list[ResultPage]:
    """The pages of results; together their series have as many numbers as a page may have.

    `places` says by name where a command finds the folder of a result.
    """
    seeds = _SEEDS if len(results) == 1 else 1
    drawn = [(result.experiment, result.seeds[:seeds]) for result in results.values()]
    count = sum(series.lines(experiment) * len(chosen) for experiment, chosen in drawn)
    most = min(max(_NUMBERS // max(count, 1), _FEWEST), _MOST)
    return [
        _result_page(number, name, result, places[name], result.seeds[:seeds], most)
        for number, (name, result) in enumerate(results.items(), 1)
    ]


def overview(pages: Sequence[ResultPage]) -> Table:
    """A row for the flows of each [[flow]] table: what they achieved, the mean over the seeds."""
    columns = [Column("Experiment"), Column("Flows"), Column("Algorithm"), *map(Column.of, SHOWN)]
    note = (
        "Throughput is what the flows got together, from the start of the first to the end of the "
        "last; delays are means over them, utilisation is that of the fullest link, Jain's index "
        f"is over all flows but those of transfers. {MEANS}"
    )
    return Table(columns, [[_link(page), *row] for page in pages for row in page.overview], note)


def _overview(summary: Summary, experiment: Experiment) -> list[list[Cell]]:
    labels = group_names(experiment)
    flows = pl.col("flow").cast(pl.String).replace_strict(labels, return_dtype=pl.String)
    together = metrics.over_flows(summary.flows.with_columns(flows), ["flow", "cc", "seed"])
    used = summary.links.group_by("seed").agg(pl.col("utilisation").max())
    for table in (used, metrics.with_least(summary.jain, summary.flows)):
        together = together.join(table, on="seed", how="left", maintain_order="left")
    rows = means(together, ["flow", "cc"], SHOWN)
    among = [str(cc) for _, cc, *_ in rows]
    return [[flow, labelled(str(cc), among), *cells] for flow, cc, *cells in rows]


def _result_page(
    number: int, name: str, result: Result, place: str, seeds: Sequence[int], most: int
) -> ResultPage:
    """The page of a result, with the series of these seeds, of at most so many points each."""
    drawn = [
        {
            "id": f"run-{number}-{seed}",
            "seed": seed,
            "invalid": seed in result.invalid_runs,
            "text": series.pack(series.charts(result, seed, most)),
        }
        for seed in seeds
    ]
    experiment = result.experiment
    toml = experiment.to_toml(defaults=True)
    valid, fragment = result.valid(), fragment_of(experiment)
    summary = Summary.of(valid)
    return ResultPage(
        id=f"result-{number}",
        name=name,
        title=experiment.title or name,
        algorithms=list(dict.fromkeys(flow.cc for flow in experiment.flows)),
        overview=_overview(summary, experiment),
        tables=summary_tables(valid, summary),
        drawn=drawn,
        note=_note(result, seeds),
        settings=_settings(experiment, toml),
        toml=toml,
        meta=result.meta,
        invalid=invalid(result),
        commands=_commands(place, is_in_page=bool(fragment)),
        fragment=fragment,
    )


def _commands(place: str, *, is_in_page: bool) -> list[tuple[str, str]]:
    quoted, file = shlex.quote(place), shlex.quote(f"{place}/experiment.toml")
    lab = [("Open it in the laboratory", f"dumbbell lab --open {file}")]
    return [
        ("Run it again", f"dumbbell run {file}"),
        *(lab if is_in_page else []),
        ("Its figure, for a paper", f"dumbbell plot {quoted} overview --format pdf"),
        ("Its tables as CSV", f"dumbbell export {quoted} --format csv"),
    ]


def _note(result: Result, seeds: Sequence[int]) -> str:
    parts = []
    if len(result.seeds) > len(seeds):
        which = ", ".join(map(str, seeds))
        parts.append(f"Drawn: seed {which} of {len(result.seeds)} seeds.")
    flows = len(result.by_subflow().flow_names)
    if flows > MOST_FLOWS:
        parts.append(f"Drawn: the first {MOST_FLOWS} of {flows} flows.")
    return " ".join(parts)


def _settings(experiment: Experiment, toml: str) -> list[tuple[str, str, str, str]]:
    data = tomllib.loads(toml)
    return [
        (key, _value(data, key), kind, reason)
        for kind, chosen in (("assumed", experiment.assumed), ("calibrated", experiment.calibrated))
        for key, reason in chosen.items()
    ]


def _value(data: Any, key: str) -> str:
    """The value of a key such as ``link.bottleneck.burst``, as text."""
    for part in key.split("."):
        if isinstance(data, list):
            data = next((one for one in data if part in ("*", one.get("name"))), {})
        else:
            data = data.get(part, {})
    if data == {}:
        return "—"
    value = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return value if len(value) <= 60 else f"{value[:57]}…"


def _link(page: ResultPage) -> Markup:
    mark = Markup(' <span class="verdict alert">invalid</span>') if page.invalid else ""
    real = Markup('<br><span class="soft small">Linux, real packets</span>')
    backend = real if "kernel" in page.meta else ""
    return Markup('<a href="#{}">{}</a>{}{}').format(page.id, escape(page.name), mark, backend)
