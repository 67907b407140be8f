"""Running a paper's experiments, drawing its figures, writing its report."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell.engine.progress import Progress, titled
from dumbbell.engine.runner import run_each
from dumbbell.errors import DumbbellError
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.toml import atomic_write, write_text
from dumbbell.papers import testbed_figures
from dumbbell.papers.outcome import Claim, Drawing, Number, Reproduction, Setting
from dumbbell.papers.registry import folder_of
from dumbbell.papers.runs import SavedResults
from dumbbell.papers.study import Study
from dumbbell.papers.testbed import (
    TestbedNumber,
    TestbedRuns,
    is_there,
    measure,
    section,
    with_seeds_of,
)
from dumbbell.results.result import Result
from dumbbell.results.storage import check
from dumbbell.results.tables import disk_errors, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from dumbbell.figures import Picture
    from dumbbell.papers.model import (
        ExperimentSpec,
        ExperimentTemplate,
        Paper,
        Settings,
        TestbedTemplate,
    )
    from dumbbell.papers.outcome import PaperFigure
    from dumbbell.papers.runs import Runs

_TOOLS: Final = ("polars", "numpy", "matplotlib")


@dataclass(frozen=True)
class RunOptions:
    """How to run a paper.

    Attributes:
        jobs: How many simulations to run at once; None for one a processor.
        seeds: How many seeds to run with; None for those of the experiments.
        duration: How long every run lasts; None for as long as the experiments say.
        progress: Called periodically with the current step and its completed fraction (0 to 1).
        testbed: Whether to run with real packets too what of a paper can be.
        extensions: Whether to run the extensions too.
        overwrite: Whether measurements with real packets of other settings are replaced.
    """

    jobs: int | None
    seeds: int | None
    duration: str | None
    progress: Progress
    testbed: bool = False
    extensions: bool = False
    overwrite: bool = False


def reproduce_paper(of: Study, out: Path, options: RunOptions) -> Reproduction:
    """Reproduces one paper into ``out/ID``; see `dumbbell.papers.reproduce`."""
    from dumbbell.papers.incremental import IncrementalReport
    from dumbbell.papers.page import write_paper

    paper, folder = of.paper, out / of.paper.id
    if options.testbed:
        # First, as this is what a machine may be unable to do.
        _run_testbed(paper, folder, options)
    experiments = _experiments(paper, paper.planned.values(), options)
    results = SavedResults(folder / "runs", list(experiments))
    incremental = IncrementalReport(of.figures, of.runs(results), list(experiments.values()))
    _run_all(paper, experiments, results, folder / "runs", options, incremental.add)
    extensions = paper.extensions if options.extensions else []
    runs = of.runs(results, _run_extensions(of, extensions, folder, options))
    reproduction = _conclude(of, runs, folder, _testbed(paper, folder, options))
    drawn = _figures(of, reproduction, runs)
    drawings = _draw_all(paper, drawn, runs, folder, options, incremental.pictures)
    reproduction = _with_figures(reproduction, drawn, drawings)
    write_json(folder / "results.json", reproduction.as_json() | _place(paper))
    write_paper(reproduction, views=incremental.views)
    return reproduction


def reopen(folder: Path) -> Reproduction:
    """Reads a reproduction that was written into a folder, without running anything.

    Raises:
        DumbbellError: If it is not one, or lacks a run or a figure.
    """
    said = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    of = Study.load(folder_of(said.get("folder", said["paper"])))
    paper = of.paper
    runs = of.runs(_saved(paper, folder), _kept(folder, [one.id for one in paper.extensions]))
    there = [one.id for template in paper.testbed for one in template.all(paper.planned)]
    real = _testbed_of(folder, there)
    reproduction = _conclude(of, runs, folder, real if real.runs else None)
    drawn = _figures(of, reproduction, runs)
    missing = [figure.file for figure in drawn if not (folder / f"{figure.file}.svg").is_file()]
    if missing:
        again = f"make it again with `{_command(paper, missing[0][7:])}`"
        raise DumbbellError(f"{folder}: lacks {missing[0]}.svg; {again}")
    drawings = [
        _drawing(paper, figure, (folder / f"{figure.file}.svg").read_text(encoding="utf-8"))
        for figure in drawn
    ]
    return _with_figures(reproduction, drawn, drawings)


def _place(paper: Paper) -> dict[str, str]:
    """Where the paper is, for `reopen`; nothing of one that is built in or installed."""
    from dumbbell.papers.registry import folders

    return {} if paper.id in folders() else {"folder": str(Path(paper.folder).resolve())}


def _conclude(of: Study, runs: Runs, folder: Path, real: TestbedRuns | None) -> Reproduction:
    """Measures and checks what was run. Nothing is drawn yet."""
    paper = of.paper
    numbers = of.measure(runs)
    verdicts = of.judge(runs)
    reals = _testbed_numbers(of, runs, real) if real else {}
    told = {name: (result.experiment, result.seeds) for name, result in runs.results.items()}
    meta = runs[paper.first].meta
    sections = of.sections(runs, numbers)
    return Reproduction(
        paper=paper,
        version=meta["version"],
        folder=folder,
        numbers=[
            Number(said, numbers[said.id], _weakest(told[said.experiment][0]), reals.get(said.id))
            for said in paper.numbers
        ],
        claims=[Claim(said, verdicts[said.id]) for said in paper.claims],
        sections=[section(paper, runs.results, real), *sections] if real else sections,
        drawings=[],
        settings=_settings({name: experiment for name, (experiment, _) in told.items()}),
        seeds=max((seeds for _, seeds in told.values()), key=len),
        versions=_versions(meta),
        extensions=bool(runs.extensions),
        name=_name(paper),
        runs=runs.results,
        testbed=real,
    )


def _testbed_numbers(of: Study, runs: Runs, real: TestbedRuns) -> dict[str, TestbedNumber]:
    """The same measures, with other runs in the place of the simulated ones."""
    numbers = [number for number in of.paper.numbers if number.experiment in real.runs]
    found, matched = (
        of.measure(runs.with_results(those), numbers) for those in (real.valid, real.matched)
    )
    return {
        said.id: TestbedNumber.of(
            real.runs[said.experiment],
            found[said.id],
            matched[said.id] if said.experiment in real.matched else None,
        )
        for said in numbers
    }


def _figures(of: Study, reproduction: Reproduction, runs: Runs) -> list[PaperFigure]:
    """All figures for which there are runs, those of real packets too."""
    drawn = [figure for figure in of.figures if _has_all(figure, runs)]
    real = reproduction.testbed
    if real is None:
        return drawn
    return [*drawn, *testbed_figures.figures_of(drawn, reproduction.numbers, real)]


def _with_figures(
    reproduction: Reproduction, drawn: Sequence[PaperFigure], drawings: Sequence[Drawing]
) -> Reproduction:
    sections = testbed_figures.beside(reproduction.sections, drawn)
    return replace(reproduction, drawings=drawings, sections=sections)


def draw_figures(of: Study, figures: Sequence[str], out: Path, options: RunOptions) -> list[Path]:
    """Runs what some figures need and draws them; returns the files without their suffix.

    Raises:
        DumbbellError: If there is no such figure.
    """
    paper, folder = of.paper, out / of.paper.id
    chosen = [_figure(of, figure) for figure in figures]
    needed = {experiment for figure in chosen for experiment in figure.experiments}
    wanted = [one for one in paper.planned.values() if one.id in needed]
    experiments = _experiments(paper, wanted, options)
    results = SavedResults(folder / "runs", list(experiments))
    _run_all(paper, experiments, results, folder / "runs", options)
    extensions = [template for template in paper.extensions if template.id in needed]
    runs = of.runs(results, _run_extensions(of, extensions, folder, options))
    _draw_all(paper, chosen, runs, folder, options, {})
    return [folder / figure.file for figure in chosen]


def figure_of(of: Study, figure: str, folder: Path) -> Figure:
    """Draws a figure of a paper from the runs that are in the folder of its reproduction.

    Raises:
        DumbbellError: If there is no such figure, or a run that it needs is not there.
    """
    from dumbbell.figures import styled

    if figure.endswith(testbed_figures.SUFFIX):
        return _testbed_figure_of(of, figure.removesuffix(testbed_figures.SUFFIX), folder)
    drawn, paper = _figure(of, figure), of.paper
    extensions = {template.id for template in paper.extensions}.intersection(drawn.experiments)
    names = [name for name in drawn.experiments if name not in extensions]
    kept = _kept(folder, extensions)
    if len(kept) < len(extensions) or not all((folder / "runs" / name).is_dir() for name in names):
        place = shlex.quote(str(folder.parent))
        again = f"dumbbell reproduce {_name(paper)} --figure {drawn.id} --out {place}"
        raise DumbbellError(
            f"{folder}: has not all runs of {paper.id}/{drawn.id}; `{again}` does them"
        )
    with styled():
        return drawn.draw(of.runs(SavedResults(folder / "runs", names), kept))


def _testbed_figure_of(of: Study, figure: str, folder: Path) -> Figure:
    from dumbbell.figures import styled

    drawn, paper = _figure(of, figure), of.paper
    real = _testbed_of(folder, drawn.experiments)
    if not drawn.testbed or set(real.runs) != set(drawn.experiments):
        lacks = f"{folder}: has not all runs with real packets of {paper.id}/{drawn.id}"
        place = shlex.quote(str(folder.parent))
        again = f"dumbbell reproduce {_name(paper)} --backend linux --out {place}"
        raise DumbbellError(f"{lacks}; `{again}` does those that there can be")
    with styled():
        return testbed_figures.of_real(drawn, real).draw(of.runs({}))


def _figure(of: Study, figure: str) -> PaperFigure:
    known = {one.id: one for one in of.figures}
    if figure not in known:
        problem = f'{of.paper.id}: there is no figure "{figure}"'
        raise DumbbellError(f"{problem}; there are {', '.join(known)}")
    return known[figure]


def write_json(path: Path, content: object) -> None:
    """Writes JSON, complete or not at all. There is no NaN and no infinity in it."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _saved(paper: Paper, folder: Path) -> SavedResults:
    return SavedResults(folder / "runs", list(paper.planned))


def _kept(folder: Path, extensions: Iterable[str]) -> dict[str, pl.DataFrame]:
    """What is kept of extensions, by the id of their template."""
    places = {name: folder / f"{name}.parquet" for name in extensions}
    return {name: read_table(path) for name, path in places.items() if path.is_file()}


def _experiment(paper: Paper, wanted: ExperimentSpec, options: RunOptions) -> Experiment:
    experiment = Experiment.load(paper.folder / wanted.file, overrides=list(wanted.changes))
    changes = {"seeds": options.seeds, "duration": options.duration}
    return experiment.replace(**{key: value for key, value in changes.items() if value is not None})


def _experiments(
    paper: Paper, wanted: Iterable[ExperimentSpec], options: RunOptions
) -> dict[str, Experiment]:
    return {one.id: _experiment(paper, one, options) for one in wanted}


def _run_all(
    paper: Paper,
    experiments: Mapping[str, Experiment],
    results: SavedResults,
    folder: Path,
    options: RunOptions,
    finished: Callable[[str], None] = lambda _name: None,
) -> None:
    """Runs experiments; each result is saved as soon as it is there."""
    names = list(experiments)
    for name in names:
        check(folder / name, None, None, overwrite=True)

    each = run_each(
        list(experiments.values()),
        jobs=options.jobs,
        progress=titled(options.progress, paper.id),
    )
    for name, result in zip(names, each, strict=True):
        results.save(name, result)
        finished(name)


def _run_testbed(paper: Paper, folder: Path, options: RunOptions) -> None:
    """Runs with real packets what is not there yet."""
    measure(
        {
            name: (experiment, options.jobs or template.at_once)
            for name, (template, experiment) in _testbed_experiments(paper, options).items()
        },
        folder / "real",
        options.overwrite,
        titled(options.progress, paper.id),
    )


def _testbed_experiments(
    paper: Paper, options: RunOptions
) -> dict[str, tuple[TestbedTemplate, Experiment]]:
    return {
        one.id: (
            template,
            _experiment(paper, one, replace(options, seeds=options.seeds or template.runs)),
        )
        for template in paper.testbed
        for one in template.all(paper.planned)
    }


def _testbed(paper: Paper, folder: Path, options: RunOptions) -> TestbedRuns | None:
    """Runs with real packets, of now or before, and the matched simulations, which it runs."""
    experiments = _testbed_experiments(paper, options)
    there = [
        name
        for name, (_, experiment) in experiments.items()
        if is_there(folder / "real" / name, experiment)
    ]
    changed = {
        one.id: experiments[one.id][1]
        for template in paper.testbed
        for one in template.all(paper.planned)
        if one.id in there and one != paper.planned[one.id]
    }
    matched = folder / "alike"
    _run_all(paper, changed, SavedResults(matched, list(changed)), matched, options)
    return _testbed_of(folder, there) if there else None


def _testbed_of(folder: Path, names: Sequence[str]) -> TestbedRuns:
    """The results with real packets, and the matched simulations, that are in a folder."""
    places = ({name: folder / kind / name for name in names} for kind in ("real", "alike"))
    real, matched = (
        {name: Result.load(place) for name, place in there.items() if place.is_dir()}
        for there in places
    )
    return TestbedRuns(
        real, {name: with_seeds_of(real[name], simulated) for name, simulated in matched.items()}
    )


def _run_extensions(
    of: Study, templates: Sequence[ExperimentTemplate], folder: Path, options: RunOptions
) -> dict[str, pl.DataFrame]:
    paper, tables = of.paper, {}
    for template in templates:
        cells = list(template.all())
        each = run_each(
            [_experiment(paper, one, options) for one in cells],
            jobs=options.jobs,
            progress=titled(options.progress, f"{paper.id}: extensions"),
        )
        rows = [
            of.reduce(result).select(
                *(pl.lit(value).alias(setting) for setting, value in cell.chosen.items()),
                pl.all(),
            )
            for cell, result in zip(cells, each, strict=True)
        ]
        tables[template.id] = pl.concat(rows)
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / f"{template.id}.parquet") as file, disk_errors():
            tables[template.id].write_parquet(file)
    return tables


def _has_all(figure: PaperFigure, runs: Runs) -> bool:
    return all(name in runs.results or name in runs.extensions for name in figure.experiments)


def _draw_all(
    paper: Paper,
    figures: Sequence[PaperFigure],
    runs: Runs,
    folder: Path,
    options: RunOptions,
    drawn: Mapping[str, Picture],
) -> list[Drawing]:
    """Writes all figures; those that are not drawn yet are drawn first."""
    from dumbbell.papers.incremental import picture_of

    folder.mkdir(parents=True, exist_ok=True)
    drawings = []
    for done, figure in enumerate(figures):
        options.progress(f"{paper.id}: drawing", done / len(figures))
        picture = drawn.get(figure.id) or picture_of(figure, runs)
        picture.write(folder / figure.file)
        drawings.append(_drawing(paper, figure, picture.svg))
    return drawings


def _drawing(paper: Paper, figure: PaperFigure, svg: str) -> Drawing:
    return Drawing(figure, svg, _command(paper, figure.id))


def _command(paper: Paper, figure: str) -> str:
    """The command that makes a figure again."""
    is_real = figure == "real" or figure.endswith(testbed_figures.SUFFIX)
    how = "--backend linux" if is_real else f"--figure {figure}"
    return f"dumbbell reproduce {_name(paper)} {how}"


def _name(paper: Paper) -> str:
    """What a paper is called on the command line: its id, or its folder."""
    return shlex.quote(_place(paper).get("folder", paper.id))


def _settings(experiments: Mapping[str, Experiment]) -> list[Setting]:
    """What the paper does not specify, and for which experiments, each setting once."""
    found: dict[tuple[str, Settings, str], list[str]] = {}
    for name, experiment in experiments.items():
        for key, reason in experiment.assumed.items():
            found.setdefault((key, "assumed", reason), []).append(name)
        for key, reason in experiment.calibrated.items():
            found.setdefault((key, "calibrated", reason), []).append(name)
    return [Setting(*said, names) for said, names in found.items()]


def _weakest(experiment: Experiment) -> Settings:
    if experiment.calibrated:
        return "calibrated"
    return "assumed" if experiment.assumed else "stated"


def _versions(meta: Mapping[str, Any]) -> dict[str, str]:
    """What the runs were made with, and what drew them."""
    tools = {tool: version_of(tool) for tool in _TOOLS}
    return {"dumbbell": meta["version"], "Python": meta["machine"]["python"]} | tools
