"""Applications that wait for what they sent, beside the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import valid_run

from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from dumbbell.engine.runner import Backend

BACKENDS: tuple[Backend, Backend] = ("simulator", "linux")


def experiment(flow: Flow) -> Experiment:
    """One flow over 20 Mbit/s and 40 ms."""
    links = [Link(name="link", rate="20 Mbit/s", delay="20 ms", queue="1 BDP")]
    return Experiment(links=links, flows=[flow], duration="20 s", internals=False)


@pytest.mark.parametrize("size", ["1 kB", "100 kB"])
def test_a_response_takes_as_long_as_in_the_kernel(size: str) -> None:
    flow = Flow(cc="cubic", app="requests(think=50 ms, random=off)", sizes=f"constant(size={size})")
    simulated, real = (valid_run(experiment(flow), one).transfers for one in BACKENDS)
    one, other = (
        (table["completed"] - table["start"]).drop_nulls().median() for table in (simulated, real)
    )
    assert one == pytest.approx(other, abs=0.005)
    assert simulated.height == pytest.approx(real.height, rel=0.05)


def test_a_video_client_requests_the_same_rates_as_over_the_kernel() -> None:
    flow = Flow(cc="cubic", app="video(buffer=20 s, reservoir=4 s, cushion=12 s)")
    simulated, real = (valid_run(experiment(flow), one).segments for one in BACKENDS)
    assert simulated.height == pytest.approx(real.height, abs=1)
    both = min(simulated.height, real.height)
    assert simulated["rate"].to_list()[:both] == real["rate"].to_list()[:both]
    assert real["stalled"].sum() == 0
