"""Writes ``explanation/dossiers-linux.json``: surprising findings, checked with real packets.

    python scripts/pages/dossiers_linux.py docs [MEASURE...]

Of each measure the first paths on which the simulator has an algorithm beyond the limit and another
one within it; on these the kernel runs both. It takes a quarter of an hour, as root; what it found
before is kept of measures that are not named, if any is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import arguments

from dumbbell import _core
from dumbbell.dossier import words
from dumbbell.dossier.bench import Bench
from dumbbell.dossier.clauses import choose, needs_series
from dumbbell.dossier.measures import values
from dumbbell.dossier.real import measure
from dumbbell.dossier.scenarios import Scenario
from dumbbell.experiment.files import write_text

_FINDINGS: Final = (
    ("retransmitted-constrained", "cubic", "reno"),
    ("latecomer-late", "cubic", "reno"),
    ("delay-aqm", "bbr", "cubic"),
)
"""A measure, an algorithm that does surprisingly badly, and one that does well."""

_LOOKED_AT: Final = 20
_PATHS: Final = 2


def _finding(name: str, worse: str, better: str, bench: Bench) -> dict[str, Any]:
    [clause] = choose([name], {})
    [one] = clause.measures
    scenario, algorithms = Scenario(one.scenario), [worse, better]
    design, series = scenario.design(algorithms, _LOOKED_AT), needs_series(one.scenario)
    simulated = values(bench.run(design, one.scenario, series=series), one.kind).pivot(
        "cc", index="path", values="value"
    )
    chosen = [
        (path, dict(zip(algorithms, its, strict=True)))
        for path, *its in simulated.select("path", *algorithms).rows()
        if its[0] is not None and its[1] is not None and its[0] > one.limit >= its[1]
    ][:_PATHS]
    every = scenario.first(_LOOKED_AT)
    paths = [every[path] for path, _ in chosen]
    real = values(measure(bench, scenario, paths, algorithms), one.kind)
    if real.height < len(paths) * len(algorithms):
        raise SystemExit(f"{name}: the machine disturbed a run; start again, the others are kept")
    rows = []
    for number, (path, found) in enumerate(chosen):
        its = {
            cc: value for at, cc, value in real.select("path", "cc", "value").rows() if at == number
        }
        rows.append({"settings": every[path], "simulator": found, "linux": its})
    return {
        "measure": name,
        "section": clause.section,
        "title": one.kind.column.title,
        "unit": one.kind.column.unit,
        "scale": one.kind.column.scale,
        "limit": one.limit,
        "worse": worse,
        "better": better,
        "paths": [row | {"path": words.path(row["settings"])} for row in rows],
    }


def write(docs: Path, named: list[str]) -> Path:
    """Runs the measures, all if none is named, and writes the data into `docs`."""
    path = docs / "explanation/dossiers-linux.json"
    before = json.loads(path.read_text())["findings"] if named else []
    kept = {one["measure"]: one for one in before if one["measure"] not in named}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, worse, better in _FINDINGS:
            one = kept.get(name) or _finding(name, worse, better, Bench(Path(folder)))
            print(json.dumps(one, indent=1), flush=True)
            found.append(one)
    kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
    data = {"version": _core.__version__, "kernel": kernel, "findings": found}
    write_text(path, json.dumps(data, indent=1) + "\n")
    return path


if __name__ == "__main__":
    print(write(arguments.folder(__doc__), sys.argv[2:]))
