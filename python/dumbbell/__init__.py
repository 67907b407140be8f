"""dumbbell: a congestion-control laboratory.

An experiment says which links, which flows and which algorithms; `run` simulates it; the result
is tidy tables::

    from dumbbell import Experiment, Flow, Link, run

    result = run(
        Experiment(
            links=[Link(name="bottleneck", rate="100 Mbit/s", delay="50 ms", queue="0.5 BDP")],
            flows=[Flow(name="first", cc="cubic"), Flow(name="second", cc="bbr", start="30 s")],
            duration="150 s",
        )
    )
    result.series

or, from a file, ``run("experiment.toml")``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dumbbell._core import __version__

if TYPE_CHECKING:
    from dumbbell.engine.compare import Comparison, compare
    from dumbbell.engine.runner import run, run_all
    from dumbbell.errors import (
        DumbbellError,
        ExperimentError,
        OverwriteError,
        QuantityError,
        ResultError,
    )
    from dumbbell.experiment.model import Experiment, Flow, Link
    from dumbbell.results.result import Result
    from dumbbell.sweeps.drive import run_sweep
    from dumbbell.sweeps.plan import Sweep

__all__ = [
    "Comparison",
    "DumbbellError",
    "Experiment",
    "ExperimentError",
    "Flow",
    "Link",
    "OverwriteError",
    "QuantityError",
    "Result",
    "ResultError",
    "Sweep",
    "__version__",
    "compare",
    "run",
    "run_all",
    "run_sweep",
]

_HOMES = {
    "DumbbellError": "errors",
    "ExperimentError": "errors",
    "QuantityError": "errors",
    "OverwriteError": "errors",
    "ResultError": "errors",
    "Experiment": "experiment.model",
    "Flow": "experiment.model",
    "Link": "experiment.model",
    "Result": "results.result",
    "Comparison": "engine.compare",
    "compare": "engine.compare",
    "run": "engine.runner",
    "run_all": "engine.runner",
    "run_sweep": "sweeps.drive",
    "Sweep": "sweeps.plan",
}

_MODULES = ("cc", "figures", "metrics", "theory", "udt")
"""What else there is to use."""


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is asked for, so that the command line starts at once."""
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"dumbbell.{_HOMES.get(name, name)}")
    value = globals()[name] = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
