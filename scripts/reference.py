"""The tables of the reference that the program itself has: keys, options, columns' lists, crates.

`scripts/documents.py` puts them into a document between `<!-- made: NAME ARGUMENT -->` and
`<!-- end -->`, so that they are read in the repository as on the site, and cannot say anything else
than the program does.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumbbell import _core, cc, metrics
from dumbbell.dossier import words
from dumbbell.dossier.clauses import clauses
from dumbbell.dossier.packs import FOLDER as PACKS
from dumbbell.dossier.packs import Pack
from dumbbell.dossier.scenarios import FOLDER, Scenario
from dumbbell.metrics import definitions
from dumbbell.results.tables import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent


def make(request: str) -> str:
    """A table by its name and argument, such as ``keys link``."""
    name, _, argument = request.partition(" ")
    tables = {
        "keys": keys,
        "stacks": stacks,
        "options": options,
        "udt": udt_options,
        "quic": quic_options,
        "quic-stacks": quic_stacks,
        "rtp": rtp_options,
        "media-algorithms": media_algorithms,
        "bulk": bulk_options,
        "algorithms": algorithms,
        "algorithm-options": algorithm_options,
        "crates": crates,
        "layers": layers,
        "columns": columns,
        "fields": fields,
        "metrics": metric_list,
        "terms": terms,
        "measures": measures,
        "packs": packs,
        "scenarios": scenarios,
    }
    if name not in tables:
        raise SystemExit(f"there is no table {name}; there are {', '.join(tables)}")
    made = tables[name](argument) if argument else tables[name]()  # type: ignore[operator]
    return str(made)


def keys(kind: str) -> str:
    """The keys of a table of an experiment file."""
    rows = []
    for name, _, _ in _core.keys(kind):
        about, default = _explained(f"{kind}.{name}")
        rows.append((f"`{name}`", _cell(about), default))
    return _table(("key", "what it is", "if it is not given"), rows)


def stacks() -> str:
    """The fields of a TCP stack, with their values in each stack."""
    known = _core.stacks()
    rows = []
    for name in known["linux"]:
        about, _ = _explained(f"stack.{name}")
        values = (
            _code(str(stack[name]).replace("True", "true").replace("False", "false"))
            for stack in known.values()
        )
        rows.append((f"`{name}`", _cell(about), *values))
    return _table(("field", "what it is", *(f"`{stack}`" for stack in known)), rows)


def udt_options() -> str:
    """The options of UDT as a transport."""
    rows = []
    for name in _core.udt_options("udt"):
        about, default = _explained(f"transport_options.{name}")
        rows.append((f"`{name}`", _cell(about), default))
    return _table(("option", "what it is", "default"), rows)


def quic_options() -> str:
    """The options of QUIC as a transport."""
    rows = []
    for name in _core.quic_options():
        about, default = _explained(f"quic.{name}")
        rows.append((f"`{name}`", _cell(about), default))
    return _table(("option", "what it is", "default"), rows)


def bulk_options(protocol: str) -> str:
    """The options of a bulk transfer protocol."""
    [options] = [known for name, _, known in _core.bulk_transports() if name == protocol]
    rows = []
    for name in options:
        about, default = _explained(f"{protocol}.{name}")
        rows.append((f"`{name}`", _cell(about), default))
    return _table(("option", "what it is", "default"), rows)


def quic_stacks() -> str:
    """The QUIC stacks and their own algorithms."""
    rows = []
    for stack, about, algorithms in _core.quic_stacks():
        for name in algorithms:
            what = _core.explain(f"{stack}:{name}").splitlines()[0].partition(": ")[2]
            rows.append((f"`{stack}`", about, f"`{stack}:{name}`", _cell(what.removesuffix("."))))
    return _table(("stack", "what it is", "its algorithms", "what they are"), rows)


def rtp_options() -> str:
    """The options of media over RTP."""
    rows = []
    for name in _core.rtp_options():
        about, default = _explained(f"rtp.{name}")
        rows.append((f"`{name}`", _cell(about), default))
    return _table(("option", "what it is", "default"), rows)


def media_algorithms() -> str:
    """The algorithms of media."""
    rows = []
    for name in _core.media_algorithms():
        what = _core.explain(name).splitlines()[0].partition(": ")[2]
        rows.append((f"`{name}`", _cell(what.removesuffix("."))))
    return _table(("algorithm", "what it is"), rows)


def options(topic: str) -> str:
    """The options of an AQM or of a loss model."""
    rows = [
        (f"`{name}`", _cell(about), _cell(values), _code(default) if default else "required")
        for name, about, values, default in _options(topic)
    ]
    return _table(("option", "what it is", "values", "default"), rows)


def algorithms() -> str:
    """The built-in algorithms and what each is."""
    rows = []
    for name in _core.algorithms():
        about = _core.explain(name).splitlines()[0].partition(": ")[2].removesuffix(".")
        rows.append((f"`{name}`", _cell(about)))
    return _table(("name", "what it is"), rows)


def algorithm_options() -> str:
    """The options of all algorithms; one row for those that are the same option."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for name in _core.algorithms():
        line = r"^  (\w+) +(.*): (.*?) \(default (.*)\)$"
        for option, about, values, default in re.findall(line, _core.explain(name), re.M):
            found.setdefault((option, about, values), {})[name] = default
    rows = []
    for (option, about, values), defaults in found.items():
        of = ", ".join(f"`{name}`" for name in defaults)
        usual = Counter(defaults.values()).most_common(1)[0][0]
        others = [
            f"{_code(other)} (`{name}`)" for name, other in defaults.items() if other != usual
        ]
        rows.append(
            (f"`{option}`", of, _cell(about), _cell(values), ", ".join([_code(usual), *others]))
        )
    return _table(("option", "of", "what it is", "values", "default"), rows)


def crates() -> str:
    """The Rust crates: what each is for, and which of the others it uses."""
    rows = []
    for folder, (crate, uses) in _crates().items():
        where = f"[`{crate['package']['name']}`](../../crates/{folder}/Cargo.toml)"
        rows.append((where, _cell(crate["package"]["description"]), ", ".join(uses)))
    return _table(("crate", "what it is for", "uses"), rows)


def _crates() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """By its folder, each crate's manifest and the other crates that it uses."""
    found = {}
    for file in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        crate = tomllib.loads(file.read_text())
        names = sorted(crate.get("dependencies", {}))
        uses = [name.removeprefix("dumbbell-") for name in names if name.startswith("dumbbell-")]
        found[file.parent.name] = (crate, uses)
    return found


def layers() -> str:
    """The layers of both languages, lowest first: crates by what they use, modules as linted."""
    left = {name: set(uses) for name, (_, uses) in _crates().items()}
    of_rust: list[list[str]] = []
    while left:
        above = sorted(name for name, uses in left.items() if not uses & left.keys())
        of_rust.append(above)
        left = {name: uses for name, uses in left.items() if name not in above}
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    of_python = [layer.split(" | ") for layer in reversed(lint["contracts"][0]["layers"])]
    rows = [
        (language, "; ".join(", ".join(f"`{name}`" for name in layer) for layer in ordered))
        for language, ordered in (("Rust", of_rust), ("Python", of_python))
    ]
    return _table(("", "layers, lowest first"), rows)


def metric_list() -> str:
    """The metrics: the first line of the docstring of each."""
    rows = []
    for metric in metrics.LISTED:
        first = (inspect.getdoc(metric) or "").partition("\n")[0]
        home = metric.__module__.rpartition(".")[2]
        rows.append((f"`{home}.{metric.__name__}`", _cell(first)))
    return _table(("function", "what it gives"), rows)


def columns(table: str) -> str:
    """The columns of a table of results, after those that say what a row is of."""
    rows = [
        (f"`{name}`", said["unit"], said["meaning"])
        for name, said in COLUMNS[table].items()
        if name not in ("seed", "flow", "cc", "link")
    ]
    return _table(("column", "unit", "meaning"), rows)


def fields(name: str) -> str:
    """The attributes of what a class of `dumbbell.cc` is given, such as ``Path``."""
    members = sorted(vars(getattr(cc, name)).items())
    rows = [
        (f"`{name}`", _cell((inspect.getdoc(member) or "").replace("\n", " ")))
        for name, member in members
        if inspect.isgetsetdescriptor(member)
    ]
    return _table(("attribute", "what it is"), rows)


def terms() -> str:
    """The terms that are not metrics, and what each means."""
    return _table(("term", "what it means"), definitions.TERMS.items())


def measures() -> str:
    """The measures of dossiers, with their limits and reasons."""
    rows = []
    for clause in clauses():
        for measure in clause.measures:
            limit = words.with_unit(measure.kind.column, measure.limit)
            what = f"{measure.kind.column.title} above {limit}"
            section = f"{clause.section} {clause.title}"
            rows.append((section, f"`{measure.id}`", what, _cell(measure.reason)))
    return _table(("RFC 9743", "measure", "evidence against", "reason"), rows)


def scenarios() -> str:
    """The scenarios of dossiers."""
    rows = []
    for file in sorted(FOLDER.glob("*.toml")):
        where = f"[`{file.stem}`](../../{file.relative_to(ROOT)})"
        scenario = Scenario(file.stem)
        ranges = words.ranges(scenario)
        rows.append((where, _cell(scenario.title), scenario.content["duration"], ranges))
    return _table(("scenario", "what it is", "runs for", "paths"), rows)


def packs() -> str:
    """The published suites: their tests, what is not as in the documents, and what is missing."""
    parts = []
    for file in sorted(PACKS.glob("*/pack.toml")):
        pack = Pack.load(file.parent.name)
        rows = []
        for one in pack.tests:
            where = f"[`{one.scenario.name}`](../../{one.scenario.file.relative_to(ROOT)})"
            measured = ", ".join(kind.column.title for kind in one.kinds)
            rows.append((one.section, _cell(one.title), where, measured))
        parts += [f"**`{pack.name}`**: {pack.title} ({pack.document}).\n"]
        parts += [_table(("section", "test", "scenario", "measures"), rows)]
        parts += ["Not as in the document:\n", "".join(f"- {text}\n" for text in pack.differs)]
        parts += ["Not here:\n", "".join(f"- {text}\n" for text in pack.missing)]
    return "\n".join(parts)


def _explained(topic: str) -> tuple[str, str]:
    """What `dumbbell explain` says of a key or field: what it is, and what holds without it."""
    lines = _core.explain(topic).splitlines()
    about = lines[0].partition(": ")[2].removesuffix(".")
    found = re.search(
        r"^(?:If it is not given|Default(?: in \w+)?): (.*)\.$", "\n".join(lines[1:]), re.M
    )
    if found is None:
        return about, "required" if "must be given" in lines[1] else ""
    plain = re.fullmatch(r'"[^"]*"|[\w.]+', found[1])
    return about, _cell(_code(found[1]) if plain and found[1] != "never" else found[1])


def _options(topic: str) -> list[tuple[str, str, str, str]]:
    """Name, meaning, values and default of each option of an AQM or a loss model."""
    lines = re.findall(
        r"^  (\w+)\s+(.*): ([^:]*?) \((?:default (.*)|must be given)\)$", _core.explain(topic), re.M
    )
    return [(name, about, values, default) for name, about, values, default in lines]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    """Text for a cell of a table."""
    return (
        text.replace("|", "\\|").replace("[[link]]", "`[[link]]`").replace("[[flow]]", "`[[flow]]`")
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
