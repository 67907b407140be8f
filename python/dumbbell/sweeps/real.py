"""Runs of a sweep with real packets: in real time, with the algorithms of this kernel."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from dumbbell.engine import kernel
from dumbbell.engine.runner import measured
from dumbbell.engine.store import measured_by
from dumbbell.sweeps.work import FAILED_POINT, ChunkMonitor, judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dumbbell.sweeps.plan import Point, Run
    from dumbbell.sweeps.work import Tables


@dataclass(frozen=True)
class RealPackets:
    """How the runs of a sweep are made with real packets.

    Attributes:
        names: What the kernel calls the algorithms.
        retry_invalid: How often a run is repeated that the machine disturbed.
        at_once: How many runs share the machine.
    """

    names: Mapping[str, str]
    retry_invalid: int
    at_once: int

    def monitor(self, run: Run) -> ChunkMonitor:
        """What shows how far a run is."""
        return ChunkMonitor(run.point.cost, kernel.RunMonitor())

    def measure(self, run: Run, series: bool, monitor: ChunkMonitor) -> Tables:
        """Makes a run; returns what is kept of it, as `work.simulate`.

        Of one that the machine disturbed nothing is kept, and `monitor` has the reasons.
        """
        scenario = run.point.scenario_of(run.seed)
        monitor.cost, monitor.point = run.point.cost, run.point.number
        assert isinstance(monitor.run, kernel.RunMonitor), "it is this class's"
        what = kernel.for_kernel(json.dumps(scenario), self.names)
        try:
            output = measured(what, monitor.run, self.retry_invalid, self.at_once)
        except Exception as error:
            setattr(error, FAILED_POINT, run.point.number)
            raise
        monitor.over, monitor.cost = monitor.cost, 0.0
        if output.invalid_reasons:
            where = f"point {run.point.number}, seed {run.seed}"
            monitor.invalid.append(f"{where}: {'; '.join(output.invalid_reasons)}")
            return {}
        return judged([run], [output], [scenario], series)


@contextmanager
def real_packets(
    points: Sequence[Point], retry_invalid: int, at_once: int, *, is_real: bool
) -> Iterator[RealPackets | None]:
    """Gives the kernel the algorithms of points that it lacks; None if the points are simulated."""
    if not is_real:
        yield None
        return
    used = {flow["cc"] for point in points for flow in point.flows if kernel.is_kernels(flow)}
    with kernel.provided(used) as names:
        yield RealPackets(names, retry_invalid, at_once)


def duration(point: Point) -> float:
    """How long a run of a point takes, s: what it costs with real packets."""
    return float(json.loads(point.scenario)["duration_ns"] / 1e9)


def machine_of(points: Iterable[Point], names: Mapping[str, str]) -> tuple[str, bool]:
    """What of this machine determines the runs of points, and whether that is known for good.

    Another program, or an algorithm of the kernel that nothing identifies, may be another one the
    next time.

    Args:
        points: The points.
        names: What the kernel calls their algorithms.
    """
    has_programs = any(flow.get("command") for point in points for flow in point.flows)
    known = None if has_programs else measured_by(names)
    return known or uuid4().hex, known is not None
