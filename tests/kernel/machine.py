"""Runs with real packets on a machine that may be unable to do them, or too busy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

import dumbbell
from dumbbell.experiment import Experiment, Flow, Link
from dumbbell.resolve import resolve, scenario
from dumbbell.testbed.client import TestbedError, Watch, run_scenario

if TYPE_CHECKING:
    from dumbbell.results import Result
    from dumbbell.runner import Backend


@cache
def why_not() -> str:
    """What this machine lacks; empty if nothing."""
    link = Link(name="link", rate="10 Mbit/s", delay="10 ms")
    plain = Experiment(links=[link], flows=[Flow(cc="reno")], duration="50 ms")
    try:
        run_scenario(scenario(resolve(plain), 1), Watch())
    except TestbedError as error:
        return str(error)
    return ""


def sound(experiment: Experiment, backend: Backend = "linux") -> Result:
    """Runs an experiment; skips the test if the machine lacks something, or spoils every try."""
    if why_not():
        pytest.skip(why_not())
    result = dumbbell.run(experiment, backend=backend, retry_spoiled=3)
    if result.spoiled:
        pytest.skip(f"the machine was too busy: {result.complaints[0]}")
    return result
