"""The package's layers; `lint-imports` checks the order of all but the facade."""

import ast
from pathlib import Path

import dumbbell

PACKAGE = Path(dumbbell.__file__).parent


def from_facade(file: Path) -> list[str]:
    """What a module imports that the facade, ``dumbbell/__init__.py``, offers."""
    offered = set(dumbbell.__all__)
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name == "dumbbell"]
        elif isinstance(node, ast.ImportFrom) and node.module == "dumbbell":
            found += [name.name for name in node.names if name.name in offered]
    return found


def test_no_module_of_the_package_imports_the_facade() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "__init__.py"]
    assert len(files) > 50
    assert {str(file): found for file in files if (found := from_facade(file))} == {}
