"""Running a paper's experiments, drawing its figures, writing its report."""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell.engine import measurements
from dumbbell.engine.progress import Progress, silent, titled
from dumbbell.engine.runner import run_each
from dumbbell.errors import DumbbellError, unknown
from dumbbell.experiment.files import atomic_write, locked, make_folder, write_text, writing
from dumbbell.experiment.model import Experiment
from dumbbell.metrics import sequential
from dumbbell.papers import testbed
from dumbbell.papers.linux import FILE, Measurements, of_runs
from dumbbell.papers.outcome import NOT_MEASURED, Claim, Number, PaperFigure, Reproduction
from dumbbell.papers.registry import folder_of
from dumbbell.papers.runs import Runs, SavedResults
from dumbbell.papers.sections import Report
from dumbbell.papers.study import Study
from dumbbell.papers.testbed import TestbedRuns
from dumbbell.report.result import ResultPage, result_pages
from dumbbell.results.result import Result
from dumbbell.results.storage import check
from dumbbell.results.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.papers.model import ExperimentSpec, ExperimentTemplate, Settings, TestbedTemplate


_FULL_SEEDS: Final = 24  # the least maximum of runs of a full reproduction


@dataclass(frozen=True)
class RunOptions:
    """How to run a paper; see `dumbbell.papers.reproduce`."""

    jobs: int | None = None
    seeds: int | None = None
    duration: str | None = None
    progress: Progress = silent
    testbed: bool = False
    full: bool = False
    overwrite: bool = False
    dask: str | None = None


class PaperFolder:
    """The folder of a paper's results.

    It has ``runs`` (a result for every experiment of the paper), a table for every extension,
    ``real`` (measurements with real packets) and ``matched`` (simulations of what the testbed
    changes).
    """

    def __init__(self, of: Study, folder: Path, options: RunOptions | None = None) -> None:
        """A folder of results, which need not exist yet."""
        self.study, self.paper, self.folder = of, of.paper, folder
        self.options = options or RunOptions()

    @classmethod
    def of(cls, folder: Path) -> PaperFolder:
        """The folder of a paper that was reproduced; its results say which paper that is."""
        said = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        options = RunOptions(seeds=said.get("seeds"), full=said.get("full", False))
        return cls(Study.load(folder_of(said.get("folder", said["paper"]))), folder, options)

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Makes the folder, and keeps others from writing there; it is removed if it stays empty.

        If another reproduction writes there, that is a `ResultError`.
        """
        new = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        problem = "another reproduction is writing there; wait for it, or name another --out"
        try:
            with ExitStack() as held:
                with writing(self.folder):
                    make_folder(self.folder)
                    held.enter_context(locked(self.folder / ".lock", f"{self.folder}: {problem}"))
                yield
        finally:
            with suppress(OSError):  # one of them holds something
                for folder in new:
                    folder.rmdir()

    def reproduce(self) -> Reproduction:
        """Runs, measures, checks and draws everything; see `dumbbell.papers.reproduce`."""
        return self.report(*self.run())

    def run(self) -> tuple[Runs, TestbedRuns | None]:
        """Runs everything, with as many seeds as decide the paper's numbers and claims."""
        if self.options.testbed:
            self._measure()  # first, as this is what a machine may be unable to do
        real = self._testbed()
        runs = self._run(self._wanted())
        return runs if self.options.seeds else self._add_seeds(runs), real

    def report(self, runs: Runs, real: TestbedRuns | None) -> Reproduction:
        """Measures, checks and draws what was run, and writes the report."""
        from dumbbell.papers.page import write_paper

        done = self._conclude(runs, real)
        self._draw(done.figures, runs)
        text = json.dumps(done.as_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(self.folder / "results.json", f"{text}\n")
        write_paper(done)
        return done

    def reopen(self) -> Reproduction:
        """What was reproduced before, without running anything."""
        runs = self._saved(self._wanted())
        found = self._conclude(runs, self._testbed_runs(self._testbed_plan()))
        for figure in found.figures:
            if not found.svg(figure).is_file():
                problem = f"{self.folder}: lacks {found.svg(figure).name}"
                raise DumbbellError(f"{problem}; make it again with `{found.command(figure.id)}`")
        return found

    def draw(self, figures: Sequence[str]) -> list[Path]:
        """Runs what some figures need and draws them; returns the files without their suffix."""
        chosen = [self._find(figure) for figure in figures]
        needed = {experiment for figure in chosen for experiment in figure.experiments}
        there = SavedResults(self.folder / "runs", needed).counts()
        return self._draw(chosen, self._run(needed, there))

    def figure(self, name: str) -> Figure:
        """Draws a figure from the runs that are there."""
        from dumbbell.figures import styled

        figure = self._find(name.removesuffix(testbed.SUFFIX))
        needs, runs = set(figure.experiments), self.study.runs({})
        if name == figure.id:
            how = f"--figure {name}"
            runs = self._saved(needs)
            there = {*runs.results, *runs.extensions}
        else:
            how = "--backend linux"
            real = self._testbed_runs(figure.experiments) if figure.spec.testbed else None
            there = set(real.runs) if real else set()
            figure = testbed.of_real(figure, real) if real and there == needs else figure
        if there != needs:
            out = shlex.quote(str(self.folder.parent))
            again = f"dumbbell reproduce {self.paper.name} {how} --out {out}"
            raise DumbbellError(
                f"{self.folder}: lacks runs of {self.paper.id}/{name}; `{again}` makes them"
            )
        with styled():
            return figure.draw(runs)

    def _find(self, name: str) -> PaperFigure:
        known = {one.id: one for one in self.study.figures}
        if name not in known:
            raise DumbbellError(f"{self.paper.id}: {unknown('figure', name, list(known))}")
        return known[name]

    def _wanted(self) -> set[str]:
        """What is run: experiments by their id, extensions by that of their template."""
        planned = self.paper.planned.items()
        if self.options.full:
            return {*self.paper.planned, *(one.id for one in self.paper.extensions)}
        return {name for name, spec in planned if not spec.template.full}

    @property
    def _max_seeds(self) -> int:
        """How many runs an experiment may have until it decides."""
        return max(self.paper.max_seeds, _FULL_SEEDS if self.options.full else 0)

    @cached_property
    def _confidence(self) -> dict[str, float]:
        """Of the intervals of experiments that run until they decide, by their id."""
        if self.options.seeds:
            return {}
        level = sequential.confidence(self._max_seeds, self.paper.min_seeds)
        planned = self.paper.planned.items()
        return {name: level for name, spec in planned if not spec.template.full}

    def _run(
        self, wanted: Collection[str], counts: Mapping[str, int] = MappingProxyType({})
    ) -> Runs:
        """Runs those of the paper's experiments, and of the templates of its extensions.

        Experiments that run until they decide begin with `min_seeds`, or as many as
        `counts` says; others have the seeds of their files.
        """
        counts = dict.fromkeys(self._confidence, self.paper.min_seeds) | dict(counts)
        planned = [spec for name, spec in self.paper.planned.items() if name in wanted]
        experiments = {spec.id: self._experiment(spec, counts.get(spec.id)) for spec in planned}
        results = self._simulate(experiments, "runs")
        templates = [template for template in self.paper.extensions if template.id in wanted]
        tables = {template.id: self._run_extension(template) for template in templates}
        return self._runs(results, tables)

    def _add_seeds(self, runs: Runs) -> Runs:
        """Adds seeds to experiments until they decide the paper's numbers and claims."""
        looks = sequential.looks(self._max_seeds, self.paper.min_seeds)
        counts = dict.fromkeys(self._confidence, looks[0])
        while more := [
            name
            for name in self.study.undecided(runs, self._progress())
            if counts.get(name, looks[-1]) < looks[-1]
        ]:
            counts |= {name: next(n for n in looks if n > counts[name]) for name in more}
            planned = {name: self.paper.planned[name] for name in sorted(more)}
            self._simulate(
                {name: self._experiment(spec, counts[name]) for name, spec in planned.items()},
                "runs",
            )
            runs = runs.again(SavedResults(self.folder / "runs", runs.results), more)
        return runs

    def _saved(self, wanted: Iterable[str]) -> Runs:
        """What the folder has of these experiments and extensions."""
        names, folder = set(wanted), self.folder / "runs"
        tables = {name: self.folder / f"{name}.parquet" for name in names}
        kept = {name: read_table(path) for name, path in tables.items() if path.is_file()}
        there = [one for one in self.paper.planned if one in names and (folder / one).is_dir()]
        return self._runs(SavedResults(folder, there), kept)

    def _runs(self, results: SavedResults, extensions: Mapping[str, pl.DataFrame]) -> Runs:
        linux = self._linux
        return self.study.runs(
            results,
            extensions=extensions,
            confidence=self._confidence,
            linux=self.study.runs({}, table=linux.values) if linux else None,
        )

    @property
    def _linux(self) -> Measurements | None:
        """The runs with real packets of this folder, or else those that the paper comes with."""
        return Measurements.load(self.folder) or Measurements.load(self.paper.folder)

    def _experiment(self, spec: ExperimentSpec, seeds: int | None = None) -> Experiment:
        """What is run, with `seeds` unless the options have others."""
        given = {"seeds": self.options.seeds or seeds, "duration": self.options.duration}
        experiment = Experiment.load(self.paper.folder / spec.file, overrides=list(spec.changes))
        return experiment.replace(**{key: one for key, one in given.items() if one is not None})

    def _progress(self, what: str = "") -> Progress:
        return titled(self.options.progress, f"{self.paper.id}{what}")

    def _running(
        self, experiments: Iterable[Experiment], what: str = ""
    ) -> closing[Generator[Result, None, None]]:
        """The results of experiments, one by one."""
        jobs, dask = self.options.jobs, self.options.dask
        return closing(
            run_each(list(experiments), jobs=jobs, dask=dask, progress=self._progress(what))
        )

    def _simulate(self, experiments: Mapping[str, Experiment], where: str) -> SavedResults:
        """Runs experiments; each result is saved in a folder as soon as it is there."""
        results = SavedResults(self.folder / where, experiments)
        for place in results.data.values():
            check(place, None, None, overwrite=True)
        with self._running(experiments.values()) as runs:
            for name, result in zip(experiments, runs, strict=True):
                results.save(name, result)
        return results

    def _run_extension(self, template: ExperimentTemplate) -> pl.DataFrame:
        """Runs an extension; what is kept of it is saved in the folder."""
        cells = list(template.all())
        with self._running(map(self._experiment, cells), ": extensions") as runs:
            rows = [
                self.study.reduce(result).select(
                    *(pl.lit(value).alias(setting) for setting, value in cell.settings.items()),
                    pl.all(),
                )
                for cell, result in zip(cells, runs, strict=True)
            ]
        table = pl.concat(rows)
        make_folder(self.folder)
        with atomic_write(self.folder / f"{template.id}.parquet") as file:
            table.write_parquet(file)
        return table

    def _conclude(self, runs: Runs, real: TestbedRuns | None) -> Reproduction:
        """Measures and checks what was run; figures are still to be drawn."""
        views = result_pages(runs.results, {name: f"runs/{name}" for name in runs.results})
        measured = self.study.measure(runs)
        settings = {view.name: _weakest(view) for view in views}
        linux = self._linux
        beside = linux.numbers(self.study) if linux else {}
        judged = linux.judge(self.study) if linux else {}
        numbers = [
            Number(said, measured[said.id], settings[said.experiment], beside.get(said.id))
            for said in self.paper.numbers
        ]
        claims = [
            Claim(said, self.study.judge(said, runs), judged.get(said.id, NOT_MEASURED))
            for said in self.paper.claims
        ]
        there = {*runs.results, *runs.extensions}
        figures = [figure for figure in self.study.figures if there.issuperset(figure.experiments)]
        report = Report(self.study, runs, measured)
        sections = report.sections()
        if real:
            figures += testbed.figures_of(figures, numbers, real)
            sections.insert(0, testbed.section(self.paper, runs.results, real))
        return Reproduction(
            paper=self.paper,
            folder=self.folder,
            numbers=numbers,
            claims=claims,
            sections=sections,
            figures=figures,
            views=views,
            options={"full": self.options.full, "seeds": self.options.seeds},
            linux=linux.source if linux else None,
            testbed=real,
            result=report.filled(self.paper.result),
        )

    def _draw(self, figures: Sequence[PaperFigure], runs: Runs) -> list[Path]:
        """Draws figures and writes their files; returns these without their suffix."""
        from dumbbell.figures import save, styled

        make_folder(self.folder)
        paths = [self.folder / figure.spec.file for figure in figures]
        for done, (figure, path) in enumerate(zip(figures, paths, strict=True)):
            self._progress()("drawing", done / len(figures))
            with styled():
                save(figure.draw(runs), path)
        return paths

    def _testbed_plan(self) -> dict[str, tuple[TestbedTemplate, ExperimentSpec, Experiment]]:
        """What there is to run with real packets, by the id of the experiment."""
        return {
            one.id: (template, one, self._experiment(one, template.runs))
            for template in self.paper.testbed
            for one in template.all(self.paper.planned)
        }

    def _measure(self) -> None:
        """Runs with real packets what is not there yet."""
        plan = {self._real(name): one for name, one in self._testbed_plan().items()}
        wanted = {folder: experiment for folder, (_, _, experiment) in plan.items()}
        groups: dict[int, dict[Path, Experiment]] = {}
        fresh = self.options.overwrite
        for folder, experiment in measurements.missing(wanted, overwrite=fresh).items():
            at_once = self.options.jobs or plan[folder][0].at_once
            groups.setdefault(at_once, {})[folder] = experiment
        for jobs, lacking in groups.items():
            measurements.measure(
                lacking, jobs=jobs, retry_invalid=2, fresh=fresh, progress=self._progress()
            )

    def _real(self, name: str) -> Path:
        return self.folder / "real" / name

    def _testbed(self) -> TestbedRuns | None:
        """Runs with real packets, of now or before, and the matched simulations, which it runs.

        Writes what numbers and claims ask of them.
        """
        there = {
            name: (spec, experiment)
            for name, (_, spec, experiment) in self._testbed_plan().items()
            if measurements.measurement(self._real(name), experiment)
        }
        planned = self.paper.planned
        changed = {name: one for name, (spec, one) in there.items() if spec != planned[name]}
        self._simulate(changed, "matched")
        real = self._testbed_runs(there)
        if real:
            found = of_runs(self.study, real, self.folder / "real").as_json()
            write_text(self.folder / FILE, json.dumps(found, indent=1) + "\n")
        return real

    def _testbed_runs(self, names: Iterable[str]) -> TestbedRuns | None:
        """The results with real packets, and the matched simulations, that are in the folder."""
        names = list(names)
        real, matched = (
            {name: Result.load(place / name) for name in names if (place / name).is_dir()}
            for place in (self.folder / "real", self.folder / "matched")
        )
        for name in matched:
            matched[name] = matched[name].with_seeds_of(real[name])
        return TestbedRuns(real, matched) if real else None


def _weakest(view: ResultPage) -> Settings:
    """Whether all settings of an experiment are the paper's, or the weakest kind among them."""
    kinds = {kind for _, _, kind, _ in view.settings}
    return "calibrated" if "calibrated" in kinds else "assumed" if kinds else "stated"
