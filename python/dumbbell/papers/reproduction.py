"""Running a paper's experiments, drawing its figures, writing its report."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from dumbbell.engine.runner import run_all
from dumbbell.errors import DumbbellError
from dumbbell.experiment.model import Experiment
from dumbbell.experiment.toml import whole, write_text
from dumbbell.papers import real_plates
from dumbbell.papers.frame import (
    Claim,
    Drawing,
    Number,
    Paper,
    Reproduction,
    Runs,
    Setting,
)
from dumbbell.papers.known import home, load
from dumbbell.papers.real import Real, RealNumber, is_there, like, measure, section
from dumbbell.results.result import Result
from dumbbell.results.storage import check
from dumbbell.results.tables import disk_errors, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from dumbbell.figures import Picture
    from dumbbell.papers.frame import Concrete, Planned, Plate, RealPlan, Settings, Study

_AT_ONCE: Final = 16
"""Runs beyond a paper that are in memory together."""

_TOOLS: Final = ("polars", "numpy", "matplotlib")


@dataclass(frozen=True)
class Effort:
    """How much to run, how fast, and whom to tell.

    Attributes:
        jobs: How many simulations to run at once; None for one a processor.
        seeds: How many seeds to run with; None for those of the experiments.
        duration: How long every run lasts; None for as long as the experiments say.
        progress: Is told what is being done, and what share of it is done (0 to 1).
        overwrite: Whether measurements with real packets that were made otherwise are replaced.
        real: Whether to run with real packets too what of a paper can be.
    """

    jobs: int | None
    seeds: int | None
    duration: str | None
    progress: Callable[[str, float], None]
    real: bool = False
    overwrite: bool = False


def reproduce_paper(paper: Paper, out: Path, effort: Effort, *, beyond: bool) -> Reproduction:
    """Reproduces one paper into ``out/ID``; see `dumbbell.papers.reproduce`."""
    from dumbbell.papers.meanwhile import Meanwhile
    from dumbbell.papers.page import write_paper

    folder = out / paper.id
    if effort.real:
        # First, as this is what a machine may be unable to do.
        _run_real(paper, folder, effort)
    experiments = _experiments(paper, paper.planned.values(), effort)
    meanwhile = Meanwhile(plates(paper), list(experiments.values()))
    runs = Runs(
        _run_all(paper, experiments, folder / "runs", effort, meanwhile.take),
        _run_beyond(paper, [plan for plan in paper.experiments if plan.beyond], folder, effort)
        if beyond
        else {},
    )
    reproduction = _conclude(paper, runs, folder, _real(paper, folder, effort))
    drawn = _plates(reproduction, runs)
    drawings = _draw_all(paper, drawn, runs, folder, effort, meanwhile.pictures)
    reproduction = _with_figures(reproduction, drawn, drawings)
    write_json(folder / "results.json", reproduction.as_json())
    write_paper(reproduction, told=meanwhile.told)
    return reproduction


def reopen(folder: Path) -> Reproduction:
    """Reads a reproduction that was written into a folder, without running anything.

    Raises:
        DumbbellError: If it is not one, or lacks a run or a figure.
    """
    paper = load(json.loads((folder / "results.json").read_text(encoding="utf-8"))["paper"])
    beyond = [plan.id for plan in paper.experiments if plan.beyond]
    kept = {name: folder / f"{name}.parquet" for name in beyond}
    runs = Runs(
        {name: Result.load(folder / "runs" / name) for name in paper.planned},
        {name: read_table(path) for name, path in kept.items() if path.is_file()},
    )
    there = [one.id for plan in paper.real for one in plan.all(paper.planned)]
    real = _real_of(folder, there)
    reproduction = _conclude(paper, runs, folder, real if real.runs else None)
    drawn = _plates(reproduction, runs)
    missing = [plate.file for plate in drawn if not (folder / f"{plate.file}.svg").is_file()]
    if missing:
        again = f"make it again with `{_command(paper, missing[0][7:])}`"
        raise DumbbellError(f"{folder}: lacks {missing[0]}.svg; {again}")
    drawings = [
        _drawing(paper, plate, (folder / f"{plate.file}.svg").read_text(encoding="utf-8"))
        for plate in drawn
    ]
    return _with_figures(reproduction, drawn, drawings)


def _conclude(paper: Paper, runs: Runs, folder: Path, real: Real | None) -> Reproduction:
    """Measures and checks what was run. Nothing is drawn yet."""
    study = _study(paper)
    numbers = study.measure(runs)
    verdicts = study.judge(runs, numbers)
    reals = _real_numbers(paper, runs, real) if real else {}
    first = runs[paper.first].meta
    sections = study.sections(runs)
    return Reproduction(
        paper=paper,
        version=first["version"],
        folder=folder,
        numbers=[
            Number(
                said,
                numbers[said.id],
                _weakest(runs[said.experiment].experiment),
                reals.get(said.id),
            )
            for said in paper.numbers
        ],
        claims=[Claim(said, verdicts[said.id]) for said in paper.claims],
        sections=[section(paper, runs.results, real), *sections] if real else sections,
        drawings=[],
        settings=_settings({name: result.experiment for name, result in runs.results.items()}),
        seeds=max((result.seeds for result in runs.results.values()), key=len),
        versions=_versions(first),
        beyond=bool(runs.beyond),
        runs=runs.results,
        real=real,
    )


def _real_numbers(paper: Paper, runs: Runs, real: Real) -> dict[str, RealNumber]:
    """The same measures, with other runs in the place of the simulated ones."""
    study = _study(paper)
    found, alike = (
        study.measure(Runs({**runs.results, **those}, runs.beyond))
        for those in (real.sound, real.alike)
    )
    return {
        said.id: RealNumber.of(
            real.runs[said.experiment],
            found[said.id],
            alike[said.id] if said.experiment in real.alike else None,
        )
        for said in paper.numbers
        if said.experiment in real.runs
    }


def _plates(reproduction: Reproduction, runs: Runs) -> list[Plate]:
    """All figures for which there are runs, those of real packets too."""
    drawn = [plate for plate in plates(reproduction.paper) if _has_all(plate, runs)]
    if reproduction.real is None:
        return drawn
    return [*drawn, *real_plates.plates(drawn, reproduction.numbers, reproduction.real)]


def _with_figures(
    reproduction: Reproduction, drawn: Sequence[Plate], drawings: Sequence[Drawing]
) -> Reproduction:
    sections = real_plates.beside(reproduction.sections, drawn)
    return replace(reproduction, drawings=drawings, sections=sections)


def draw_figures(paper: Paper, figures: Sequence[str], out: Path, effort: Effort) -> list[Path]:
    """Runs what some figures need and draws them; returns the files without their suffix.

    Raises:
        DumbbellError: If there is no such figure.
    """
    folder = out / paper.id
    chosen = [_plate(paper, figure) for figure in figures]
    needed = {experiment for plate in chosen for experiment in plate.experiments}
    wanted = [one for one in paper.planned.values() if one.id in needed]
    beyond = [plan for plan in paper.experiments if plan.beyond and plan.id in needed]
    runs = Runs(
        _run_all(paper, _experiments(paper, wanted, effort), folder / "runs", effort),
        _run_beyond(paper, beyond, folder, effort),
    )
    _draw_all(paper, chosen, runs, folder, effort, {})
    return [folder / plate.file for plate in chosen]


def figure_of(paper: Paper, figure: str, folder: Path) -> Figure:
    """Draws a figure of a paper from the runs that are in the folder of its reproduction.

    Raises:
        DumbbellError: If there is no such figure, or a run that it needs is not there.
    """
    from dumbbell.figures import styled

    if figure.endswith(real_plates.SUFFIX):
        return _real_figure_of(paper, figure.removesuffix(real_plates.SUFFIX), folder)
    plate = _plate(paper, figure)
    beyond = {plan.id for plan in paper.experiments if plan.beyond}
    kept = {name: folder / f"{name}.parquet" for name in beyond.intersection(plate.experiments)}
    places = {name: folder / "runs" / name for name in plate.experiments if name not in beyond}
    if not all(path.exists() for path in (*kept.values(), *places.values())):
        again = f"dumbbell reproduce {paper.id} --figure {plate.id} --out {_quoted(folder.parent)}"
        raise DumbbellError(
            f"{folder}: has not all runs of {paper.id}/{plate.id}; `{again}` does them"
        )
    runs = Runs(
        {name: Result.load(place) for name, place in places.items()},
        {name: read_table(path) for name, path in kept.items()},
    )
    with styled():
        return plate.draw(runs)


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


def _real_figure_of(paper: Paper, figure: str, folder: Path) -> Figure:
    from dumbbell.figures import styled

    plate = _plate(paper, figure)
    real = _real_of(folder, plate.experiments)
    if not plate.real or set(real.runs) != set(plate.experiments):
        lacks = f"{folder}: has not all runs with real packets of {paper.id}/{plate.id}"
        again = f"dumbbell reproduce {paper.id} --backend linux --out {_quoted(folder.parent)}"
        raise DumbbellError(f"{lacks}; `{again}` does those that there can be")
    with styled():
        return real_plates.of_real(plate, real).draw(Runs({}, {}))


def plates(paper: Paper) -> Sequence[Plate]:
    """The figures of a paper."""
    return _study(paper).PLATES


def _plate(paper: Paper, figure: str) -> Plate:
    known = {plate.id: plate for plate in plates(paper)}
    if figure not in known:
        problem = f'{paper.id}: there is no figure "{figure}"'
        raise DumbbellError(f"{problem}; there are {', '.join(known)}")
    return known[figure]


def write_json(path: Path, content: object) -> None:
    """Writes JSON, complete or not at all. There is no NaN and no infinity in it."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _study(paper: Paper) -> Study:
    return cast("Study", import_module(f"dumbbell.papers.{paper.id.replace('-', '_')}"))


def _experiment(paper: Paper, wanted: Concrete, effort: Effort) -> Experiment:
    file = home(paper.id) / wanted.file
    experiment = Experiment.load(file, overrides=list(wanted.changes))
    changes = {"seeds": effort.seeds, "duration": effort.duration}
    return experiment.replace(**{key: value for key, value in changes.items() if value is not None})


def _experiments(paper: Paper, wanted: Iterable[Concrete], effort: Effort) -> dict[str, Experiment]:
    return {one.id: _experiment(paper, one, effort) for one in wanted}


def _run_all(
    paper: Paper,
    experiments: Mapping[str, Experiment],
    folder: Path,
    effort: Effort,
    finished: Callable[[str, Result], None] = lambda _name, _result: None,
) -> dict[str, Result]:
    names = list(experiments)
    for name in names:
        check(folder / name, None, None, overwrite=True)
    results = run_all(
        list(experiments.values()),
        jobs=effort.jobs,
        progress=lambda share: effort.progress(f"{paper.id}: simulating", share),
        finished=lambda place, result: finished(names[place], result),
    )
    for name, result in zip(names, results, strict=True):
        result.save(folder / name, overwrite=True)
    return dict(zip(names, results, strict=True))


def _run_real(paper: Paper, folder: Path, effort: Effort) -> None:
    """Runs with real packets what is not there yet."""
    measure(
        {
            name: (experiment, effort.jobs or plan.at_once)
            for name, (plan, experiment) in _real_experiments(paper, effort).items()
        },
        folder / "real",
        effort.overwrite,
        lambda what, share: effort.progress(f"{paper.id}: {what}", share),
    )


def _real_experiments(paper: Paper, effort: Effort) -> dict[str, tuple[RealPlan, Experiment]]:
    return {
        one.id: (plan, _experiment(paper, one, replace(effort, seeds=effort.seeds or plan.runs)))
        for plan in paper.real
        for one in plan.all(paper.planned)
    }


def _real(paper: Paper, folder: Path, effort: Effort) -> Real | None:
    """What is there of real packets, now or from before, and what is like it in the simulator."""
    experiments = _real_experiments(paper, effort)
    there = [
        name
        for name, (_, experiment) in experiments.items()
        if is_there(folder / "real" / name, experiment)
    ]
    changed = {
        one.id: experiments[one.id][1]
        for plan in paper.real
        for one in plan.all(paper.planned)
        if one.id in there and one != paper.planned[one.id]
    }
    _run_all(paper, changed, folder / "alike", effort)
    return _real_of(folder, there) if there else None


def _real_of(folder: Path, names: Sequence[str]) -> Real:
    """The results of real packets, and those like them, that are in a folder."""
    places = ({name: folder / kind / name for name in names} for kind in ("real", "alike"))
    real, alike = (
        {name: Result.load(place) for name, place in there.items() if place.is_dir()}
        for there in places
    )
    return Real(real, {name: like(simulated, real[name]) for name, simulated in alike.items()})


def _run_beyond(
    paper: Paper, plans: Sequence[Planned], folder: Path, effort: Effort
) -> dict[str, pl.DataFrame]:
    study, tables = _study(paper), {}
    for plan in plans:
        rows, cells = [], list(plan.all())
        for done in range(0, len(cells), _AT_ONCE):
            effort.progress(f"{paper.id}: beyond the paper", done / len(cells))
            some = cells[done : done + _AT_ONCE]
            results = run_all([_experiment(paper, cell, effort) for cell in some], jobs=effort.jobs)
            rows += [
                study.reduce(result).select(*_labels(cell), pl.all())
                for cell, result in zip(some, results, strict=True)
            ]
        tables[plan.id] = pl.concat(rows)
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / f"{plan.id}.parquet") as file, disk_errors():
            tables[plan.id].write_parquet(file)
    return tables


def _labels(cell: Concrete) -> Iterable[pl.Expr]:
    return (pl.lit(value).alias(setting) for setting, value in cell.chosen.items())


def _has_all(plate: Plate, runs: Runs) -> bool:
    return all(name in runs.results or name in runs.beyond for name in plate.experiments)


def _draw_all(
    paper: Paper,
    plates: Sequence[Plate],
    runs: Runs,
    folder: Path,
    effort: Effort,
    drawn: Mapping[str, Picture],
) -> list[Drawing]:
    """Writes all figures; those that are not drawn yet are drawn first."""
    from dumbbell.papers.meanwhile import picture_of

    folder.mkdir(parents=True, exist_ok=True)
    drawings = []
    for done, plate in enumerate(plates):
        effort.progress(f"{paper.id}: drawing", done / len(plates))
        picture = drawn.get(plate.id) or picture_of(plate, runs)
        picture.write(folder / plate.file)
        drawings.append(_drawing(paper, plate, picture.svg))
    return drawings


def _drawing(paper: Paper, plate: Plate, svg: str) -> Drawing:
    return Drawing(plate, svg, _command(paper, plate.id))


def _command(paper: Paper, figure: str) -> str:
    """What makes a figure again."""
    is_real = figure == "real" or figure.endswith(real_plates.SUFFIX)
    how = "--backend linux" if is_real else f"--figure {figure}"
    return f"dumbbell reproduce {paper.id} {how}"


def _settings(experiments: dict[str, Experiment]) -> list[Setting]:
    """What the paper leaves unsaid, and for which experiments, each setting once."""
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


def _versions(meta: dict[str, Any]) -> dict[str, str]:
    """What the runs were made with, and what drew them."""
    tools = {tool: version_of(tool) for tool in _TOOLS}
    return {"dumbbell": meta["version"], "Python": meta["machine"]["python"]} | tools
