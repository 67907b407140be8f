"""What mkdocs makes beside the pages in docs/: the first page, and details of the reference.

The first page is README.md. Three pages of the reference get the docstrings of metrics and of
dumbbell.cc, and the heads of the algorithms' source files, so that they cannot say anything else
than the program does. `reference.py` has the tables within the pages, mkdocs-click adds the
commands, mkdocstrings the Python API.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab_links import with_links
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from dumbbell import _core, cc, metrics
from dumbbell.lab import page_with

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates/cc/src"
REPOSITORY = "https://github.com/dumbbell-lab/dumbbell/blob/main"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds README.md as the first page, and the laboratory."""
    files.append(File.generated(config, "index.md", content=quick_start()))
    files.append(File.generated(config, "lab.html", content=page_with()))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Adds what is made; links that leave docs/ lead to the site's first page or the repository.

    Below every experiment and figure is a link that opens it in the laboratory.
    """
    del config, files
    here = posixpath.dirname(page.file.src_uri)
    if make := MADE.get(page.file.src_uri):
        markdown = f"{markdown}\n{make()}"
    lab = posixpath.relpath("lab.html", here or ".")
    markdown = with_links(markdown, lab)

    def lead(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(here, link[1]))
        if path == "../README.md":
            return f"]({posixpath.relpath('index.md', here or '.')})"
        return f"]({REPOSITORY}/{path.removeprefix('../')})" if path[:3] == "../" else link[0]

    return re.sub(r"\]\((\.\./[\w./-]+)\)", lead, markdown)


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Refuses a page in which the fence of a code block stands as text."""
    del config, files
    if "```" in html:
        problem = "has a fence that is none: write ``` and one word, such as ```sh"
        raise PluginError(f"docs/{page.file.src_uri}: {problem}")
    return html


def quick_start() -> str:
    """README.md, its links as seen from the site."""
    text = (ROOT / "README.md").read_text().replace("](docs/", "](")
    return re.sub(
        r"\]\(((?:[\w-]+/)*(?:LICENSE[\w.-]*|CITATION.cff|CONTRIBUTING.md|SECURITY.md)|examples/[\w.-]+)\)",
        rf"]({REPOSITORY}/\1)",
        text,
    )


def measures() -> str:
    """Every metric, from its docstring: formula, unit, source."""
    parts = []
    for metric in metrics.LISTED:
        signature = str(inspect.signature(metric)).replace("'", "")
        text = _prose(inspect.getdoc(metric) or "")
        home = metric.__module__.rpartition(".")[2]
        call = f"{home}.{metric.__name__}{signature}"
        parts.append(f"## {metric.__name__}\n\n```python\n{call}\n```\n\n{text}\n")
    return "\n".join(parts)


def interface() -> str:
    """`dumbbell.cc`: the classes to derive from."""
    parts = []
    tiers = (cc.WindowRule, cc.RoundControl, cc.CongestionControl)
    for tier in tiers:
        parts.append(f"## {tier.__name__}\n\n{_prose(inspect.getdoc(tier) or '')}\n")
        for name, member in inspect.getmembers(tier, inspect.isfunction):
            if name != "__init__":
                signature = str(inspect.signature(member)).replace("'", "")
                said = _prose(inspect.getdoc(member) or "")
                parts.append(
                    f"### {tier.__name__}.{name}\n\n```python\n{name}{signature}\n```\n\n{said}\n"
                )
    return "\n".join(parts)


def equations() -> str:
    """What every algorithm's source file says at its head: the paper and its equations."""
    parts = []
    files = source_files()
    for file in dict.fromkeys(file for of_one in files.values() for file in of_one):
        names = ", ".join(f"`{name}`" for name, of_one in files.items() if file in of_one)
        where = file.relative_to(ROOT).as_posix()
        head = re.sub(r"^#", "###", head_of(file), flags=re.M)
        parts.append(
            f"## {file_title(file)}\n\n{names}, [{where}]({REPOSITORY}/{where})\n\n{head}\n"
        )
    return "\n".join(parts)


def file_title(file: Path) -> str:
    """What a source file is about."""
    folder = file.parent.name
    return file.stem if folder == "src" else f"{folder}/{file.stem}"


def source_files() -> dict[str, list[Path]]:
    """The files of every algorithm: the one that has its name, and that of its type."""
    listed = re.findall(
        r'^    "([\w+-]+)" (?:\["[\w-]+"\] )?\w+\((.*?)\) =',
        (SOURCES / "algorithm.rs").read_text(),
        re.M,
    )
    found = {}
    for name, of_type in listed:
        kind = re.sub(r"^(?:Box<)?(?:Windowed<)?(\w+).*", r"\1", of_type)
        homes = [file for file in sorted(SOURCES.rglob("*.rs")) if _defines(file, kind)]
        own = SOURCES / f"{name.replace('-', '_')}.rs"
        if kind in ("BbrV1", "BbrV3"):
            homes = [SOURCES / "bbr/mod.rs", *_parts(name)]
        found[name] = [*homes, *([own] if own.is_file() and own not in homes else [])]
    return found


def _parts(name: str) -> list[Path]:
    """The files of a version of BBR, by the table at the head of `bbr/mod.rs`."""
    rows = re.findall(
        r"^\| \W*`([\w/]+)`\W* \|.*\|(.*)\|(.*)\|$", head_of(SOURCES / "bbr/mod.rs"), re.M
    )
    marks = ("x", "F-BBRv2") if name == "f-bbr2" else ("x",)
    which = 0 if name == "bbr" else 1
    return [SOURCES / f"bbr/{part}.rs" for part, *mark in rows if mark[which].strip() in marks]


def _defines(file: Path, kind: str) -> bool:
    return re.search(rf"^pub struct {kind}\b", file.read_text(), re.M) is not None


def head_of(file: Path) -> str:
    """The documentation at the head of a Rust file, without links to other items."""
    lines = []
    for line in file.read_text().splitlines():
        if not line.startswith("//!"):
            break
        lines.append(line.removeprefix("//!").removeprefix(" "))
    text = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", "\n".join(lines))
    return re.sub(r"^```$", "```", text, flags=re.M)


def _prose(text: str) -> str:
    """A docstring as Markdown: its sections as lists, doubled backticks single."""
    text = text.replace("``", "`")
    text = re.sub(
        r"::\n\n((?:    .*\n?|\n)+)",
        lambda m: f":\n\n```text\n{inspect.cleandoc(m[1])}\n```\n",
        text,
    )
    text = re.sub(r"^(Args|Returns|Raises|Attributes):$", r"**\1**\n", text, flags=re.M)
    return re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.M)


MADE = {
    "reference/equations.md": equations,
    "reference/metrics.md": measures,
    "reference/cc.md": interface,
}
"""What is added to a page, by its path."""

assert _core.algorithms(), "the engine is built"
