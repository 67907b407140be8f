"""The commands and their options; what they do is in the other modules of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dumbbell._core import __version__
from dumbbell.cli import bpf, store, udt
from dumbbell.errors import DumbbellError

app = typer.Typer(
    name="dumbbell",
    help="A congestion-control laboratory: an experiment file in, tables and figures out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(bpf.app, name="bpf")
app.add_typer(udt.app, name="udt")
app.add_typer(store.app, name="store")

Jobs = Annotated[
    int | None, typer.Option(help="How many simulations to run at once; default: one a processor.")
]
Seeds = Annotated[int | None, typer.Option(help="How many seeds to run with.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key: 'duration=10 s', 'link.NAME.queue=1 BDP', 'flow.*.cc=bbr'.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until-ci",
        metavar="SHARE",
        help="Add seeds until half of the 95 % interval is at most this share of the mean: '5%'.",
    ),
]
Metric = Annotated[str, typer.Option(help="The metric whose interval that is.")]
Most = Annotated[int, typer.Option(help="The most seeds that are added up to.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace other results that are in the folder.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


OnBackend = Annotated[
    str, typer.Option(help="'simulator', or 'linux' for real packets in real time (too).")
]


@app.command()
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The result folder; default: results/ and FILE's name, -linux if packets are real."
        ),
    ] = None,
    overwrite: Overwrite = False,
    seeds: Seeds = None,
    jobs: Jobs = None,
    assignments: Assignments = None,
    until_ci: Until = None,
    metric: Metric = "throughput",
    most_seeds: Most = 100,
    backend: OnBackend = "simulator",
    retry_invalid: Annotated[
        int,
        typer.Option(help="How often to repeat an invalid run with real packets."),
    ] = 0,
    json: Json = False,
) -> None:
    """Run an experiment, and write its result folder."""
    from dumbbell.cli.given import refuse_given
    from dumbbell.cli.run import run_file
    from dumbbell.cli.until import parse_until
    from dumbbell.sweeps.plan import RUN_METRICS

    if backend == "simulator":
        refuse_given(context, ("retry_invalid",), "goes with --backend linux")
    run_file(
        file,
        out=out,
        overwrite=overwrite,
        seeds=seeds,
        jobs=jobs,
        until=parse_until(context, until_ci, metric, most_seeds, known=RUN_METRICS),
        assignments=assignments or [],
        backend=backend,
        retry_invalid=retry_invalid,
        json=json,
    )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The experiment or the sweep, a TOML file.")],
    assignments: Assignments = None,
) -> None:
    """Check an experiment file; every error has its line and what would be valid."""
    from dumbbell.cli.files import check_file

    check_file(file, assignments or [])


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("experiment.toml"),
) -> None:
    """Write an experiment file to begin with."""
    from dumbbell.cli.files import write_starter

    write_starter(file)


@app.command()
def explain(
    topic: Annotated[
        str,
        typer.Argument(help="A key or a name: 'link.queue', 'cubic', 'codel', 'stack.min_rto'."),
    ],
) -> None:
    """Explain a key of experiment files, an algorithm, an AQM or an option."""
    from dumbbell.cli.files import show_explanation

    show_explanation(topic)


@app.command()
def schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    from dumbbell.cli.files import show_schema

    show_schema()


@app.command()
def sweep(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help=r"The experiment, a TOML file with \[sweep].")],
    out: Annotated[
        Path | None, typer.Option(help="The sweep's folder; default: results/ and FILE's name.")
    ] = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    assignments: Assignments = None,
    until_ci: Until = None,
    metric: Metric = "throughput",
    most_seeds: Most = 100,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The Dask scheduler whose workers are to work."),
    ] = None,
    series: Annotated[
        bool, typer.Option("--series", help="Keep the time series of every run too.")
    ] = False,
    json: Json = False,
) -> None:
    r"""Run an experiment along the axes of its \[sweep]; what is in the folder already is kept."""
    from dumbbell.cli.sweep import sweep_file
    from dumbbell.cli.until import parse_until

    sweep_file(
        file,
        out=out,
        seeds=seeds,
        jobs=jobs,
        dask=dask,
        until=parse_until(context, until_ci, metric, most_seeds),
        series=series,
        assignments=assignments or [],
        json=json,
    )


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="The query, such as 'select * from runs'.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result or a sweep.")],
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV and nothing else.")] = False,
    json: Json = False,
) -> None:
    """Ask a result or a sweep in SQL: its tables are runs, flows, links, ..."""
    from dumbbell.cli.query import answer

    answer(sql, folder, json=json, csv=csv)


@app.command()
def compare(
    context: typer.Context,
    rate: Annotated[str, typer.Option(help="The rate of the bottleneck.")] = "100 Mbit/s",
    rtt: Annotated[str, typer.Option(help="The round-trip time without queues.")] = "40 ms",
    queue: Annotated[str, typer.Option(help="How much may wait at the bottleneck.")] = "1 BDP",
    cc: Annotated[
        str, typer.Option(help="The algorithms, such as 'reno,cubic(hystart=off),bbr'.")
    ] = "reno,cubic,bbr,bbr3",
    flows: Annotated[
        int, typer.Option(help="How many flows of each algorithm share the link.")
    ] = 2,
    against: Annotated[
        str | None,
        typer.Option(help="An algorithm of which as many flows compete with each of the others."),
    ] = None,
    loss: Annotated[str, typer.Option(help="The probability of random loss.")] = "0",
    duration: Annotated[str, typer.Option(help="How long each run lasts.")] = "60 s",
    stack: Annotated[str, typer.Option(help="The TCP stack.")] = "linux",
    scenarios: Annotated[
        str | None,
        typer.Option(help="Instead of one link, what papers look at: 'papers', or some by id."),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(help="With --scenarios, the other algorithms; default: all for TCP."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="With --scenarios, a folder for a figure and the tables.")
    ] = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    until_ci: Until = None,
    metric: Metric = "throughput",
    most_seeds: Most = 100,
    json: Json = False,
) -> None:
    """Compare algorithms on one link, or where papers look."""
    from dumbbell.cli.compare import compare_algorithms
    from dumbbell.cli.given import refuse_given
    from dumbbell.cli.until import parse_until

    if scenarios is not None:
        from dumbbell.cli.compare_papers import answer_papers

        of_link = (
            *("rate", "rtt", "queue", "flows", "against", "loss", "duration", "stack"),
            *("until_ci", "metric", "most_seeds"),
        )
        refuse_given(
            context, of_link, "is for one link, and --scenarios has the papers'; leave it out"
        )
        answer_papers(scenarios, cc, beside, seeds=seeds or 1, jobs=jobs, out=out, json=json)
        return
    refuse_given(context, ("beside", "out"), "goes with --scenarios, such as '--scenarios papers'")
    settings = {
        "rate": rate,
        "rtt": rtt,
        "queue": queue,
        "loss": loss,
        "flows": flows,
        "duration": duration,
        "stack": stack,
        "seeds": 1 if seeds is None else seeds,
    }
    until = parse_until(context, until_ci, metric, most_seeds)
    compare_algorithms(settings, cc, against, jobs=jobs, until=until, json=json)


@app.command()
def plot(
    folder: Annotated[
        Path | None, typer.Argument(help="A result, a sweep, or a reproduced paper.")
    ] = None,
    name: Annotated[
        str | None, typer.Argument(help="Which figure, see --list; default: the usual one.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Which seed of a result; default: the first.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="The axis of a sweep from left to right.")] = None,
    y: Annotated[str | None, typer.Option(help="The axis from bottom to top.")] = None,
    by: Annotated[
        str | None, typer.Option(help="The axis whose values are told apart, such as cc.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="A column of runs, or an SQL expression of several; default: jain."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Only runs like this, in SQL: \"cc = 'bbr3'\".")
    ] = None,
    kind: Annotated[
        Literal["svg", "png", "pdf"] | None,
        typer.Option("--format", help="The format; default: svg and png."),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(help="'single' (3.5 in) or 'double' (7.16 in) column, or such as '84mm'."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; default: in FOLDER.")] = None,
    all_names: Annotated[bool, typer.Option("--list", help="List the figures there are.")] = False,
) -> None:
    """Draw a figure: of a result over time, of a sweep over its axes, of a paper."""
    from dumbbell.cli.plot import list_figures, plot_folder

    if all_names or folder is None:
        list_figures()
        return
    choices = {"x": x, "y": y, "by": by, "metric": metric, "where": where}
    plot_folder(folder, name, seed=seed, kind=kind, width=width, out=out, **choices)


_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


@app.command(hidden=True, context_settings=_ANYTHING)
def heat() -> None:
    """Says what the command is called now."""
    raise DumbbellError("heat: is now a figure of `plot`; write dumbbell plot FOLDER heat")


@app.command(hidden=True, context_settings=_ANYTHING)
def figure() -> None:
    """Says what the command is called now."""
    raise DumbbellError(
        "figure: is now `plot`; write dumbbell plot FOLDER NAME, and --format pdf for a PDF"
    )


def _papers(incomplete: str) -> list[str]:
    from dumbbell.papers.registry import PAPERS

    return [name for name in (*PAPERS, "all") if name.startswith(incomplete)]


@app.command()
def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids or folders of papers; 'all', the default, for every built-in one.",
            autocompletion=_papers,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write a folder for each paper.")] = Path(
        "out"
    ),
    overwrite: Overwrite = False,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Make only this figure of the paper, such as 2a."),
    ] = None,
    extensions: Annotated[
        bool,
        typer.Option("--extensions", help="Also run what goes beyond the papers; takes longer."),
    ] = False,
    backend: OnBackend = "simulator",
    seeds: Seeds = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Reproduce papers: figures and numbers, published beside measured."""
    from dumbbell.cli.reproduce import reproduce_papers

    reproduce_papers(
        papers or ["all"],
        out=out,
        overwrite=overwrite,
        seeds=seeds,
        jobs=jobs,
        extensions=extensions,
        backend=backend,
        figures=figures or [],
        json=json,
    )


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="RESULT", help="A result folder.")],
    kind: Annotated[
        str, typer.Option("--format", help="csv, arrow, qlog, pcapng or mahimahi.")
    ] = "csv",
    out: Annotated[
        Path | None, typer.Option(help="Where to write; default: RESULT's name and the format.")
    ] = None,
) -> None:
    """Write a result's tables, packets or links in the formats of other programs."""
    from dumbbell.cli.export import export_result

    export_result(folder, kind=kind, out=out)


@app.command()
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A result, a folder of results, a sweep, or a reproduced paper."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The file; default: report.html in DIR, index.html for a paper."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write a report: one HTML file that needs nothing else, with series to zoom into."""
    from dumbbell.cli.report import report_folder

    report_folder(folder, out=out, show=show)


@app.command()
def validate(
    out: Annotated[Path, typer.Option(help="Where runs are kept and the page is written.")] = Path(
        "validation"
    ),
    cc: Annotated[str, typer.Option(help="The algorithms.")] = "reno,cubic,bbr",
    rate: Annotated[str, typer.Option(help="Rates of the link.")] = "100 Mbit/s",
    rtt: Annotated[str, typer.Option(help="Round-trip times.")] = "10 ms,20 ms,50 ms,100 ms",
    queue: Annotated[str, typer.Option(help="Queues.")] = "0.5 BDP,1 BDP,2 BDP",
    loss: Annotated[str, typer.Option(help="Probabilities of random losses.")] = "0",
    duration: Annotated[str, typer.Option(help="How long each run lasts.")] = "60 s",
    repeats: Annotated[int, typer.Option(help="How often each cell is run.")] = 3,
    jobs: Annotated[int, typer.Option(help="How many cells to run at once.")] = 1,
    retry_invalid: Annotated[
        int, typer.Option(help="How often to repeat an invalid run, which the machine disturbed.")
    ] = 1,
    overwrite: Overwrite = False,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Whether to run what is missing.")
    ] = True,
    json: Json = False,
) -> None:
    """Run single flows in the simulator and with real packets, and see how far they differ."""
    from dumbbell.cli.validate import validate_grid

    validate_grid(
        cc=cc,
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        repeats=repeats,
        out=out,
        jobs=jobs,
        retry_invalid=retry_invalid,
        overwrite=overwrite,
        measure_more=measure,
        json=json,
    )


@app.command()
def conformance(
    suite: Annotated[str, typer.Argument(help="Whose test cases: 'bbr', of the BBR draft.")],
    cc: Annotated[
        str | None,
        typer.Option(help="The algorithms, such as 'bbr3,bbr3(beta=0.8)'; default: all versions."),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Put algorithms through the test cases of their specification."""
    from dumbbell.cli.conformance import show

    show(suite, cc, jobs=jobs, json=json)


@app.command("list")
def list_all(json: Json = False) -> None:
    """List algorithms, TCP stacks, papers and metrics."""
    from dumbbell.cli.catalogue import show_all

    show_all(json=json)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dumbbell {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """A congestion-control laboratory: an experiment file in, tables and figures out."""
