"""The receive window beside the kernel."""

from __future__ import annotations

from machine import valid_run

from dumbbell.experiment.model import Experiment, Flow, Link


def test_a_receive_window_limits_what_is_in_flight_for_the_whole_run() -> None:
    one = Experiment(
        links=[Link(name="link", rate="100 Mbit/s", delay="100 ms", queue="1 BDP")],
        flows=[Flow(cc="cubic")],
        stack="linux",
        stack_options={"receive_window": 1000},
        duration="10 s",
        internals=False,
    )
    late = valid_run(one).series.filter(t=10.0)
    assert 900 < late["in_flight"].item() <= 1000
