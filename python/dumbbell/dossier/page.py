"""The page of a dossier, and its Markdown for the appendix of an Internet-Draft."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from markupsafe import Markup

from dumbbell import _core, figures, lab
from dumbbell.dossier import words
from dumbbell.dossier.clauses import SIMPLEST
from dumbbell.dossier.folder import mark_several
from dumbbell.dossier.measures import standard
from dumbbell.dossier.scenarios import Scenario
from dumbbell.dossier.verdict import BESIDE, TOLERATED, WORDS
from dumbbell.experiment.files import write_text
from dumbbell.figures.spread import distributions
from dumbbell.report import page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.dossier.outcome import Dossier, Evidence, Finding


_LIMITS: Final = "limits.toml"
"""The limits that were asked for, as a gate."""


def write_dossier(of: Dossier) -> Path:
    """Writes ``index.html`` and ``dossier.md`` into the folder of a dossier; returns the page."""
    path = of.folder / "index.html"
    strong, weak = of.extremes()
    write_text(of.folder / lab.NAME, lab.page_with())
    page.write(
        path,
        "dossier.html.j2",
        of=of,
        label=words.label,
        names=[words.label(cc) for cc in of.others],
        standard=words.label(standard(of.cc)),
        heading=words.heading(of),
        few=words.too_few(of),
        strong=[words.named(one, of) for one in strong],
        weak=[words.named(one, of) for one in weak],
        findings=[_finding(of, finding) for finding in of.findings],
        depths=of.depths(),
        managed=of.managed(),
        ecn=words.ecn(of),
        packs=[(one, one.tables(of.algorithms)) for one in of.packs],
        words=WORDS,
        question=words.question,
        lab=lab.NAME,
        tolerated=TOLERATED,
        version=_core.__version__,
        again=again(of),
        query=query(of),
    )
    write_text(of.folder / "dossier.md", markdown(of))
    if of.options.limits:
        lines = [f'"{name}" = {value}\n' for name, value in of.options.limits.items()]
        write_text(of.folder / _LIMITS, "[limits]\n" + "".join(lines))
    return path


def again(of: Dossier) -> str:
    """The command that makes the dossier."""
    asked = of.options
    parts = ["dumbbell", "evaluate", of.cc, "--out", str(of.folder)]
    if of.backend != "simulator":
        parts += ["--backend", of.backend]
    if of.packs:
        parts += ["--pack", ",".join(one.pack.name for one in of.packs)]
        parts += ["--quick"] * (asked.seeds == 1)
    if asked.clauses or (asked.clauses is None and of.packs):
        parts += ["--clauses", ",".join(asked.clauses or ["all"])]
    if of.findings:
        parts += ["--paths", str(of.paths), "--search", str(asked.search)]
        parts += ["--path-seed", str(asked.path_seed)] * (asked.path_seed != 1)
    if asked.limits:
        parts += ["--gate", str(of.folder / _LIMITS)]
    return shlex.join(parts)


def query(of: Dossier) -> str:
    """The command that shows the runs of a scenario; empty where none are kept."""
    made = [one.measure.scenario for one in of.evidence if not one.failure]
    if of.backend == "linux" or not made:
        return ""
    return shlex.join(["dumbbell", "query", "from runs", str(of.folder / "data" / made[0])])


def write_side_by_side(dossiers: Sequence[Dossier], out: Path) -> Path:
    """Writes ``index.html`` into `out`: the verdicts of several dossiers beside each other."""
    path = out / "index.html"
    mark_several(out)
    rows = [
        (finding.clause, [(one.findings[at], one.cc) for one in dossiers])
        for at, finding in enumerate(dossiers[0].findings)
    ]
    # A first segment with a colon would be a scheme (RFC 3986, section 4.2).
    folders = [quote(one.folder.relative_to(out).as_posix()) for one in dossiers]
    links = [
        (words.label(one.cc), f"./{folder}/index.html")
        for one, folder in zip(dossiers, folders, strict=True)
    ]
    page.write(
        path,
        "dossiers.html.j2",
        links=links,
        rows=rows,
        tolerated=TOLERATED,
        version=_core.__version__,
    )
    return path


def _finding(of: Dossier, finding: Finding) -> dict[str, Any]:
    return {
        "of": finding,
        "clause": finding.clause,
        "beside": BESIDE[finding.beside(of.cc)],
        "evidence": [_evidence(of, one) for one in finding.evidence],
    }


def _evidence(of: Dossier, one: Evidence) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "measure": one.measure,
        "scenario": Scenario(one.measure.scenario),
        "sentence": words.sentence(one, of),
        "magnitudes": words.magnitudes(one, of),
        "compared": words.beside(one, of),
        "verdict": one.verdict(of.cc),
        "svg": None if one.failure else _inline(of, one),
        "paths": [],
    }
    for which, found, experiment in of.paths_of(one):
        title = "Worst path found"
        if which == SIMPLEST:
            if one.worst and found is one.worst.worst:
                continue
            value = found.values[of.cc]
            is_beyond = value is None or value > one.measure.limit
            title = f"A plainer path, {'beyond the limit' if is_beyond else 'nearly as bad'}"
        file = one.measure.file(which)
        real = " --backend linux" if of.backend == "linux" else ""
        shown["paths"].append(
            {
                "title": title,
                "path": words.path(found.settings),
                "found": words.at(one.measure, found, of),
                "file": file,
                "fragment": lab.fragment_of(experiment),
                "command": f"dumbbell run {shlex.quote(str(of.folder / file))}{real} --out worst",
            }
        )
    return shown


def _inline(of: Dossier, one: Evidence) -> Markup:
    name = one.measure.id
    with figures.styled():
        drawn = figures.svg(draw(of, one))
    return Markup(figures.inline(drawn, name, words.sentence(one, of)))


def draw(of: Dossier, one: Evidence) -> Figure:
    """Draws how a measure is distributed over the paths, for each algorithm, and its limit."""
    column, limit = one.measure.kind.column, one.measure.limit
    known = one.values.drop_nulls("value")
    groups = {cc: (known.filter(cc=cc)["value"] * column.scale).to_list() for cc in of.algorithms}
    groups = {cc: values for cc, values in groups.items() if values}
    figure, [[axes]] = figures.panels(width=figures.COLUMN, height=1.9)
    if groups:
        distributions(axes, groups, of_algorithms=True)
        every = [value for values in groups.values() for value in values]
        # The limit is in sight, and so are the paths around it.
        right = min(max(every), 6 * limit * column.scale) or max(every)
        axes.set_xlim(min(*every, 0.0), max(right, 1.2 * limit * column.scale) or 1.0)
        if of.cc in groups:
            axes.lines[0].set(linewidth=2.0, zorder=3)  # the algorithm in question
        axes.legend(loc="lower right")
    axes.axvline(limit * column.scale, color=figures.FAINT, linestyle="--", linewidth=0.9)
    axes.set_ylabel("share of the paths")
    own = groups.get(of.cc, [])
    farther = sum(value > axes.get_xlim()[1] for value in own)
    note = f"\n{words.label(of.cc)} on {farther} of {len(own)} paths farther right"
    axes.set_xlabel(f"{column.heading}{note if farther else ''}")
    return figure


def _method(of: Dossier) -> list[str]:
    """What was run, a sentence each."""
    method, source = of.method(), of.method()["source"]
    own = f" of {source['file']}, SHA-256 {source['sha256']}" if source else ""
    lines = [
        f"Algorithm: `{of.cc}`{own}.",
        f"TCP: {method['stack']}. Made by dumbbell {_core.__version__} (engine "
        f"{method['engine']}): `{again(of)}`.",
        "How far simulations are from Linux: docs/explanation/validation.md of dumbbell; how an "
        "algorithm differs from its specification: the head of its file in crates/cc/src. Each "
        "random path is run once, unless its scenario says otherwise.",
    ]
    if of.findings:
        lines.append(
            "TCP's segments are full: small packets, of which the RFC says nothing, are none."
        )
    if of.findings and (sends := words.ecn(of)):
        lines.append(sends)
    if of.findings:
        searched = (
            f"; at most {method['searched']} more for each measure in search of the worst, and "
            "simpler ones"
        )
        lines.append(
            f"Paths: {of.paths} for each scenario, drawn at random from the ranges below"
            f"{searched if method['searched'] else ''}."
        )
    lines += [
        f"Scenario `{one['name']}`: {one['title']}. {one['duration']}; seed {one['seed']} of the "
        f"paths; {one['paths']}."
        for one in method["scenarios"]
    ]
    return lines


def markdown(of: Dossier) -> str:
    """The dossier as Markdown, as an appendix of an Internet-Draft has it."""
    lines = [
        f"# Evaluation of {words.label(of.cc)} by RFC 9743",
        f"{words.heading(of)}.",
        f"Against: a measure is beyond its limit on more than {100 * TOLERATED:.0f} % of all such "
        "paths, with a confidence of 95 % for this measure by itself (exact binomial bound); for: "
        "all measures on less; open: neither. "
        f"Beside {words.label(standard(of.cc))}: which of the two is beyond a limit more often on "
        "the same paths (exact sign test); reference: a limit is relative to this algorithm. "
        "Shares are of the paths that Method describes, not of the Internet. "
        f"{'Real packets are' if of.backend == 'linux' else 'A simulation is'} initial evidence. "
        f"{of.paths} random paths for each scenario; dumbbell {_core.__version__}.",
        of.table().markdown().rstrip() if of.findings else "",
        words.too_few(of) if of.findings else "",
        "## Method",
        "\n".join(f"- {text}" for text in _method(of)),
    ]
    if of.left_out and of.findings:
        lines.append(f"Clauses left out on request: {', '.join(of.left_out)}.")
    if of.untested:
        lines.append("## Not tested")
        lines.append("\n".join(f"- {x.section} {x.title}: {x.reason}" for x in of.untested))
    for finding in of.findings:
        clause = finding.clause
        lines.append(f"## {clause.section} {clause.title}")
        lines.append(f"{words.question(clause)} {WORDS[finding.verdict(of.cc)].capitalize()}.")
        for one in finding.evidence:
            said = [words.sentence(one, of), words.magnitudes(one, of), words.beside(one, of)]
            lines.append(f"- {' '.join(filter(None, said))} Limit: {one.measure.reason}")
            if one.worst:
                found = one.worst.worst
                lines.append(
                    f"  Worst path: {words.path(found.settings)}: "
                    f"{words.at(one.measure, found, of)}."
                )
    if depths := of.depths():
        lines += ["## By the depth of the queue", depths.markdown().rstrip()]
    if managed := of.managed():
        lines += ["## By the queue management and ECN", words.ecn(of), managed.markdown().rstrip()]
    for pack in of.packs:
        lines.append(f"## {pack.pack.title} ({pack.pack.document})")
        lines.append("\n".join(f"- {text}" for text in pack.pack.differs))
        lines.append("Not here:")
        lines.append("\n".join(f"- {text}" for text in pack.pack.missing))
        lines.append(pack.note)
        for title, table in pack.tables(of.algorithms):
            lines += [f"### {title}", table.markdown().rstrip()]
    return "\n\n".join(line for line in lines if line) + "\n"
