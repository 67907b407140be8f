"""Options that several commands have, and what their values mean."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from typer import Argument, Context, Option

from dumbbell.engine.backend import Backend
from dumbbell.errors import DumbbellError, ExperimentError, OverwriteError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dumbbell.metrics.intervals import Until

PICTURES: Final = (".svg", ".png", ".pdf")  # what the name of a picture may end in


def _refuse_impossible(out: Path | None) -> Path | None:
    """Refuses a path that the system cannot have, before anything is run."""
    try:
        if out is not None:
            out.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        problem = f"{out}: cannot be written: {error.strerror}"
        raise DumbbellError(f"{problem}; name another path with --out") from None
    return out


def out(help: str) -> Any:  # noqa: A002
    """``--out``: the file or the folder that a command writes."""
    return Option("--out", help=help, callback=_refuse_impossible)


# What may complete a value; Typer leaves out what begins otherwise.


def _algorithms(incomplete: str) -> list[str]:
    from dumbbell import _core

    *before, _ = incomplete.split(",")
    return [",".join([*before, cc]) for cc in _core.algorithms()]


def _metrics() -> tuple[str, ...]:
    from dumbbell.sweeps.plan import METRICS

    return METRICS


def _papers() -> list[str]:
    from dumbbell.papers.registry import BY_NAME, PAPERS

    return [*PAPERS, *BY_NAME, "all"]


def folder_of(file: Path, out: Path | None, kind: Backend, *, alone: bool) -> Path:
    """Where what an experiment gives is kept: that of real packets beside the simulated one."""
    there = out or Path("results") / file.stem
    is_beside = kind == "linux" and not (alone and out)
    return there.with_name(f"{there.name}-linux") if is_beside else there


def algorithms(help: str) -> Any:  # noqa: A002
    """``--cc``: algorithms, which the shell completes."""
    return Option("--cc", help=help, autocompletion=_algorithms)


Jobs = Annotated[
    int | None, Option(min=1, metavar="N", help="Runs at a time; default: one per processor.")
]
Dask = Annotated[str | None, Option(metavar="ADDRESS", help="Dask scheduler whose workers run it.")]
Seeds = Annotated[int | None, Option(min=1, metavar="N", help="Number of seeds.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace another result or file at --out.")]
OverwriteResult = Annotated[bool, Option("--overwrite", help="Replace another result at --out.")]
OverwriteFile = Annotated[bool, Option("--overwrite", help="Replace another file.")]
OnBackend = Annotated[Backend, Option(help="linux runs real packets in real time, as root.")]
RetryInvalid = Annotated[int, Option(min=0, help="Attempts to repeat an invalid run.")]
OnBackends = Annotated[
    Literal["simulator", "linux", "both"],
    Option(help="linux runs real packets in real time, as root; both compares the two."),
]
Assignments = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key: 'duration=10 s', 'link.NAME.queue=1 BDP', 'flow.*.cc=bbr'.",
    ),
]
UntilCi = Annotated[
    str | None,
    Option(
        "--until-ci",
        metavar="SHARE",
        help="Add seeds until half of the 95 % interval is at most this share of the mean: '5%'.",
    ),
]
Metric = Annotated[str, Option(help="Metric that --until-ci refers to.", autocompletion=_metrics)]
Papers = Annotated[
    list[str] | None,
    Argument(
        metavar="PAPER",
        help="Ids or folders of papers; all five if none is named.",
        autocompletion=_papers,
    ),
]
MaxSeeds = Annotated[int, Option(help="Upper limit on the seeds of --until-ci.")]


def split_list(text: str) -> list[str]:
    """Splits at commas that are not within parentheses: ``a,b(x=1,y=2)`` is two parts."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def split_algorithms(text: str) -> list[str]:
    """The algorithms of ``--cc``."""
    from dumbbell.experiment.user_code import check_names

    names = split_list(text)
    with named("cc"):
        check_names(names)
    return names


@contextmanager
def named(*arguments: str, **others: str) -> Iterator[None]:
    """Gives an `ExperimentError` in one of these arguments the name of the option.

    `others` are arguments whose options have other names.
    """
    options = {name: f"--{name.replace('_', '-')}" for name in arguments} | others
    try:
        yield
    except ExperimentError as error:
        if error.key not in options:
            raise
        raise ExperimentError(error.problem, key=options[error.key]) from None


@contextmanager
def proposing(file: Path, out: Path | None, assignments: list[str] | None) -> Iterator[None]:
    """Proposes, without ``--out``, a folder called after the assignments if one is refused."""
    try:
        yield
    except OverwriteError as error:
        if out is None and assignments:
            # "link.bottleneck.queue=2 BDP" is "queue-2-BDP".
            keys = (one.partition("=")[0].strip().rpartition(".")[2] for one in assignments)
            values = (one.partition("=")[2] for one in assignments)
            parts = [f"{key}-{value}" for key, value in zip(keys, values, strict=True)]
            name = re.sub(r"[^\w.]+", "-", "-".join([file.stem, *parts])).strip("-")
            error.proposed = str(Path("results") / name)
        raise


def refuse_given(context: Context, options: tuple[str, ...], problem: str) -> None:
    """Refuses those of these options that were given, with this problem."""
    for option in options:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ExperimentError(problem, key=f"--{option.replace('_', '-')}")


def refuse_existing(
    path: Path, overwrite: bool, *, folder: bool = False, option: str = "--out"
) -> None:
    """Refuses, before the work, to replace a file, or a folder that is not empty."""
    if not path.exists():
        return
    kinds = ("a file", "a folder")
    if path.is_dir() != folder:
        raise DumbbellError(f"{path}: is {kinds[not folder]}; name {kinds[folder]} with {option}")
    if not overwrite and not (folder and not any(path.iterdir())):
        raise OverwriteError(f"{path}: exists already", option=option)


def parse_until(context: Context, share: str | None, metric: str, most: int) -> Until | None:
    """What ``--until-ci``, ``--metric`` and ``--max-seeds`` say; None without the first."""
    from dumbbell.experiment.quantities import parse_probability
    from dumbbell.metrics.intervals import Until

    if share is None:
        refuse_given(context, ("metric", "max_seeds"), "goes with --until-ci, such as 5%")
        return None
    try:
        width = parse_probability(share)
    except DumbbellError:
        problem = f'"{share}" is not a share of the mean; write, for example, 5%'
        raise ExperimentError(problem, key="--until-ci") from None
    with named("max_seeds", width="--until-ci"):
        return Until(width, metric, most)
