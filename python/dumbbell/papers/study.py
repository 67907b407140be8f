"""A paper to reproduce: what its ``paper.toml`` says, and what its ``paper.py`` computes.

``paper.py`` is optional. Its functions are found by their decorators::

    @claim("order")
    def order(runs: Runs) -> Verdict: ...

    @figure("8")
    def fairness(runs: Runs) -> Figure: ...
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dumbbell.errors import DumbbellError, unknown
from dumbbell.experiment.modules import read_module
from dumbbell.papers.model import Paper
from dumbbell.papers.outcome import PaperFigure
from dumbbell.papers.runs import METRICS, Metric, Runs, conversion, reduced
from dumbbell.papers.sections import sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import FigureSpec, Measure, PublishedNumber
    from dumbbell.papers.outcome import Measured, Section, Verdict
    from dumbbell.results.result import Result

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_dumbbell_paper"


def claim(name: str, /) -> Callable[[F], F]:
    """Marks the function ``(runs) -> Verdict`` that checks a claim, by the claim's id."""
    return _mark("claim", name)


def number(name: str, /) -> Callable[[F], F]:
    """Marks the function ``(runs) -> Estimate`` that measures a number without ``measure``."""
    return _mark("number", name)


def figure(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> matplotlib Figure`` that draws a figure."""
    return _mark("figure", name, **options)


def table(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> Table`` for ``{table NAME}`` in ``report.md``."""
    return _mark("table", name, **options)


def text(name: str, /, **options: Any) -> Callable[[F], F]:
    """Marks the function ``(runs, **options) -> str`` for ``{NAME}`` in ``report.md``."""
    return _mark("text", name, **options)


def metric(name: str, /, unit: str) -> Callable[[F], F]:
    """Marks the function ``(result, **options)`` that gives a value for every seed, in `unit`."""
    return _mark("metric", name, unit=unit)


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
        """Reads the folder of a paper.

        Raises:
            DumbbellError: If it is not one; the error names file, key and what would be valid.
        """
        paper = Paper.load(folder)
        study = cls(paper, _functions(folder / "paper.py"))
        try:
            study._check()
        except ValueError as error:
            raise DumbbellError(f"{folder / 'paper.toml'}: {error}") from None
        study.sections(None)
        return study

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the paper's own."""
        found = self.functions.get("metric", {})
        return {name: Metric(f.keywords["unit"], f.func) for name, f in found.items()}

    def runs(
        self, results: Mapping[str, Result], extensions: Mapping[str, pl.DataFrame] | None = None
    ) -> Runs:
        """Results of the paper's experiments, with its metrics."""
        return Runs(results, extensions or {}, self.paper, self.metrics)

    def measure(self, runs: Runs, among: Sequence[PublishedNumber] | None = None) -> Measured:
        """Measures all published numbers, or some, by their ids."""
        numbers = self.paper.numbers if among is None else among
        return {number.id: self._estimate(number, runs) for number in numbers}

    def judge(self, runs: Runs) -> dict[str, Verdict]:
        """Checks every claim, by its id."""
        return {one.id: self.functions["claim"][one.id](runs) for one in self.paper.claims}

    def sections(self, runs: Runs | None, measured: Measured | None = None) -> list[Section]:
        """The sections of ``report.md``; without runs only their names are checked."""
        return sections(self, runs, measured or {})

    @property
    def figures(self) -> list[PaperFigure]:
        """All figures, standard ones and those of ``paper.py``."""
        from dumbbell.papers.standard_figures import draw

        own = self.functions.get("figure", {})
        return [
            PaperFigure(spec, own.get(spec.id) or partial(draw, spec), tuple(self._needs(spec)))
            for spec in self.paper.figures
        ]

    def _needs(self, spec: FigureSpec) -> dict[str, None]:
        """The experiments that a figure needs: of extensions the ids of their templates."""
        panels = spec.panels
        specs = [one for p in panels for one in self.paper.specs(p.experiments, p.where)]
        return dict.fromkeys(one.kept_as for one in specs)

    def reduce(self, result: Result) -> pl.DataFrame:
        """What is kept of a run of an extension: rows by seed."""
        return self.functions.get("reduce", {}).get("", reduced)(result)

    def _estimate(self, number: PublishedNumber, runs: Runs) -> Estimate:
        own = self.functions.get("number", {}).get(number.id)
        if own is not None:
            return own(runs)  # type: ignore[no-any-return]
        assert number.measure is not None, "checked when the paper was read"
        factor = conversion((self.metrics | METRICS)[number.measure.metric].unit, number.unit)
        found = runs.of_measure(number.experiment, number.measure)
        return found if factor == 1 else _scaled(found, factor)

    def _check(self) -> None:
        """Raises `ValueError` where the file and ``paper.py`` do not fit together."""
        paper = self.paper
        claims, numbers, figures = (
            [one.id for one in every] for every in (paper.claims, paper.numbers, paper.figures)
        )
        for kind, known, without, needed in (
            ("claim", claims, "", claims),
            ("number", numbers, "measure", [n.id for n in paper.numbers if n.measure is None]),
            ("figure", figures, "kind", [f.id for f in paper.figures if f.kind is None]),
        ):
            there = self.functions.get(kind, {})
            lost = next((name for name in needed if name not in there), None)
            if lost is not None:
                remedy = f"give it {without}, or write" if without else "write"
                raise ValueError(
                    f'{kind} "{lost}": paper.py has no function for it; {remedy} one with '
                    f'@{kind}("{lost}")'
                )
            extra = next((name for name in there if name not in known), None)
            if extra is not None:
                said = unknown(f"[[{kind}]]", extra, known or ["none"])
                raise ValueError(f'paper.py has @{kind}("{extra}"): {said}')
        for one in paper.numbers:
            self._check_measure(f'number "{one.id}": measure', one.measure, one.unit)
        for table in paper.comparisons:
            for measure in (table.y, *(case.y for case in [*table.rows, *table.columns])):
                self._check_measure(f'comparison "{table.id}": y', measure)
        for spec in paper.figures:
            for measure in (measure for panel in spec.panels for measure in panel.measures):
                self._check_measure(f'figure "{spec.id}": y', measure)

    def _check_measure(self, where: str, measure: Measure | None, unit: str = "") -> None:
        if measure is None:
            return
        metrics = METRICS | self.metrics
        try:
            if measure.metric not in metrics:
                raise ValueError(unknown("metric", measure.metric, list(metrics)))
            found = metrics[measure.metric]
            found.check(measure.others)
            if unit:
                conversion(found.unit, unit)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _functions(file: Path) -> dict[str, dict[str, partial[Any]]]:
    """The marked functions of a file, with their options, by kind and name."""
    found: dict[str, dict[str, partial[Any]]] = {}
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
            found.setdefault(kind, {})[name] = partial(marked, **options)
    return found


def _named(function: Callable[..., T], file: Path, mark: str, *args: Any, **options: Any) -> T:
    """Calls a function of ``paper.py``; a mistake in it is an error that names file and line.

    Raises:
        DumbbellError: If the function raised anything.
    """
    try:
        return function(*args, **options)
    except DumbbellError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f", line {one.lineno}" for one in frames if Path(one.filename) == file.resolve()]
        where = f"{file}{lines[-1] if lines else ''}: {mark}"
        raise DumbbellError(f"{where}: {type(error).__name__}: {error}") from error


def _scaled(found: Estimate, factor: float) -> Estimate:
    ends = {key: None if end is None else end * factor for key, end in found.ends.items()}
    runs = tuple(None if run is None else run * factor for run in found.runs)
    limit = None if found.limit is None else found.limit * factor
    return replace(found, **ends, runs=runs, limit=limit)
