"""``dumbbell compare``: algorithms on one link, as a table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from dumbbell import metrics
from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import (
    print_json,
    print_line,
    print_table,
    progress_bar,
    rows,
    tell_warnings,
    too_wide,
)
from dumbbell.display import Column, Table
from dumbbell.engine.compare import compare, values_of
from dumbbell.errors import ExperimentError
from dumbbell.results.summary import means

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.engine.compare import Comparison
    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

COLUMNS: Final = (
    *("throughput", "utilisation", "queue_delay_mean", "queue_delay_p95"),
    *("retransmission_share", "jain"),
)
"""The metrics that the tables show."""


def compare_algorithms(
    settings: dict[str, Any],
    cc: str,
    against: str | None,
    *,
    jobs: int | None,
    until: Until | None,
    json: bool,
) -> None:
    """Runs every algorithm on the link and prints how they compare.

    `settings` are arguments of `dumbbell.compare`: rate, rtt, queue, loss, ...
    """
    algorithms = split_algorithms(cc)
    began = time.perf_counter()
    with progress_bar("comparing") as progress:
        try:
            found = compare(
                algorithms, against=against, jobs=jobs, until=until, progress=progress, **settings
            )
        except ExperimentError as error:
            if error.key not in {*settings, "cc", "against"}:
                raise
            raise ExperimentError(error.problem, key=f"--{error.key}") from None
    wall = time.perf_counter() - began
    tell_warnings(
        f"{name}: {warning}" for name, one in found.results.items() for warning in one.warnings
    )
    runs = dict(
        zip(algorithms, found.runs.partition_by("algorithm", maintain_order=True), strict=True)
    )
    runs = {name: frame.drop("algorithm") for name, frame in runs.items()}
    if json:
        meta = _meta(settings, found, wall) | ({} if until is None else {"until": vars(until)})
        table = [row_of(name, frame) for name, frame in runs.items()]
        print_json({"flows": rows(found.flows), "algorithms": table, "meta": meta})
        return
    _print(settings, found, against)
    wide = [
        name
        for name, result in found.results.items()
        if until and not all(map(until.is_satisfied_by, values_of(until.metric, result)))
    ]
    if until and wide:
        print_line(too_wide(until, f"With {', '.join(wide)} "))


def row_of(name: str, runs: pl.DataFrame) -> dict[str, Any]:
    """An algorithm's means and, if there are several seeds, their 95 % intervals."""
    row: dict[str, Any] = {"cc": name}
    intervals = {}
    for metric in runs.columns[1:]:
        known = runs[metric].drop_nulls().to_list()
        estimate = metrics.mean(known) if known else None
        row[metric] = estimate and estimate.value
        intervals[metric] = [estimate.low, estimate.high] if estimate else None
    return row | ({"intervals": intervals} if runs.height > 1 else {})


def _meta(settings: dict[str, Any], found: Comparison, wall: float) -> dict[str, Any]:
    results: list[Result] = [*found.results.values(), *([found.rival] if found.rival else [])]
    metas = [result.meta for result in results]
    sums = {key: sum(meta[key] for meta in metas) for key in ("data_packets", "events")}
    seed = {"seed": metas[0]["seeds"][0], "wall_s": wall}
    return metas[0] | sums | seed | {"question": settings}


def _print(settings: dict[str, Any], found: Comparison, against: str | None) -> None:
    rival = f", each against as many of {against}" if against else ""
    title = (
        "{rate}, {rtt}, queue {queue}: {flows} flow(s) of each algorithm".format_map(settings)
        + f"{rival}, {settings['duration']}{_seeds(found.runs)}"
    )
    columns = list(COLUMNS)
    heads = {}
    if against:
        columns += ["rival_throughput", "harm"]
        heads = {"rival_throughput": Column.of("rival_throughput", title=f"Left to {against}")}
    shown = [heads.get(name) or Column.of(name) for name in columns]
    table = Table([Column("Algorithm"), *shown], means(found.runs, ["algorithm"], columns))
    print_table(title, table)
    print_line("\nThroughput: all flows of an algorithm together. Delays: one-way, per packet.")


def _seeds(runs: pl.DataFrame) -> str:
    counts = sorted(set(runs.group_by("algorithm").len()["len"]))
    if counts == [1]:
        return ""
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"; mean of {many} seeds, below it its 95 % interval"
