"""``dumbbell run``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dumbbell import metrics
from dumbbell.cli.output import (
    print_json,
    print_line,
    print_table,
    print_text,
    progress_bar,
    rows,
    tell_warnings,
    too_wide,
)
from dumbbell.display import Column
from dumbbell.engine.runner import known_backend, reserve_for, run_all, run_until
from dumbbell.errors import DumbbellError, ResultError, in_file
from dumbbell.experiment.model import Experiment
from dumbbell.results.summary import Summary, summary_tables

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result


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
    retry_invalid: int,
    json: bool,
) -> None:
    """Runs an experiment file, writes its result folder, and prints what flows achieved."""
    chosen = known_backend(backend)
    with in_file(file):
        experiment = Experiment.load(file, overrides=assignments)
        experiment = (experiment if seeds is None else experiment.replace(seeds=seeds)).resolve()
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
                    retry_invalid=retry_invalid,
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
    for reason in result.invalid_reasons:
        print_line(f"\nInvalid, {reason}")
    if until is not None and not all(map(until.is_satisfied_by, _values(until.metric, result))):
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
    jain = metrics.fairness(result)
    flows, queues = summary_tables(result, Summary(summary, links, jain), label=str)
    print_table(f"{result.experiment.title or 'Flows'}{runs}", flows)
    print_line()
    print_table("Links", queues)
    if len(result.flow_names) > 1:
        together = metrics.group_throughput(summary)["throughput"]
        said = [f"All flows together {_on_one_line(together, Column.of('throughput'))}"]
        if jain["jain"].count():
            said.append(f"Jain's index {_on_one_line(jain['jain'], Column.of('jain'))}")
        print_line()
        print_text("; ".join(said))


def _on_one_line(runs: pl.Series, column: Column) -> str:
    mean = metrics.mean(runs.drop_nulls().to_list())
    unit = f" {column.unit}" if column.unit else ""
    if mean.low is None:
        return f"{column.format(mean.value)}{unit}"
    ends = f"{column.format(mean.low)} to {column.format(mean.high)}"
    return f"{column.format(mean.value)}{unit} ({ends})"
