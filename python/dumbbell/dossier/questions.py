"""Open questions of a draft, answered by runs: variants of an algorithm on the same random paths.

All variants run on the same paths and are compared path by path: the median of the differences,
with its 95 % interval over the paths, and on how many of them a variant is better. The simulator
has no noise, so each path is run once.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from dumbbell import _core, figures
from dumbbell.display import Column, Table
from dumbbell.dossier.bench import Bench
from dumbbell.dossier.clauses import needs_series
from dumbbell.dossier.measures import KINDS, values
from dumbbell.dossier.scenarios import FOLDER, Scenario
from dumbbell.dossier.words import with_unit
from dumbbell.engine.progress import Progress, silent
from dumbbell.experiment.files import write_text
from dumbbell.metrics.intervals import Estimate, median
from dumbbell.report import page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from dumbbell.dossier.measures import Kind, Runs

_FILE: Final = Path(__file__).with_name("questions.toml")
_OWN: Final = Path(__file__).with_name("questions")

PATHS: Final = 100
"""How many random paths each scenario has unless it is said."""


PLACEHOLDER: Final = re.compile(r"\{([^|}]+)\|([^}]+)\}")
"""A number in an answer: a measure and a variant."""


NOTE: Final = (
    "Medians over {} paths, with 95 % intervals by bootstrap; the median of the differences is not "
    "the difference of the medians. Less is better."
)


@dataclass(frozen=True)
class Variant:
    """What is compared: an algorithm, and keys of the scenario with other values."""

    cc: str
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: str | Mapping[str, Any]) -> Variant:
        """From a file: an algorithm, or a table with `cc` and `set`."""
        return cls(said) if isinstance(said, str) else cls(said["cc"], tuple(said["set"]))


@dataclass(frozen=True)
class Difference:
    """How a variant differs from the first one by a measure.

    Attributes:
        measure: The name of the measure: its kind and its scenario.
        kind: What is measured; less is better.
        variant: The label of the variant.
        base: The median of the first variant over the paths.
        change: The median of the differences, with its 95 % interval.
        better, worse, paths: On how many paths the variant is better and worse, of how many.
    """

    measure: str
    kind: Kind
    variant: str
    base: float
    change: Estimate
    better: int
    worse: int
    paths: int


@dataclass(frozen=True)
class Answer:
    """A question, and what the runs say."""

    question: Mapping[str, Any]
    differences: list[Difference]

    @property
    def sentence(self) -> str:
        """What a working group can quote."""
        first = next(iter(self.question["variants"]))

        def number(found: re.Match[str]) -> str:
            measure, variant = found.groups()
            its = [one for one in self.differences if one.measure == measure]
            if variant == first:
                return with_unit(its[0].kind.column, its[0].base).replace("-", "\N{MINUS SIGN}")
            return _written(next(one for one in its if one.variant == variant))

        return PLACEHOLDER.sub(number, self.question["answer"])

    def table(self) -> Table:
        """A row for each variant and measure."""
        first = next(iter(self.question["variants"]))
        columns = [
            Column("Measure"),
            Column("Variant"),
            Column(first, number=True),
            Column("Difference (95 %)", number=True),
            Column("Better on", number=True),
            Column("Worse on", number=True),
        ]
        rows = [
            [
                f"{_title(one)}",
                one.variant,
                one.kind.column.format(one.base),
                one.kind.column.format(one.change),
                f"{one.better}",
                f"{one.worse}",
            ]
            for one in self.differences
        ]
        return Table(columns, rows, NOTE.format(self.differences[0].paths))

    def as_json(self) -> dict[str, Any]:
        """What ``questions.json`` holds of it."""
        return {
            "id": self.question["id"],
            "question": self.question["text"],
            "source": self.question["source"],
            "variants": self.question["variants"],
            "answer": self.sentence,
            "differences": [
                {
                    "measure": one.measure,
                    "variant": one.variant,
                    "base": one.base,
                    **one.change.ends,
                    "better": one.better,
                    "worse": one.worse,
                    "paths": one.paths,
                }
                for one in self.differences
            ],
        }


def answer_questions(
    out: str | Path,
    *,
    paths: int = PATHS,
    only: Sequence[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: Progress = silent,
) -> list[Answer]:
    """Answers the BBR draft's open questions; ``dumbbell reproduce bbr-questions`` runs it.

    Args:
        out: The folder: ``index.html``, ``questions.json``, ``questions.md``, ``data/``.
        paths: How many random paths each scenario has.
        only: The questions, by their ids; all if not given.
        jobs: How many simulations to run at once; as many as there are processors if not given.
        dask: The address of a Dask scheduler whose workers are to do the work.
        progress: Called periodically with the current step and its completed fraction (0 to 1).
    """
    said = tomllib.loads(_FILE.read_text("utf-8"))
    bench = Bench(Path(out), jobs, dask, progress)
    answers = [
        _answer(question, bench, paths)
        for question in said["question"]
        if only is None or question["id"] in only
    ]
    _write(Path(out), answers)
    return answers


def _answer(question: Mapping[str, Any], bench: Bench, paths: int) -> Answer:
    variants = {name: Variant.of(said) for name, said in question["variants"].items()}
    first, *others = variants
    found = []
    runs: dict[str, dict[tuple[str, ...], Runs]] = {}
    for measure in question["measures"]:
        kind, name = _split(measure)
        if name not in runs:
            runs[name] = _runs(question["id"], name, list(variants.values()), bench, paths)
        measured = {keys: values(its, kind) for keys, its in runs[name].items()}
        base = _by_path(measured, variants[first])
        for variant in others:
            its = _by_path(measured, variants[variant])
            both = [path for path in base if path in its]
            change = [its[path] - base[path] for path in both]
            found.append(
                Difference(
                    measure,
                    kind,
                    variant,
                    median([base[path] for path in both]).value or 0.0,
                    median(change),
                    sum(one < 0 for one in change),
                    sum(one > 0 for one in change),
                    len(both),
                )
            )
    return Answer(question, found)


def _runs(
    question: str, name: str, variants: Sequence[Variant], bench: Bench, paths: int
) -> dict[tuple[str, ...], Runs]:
    """The runs of a scenario, by the keys that variants set in it."""
    found: dict[tuple[str, ...], Runs] = {}
    for number, keys in enumerate(dict.fromkeys(variant.keys for variant in variants)):
        algorithms = dict.fromkeys(one.cc for one in variants if one.keys == keys)
        design = replace(_scenario(name), overrides=keys).design(list(algorithms), paths)
        place = f"{question}/{name}" + (f"-{number}" if keys else "")
        found[keys] = bench.run(design, place, series=needs_series(name))
    return found


def _by_path(
    measured: Mapping[tuple[str, ...], pl.DataFrame], variant: Variant
) -> dict[int, float]:
    of = measured[variant.keys].filter(cc=variant.cc).drop_nulls("value")
    return dict(of.select("path", "value").rows())


def _split(measure: str) -> tuple[Kind, str]:
    """The kind and the scenario of a measure: ``loss-step-up`` is ``loss`` in ``step-up``."""
    kind, _, scenario = measure.partition("-")
    return KINDS[kind], scenario


def _title(one: Difference) -> str:
    return f"{one.kind.column.heading}: {_split(one.measure)[1]}"


def _written(one: Difference) -> str:
    column = one.kind.column
    low, value, high = (
        _signed((end or 0.0) * column.scale)
        for end in (one.change.low, one.change.value, one.change.high)
    )
    unit = {"%": "points"}.get(column.unit, column.unit)
    return f"{value} {unit}".strip() + f" ({low} to {high})"


def _signed(value: float) -> str:
    """With two digits, all of those before the point, and its sign."""
    text = f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}"
    return text.replace("-", "\N{MINUS SIGN}")


def _write(out: Path, answers: Sequence[Answer]) -> None:
    page.write(
        out / "index.html",
        "questions.html.j2",
        answers=[(one, Markup(_figure(one))) for one in answers],
        untested=untested(),
        scenarios=scenarios(answers),
        version=_core.__version__,
    )
    found = {"version": _core.__version__, "questions": [one.as_json() for one in answers]}
    write_text(out / "questions.json", json.dumps(found, indent=1) + "\n")
    write_text(out / "questions.md", markdown(answers))


def scenarios(answers: Sequence[Answer]) -> dict[str, str]:
    """The scenarios of some answers: name, and what each is."""
    names = (_split(measure)[1] for one in answers for measure in one.question["measures"])
    return {name: _scenario(name).title for name in dict.fromkeys(names)}


def _scenario(name: str) -> Scenario:
    return Scenario(name, _OWN if (_OWN / f"{name}.toml").is_file() else FOLDER)


def markdown(answers: Sequence[Answer]) -> str:
    """The answers as Markdown."""
    parts = []
    for one in answers:
        said = one.question
        parts += [f"## {said['title']}", f"{said['text']} ({said['source']})"]
        parts += [one.sentence, one.table().markdown().rstrip()]
    return "\n\n".join(parts) + "\n"


def untested() -> list[dict[str, str]]:
    """The questions that no run here answers: title and reason."""
    found: list[dict[str, str]] = tomllib.loads(_FILE.read_text("utf-8"))["untested"]
    return found


def _figure(answer: Answer) -> str:
    """Draws the differences: a panel for each measure, a row for each variant."""
    variants = list(answer.question["variants"])[1:]
    measures = list(dict.fromkeys(one.measure for one in answer.differences))
    with figures.styled():
        height = 0.62 + 0.16 * len(variants)
        figure, panels = figures.panels(len(measures), width=figures.PAGE, height=height)
        for measure, [axes] in zip(measures, panels, strict=True):
            rows = [one for one in answer.differences if one.measure == measure]
            scale = rows[0].kind.column.scale
            for place, one in enumerate(reversed(rows)):
                low, value, high = (
                    (end or 0.0) * scale
                    for end in (one.change.low, one.change.value, one.change.high)
                )
                axes.plot([low, high], [place, place], color=figures.INK, linewidth=1.2)
                axes.plot(value, place, "o", color=figures.INK, markersize=4)
            axes.axvline(0, color=figures.FAINT, linestyle="--", linewidth=0.9)
            axes.set_yticks(
                range(len(rows)), [figures.named(one.variant) for one in reversed(rows)]
            )
            axes.margins(x=0.06)
            axes.set_ylim(-0.6, len(rows) - 0.4)
            axes.set_xlabel(f"difference in {_title(rows[0])}")
        drawn = figures.svg(figure)
    return figures.inline(drawn, str(answer.question["id"]), str(answer.question["text"]))
