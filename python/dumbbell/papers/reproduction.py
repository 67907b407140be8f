"""Running a paper's experiments, drawing its figures, writing its report."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from dumbbell.errors import DumbbellError, ResultError
from dumbbell.experiment import Experiment
from dumbbell.files import write_text
from dumbbell.papers.frame import (
    Claim,
    Drawing,
    Number,
    Paper,
    Reproduction,
    Runs,
    Setting,
)
from dumbbell.results import Result, check_replaceable
from dumbbell.runner import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from dumbbell.papers.frame import Concrete, Planned, Plate, Settings, Study

PAPERS: Final = ("staggered-start", "tein2", "f-bbrv2", "ar-udt", "dbac")
"""The ids of the papers; each has a folder of that name, with underscores, beside this file."""

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
        real_seeds: How often to run with real packets what of a paper can be; 0 for not at all.
    """

    jobs: int | None
    seeds: int | None
    duration: str | None
    progress: Callable[[str, float], None]
    real_seeds: int = 0


def load(paper: str) -> Paper:
    """What a paper says, by its id.

    Raises:
        DumbbellError: If there is no such paper.
    """
    if paper not in PAPERS:
        raise DumbbellError(f'there is no paper "{paper}"; there are {", ".join(PAPERS)}')
    return Paper.load(home(paper))


def reproduce_paper(paper: Paper, out: Path, effort: Effort, *, beyond: bool) -> Reproduction:
    """Reproduces one paper into ``out/ID``; see `dumbbell.papers.reproduce`."""
    from dumbbell.report import write_paper

    study, folder = _study(paper), out / paper.id
    wanted = [e for plan in paper.experiments if not plan.beyond for e in plan.all()]
    runs = Runs(
        _run_all(paper, wanted, folder, effort),
        _run_beyond(paper, [plan for plan in paper.experiments if plan.beyond], folder, effort)
        if beyond
        else {},
    )
    real = _run_real(paper, [one for one in wanted if one.id in paper.real], folder, effort)
    plates = [plate for plate in study.PLATES if _has_all(plate, runs)]
    drawings = _draw_all(paper, plates, runs, folder, effort)
    reproduction = _conclude(paper, runs, drawings, folder, real)
    write_json(folder / "results.json", reproduction.as_json())
    write_paper(reproduction)
    return reproduction


def reopen(folder: Path) -> Reproduction:
    """Reads a reproduction that was written into a folder, without running anything.

    Raises:
        DumbbellError: If it is not one, or lacks a run or a figure.
    """
    paper = load(json.loads((folder / "results.json").read_text(encoding="utf-8"))["paper"])
    plans = {
        beyond: [p for p in paper.experiments if p.beyond is beyond] for beyond in (False, True)
    }
    wanted = [one.id for plan in plans[False] for one in plan.all()]
    kept = {plan.id: folder / f"{plan.id}.parquet" for plan in plans[True]}
    runs = Runs(
        {name: Result.load(folder / "runs" / name) for name in wanted},
        {name: pl.read_parquet(path) for name, path in kept.items() if path.is_file()},
    )
    plates = [plate for plate in _study(paper).PLATES if _has_all(plate, runs)]
    missing = [plate.file for plate in plates if not (folder / f"{plate.file}.svg").is_file()]
    if missing:
        again = f"make it again with `dumbbell reproduce {paper.id} --figure {missing[0][7:]}`"
        raise DumbbellError(f"{folder}: lacks {missing[0]}.svg; {again}")
    drawings = [
        _drawing(paper, plate, (folder / f"{plate.file}.svg").read_text(encoding="utf-8"))
        for plate in plates
    ]
    real = {
        name: Result.load(folder / "real" / name)
        for name in paper.real
        if (folder / "real" / name).is_dir()
    }
    return _conclude(paper, runs, drawings, folder, real)


def _conclude(
    paper: Paper,
    runs: Runs,
    drawings: Sequence[Drawing],
    folder: Path,
    real: Mapping[str, Result],
) -> Reproduction:
    """Measures and checks what was run."""
    study = _study(paper)
    findings = study.examine(runs)
    # The same measures, with real runs in the place of the simulated ones.
    reals = study.examine(Runs({**runs.results, **real}, runs.beyond)).numbers if real else {}
    first = runs[paper.first].meta
    return Reproduction(
        paper=paper,
        version=first["version"],
        folder=folder,
        numbers=[
            Number(
                said,
                findings.numbers[said.id],
                _weakest(runs[said.experiment].experiment),
                reals[said.id] if said.experiment in real else None,
            )
            for said in paper.numbers
        ],
        claims=[Claim(said, findings.claims[said.id]) for said in paper.claims],
        sections=study.sections(runs),
        drawings=drawings,
        settings=_settings({name: result.experiment for name, result in runs.results.items()}),
        seeds=max((result.seeds for result in runs.results.values()), key=len),
        versions=_versions(first),
        beyond=bool(runs.beyond),
        runs=runs.results,
        real=real,
    )


def draw_figures(paper: Paper, figures: Sequence[str], out: Path, effort: Effort) -> list[Path]:
    """Runs what some figures need and draws them; returns the files without their suffix.

    Raises:
        DumbbellError: If there is no such figure.
    """
    folder = out / paper.id
    plates = [_plate(paper, figure) for figure in figures]
    needed = {experiment for plate in plates for experiment in plate.experiments}
    plans = [plan for plan in paper.experiments if not plan.beyond]
    wanted = [one for plan in plans for one in plan.all() if one.id in needed]
    beyond = [plan for plan in paper.experiments if plan.beyond and plan.id in needed]
    runs = Runs(
        _run_all(paper, wanted, folder, effort),
        _run_beyond(paper, beyond, folder, effort),
    )
    _draw_all(paper, plates, runs, folder, effort)
    return [folder / plate.file for plate in plates]


def figure_of(paper: Paper, figure: str, folder: Path) -> Figure:
    """Draws a figure of a paper from the runs that are in the folder of its reproduction.

    Raises:
        DumbbellError: If there is no such figure, or a run that it needs is not there.
    """
    from dumbbell.figures import styled

    plate = _plate(paper, figure)
    beyond = {plan.id for plan in paper.experiments if plan.beyond}
    kept = {name: folder / f"{name}.parquet" for name in beyond.intersection(plate.experiments)}
    places = {name: folder / "runs" / name for name in plate.experiments if name not in beyond}
    if not all(path.exists() for path in (*kept.values(), *places.values())):
        again = f"dumbbell reproduce {paper.id} --figure {plate.id} --out {folder.parent}"
        raise DumbbellError(
            f"{folder}: has not all runs of {paper.id}/{plate.id}; `{again}` does them"
        )
    runs = Runs(
        {name: Result.load(place) for name, place in places.items()},
        {name: pl.read_parquet(path) for name, path in kept.items()},
    )
    with styled():
        return plate.draw(runs)


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


def home(paper: str) -> Path:
    """The folder of a paper."""
    return Path(__file__).parent / paper.replace("-", "_")


def _study(paper: Paper) -> Study:
    return cast("Study", import_module(f"dumbbell.papers.{paper.id.replace('-', '_')}"))


def _experiment(paper: Paper, wanted: Concrete, effort: Effort) -> Experiment:
    file = home(paper.id) / wanted.file
    experiment = Experiment.load(file, overrides=list(wanted.changes))
    changes = {"seeds": effort.seeds, "duration": effort.duration}
    return experiment.replace(**{key: value for key, value in changes.items() if value is not None})


def _run_all(
    paper: Paper, wanted: Sequence[Concrete], folder: Path, effort: Effort
) -> dict[str, Result]:
    places = {one.id: folder / "runs" / one.id for one in wanted}
    for place in places.values():
        check_replaceable(place)
    experiments = [_experiment(paper, one, effort) for one in wanted]
    results = run_all(
        experiments,
        jobs=effort.jobs,
        progress=lambda share: effort.progress(f"{paper.id}: simulating", share),
    )
    for result, place in zip(results, places.values(), strict=True):
        result.save(place)
    return dict(zip(places, results, strict=True))


def _run_real(
    paper: Paper, wanted: Sequence[Concrete], folder: Path, effort: Effort
) -> dict[str, Result]:
    """Runs with real packets, one at a time; a run that is there already is not made again."""
    if not effort.real_seeds:
        return {}
    once = replace(effort, seeds=effort.real_seeds)
    experiments = {one.id: _experiment(paper, one, once) for one in wanted}
    places = {name: folder / "real" / name for name in experiments}
    missing = [name for name in experiments if not _is_there(places[name], experiments[name])]
    for name in missing:
        check_replaceable(places[name])
        (result,) = run_all(
            [experiments[name]],
            jobs=effort.jobs or 1,
            backend="linux",
            retry_spoiled=1,
            progress=partial(effort.progress, f"{paper.id}: {name} with real packets"),
        )
        result.save(places[name])
    return {name: Result.load(place) for name, place in places.items()}


def _is_there(place: Path, experiment: Experiment) -> bool:
    try:
        found = Result.load(place).experiment
    except ResultError:
        return False
    return found.seed_list == experiment.seed_list and found.duration == experiment.duration


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
        tables[plan.id].write_parquet(folder / f"{plan.id}.parquet")
    return tables


def _labels(cell: Concrete) -> Iterable[pl.Expr]:
    return (pl.lit(value).alias(setting) for setting, value in cell.chosen.items())


def _has_all(plate: Plate, runs: Runs) -> bool:
    return all(name in runs.results or name in runs.beyond for name in plate.experiments)


def _draw_all(
    paper: Paper, plates: Sequence[Plate], runs: Runs, folder: Path, effort: Effort
) -> list[Drawing]:
    from dumbbell.figures import save, styled

    folder.mkdir(parents=True, exist_ok=True)
    drawings = []
    for done, plate in enumerate(plates):
        effort.progress(f"{paper.id}: drawing", done / len(plates))
        with styled():
            svg = save(plate.draw(runs), folder / plate.file)
        drawings.append(_drawing(paper, plate, svg))
    return drawings


def _drawing(paper: Paper, plate: Plate, svg: str) -> Drawing:
    return Drawing(plate, svg, f"dumbbell reproduce {paper.id} --figure {plate.id}")


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
