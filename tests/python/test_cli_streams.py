"""Output that cannot be printed, shown or read: a full device, another encoding, a closed pipe."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from command import DUMBBELL, EXPERIMENT


@pytest.mark.parametrize("arguments", [("list",), ("run", "a.toml", "--json"), ("--help",)])
@pytest.mark.slow
def test_where_nothing_can_be_printed_one_line_says_so(
    file: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file.rename(tmp_path / "a.toml")
    with Path("/dev/full").open("w") as full:
        command = [str(DUMBBELL), *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "dumbbell: what it prints cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show_are_told_in_its_own_letters(
    file: Path, tmp_path: Path
) -> None:
    file.write_text(EXPERIMENT.replace("first", "größt"))
    for arguments in ((), ("--json",)):
        command = [str(DUMBBELL), "run", str(file), "--out", "r", *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=True,
        )
        told = done.stdout.decode("ascii")
    assert json.loads(told)["flows"][0]["flow"] == "größt"


def test_a_reader_that_stops_reading_is_no_mistake(tmp_path: Path) -> None:
    command = f"{DUMBBELL} list | head -1"
    done = subprocess.run(
        command, cwd=tmp_path, shell=True, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("Algorithms")
    assert done.stderr == ""


def test_a_closed_pipe_has_the_status_of_sigpipe(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    process = subprocess.Popen([DUMBBELL, "list"], cwd=tmp_path, stdout=writes)
    os.close(writes)
    assert process.wait() == 141
