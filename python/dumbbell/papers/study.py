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

from dumbbell.errors import DumbbellError
from dumbbell.experiment.modules import read_module
from dumbbell.papers.model import Paper
from dumbbell.papers.outcome import PaperFigure
from dumbbell.papers.runs import METRICS, Metric, Runs, conversion, reduced
from dumbbell.papers.sections import sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from dumbbell.metrics.intervals import Estimate
    from dumbbell.papers.model import FigureSpec, PublishedNumber
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
        return {
            name: Metric(f.keywords["unit"], f.func, of_result=True) for name, f in found.items()
        }

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
        return [
            PaperFigure(
                id=spec.id,
                title=spec.heading,
                caption=spec.caption,
                draw=self._draw(spec),
                experiments=tuple(self._needs(spec)),
                wide=spec.wide,
                testbed=spec.testbed,
            )
            for spec in self.paper.figures
        ]

    def reduce(self, result: Result) -> pl.DataFrame:
        """What is kept of a run of an extension: rows by seed."""
        own = self.functions.get("reduce", {}).get("")
        return reduced(result) if own is None else own(result)

    def _estimate(self, number: PublishedNumber, runs: Runs) -> Estimate:
        own = self.functions.get("number", {}).get(number.id)
        if own is not None:
            return own(runs)  # type: ignore[no-any-return]
        assert number.measure is not None, "checked when the paper was read"
        unit = (self.metrics | METRICS)[number.measure.metric].unit
        factor = conversion(unit, number.unit)
        found = runs.of_measure(number.experiment, number.measure)
        return found if factor == 1 else _scaled(found, factor)

    def _draw(self, spec: FigureSpec) -> Callable[[Runs], Any]:
        from dumbbell.papers.standard_figures import draw

        own = self.functions.get("figure", {}).get(spec.id)
        return own or partial(draw, spec)

    def _needs(self, spec: FigureSpec) -> list[str]:
        """The experiments that a figure needs: of extensions the ids of their templates."""
        panels = [spec.panel(), *(spec.panel(changes) for changes in spec.panels)]
        needs = [name for panel in panels for name in self._of_panel(panel)]
        return list(dict.fromkeys(needs))

    def _of_panel(self, panel: Any) -> list[str]:
        chosen = panel.where.items()
        specs = {spec.id: spec.chosen for spec in self.paper.planned.values()}
        return [
            name
            for name in self.paper.matching(panel.experiments)
            if name not in specs or all(specs[name].get(key) in values for key, values in chosen)
        ]

    def _check(self) -> None:
        """Raises `ValueError` where the file and ``paper.py`` do not fit together."""
        named = {
            "claim": [one.id for one in self.paper.claims],
            "number": [one.id for one in self.paper.numbers if one.measure is None],
            "figure": [one.id for one in self.paper.figures if one.kind is None],
        }
        for kind, ids in named.items():
            there = self.functions.get(kind, {})
            for name in ids:
                if name not in there:
                    needs = {"number": "measure", "figure": "kind"}.get(kind)
                    remedy = f"give it {needs}, or write" if needs else "write"
                    raise ValueError(
                        f'{kind} "{name}": paper.py has no function for it; {remedy} one with '
                        f'@{kind}("{name}")'
                    )
            for name in there:
                every = ids if kind == "claim" else [*self._ids(kind)]
                if name not in every:
                    raise ValueError(
                        f'paper.py has @{kind}("{name}"), and there is no [[{kind}]] with this '
                        f"id; there are {', '.join(every) or 'none'}"
                    )
        for one in self.paper.numbers:
            if one.measure is not None:
                self._check_measure(f'number "{one.id}": measure', one.measure, one.unit)
        for table in self.paper.comparisons:
            cases = [case.y for case in [*table.rows, *table.columns]]
            for measure in filter(None, [table.y, *cases]):
                self._check_measure(f'comparison "{table.id}": y', measure)
        for spec in self.paper.figures:
            for panel in (spec, *spec.panels):
                for measure in panel.measures:
                    self._check_measure(f'figure "{spec.id}": y', measure)

    def _ids(self, kind: str) -> list[str]:
        entries: Sequence[Any] = self.paper.numbers if kind == "number" else self.paper.figures
        return [entry.id for entry in entries]

    def _check_measure(self, where: str, measure: Any, unit: str = "") -> None:
        metrics = METRICS | self.metrics
        if measure.metric not in metrics:
            known = ", ".join(metrics)
            raise ValueError(f'{where}: there is no metric "{measure.metric}"; there are {known}')
        try:
            found = metrics[measure.metric]
            found.check(measure.options)
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
