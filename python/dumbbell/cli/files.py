"""``dumbbell init``, ``check``, ``list``, ``explain``, ``schema``: help with experiment files."""

from __future__ import annotations

import difflib
import re
import shlex
from itertools import chain
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument

from dumbbell import _core
from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_text, print_warnings
from dumbbell.errors import DumbbellError, in_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def write_starter(
    out: Annotated[Path, Argument(metavar="FILE", help="File.")] = Path("experiment.toml"),
    overwrite: options.OverwriteFile = False,
) -> None:
    """Write an experiment file to begin with."""
    from dumbbell.experiment.files import write_text

    if out.is_dir():
        raise DumbbellError(f"{out}: is a folder; name a file")
    if out.exists() and not overwrite:
        again = shlex.join(["dumbbell", "init", str(out), "--overwrite"])
        raise DumbbellError(f"{out}: exists already; name another file, or: {again}")
    write_text(out, _core.starter())
    print_line(f"wrote {out}; run it with: dumbbell run {out}")


def check_file(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="Experiment or sweep, a TOML file; or a laboratory's link."),
    ],
    assignments: options.Assignments = None,
) -> None:
    """Check an experiment file. Each error has its line and what would be valid."""
    from dumbbell.cli import scenario
    from dumbbell.sweeps.plan import Sweep

    name = scenario.name_of(file)
    if name == file and _core.ParsedSweep.is_in(scenario.text_of(file)):
        sweep = Sweep.load(file, overrides=assignments or [])
        points = list(sweep.points())
        algorithms = {flow["cc"] for point in points for flow in point.flows}
        print_warnings(dict.fromkeys(text for point in points for text in point.warnings))
        what = f"{sweep.count:,} point(s) with {len(sweep.seeds())} seed(s)"
        print_line(f"{file}: valid, {what}{_where(algorithms)}")
        return
    with in_file(name):
        experiment = scenario.load(file, assignments).resolve()
    where = _where(flow.cc for flow in experiment.flows)
    print_warnings(experiment.warnings(is_simulated=not where))
    print_line(f"{name}: valid, {repr(experiment)[13:-1]}{where}")


def _where(algorithms: Iterable[str]) -> str:
    """That algorithms are for real packets, if one of them is."""
    from dumbbell.experiment.linux_algorithms import is_of_linux

    is_real = any(map(is_of_linux, algorithms))
    return "; for real packets only (--backend linux)" if is_real else ""


def list_all(json: options.Json = False) -> None:
    """List algorithms, link templates, AQMs, stacks, bulk protocols, papers and metrics."""
    from dumbbell import metrics, papers

    stacks = _core.stacks()
    templates, aqms = _of_links("template"), _of_links("aqm")
    titles = {paper.id: paper.title for paper in papers.available()}
    meanings = {
        metric.__name__: (metric.__doc__ or "").partition("\n")[0] for metric in metrics.LISTED
    }
    if json:
        own = {name: algorithms for name, _, algorithms in _core.quic_stacks()}
        catalogue = {
            "algorithms": _core.algorithms(),
            "media": _core.media_algorithms(),
            "templates": templates,
            "aqms": aqms,
        }
        bulk = {name: options for name, _, options in _core.bulk_transports()}
        catalogue |= {"stacks": stacks, "quic_stacks": own, "bulk_transports": bulk}
        print_json(catalogue | {"papers": titles, "metrics": meanings})
        return
    usual = stacks["linux"]
    differing = {
        name: {key: value for key, value in fields.items() if usual[key] != value} or fields
        for name, fields in stacks.items()
    }
    settings = {
        name: ", ".join(f"{key} = {_toml(value)}" for key, value in fields.items())
        for name, fields in differing.items()
    }
    quic = {
        name: f"{about}; {', '.join(f'{name}:{algorithm}' for algorithm in algorithms)}"
        for name, about, algorithms in _core.quic_stacks()
    }
    transfers = {one: about for one, about, _ in _core.bulk_transports()}
    print_text('Algorithms, for cc = "NAME" or "NAME(option=value, ...)":')
    print_text("  " + ", ".join(_core.algorithms()))
    print_text('Algorithms of media, for transport = "rtp":')
    print_text("  " + ", ".join(_core.media_algorithms()))
    for title, meaning in (
        ('Templates of links, for template = "NAME" or "NAME(option=value, ...)":', templates),
        ('AQMs of links, for aqm = "NAME" or "NAME(option=value, ...)":', aqms),
        ('TCP stacks, for stack = "NAME" (and stack_options for single fields):', settings),
        ('QUIC stacks, for transport = "quic" and stack = "NAME", and their algorithms:', quic),
        ('Bulk transfer protocols, for transport = "NAME" and cc = "none":', transfers),
        ("Papers, for dumbbell reproduce:", titles),
        ("Metrics, of dumbbell.metrics:", meanings),
    ):
        print_text(f"\n{title}")
        for name, text in meaning.items():
            print_text(f"  {name}: {text}")


def _of_links(key: str) -> dict[str, str]:
    """The names that a key of a link takes, and what each is."""
    schema = loads(_core.experiment_schema())
    names = _choices(schema["properties"]["link"]["items"]["properties"][key])
    first = {name: _core.explain(name).partition("\n")[0] for name in names if name != "none"}
    return {name: line.partition(": ")[2].removesuffix(".") for name, line in first.items()}


def _choices(schema: dict[str, Any]) -> Iterator[str]:
    """The names that a schema allows."""
    yield from schema.get("enum", [])
    for one in schema.get("anyOf", []):
        yield from _choices(one)


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def show_explanation(
    words: Annotated[
        list[str],
        Argument(metavar="NAME", help="link.queue, cubic, stack.min_rto, mine.py:MyCC, goodput"),
    ],
) -> None:
    """Explain a key, an algorithm, an option, your own class, a metric, or a column of tables."""
    from dumbbell.metrics import definitions
    from dumbbell.results.tables import COLUMNS, explanation

    topic = " ".join(words)
    term, column, key = definitions.definition(topic), explanation(topic), None
    others = [*definitions.names(), *chain.from_iterable(COLUMNS.values())]
    try:
        key = _explanation(topic, others)
    except DumbbellError:
        if not term and not column:
            raise
    for meaning in filter(None, (term, key, column)):  # rtt is all three
        print_text(meaning)


def _explanation(topic: str, others: Sequence[str]) -> str:
    """What a topic is, also a key without its table, and an option as ``cubic.beta``.

    The error of an unknown topic names a close one, also of `others`.
    """
    if found := _explained(topic):
        return found
    known = [text for table in _TABLES if (text := _explained(f"{table}.{topic}"))]
    if known:
        return "\n".join(known)
    name, _, option = topic.partition(".")
    line = re.search(rf"^  {re.escape(option)} +(\S.*)", _explained(name) or "", re.MULTILINE)
    if option and line:
        return f"{topic}: {line[1]}"
    from dumbbell.experiment import user_code

    try:
        if user_code.is_custom(topic):
            return user_code.explain(topic)
        if close := difflib.get_close_matches(topic, others, n=1, cutoff=0.75):
            problem = f'there is no topic "{topic}" (did you mean "{close[0]}"?)'
            raise DumbbellError(f"{problem}; dumbbell list has the metrics")
        return _core.explain(topic)
    except ValueError as error:
        more = "or a metric such as goodput, or a column of results such as rtt_mean"
        raise DumbbellError(f"{error}; {more}") from None


_TABLES: Final = ("experiment", "link", "flow", "stack")


def _explained(topic: str) -> str | None:
    try:
        return _core.explain(topic)
    except ValueError:
        return None


def show_schema() -> None:
    """Print the JSON Schema of experiment files, for editors."""
    print_line(_core.experiment_schema())
