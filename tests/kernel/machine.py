"""Runs with real packets on a machine that may be unable to do them, or too busy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

import dumbbell
from dumbbell.engine.kernel import RunMonitor, TestbedError, run_scenario
from dumbbell.experiment.model import Experiment, Flow, Link

if TYPE_CHECKING:
    from dumbbell.engine.runner import Backend
    from dumbbell.results.result import Result


@cache
def why_not() -> str:
    """What this machine lacks; empty if nothing."""
    link = Link(name="link", rate="10 Mbit/s", delay="10 ms")
    plain = Experiment(links=[link], flows=[Flow(cc="reno")], duration="50 ms")
    try:
        run_scenario(plain.resolve().scenario(1), RunMonitor())
    except TestbedError as error:
        return str(error)
    return ""


def valid_run(experiment: Experiment, backend: Backend = "linux") -> Result:
    """Runs an experiment; skips the test if the machine lacks something, or disturbs every run."""
    if why_not():
        pytest.skip(why_not())
    result = dumbbell.run(experiment, backend=backend, retry_invalid=3)
    if result.invalid_runs:
        pytest.skip(f"the machine was too busy: {result.invalid_reasons[0]}")
    return result
