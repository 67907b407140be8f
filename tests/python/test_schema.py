"""The JSON Schema of experiment files, tried with a TOML language server's validator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from dumbbell import _core
from dumbbell.cli.compare import Ecn, Stack

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.toml"))
TAPLO = Path(sys.executable).with_name("taplo")


def test_options_of_the_command_have_the_values_of_the_simulator() -> None:
    assert list(get_args(Stack)) == list(_core.stacks())
    assert f"one of {', '.join(get_args(Ecn))}." in _core.explain("stack_options.ecn")


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


SWEEP = """
[sweep]
"link.bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"]
"flow.*.cc" = { values = [0.5, 0.7], as = "cubic(beta={})", name = "beta" }
flow.first.rtt = { from = "40 ms", to = "80 ms", points = 3, scale = "log" }
"stack_options.pacing" = [true, false]
duration = ["1 s", "2 s"]
"""


def write_sweep(folder: Path, table: str) -> Path:
    text = (EXAMPLES[0].parent / "shallow-buffer.toml").read_text()
    (folder / "sweep.toml").write_text(f"{text}\n{table}")
    return folder / "sweep.toml"


def test_axes_are_valid_by_the_schema(schema: Path, tmp_path: Path) -> None:
    assert is_valid(write_sweep(tmp_path, SWEEP), schema)
    zipped = '[sweep]\ncombine = "zip"\nduration = ["1 s", "1 s"]\n"flow.*.cc" = ["bbr", "reno"]'
    assert is_valid(write_sweep(tmp_path, zipped), schema)
    drawn = SWEEP.replace("[sweep]", '[[sweep]]\ncombine = "random"\npoints = 5\nseed = 2')
    assert is_valid(write_sweep(tmp_path, drawn), schema)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"20 Mbit/s"]', '"20 Mbt/s"]'),
        ('["10 Mbit/s", "20 Mbit/s"]', "[]"),
        ('["10 Mbit/s", "20 Mbit/s"]', '"10 Mbit/s"'),
        ("points = 3", "point = 3"),
        ("points = 3", "points = 0"),
        ('to = "80 ms", ', ""),
        ('scale = "log"', 'scale = "logarithmic"'),
        ("[sweep]", '[sweep]\ncombine = "gird"'),
        ('duration = ["1 s", "2 s"]', "duration = [1, 2]"),
    ],
)
def test_a_mistake_in_an_axis_is_found_by_the_schema(
    good: str, bad: str, schema: Path, tmp_path: Path
) -> None:
    assert good in SWEEP
    assert not is_valid(write_sweep(tmp_path, SWEEP.replace(good, bad)), schema)
