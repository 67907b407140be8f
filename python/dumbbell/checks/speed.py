"""How fast this machine simulates: `dumbbell bench`."""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dumbbell._core import simulate
from dumbbell.engine.progress import Progress, silent
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPEATS: Final = 3


class Case(NamedTuple):
    """A scenario whose speed is measured."""

    title: str
    cc: str = "cubic"
    flows: int = 1
    rate: str = "1 Gbit/s"
    duration: str = "5 s"
    link: Mapping[str, Any] = {}  # keys of the link
    flow: Mapping[str, Any] = {}  # keys of the flow

    @property
    def experiment(self) -> Experiment:
        """A path of 100 ms with a queue of 1 BDP, unless the case says otherwise."""
        link = Link(name="bottleneck", **({"rate": self.rate, "queue": "1 BDP"} | dict(self.link)))
        said: dict[str, Any] = {"cc": self.cc, "rtt": "100 ms", "repeat": self.flows} | dict(
            self.flow
        )
        flow = Flow(name="flow", **said)
        return Experiment(links=[link], flows=[flow], duration=self.duration, internals=False)


_QUINN: Final = "quinn:cubic"
_NOQ: Final = "noq:cubic"
_QUIC: Final = {"transport": "quic"}
_TLS: Final = _QUIC | {"transport_options": {"crypto": "rustls"}}

CASES: Final = (
    Case("1 CUBIC flow, 1 Gbit/s"),
    Case("1 BBRv3 flow, 1 Gbit/s", cc="bbr3"),
    Case("100 CUBIC flows, 1 Gbit/s", flows=100),
    Case("10,000 CUBIC flows, 10 Gbit/s", flows=10_000, rate="10 Gbit/s", duration="2 s"),
    Case("100,000 CUBIC flows, 100 Gbit/s", flows=100_000, rate="100 Gbit/s", duration="2 s"),
    Case("1 CUBIC flow, jitter of 1 ms", link={"jitter": "1 ms"}),
    Case("1 BBRv3 flow, random loss of 0.1 %", cc="bbr3", link={"loss": 0.001}),
    Case("1 BBRv3 flow, 1 % reordered", cc="bbr3", link={"reorder": "1 % by 5 ms"}),
    Case("100 CUBIC flows, CoDel", flows=100, link={"aqm": "codel"}),
    Case("100 CUBIC flows, FQ-CoDel", flows=100, link={"aqm": "fq_codel"}),
    Case("quinn, 20 Mbit/s, TLS", _QUINN, rate="20 Mbit/s", duration="20 s", flow=_TLS),
    Case("quinn, 1 Gbit/s", _QUINN, flow=_QUIC),
    Case("noq, 20 Mbit/s, TLS", _NOQ, rate="20 Mbit/s", duration="20 s", flow=_TLS),
    Case("noq, 1 Gbit/s", _NOQ, flow=_QUIC),
)
"""What is measured."""


class Speed(NamedTuple):
    """The speed of a case: the median of some runs."""

    case: Case
    packets: int  # data packets of a run, retransmissions included
    rate: float  # data packets per processor second
    factor: float  # simulated time over processor time


def measure(cases: tuple[Case, ...] = CASES, progress: Progress = silent) -> list[Speed]:
    """Measures cases in one thread, in turn, so that all see the same machine."""
    scenarios = [case.experiment.resolve().scenario(1) for case in cases]
    took: list[list[float]] = [[] for _ in cases]
    packets = [0 for _ in cases]
    for repeat in range(_REPEATS):
        for number, scenario in enumerate(scenarios):
            done = (repeat * len(cases) + number) / (_REPEATS * len(cases))
            progress(cases[number].title, done)
            began = time.process_time()
            packets[number] = simulate(scenario).meta["data_packets"]
            took[number].append(time.process_time() - began)
    found = []
    for case, count, times in zip(cases, packets, took, strict=True):
        seconds = statistics.median(times)
        simulated = float(case.duration.removesuffix(" s"))
        found.append(Speed(case, count, count / seconds, simulated / seconds))
    return found


def machine() -> str:
    """The machine in a line: processor, number of processors, system."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} processors, {platform.system()} {platform.release()}"
