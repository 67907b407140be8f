"""``dumbbell list``."""

from __future__ import annotations

from inspect import getdoc
from typing import Any

from dumbbell import _core, metrics, papers
from dumbbell.cli.output import print_json, print_line


def show_all(*, json: bool) -> None:
    """Prints what there is to choose from."""
    catalogue = {
        "algorithms": _core.algorithms(),
        "stacks": _core.stacks(),
        "papers": {paper.id: paper.title for paper in papers.available()},
        "metrics": _metrics(),
    }
    if json:
        print_json(catalogue)
        return
    print_line('Algorithms, for cc = "NAME" or "NAME(option=value, ...)":')
    print_line("  " + ", ".join(_core.algorithms()))
    print_line('\nTCP stacks, for stack = "NAME" (and stack_options for single fields):')
    stacks = _core.stacks()
    usual = stacks["linux"]
    for name, fields in stacks.items():
        differs = [
            f"{key} = {_toml(value)}" for key, value in fields.items() if usual[key] != value
        ]
        print_line(f"  {name}: {', '.join(differs) if differs else _all(fields)}")
    print_line("\nPapers, for dumbbell reproduce:")
    for paper in papers.available():
        print_line(f"  {paper.id}: {paper.title}")
    print_line("\nMetrics, of dumbbell.metrics:")
    for name, meaning in _metrics().items():
        print_line(f"  {name}: {meaning}")


def _metrics() -> dict[str, str]:
    functions = metrics.METRICS
    return {metric.__name__: (getdoc(metric) or "").partition("\n")[0] for metric in functions}


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _all(fields: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {_toml(value)}" for key, value in fields.items())
