"""From a file with ``[sweep]`` to the runs that it asks for, each known by what determines it."""

from __future__ import annotations

import hashlib
import json
import random
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, product
from math import prod
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dumbbell import _core
from dumbbell.engine.simulation import engine
from dumbbell.errors import ExperimentError, in_file
from dumbbell.experiment.environment import Environment
from dumbbell.experiment.files import read_text
from dumbbell.experiment.model import Experiment, experiment_errors
from dumbbell.experiment.quantities import as_json
from dumbbell.metrics import FRAME_METRICS, RUN_METRICS, TRANSFER_METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl

Axes = dict[str, Any] | list[dict[str, Any]]
"""The content of a ``[sweep]`` table, or of several."""

EFFORT: Final = ("data_packets", "events")  # the size of a run
METRICS: Final = (*RUN_METRICS, *EFFORT)  # the metrics in the table ``runs``


def measured(runs: pl.DataFrame) -> list[str]:
    """The metrics in a table ``runs``; some are only of transfers or of media."""
    more = (*TRANSFER_METRICS, *FRAME_METRICS)
    return [*METRICS, *(name for name in more if name in runs.columns)]


OF_SOME: Final = re.compile(r"(\w+) of (.+)")
"""A metric of some flows of a run, such as their share in the data that all flows delivered."""

_TAKEN: Final = frozenset({"run", "point", "seed", "seeds", *METRICS})
"""The columns of ``runs`` and of what is printed of it that are no axes."""

_SUMMARISED_BY: Final = (
    *("metrics/*.py", "results/tables.py", "experiment/capacity.py", "sweeps/work.py"),
)
"""The code that determines what is kept of a run."""


@cache
def build() -> str:
    """The engine and the code of the metrics, which determine the tables of a run's scenario."""
    package = Path(__file__).parents[1]
    files = [file for pattern in _SUMMARISED_BY for file in sorted(package.glob(pattern))]
    code = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    return f"{engine()}-{code.hexdigest()[:16]}"


@dataclass(frozen=True)
class Axis:
    """A key of an experiment that takes several values."""

    key: str  # the key, as for ``--set``: ``link.bottleneck.rate``, ``flow.*.cc``
    name: str  # its column
    # What its column counts: ``bit/s``, ``s``, ...; empty for numbers, None for text.
    unit: str | None


Values = tuple[float | str, ...]
"""The values of all axes at a point, as their columns have them."""


@dataclass(frozen=True)
class Point:
    """A resolved experiment of a sweep, with the values of the axes that it has."""

    number: int  # its place in the sweep, from 0
    values: Values
    scenario: str  # what the simulator takes for seed 0, as JSON
    # The resolved experiment, as JSON, if other seeds change more of the scenario than its seed.
    varied: str | None
    cost: float  # the approximate work of a run, in packets
    warnings: tuple[str, ...]  # sentences on settings without effect

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The flows of its scenario."""
        flows: list[dict[str, Any]] = json.loads(self.scenario)["flows"]
        return flows

    def scenario_of(self, seed: int) -> dict[str, Any]:
        """What the simulator takes for a seed."""
        text = self.scenario
        if self.varied is not None:
            text = _core.ParsedExperiment.from_json(self.varied).scenario(seed)
        scenario: dict[str, Any] = json.loads(text) | {"seed": seed}
        return scenario

    def run(self, seed: int, *, series: bool, machine: str = "") -> Run:
        """The run of it with a seed, with or without time series.

        `machine` identifies what runs it with real packets; the simulator is the empty text.
        """
        scenario = self.scenario if self.varied is None else json.dumps(self.scenario_of(seed))
        facts = f"{build()}{machine} {series} {seed} {scenario}"
        return Run(hashlib.sha256(facts.encode()).hexdigest()[:16], self, seed)


class Run(NamedTuple):
    """A run of a sweep; its name is a hash of everything that determines its tables."""

    name: str
    point: Point
    seed: int


class Sweep:
    """An experiment with axes along which it changes.

    Attributes:
        axes: The axes of all ``[sweep]`` tables.
        text: The text of a file that reads as the same sweep.
        seed_of: The one seed of a point, by its values of the axes; None if all points have the
            same seeds.
    """

    def __init__(self, text: str, name: str, overrides: Sequence[str], axes: Axes | None) -> None:
        """Reads the text of the file `name`; see `load`."""
        self.seed_of: Callable[[Values], int] | None = None
        self._environment = Environment(Path(name).parent)
        if axes is None:
            axes, overrides = _pinned(text, overrides)
        instead = None if axes is None else as_json(axes)
        with experiment_errors(self._environment):
            self._parsed = _core.ParsedSweep.from_toml(
                text, name, list(overrides), instead, self._environment
            )
        given = self._parsed.axes()
        names = _names([(key, name) for key, name, _ in given])
        self.axes = [
            Axis(key, axis, unit) for (key, _, unit), axis in zip(given, names, strict=True)
        ]
        self.text = self._parsed.to_toml()

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        overrides: Sequence[str] = (),
        axes: Axes | None = None,
    ) -> Sweep:
        """Reads an experiment file with a ``[sweep]`` table.

        Args:
            path: The TOML file.
            overrides: Assignments that take precedence over the file, as for `Experiment.load`. One
                of the key of an axis is the only value of the axis.
            axes: What takes the place of the table, or tables.

        Raises:
            ExperimentError: If the file cannot be read, or is not valid with the first values of
                its axes.
        """
        with in_file(path):
            text = read_text(Path(path))
        return cls(text, str(path), overrides, axes)

    @classmethod
    def parse(cls, text: str, *, overrides: Sequence[str] = ()) -> Sweep:
        """Reads a sweep from the text of a file; see `load`."""
        return cls(text, "", overrides, None)

    @classmethod
    def of(cls, experiment: Experiment | str | Path, axes: Axes) -> Sweep:
        """An experiment, or that of a file, with the content of a ``[sweep]`` table; see `load`."""
        if isinstance(experiment, Experiment):
            return cls(experiment.to_toml(), "", (), axes)
        return cls.load(experiment, axes=axes)

    def __repr__(self) -> str:
        """The sweep in a line."""
        points = f"{self.count:,} point{'s' * (self.count != 1)}"
        return f"<Sweep: {points} along {', '.join(axis.name for axis in self.axes)}>"

    @cached_property
    def count(self) -> int:
        """The number of points."""
        return prod(map(len, self._blocks()))

    def seeds(self, seeds: int | Sequence[int] | None = None) -> list[int]:
        """The seeds that every point is run with: these, or the file's.

        Raises:
            ExperimentError: If they are no seeds, or the runs are too many.
        """
        with experiment_errors():
            return self._parsed.seeds(None if seeds is None else as_json(seeds))

    def points(self) -> Iterator[Point]:
        """Every point, in order; the last axis changes first.

        Raises:
            ExperimentError: If the experiment is not valid at one of them.
        """
        for number, parts in enumerate(product(*self._blocks())):
            written, columns = zip(*(value for part in parts for value in part), strict=True)
            with experiment_errors(self._environment):
                scenario, varied, cost, said = self._parsed.point(written, self._environment)
            yield Point(number, columns, scenario, varied, cost, tuple(said))

    def experiment(self, number: int) -> Experiment:
        """The experiment of a point, with its own values of the axes.

        Raises:
            ExperimentError: If it is not valid.
        """
        parts = next(islice(product(*self._blocks()), number, None))
        written, columns = zip(*(value for part in parts for value in part), strict=True)
        overrides = [f"{axis.key}={value}" for axis, value in zip(self.axes, written, strict=True)]
        text, folder = without_sweep(self.text), self._environment.folder
        found = Experiment.parse(text, overrides=overrides, folder=folder)
        return found.replace(seeds=[self.seed_of(columns)]) if self.seed_of else found

    def only(self) -> Experiment:
        """The experiment of a sweep that has one point.

        Raises:
            ExperimentError: If an axis has several values.
        """
        columns = (zip(*part, strict=True) for part in self._blocks())
        values = [[written for written, _ in column] for part in columns for column in part]
        axes = zip(self.axes, values, strict=True)
        loose = {axis.key: given[0] for axis, given in axes if len(set(given)) > 1}
        if loose:
            sets = (quote(f"{key}={value.strip(chr(34))}") for key, value in loose.items())
            problem = f"has several values of {', '.join(loose)}; choose one of each, such as"
            advice = f"{' '.join(f'--set {one}' for one in sets)}, or run all with `dumbbell sweep`"
            raise ExperimentError(f"{problem} {advice}", key="sweep")
        return self.experiment(0)

    def listed(self, axis: int) -> list[float | str]:
        """The values that the file lists of an axis, as its column has them: 1.0 for "1000 ms"."""
        return [column for _, column in self._parsed.values(axis)]

    def draw(self, place: Sequence[float]) -> list[str]:
        """The values at a place on its axes (0 to less than 1 for each), as JSON."""
        return [self._parsed.draw(axis, share)[0] for axis, share in enumerate(place)]

    def _blocks(self) -> Iterator[list[tuple[tuple[str, float | str], ...]]]:
        """For every ``[sweep]`` table its points: each axis's value as JSON and in its column."""
        first = 0
        for combine, points, seed, count in self._parsed.blocks():
            axes = range(first, first + count)
            first += count
            match combine:
                case "grid":
                    yield list(product(*map(self._parsed.values, axes)))
                case "zip":
                    yield _once(zip(*map(self._parsed.values, axes), strict=True))
                case _:
                    shares = positions(combine, points, count, seed)
                    yield _once(tuple(map(self._parsed.draw, axes, row)) for row in shares)


def _once(points: Iterable[tuple[tuple[str, float | str], ...]]) -> list[Any]:
    """Every point once, be it there in several spellings."""
    return list({tuple(column for _, column in point): point for point in points}.values())


def _pinned(text: str, overrides: Sequence[str]) -> tuple[Axes | None, list[str]]:
    """The axes of a file with those that assignments name at one value, and other assignments.

    Without such an assignment the axes are None: those of the file.
    """
    tables: Any = None
    if overrides:
        with suppress(tomllib.TOMLDecodeError):  # told by who reads it all
            tables = tomllib.loads(text).get("sweep")
    parts = (one.partition("=") for one in overrides)
    pins = {key.strip(): _value(value.strip()) for key, _, value in parts}
    found: set[str] = set()
    for table in tables if isinstance(tables, list) else [tables]:
        if isinstance(table, dict):
            found |= _pin(table, pins, is_zip=table.get("combine") == "zip")
    left = [one for one in overrides if one.partition("=")[0].strip() not in found]
    return (tables if found else None), left


def _pin(
    table: dict[str, Any], pins: dict[str, Any], *, is_zip: bool, within: str = ""
) -> set[str]:
    """Gives axes of a ``[sweep]`` table the values of `pins`; returns the keys of these axes."""
    found = set()
    for part, axis in table.items():
        key = f"{within}{part}"
        ends = (axis.get(one) for one in ("values", "from", "to")) if isinstance(axis, dict) else ()
        is_axis = any(end is not None and not isinstance(end, dict) for end in ends)
        if isinstance(axis, dict) and not is_axis:
            found |= _pin(axis, pins, is_zip=is_zip, within=f"{key}.")
        elif isinstance(axis, dict | list) and key in pins:
            given: dict[str, Any] = axis if isinstance(axis, dict) else {"values": axis}
            # Axes that are zipped have as many values each.
            count = (len(given.get("values", ())) or given.get("points", 1)) if is_zip else 1
            name = {"name": given["name"]} if "name" in given else {}
            table[part] = {"values": [pins[key]] * count, **name}
            found.add(key)
    return found


def _value(text: str) -> Any:
    """The value of an assignment: TOML, or else text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def without_sweep(text: str) -> str:
    """The text of a file without its ``[sweep]`` tables: one experiment."""
    return re.sub(r"^\[\[?sweep\b.*?(?=^\[|\Z)", "", text, flags=re.M | re.S)


def positions(combine: str, points: int, axes: int, seed: int) -> list[list[float]]:
    """The positions of the drawn points on every axis, from 0 to less than 1."""
    if combine == "random":
        draw = random.Random(seed)
        return [[draw.random() for _ in range(axes)] for _ in range(points)]
    from scipy.stats import qmc  # half a second that other sweeps do not need

    drawn: list[list[float]] = qmc.LatinHypercube(axes, rng=seed).random(points).tolist()
    return drawn


def _names(given: list[tuple[str, str]]) -> list[str]:
    """The axes' names: those that the file gives, or the last parts of their keys if they differ.

    As in SQL, names that are the same in small letters do not differ.
    """
    short = [name or key.rpartition(".")[2] for key, name in given]
    small = [name.lower() for name in short]
    return [
        name if small.count(name.lower()) == 1 and name.lower() not in _TAKEN else key
        for name, (key, _) in zip(short, given, strict=True)
    ]
