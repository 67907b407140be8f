"""``dumbbell compare``: algorithms on one link, as a table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from dumbbell import metrics
from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import (
    mbits,
    milliseconds,
    percent,
    plain,
    print_json,
    print_line,
    print_table,
    progress_bar,
    rows,
    tell_warnings,
    too_wide,
    with_interval,
)
from dumbbell.engine.compare import compare, values_of
from dumbbell.errors import ExperimentError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from dumbbell.engine.compare import Comparison
    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

COLUMNS: Final[dict[str, tuple[str, Callable[[float | None], str]]]] = {
    "throughput": ("throughput", mbits),
    "utilisation": ("utilisation", percent),
    "queue_delay_mean": ("queueing delay", milliseconds),
    "queue_delay_p95": ("its p95", milliseconds),
    "retransmission_share": ("retransmitted", percent),
    "jain": ("Jain's index", plain),
}
"""What the tables show of what was achieved: key -> head and how it is shown."""


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
        table = [means(name, frame) for name, frame in runs.items()]
        print_json({"flows": rows(found.flows), "algorithms": table, "meta": meta})
        return
    _print(settings, runs, against)
    wide = [
        name
        for name, result in found.results.items()
        if until and not all(map(until.tight, values_of(until.metric, result)))
    ]
    if until and wide:
        print_line(too_wide(until, f"With {', '.join(wide)} "))


def means(name: str, runs: pl.DataFrame) -> dict[str, Any]:
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


def _print(settings: dict[str, Any], runs: dict[str, pl.DataFrame], against: str | None) -> None:
    rival = f", each against as many of {against}" if against else ""
    seeds = _seeds(runs)
    title = (
        "{rate}, {rtt}, queue {queue}: {flows} flow(s) of each algorithm".format_map(settings)
        + f"{rival}, {settings['duration']}{seeds}"
    )
    columns = dict(COLUMNS)
    if against:
        columns |= {"rival_throughput": (f"left to {against}", mbits), "harm": ("harm", percent)}
    cells = [
        [name, *(with_interval(frame[key], show) for key, (_, show) in columns.items())]
        for name, frame in runs.items()
    ]
    print_table(title, ["algorithm", *(head for head, _ in columns.values())], cells)
    print_line("\nThroughput: all flows of an algorithm together. Delays: one-way, per packet.")


def _seeds(runs: dict[str, pl.DataFrame]) -> str:
    counts = sorted({frame.height for frame in runs.values()})
    if counts == [1]:
        return ""
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"; mean of {many} seeds, below it its 95 % interval"
