"""The sentences of a dossier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dumbbell.display import format_significant
from dumbbell.dossier.measures import standard
from dumbbell.dossier.verdict import BESIDE, FEWEST, WORDS
from dumbbell.experiment.model import stack_of, without_options
from dumbbell.figures import style_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumbbell.display import Column
    from dumbbell.dossier.clauses import Clause, Measure
    from dumbbell.dossier.outcome import Dossier, Evidence
    from dumbbell.dossier.scenarios import Scenario
    from dumbbell.dossier.search import Path

_NAMES = {
    "rate": "rate",
    "rtt": "base RTT",
    "queue": "queue",
    "repeat": "flows",
    "loss": "random loss",
    "jitter": "jitter",
    "aqm": "AQM",
    "ecn": "ECN",
    "reorder": "reordered",
    "app_rate": "sent by the application",
    "bytes": "size",
}
"""How the keys of paths are written, by their last parts."""

_WHOLE = {
    "flow.existing.cc": "beside",
    "flow.call.cc": "beside",
    "flow.media.app_rate": "UDP load",
    "flow.proposed-near.rtt": "shorter base RTT",
    "flow.proposed-far.rtt": "longer base RTT",
}
"""The same of keys whose last parts would not tell them apart."""


def label(cc: str) -> str:
    """The name of an algorithm, as in figures, and its QUIC stack."""
    stack = stack_of(cc)
    return f"{stack}'s {style_of(cc).label}" if stack else style_of(cc).label


def heading(dossier: Dossier) -> str:
    """What a dossier is about. It counts no verdicts: they are no score."""
    count = len(dossier.findings)
    about = [one.pack.document for one in dossier.packs]
    if count or not about:
        about.insert(0, f"evidence on {count} clause{'s' * (count != 1)} of RFC 9743")
    others = " and ".join(map(label, dossier.others))
    real = "with real packets, " if dossier.backend == "linux" else ""
    return f"{label(dossier.cc)} beside {others}: {real}{'; '.join(about)}"


def too_few(dossier: Dossier) -> str:
    """What its few paths cannot show; empty if they are enough."""
    if dossier.paths < FEWEST:
        return f"With {dossier.paths} paths no clause can have evidence for: that takes {FEWEST}."
    few = [
        f"{one.measure.id} ({share.paths} paths)"
        for one in dossier.evidence
        if (share := one.shares.get(dossier.cc)) and share.paths < FEWEST
    ]
    return f"Evidence for takes {FEWEST} paths; fewer have {', '.join(few)}." if few else ""


def question(clause: Clause) -> str:
    """The question on an algorithm, and the key word of the RFC."""
    asked = f" By the RFC this {clause.asks}." if clause.asks else ""
    return f"{clause.question}{asked}"


def limit(measure: Measure) -> str:
    """A measure and its limit: ``Packets dropped above 2 %``."""
    column = measure.kind.column
    return f"{column.title} above {with_unit(column, measure.limit)}"


def with_unit(column: Column, value: float | None) -> str:
    """A value of a measure with its unit."""
    if value is None:
        return "no value"
    return f"{format_significant(value * column.scale)} {column.unit}".strip()


def shares(evidence: Evidence, dossier: Dossier) -> str:
    """On how many paths the measure is beyond its limit, for each algorithm."""
    first = evidence.shares[dossier.cc]
    own = (
        f"on {first.beyond} of {first.paths} paths "
        f"({100 * first.low:.0f} to {100 * first.high:.0f} % of all)"
    )
    others = [
        f"{label(cc)} on {evidence.shares[cc].beyond}"
        for cc in dossier.algorithms
        if cc != dossier.cc and cc in evidence.shares
    ]
    return (
        f"{label(dossier.cc)} {own}; {', '.join(others)}"
        if others
        else f"{label(dossier.cc)} {own}"
    )


def sentence(evidence: Evidence, dossier: Dossier) -> str:
    """The evidence in a sentence, with the scenario where several have the same measure."""
    measure = evidence.measure
    same = [one for one in dossier.evidence if one.measure.kind.name == measure.kind.name]
    what = limit(measure) + (f" (scenario {measure.scenario})" if len(same) > 1 else "")
    if evidence.failure:
        return f"{what}: not tested, because {evidence.failure}."
    return f"{what}: {shares(evidence, dossier)}."


def beside(evidence: Evidence, dossier: Dossier) -> str:
    """How it compares with a standard algorithm on the same paths; empty if it cannot."""
    pair, other = evidence.beside(dossier.cc), standard(dossier.cc)
    if pair is None:
        return ""
    tests = len(dossier.finding(evidence).pairs(dossier.cc))
    alone = (
        f"alone beyond the limit: {label(dossier.cc)} on {pair.worse}, "
        f"{label(other)} on {pair.better}; p = {pair.p:.2g}"
    )
    return f"Beside {label(other)}: {BESIDE[pair.comparison(tests)]} ({alone})."


def magnitudes(evidence: Evidence, dossier: Dossier) -> str:
    """How large the measure is, and how the verdict depends on the limit; empty without runs."""
    if not evidence.shares:
        return ""
    column, cc = evidence.measure.kind.column, dossier.cc
    said = []
    for one in evidence.shares:
        first, last = (with_unit(column, evidence.quantile(one, share)) for share in (0.5, 0.9))
        said.append(f"{label(one)} {first.removesuffix(column.unit).strip()} and {last}")
    half, twice = (WORDS[evidence.verdict_at(factor, cc)] for factor in (0.5, 2.0))
    return (
        f"Median and 90th percentile: {', '.join(said)}. "
        f"With half of the limit: {half}; with twice: {twice}."
    )


def named(evidence: Evidence, dossier: Dossier) -> str:
    """The evidence in a sentence that names the clause."""
    clause = dossier.finding(evidence).clause
    return f"{clause.section} {clause.title}: {sentence(evidence, dossier)}"


def ecn(dossier: Dossier) -> str:
    """What ECN in the settings of paths does not say of an algorithm; empty if it says all."""
    if without_options(dossier.cc) != "prague":
        return ""
    return (
        f"{label(dossier.cc)}'s packets are ECT(1), with accurate feedback, on every path; ECN "
        "says what the other flows have."
    )


def path(settings: Mapping[str, Any]) -> str:
    """A path in words: ``rate 8.8 Mbit/s, queue 0.35 BDP, base RTT 121 ms, flows 8``."""
    return ", ".join(f"{named_key(key)} {_short(value)}" for key, value in settings.items())


def ranges(scenario: Scenario) -> str:
    """The paths of a scenario: ``rate 5 Mbit/s to 200 Mbit/s, base RTT 10 ms to 150 ms``."""
    return ", ".join(_range(key, values) for key, values in scenario.axes.items())


def _range(key: str, values: Any) -> str:
    name = named_key(key)
    if isinstance(values, dict) and "from" in values:
        text = f"{values['from']} to {values['to']}"
        return f"{name} {values['as'].replace('{}', text) if 'as' in values else text}"
    listed = values["values"] if isinstance(values, dict) else values
    return f"{name} {' or '.join(map(str, listed))}"


def named_key(key: str) -> str:
    """The key of an axis in a word or two."""
    last = key.rpartition(".")[2]
    if key in _WHOLE:
        return _WHOLE[key]
    if key.startswith("flow.burst-"):
        return f"{key.split('.')[1].replace('-', ' ')} at"
    return _NAMES.get(last, last)


def at(measure: Measure, found: Path, dossier: Dossier) -> str:
    """What the algorithms do on a path."""
    parts = [
        f"{label(cc)} {with_unit(measure.kind.column, found.values[cc])}"
        for cc in dossier.algorithms
        if cc in found.values
    ]
    return ", ".join(parts)


def _short(value: Any) -> str:
    """A value with at most three significant digits."""
    number, space, unit = str(value).partition(" ")
    try:
        return f"{format_significant(float(number))}{space}{unit}"
    except ValueError:
        return str(value)
