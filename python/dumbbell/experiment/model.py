"""Experiments: which links, which flows, which algorithms, for how long.

An experiment is a TOML file or the same thing built in Python:

>>> from dumbbell import Experiment, Flow, Link
>>> Experiment(
...     links=[Link(name="bottleneck", rate="100 Mbit/s", delay="50 ms", queue="0.5 BDP")],
...     flows=[Flow(name="first", cc="cubic"), Flow(name="second", cc="cubic", start="30 s")],
...     duration="150 s",
... )
<Experiment: 2 flows over 1 link for 150 s>

Quantities stay as they are written, with their units, and are checked at once. Reading, checking
and resolving are done by the Rust crate `dumbbell-experiment`.
"""

from __future__ import annotations

import dataclasses
import html
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dumbbell import _core
from dumbbell.errors import ExperimentError, in_file, printable
from dumbbell.experiment.environment import Environment
from dumbbell.experiment.files import read_text
from dumbbell.experiment.linux_algorithms import is_of_linux
from dumbbell.experiment.quantities import as_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

StackValue = bool | int | str
"""What an option of a stack or of UDT can be."""

MOST_SEEDS: Final = 100_000
"""The maximum number of seeds of one experiment."""


@contextmanager
def experiment_errors(environment: Environment | None = None) -> Iterator[None]:
    """Turns what the Rust crate finds into `ExperimentError`.

    An interrupt while it read through `environment` is raised again.
    """
    try:
        yield
    except _core.InvalidExperimentError as error:
        if environment is not None and environment.interrupts:
            raise environment.interrupts[0] from None
        found: list[tuple[str, int, str, str]] = error.args[0]
        errors = [
            ExperimentError(problem, key=key, file=file, line=line)
            for file, line, key, problem in found
        ]
        raise ExperimentError.together(errors) from None


@dataclass(frozen=True, kw_only=True, repr=False)
class _Table:
    """A table of an experiment file. It does not change; `replace` gives another one."""

    def __post_init__(self) -> None:
        """Checks every key; raises `ExperimentError` with all that are wrong."""
        with experiment_errors():
            kind = type(self).__name__.lower()
            vars(self).update(json.loads(_core.check_table(kind, as_json(self.keys()))))

    @classmethod
    def _of(cls, keys: Mapping[str, Any]) -> Self:
        """The table with these keys, which are all, and were checked."""
        table = cls.__new__(cls)
        vars(table).update(keys)
        return table

    def keys(self) -> dict[str, Any]:
        """Every key and its value."""
        return {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}

    def replace(self, **changes: Any) -> Self:
        """The same with some keys changed, checked again.

        Raises:
            ExperimentError: If it is not valid any more.
        """
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        """The keys that do not have their default."""
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._given().items())})"

    def _given(self) -> dict[str, Any]:
        given = self.keys()
        for part in dataclasses.fields(self):
            factory = part.default_factory
            if given[part.name] == (part.default if factory is dataclasses.MISSING else factory()):
                del given[part.name]
        return given


@dataclass(frozen=True, kw_only=True, repr=False)
class Link(_Table):
    """A link in one direction: packets wait, leave at the rate, and arrive after the delay.

    Attributes:
        name: Its name.
        template: A kind of path that stands for the keys below, such as ``"leo"``; keys that are
            given beside it take precedence.
        rate: Its rate, such as ``"100 Mbit/s"``; None for no limit.
        rates: Instead of a rate, a schedule: pairs of time and rate.
        trace: Instead of a rate, a file in mahimahi's format, or its list of times in ms.
        burst: The depth of a token bucket, such as ``"15 kB"``.
        delay: The one-way propagation delay, such as ``"50 ms"``.
        reroutes: From when on packets take a route with another delay: pairs of time and delay.
        queue: How much may wait: ``"0.5 BDP"``, ``"100 packets"``, ``"64 kB"``, ``"10 ms"`` or
            ``"unlimited"``, or ``"none"``, with which `burst` makes a policer.
        aqm: Active queue management, such as ``"fq_codel(target=5 ms)"``.
        loss: The probability that a packet is lost, or ``"gilbert-elliott(p=1e-4, r=0.3)"``, or
            a schedule: pairs of time and probability.
        jitter: The maximum of a random extra delay that keeps the order, such as ``"5 ms"``.
        reorder: Which share of packets is delayed and for how long, such as ``"1 % by 10 ms"``.
        medium: A medium that it shares, such as ``"csma(stations=2)"``.
    """

    name: str
    template: str | None = None
    rate: str | None = None
    rates: list[list[str]] | None = None
    trace: str | list[int] | None = None
    burst: str | None = None
    delay: str = "0 s"
    reroutes: list[list[str]] | None = None
    queue: str | None = None
    aqm: str | None = None
    loss: float | str | list[list[str | float]] = 0.0
    jitter: str = "0 s"
    reorder: str | None = None
    medium: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class _FlowAsGiven(_Table):
    """The first keys of a flow, as they are given; a type checker takes `Flow` for what is read."""

    name: str | None = None
    cc: str | type | Mapping[str, object]


@dataclass(frozen=True, kw_only=True, repr=False)
class Flow(_FlowAsGiven):
    """A flow of data from a sender to a receiver, or several alike.

    Attributes:
        name: Its name; ``flow-1``, ``flow-2``... if it has none.
        cc: The congestion control algorithm: ``"cubic"``, ``"cubic(slow_start=standard)"``,
            ``"my_file.py:MyCC"``, a class of `dumbbell.cc`, or a table,
            ``{"name": "cubic", "slow_start": "standard"}``. When it is read it is a text.
        path: The links that its data crosses.
        paths: Instead of `path`, the paths of the subflows of a multipath connection.
        scheduler: Which subflow takes the next packets; for flows with `paths`.
        return_paths: For each of `paths` the links that acknowledgements cross.
        rtts: For each of `paths` its base RTT; twice the delay of the path if not given.
        return_path: The links that its acknowledgements cross.
        sender: The host that sends its data, for queues that share a rate between hosts; one of
            its own if not given.
        receiver: The host that receives its data; one of its own if not given.
        dscp: The DiffServ code point of its packets in both directions, such as ``"EF"``;
            best effort if not given.
        rtt: The round-trip time without queues; twice the delay of its path if not given.
        start: When it starts, such as ``"30 s"``.
        stop: When it stops; None for never.
        bytes: The amount of data that it sends, such as ``"10 MB"``; None for no limit.
        arrivals: When transfers arrive, if the flow consists of many, each by a connection of its
            own: ``"poisson(load=0.5)"``, ``"poisson(every=20 ms)"``, ``"periodic(every=1 s)"``, or
            a list of times after `start`; None for one transfer.
        sizes: How large they are: ``"exponential(mean=100 kB)"``, ``"web-search"``, or a list of
            pairs of a size and the share of transfers that are no larger.
        app: Its application: ``"requests(think=1 s)"`` with `sizes`, ``"video(buffer=30 s)"``, or
            ``"on-off(on=1 s, off=2 s)"`` with `app_rate`; None for data without a pause.
        ladder: The rates of the video of ``app="video"``.
        app_rate: The rate at which its application writes; None for no limit.
        app_rates: Instead of `app_rate`, a schedule: pairs of time after its start and rate, or a
            file with a time (s) and a rate (bit/s) in each line.
        repeat: How many such flows there are.
        transport: ``"tcp"``, ``"udt"``, ``"quic"``, ``"rtp"`` for media, whose maximum rate
            `app_rate` is, ``"udp"``, which sends at its `app_rate` whatever happens, or a bulk
            transfer protocol, ``"sabul"``, ``"rbudp"`` or ``"tsunami"``; with these four `cc` is
            ``"none"``.
        transport_options: Options of UDT, QUIC, media or a bulk transfer protocol.
        stack: Its TCP stack; None for the experiment's. Over QUIC ``"quinn"`` or ``"noq"``; None
            for that of `cc`, or ``"quinn"``.
        stack_options: Options of its stack.
        log: Whether each of its packets is recorded.
        command: With real packets, the program that is its sender.
        server: With real packets, the program that is its receiver.
    """

    if TYPE_CHECKING:

        @property  # type: ignore[misc]  # overrides what is given
        def cc(self) -> str:
            """The algorithm's text."""

    path: list[str] | None = None
    paths: list[list[str]] | None = None
    scheduler: str | None = None
    return_paths: list[list[str]] | None = None
    rtts: list[str] | None = None
    return_path: list[str] = field(default_factory=list)
    sender: str | None = None
    receiver: str | None = None
    dscp: str | None = None
    rtt: str | None = None
    start: str = "0 s"
    stop: str | None = None
    bytes: str | None = None
    arrivals: str | list[str] | None = None
    sizes: str | list[list[str | float]] | None = None
    app: str | None = None
    ladder: list[str] | None = None
    app_rate: str | None = None
    app_rates: str | list[list[str]] | None = None
    repeat: int = 1
    transport: str = "tcp"
    transport_options: dict[str, StackValue] = field(default_factory=dict)
    stack: str | None = None
    stack_options: dict[str, StackValue] = field(default_factory=dict)
    log: bool = False
    command: str | None = None
    server: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Experiment(_Table):
    """Links, the flows that cross them, and how long and how often to run them.

    Attributes:
        title: What the experiment is about.
        duration: How long it runs, such as ``"60 s"``.
        seeds: How many seeds to run it with, or which ones.
        sample: The interval at which the flows are sampled; ``"100 ms"`` if not given, or more if
            this gave over a million rows.
        warmup: How much of the start does not count in metrics and in the table of flows.
        internals: Whether the algorithms' internals are sampled; None for true with at most 100
            flows.
        start_jitter: How much later, at random, each flow may start.
        stack: The TCP stack of flows that name none.
        stack_options: Options of that stack.
        links: The links.
        flows: The flows.
        assumed: Settings that a paper does not state: key and reason.
        calibrated: Settings found by matching a paper: key and reason.
        sources: Custom algorithms and the SHA-256 of their source; written when the experiment is
            resolved, and then it runs with no other.
    """

    title: str = ""
    duration: str
    seeds: int | list[int] = 1
    sample: str | None = None
    warmup: str | None = None
    internals: bool | None = None
    start_jitter: str = "0 s"
    stack: str = "linux"
    stack_options: dict[str, StackValue] = field(default_factory=dict)
    links: list[Link]
    flows: list[Flow]
    assumed: dict[str, str] = field(default_factory=dict)
    calibrated: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks that the parts fit together; raises `ExperimentError` with all that do not."""
        self._hold(_read(self.content()))

    @classmethod
    def load(cls, path: str | Path, *, overrides: list[str] | None = None) -> Experiment:
        """Reads an experiment file.

        Args:
            path: The TOML file.
            overrides: Assignments that take precedence over the file, such as ``"duration=10 s"``,
                ``"link.bottleneck.queue=1 BDP"`` or ``"flow.*.cc=bbr"``.

        Raises:
            ExperimentError: If the file cannot be read or is not a valid experiment. The text
                names file, line, key, and what would be valid, for all errors of the file.
        """
        with in_file(path):
            text = read_text(Path(path))
        with experiment_errors():
            parsed = _core.ParsedExperiment.from_toml(text, str(path), overrides or [])
        return cls._from(parsed.located(Environment(Path(path).parent)))

    @classmethod
    def parse(
        cls, text: str, *, overrides: list[str] | None = None, folder: Path | None = None
    ) -> Experiment:
        """Reads an experiment from the text of a file, which lies in `folder`; see `load`."""
        with experiment_errors():
            parsed = _core.ParsedExperiment.from_toml(text, "", overrides or [])
        return cls._from(parsed.located(Environment(folder)) if folder else parsed)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Experiment:
        """Reads an experiment from the content of a file, with the tables ``link`` and ``flow``.

        Raises:
            ExperimentError: If it is not valid.
        """
        return cls._from(_read(content))

    @classmethod
    def _from(cls, parsed: _core.ParsedExperiment) -> Experiment:
        experiment = cls.__new__(cls)
        experiment._hold(parsed)
        return experiment

    def _hold(self, parsed: _core.ParsedExperiment) -> None:
        keys = json.loads(parsed.to_json())
        keys["links"] = [Link._of(link) for link in keys.pop("link")]
        keys["flows"] = [Flow._of(flow) for flow in keys.pop("flow")]
        vars(self).update(keys, _rust=parsed)

    @property
    def _parsed(self) -> _core.ParsedExperiment:
        parsed: _core.ParsedExperiment = vars(self)["_rust"]
        return parsed

    def __reduce__(self) -> tuple[Any, ...]:
        """Experiments are copied and sent to other processes by their content."""
        return Experiment.from_content, (self.content(),)

    def content(self) -> dict[str, Any]:
        """What a file of the experiment holds, every key included."""
        keys = self.keys()
        for name, kind in (("links", Link), ("flows", Flow)):
            tables = keys.pop(name)
            if isinstance(tables, list | tuple):
                tables = [table.keys() if isinstance(table, kind) else table for table in tables]
            keys[name.removesuffix("s")] = tables
        return keys

    def to_toml(self, *, defaults: bool = False) -> str:
        """Writes the experiment as the text of a file; `parse` gives an equal experiment.

        Args:
            defaults: Whether keys that have their default value are written too.
        """
        return self._parsed.to_toml(defaults)

    def override(self, *assignments: str) -> Experiment:
        """The experiment with keys overridden as on the command line: ``"flow.first.cc=bbr"``.

        Raises:
            ExperimentError: If there is no such key, or the value is not valid.
        """
        with experiment_errors():
            parsed = self._parsed.overridden(list(assignments))
        return Experiment._from(parsed)

    def resolve(self) -> Experiment:
        """The experiment with every default written out and every queue in plain units.

        Resolving twice changes nothing more.

        Raises:
            ExperimentError: If its parts do not fit together: a queue in BDP at a link without a
                rate, a base RTT shorter than the path, more samples than fit in memory, a trace or
                a custom algorithm that does not exist.
        """
        environment = Environment()
        with experiment_errors(environment):
            resolved = Experiment._from(self._parsed.resolve(environment))
        vars(resolved)["_is_resolved"] = True
        return resolved

    @property
    def _whole(self) -> Experiment:
        """The experiment as resolved: itself, if it is."""
        return self if "_is_resolved" in vars(self) else self.resolve()

    def scenario(self, seed: int) -> str:
        """What the simulator takes for one seed, as JSON.

        Raises:
            ExperimentError: As `resolve`.
        """
        return self._whole._parsed.scenario(seed)

    def mahimahi_traces(self) -> dict[str, str]:
        """The rates of the links as traces of mahimahi, by the links' names.

        Links without a rate have none.

        Raises:
            ExperimentError: As `resolve`.
        """
        traces = self._whole._parsed.mahimahi_traces()
        return {link: text for link, text in traces if text is not None}

    def warnings(self, *, is_simulated: bool = True) -> list[str]:
        """Sentences on flows that ignore marks and, if simulated, on settings without effect."""
        return self._parsed.warnings(is_simulated)

    def payloads(self) -> list[int]:
        """Bytes of data in a full packet of each of `flows`."""
        return self._parsed.payloads()

    @property
    def seed_list(self) -> list[int]:
        """The seeds, one by one: a count n stands for 1 to n."""
        return list(range(1, self.seeds + 1)) if isinstance(self.seeds, int) else self.seeds

    @property
    def flow_count(self) -> int:
        """How many flows there are, copies counted."""
        return sum(flow.repeat for flow in self.flows)

    def flow_names(self) -> list[list[str]]:
        """For each of `flows`, the names of its copies: ``name``, or ``name-1``, ``name-2``..."""
        return self._parsed.flow_names()

    def flow_paths(self, flow: Flow) -> list[list[str]]:
        """The links that each subflow of `flow` crosses.

        A plain flow has one path: its own, or all links in order.
        """
        if flow.paths is not None:
            return flow.paths
        return [[link.name for link in self.links] if flow.path is None else flow.path]

    def __repr__(self) -> str:
        """The experiment in a line."""
        flows, links = self.flow_count, len(self.links)
        title = f"{printable(self.title)}, " if self.title else ""
        counts = f"{flows} flow{'s' * (flows > 1)} over {links} link{'s' * (links > 1)}"
        return f"<Experiment: {title}{counts} for {self.duration}>"

    def _repr_html_(self) -> str:
        """Links and flows as tables, for notebooks."""
        whole = f"<p>{html.escape(repr(self)[1:-1])}</p>"
        for name, tables in (("Links", self.links), ("Flows", self.flows)):
            rows = [table._given() for table in tables]
            keys = list(dict.fromkeys(key for row in rows for key in row))
            lines = ["".join(f"<th>{key}</th>" for key in keys)]
            for row in rows:
                cells = (html.escape(str(row.get(key, ""))) for key in keys)
                lines.append("".join(f"<td>{cell}</td>" for cell in cells))
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            whole += f"<table><caption>{name}</caption>{body}</table>"
        return whole


def without_options(cc: str) -> str:
    """An algorithm without its options: "cubic" for "cubic(slow_start=standard)"."""
    if is_of_linux(cc):
        return cc
    return cc.partition("(")[0].strip()


def stack_of(cc: str) -> str | None:
    """The QUIC stack that an algorithm is of: "quinn" for "quinn:cubic"."""
    name, colon, _ = cc.partition(":")
    return name if colon and name in [stack for stack, _, _ in _core.quic_stacks()] else None


def _read(content: Mapping[str, Any]) -> _core.ParsedExperiment:
    with experiment_errors():
        return _core.ParsedExperiment.from_json(as_json(dict(content)))
