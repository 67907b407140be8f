"""The commands and their options; what they do is in the other modules of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dumbbell
from dumbbell.cli import bpf, udt

app = typer.Typer(
    name="dumbbell",
    help="A congestion-control laboratory: an experiment file in, tables and figures out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(bpf.app, name="bpf")
app.add_typer(udt.app, name="udt")

Jobs = Annotated[
    int | None, typer.Option(help="How many simulations to run at once; default: one a processor.")
]
Seeds = Annotated[int | None, typer.Option(help="How many seeds to run with.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The experiment, a TOML file.")],
    out: Annotated[
        Path | None, typer.Option(help="The result folder; default: results/ and FILE's name.")
    ] = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a key: 'duration=10 s', 'link.NAME.queue=1 BDP', 'flow.*.cc=bbr'.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run an experiment, and write its result folder."""
    from dumbbell.cli.run import run_file

    run_file(file, out=out, seeds=seeds, jobs=jobs, assignments=assignments or [], json=json)


@app.command()
def compare(
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
    seeds: Seeds = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Compare algorithms on one link: throughput, delay, retransmissions, fairness."""
    from dumbbell.cli.compare import Question, answer

    question = Question(
        rate=rate,
        rtt=rtt,
        queue=queue,
        loss=loss,
        duration=duration,
        stack=stack,
        flows=flows,
        seeds=1 if seeds is None else seeds,
    )
    answer(question, cc, against, jobs=jobs, json=json)


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(metavar="RESULT", help="A result folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The figure, without .svg; default: figure, in RESULT.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Which seed; default: the first.")] = None,
) -> None:
    """Draw windows, throughputs, round-trip times and queues of a result over time."""
    from dumbbell.cli.plot import plot_result

    plot_result(folder, out=out, seed=seed)


@app.command()
def reproduce(
    papers: Annotated[
        list[str] | None, typer.Argument(help="Which papers; 'all', the default, for every one.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write a folder for each paper.")] = Path(
        "out"
    ),
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Make only this figure of the paper, such as 2a."),
    ] = None,
    beyond: Annotated[
        bool, typer.Option("--beyond", help="Also run what goes beyond the papers; takes longer.")
    ] = False,
    seeds: Seeds = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Reproduce papers: figures and numbers, published beside measured."""
    from dumbbell.cli.reproduce import reproduce_papers

    reproduce_papers(
        papers or ["all"],
        out=out,
        seeds=seeds,
        jobs=jobs,
        beyond=beyond,
        figures=figures or [],
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
        typer.echo(f"dumbbell {dumbbell.__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """A congestion-control laboratory: an experiment file in, tables and figures out."""
