"""Experiments as commands take them: files, or links of the laboratory."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dumbbell import _core
from dumbbell.errors import DumbbellError, in_file
from dumbbell.lab.link import Shared, is_link, read_link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumbbell.experiment.model import Experiment

LINK: Final = "the link"
"""What errors call a link in the place of a file."""

OWN_CODE: Final = "own.js:"
"""How a flow names an algorithm of the laboratory's own code."""


def load(file: Path, assignments: list[str] | None) -> Experiment:
    """The experiment of a file or a link, with keys overridden; its errors name the file."""
    from dumbbell.experiment.model import Experiment

    if not is_link(str(file)):
        if assignments and _core.ParsedSweep.is_in(text_of(file)):
            from dumbbell.sweeps.plan import Sweep

            return Sweep.load(file, overrides=assignments).only()
        return Experiment.load(file, overrides=assignments or [])
    shared = read_link(str(file))
    if OWN_CODE in shared.toml:
        problem = f"{LINK}: has an algorithm in JavaScript, which only the laboratory runs"
        raise DumbbellError(f"{problem}; open the link in a browser, or write it in Python")
    with in_file(LINK), tempfile.TemporaryDirectory() as folder:
        # Names in a link are a stranger's: no file has one.
        files = {name: Path(folder) / f"trace-{i}" for i, name in enumerate(shared.traces)}
        for name, path in files.items():
            path.write_text(shared.traces[name])
        experiment = Experiment.parse(shared.toml, overrides=assignments or [])
        links = [
            link.replace(trace=str(_file_of(link.trace, files)))
            if isinstance(link.trace, str)
            else link
            for link in experiment.links
        ]
        flows = [
            flow.replace(app_rates=str(_file_of(flow.app_rates, files)))
            if isinstance(flow.app_rates, str)
            else flow
            for flow in experiment.flows
        ]
        # The files are gone afterwards: what is resolved has their contents in their place.
        located = experiment.replace(links=links, flows=flows)
        return located.resolve() if shared.traces else experiment


def _file_of(name: str, files: Mapping[str, Path]) -> Path:
    if name not in files:
        problem = f'{LINK}: it does not hold the file "{name}"'
        raise DumbbellError(f"{problem}; copy the link again where the file can be read")
    return files[name]


def text_of(file: Path) -> str:
    """The text of a file or a link."""
    from dumbbell.experiment.files import read_text

    if is_link(str(file)):
        return read_link(str(file)).toml
    with in_file(file):
        return read_text(file)


def name_of(file: Path) -> Path:
    """A file itself; for a link a name from its title."""
    if not is_link(str(file)):
        return file
    title = re.search(r'^title\s*=\s*"(.*)"', read_link(str(file)).toml, re.M)
    name = re.sub(r"[^a-z0-9]+", "-", title[1].lower() if title else "").strip("-")
    return Path(f"{name[:40].rstrip('-') or 'link'}.toml")


def shared_of(file: Path) -> Shared:
    """What a file or a link holds, with its trace files; of a sweep the first point."""
    if is_link(str(file)):
        return read_link(str(file))
    text = text_of(file)
    if _core.ParsedSweep.is_in(text):
        from dumbbell.sweeps.plan import Sweep

        text = Sweep.load(file).experiment(0).to_toml()
    return Shared(text, traces=_traces(text, file.parent))


def _traces(text: str, folder: Path) -> dict[str, str]:
    """The traces and rates that a file names; the page tells of those that cannot be read."""
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
    found_in = (("link", "trace"), ("flow", "app_rates"))
    lists = [(tables, key) for of, key in found_in if isinstance(tables := content.get(of), list)]
    named = [table.get(key) for tables, key in lists for table in tables if isinstance(table, dict)]
    files = {name: folder / name for name in named if isinstance(name, str)}
    found = {}
    for name, path in files.items():
        with suppress(OSError, UnicodeDecodeError):
            found[name] = path.read_text("utf-8")
    return found
