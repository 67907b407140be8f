"""From a file with ``[sweep]`` to the runs that it asks for, each known by what decides it."""

from __future__ import annotations

import hashlib
import json
import math
import random
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell.engine.build import engine
from dumbbell.errors import ExperimentError, QuantityError, in_file, shown, unknown
from dumbbell.experiment import toml
from dumbbell.experiment.environment import read_trace
from dumbbell.experiment.model import MOST_SEEDS, Experiment, assign, beside
from dumbbell.sweeps.axes import Axis, find_axes, parse_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dumbbell.sweeps.axes import Value

MOST_RUNS: Final = 1_000_000
"""The greatest number of runs in one sweep."""

COMBINE: Final = ("grid", "zip", "random", "latin-hypercube")
"""How the axes of one ``[sweep]`` table are combined."""

RUN_METRICS: Final = (
    "throughput",
    "goodput",
    "utilisation",
    "queue_delay_mean",
    "queue_delay_p95",
    "retransmission_share",
    "jain",
    "dropped",
    "lost",
)
"""What a run is judged by."""

METRICS: Final = (*RUN_METRICS, "data_packets", "events")
"""What ``runs`` has of every run."""

TAKEN: Final = frozenset({"run", "point", "seed", "seeds"} | set(METRICS))
"""The columns of ``runs`` and of what is printed of it that are no axes."""

_LAYOUT: Final = "2"
"""Changes when what is kept of a run, or how it is computed, changes."""

_PACKET_BITS: Final = 12_000

_EVERY_RUN: Final = 10_000
"""What a run costs beside its packets, in packets."""


@dataclass(frozen=True)
class Block:
    """One ``[sweep]`` table: some axes, and how they are combined.

    Attributes:
        combine: One of `COMBINE`.
        axes: The axes.
        points: How many points are drawn, if they are.
        seed: What they are drawn from.
    """

    combine: str
    axes: list[Axis]
    points: int
    seed: int

    @property
    def count(self) -> int:
        """How many points there are."""
        counts = [axis.count or 1 for axis in self.axes]
        if self.combine == "grid":
            return math.prod(counts)
        return counts[0] if self.combine == "zip" else self.points

    def all(self) -> list[tuple[Value, ...]]:
        """For every point the values of all axes; in a grid the last axis changes first."""
        if self.combine == "grid":
            return list(product(*(axis.all() for axis in self.axes)))
        if self.combine == "zip":
            return list(zip(*(axis.all() for axis in self.axes), strict=True))
        draw = random.Random(self.seed)
        shares = [[draw.random() for _ in self.axes] for _ in range(self.points)]
        if self.combine == "latin-hypercube":
            shares = _stratified(shares, draw)
        return [
            tuple(axis.draw(share) for axis, share in zip(self.axes, row, strict=True))
            for row in shares
        ]


def _stratified(shares: list[list[float]], draw: random.Random) -> list[list[float]]:
    """Of n points one in each n-th of every axis (McKay, Beckman and Conover, 1979)."""
    points = len(shares)
    columns = []
    for column in zip(*shares, strict=True):
        keys = [draw.random() for _ in column]
        strata = sorted(range(points), key=keys.__getitem__)
        columns.append([(at + share) / points for at, share in zip(strata, column, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Point:
    """A resolved experiment of a sweep, with the values of the axes that it has.

    Attributes:
        number: Its place in the sweep, from 0.
        values: The axes' columns.
        scenario: What the simulator takes, as JSON; its seed is to be replaced.
        cost: How much work a run is, about, in packets.
    """

    number: int
    values: tuple[float | str, ...]
    scenario: str
    cost: float

    def run(self, seed: int, *, series: bool) -> str:
        """The name of one run of it: a hash of all that decides what comes out."""
        facts = f"{_LAYOUT} {engine()} {series} {seed} {self.scenario}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sweep:
    """An experiment with axes along which it changes.

    Attributes:
        data: The content of the file without ``[sweep]``.
        blocks: The ``[sweep]`` tables, every point of one with every point of the others.
        text: The file's content, with what was laid over it.
        folder: Where the file lies.
    """

    data: dict[str, Any]
    blocks: list[Block]
    text: str
    folder: Path

    @classmethod
    def load(cls, path: str | Path, *, overrides: Sequence[str] = ()) -> Sweep:
        """Reads an experiment file with a ``[sweep]`` table.

        Args:
            path: The TOML file.
            overrides: Assignments that take precedence over the file, as for `Experiment.load`.

        Raises:
            ExperimentError: If the file cannot be read, or its axes are not valid.
        """
        with in_file(path):
            return _read(toml.parse_toml(toml.read_text(Path(path))), overrides, Path(path).parent)

    @classmethod
    def parse(cls, text: str, *, overrides: Sequence[str] = ()) -> Sweep:
        """Reads a sweep from the text of a file; see `load`."""
        return _read(toml.parse_toml(text), overrides, Path())

    @classmethod
    def of(cls, experiment: Experiment | str | Path, axes: dict[str, Any]) -> Sweep:
        """An experiment, or that of a file, with the content of a ``[sweep]`` table.

        Raises:
            ExperimentError: If the file cannot be read, or the axes are not valid.
        """
        if isinstance(experiment, Experiment):
            return _read(toml.parse_toml(experiment.to_toml()) | {"sweep": axes}, (), Path())
        with in_file(experiment):
            data = toml.parse_toml(toml.read_text(Path(experiment)))
            return _read(data | {"sweep": axes}, (), Path(experiment).parent)

    @property
    def axes(self) -> list[Axis]:
        """All axes."""
        return [axis for block in self.blocks for axis in block.axes]

    @property
    def names(self) -> list[str]:
        """The axes' names: those they are given, or the last parts of their keys if they differ.

        As in SQL, names that are the same in small letters do not differ.
        """
        short = [axis.name or axis.key.rpartition(".")[2] for axis in self.axes]
        small = [name.lower() for name in short]
        return [
            name if small.count(name.lower()) == 1 and name.lower() not in TAKEN else axis.key
            for name, axis in zip(short, self.axes, strict=True)
        ]

    @property
    def count(self) -> int:
        """How many points there are."""
        return math.prod(block.count for block in self.blocks)

    def seeds(self, seeds: int | list[int] | None = None) -> list[int]:
        """The seeds that every point is run with: these, or the file's."""
        said = self.data.get("seeds", 1) if seeds is None else seeds
        _check_seeds(said)
        chosen = list(range(1, said + 1)) if isinstance(said, int) else said
        if self.count * len(chosen) > MOST_RUNS:
            problem = f"would be {self.count * len(chosen):,} runs: {self.count:,} points with"
            problem = f"{problem} {len(chosen):,} seeds; the most is {MOST_RUNS:,}"
            raise ExperimentError(problem, key="sweep")
        return chosen

    def points(self) -> Iterator[Point]:
        """Every point, in order; the last axis changes first.

        Raises:
            ExperimentError: If the experiment is not valid at one of them.
        """
        axes = self.axes
        combined = product(*(block.all() for block in self.blocks))
        for number, parts in enumerate(combined):
            values = [value for part in parts for value in part]
            experiment = self._experiment(axes, values)
            cost = _cost(text := experiment.scenario(0))
            yield Point(number, tuple(value.column for value in values), text, cost)

    def _experiment(self, axes: list[Axis], values: list[Value]) -> Experiment:
        """The resolved experiment with these values."""
        data = dict(self.data)
        try:
            for axis, value in zip(axes, values, strict=True):
                data = assign(data, [f"{axis.key}={toml.inline(value.written)}"])
            data["seeds"], data["internals"] = 1, False
            return Experiment.from_content(beside(self.folder, data)).resolve()
        except ExperimentError as error:
            is_axis = error.key in {axis.key for axis in axes}
            key = f"sweep.{error.key}" if is_axis else error.key
            pairs = zip(axes, values, strict=True)
            others = [(axis.key, value.written) for axis, value in pairs if axis.key != error.key]
            at = ", ".join(f"{name} = {toml.inline(value)}" for name, value in others)
            problem = f"{error.problem} (at {at})" if others else error.problem
            raise ExperimentError(problem, key=key) from None


def _read(data: dict[str, Any], overrides: Sequence[str], folder: Path) -> Sweep:
    data = assign(data, list(overrides))
    _embed_traces(data, folder)
    text = toml.to_toml(data)
    said = data.pop("sweep", None)
    tables = said if isinstance(said, list) else [said]
    if said is None or not all(isinstance(table, dict) for table in tables):
        problem = "is missing" if said is None else f"{shown(said)} is not a table"
        example = '"link.NAME.rate" = ["10 Mbit/s", "100 Mbit/s"]'
        raise ExperimentError(f"{problem}; write [sweep] and below it axes: {example}", key="sweep")
    blocks = [_block(table) for table in tables]
    keys = [axis.key for block in blocks for axis in block.axes]
    for key in keys:
        if keys.count(key) > 1:
            raise ExperimentError("is an axis twice; write it once", key=f"sweep.{key}")
        if any(assignment.partition("=")[0].strip() == key for assignment in overrides):
            problem = "is an axis of the sweep, which would lay its values over this one"
            raise ExperimentError(f"{problem}; leave it out", key=f"--set {key}")
    return Sweep(data, blocks, text, folder)


def _check_seeds(seeds: object) -> None:
    valid = "write a count, such as 5, or a list of different whole numbers, such as [1, 2, 3]"
    chosen = seeds if isinstance(seeds, list) else range(seeds) if type(seeds) is int else []
    whole = all(type(seed) is int and 0 <= seed < 2**63 for seed in chosen)
    if not 1 <= len(chosen) <= MOST_SEEDS or not whole or len(set(chosen)) < len(chosen):
        problem = f"{shown(seeds)} are not seeds; {valid}; {MOST_SEEDS:,} at most"
        raise ExperimentError(problem, key="seeds")


def _embed_traces(data: dict[str, Any], folder: Path) -> None:
    """Puts the traces that links name in their place."""
    links = data.get("link")
    for number, link in enumerate(links if isinstance(links, list) else []):
        if isinstance(link, dict) and isinstance(link.get("trace"), str):
            try:
                link["trace"] = read_trace(str(folder / link["trace"]))
            except QuantityError as error:
                raise ExperimentError(str(error), key=f"link[{number}].trace") from None


def _block(table: dict[str, Any]) -> Block:
    table = dict(table)
    combine, points = table.pop("combine", "grid"), table.pop("points", None)
    seed = table.pop("seed", 1)
    if combine not in COMBINE:
        problem = unknown("way to combine axes", str(combine), list(COMBINE))
        raise ExperimentError(problem, key="sweep.combine")
    if type(seed) is not int or seed < 0:
        problem = f"{shown(seed)} is not a whole number; write one, such as 1"
        raise ExperimentError(problem, key="sweep.seed")
    axes = [parse_axis(key, said) for key, said in find_axes(table).items()]
    if not axes:
        example = '"link.NAME.rate" = ["10 Mbit/s", "100 Mbit/s"]'
        raise ExperimentError(f"has no axis; write one, such as {example}", key="sweep")
    drawn = combine in ("random", "latin-hypercube")
    _check_points(points, combine, drawn)
    if not drawn:
        for axis in axes:
            if axis.count is None:
                problem = "is a range without a number of points; write, for example, points = 5"
                raise ExperimentError(problem, key=f"sweep.{axis.key}")
    if combine == "zip" and len({axis.count for axis in axes}) > 1:
        counts = ", ".join(f"{axis.key} has {axis.count}" for axis in axes)
        problem = f"axes that are zipped need as many values each, but {counts}"
        raise ExperimentError(problem, key="sweep")
    block = Block(combine, axes, points or 0, seed)
    if block.count > MOST_RUNS:
        problem = f"has {block.count:,} points; the most is {MOST_RUNS:,}"
        raise ExperimentError(problem, key="sweep")
    return block


def _check_points(points: Any, combine: str, drawn: bool) -> None:
    if not drawn and points is not None:
        problem = f"is for points that are drawn, not for a {combine}; write it in the axes"
        raise ExperimentError(f"{problem} that are ranges", key="sweep.points")
    if drawn and (type(points) is not int or points < 1):
        problem = "is missing" if points is None else f"{shown(points)} is not 1 or more"
        raise ExperimentError(f"{problem}; write how many points to draw", key="sweep.points")


def _cost(text: str) -> float:
    """About how many packets a run is, as far as the rates of its links tell."""
    plain = json.loads(text)
    rates = [
        link["rate_bps"] or max((rate for _, rate in link["rates"] or ()), default=0)
        for link in plain["links"]
    ]
    return float(max(rates) * plain["duration_ns"] / 1e9 / _PACKET_BITS + _EVERY_RUN)
