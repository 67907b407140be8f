"""Windows under losses and reordering, simulated and in the kernel: `make test-kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from machine import valid_run

from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.metrics import throughput

if TYPE_CHECKING:
    from typing import Any

    from dumbbell.results.result import Result


def both(link: dict[str, Any], cc: str, duration: str, seeds: int = 1) -> list[Result]:
    """One flow over a link, in the simulator and with real packets."""
    experiment = Experiment(
        links=[Link(name="link", **link)],
        flows=[Flow(cc=cc)],
        duration=duration,
        seeds=seeds,
        internals=False,
    )
    return [valid_run(experiment, backend) for backend in ("simulator", "linux")]


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_a_small_window_on_a_long_path_survives_losses_as_the_kernels_does(cc: str) -> None:
    """Few packets follow a lost one: the end of RACK's window finds it, and the timeout is near."""
    link = {"rate": "20 Mbit/s", "delay": "150 ms", "queue": "1 BDP", "loss": "1 %"}
    simulated, real = (throughput(one)["throughput"] for one in both(link, cc, "40 s", seeds=2))
    assert simulated.mean() == pytest.approx(real.mean(), rel=0.15)


def test_slow_start_among_reordered_packets_is_as_fast_as_the_kernels() -> None:
    link = {"rate": "100 Mbit/s", "delay": "50 ms", "queue": "4 BDP", "reorder": "5 % by 10 ms"}
    simulated, real = (one.series["cwnd"][-1] for one in both(link, "reno", "1 s"))
    assert simulated == pytest.approx(real, rel=0.4)
