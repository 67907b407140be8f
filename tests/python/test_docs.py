"""What the documents say is what the program does."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.core import TyperGroup

import dumbbell
from dumbbell import _core, metrics
from dumbbell.cli.app import command as group
from dumbbell.experiment.model import Experiment
from dumbbell.lab import read_link
from dumbbell.papers import model
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pydantic import BaseModel

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXPERIMENT = ROOT / "docs/reference/experiment.md"
RESULTS = ROOT / "docs/reference/results.md"
ALGORITHMS = ROOT / "docs/reference/algorithms.md"
PAPERS = ROOT / "docs/reference/papers.md"
TUTORIAL = ROOT / "docs/tutorials/own-algorithm.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


OTHER_FILE = re.compile(r"# [\w/-]*(paper|gate)\.toml\n")


def section(document: Path, heading: str) -> str:
    """The text under a heading, up to the next one."""
    return re.split(r"^#+ ", document.read_text().partition(f"# {heading}\n")[2], flags=re.M)[0]


def terms(text: str) -> set[str]:
    """The code words in the first cells of a text's tables."""
    cells = re.findall(r"^\| (`[^|]*) \|", text, flags=re.M)
    return {term.strip("[]") for cell in cells for term in re.findall(r"`([^`]*)`", cell)}


def blocks(document: Path, language: str) -> list[str]:
    """The code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), flags=re.M | re.S)


def mentions(pattern: str) -> set[str]:
    """What code in any document mentions, in blocks of commands or within a sentence."""
    commands = "\n".join(
        line for doc in DOCUMENTS for block in blocks(doc, "sh") for line in [block]
    )
    inline = "\n".join(
        code for doc in DOCUMENTS for code in re.findall(r"`([^`\n]+)`", doc.read_text())
    )
    return set(re.findall(pattern, f"{commands}\n{inline}", flags=re.M))


def name_of(document: Path) -> str:
    """A document's path in the project, without its ending."""
    return str(document.relative_to(ROOT).with_suffix(""))


@pytest.mark.parametrize(
    ("heading", "kind"), [("The file", "experiment"), ("Links", "link"), ("Flows", "flow")]
)
def test_every_key_of_an_experiment_file_is_documented_and_no_other(
    heading: str, kind: str
) -> None:
    keys = {name for name, _, _ in _core.keys(kind)}
    assert terms(section(EXPERIMENT, heading)) == keys


@pytest.mark.parametrize(
    "kind",
    [
        model.Comparison,
        model.ExperimentTemplate,
        model.FigureSpec,
        model.Measure,
        model.Paper,
        model.PublishedClaim,
        model.PublishedNumber,
        model.PublishedTable,
        model.Scenario,
        model.TestbedTemplate,
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_key_of_a_paper_is_documented(kind: type[BaseModel]) -> None:
    keys = {field.validation_alias or name for name, field in kind.model_fields.items()}
    documented = set(re.findall(r"`(?:\[*)(\w+)\]*`", PAPERS.read_text()))
    assert keys - {"folder"} <= documented  # which is not a key, but where the paper is


def test_every_stack_and_every_field_of_it_is_documented_and_no_other() -> None:
    stacks = _core.stacks()
    text = section(EXPERIMENT, "Stacks")
    assert terms(text) == set(stacks["linux"])
    assert set(re.findall(r"`([\w.-]+)`", text.partition("\n\n")[0])) >= set(stacks)


def test_every_algorithm_and_every_option_of_it_is_documented_and_no_other() -> None:
    names = re.findall(r"^\| `([\w+-]+)` \|", section(ALGORITHMS, "Algorithms"), flags=re.M)
    documented: dict[str, set[str]] = {name: set() for name in names}
    options_of = r"^\| `(\w+)` \| (`[\w+-]+`(?:, `[\w+-]+`)*) \|"
    for option, of in re.findall(options_of, section(ALGORITHMS, "Options"), flags=re.M):
        for name in of.replace("`", "").split(", "):
            documented[name].add(option)
    known = {}
    for name in _core.algorithms():
        with pytest.raises(ValueError, match="has no option") as error:
            _core.check_algorithm(f"{name}(nonsense=1)")
        options = str(error.value).partition("; it has ")[2]
        known[name] = set(options.split(", ")) - {"no options"}
    assert documented == known


@pytest.mark.parametrize("table", ["flows", "series", "links", "internals"])
def test_every_column_of_a_result_is_documented_and_no_other(table: str) -> None:
    experiment = Experiment.parse(blocks(EXPERIMENT, "toml")[0]).override("duration=31 s")
    columns = set(getattr(dumbbell.run(experiment), table).columns) - {"seed", "flow", "link", "cc"}
    text = section(RESULTS, "Columns").partition(f"\n`{table}.parquet`:")[2]
    documented = re.split(r"\n\n(?=`\w+\.parquet`:)", text)[0]
    assert (terms(documented) or set(re.findall(r"`(\w+)`", documented))) == columns


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_experiment_in_a_document_is_valid(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(document, "toml"):
        for compiled in re.findall(r'"linux:([\w.]+\.o)"', block):
            Path(compiled).touch()
        if OTHER_FILE.match(block):
            continue  # another command reads it when the document's commands run
        if "[sweep]" in block or "[[sweep]]" in block:
            assert list(Sweep.parse(block).points())
        else:
            Experiment.parse(block)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=str)
def test_every_example_is_valid(example: Path) -> None:
    if "[sweep]" in example.read_text():
        sweep = Sweep.load(example)
        assert "title = " in sweep.text
        assert list(sweep.points())
    else:
        assert Experiment.load(example).title


def test_the_experiment_of_the_readme_is_the_example_that_it_names() -> None:
    (block,) = blocks(README, "toml")
    example = Experiment.load(ROOT / "examples/staggered.toml")
    assert Experiment.parse(block) == example.replace(title="")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_in_a_document_runs_and_prints_what_it_says(document: Path) -> None:
    script = ROOT / "scripts/documents.py"
    done = subprocess.run(
        [sys.executable, script, "--check", document], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_number_of_a_sentence_that_is_no_longer_printed_is_found() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import documents  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    page = "```text\nMedian 47 (46 to 51.5)\n```\nIt is 47 s. <!-- printed: 47, 46 to 51.5{} -->\n"
    assert documents.not_printed(page.format("")) == []
    assert documents.not_printed(page.format(", 39.5, 7")) == ["39.5", "7"]


def test_a_folder_that_a_document_makes_has_the_examples_it_uses() -> None:
    for document in DOCUMENTS:
        before, made, after = "".join(blocks(document, "sh")).partition(" && cd ~/")
        if made and " examples/" in after:
            assert " && cp -r examples ~/" in before, document


def test_the_tutorial_shows_the_example_in_rust_as_it_is() -> None:
    (block,) = blocks(TUTORIAL, "rust")
    assert block in (ROOT / "crates/sim/examples/custom_algorithm.rs").read_text()


def test_the_example_of_an_algorithm_in_python_is_the_one_of_the_tutorial() -> None:
    tutorial = blocks(TUTORIAL, "python")
    assert f"# calm.py\n{(ROOT / 'examples/calm.py').read_text()}" in tutorial


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built; a link that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_asks_nothing_of_any_other(site: Path) -> None:
    asking = (
        r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"'
        r'|<link\b(?![^>]*canonical)[^>]*\bhref="([^"]+)"'
    )
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        for found in re.findall(asking, page.read_text()):
            target = "".join(found)
            assert not target.startswith(("http:", "https:", "//")), f"{page.name}: {target}"
    styles = "".join(sheet.read_text() for sheet in site.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", styles)


def test_figures_of_the_site_open_in_the_laboratory(site: Path) -> None:
    opened: set[str] = set()
    closed: set[str] = set()
    for page in site.rglob("*.html"):
        text = page.read_text()
        for link in set(re.findall(r'href="[./]*lab\.html(#lab=[^"]+)"', text)):
            shared = read_link(link)
            for experiment in filter(None, (shared.toml, shared.beside)):
                Experiment.parse(experiment).resolve()
        for figure, after in re.findall(
            r'<img [^>]*src="[./]*figures/([^"]+)"[^>]*>(.{0,40})', text
        ):
            (opened if "lab.html" in after else closed).add(figure)
    # Drawings, algorithms in Python and of a kernel, a trace that the reader makes, and many paths.
    assert closed == {
        *("architecture.svg", "link.svg", "way-of-a-packet.svg"),
        *(
            "own-algorithm.svg",
            "kernel-algorithm.svg",
            "howto-links.svg",
            "linux-grid.svg",
            "linux-grid-ns3.svg",
            "linux-held-out.svg",
            "linux-rounds.svg",
            "dossiers.svg",
        ),
    }
    assert len(opened) > 15


def test_the_site_has_every_algorithm_with_its_equations_and_source(site: Path) -> None:
    text = (site / "reference/equations.html").read_text()
    for name in _core.algorithms():
        assert re.search(rf"<p>(?:<code>[^<]+</code>, )*<code>{re.escape(name)}</code>", text), name
    assert len(re.findall(r"<pre>", text)) > 20


def test_the_site_has_every_key_metric_and_command(site: Path) -> None:
    keys = (site / "reference/experiment.html").read_text()
    for kind in ("experiment", "link", "flow"):
        for name, _, _ in _core.keys(kind):
            assert f"<code>{name}</code>" in keys, name
    measures = (site / "reference/metrics.html").read_text()
    for metric in metrics.LISTED:
        assert f'id="{metric.__name__}"' in measures, metric.__name__
    commands = (site / "reference/commands.html").read_text()
    assert isinstance(group, TyperGroup)
    assert all(f"dumbbell {name}" in commands for name in group.commands)


def test_every_target_of_make_that_is_mentioned_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    mentioned = mentions(r"^make ([a-z-]+)")
    assert mentioned
    assert mentioned <= targets


def test_every_command_that_is_mentioned_exists_with_its_options() -> None:
    assert isinstance(group, TyperGroup)
    mentioned = mentions(
        r"""^dumbbell (\w+(?:"[^"]*"|[^"\n])*)$"""
    )  # a text may have several lines
    assert mentioned
    for line in mentioned:
        name, *arguments = shlex.split(line, comments=True)
        known = {option for p in group.commands[name].params for option in p.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= known, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_within_the_project_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target
