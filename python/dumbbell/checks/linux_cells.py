"""The cells in which the simulator is compared with Linux: paths and flows.

They are spread over what people run; the full product of all settings would take weeks. The cells
are a scrambled Sobol sequence over rates, round-trip times, queues and losses, on logarithmic
scales: its first points are spread as evenly as all of them. The sequence is chosen by a seed,
before anything is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from scipy.stats import qmc

from dumbbell.errors import DumbbellError
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DURATION: Final = "30 s"
LATER: Final = 10
"""When the second flow of a cell of the family `late` starts, s."""

RATES: Final = (10.0, 1000.0)  # Mbit/s
RTTS: Final = (5.0, 200.0)  # ms
QUEUES: Final = (0.25, 8.0)  # BDP
LOSSES: Final = (1e-5, 2e-2)
FEWEST_PACKETS: Final = 20
"""Queues are no shorter than this: a smaller part of a small BDP holds no burst of a sender."""

KERNELS: Final = ("reno", "cubic", "bbr")
PORTS: Final = ("bbr2", "bbr3", "hstcp", "stcp", "bic")
"""Algorithms that a Linux without patches lacks: they are run as eBPF programs of this project."""

PAIRS: Final = (("cubic", "reno"), ("bbr", "cubic"), ("bbr", "reno"))


class Cell(NamedTuple):
    """A path with flows; its name is unique within a plan."""

    name: str
    family: str
    experiment: Experiment

    def run(self, seed: int) -> Experiment:
        """The experiment of one run."""
        return self.experiment.replace(seeds=[seed])


class Point(NamedTuple):
    """A point of the space, each coordinate rounded to two digits."""

    rate: float  # Mbit/s
    rtt: float  # ms
    queue: float  # BDP
    loss: float

    @classmethod
    def at(cls, place: Sequence[float]) -> Point:
        """The point at a place in the unit cube."""
        spans = (RATES, RTTS, QUEUES, LOSSES)
        values = (low * (high / low) ** u for u, (low, high) in zip(place, spans, strict=True))
        return cls(*(float(f"{value:.2g}") for value in values))

    def link(self, *, loss: bool = False, aqm: str | None = None) -> Link:
        """The bottleneck."""
        bdp = self.rate * self.rtt / 12  # packets of 1,500 bytes
        packets = max(round(self.queue * bdp), FEWEST_PACKETS)
        queue = None if aqm else f"{packets} packets"
        loss_rate = self.loss if loss else 0.0
        rate = f"{self.rate:g} Mbit/s"
        return Link(name="bottleneck", rate=rate, queue=queue, aqm=aqm, loss=loss_rate)


@dataclass(frozen=True)
class Family:
    """Cells of one kind.

    Attributes:
        name: Its name; several may have the same.
        title: What is in its cells.
        kinds: What its cells differ in beside the point: each kind has as many cells.
        cells: How many cells each kind has.
        make: Makes the experiment of a kind at a point.
        quick: How many of its first cells the quick plan has; None for one of each kind.
    """

    name: str
    title: str
    kinds: Sequence[str]
    cells: int
    make: Callable[[str, Point], Experiment]
    quick: int | None = None


def _experiment(link: Link, flows: list[Flow], *others: Link, ecn: bool = False) -> Experiment:
    return Experiment(
        duration=DURATION,
        internals=False,
        sample="1 s",
        start_jitter="0 s" if len(flows) == 1 else "100 ms",
        stack_options={"ecn": "classic"} if ecn else {},
        links=[link, *others],
        flows=flows,
    )


def _flows(cc: str, point: Point, count: int) -> list[Flow]:
    numbers = [""] if count == 1 else [f"-{i}" for i in range(1, count + 1)]
    return [Flow(name=f"{cc}{number}", cc=cc, rtt=f"{point.rtt:g} ms") for number in numbers]


def _alone(cc: str, point: Point) -> Experiment:
    return _experiment(point.link(), _flows(cc, point, 1))


def _losses(cc: str, point: Point) -> Experiment:
    return _experiment(point.link(loss=True), _flows(cc, point, 1))


def _reordering(kind: str, point: Point) -> Experiment:
    """A share of up to 30 % of the packets is late by a part of the round-trip time."""
    cc, part = kind.split("+")
    reorder = f"{1500 * point.loss:.2g} % by {float(part) * point.rtt:.2g} ms"
    return _experiment(point.link().replace(reorder=reorder), _flows(cc, point, 1))


def _changing(kind: str, point: Point) -> Experiment:
    """The link fails, gets shorter or loses in bursts, or half of the acknowledgements get lost."""
    cc, what = kind.split("+")
    link, (flow,), others = point.link(), _flows(cc, point, 1), []
    if what == "outage":
        rate = str(link.rate)
        rates = [["0 s", rate], ["10 s", "0 bit/s"], ["12 s", rate]]
        link = link.replace(rate=None, rates=rates)
    elif what == "reroute":
        far, near = (f"{point.rtt / part:g} ms" for part in (2, 4))
        link = link.replace(delay=far, reroutes=[["10 s", near], ["20 s", far]])
        flow = flow.replace(rtt=None)
    elif what == "bursts":
        link = link.replace(loss=f"gilbert-elliott(p={point.loss:g}, r=0.3)")
    else:
        # An acknowledgement of 52 bytes for every second packet of 1,500 bytes; the half of that.
        half = point.rate * 52 / 3000 / 2
        others = [Link(name="acknowledgements", rate=f"{half:.2g} Mbit/s", queue="30 packets")]
        flow = flow.replace(path=[link.name], return_path=[others[0].name])
    return _experiment(link, [flow], *others)


def _multipath(kind: str, point: Point) -> Experiment:
    """The second path has half the rate and twice the round-trip time of the first.

    A small receive buffer has room for half of what is on its way on both without queues.
    """
    cc, _, buffer = kind.partition("+")
    first = point.link()
    second = point._replace(rate=point.rate / 2, rtt=point.rtt * 2).link().replace(name="second")
    rtts = [f"{rtt:g} ms" for rtt in (point.rtt, 2 * point.rtt)]
    flow = Flow(name=cc, cc=cc, paths=[[first.name], [second.name]], rtts=rtts)
    experiment = _experiment(first, [flow], second)
    if not buffer:
        return experiment
    packets = max(round(point.rate * point.rtt / 12), FEWEST_PACKETS)
    return experiment.replace(stack_options={"receive_window": packets})


def _late(cc: str, point: Point) -> Experiment:
    rtt = f"{point.rtt:g} ms"
    late = Flow(name="late", cc=cc, rtt=rtt, start=f"{LATER} s")
    return _experiment(point.link(), [Flow(name="early", cc=cc, rtt=rtt), late])


def _eight(cc: str, point: Point) -> Experiment:
    return _experiment(point.link(), _flows(cc, point, 8))


def _pair(pair: str, point: Point, count: int = 1) -> Experiment:
    flows = [flow for cc in pair.split("+") for flow in _flows(cc, point, count)]
    return _experiment(point.link(), flows)


def _four(pair: str, point: Point) -> Experiment:
    return _pair(pair, point, 4)


def _marks(kind: str, point: Point) -> Experiment:
    aqm, cc = kind.split("+")
    return _experiment(point.link(aqm=aqm), _flows(cc, point, 2), ecn=True)


def _short(cc: str, point: Point) -> Experiment:
    """Ten transfers from 10 kB to 1 MB, one every 2 s, beside a long flow."""
    rtt = f"{point.rtt:g} ms"
    sizes = [10, 30, 100, 300, 1000] * 2
    transfers = [
        Flow(name=f"transfer-{i}", cc=cc, rtt=rtt, start=f"{5 + 2 * i} s", bytes=f"{size} kB")
        for i, size in enumerate(sizes, 1)
    ]
    return _experiment(point.link(), [Flow(name="long", cc=cc, rtt=rtt), *transfers])


_BOTH: Final = ["+".join(pair) for pair in PAIRS]
_REORDERED: Final = [f"{cc}+{part}" for part in (0.1, 0.5) for cc in KERNELS]
_CHANGING: Final = [
    f"{KERNELS[(i + shift) % 3]}+{what}"
    for shift in range(3)
    for i, what in enumerate(("outage", "reroute", "bursts", "acks"))
]
_MARKED: Final = [f"{aqm}+{cc}" for aqm in ("codel", "fq_codel") for cc in KERNELS]
_OF_PATHS: Final = [*KERNELS, *(f"{cc}+buffer" for cc in KERNELS)]
FAMILIES: Final = (
    Family("alone", "one flow", KERNELS, 10, _alone),
    Family("losses", "one flow, random losses", KERNELS, 5, _losses),
    Family("late", "two flows, the second 10 s later", KERNELS, 3, _late),
    Family("eight", "eight flows", KERNELS, 2, _eight),
    Family("pair", "one flow each of two algorithms", _BOTH, 3, _pair),
    Family("four", "four flows each of two algorithms", _BOTH, 1, _four),
    Family("marks", "two flows with ECN, CoDel or FQ-CoDel", _MARKED, 1, _marks),
    Family("short", "short transfers beside a long flow", KERNELS, 2, _short),
    Family("ports", "one flow, eBPF", PORTS, 2, _alone),
    # By itself: a sixth kind of the family before would move its cells.
    Family("ports", "one flow, eBPF", ("fast",), 2, _alone),
    Family("reordering", "one flow, packets late by a part of its RTT", _REORDERED, 2, _reordering),
    Family("changing", "one flow, another kind of path", _CHANGING, 1, _changing, quick=2),
    Family("multipath", "one connection, two paths", _OF_PATHS, 2, _multipath, quick=2),
)


def cells(seed: int = 1, *, quick: bool = False) -> list[Cell]:
    """The cells of a plan; the quick ones are the first of each kind."""
    plan = []
    for number, family in enumerate(FAMILIES):
        kinds = len(family.kinds)
        wanted = kinds * family.cells
        sobol = qmc.Sobol(4, rng=seed * 100 + number)
        places = sobol.random_base2(max(wanted - 1, 1).bit_length())[:wanted]
        some = family.quick or kinds
        for i, place in enumerate(places[:some] if quick else places):
            kind, point = family.kinds[i % kinds], Point.at([float(u) for u in place])
            name = f"{family.name}-{kind}-{i // kinds + 1}"
            plan.append(Cell(name, family.name, family.make(kind, point)))
    return plan


def matching(patterns: Sequence[str], plan: Sequence[Cell]) -> list[Cell]:
    """The cells of a plan whose names match a pattern, such as ``late-*``, in the plan's order.

    Raises:
        DumbbellError: If a pattern matches no cell.
    """
    for pattern in patterns:
        if not any(fnmatchcase(cell.name, pattern) for cell in plan):
            families = ", ".join(dict.fromkeys(cell.family for cell in plan))
            raise DumbbellError(
                f"no cell is called {pattern!r}; names are such as {plan[0].name!r} or 'late-*', "
                f"of the families {families}"
            )
    return [cell for cell in plan if any(fnmatchcase(cell.name, some) for some in patterns)]
