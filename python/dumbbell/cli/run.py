"""``dumbbell run``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, Context, Option

from dumbbell.cli import options
from dumbbell.cli.output import (
    mean_of,
    print_json,
    print_line,
    print_table,
    print_text,
    print_warnings,
    progress_bar,
    too_wide,
)
from dumbbell.errors import ResultError, in_file

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.experiment.model import Experiment

_PACKET: Final = 1500
"""Of how many bytes the packets are in which a BDP is shown."""


def run_file(
    context: Context,
    file: Annotated[Path, Argument(metavar="FILE", help="Experiment, a TOML file.")],
    out: Annotated[Path | None, options.out("Result folder; default: results/FILE.")] = None,
    overwrite: options.Overwrite = False,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    assignments: options.Assignments = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    max_seeds: options.MaxSeeds = 100,
    backend: options.OnBackend = "simulator",
    retry_invalid: Annotated[int, Option(help="Attempts to repeat an invalid run.")] = 0,
    json: options.Json = False,
) -> None:
    """Run an experiment and write its result folder."""
    from dumbbell import metrics
    from dumbbell.engine.runner import run, values_of
    from dumbbell.experiment.model import Experiment
    from dumbbell.results.summary import Summary, summary_tables
    from dumbbell.sweeps.plan import RUN_METRICS

    until = options.parse_until(context, until_ci, metric, max_seeds, RUN_METRICS)
    is_real = backend == "linux"
    if not is_real:
        options.refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    folder = out or Path("results") / f"{file.stem}{'-linux' if is_real else ''}"
    if os.path.realpath(folder) == os.path.realpath(file.parent):
        raise ResultError(f"{folder}: is where {file} lies; name another folder with --out")
    with in_file(file), progress_bar(file.name) as progress:
        written = Experiment.load(file, overrides=assignments or [])
        result = run(
            written,
            seeds=seeds,
            jobs=jobs,
            out=folder,
            overwrite=overwrite,
            backend=backend,
            retry_invalid=retry_invalid,
            until=until,
            progress=progress,
        )
    print_warnings(result.warnings)
    flows, links = metrics.summary(result), metrics.link_summary(result)
    runs = metrics.run_summary(result, flows, links)
    if json:
        meta = {"seed": result.seeds[0], "out": str(folder), "warnings": result.warnings}
        meta = result.meta | meta | ({"until": vars(until)} if until else {})
        tables = {"runs": runs, "flows": flows, "links": links}
        print_json({name: table.to_dicts() for name, table in tables.items()} | {"meta": meta})
        return
    of_flows, of_links = summary_tables(result, Summary(flows, links, jain=runs), label=str)
    print_table(f"{result.experiment.title or 'Flows'}{mean_of([len(result.seeds)])}", of_flows)
    print_line()
    print_table("Links", of_links)
    notes = [_together(runs)] if len(result.flow_names) > 1 else []
    notes += _bdp(written, result.experiment)
    if notes:
        print_text("\n".join(["", *notes]))
    for reason in result.invalid_reasons:
        print_line(f"\nInvalid, {reason}")
    if until and not all(map(until.is_satisfied_by, values_of(until.metric, result))):
        print_line(f"\n{too_wide(until)}")
    print_line(f"\nThe result is in {folder}")


def _together(runs: pl.DataFrame) -> str:
    """What all flows achieved together."""
    rate = f"All flows together {_mean(runs, 'throughput')} Mbit/s"
    has_jain = runs["jain"].count() > 0
    return f"{rate}; Jain's index {_mean(runs, 'jain')}" if has_jain else rate


def _mean(runs: pl.DataFrame, metric: str) -> str:
    from dumbbell.display import Column
    from dumbbell.metrics import mean

    known = runs[metric].drop_nulls().to_list()
    return Column.of(metric).format(mean(known, metric) if known else None)


def _bdp(written: Experiment, resolved: Experiment) -> list[str]:
    """A note of what 1 BDP is, if there is a single link and its queue is given in BDP."""
    from dumbbell.experiment.quantities import BDP, SIZE

    [link, *more], [there, *_] = written.links, resolved.links
    given = link.queue or "1 BDP"  # the default, if it is limited
    if more or not given.endswith("BDP") or there.queue in (None, "unlimited"):
        return []
    size = round(SIZE.parse(there.queue) * 10**6 / BDP.parse(given))
    return [f"1 BDP is {SIZE.format(size)} ({size / _PACKET:,.0f} packets of {_PACKET:,} bytes)"]
