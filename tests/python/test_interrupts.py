"""Ctrl-C: a process that receives SIGINT ends soon, and leaves nothing half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import everything

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals are sent as on Unix"),
]

DUMBBELL = Path(sys.executable).with_name("dumbbell")

NEVER_RETURNS = """
import time
from pathlib import Path

from dumbbell.cc import CongestionControl


class Loops(CongestionControl):
    def __init__(self, init):
        super().__init__(init)
        self.cwnd = 10.0

    def on_ack(self, path, ack):
        Path("acked").touch()
        self.go_on()

    def on_congestion(self, path, event): ...

    def go_on(self):
        while True:
            pass


class Catches(Loops):
    def go_on(self):
        while True:
            try:
                super().go_on()
            except Exception:
                pass


class Sleeps(Loops):
    def go_on(self):
        time.sleep(1000)
"""

MARKS_ITS_FIRST_ACK = """
from pathlib import Path

from dumbbell.cc import WindowRule


class Marking(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        Path("first-ack").touch()
        return acked / cwnd

    def decrease(self, cwnd, path, event):
        return cwnd / 2

    def observe(self, path, ack):
        Path("first-ack").touch()
"""

EXPERIMENT = """
duration = "3 s"
seeds = 4

[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"

[[flow]]
name = "flow"
cc = "never.py:Loops"
"""

SWEEP = EXPERIMENT + '\n[sweep]\n"link.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]\n'


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["run", "a.toml"], set()),
        (["run", "a.toml", "--set", "flow.flow.cc=never.py:Catches"], set()),
        (["run", "a.toml", "--set", "flow.flow.cc=never.py:Sleeps"], set()),
        (["compare", "--cc", "reno,never.py:Loops", "--flows", "1"], set()),
        (["sweep", "sweep.toml", "--out", "sweep"], {"sweep"}),
    ],
    ids=["run", "caught", "asleep", "compare", "sweep"],
)
def test_an_interrupt_ends_an_algorithm_that_never_returns(
    arguments: list[str], left: set[str], tmp_path: Path
) -> None:
    files = {"a.toml": EXPERIMENT, "sweep.toml": SWEEP, "never.py": NEVER_RETURNS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        [DUMBBELL, *arguments], cwd=tmp_path, stdout=pipe, stderr=pipe, text=True
    )
    while not (tmp_path / "acked").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=5)
    assert running.returncode == 130
    assert "Traceback" not in said
    kept = {path.name for path in tmp_path.iterdir()} - {"__pycache__", "acked"}
    assert kept == set(files) | left


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "a.toml"],
        ["run", "a.toml"],
        ["compare", "--cc", "imported.py:Loops"],
        ["compare", "--cc", "imported:Loops"],
        ["sweep", "sweep.toml", "--out", "sweep"],
    ],
    ids=["check", "run", "compare", "module", "sweep"],
)
def test_an_interrupt_ends_the_import_of_an_algorithm(arguments: list[str], tmp_path: Path) -> None:
    module = 'open("importing", "w").close()\nwhile True: pass\n'
    (tmp_path / "imported.py").write_text(module)
    for name, text in (("a.toml", EXPERIMENT), ("sweep.toml", SWEEP)):
        (tmp_path / name).write_text(text.replace("never.py", "imported.py"))
    pipe = subprocess.PIPE
    running = subprocess.Popen(
        [DUMBBELL, *arguments], cwd=tmp_path, stdout=pipe, stderr=pipe, text=True
    )
    while not (tmp_path / "importing").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=5)
    assert (running.returncode, said) == (130, "dumbbell: stopped\n")


def test_an_interrupted_run_writes_nothing(file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MARKS_ITS_FIRST_ACK)
    command: list[str | Path] = [
        DUMBBELL,
        "run",
        file,
        "--set",
        "duration=100000 s",
        "--set",
        "sample=1 s",
        "--set",
        "flow.second.cc=mine.py:Marking",
    ]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "first-ack").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in said
    left = {path for path in everything(tmp_path) if "__pycache__" not in path.parts}
    assert left == {file, mine, tmp_path / "first-ack"}
