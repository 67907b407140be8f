"""The command `dumbbell`: within this process, which is quicker, or as a program of its own."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dumbbell.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

DUMBBELL = Path(sys.executable).with_name("dumbbell")

Done = subprocess.CompletedProcess[str]

EXPERIMENT = """
duration = "2 s"

[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"

[[flow]]
name = "first"
cc = "reno"

[[flow]]
name = "second"
cc = "cubic"
start = "100 ms"
"""


def dumbbell(*arguments: str | Path, cwd: Path) -> Done:
    """Runs the command in a folder, within this process."""
    words = [str(argument) for argument in arguments]
    printed, said = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.resetwarnings()
        patch.chdir(cwd)
        patch.delenv("COLUMNS", raising=False)  # whatever the terminal of these tests is
        patch.setattr(sys, "argv", [str(DUMBBELL), *words])
        patch.setattr(sys, "stdout", printed)
        patch.setattr(sys, "stderr", said)
        with pytest.raises(SystemExit) as end:
            main()
    status = end.value.code or 0
    assert isinstance(status, int)
    return Done(words, status, printed.getvalue(), said.getvalue())


def program(*arguments: str | Path, cwd: Path, **settings: Any) -> Done:
    """Runs the program in a folder, with more settings of `subprocess.run`."""
    command = [DUMBBELL, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **settings)


def output_of(*arguments: str | Path, cwd: Path) -> str:
    """What a command prints that succeeds and has nothing to complain about."""
    done = dumbbell(*arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complaint_of(*arguments: str | Path, cwd: Path, run: Callable[..., Done] = dumbbell) -> str:
    """The one paragraph that a command says of a mistake; checks that it left nothing behind."""
    before = everything(cwd)
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1
    assert everything(cwd) == before
    return done.stderr.removeprefix("dumbbell: ").removesuffix("\n")


def everything(folder: Path) -> set[Path]:
    """All that is in a folder."""
    return set(folder.rglob("*"))
