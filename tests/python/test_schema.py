"""The JSON Schema of experiment files, tried with a TOML language server's validator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dumbbell import _core

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.toml"))
TAPLO = Path(sys.executable).with_name("taplo")


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "experiment.json"
    path.write_text(_core.experiment_schema())
    return path


def is_valid(file: Path, schema: Path) -> bool:
    command = [str(TAPLO), "check", "--schema", schema.as_uri(), str(file)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid_by_the_schema(example: Path, schema: Path) -> None:
    assert is_valid(example, schema)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('rate = "20 Mbit/s"', 'rate = "20 Mbt/s"'),
        ('duration = "60 s"', "duration = 60"),
        ('cc = "reno"', 'cc = ["reno"]'),
        ("delay = ", "dealy = "),
    ],
)
def test_a_mistake_is_found_by_the_schema(
    good: str, bad: str, schema: Path, tmp_path: Path
) -> None:
    text = (EXAMPLES[0].parent / "shallow-buffer.toml").read_text()
    assert good in text
    (tmp_path / "bad.toml").write_text(text.replace(good, bad))
    assert not is_valid(tmp_path / "bad.toml", schema)
