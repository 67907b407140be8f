"""A paper to reproduce: what its ``paper.toml`` says, and what its ``paper.py`` computes.

``paper.py`` is optional. Its functions are found by their decorators::

    @claim("order")
    def order(runs: Runs) -> Verdict: ...

    @figure("8")
    def fairness(runs: Runs) -> Figure: ...
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dumbbell.engine.progress import Progress, silent
from dumbbell.errors import DumbbellError
from dumbbell.experiment.modules import read_module
from dumbbell.papers.judge import deciding, is_near, judge
from dumbbell.papers.model import Paper, require, within
from dumbbell.papers.outcome import Judgement, PaperFigure, Section
from dumbbell.papers.runs import MEASURES, Metric, Runs, conversion, reduced
from dumbbell.papers.sections import Report

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import FigureSpec, Measure, PublishedClaim, PublishedNumber
    from dumbbell.papers.outcome import Measured
    from dumbbell.results.result import Result

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_dumbbell_paper"


def claim(name: str, /) -> Callable[[F], F]:
    """Marks the function ``(runs) -> Verdict`` that checks a claim, by the claim's id."""
    return _mark("claim", name)


def number(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> Estimate`` for a number without ``measure``."""
    return _mark("number", name, **options)


def figure(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> matplotlib Figure`` that draws a figure."""
    return _mark("figure", name, **options)


def table(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> Table`` for ``{table NAME}`` in ``report.md``."""
    return _mark("table", name, **options)


def text(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> str`` for ``{NAME}`` in ``report.md``."""
    return _mark("text", name, **options)


def metric(
    name: str, /, unit: str, lowest: float = -math.inf, highest: float = math.inf
) -> Callable[[F], F]:
    """Marks the function ``(result, **options)`` that gives a value for every seed, in `unit`.

    It may give a table by seed instead, of which the metric is the column with its name. Intervals
    end at `lowest` and `highest`.
    """
    return _mark("metric", name, unit=unit, lowest=lowest, highest=highest)


def reduce(function: F) -> F:
    """Marks the function ``(result) -> DataFrame`` that says what is kept of extensions' runs.

    Rows by seed. Without one: `dumbbell.papers.runs.reduced`.
    """
    return _mark("reduce", "")(function)


def _mark(kind: str, name: str, /, **options: Any) -> Callable[[F], F]:
    def mark(function: F) -> F:
        vars(function).setdefault(_MARK, []).append((kind, name, options))
        return function

    return mark


@dataclass(frozen=True)
class Study:
    """A paper and the functions of its ``paper.py``, by kind and name."""

    paper: Paper
    functions: Mapping[str, Mapping[str, partial[Any]]]

    @classmethod
    def load(cls, folder: Path) -> Study:
        """Reads the folder of a paper."""
        study = cls(Paper.load(folder), _functions(folder / "paper.py"))
        try:
            study._check()
        except ValueError as error:
            raise DumbbellError(f"{folder / 'paper.toml'}: {error}") from None
        study.sections(None)
        return study

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The built-in metrics and the paper's own."""
        own = self.functions["metric"].items()
        return MEASURES | {name: Metric(function=f.func, **f.keywords) for name, f in own}

    def runs(self, results: Mapping[str, Result], **others: Any) -> Runs:
        """Results of the paper's experiments, with its metrics; `others` as `Runs` has them."""
        return Runs(results, paper=self.paper, metrics=self.metrics, **others)

    def measure(self, runs: Runs, among: Sequence[PublishedNumber] | None = None) -> Measured:
        """Measures all published numbers, or some, by their ids."""
        numbers = self.paper.numbers if among is None else among
        return {number.id: self._estimate(number, runs) for number in numbers}

    def _estimate(self, number: PublishedNumber, runs: Runs) -> Estimate:
        if number.id in self.functions["number"]:
            return self.functions["number"][number.id](runs)  # type: ignore[no-any-return]
        assert number.measure is not None, "checked when the paper was read"
        factor = conversion(self.metrics[number.measure.metric].unit, number.unit)
        return runs.of_measure(number.experiment, number.measure).scaled(factor)

    def judge(self, claim: PublishedClaim, runs: Runs) -> Judgement:
        """Whether the runs confirm a claim."""
        return judge(self.functions["claim"][claim.id], runs)

    def undecided(self, runs: Runs, progress: Progress = silent) -> set[str]:
        """The experiments of numbers and claims that these runs do not decide."""
        found: set[str] = set()
        questions = len(self.paper.numbers) + len(self.paper.claims)
        for done, number in enumerate(self.paper.numbers):
            progress("judging", done / questions)
            mine = replace(runs, asked=set())
            measured = self._estimate(number, mine)
            fewest = min(map(runs.count, mine.asked))
            if is_near(measured, number.published, fewest) is None:
                found |= mine.asked
        for done, claim in enumerate(self.paper.claims, start=len(self.paper.numbers)):
            progress("judging", done / questions)
            said = self.judge(claim, runs)
            if said.verdict == "inconclusive":
                found |= deciding(self.functions["claim"][claim.id], runs, said.asked)
        return found

    def sections(self, runs: Runs | None, measured: Measured | None = None) -> list[Section]:
        """The sections of ``report.md``; without runs only their names are checked."""
        return Report(self, runs, measured or {}).sections()

    @property
    def figures(self) -> list[PaperFigure]:
        """All figures, standard ones and those of ``paper.py``."""
        from dumbbell.papers.standard_figures import draw

        own = self.functions["figure"]
        return [
            PaperFigure(spec, own.get(spec.id) or partial(draw, spec), self._needs(spec))
            for spec in self.paper.figures
        ]

    def _needs(self, figure: FigureSpec) -> tuple[str, ...]:
        """The experiments that a figure needs: of extensions the ids of their templates."""
        panels = figure.panels
        specs = [one for p in panels for one in self.paper.specs(p.experiments, p.where)]
        return tuple(dict.fromkeys(one.kept_as for one in specs))

    def reduce(self, result: Result) -> pl.DataFrame:
        """What is kept of a run of an extension: rows by seed."""
        return self.functions["reduce"].get("", reduced)(result)

    def _check(self) -> None:
        """Raises `ValueError` where the file and ``paper.py`` do not fit together."""
        paper = self.paper
        for kind, known, instead in (
            ("claim", paper.claims, ""),
            ("number", paper.numbers, "measure"),
            ("figure", paper.figures, "kind"),
        ):
            there = self.functions[kind]
            for one in known:
                if one.id not in there and not (instead and getattr(one, instead)):
                    remedy = f"give it {instead}, or write" if instead else "write"
                    raise ValueError(
                        f'{kind} "{one.id}": paper.py has no function for it; {remedy} one with '
                        f'@{kind}("{one.id}")'
                    )
            for name in there:
                with within(f'paper.py has @{kind}("{name}")'):
                    require(f"[[{kind}]]", name, (one.id for one in known))
        with within("result"):
            Report(self, None, {}).filled(paper.result)
        for where, measure, unit in self._measures():
            with within(where):
                require("metric", measure.metric, self.metrics)
                found = self.metrics[measure.metric]
                found.check(measure.others)
                conversion(found.unit, unit or found.unit)

    def _measures(self) -> Iterator[tuple[str, Measure, str]]:
        """Where the file has measures, each with the unit of its number."""
        for one in self.paper.numbers:
            if one.measure:
                yield f'number "{one.id}": measure', one.measure, one.unit
        for table in self.paper.comparisons:
            for y in (table.y, *(case.y for case in [*table.rows, *table.columns])):
                if y:
                    yield f'comparison "{table.id}": y', y, ""
        for spec in self.paper.figures:
            for y in (measure for panel in spec.panels for measure in panel.measures):
                yield f'figure "{spec.id}": y', y, ""


def _functions(file: Path) -> dict[str, dict[str, partial[Any]]]:
    """The marked functions of a file, with their options, by kind and name."""
    kinds = ("claim", "number", "figure", "table", "text", "metric", "reduce")
    found: dict[str, dict[str, partial[Any]]] = {kind: {} for kind in kinds}
    if not file.is_file():
        return found
    try:
        module, _ = read_module(str(file))
    except ValueError as error:
        raise DumbbellError(str(error)) from None
    for function in list(vars(module).values()):
        for kind, name, options in getattr(function, _MARK, ()):
            plain = kind in ("metric", "reduce")
            marked = function if plain else partial(_named, function, file, f'@{kind}("{name}")')
            found[kind][name] = partial(marked, **options)
    return found


def _named(function: Callable[..., T], file: Path, mark: str, *args: Any, **options: Any) -> T:
    """Calls a function of ``paper.py``; a mistake in it is an error that names file and line."""
    try:
        return function(*args, **options)
    except DumbbellError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f", line {one.lineno}" for one in frames if Path(one.filename) == file.resolve()]
        where = f"{file}{lines[-1] if lines else ''}: {mark}"
        raise DumbbellError(f"{where}: {type(error).__name__}: {error}") from error
