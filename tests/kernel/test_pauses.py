"""Windows after pauses of the application, simulated and in the kernel: `make test-kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pytest
from machine import valid_run

from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from dumbbell.engine.runner import Backend

RATES = [("0 s", "4 Mbit/s"), ("1 s", "16 Mbit/s")]
PAUSES = {"4 s": "4.7 s", "6 s": "9 s"}
"""When the application pauses, and until when: for two timeouts of 250 ms, and for more."""

BACKENDS: Final[tuple[Backend, ...]] = ("simulator", "linux")


def windows(cc: str, backend: Backend) -> list[tuple[float, float]]:
    """The window before each pause, and the least of the two round trips after it, packets."""
    pauses = [
        rate
        for pause in PAUSES.items()
        for rate in zip(pause, ("0 Mbit/s", "16 Mbit/s"), strict=True)
    ]
    experiment = Experiment(
        links=[Link(name="link", rate="50 Mbit/s", delay="25 ms", queue="1 BDP")],
        flows=[Flow(cc=cc, app_rates=[list(rate) for rate in RATES + pauses])],
        duration="10 s",
        sample="5 ms",
        internals=False,
    )
    result = valid_run(experiment, backend)

    def seen(since: str, span: float) -> pl.Series:
        begin = float(since.removesuffix(" s"))
        return result.series.filter(pl.col("t").is_between(begin, begin + span))["cwnd"]

    # The application's clock begins after the handshake, one round trip late.
    return [(seen(begin, 0.01)[0], seen(end, 0.15).min()) for begin, end in PAUSES.items()]


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_a_pause_halves_the_kernels_window_as_often_as_the_simulated_one(cc: str) -> None:
    for backend in BACKENDS:
        (before, after), (later, last) = windows(cc, backend)
        assert before > 70, f"{backend}: 16 Mbit/s need 70 packets"
        assert (after, last) == (before // 4, 10), f"{backend}: {later}"


def test_a_pause_leaves_bbrs_window_as_it_is() -> None:
    for backend in BACKENDS:
        for before, after in windows("bbr", backend):
            assert after == before > 100, backend
