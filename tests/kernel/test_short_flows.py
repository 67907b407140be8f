"""Short flows and slow applications beside the kernel: when the receiver acknowledges."""

from __future__ import annotations

import pytest
from machine import valid_run

from dumbbell.experiment.model import Experiment, Flow, Link

MSS = 1448


def experiment(delay: str, duration: str, **flow: str) -> Experiment:
    """One CUBIC flow over 100 Mbit/s."""
    return Experiment(
        links=[Link(name="link", rate="100 Mbit/s", delay=delay)],
        flows=[Flow(cc="cubic", **flow)],
        duration=duration,
        internals=False,
    )


@pytest.mark.parametrize("packets", [30, 31, 60, 61, 100, 101])
def test_a_short_flow_takes_as_long_as_in_the_kernel(packets: int) -> None:
    """What ends a write is acknowledged at once: a delayed acknowledgement would be 40 ms."""
    one = experiment("5 ms", "1 s", bytes=f"{packets * MSS} B")
    simulated, real = (
        valid_run(one, backend).flows["completed"][0] for backend in ("simulator", "linux")
    )
    assert simulated == pytest.approx(real, abs=0.005)


def test_what_a_slow_application_writes_waits_for_no_delayed_acknowledgement() -> None:
    one = experiment("10 ms", "4 s", app_rate="0.2 Mbit/s")
    runs = (valid_run(one, backend) for backend in ("simulator", "linux"))
    simulated, real = (run.series["srtt"][-1] for run in runs)
    assert simulated == pytest.approx(real, abs=0.002)
