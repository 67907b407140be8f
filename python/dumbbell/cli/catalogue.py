"""``dumbbell list``."""

from __future__ import annotations

from typing import Any

from dumbbell import _core
from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_text


def list_all(json: options.Json = False) -> None:
    """List algorithms, TCP stacks, papers and metrics."""
    from dumbbell import metrics, papers

    stacks = _core.stacks()
    titles = {paper.id: paper.title for paper in papers.available()}
    meanings = {
        metric.__name__: (metric.__doc__ or "").partition("\n")[0] for metric in metrics.METRICS
    }
    if json:
        catalogue = {"algorithms": _core.algorithms(), "stacks": stacks}
        print_json(catalogue | {"papers": titles, "metrics": meanings})
        return
    print_text('Algorithms, for cc = "NAME" or "NAME(option=value, ...)":')
    print_text("  " + ", ".join(_core.algorithms()))
    print_text('\nTCP stacks, for stack = "NAME" (and stack_options for single fields):')
    usual = stacks["linux"]
    for name, fields in stacks.items():
        differs = {key: value for key, value in fields.items() if usual[key] != value}
        shown = (f"{key} = {_toml(value)}" for key, value in (differs or fields).items())
        print_text(f"  {name}: {', '.join(shown)}")
    print_text("\nPapers, for dumbbell reproduce:")
    for name, title in titles.items():
        print_text(f"  {name}: {title}")
    print_text("\nMetrics, of dumbbell.metrics:")
    for name, meaning in meanings.items():
        print_text(f"  {name}: {meaning}")


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
