"""Experiments: which links, which flows, which algorithms, for how long.

An experiment is a TOML file or the same thing built in Python:

>>> from dumbbell import Experiment, Flow, Link
>>> Experiment(
...     links=[Link(name="bottleneck", rate="100 Mbit/s", delay="50 ms", queue="0.5 BDP")],
...     flows=[Flow(name="first", cc="cubic"), Flow(name="second", cc="cubic", start="30 s")],
...     duration="150 s",
... )  # doctest: +ELLIPSIS
Experiment(...)

Quantities stay as they are written, with their units, and are checked at once.
`dumbbell.experiment.resolve` turns them into the plain numbers that the simulator takes.
"""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import Any, Final, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from dumbbell.errors import ExperimentError, in_file
from dumbbell.experiment import toml, units, user_code
from dumbbell.experiment.messages import explain
from dumbbell.experiment.stacks import stack_fields, udt_fields, unknown
from dumbbell.experiment.types import (
    Algorithm,
    Aqm,
    Count,
    Loss,
    Name,
    Period,
    QueueSize,
    Rate,
    Rates,
    Reordering,
    Reroutes,
    Scheduler,
    Seeds,
    Size,
    StackOptions,
    Time,
    Trace,
    Transport,
    needs_udt,
)

MOST_FLOWS: Final = 1_000_000
"""The greatest number of flows in one experiment."""

MOST_PATHS: Final = 32
"""The greatest number of subflows of one flow."""


class _Model(BaseModel):
    """A table of an experiment file. Unknown keys are errors; values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    def __init__(self, **data: Any) -> None:
        """Checks every key; raises `ExperimentError` at the first that is wrong."""
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error, type(self)) from None

    def replace(self, **changes: Any) -> Self:
        """The same with some keys changed, checked again.

        Raises:
            ExperimentError: If it is not valid any more.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**fields | changes)


_STACK_OPTIONS: Final = AliasChoices("stack-options", "stack_options")
_TRANSPORT_OPTIONS: Final = AliasChoices("transport-options", "transport_options")


class Link(_Model):
    """A link in one direction: packets wait, leave at the rate, and arrive after the delay."""

    name: Name = Field(description='the link\'s name, such as "bottleneck"')
    rate: Rate | None = Field(None, description='a rate such as "100 Mbit/s"; without it, no limit')
    rates: Rates | None = Field(
        None,
        description="instead of a rate, from when on which, such as "
        '[["0 s", "10 Mbit/s"], ["5 s", "2 Mbit/s"]]',
    )
    trace: Trace | None = Field(
        None,
        description="instead of a rate, a file in mahimahi's format, or its list of times in ms: "
        "at each of them 1500 bytes may leave, over and over",
    )
    burst: Size | None = Field(
        None,
        description='the depth of a token bucket, such as "15 kB": so much leaves at once after a '
        "pause; without it the link is a line, on which every packet takes its time",
    )
    delay: Time = Field("0 s", description='the one-way propagation delay, such as "50 ms"')
    reroutes: Reroutes | None = Field(
        None,
        description="from when on packets take a route with another delay, such as "
        '[["60 s", "80 ms"]]',
    )
    queue: QueueSize | None = Field(
        None,
        description='how much may wait, such as "0.5 BDP", "100 packets", "64 kB", "10 ms" or '
        '"unlimited"; a BDP is the rate times the longest base RTT of the flows that cross the '
        'link; if this is not given, "unlimited" with an aqm and "1 BDP" without',
    )
    aqm: Aqm | None = Field(
        None,
        description='active queue management, such as "codel" or "fq_codel(target=5 ms, ecn=off)"',
    )
    loss: Loss = Field(
        0.0,
        description='the probability that a packet is lost at random, such as 0.0001 or "1e-4", or '
        'losses in bursts, such as "gilbert-elliott(p=1e-4, r=0.3)"',
    )
    jitter: Time = Field(
        "0 s",
        description='how much later, at random, packets come out in order, such as "5 ms"',
    )
    reorder: Reordering | None = Field(
        None,
        description='which share of packets comes out how much later, such as "1 % by 10 ms"',
    )


class Flow(_Model):
    """A flow of data from a sender to a receiver, or several alike."""

    name: Name | None = Field(None, description='the flow\'s name, such as "first"')
    cc: Algorithm = Field(
        description='the congestion control algorithm, such as "cubic", "cubic(hystart=off)", or '
        'one of your own, "my_module:MyCC" or "my_file.py:MyCC"'
    )
    path: list[str] | None = Field(
        None, description='the links that its data crosses, such as ["bottleneck"]'
    )
    paths: list[list[str]] | None = Field(
        None,
        description="instead of path, the paths of the subflows of a multipath connection, such "
        'as [["wifi"], ["lte"]]',
    )
    scheduler: Scheduler | None = Field(
        None,
        description='which subflow takes the next packets, such as "lowest-rtt", which is the '
        "default; for flows with paths",
    )
    return_paths: list[list[str]] | None = Field(
        None,
        description="for every one of paths the links that acknowledgements cross, such as "
        '[["up"], []]',
    )
    rtts: list[Period] | None = Field(
        None,
        description='for every one of paths its round-trip time without queues, such as ["30 ms", '
        '"60 ms"]; twice the delay of each path if they are not given',
    )
    return_path: list[str] = Field(
        default_factory=list, description="the links that its acknowledgements cross"
    )
    rtt: Period | None = Field(
        None,
        description='the round-trip time without queues, such as "100 ms"; twice the delay of '
        "its path if it is not given",
    )
    start: Time = Field("0 s", description='when it starts, such as "30 s"')
    stop: Period | None = Field(None, description='when it stops, such as "90 s"')
    bytes: Size | None = Field(None, description='how much it has to send, such as "10 MB"')
    app_rate: Rate | None = Field(
        None, description='the rate at which its application writes, such as "5 Mbit/s"'
    )
    app_rates: Rates | None = Field(
        None,
        description="instead of app_rate, from how long after it was opened on which rate, such "
        'as [["0 s", "5 Mbit/s"], ["10 s", "0 bit/s"]]',
    )
    repeat: Count = Field(1, description="how many such flows there are, such as 10")
    transport: Transport = Field("tcp", description='its transport, "tcp" or "udt"')
    transport_options: StackOptions = Field(
        default_factory=dict,
        validation_alias=_TRANSPORT_OPTIONS,
        serialization_alias="transport-options",
        description="options of UDT, such as { receive-buffer = 20000 }",
    )
    stack: str | None = Field(None, description='its TCP stack, such as "linux"')
    stack_options: StackOptions = Field(
        default_factory=dict,
        validation_alias=_STACK_OPTIONS,
        serialization_alias="stack-options",
        description="fields of its stack, such as { pacing = true }",
    )
    log: bool = Field(False, description="whether each of its packets is recorded, true or false")
    command: str | None = Field(
        None,
        description="with real packets, the program that is its sender, such as "
        '"iperf3 -c {server} -t 30"',
    )
    server: str | None = Field(
        None,
        description='the program that is its receiver, such as "iperf3 -s -1"; for flows with '
        "command",
    )


class Experiment(_Model):
    """Links, the flows that cross them, and how long and how often to watch them."""

    title: str = Field("", description="what the experiment is about")
    duration: Period = Field(description='how long it runs, such as "60 s"')
    seeds: Seeds = Field(
        1, description="how many seeds to run it with, or which ones, such as [1, 2, 3]"
    )
    sample: Period | None = Field(
        None,
        description='how often to look at the flows, such as "100 ms", which is also the default, '
        "but for experiments so large that this would give more than a million rows",
    )
    internals: bool | None = Field(
        None,
        description="whether the algorithms' internals are sampled too, true or false; true if "
        "there are 100 flows or fewer and this is not given",
    )
    start_jitter: Time = Field(
        "0 s", description='how much later, at random, each flow may start, such as "100 ms"'
    )
    stack: str = Field("linux", description='the TCP stack of flows that name none: "linux"')
    stack_options: StackOptions = Field(
        default_factory=dict,
        validation_alias=_STACK_OPTIONS,
        serialization_alias="stack-options",
        description="fields of the stack, such as { pacing = true }; not for flows that name "
        "a stack of their own",
    )
    links: list[Link] = Field(
        validation_alias=AliasChoices("link", "links"),
        serialization_alias="link",
        description="one [[link]] table or more",
    )
    flows: list[Flow] = Field(
        validation_alias=AliasChoices("flow", "flows"),
        serialization_alias="flow",
        description="one [[flow]] table or more",
    )
    assumed: dict[str, str] = Field(
        default_factory=dict, description="settings that a paper leaves unsaid: key = reason"
    )
    calibrated: dict[str, str] = Field(
        default_factory=dict, description="settings found by matching a paper: key = reason"
    )

    sources: dict[str, str] = Field(
        default_factory=dict,
        description="algorithms of the user's own and the SHA-256 of their source; written when "
        "the experiment is resolved, and then it runs with no other",
    )

    @classmethod
    def load(cls, path: str | Path, *, overrides: list[str] | None = None) -> Experiment:
        """Reads an experiment file.

        Args:
            path: The TOML file.
            overrides: Assignments that take precedence over the file, such as ``"duration=10 s"``,
                ``"link.bottleneck.queue=1 BDP"`` or ``"flow.*.cc=bbr"``.

        Raises:
            ExperimentError: If the file cannot be read or is not a valid experiment. The text
                names the file, the key, and what would be valid.
        """
        with in_file(path):
            data = toml.override(toml.read_toml(Path(path)), overrides or [])
            return cls(**beside(Path(path).parent, data))

    @classmethod
    def parse(cls, text: str, *, overrides: list[str] | None = None) -> Experiment:
        """Reads an experiment from the text of a file; see `load`."""
        return cls(**toml.override(toml.parse_toml(text), overrides or []))

    def to_toml(self, *, defaults: bool = False) -> str:
        """Writes the experiment as the text of a file; `parse` gives an equal experiment.

        Args:
            defaults: Whether keys that have their default value are written too.
        """
        data = self.model_dump(by_alias=True, exclude_none=True, exclude_defaults=not defaults)
        return toml.to_toml(data)

    def _repr_html_(self) -> str:
        """What a notebook shows: the experiment as the text of its file."""
        return f"<pre>{html.escape(self.to_toml())}</pre>"

    def override(self, *assignments: str) -> Experiment:
        """The experiment with keys overridden as on the command line: ``"flow.first.cc=bbr"``.

        Raises:
            ExperimentError: If there is no such key, or the value is not valid.
        """
        return Experiment.parse(self.to_toml(), overrides=list(assignments))

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
        names = []
        for number, flow in enumerate(self.flows, 1):
            alone = len(self.flows) == 1 and flow.repeat > 1
            base = flow.name or ("flow" if alone else f"flow-{number}")
            copies = [f"{base}-{copy}" for copy in range(1, flow.repeat + 1)]
            names.append(copies if flow.repeat > 1 else [base])
        return names

    def flow_paths(self, flow: Flow) -> list[list[str]]:
        """The links that each subflow of `flow` crosses.

        A plain flow has one path: its own, or all links in order.
        """
        if flow.paths is not None:
            return flow.paths
        return [[link.name for link in self.links] if flow.path is None else flow.path]

    def flow_return_paths(self, flow: Flow) -> list[list[str]]:
        """The links that the acknowledgements of each subflow cross."""
        if flow.paths is None:
            return [flow.return_path]
        return flow.return_paths or [[] for _ in flow.paths]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._has_links_and_flows()
        self._has_different_names()
        for number, flow in enumerate(self.flows):
            try:
                self._check_flow(flow)
            except ExperimentError as error:
                raise error.within(f"flow[{number}]") from None
        stack_fields(self.stack, self.stack_options)
        return self

    def _has_links_and_flows(self) -> None:
        for key, tables in (("link", self.links), ("flow", self.flows)):
            if not tables:
                raise ExperimentError(f"there is none; write at least one [[{key}]] table", key=key)
        if self.flow_count > MOST_FLOWS:
            problem = f"there are {self.flow_count:,} flows; the most is {MOST_FLOWS:,}"
            raise ExperimentError(problem, key="flow")

    def _has_different_names(self) -> None:
        flows = [(f"flow[{i}]", n) for i, names in enumerate(self.flow_names()) for n in names]
        links = [(f"link[{i}]", link.name) for i, link in enumerate(self.links)]
        for named in (links, flows):
            count = Counter(name for _, name in named)
            for key, name in named[::-1]:
                if count[name] > 1:
                    first = next(other for other, n in named if n == name)
                    problem = f'"{name}" is already the name of {first}; names must differ'
                    raise ExperimentError(problem, key=f"{key}.name")

    def _check_flow(self, flow: Flow) -> None:
        links = [link.name for link in self.links]
        _check_paths(flow)
        if flow.path is None and flow.paths is None and len(links) > 1:
            problem = f"is missing, and there are several links: {', '.join(links)}"
            raise ExperimentError(f"{problem}; write the ones it crosses, in order", key="path")
        for key, path in self._routes(flow):
            if not path and "return" not in key:
                raise ExperimentError("is empty; a flow crosses at least one link", key=key)
            for at, name in enumerate(path):
                if name not in links:
                    problem = unknown("link", name, links)
                    raise ExperimentError(problem, key=f"{key}[{at}]")
        self._check_times(flow)
        self._check_transport(flow)

    def _routes(self, flow: Flow) -> list[tuple[str, list[str]]]:
        """All paths of a flow, each with its key."""
        there, back = self.flow_paths(flow), self.flow_return_paths(flow)
        if flow.paths is None:
            return [("path", there[0]), ("return_path", back[0])]
        return [
            (f"{key}[{at}]", path)
            for key, paths in (("paths", there), ("return_paths", back))
            for at, path in enumerate(paths)
        ]

    def _check_times(self, flow: Flow) -> None:
        start = units.TIME.parse(flow.start, zero=True)
        if start >= units.TIME.parse(self.duration):
            problem = f'"{flow.start}" is not before the end of the experiment at "{self.duration}"'
            raise ExperimentError(problem, key="start")
        latest = start + units.TIME.parse(self.start_jitter, zero=True)
        if flow.stop and units.TIME.parse(flow.stop) <= latest:
            problem = f'"{flow.stop}" is not after the latest start at {units.TIME.format(latest)}'
            raise ExperimentError(problem, key="stop")

    def _check_transport(self, flow: Flow) -> None:
        if flow.server is not None and flow.command is None:
            problem = "is the other end of a command, and there is none; write command"
            raise ExperimentError(problem, key="server")
        if flow.transport == "udt":
            udt_fields(flow.cc, flow.transport_options)
            for key, value in (("stack", flow.stack), ("stack-options", flow.stack_options)):
                if value:
                    problem = "is TCP's, and the flow's transport is \"udt\"; leave it out"
                    raise ExperimentError(problem, key=key)
            if flow.paths is not None:
                problem = 'are for TCP, and the flow\'s transport is "udt"; write path'
                raise ExperimentError(problem, key="paths")
        elif needs_udt(flow.cc):
            problem = f'"{flow.cc}" goes by what a UDT receiver reports; write transport = "udt"'
            raise ExperimentError(problem, key="cc")
        elif flow.transport_options:
            problem = 'are UDT\'s, and the flow\'s transport is "tcp"; write transport = "udt"'
            raise ExperimentError(problem, key="transport-options")
        elif flow.stack is not None:
            stack_fields(flow.stack, flow.stack_options)
        elif flow.stack_options:
            stack_fields(self.stack, self.stack_options | flow.stack_options)


def _check_paths(flow: Flow) -> None:
    """Whether the keys of plain and of multipath flows are kept apart."""
    multipath = ("scheduler", "return_paths", "rtts")
    if flow.paths is None:
        for key in multipath:
            if getattr(flow, key) is not None:
                problem = "is for flows of several paths; write paths"
                raise ExperimentError(f'{problem}, such as [["wifi"], ["lte"]]', key=key)
        return
    for key, instead in (("path", "paths"), ("return_path", "return_paths"), ("rtt", "rtts")):
        if getattr(flow, key):
            problem = f"is given beside paths; a flow of several paths has {instead}"
            raise ExperimentError(problem, key=key)
    if not 2 <= len(flow.paths) <= MOST_PATHS:
        problem = f"has {len(flow.paths)}; write from 2 to {MOST_PATHS}"
        raise ExperimentError(f"{problem}, or path for a flow of one path", key="paths")
    for key in multipath[1:]:
        values = getattr(flow, key)
        if values is not None and len(values) != len(flow.paths):
            problem = f"has {len(values)}, but there are {len(flow.paths)} paths"
            raise ExperimentError(f"{problem}; write one for each", key=key)
    if flow.log:
        problem = "cannot be true for a flow of several paths"
        raise ExperimentError(f"{problem}; leave it out", key="log")
    if flow.transport != "tcp":
        problem = f'"{flow.transport}" has one path; write path'
        raise ExperimentError(f'{problem}, or transport = "tcp"', key="transport")


def beside(folder: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Looks for traces and algorithms that an experiment file names where the file lies."""
    for link in _tables(data, "link"):
        if isinstance(link.get("trace"), str):
            link["trace"] = str(folder / link["trace"])
    for flow in _tables(data, "flow"):
        if isinstance(flow.get("cc"), str):
            flow["cc"] = user_code.locate_in(flow["cc"], folder)
    return data


def _tables(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tables = data.get(name)
    return (
        [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    )
