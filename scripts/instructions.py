#!/usr/bin/env python3
"""Counts the simulator's instructions per data packet, and compares them with those on record.

    scripts/instructions.py            fails if a scenario takes 3 % more than `RECORD` says
    scripts/instructions.py --strict   fails also if `RECORD` is of another compiler
    scripts/instructions.py --update   writes what it finds into `RECORD`

Callgrind counts instructions, which vary neither with the load of the machine nor from run to run,
though with the compiler: `RECORD` names the one that it holds for, and with another one nothing is
compared. The workflow installs that one, and has `--strict`.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "crates" / "sim" / "benches" / "instructions.toml"
MORE = 0.03
SCENARIOS = ("cubic 1 100 5", "cubic 100 1000 1", "bbr 1 100 5", "bbr3 1 100 5", "udt 1 100 5 udt")
"""Arguments of the example `measure`: algorithm, flows, Mbit/s, seconds."""


def main(arguments: list[str]) -> int:
    """Prints a table; returns 1 if the engine became slower."""
    compiler = _output("rustc", "--version").split()[1]
    known = tomllib.loads(RECORD.read_text()) if RECORD.is_file() else {}
    before = known.get("per_packet", {}) if known.get("compiler") == compiler else {}
    other = f"{RECORD.name} is of rustc {known.get('compiler', '(none)')}, this is {compiler}"
    if "--strict" in arguments and not before:
        print(f"nothing to compare: {other}")
        return 1
    _output(
        "cargo",
        "build",
        "--locked",
        "--release",
        "--package",
        "dumbbell-sim",
        "--example",
        "measure",
    )
    found = {scenario: _per_packet(scenario) for scenario in SCENARIOS}
    print(f"Instructions per data packet, rustc {compiler}")
    for scenario, count in found.items():
        change = f"{count / before[scenario] - 1:+.1%}" if scenario in before else ""
        print(f"  {scenario:18}{count:8.0f}  {change}")
    if "--update" in arguments:
        lines = [f'"{scenario}" = {count:.0f}' for scenario, count in found.items()]
        RECORD.write_text("\n".join([f'compiler = "{compiler}"', "", "[per_packet]", *lines, ""]))
        return 0
    if not before:
        print(f"nothing to compare: {other}")
    slower = [name for name in before if name in found and found[name] > (1 + MORE) * before[name]]
    for name in slower:
        print(f"{name}: more than {MORE:.0%} slower; write why into CHANGELOG.md, then --update")
    return 1 if slower else 0


def _per_packet(scenario: str) -> float:
    measure = ROOT / "target" / "release" / "examples" / "measure"
    count = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    said = _output(*count, str(measure), *scenario.split())
    packets, instructions = (
        int(re.search(pattern, said)[1].replace(",", ""))  # type: ignore[index]
        for pattern in (r"(\d+) data packets", r"Collected\s*:\s*(\d+)")
    )
    return instructions / packets


def _output(*command: str) -> str:
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
