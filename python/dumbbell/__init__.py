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
    from dumbbell.bpf import BpfError
    from dumbbell.dossier import Dossier, evaluate
    from dumbbell.engine.compare import Comparison, compare
    from dumbbell.engine.kernel import TestbedError
    from dumbbell.engine.runner import run, run_all
    from dumbbell.errors import (
        DumbbellError,
        ExperimentError,
        Interrupted,
        OverwriteError,
        QuantityError,
        ResultError,
    )
    from dumbbell.experiment.model import Experiment, Flow, Link
    from dumbbell.metrics.intervals import Estimate, Until
    from dumbbell.papers import reproduce
    from dumbbell.results.result import Result
    from dumbbell.sweeps.plan import Sweep
    from dumbbell.sweeps.query import QueryError, query
    from dumbbell.sweeps.result import SweepResult, load, sweep

__all__ = [
    "BpfError",
    "Comparison",
    "Dossier",
    "DumbbellError",
    "Estimate",
    "Experiment",
    "ExperimentError",
    "Flow",
    "Interrupted",
    "Link",
    "OverwriteError",
    "QuantityError",
    "QueryError",
    "Result",
    "ResultError",
    "Sweep",
    "SweepResult",
    "TestbedError",
    "Until",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "query",
    "reproduce",
    "run",
    "run_all",
    "sweep",
]

_OFFERED = {
    "bpf": ["BpfError"],
    "dossier": ["Dossier", "evaluate"],
    "engine.compare": ["Comparison", "compare"],
    "engine.kernel": ["TestbedError"],
    "engine.runner": ["run", "run_all"],
    "errors": [
        "DumbbellError",
        "ExperimentError",
        "Interrupted",
        "OverwriteError",
        "QuantityError",
        "ResultError",
    ],
    "experiment.model": ["Experiment", "Flow", "Link"],
    "metrics.intervals": ["Estimate", "Until"],
    "papers": ["reproduce"],
    "results.result": ["Result"],
    "sweeps.plan": ["Sweep"],
    "sweeps.query": ["QueryError", "query"],
    "sweeps.result": ["SweepResult", "load", "sweep"],
}
_HOMES = {name: home for home, names in _OFFERED.items() for name in names}
_MODULES = ("cc", "figures", "metrics", "theory", "udt")  # what else there is to use


def __getattr__(name: str) -> Any:
    """Imports a name at its first use, so that the command line starts at once."""
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"dumbbell.{_HOMES.get(name, name)}")
    value = globals()[name] = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
