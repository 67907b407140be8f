"""Where no more can be written one line says so, and no file is there in part."""

from __future__ import annotations

import resource
from functools import partial
from typing import TYPE_CHECKING

import pytest
from command import Done, program

import dumbbell
from dumbbell import Experiment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

EXPERIMENT = """
duration = "2 s"
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
cc = "reno"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dumbbell.run(Experiment.parse(EXPERIMENT)).save(tmp_path_factory.mktemp("r") / "result")


@pytest.fixture
def place(result: Path, tmp_path: Path) -> Path:
    (tmp_path / "a.toml").write_text(EXPERIMENT)
    (tmp_path / "sweep.toml").write_text(f'{EXPERIMENT}[sweep]\n"flow.*.cc" = ["reno", "cubic"]\n')
    (tmp_path / "result").symlink_to(result)
    return tmp_path


def run(command: str, place: Path, most: int) -> Done:
    """Runs a command that can write files of so many bytes at most, as on a disk that is full."""
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    return program(*command.split(), cwd=place, preexec_fn=limit)


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("run a.toml --out new", []),
        ("plot result --out new", []),
        ("report result --out new", []),
        ("plot result windows --format svg --out new.svg", []),
        ("export result --format csv --out new", ["new", "new/flows.csv"]),
        ("export result --format arrow --out new", ["new"]),
        ("export result --format qlog --out new", ["new"]),
    ],
)
def test_a_full_disk_is_told_and_leaves_no_part_of_a_file(
    place: Path, command: str, left: list[str]
) -> None:
    there = set(place.iterdir())
    done = run(command, place, 2000)
    new = command.rpartition(" ")[2]
    assert done.stderr == f"dumbbell: {new}: cannot be written: File too large\n"
    assert (done.returncode, done.stdout) == (2, "")
    found = {path for top in set(place.iterdir()) - there for path in (top, *top.rglob("*"))}
    assert sorted(str(path.relative_to(place)) for path in found) == left


def test_a_sweep_that_fills_the_disk_goes_on_when_there_is_room(place: Path) -> None:
    done = run("sweep sweep.toml --out swept", place, 2000)
    said = "dumbbell: swept: cannot be written: File too large; what is there is whole\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert run("sweep sweep.toml --out swept", place, 10**9).returncode == 0
    assert dumbbell.query("from runs", place / "swept").height == 2
