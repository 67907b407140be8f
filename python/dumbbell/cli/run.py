"""``dumbbell run``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Context

from dumbbell.cli import options, output
from dumbbell.errors import ResultError, in_file
from dumbbell.experiment.files import writing

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.engine.backend import Backend
    from dumbbell.experiment.model import Experiment
    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

_PACKET: Final = 1500  # of how many bytes the packets are in which a BDP is shown


def run_file(
    context: Context,
    file: Annotated[
        Path, Argument(metavar="FILE", help="Experiment, a TOML file; or a laboratory's link.")
    ],
    out: Annotated[Path | None, options.out("Result folder; default: results/FILE.")] = None,
    overwrite: options.OverwriteResult = False,
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    assignments: options.Assignments = None,
    until_ci: options.UntilCi = None,
    metric: options.Metric = "throughput",
    max_seeds: options.MaxSeeds = 100,
    backend: options.OnBackends = "simulator",
    retry_invalid: options.RetryInvalid = 0,
    json: options.Json = False,
) -> None:
    """Run an experiment and write its result folder."""
    from dumbbell.cli import scenario
    from dumbbell.engine.runner import refuse, run

    until = options.parse_until(context, until_ci, metric, max_seeds)
    if backend == "simulator":
        options.refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    elif backend == "both":
        options.refuse_given(context, ("until_ci",), "goes with --backend simulator")
    kinds: list[Backend] = ["linux", "simulator"] if backend == "both" else [backend]
    name = scenario.name_of(file)
    folders = [_folder(name, out, kind, alone=len(kinds) == 1) for kind in kinds]
    results = []
    with (
        options.named("metric", until="--until-ci"),
        options.proposing(name, out, assignments),
        in_file(name),
        output.progress_bar(name.name) as progress,
    ):
        written = scenario.load(file, assignments)
        if len(kinds) > 1:  # before the first of them takes its time
            one = written if seeds is None else written.replace(seeds=seeds)
            for kind, folder in zip(kinds, folders, strict=True):
                refuse(one, folder, kind, overwrite=overwrite)
        for kind, folder in zip(kinds, folders, strict=True):
            result = run(
                written,
                seeds=seeds,
                jobs=jobs,
                out=folder,
                overwrite=overwrite,
                backend=kind,
                retry_invalid=retry_invalid,
                until=until,
                progress=progress,
            )
            results.append(result)
    for result in results:
        output.print_warnings(result.warnings)
    if json:
        said = [_as_json(*one, until) for one in zip(results, folders, strict=True)]
        output.print_json(dict(zip(kinds, said, strict=True)) if len(said) > 1 else said[0])
    elif backend == "both":
        _show_both(results[1], results[0], folders[1], folders[0])
    else:
        _show(results[0], written, until)
        output.print_line(f"\nThe result is in {folders[0]}")


def _folder(file: Path, out: Path | None, kind: Backend, *, alone: bool) -> Path:
    """Where a result is written, which must not be where its experiment lies."""
    folder = options.folder_of(file, out, kind, alone=alone)
    if os.path.realpath(folder) == os.path.realpath(file.parent):
        raise ResultError(f"{folder}: is where {file} lies; name another folder with --out")
    return folder


def _as_json(result: Result, folder: Path, until: Until | None) -> dict[str, Any]:
    from dumbbell import metrics

    flows, links = metrics.summary(result), metrics.link_summary(result)
    tables = {"runs": metrics.run_summary(result, flows, links), "flows": flows, "links": links}
    if result.transfers.width:
        tables["transfers"] = metrics.transfer_summary(result)
    if result.frames.width:
        tables["media"] = metrics.frame_summary(result)
    if result.segments.width:
        tables["video"] = metrics.video_summary(result)
    meta = {"seed": result.seeds[0], "out": str(folder), "warnings": result.warnings}
    meta = result.meta | meta | ({"until": vars(until)} if until else {})
    return {name: table.to_dicts() for name, table in tables.items()} | {"meta": meta}


def _show(result: Result, written: Experiment, until: Until | None) -> None:
    """Prints what flows and links achieved."""
    from dumbbell import metrics
    from dumbbell.engine.runner import values_of
    from dumbbell.results.summary import (
        Summary,
        jain_title,
        spans,
        still_running,
        summary_tables,
        unsettled,
    )

    every, result = result, result.valid()
    flows, links = metrics.summary(result), metrics.link_summary(result)
    runs = metrics.run_summary(result, flows, links)
    summary = Summary(flows, links, jain=runs, unsettled=unsettled(result))
    of_flows, of_links, *more = summary_tables(result, summary, label=str)
    output.print_table(
        f"{result.experiment.title or 'Flows'}{output.mean_of([len(result.seeds)])}", of_flows
    )
    output.print_line()
    output.print_table("Links", of_links)
    for table in more:
        output.print_line()
        # "Flow of media" heads the table of media.
        title = table.columns[0].title.removeprefix("Flow of ").capitalize()
        output.print_table(title, table)
    notes = []
    if len(result.flow_names) > 1:
        notes.append(_together(metrics.with_least(runs, flows), jain_title(result)))
    if result.transfers.width:
        notes += still_running(metrics.transfer_summary(result))
    notes += [*spans(result), *summary.unsettled, *_bdp(written, result.experiment)]
    if notes:
        output.print_text("\n".join(["", *notes]))
    _tell_invalid(every)
    if until and not all(map(until.is_satisfied_by, values_of(until.metric, every))):
        output.print_line(f"\n{output.too_wide(until)}")


def _show_both(simulated: Result, real: Result, folder: Path, beside: Path) -> None:
    """Prints what flows achieved in the simulator and in Linux, and draws one over the other.

    Of both those seeds count whose runs with real packets are valid.
    """
    from dumbbell import figures
    from dumbbell.figures.result import draw
    from dumbbell.results.summary import side_by_side

    title = simulated.experiment.title or "Simulated and with real packets"
    valid = real.valid()
    flows, *more = side_by_side([simulated.with_seeds_of(real), valid])
    output.print_table(f"{title}{output.mean_of([len(valid.seeds)])}", flows)
    for table in more:
        output.print_line()
        output.print_table("Transfers", table)
    _tell_invalid(real)
    with figures.styled(), writing(folder / "both.svg"):
        figure = draw(simulated, seed=valid.seeds[0], beside={real.source: real})
        written = figures.save(figure, folder / "both", ["svg", "png"])
    output.print_line(f"\nThe results are in {folder} and {beside}; the figure is {written[0]}")


def _tell_invalid(result: Result) -> None:
    from dumbbell.results.summary import invalid

    if said := invalid(result):
        output.print_text("\n".join(["", *said]))


def _together(runs: pl.DataFrame, jain: str) -> str:
    """What all flows achieved together, with a title of Jain's index."""
    rate = f"All flows together {_mean(runs, 'throughput')} Mbit/s"
    has_jain = runs["jain"].count() > 0
    return f"{rate}; {jain} {_mean(runs, 'jain')}" if has_jain else rate


def _mean(runs: pl.DataFrame, metric: str) -> str:
    import polars as pl

    from dumbbell.display import Column
    from dumbbell.results.summary import means

    [[_, found]] = means(runs.with_columns(together=pl.lit("")), ["together"], [metric])
    return Column.of(metric).format(found)


def _bdp(written: Experiment, resolved: Experiment) -> list[str]:
    """A note of what 1 BDP is, if there is a single link and its queue is given in BDP."""
    from dumbbell.experiment.quantities import BDP, SIZE

    [link, *more], [there, *_] = written.links, resolved.links
    given = link.queue or "1 BDP"  # the default, if it is limited
    # A template may have a queue of packets or of a time.
    if more or not given.endswith("BDP") or not (there.queue and there.queue.endswith("B")):
        return []
    size = round(SIZE.parse(there.queue) * 10**6 / BDP.parse(given))
    return [f"1 BDP is {SIZE.format(size)} ({size / _PACKET:,.0f} packets of {_PACKET:,} bytes)"]
