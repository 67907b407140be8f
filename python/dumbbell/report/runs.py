"""What a page tells of results: tables, settings, and the packed series of their runs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from markupsafe import Markup, escape

from dumbbell import metrics
from dumbbell.display import Column, Table
from dumbbell.figures import labelled
from dumbbell.figures.results import MOST_FLOWS
from dumbbell.report import series
from dumbbell.results.summary import (
    MBIT,
    MEANS,
    MS,
    PERCENT,
    Summary,
    by_seed,
    mean_of,
    numbers,
    summary_tables,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

_NUMBERS: Final = 1_200_000
"""How many numbers all series of a page may have together: some three megabytes."""
_FEWEST, _MOST = 240, 3000
_SEEDS: Final = 10
"""Of how many seeds a page that tells of one result has the series."""


@dataclass(frozen=True)
class Packed:
    """The series of one run, as text, and the id that the page has them by."""

    id: str
    seed: int
    spoiled: bool
    text: str


@dataclass(frozen=True)
class View:
    """A result as the page tells it.

    Attributes:
        id: What links to it.
        name: Its folder.
        title: What it is about.
        algorithms: Of its flows.
        overview: Its rows of the table that tells of all results.
        tables: Flows, then links.
        drawn: The runs whose series are in the page.
        note: What is not drawn.
        settings: What is assumed or calibrated: key, value, kind, reason.
        toml: The experiment as it was resolved.
        meta: Version, seeds, machine, wall time.
        spoiled: Why runs are spoiled; empty if none is.
        commands: What to type to make it, and its figures, again.
    """

    id: str
    name: str
    title: str
    algorithms: list[str]
    overview: list[list[str]]
    tables: list[Table]
    drawn: list[Packed]
    note: str
    settings: list[tuple[str, str, str, str]]
    toml: str
    meta: dict[str, Any]
    spoiled: list[str]
    commands: list[tuple[str, str]]


@dataclass(frozen=True)
class Room:
    """What a page has room for.

    Attributes:
        seeds: Of how many seeds of a result it has the series.
        most: How many points each of them may have.
    """

    seeds: int
    most: int

    @classmethod
    def of(cls, experiments: Sequence[Experiment]) -> Room:
        """A page that tells of these experiments."""
        seeds = _SEEDS if len(experiments) == 1 else 1
        count = sum(series.lines(one) * min(seeds, len(one.seed_list)) for one in experiments)
        return cls(seeds, min(max(_NUMBERS // max(count, 1), _FEWEST), _MOST))


def views(results: Mapping[str, Result], places: Mapping[str, str]) -> list[View]:
    """How a page tells of results.

    Args:
        results: Results by name.
        places: By name, where a command finds the folder of the result.
    """
    room = Room.of([result.experiment for result in results.values()])
    return [
        view(number, name, result, places[name], room)
        for number, (name, result) in enumerate(results.items(), 1)
    ]


def overview(told: Sequence[View]) -> Table:
    """A row for every result and algorithm: what its flows achieved, the mean over the seeds."""
    columns = [Column("Experiment"), Column("Algorithm"), *numbers(_OVERVIEW)]
    note = (
        "Throughput is what an algorithm's flows got together, from the start of the first to the "
        "end of the last; delays are means over them, utilisation is that of the fullest link, "
        f"Jain's index is over all flows. {MEANS}"
    )
    return Table(columns, [[_link(view), *row] for view in told for row in view.overview], note)


def _overview(judged: Summary) -> list[list[str]]:
    together = metrics.over_flows(judged.flows, ["cc", "seed"])
    achieved = by_seed(together, ["cc"], [pl.col(list(_ACHIEVED)).first()])
    links = by_seed(judged.links, [], [pl.col("utilisation").max()])
    # What was measured between hosts has no links that are known.
    used = links[()]["utilisation"] if links else []
    rows: list[list[str]] = []
    for (cc,), seeds in achieved.items():
        cells = [mean_of(seeds[name], scale) for name, scale in _ACHIEVED.items()]
        cells[1:1] = [mean_of(used, PERCENT)]
        rows.append([labelled(cc), *cells, mean_of(judged.jain, 1.0)])
    return rows


_OVERVIEW: Final = (
    *("Throughput, Mbit/s", "Utilisation, %", "Queueing delay, ms", "its p95, ms"),
    *("Retransmitted, %", "Jain's index"),
)
_ACHIEVED: Final = {
    "throughput": MBIT,
    "queue_delay_mean": MS,
    "queue_delay_p95": MS,
    "retransmission_share": PERCENT,
}


def view(number: int, name: str, result: Result, place: str, room: Room) -> View:
    """How a page tells of its result of that number; see `views`."""
    chosen = result.seeds[: room.seeds]
    drawn = []
    for seed in chosen:
        packed = series.pack(series.charts(result, seed, room.most))
        drawn.append(Packed(f"run-{number}-{seed}", seed, seed in result.spoiled, packed))
    experiment = result.experiment
    toml = experiment.to_toml(defaults=True)
    judged = Summary.of(result)
    return View(
        id=f"result-{number}",
        name=name,
        title=experiment.title or name,
        algorithms=list(dict.fromkeys(flow.cc for flow in experiment.flows)),
        overview=_overview(judged),
        tables=summary_tables(result, judged),
        drawn=drawn,
        note=_note(result, chosen),
        settings=_settings(experiment, toml),
        toml=toml,
        meta=result.meta,
        spoiled=result.complaints,
        commands=_commands(place),
    )


def _commands(place: str) -> list[tuple[str, str]]:
    quoted = shlex.quote(place)
    return [
        ("Run it again", f"dumbbell run {shlex.quote(f'{place}/experiment.toml')}"),
        ("Its figure, for a paper", f"dumbbell figure overview {quoted} --format pdf"),
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
    return [
        (key, _value(toml, key), kind, reason)
        for kind, chosen in (("assumed", experiment.assumed), ("calibrated", experiment.calibrated))
        for key, reason in chosen.items()
    ]


def _value(toml: str, key: str) -> str:
    """The value of a key such as ``link.bottleneck.burst``, as the experiment file has it."""
    *table, last = key.split(".")
    head, name = (table[0], table[1] if len(table) > 1 else None) if table else (None, None)
    blocks = re.split(r"^(?=\[)", toml, flags=re.MULTILINE)
    for block in blocks:
        first = block.partition("\n")[0]
        at = re.fullmatch(r"\[{1,2}([^]]+)\]{1,2}", first)
        if (at.group(1) if at else None) != head:
            continue
        if name and name != "*" and f'name = "{name}"' not in block:
            continue
        found = re.search(rf"^{re.escape(last)} = (.+)$", block, flags=re.MULTILINE)
        if found:
            value = found.group(1).strip('"')
            return value if len(value) <= 60 else f"{value[:57]}…"
    return "—"


def _link(view: View) -> Markup:
    mark = Markup(' <span class="verdict fails">spoiled</span>') if view.spoiled else ""
    return Markup('<a href="#{}">{}</a>{}').format(view.id, escape(view.name), mark)
