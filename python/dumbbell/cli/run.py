"""``dumbbell run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import metrics
from dumbbell.cli.output import (
    count,
    kilobytes,
    mbits,
    milliseconds,
    percent,
    plain,
    print_json,
    print_line,
    print_table,
    progress_bar,
    rows,
    seconds,
)
from dumbbell.errors import ResultError, in_file
from dumbbell.experiment import Experiment
from dumbbell.resolve import resolve
from dumbbell.runner import run

if TYPE_CHECKING:
    from dumbbell.results import Result

_MOST_FLOWS: Final = 20
"""More flows than this are shown by algorithm, not one by one."""


def run_file(
    file: Path,
    *,
    out: Path | None,
    seeds: int | None,
    jobs: int | None,
    assignments: list[str],
    json: bool,
) -> None:
    """Runs an experiment file, writes its result folder, and prints what flows achieved."""
    with in_file(file):
        experiment = Experiment.load(file, overrides=assignments)
        experiment = resolve(experiment if seeds is None else experiment.replace(seeds=seeds))
        folder = out or Path("results") / file.stem
        if folder.resolve() == file.resolve().parent:
            raise ResultError(f"{folder}: is where {file} lies; name another folder with --out")
        with progress_bar(f"{file.name}: {len(experiment.seed_list)} run(s)") as progress:
            result = run(experiment, jobs=jobs, out=folder, progress=progress)
    summary = metrics.summary(result)
    links = metrics.link_summary(result)
    if json:
        meta = result.meta | {"seed": result.seeds[0], "out": str(folder)}
        jain = rows(metrics.fairness(result))
        flows = rows(summary)
        print_json({"flows": flows, "links": rows(links), "fairness": jain, "meta": meta})
    else:
        _print(result, summary, links)
        print_line(f"\nThe result is in {folder}")


def _print(result: Result, summary: pl.DataFrame, links: pl.DataFrame) -> None:
    one_by_one = len(result.flow_names) <= _MOST_FLOWS
    by = ["flow", "cc"] if one_by_one else ["cc"]
    columns = ["throughput", "goodput", "queue_delay_mean", "queue_delay_p95"]
    columns += ["retransmission_share", "completed"]
    means = summary.group_by(by, maintain_order=True).agg(pl.col(columns).mean())
    formats = [mbits, mbits, milliseconds, milliseconds, percent, seconds]
    cells = [
        [*map(str, row[: len(by)]), *(f(v) for f, v in zip(formats, row[len(by) :], strict=True))]
        for row in means.iter_rows()
    ]
    heads = ["throughput", "goodput", "queueing delay", "its p95", "retransmitted", "completed"]
    title = result.experiment.title or "Flows"
    seeds = f" (mean of {len(result.seeds)} seeds)" if len(result.seeds) > 1 else ""
    print_table(f"{title}{seeds}", [*by, *heads], cells)
    means = links.group_by("link", maintain_order=True).agg(
        pl.col("utilisation", "queue_mean", "dropped", "lost").mean()
    )
    cells = [
        [link, percent(used), kilobytes(queue), count(dropped), count(lost)]
        for link, used, queue, dropped, lost in means.iter_rows()
    ]
    print_line()
    heads = ["link", "utilisation", "mean queue", "packets dropped", "lost at random"]
    print_table("Links", heads, cells)
    index = metrics.fairness(result)["jain"].mean()
    if len(result.flow_names) > 1 and isinstance(index, float):
        print_line(f"\nJain's index {plain(index)}")
