"""The search for the worst path: random first, then an evolution of the worst, then the simplest.

The simulator has no noise, so that each path is run once. The paths of the dossier are the random
part. Differential evolution (Storn and Price, 1997; SciPy's) goes on from the worst of them within
the same ranges. What it finds is made simple: one key after the other takes the plain value of the
scenario's file, or a round one, as long as the measure stays beyond its limit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dumbbell.dossier.measures import PROPOSED, values, with_enough_flows
from dumbbell.dossier.scenarios import Scenario
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from dumbbell.dossier.bench import Bench
    from dumbbell.dossier.clauses import Measure
    from dumbbell.dossier.measures import Kind, Runs
    from dumbbell.dossier.scenarios import Place

_POPULATION: Final = 10
_SEED: Final = 9743
_MOST: Final = 1e9
_KEPT: Final = 0.8
"""A path that is simpler may have this share of the worst value, if no limit is exceeded."""


@dataclass(frozen=True)
class Path:
    """A path, and the measure on it.

    Attributes:
        settings: The keys of its experiment and their values.
        values: The measure, by algorithm; None where there is none.
    """

    settings: dict[str, Any]
    values: dict[str, float | None]


@dataclass(frozen=True)
class Worst:
    """What a search found.

    Attributes:
        worst: The path on which the algorithm does worst.
        simplest: A path as plain as possible that is beyond the limit too; without such a path,
            one with nearly the worst value.
        tried: How many paths were run: those of the dossier, of the search, and simpler ones.
    """

    worst: Path
    simplest: Path
    tried: int


class Search:
    """Looks for the paths on which an algorithm does worst by a measure."""

    def __init__(self, bench: Bench, measure: Measure, cc: str, references: Sequence[str]) -> None:
        """A search; `references` are the algorithms that a relative measure compares with."""
        self.bench, self.measure, self.cc = bench, measure, cc
        self.scenario = Scenario(measure.scenario)
        self.all = list(dict.fromkeys([cc, *references]))
        self.needed = self.all if measure.kind.is_relative else [cc]
        self.known: dict[str, float] = {}  # by the settings, written out

    def worst(self, start: Sequence[tuple[Place, float]], budget: int) -> Worst:
        """Searches from paths with known values on at most `budget` more; then makes it simple."""
        best = sorted(start, key=lambda one: -one[1])
        self.known |= {_named(self.scenario.settings(place)): value for place, value in start}
        place, found = best[0]
        if budget:
            place, found = self._evolve([place for place, _ in best[:_POPULATION]], budget)
        settings = self.scenario.settings(place)
        simple = self._simple(settings, found)
        both = [settings] if simple == settings else [settings, simple]
        paths = [
            Path(one, value) for one, value in zip(both, self._measure(both, self.all), strict=True)
        ]
        # What is simpler may be worse too.
        worst = max(paths, key=lambda path: _badness(path.values, self.cc))
        return Worst(worst, paths[-1], len(self.known))

    def _evolve(self, first: list[Place], budget: int) -> tuple[Place, float]:
        from scipy.optimize import differential_evolution  # half a second

        size = len(self.scenario.axes)
        draw = random.Random(_SEED)
        while len(first) < _POPULATION:
            first.append(tuple(draw.random() for _ in range(size)))

        end = len(self.known) + budget

        def badness(places: NDArray[np.float64]) -> NDArray[np.float64]:
            settings = [self.scenario.settings(tuple(map(float, place))) for place in places.T]
            return -np.array(self._values(settings, end - len(self.known)))

        found = differential_evolution(
            badness,
            [(0.0, 1.0 - 1e-9)] * size,
            init=np.array(first),
            maxiter=-(-budget // _POPULATION),
            polish=False,
            vectorized=True,
            updating="deferred",
            rng=np.random.default_rng(_SEED),
            tol=0.0,
        )
        return tuple(map(float, found.x)), float(-found.fun)

    def _values(self, settings: Sequence[dict[str, Any]], most: int | None = None) -> list[float]:
        """How bad paths are; of those that are not known `most` are run, and no other is bad."""
        new = {_named(one): one for one in settings if _named(one) not in self.known}
        names = list(new)[:most]
        if names:
            measured = self._measure([new[name] for name in names], self.needed)
            for name, value in zip(names, measured, strict=True):
                self.known[name] = _badness(value, self.cc)
        return [self.known.get(_named(one), -_MOST) for one in settings]

    def _measure(
        self, settings: Sequence[Mapping[str, Any]], algorithms: Sequence[str]
    ) -> list[dict[str, float | None]]:
        """The measure on each of some paths, by algorithm; none where it has too few flows.

        Paths that have the same values in several spellings, such as "1000 ms" and "1 s", are one.
        """
        sweep = self.scenario.at(settings, algorithms)
        paths = list(zip(*map(sweep.listed, range(len(self.scenario.axes))), strict=True))
        number = {path: at for at, path in enumerate(dict.fromkeys(paths))}
        kind = "all" if len(algorithms) > len(self.needed) else "own"
        place = f"search/{self.measure.id}-{kind}"
        runs = self.bench.run(sweep, place, series=self.measure.kind.of_series)
        found = _by_path(runs, self.measure.kind)
        return [found.get(number[path], {}) for path in paths]

    def _simple(self, settings: dict[str, Any], found: float) -> dict[str, Any]:
        """The same path with as many plain or round values as leave it bad.

        Each change is tried by itself; then the changes that leave it bad are made one after the
        other, as many as go together.
        """
        limit = self.measure.limit
        enough = limit if found > limit else _KEPT * found
        plain, choices = self.scenario.plain(), []
        for key, value in settings.items():
            others = [plain[key]] if key in plain else []
            others += [_round(value, digits) for digits in (1, 2)]
            choices += [(key, other) for other in dict.fromkeys(others) if other != value]
        alone = self._bad([settings | {key: other} for key, other in choices], enough)
        kept: dict[str, Any] = {}
        for (key, other), is_bad in zip(choices, alone, strict=True):
            if is_bad:
                kept.setdefault(key, other)
        changes = list(kept.items())
        steps = [settings | dict(changes[: count + 1]) for count in range(len(changes))]
        bad = self._bad(steps, enough)
        return next(
            (one for one, is_bad in zip(steps[::-1], bad[::-1], strict=True) if is_bad), settings
        )

    def _bad(self, paths: Sequence[dict[str, Any]], enough: float) -> list[bool]:
        """Whether the measure exceeds `enough` on paths; not on those that do not fit together."""
        valid = [one for one in paths if self._is_valid(one)]
        values = dict(zip(map(_named, valid), self._values(valid), strict=True))
        return [values.get(_named(one), enough) > enough for one in paths]

    def _is_valid(self, settings: Mapping[str, Any]) -> bool:
        """Whether the settings fit together: a queue in BDP holds at least a packet."""
        try:
            self.scenario.experiment(settings, self.cc).resolve()
        except DumbbellError:
            return False
        return True


def start_of(runs: Runs, kind: Kind, scenario: Scenario, cc: str) -> list[tuple[Place, float]]:
    """The paths of a design as places of a search, with the values of an algorithm there."""
    found = _by_path(runs, kind)
    places = scenario.places(runs.runs.filter(pl.col(PROPOSED) == cc).height)
    return [(place, _badness(found.get(path, {}), cc)) for path, place in enumerate(places)]


def _by_path(runs: Runs, kind: Kind) -> dict[int, dict[str, float | None]]:
    """A measure by path and algorithm, where it has as many flows as the measure needs."""
    found: dict[int, dict[str, float | None]] = {}
    table = with_enough_flows(runs, values(runs, kind), kind)
    for path, cc, value in table.select("path", "cc", "value").iter_rows():
        found.setdefault(path, {})[cc] = value
    return found


def _badness(measured: Mapping[str, float | None], cc: str) -> float:
    """What the search raises: without a value the most that there can be.

    A path of which the measure says nothing is the least that there can be.
    """
    if cc not in measured:
        return -_MOST
    value = measured[cc]
    return _MOST if value is None else value


def _named(settings: Mapping[str, Any]) -> str:
    return repr(sorted(settings.items()))


def _round(value: Any, digits: int) -> Any:
    """A value with few significant digits, its unit kept."""
    if isinstance(value, int):
        return int(float(f"{value:.{digits}g}"))
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    number, space, unit = str(value).partition(" ")
    try:
        return f"{float(f'{float(number):.{digits}g}'):g}{space}{unit}"
    except ValueError:
        return value
