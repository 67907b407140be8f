"""The project's rules for tests, licences and packages, and its scripts."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PYTHON_TEST = re.compile(r"^ *(?:async )?def test_(\w+)", re.M)
RUST_TEST = re.compile(r"#\[(?:tokio::)?test\b[^\]]*\]\s+(?:#\[[^\]]*\]\s+)*(?:async )?fn (\w+)")


def script(name: str) -> ModuleType:
    """A file of ``scripts/`` as a module."""
    found = importlib.util.spec_from_file_location(f"scripts_{name}", ROOT / f"scripts/{name}.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def cargo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cargo's command is found."""
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("folder", "files", "pattern"),
    [("tests", "*.py", PYTHON_TEST), ("crates", "*.rs", RUST_TEST)],
    ids=["python", "rust"],
)
def test_names_of_tests_have_at_most_70_characters(
    folder: str, files: str, pattern: re.Pattern[str]
) -> None:
    names = [n for path in (ROOT / folder).rglob(files) for n in pattern.findall(path.read_text())]
    assert len(names) > 500
    assert [name for name in names if len(name) > 70] == []


@pytest.mark.usefixtures("cargo")
def test_third_party_licences_name_every_library_of_the_wheel() -> None:
    libraries = script("licences").libraries({"dumbbell-py": ()})
    assert len(libraries) > 100
    text = (ROOT / "THIRD-PARTY-LICENSES").read_text()
    named = set(re.findall(r"^(\S+ \d\S+): ", text, re.M))
    assert libraries - named == set(), "run make licences"


@pytest.mark.slow
@pytest.mark.usefixtures("cargo")
def test_the_source_package_has_the_sources_of_the_ebpf_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    [built] = tmp_path.iterdir()
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = (ROOT / "crates/bpf/src/bpf").rglob("*.[ch]")
    needed = {str(path.relative_to(ROOT)) for path in sources}
    assert len(needed) > 20
    # Where its folder is, the crate must be whole: Cargo reads every folder of the workspace.
    needed |= {"crates/bpf/Cargo.toml", "crates/bpf/LICENSE-GPL-2.0", "scripts/bpf.py"}
    assert needed - names == set()


def test_links_of_the_readme_on_pypi_lead_to_files_of_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / project["readme"]).read_text()
    address = re.escape(project["urls"]["Repository"])
    links = re.findall(r"\]\((.*?)\)", text)
    assert links
    for link in links:
        file = re.fullmatch(rf"{address}(?:#readme|/blob/main/(.*))", link)
        assert file, link
        assert (ROOT / (file[1] or "README.md")).is_file(), link


@pytest.mark.parametrize(
    "parameters",
    ["rate in 1_u64..5", "mut a in vec(any::<u8>(), 9)", "amount: u64, whole: bool", "(a, b) in c"],
)
def test_explore_finds_every_kind_of_property_test(parameters: str) -> None:
    found = script("explore").PROPERTY.findall
    assert found(f"#[test]\n    fn it_holds({parameters}) {{") == ["it_holds"]
    assert found("#[test]\nfn it_is_one() {") == []


def test_instructions_of_an_unknown_compiler_fail_only_if_strict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instructions = script("instructions")
    monkeypatch.setattr(instructions, "_output", lambda *_: "rustc 1.0.0 (of another day)")
    monkeypatch.setattr(instructions, "_per_packet", lambda _: 1e9)
    assert instructions.main([]) == 0
    assert instructions.main(["--strict"]) == 1


def test_the_workflow_has_the_compiler_that_instructions_are_known_of() -> None:
    record = tomllib.loads((ROOT / "crates/sim/benches/instructions.toml").read_text())
    assert record["compiler"] == script("setup").RUST


@pytest.mark.usefixtures("cargo")
def test_the_record_of_the_laboratory_has_every_crate_in_its_page() -> None:
    options = "--locked --package=dumbbell-wasm --edges=normal --prefix=none"
    command = ["cargo", "tree", *options.split()]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    compiled = set(re.findall(r"^dumbbell-(\S+)", said, re.M))
    assert {"sim", "rtp", "bulk"} <= compiled
    record = (ROOT / "python/dumbbell/lab/sources.sha256").read_text()
    assert compiled == script("lab").crates() == set(re.findall(r" crates/(\w+)/src/", record))
