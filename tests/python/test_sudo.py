"""What root makes by sudo in a user's folders belongs to that user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import dumbbell
from dumbbell import Experiment
from dumbbell.experiment.files import give_to_user, write_text
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

USER, GROUP = 12_345, 12_346

TEXT = """
duration = "1 s"
seeds = 2
[[link]]
name = "bottleneck"
rate = "5 Mbit/s"
delay = "10 ms"
[[flow]]
cc = "reno"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user of sudo."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, USER, GROUP)
    monkeypatch.setenv("SUDO_UID", str(USER))
    monkeypatch.setenv("SUDO_GID", str(GROUP))
    monkeypatch.setenv("DUMBBELL_STORE", str(home / "cache" / "dumbbell"))
    return home


def owners(path: Path) -> set[tuple[int, int]]:
    states = [file.lstat() for file in (path, *path.rglob("*"))]
    return {(state.st_uid, state.st_gid) for state in states}


def test_results_sweeps_and_the_store_belong_to_the_user_of_sudo(home: Path) -> None:
    for seeds in (1, 2):  # the second replaces the first
        dumbbell.run(Experiment.parse(TEXT), seeds=seeds, out=home / "results" / "one")
    sweep = Sweep.parse(f'{TEXT}[sweep]\n"flow.*.cc" = ["reno", "cubic"]\n')
    run_sweep(sweep, home / "results" / "sweep")
    write_text(home / "pages" / "page.html", "a page")
    made = {path.name for path in home.rglob("*")}
    assert {"flows.parquet", "plan.parquet", "sweep.toml", "cache", "page.html"} <= made
    assert owners(home) == {(USER, GROUP)}


def test_links_are_not_followed_when_files_are_given_to_a_user(home: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("of root")
    made = home / "made"
    made.mkdir()
    (made / "link").symlink_to(tmp_path / "kept")
    (home / "link").symlink_to(tmp_path / "kept")
    give_to_user(made)
    give_to_user(home / "link")
    assert owners(tmp_path / "kept") == {(0, 0)}
    assert owners(made) == {(USER, GROUP)}


def test_what_root_makes_in_a_folder_of_another_stays_roots(home: Path, tmp_path: Path) -> None:
    write_text(tmp_path / "file", "of root")
    os.chown(home, USER + 1, GROUP)
    write_text(home / "file", "of root")
    assert owners(tmp_path / "file") | owners(home / "file") == {(0, 0)}
