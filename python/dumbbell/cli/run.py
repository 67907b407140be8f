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
from dumbbell.runner import known_backend, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.results import Result

_MOST_FLOWS: Final = 20
"""More flows than this are shown together with those of the same [[flow]] table."""


def run_file(
    file: Path,
    *,
    out: Path | None,
    seeds: int | None,
    jobs: int | None,
    assignments: list[str],
    backend: str,
    retry_spoiled: int,
    json: bool,
) -> None:
    """Runs an experiment file, writes its result folder, and prints what flows achieved."""
    chosen = known_backend(backend)
    with in_file(file):
        experiment = Experiment.load(file, overrides=assignments)
        experiment = resolve(experiment if seeds is None else experiment.replace(seeds=seeds))
        folder = out or Path("results") / file.stem
        if folder.resolve() == file.resolve().parent:
            raise ResultError(f"{folder}: is where {file} lies; name another folder with --out")
        with progress_bar(f"{file.name}: {len(experiment.seed_list)} run(s)") as progress:
            result = run(
                experiment,
                jobs=jobs,
                out=folder,
                backend=chosen,
                retry_spoiled=retry_spoiled,
                progress=progress,
            )
    summary = metrics.summary(result)
    links = metrics.link_summary(result)
    if json:
        meta = result.meta | {"seed": result.seeds[0], "out": str(folder)}
        jain = rows(metrics.fairness(result))
        flows = rows(summary)
        print_json({"flows": flows, "links": rows(links), "fairness": jain, "meta": meta})
    else:
        _print(result, summary, links)
        for seed, why in result.meta.get("spoiled", {}).items():
            print_line(f"\nSpoiled: in run {seed} {'; '.join(why)}")
        print_line(f"\nThe result is in {folder}")


def _print(result: Result, summary: pl.DataFrame, links: pl.DataFrame) -> None:
    runs = f" (mean of {len(result.seeds)} seeds)" if len(result.seeds) > 1 else ""
    print_table(f"{result.experiment.title or 'Flows'}{runs}", *_flow_table(result, summary))
    print_line()
    print_table("Links", *_link_table(links))
    index = metrics.fairness(result)["jain"].mean()
    if len(result.flow_names) > 1 and isinstance(index, float):
        print_line(f"\nJain's index {plain(index)}")


def _flow_table(result: Result, summary: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Flows one by one or, if they are many, those of one [[flow]] table together."""
    columns: dict[str, tuple[str, Callable[[float | None], str]]] = {
        "throughput": ("throughput", mbits),
        "goodput": ("goodput", mbits),
        "queue_delay_mean": ("queueing delay", milliseconds),
        "queue_delay_p95": ("its p95", milliseconds),
        "retransmission_share": ("retransmitted", percent),
        "took": ("took", seconds),
    }
    together = len(result.flow_names) > _MOST_FLOWS
    labels = {
        name: f"{names[0]} to {names[-1]}" if together and len(names) > 1 else name
        for names in result.experiment.flow_names()
        for name in names
    }
    means = (
        summary.with_columns(
            pl.col("flow").cast(pl.String).replace_strict(labels),
            took=pl.col("completed") - pl.col("start"),
        )
        .group_by("flow", "cc", maintain_order=True)
        .agg(pl.col(list(columns)).mean())
    )
    if not summary["completed"].count():
        del columns["took"]
    cells = [
        [row["flow"], row["cc"], *(show(row[key]) for key, (_, show) in columns.items())]
        for row in means.iter_rows(named=True)
    ]
    return ["flow", "cc", *(head for head, _ in columns.values())], cells


def _link_table(links: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    means = links.group_by("link", maintain_order=True).agg(
        pl.col("utilisation", "queue_mean", "dropped", "lost").mean()
    )
    cells = [
        [link, percent(used), kilobytes(queue), count(dropped), count(lost)]
        for link, used, queue, dropped, lost in means.iter_rows()
    ]
    return ["link", "utilisation", "mean queue", "packets dropped", "lost at random"], cells
