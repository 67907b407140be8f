"""What a paper says, read from its ``paper.toml``: numbers, claims, experiments, figures.

`Paper.load` checks the file; the errors name file, key and what would be valid.
"""

from __future__ import annotations

import shlex
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dumbbell.errors import DumbbellError, unknown
from dumbbell.metrics.sequential import FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Settings = Literal["stated", "assumed", "calibrated"]
"""Whether all settings behind a number are the paper's, or the weakest kind among them."""

_AsList = BeforeValidator(lambda said: said if isinstance(said, list) else [said])
"""A list, which the file may write as its only element."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @property
    def others(self) -> dict[str, Any]:
        """The keys that are no fields, where there may be such: options or settings."""
        return self.model_extra or {}


class Measure(_Model, extra="allow"):
    """What is measured in every run of an experiment. Other keys are the options of the metric."""

    metric: str  # ``throughput``, ``ratio``, ``share``, ``gap``, ``jain``, or one of ``paper.py``
    limit: float | None = None  # where observation ends, for a metric that a run may not reach
    label: str = ""  # what a figure calls it
    look: str = ""  # the algorithm whose colour and marker it has in a figure
    # Published numbers that add up to the paper's, by their id, in which ``{setting}`` stands for a
    # value; where the paper has no single number.
    sum: list[str] = []

    def with_settings(self, settings: Mapping[str, str]) -> Measure:
        """The measure with ``{setting}`` in its options replaced by the value."""
        texts = {key: text for key, text in self.others.items() if isinstance(text, str)}
        return self.model_copy(update={k: text.format(**settings) for k, text in texts.items()})


class _Published(_Model):
    """What the paper measured: where it stands, in which experiment, and what measures it here."""

    id: str
    experiment: str
    where: str
    quantity: str
    unit: str
    measure: Measure | None = None


class PublishedNumber(_Published):
    """A number of the paper. Without a `measure` a function of ``paper.py`` computes it."""

    published: float
    # Whether the report shows measured over published: not for a difference, which may be near 0.
    ratio: bool = True

    @property
    def has_ratio(self) -> bool:
        """Whether measured over published is shown; there is none of a published 0."""
        return self.ratio and self.published != 0


class PublishedTable(_Published):
    """A table of the paper: a number for every combination of two settings.

    ``{setting}`` in `id`, `experiment`, `quantity` and `measure` stands for the value.
    """

    rows: dict[str, list[str]]  # the setting of the rows: its name and the values
    columns: dict[str, list[str]]
    published: list[list[float]]  # row by row
    heading: str = ""  # of the column of row names in the report
    row: str = ""  # what a row is called in the report
    column: str = ""
    digits: int | None = (
        None  # decimals in the report; 2 of plain ratios and 0 of others if not given
    )
    note: str = ""  # below the table

    def all(self) -> Iterator[PublishedNumber]:
        """Every number of the table, row by row; raises `ValueError` unless the count fits."""
        for row, numbers in zip(combinations(self.rows), self.published, strict=True):
            for column, number in zip(combinations(self.columns), numbers, strict=True):
                chosen = row | column
                yield PublishedNumber(
                    id=self.id.format(**chosen),
                    experiment=self.experiment.format(**chosen),
                    where=self.where,
                    quantity=self.quantity.format(**chosen),
                    unit=self.unit,
                    published=number,
                    measure=self.measure and self.measure.with_settings(chosen),
                )


def combinations(axes: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """Every combination of the values of some settings, the last setting fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


class Case(_Model, extra="allow"):
    """A row or a column of a comparison, or several. Other keys are settings.

    ``{setting}`` in `experiment` and `y` stands for the value. A setting may be a list: a row or a
    column for every combination, in whose `label` ``{setting}`` is what the value is called.
    """

    label: str
    experiment: str = ""  # in the place of that of the comparison, as `y` and `digits`
    y: Measure | None = None
    digits: int | None = None
    published: bool = False  # whether a row has the paper's numbers
    cells: list[str] = []  # a row as text, such as what a paper says in words


class Comparison(_Model):
    """A table of the report: a measure of an experiment for every row and column."""

    id: str  # for ``{table ID}`` in ``report.md``
    heading: str  # of the column of row names
    experiment: str  # of a cell, which is empty if the experiment lacks the flow
    y: Measure
    rows: list[Case]
    columns: list[Case]
    beside: str = ""  # the experiment whose published numbers stand beside the measured ones
    digits: int = 0
    interval: bool = False  # whether cells have their 95 % interval
    note: str = ""


class PublishedClaim(_Model):
    """A claim of the paper, and what is checked to confirm it."""

    id: str
    where: str
    text: str
    check: str
    reason: str = ""  # why it is not confirmed, in a sentence, where that is known


class _Template(_Model):
    """An experiment for every combination of the settings of `each`.

    ``{setting}`` in `id` and `set` stands for the value.
    """

    id: str
    set: list[str] = []  # assignments, as ``dumbbell run --set`` takes them
    each: dict[str, list[str]] = {}
    short: dict[str, str] = {}  # what values stand for in `set`, where `id` has shorter names

    def _all(self) -> Iterator[tuple[str, tuple[str, ...], dict[str, str]]]:
        """The id, the assignments and the settings of each, the last setting fastest."""
        for chosen in combinations(self.each):
            meant = {setting: self.short.get(value, value) for setting, value in chosen.items()}
            changes = tuple(change.format(**meant) for change in self.set)
            yield self.id.format(**chosen), changes, chosen


class ExperimentTemplate(_Template):
    """Experiments to run: a file of the paper's folder with assignments laid over it.

    A ``[short]`` at the top of ``paper.toml`` is for all of them that have none of their own. An
    What explains a result (`full`) runs only with ``--full``, with the seeds of its file; all else
    until it decides the paper's numbers and claims. So does what goes beyond the paper
    (`extension`); of its runs only rows by seed are kept, see `dumbbell.papers.reduce`.
    """

    file: str
    full: bool = False
    extension: bool = False

    def all(self) -> Iterator[ExperimentSpec]:
        """Every experiment that this stands for, in the order of `each`."""
        for name, changes, chosen in self._all():
            yield ExperimentSpec(name, self.file, changes, chosen, self)


class TestbedTemplate(_Template):
    """Experiments of a paper that the testbed runs too, with real packets.

    `set` has what a kernel, or the time that runs take, requires to be different. If it has any,
    the simulator runs the changed experiment too: real packets are compared with the same settings.
    """

    __test__ = False

    why: str = ""  # what is different, what is left out, and why
    runs: int = 3  # how often each is run
    at_once: int = 1  # how many runs go on at once; together they must not keep a machine busy

    def all(self, planned: Mapping[str, ExperimentSpec]) -> Iterator[ExperimentSpec]:
        """Every experiment that this stands for, of those that are planned, by their id."""
        for name, changes, _ in self._all():
            yield replace(planned[name], changes=planned[name].changes + changes)


class Scenario(_Model):
    """A scenario of the paper in which ``dumbbell benchmark`` tries other algorithms."""

    title: str
    file: str  # an experiment file of the paper's folder
    set: list[str]  # assignments, in which ``{cc}`` stands for the algorithm
    flows: list[str]  # the flows that have the algorithm; they compete with the others


@dataclass(frozen=True)
class ExperimentSpec:
    """One experiment to run, and the values that its template's ``each`` has for it."""

    id: str
    file: str
    changes: tuple[str, ...]
    settings: Mapping[str, str]
    template: ExperimentTemplate = field(repr=False)

    @property
    def kept_as(self) -> str:
        """The id that its runs are kept by: of an extension that of its template, for all."""
        return self.template.id if self.template.extension else self.id


class Panel(_Model):
    """What one panel of a standard figure shows."""

    # Templates (``"delay-{cc}-{rtt}"``) or single experiments.
    experiments: Annotated[list[str], _AsList] = Field(validation_alias="experiment", default=[])
    where: dict[str, list[str]] = {}  # of which values of settings; all if not given
    x: str = ""  # the setting along the x axis: of curves and heat maps
    # The setting that has a curve, a group of bars or a bar for each of its values; of heat maps
    # the setting along the y axis.
    by: str = ""
    # What is measured; several give several curves or bars.
    measures: Annotated[list[Measure], _AsList] = Field(validation_alias="y", default=[])
    group: str = ""  # what a group of bars is called, if not `by`: ``"{cc}, {rtt} ms"``
    x_unit: float = 1.0  # what the setting along the x axis is divided by
    members: Literal["y", "by"] = "y"  # whether bars of a group are measures, or values of `by`
    # Of ``windows``: congestion windows (packets), or throughputs (Mbit/s, in windows of 1 s).
    series: Literal["cwnd", "throughput"] = "cwnd"
    flows: dict[str, str] = {}  # of ``windows``: the flows to show, and what they are called
    moments: list[list[float | str]] = []  # of ``windows``: the time in s, and a word or two
    published: bool = False  # whether the paper's numbers are shown beside the measured ones
    published_of: str = ""  # of which experiment those are, if not of the same: ``"pair-{cc}"``
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_scale: Literal["linear", "log", "log2"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    x_ticks: list[float] = []
    x_range: list[float] = Field(default=[], max_length=2)
    y_range: list[float] = Field(default=[], max_length=2)
    line: float | None = None  # a value of the y axis to mark with a line
    legend: int = 3  # how many entries of the legend stand side by side; 0 for no legend


class FigureSpec(Panel):
    """A figure: a standard one by its `kind`, or one that a function of ``paper.py`` draws."""

    id: str  # such as ``2a``; files and links begin with ``figure-``
    heading: str  # what it is
    caption: str = ""  # how to read it
    kind: Literal["curves", "bars", "intervals", "windows", "heat"] | None = None
    # Several panels, each with the keys in which it differs from the figure.
    changes: list[Panel] = Field(validation_alias="panels", default=[])
    panel_by: list[str] = []  # settings: a panel for every combination of their values
    columns: int = 0  # panels side by side; 0 for all of them
    wide: bool = False  # whether it takes the width of the page
    height: float = 0.0  # of a row of panels, inches
    # Whether it can be drawn of real packets too: not if it shows internals of algorithms, which a
    # kernel does not report, or has measured runs in it already.
    testbed: bool = True

    @property
    def panels(self) -> list[Panel]:
        """Its panels, each with what it has from the figure."""
        said = [{key: getattr(one, key) for key in one.model_fields_set} for one in self.changes]
        return [self.model_copy(update=change) for change in said] or [self]

    @property
    def file(self) -> str:
        """The name of its files, without the suffix."""
        return f"figure-{self.id}"


class Paper(_Model):
    """What a paper says; `folder` is where it is."""

    id: str
    title: str
    authors: list[str] = []
    venue: str = ""
    summary: str = ""  # what the paper did
    question: str = ""  # what it asks, in a sentence or two
    result: str = ""  # what came out here, in a sentence; with placeholders as in ``report.md``
    cover: str = ""  # the figure that the report and the index show first, if not the first one
    labels: dict[str, str] = {}  # what the paper calls algorithms and other values of settings
    looks: dict[str, str] = {}  # the algorithm whose colour and marker such a value has in figures
    # How many runs an experiment has at first, and at most, see `dumbbell.metrics.sequential`.
    min_seeds: int = Field(default=FIRST, ge=FIRST)
    max_seeds: int = Field(default=24, le=FIRST * 128)
    single_numbers: list[PublishedNumber] = Field(validation_alias="number", default=[])
    tables: list[PublishedTable] = Field(validation_alias="table", default=[])
    comparisons: list[Comparison] = Field(validation_alias="comparison", default=[])
    claims: list[PublishedClaim] = Field(validation_alias="claim", default=[])
    figures: list[FigureSpec] = Field(validation_alias="figure", default=[])
    experiments: list[ExperimentTemplate] = Field(validation_alias="experiment", min_length=1)
    testbed: list[TestbedTemplate] = []
    scenarios: list[Scenario] = Field(validation_alias="scenario", default=[])
    folder: Any = Field(default=None, exclude=True)

    @property
    def place(self) -> dict[str, str]:
        """Where it is, as ``results.json`` says; nothing if it is built in or installed."""
        from dumbbell.papers.registry import folders

        return {} if self.id in folders() else {"folder": str(self.folder.resolve())}

    @property
    def name(self) -> str:
        """What the command line calls it: its id, or its folder."""
        return shlex.quote(self.place.get("folder", self.id))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads the ``paper.toml`` of a paper's folder."""
        file = folder / "paper.toml"
        try:
            said = tomllib.loads(file.read_text("utf-8"))
        except OSError as error:
            raise DumbbellError(f"{file}: cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DumbbellError(f"{file}: is not TOML: {error}") from None
        short = said.pop("short", {})
        templates = said.get("experiment", [])
        if isinstance(templates, list) and isinstance(short, dict):
            said["experiment"] = [{"short": short} | one for one in templates]
        try:
            paper = cls.model_validate(said | {"folder": folder})
            paper._check_references()
        except ValidationError as error:
            raise DumbbellError(f"{file}: {_problem(error)}") from None
        except (KeyError, ValueError, IndexError) as error:
            raise DumbbellError(f"{file}: {error}") from None
        return paper

    def _check_references(self) -> None:
        """Raises `ValueError` where an id is used twice, or names nothing."""
        for kind, ids in (
            ("experiment", [s.id for t in self.experiments if not t.extension for s in t.all()]),
            ("number", [number.id for number in self.numbers]),
            ("claim", [claim.id for claim in self.claims]),
            ("figure", [figure.id for figure in self.figures]),
        ):
            twice = next((one for one in ids if ids.count(one) > 1), None)
            if twice:
                raise ValueError(f'{kind} "{twice}": the id is used twice; give each its own')
        for number in self.numbers:
            with within(f'number "{number.id}"'):
                require("experiment", number.experiment, self.planned)
        for figure in self.figures:
            with within(f'figure "{figure.id}"'):
                for panel in figure.panels:
                    self._check_panel(panel, figure.panel_by)
        for template in self.testbed:
            list(template.all(self.planned))

    def _check_panel(self, panel: Panel, panel_by: Iterable[str]) -> None:
        """Raises `ValueError` where a panel names something that is not there."""
        for name in panel.experiments:
            specs = self.specs([name])
            if not specs:
                templates = (one.id for one in self.experiments)
                require("experiment or [[experiment]]", name, templates)
            for key in filter(None, (panel.x, panel.by, *panel.where, *panel_by)):
                require(f"setting of {name}", key, (key for one in specs for key in one.settings))
            for number in (number for measure in panel.measures for number in measure.sum):
                for one in specs:
                    require("number", number.format(**one.settings), self.published)

    def specs(
        self, names: list[str], where: Mapping[str, list[str]] | None = None
    ) -> list[ExperimentSpec]:
        """The experiments that templates or ids stand for.

        `where` selects values of settings, and gives their order.
        """
        chosen = dict(where or {})
        found = [
            spec
            for template in self.experiments
            for spec in template.all()
            if (template.id in names or spec.id in names)
            and all(spec.settings.get(key) in values for key, values in chosen.items())
        ]
        found.sort(key=lambda one: [vs.index(one.settings[key]) for key, vs in chosen.items()])
        return found

    @cached_property
    def planned(self) -> dict[str, ExperimentSpec]:
        """The experiments of the paper itself, by their id: extensions are left out."""
        templates = (template for template in self.experiments if not template.extension)
        return {spec.id: spec for template in templates for spec in template.all()}

    @property
    def extensions(self) -> list[ExperimentTemplate]:
        """The experiments that go beyond the paper."""
        return [template for template in self.experiments if template.extension]

    @cached_property
    def numbers(self) -> list[PublishedNumber]:
        """All published numbers: the single ones, then those of the tables."""
        return [*self.single_numbers, *(number for table in self.tables for number in table.all())]

    @property
    def published(self) -> dict[str, float]:
        """The published values by the id of their number."""
        return {number.id: number.published for number in self.numbers}

    def published_as(
        self, experiment: str, measure: Measure, settings: Mapping[str, str] | None = None
    ) -> float | None:
        """The paper's number for a measure of an experiment with these settings, if it has one."""
        if measure.sum:
            return sum(self.published[name.format(**settings or {})] for name in measure.sum)
        for number in self.numbers:
            said = number.measure
            same = said and (said.metric, said.others) == (measure.metric, measure.others)
            if same and number.experiment == experiment:
                return number.published
        return None

    def label(self, value: str) -> str:
        """What the paper calls an algorithm or another value of a setting."""
        from dumbbell.figures import style_of

        return self.labels.get(value) or style_of(self.looks.get(value, value)).label

    def named(self, text: str, settings: Mapping[str, str]) -> str:
        """A text in which ``{setting}`` stands for what its value is called."""
        names = {key: self.labels.get(value, value) for key, value in settings.items()}
        return text.format(**names | {"cc": self.label(settings.get("cc", ""))})


@contextmanager
def within(where: str) -> Iterator[None]:
    """Says of an error where in the file it is; it becomes a `ValueError`."""
    try:
        yield
    except (LookupError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def require(kind: str, name: str, known: Iterable[str]) -> None:
    """Raises `LookupError` if no such thing is called `name`; the error has the `known` names."""
    names = list(dict.fromkeys(known))
    if name not in names:
        raise LookupError(unknown(kind, name, names or ["none"]))


def _problem(error: ValidationError) -> str:
    """The first error of the validator in a sentence: the key, and what is valid."""
    every = error.errors(include_url=False)
    first = next((one for one in every if one["type"] == "extra_forbidden"), every[0])
    path = first["loc"]
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    key = "".join(parts).removeprefix(".")
    if first["type"] == "extra_forbidden":
        table = get_args(_keys(Paper)[str(path[0])])[0] if len(path) > 1 else Paper
        known = _keys(Panel if "panels" in path else table)
        return f"{key}: {unknown('key', str(path[-1]), list(known))}"
    if first["type"] == "missing":
        return f"{key}: is missing"
    return f"{key}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"


def _keys(table: type[BaseModel]) -> dict[str, Any]:
    """The types of the values of a table in the file, by their keys."""
    fields = [(name, it) for name, it in table.model_fields.items() if not it.exclude]
    return {str(it.validation_alias or name): it.annotation for name, it in fields}
