"""The wheel: from an empty environment without a compiler to a first table and a first figure.

`DUMBBELL_WHEEL` names the wheel; without it the one of this clone is built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel under test."""
    if named := os.environ.get("DUMBBELL_WHEEL"):
        return Path(named).resolve()
    out = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    if not maturin.exists():
        pytest.skip("maturin, which builds the wheel, is missing")
    # As the setup builds the engine, so that nothing is compiled twice.
    words = "build --release --locked --compatibility off --out"
    command: list[str | Path] = [maturin, *words.split(), out]
    path = f"{maturin.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, check=True)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the commands of an environment that has the wheel and no tools."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True)
    pins = home / "pins.txt"
    lock = (ROOT / "requirements.lock").read_text()
    pins.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]+", lock, flags=re.MULTILINE)))
    words = "-m pip install --quiet --constraint"
    command: list[str | Path] = [home / "bin/python", *words.split(), pins, wheel]
    done = subprocess.run(
        command, env=bare(home / "bin"), stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode and "connection broken by" in done.stderr:
        pytest.skip("pip cannot reach the package index, which has what the wheel needs")
    assert done.returncode == 0, done.stderr
    return home / "bin"


def bare(commands: Path) -> dict[str, str]:
    """An environment whose PATH has no compiler, no git and no Rust."""
    kept = ("PIP_", "SSL_", "HTTP", "http", "REQUESTS_")
    settings = {key: value for key, value in os.environ.items() if key.startswith(kept)}
    return settings | {"PATH": str(commands), "HOME": str(commands.parent), "COLUMNS": "80"}


def test_the_wheel_alone_gives_a_first_table_and_a_first_figure(
    installed: Path, tmp_path: Path
) -> None:
    start = time.perf_counter()
    commands = (
        "compare --cc reno,cubic,bbr,bbr3 --rate 100Mbit/s --rtt 100ms",
        "init",
        "run experiment.toml --out result",
        "plot result --out first.pdf",
    )
    printed = [
        subprocess.run(
            [installed / "dumbbell", *words.split()],
            cwd=tmp_path,
            env=bare(installed),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for words in commands
    ]
    print(f"from the wheel to the first figure: {time.perf_counter() - start:.1f} s")
    assert "Throughput" in printed[0]
    assert (tmp_path / "first.pdf").read_bytes().startswith(b"%PDF")


def test_the_wheel_has_every_file_of_the_package_and_the_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    listed = subprocess.run(
        ["git", "ls-files", "dumbbell"], cwd=ROOT / "python", capture_output=True, check=True
    )
    files = set(listed.stdout.decode().split())
    assert len(files) > 100
    assert files - names == set()
    assert {name.rpartition("/")[2] for name in names} >= {
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "LICENSE-GPL-2.0",
        "THIRD-PARTY-LICENSES",
        "uPlot.LICENSE",
        "lab.LICENSE",
    }
