"""Names that were replaced stay away: docs/notes/names.md lists them."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/notes/names.md"

# How a name of each kind is declared in Rust. Fields and variants count in bodies of types only.
DECLARED = {
    "type": r"\b(?:struct|enum|union|type|trait) {}\b",
    "trait": r"\btrait {}\b",
    "fn": r"\bfn {}\b",
    "const": r"\b(?:const|static) {}\b",
    "field": r"^\s*(?:pub(?:\([a-z:]+\))? )?{}: ",
    "variant": r"^\s*{}(?:,|\(| \{{| = )",
    "module": r"\bmod {}\b",
}
BODIES = {"field": "struct|union", "variant": "enum"}


@functools.cache
def rows() -> list[list[str]]:
    """The path, kind, old and new name of every row of the table."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


@functools.cache
def code(file: Path) -> str:
    """A source file without its comments."""
    return re.sub(
        r"//.*|/\*.*?\*/", "", file.read_text(), flags=re.DOTALL if file.suffix != ".rs" else 0
    )


@functools.cache
def bodies(file: Path, keywords: str) -> str:
    """What stands between the braces of a file's structs, or of its enums."""
    pattern = rf"\b(?:{keywords}) \w+[^;{{]*\{{(.*?)^\s*\}}"
    return "\n".join(re.findall(pattern, code(file), re.MULTILINE | re.DOTALL))


def declares(file: Path, kind: str, name: str) -> bool:
    """Whether a file declares the name; in C, whether it has the word at all."""
    if file.suffix != ".rs":
        return re.search(rf"\b{re.escape(name)}\b", code(file)) is not None
    text = bodies(file, BODIES[kind]) if kind in BODIES else code(file)
    return re.search(DECLARED[kind].format(re.escape(name)), text, re.MULTILINE) is not None


def test_a_declaration_with_an_old_name_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.rs"
    file.write_text("struct Tail {\n    gap: u32,\n}\nfn strike(before: u32) {}\n// fn told()\n")
    assert declares(file, "type", "Tail")
    assert declares(file, "field", "gap")
    assert declares(file, "fn", "strike")
    assert not declares(file, "field", "before")
    assert not declares(file, "fn", "told")


@pytest.mark.parametrize("scope", sorted({row[0] for row in rows()}))
def test_nothing_is_declared_by_a_name_that_was_replaced(scope: str) -> None:
    place = ROOT / scope
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    files = [file for file in files if file.suffix in {".rs", ".c", ".h"}]
    assert files or place.is_dir(), "the table names a path that is gone"
    left = []
    for _, kind, old, new in (row for row in rows() if row[0] == scope):
        if kind == "file":
            left += [f"{old} is {new} now"] if (ROOT / old).is_file() else []
            continue
        where = [file for file in files if declares(file, kind, old)]
        left += [f"{file.relative_to(ROOT)}: {kind} {old} is {new} now" for file in where]
    assert left == []
