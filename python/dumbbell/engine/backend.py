"""What runs experiments: the simulator, or this machine's kernel with real packets."""

from __future__ import annotations

from typing import Literal, get_args

from dumbbell.errors import ExperimentError, unknown

Backend = Literal["simulator", "linux"]


def sends_packets(backend: str) -> bool:
    """Whether a backend sends real packets; raises `ExperimentError` if there is no such one."""
    if backend not in get_args(Backend):
        raise ExperimentError(unknown("backend", backend, get_args(Backend)), key="backend")
    return backend == "linux"
