"""The scenarios: experiment files whose ``[sweep]`` says which paths there are.

A file is a sweep like any other, and ``dumbbell sweep`` runs it. Its first table draws paths at
random from the ranges that paths have; the others are grids that every path has. The flows whose
names begin with ``proposed`` have the algorithm in question. Every path has a seed of its own, for
starts and losses: one seed for all would be one draw of these that all paths share.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.dossier.measures import PROPOSED
from dumbbell.experiment.model import Experiment, stack_of, without_options
from dumbbell.sweeps.plan import Sweep, positions, without_sweep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.sweeps.plan import Values

FOLDER: Final = Path(__file__).with_name("scenarios")

Place = tuple[float, ...]
"""A path: for each of the axes of a scenario where on it the path is, from 0 to less than 1."""


@dataclass(frozen=True)
class Scenario:
    """An experiment, and the paths on which it runs.

    Attributes:
        name: The name of its file, without the ending.
        folder: The folder of the file.
        overrides: Assignments to its keys, as for ``--set``.
        seed: The seed from which the paths are drawn.
    """

    name: str
    folder: Path = FOLDER
    overrides: tuple[str, ...] = ()
    seed: int = 1

    @property
    def file(self) -> Path:
        """Its file."""
        return self.folder / f"{self.name}.toml"

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the file holds."""
        return tomllib.loads(self._text)

    @property
    def title(self) -> str:
        """What it is about."""
        return str(self.content["title"])

    @cached_property
    def axes(self) -> dict[str, Any]:
        """The keys that differ between paths, and their ranges or values."""
        tables = self.content["sweep"]
        return {
            key: values
            for table in tables
            for key, values in table.items()
            if key not in ("combine", "points")
        }

    @property
    def grid(self) -> list[str]:
        """The columns of the axes that every path has with each of their values."""
        tables = self.content["sweep"][1:]
        return [
            values["name"] if isinstance(values, dict) else key.rpartition(".")[2]
            for table in tables
            for key, values in table.items()
        ]

    @property
    def beside(self) -> list[str]:
        """The algorithms of the flows that are beside, one after the other; often none."""
        given = [one["cc"] for one in self.content["flow"] if one["name"] == "existing"]
        axis = self.axes.get("flow.existing.cc")
        return list(axis["values"]) if axis else given

    def design(self, algorithms: Sequence[str], paths: int) -> Sweep:
        """The sweep over the first `paths` random paths, each with every one of `algorithms`."""
        first, *grids = self.content["sweep"]
        return self._seeded([first | {"points": paths, "seed": self.seed}, *grids], algorithms)

    def every(self, algorithms: Sequence[str]) -> Sweep:
        """The sweep over all points that the file lists, each with every one of `algorithms`."""
        return self._sweep(self.content["sweep"], algorithms)

    def at(self, settings: Sequence[Mapping[str, Any]], algorithms: Sequence[str]) -> Sweep:
        """The sweep over chosen paths, each with every one of `algorithms`."""
        axes = {}
        for key, values in self.axes.items():
            name = values.get("name") if isinstance(values, dict) else None
            listed = [one[key] for one in settings]
            axes[key] = {"values": listed, "name": name} if name else listed
        return self._seeded([{"combine": "zip"} | axes], algorithms)

    def seed_of(self, values: Values) -> int:
        """The seed of a point's path, whatever the algorithm and the place on the grids."""
        drawn = values[: len(self.axes) - len(self.grid)]
        return int.from_bytes(hashlib.sha256(repr(drawn).encode()).digest()[:4], "big")

    def places(self, count: int) -> list[Place]:
        """Where the first `count` paths of the design are, those of the grids included."""
        _, *grids = self.content["sweep"]
        axes = len(self.axes) - sum(len(table) for table in grids)
        sizes = [_size(values) for table in grids for values in table.values()]
        steps = [[(at + 0.5) / size for at in range(size)] for size in sizes]
        rows = -(-count // prod(sizes))
        drawn = positions("random", rows, axes, self.seed)
        return [(*row, *grid) for row in drawn for grid in product(*steps)][:count]

    def first(self, count: int) -> list[dict[str, Any]]:
        """The settings of the first `count` paths of the design."""
        return [self.settings(place) for place in self.places(count)]

    def settings(self, place: Place) -> dict[str, Any]:
        """The values of the axes at a place."""
        drawn = self._ranges.draw(place)
        return dict(zip(self.axes, map(json.loads, drawn), strict=True))

    def plain(self) -> dict[str, Any]:
        """The values that the axes' keys have in the file itself, where it gives one."""
        tables = {
            (kind, one["name"]): one for kind in ("link", "flow") for one in self.content[kind]
        }
        found = {}
        for key in self.axes:
            kind, _, rest = key.partition(".")
            name, _, last = rest.rpartition(".")
            here = [one for (a, b), one in tables.items() if a == kind and name in ("*", b)]
            value = here[0].get(last, 1 if last == "repeat" else None) if here else None
            if value is not None:
                found[key] = value
        return found

    def experiment(self, settings: Mapping[str, Any], cc: str, *, title: str = "") -> Experiment:
        """The experiment on one path with one algorithm."""
        chosen = dict(settings) | _algorithm(self._proposed, cc)
        overrides = [*self.overrides]
        overrides += [f"{key}={_assigned(value)}" for key, value in chosen.items()]
        found = Experiment.parse(without_sweep(self._text), overrides=overrides)
        if len(settings) == len(self.axes):
            found = found.replace(seeds=self.at([settings], [cc]).experiment(0).seeds)
        return found.replace(title=title) if title else found

    @cached_property
    def _ranges(self) -> Sweep:
        """All axes as one table, to draw from."""
        return self._read([{"combine": "random", "points": 1} | self.axes])

    def _read(self, tables: list[dict[str, Any]]) -> Sweep:
        # By its plain name: an algorithm's file is looked for from the current folder.
        return Sweep(self._text, self.file.name, self.overrides, tables)

    @cached_property
    def _text(self) -> str:
        return self.file.read_text("utf-8")

    @property
    def _proposed(self) -> list[str]:
        """The names of the flows that have the algorithm in question."""
        names = [str(flow["name"]) for flow in self.content["flow"]]
        return [name for name in names if name.startswith(PROPOSED)]

    def _seeded(self, tables: list[dict[str, Any]], algorithms: Sequence[str]) -> Sweep:
        """A sweep over paths, each with a seed of its own."""
        sweep = self._sweep(tables, algorithms)
        sweep.seed_of = self.seed_of
        return sweep

    def _sweep(self, tables: list[dict[str, Any]], algorithms: Sequence[str]) -> Sweep:
        columns = [_algorithm(self._proposed, cc) for cc in algorithms]
        last: dict[str, Any] = {"combine": "zip"}
        for key in columns[0]:
            name = PROPOSED if key == next(iter(columns[0])) else key[len("flow.") :]
            last[key] = {"values": [column[key] for column in columns], "name": name}
        return self._read([*tables, last])


def _algorithm(names: Sequence[str], cc: str) -> dict[str, str]:
    """The keys that give an algorithm, with its transport, to flows."""
    return {
        f"flow.{name}.{key}": value
        for name in names
        for key, value in (("cc", cc), ("transport", _transport(cc)))
    }


def _transport(cc: str) -> str:
    if is_for_media(cc):
        return "rtp"
    if stack_of(cc):
        return "quic"
    return "udt" if _core.needs_udt(cc) else "tcp"


def is_for_media(cc: str) -> bool:
    """Whether an algorithm controls media over RTP."""
    return without_options(cc) in _core.media_algorithms()


def _size(values: Any) -> int:
    """The number of values of an axis of a grid."""
    return len(values["values"] if isinstance(values, dict) else values)


def _assigned(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
