"""``dumbbell run``."""

from __future__ import annotations

import os
from functools import partial
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
    tell_warnings,
    too_wide,
    with_interval,
)
from dumbbell.engine.runner import known_backend, reserve_for, run_all, run_until
from dumbbell.errors import DumbbellError, ResultError, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

_MOST_FLOWS: Final = 20
"""More flows than this are shown together with those of the same [[flow]] table."""


def run_file(
    file: Path,
    *,
    out: Path | None,
    overwrite: bool,
    seeds: int | None,
    jobs: int | None,
    until: Until | None,
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
        suffix = "-linux" if chosen == "linux" else ""
        folder = out or Path("results") / f"{file.stem}{suffix}"
        if os.path.realpath(folder) == os.path.realpath(file.parent):
            raise ResultError(f"{folder}: is where {file} lies; name another folder with --out")
        grows = until is not None
        with (
            reserve_for(experiment, folder, chosen, overwrite=overwrite, grows=grows) as place,
            progress_bar(f"{file.name}: {len(experiment.seed_list)} run(s)") as progress,
        ):
            if until is None:
                (result,) = run_all(
                    [experiment],
                    jobs=jobs,
                    backend=chosen,
                    retry_spoiled=retry_spoiled,
                    progress=progress,
                    fresh=overwrite,
                )
            elif chosen != "simulator":
                raise DumbbellError("--until-ci: is for the simulator; give --seeds instead")
            else:
                values = partial(_values, until.metric)
                (result,) = run_until([experiment], until, values, jobs=jobs, progress=progress)
            result.write(place)
    tell_warnings(result.warnings)
    summary = metrics.summary(result)
    links = metrics.link_summary(result)
    if json:
        meta = result.meta | {
            "seed": result.seeds[0],
            "out": str(folder),
            "warnings": result.warnings,
        }
        if until is not None:
            meta |= {"until": vars(until)}
        runs = rows(metrics.run_summary(result, summary, links))
        print_json({"runs": runs, "flows": rows(summary), "links": rows(links), "meta": meta})
        return
    _print(result, summary, links)
    for complaint in result.complaints:
        print_line(f"\nSpoiled, {complaint}")
    if until is not None and not all(map(until.tight, _values(until.metric, result))):
        print_line(f"\n{too_wide(until)}")
    print_line(f"\nThe result is in {folder}")


def _values(metric: str, result: Result) -> list[list[float | None]]:
    """What of a result is to be known well: a metric of every flow, or else of the run."""
    flows = metrics.summary(result)
    if metric in metrics.over_flows(flows).columns:
        return flows.group_by("flow", maintain_order=True).agg(metric)[metric].to_list()
    runs = metrics.run_summary(result, flows, metrics.link_summary(result))
    return [runs[metric].to_list()]


def _print(result: Result, summary: pl.DataFrame, links: pl.DataFrame) -> None:
    seeds = len(result.seeds)
    runs = f" (mean of {seeds} seeds, below it its 95 % interval)" if seeds > 1 else ""
    print_table(f"{result.experiment.title or 'Flows'}{runs}", *_flow_table(result, summary))
    print_line()
    print_table("Links", *_link_table(links))
    if len(result.flow_names) > 1:
        together = metrics.group_throughput(summary)["throughput"]
        index = metrics.fairness(result)["jain"]
        said = [f"All flows together {_on_one_line(together, mbits)}"]
        said += [f"Jain's index {_on_one_line(index, plain)}"] if index.count() else []
        print_line(f"\n{'; '.join(said)}")


def _on_one_line(runs: pl.Series, show: Callable[[float | None], str]) -> str:
    mean, _, interval = with_interval(runs, show).partition("\n")
    return f"{mean}{f' ({interval})' if interval else ''}"


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
        .group_by("flow", "cc", "seed", maintain_order=True)
        .agg(pl.col(list(columns)).mean())
        .group_by("flow", "cc", maintain_order=True)
        .agg(pl.col(list(columns)))
    )
    if not summary["completed"].count():
        del columns["took"]
    cells = [
        [
            row["flow"],
            row["cc"],
            *(with_interval(row[key], show) for key, (_, show) in columns.items()),
        ]
        for row in means.iter_rows(named=True)
    ]
    return ["flow", "cc", *(head for head, _ in columns.values())], cells


def _link_table(links: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    columns: dict[str, tuple[str, Callable[[float | None], str]]] = {
        "utilisation": ("utilisation", percent),
        "queue_mean": ("mean queue", kilobytes),
        "dropped": ("packets dropped", count),
        "lost": ("lost at random", count),
    }
    runs = links.group_by("link", maintain_order=True).agg(pl.col(list(columns)))
    cells = [
        [row["link"], *(with_interval(row[key], show) for key, (_, show) in columns.items())]
        for row in runs.iter_rows(named=True)
    ]
    return ["link", *(head for head, _ in columns.values())], cells
