#!/usr/bin/env python3
"""Runs the property tests of Rust and Python with new seeds for a given time: `make explore`.

`make test` draws the same cases in every run; this draws others. Every failure is printed with the
command that repeats it. Exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A test with parameters, which are drawn: `fn name(value in strategy, other: Type, ...)` within
# `proptest!`. Other tests have none.
PROPERTY = re.compile(r"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn (\w+)\(\s*[^\s)]")
SHOWN = 40
"""Lines of a failed test's output that are printed."""


@dataclass
class Suite:
    """A program with property tests, and the command that runs one of them again."""

    command: list[str]
    folder: Path
    seed_argument: str | None
    repeat: str

    def run(self, seed: int) -> str | None:
        """What it printed, if a test failed."""
        command, environment = list(self.command), dict(os.environ)
        if self.seed_argument is None:
            environment |= {"PROPTEST_RNG_SEED": str(seed), "RUST_BACKTRACE": "0"}
            environment["PROPTEST_DISABLE_FAILURE_PERSISTENCE"] = "1"
        else:
            command.append(f"{self.seed_argument}={seed}")
            environment["HYPOTHESIS_PROFILE"] = "explore"
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return None if done.returncode == 0 else done.stdout


def properties(package: Path) -> set[str]:
    """The names of a package's property tests."""
    sources = (path.read_text() for path in package.rglob("*.rs"))
    return {name for source in sources for name in PROPERTY.findall(source)}


def rust_suites() -> list[Suite]:
    """Builds the test programs of the workspace; those that have property tests."""
    build = ["cargo", "test", "--locked", "--workspace", "--no-run", "--message-format=json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    suites = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        package, target = Path(message["manifest_path"]).parent, message["target"]
        if not message["profile"]["test"]:
            continue
        listed = [message["executable"], "--list", "--format=terse"]
        tests = subprocess.run(listed, stdout=subprocess.PIPE, text=True, check=True).stdout
        names = [test.removesuffix(": test") for test in tests.splitlines()]
        known = properties(package)
        chosen = [name for name in names if name.rpartition("::")[2] in known]
        if not chosen:
            continue
        where = f"--test {target['name']}" if "test" in target["kind"] else "--lib"
        # The folder's name is the package's without its prefix.
        repeat = f"PROPTEST_RNG_SEED=%d cargo test --package dumbbell-{package.name} {where}"
        suites.append(Suite([message["executable"], "--exact", *chosen], package, None, repeat))
    return suites


def python_suite() -> Suite:
    """The tests that Hypothesis draws examples for."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "hypothesis"]
    repeat = "HYPOTHESIS_PROFILE=explore pytest -m hypothesis --hypothesis-seed=%d"
    return Suite([*command, "tests/python"], ROOT, "--hypothesis-seed", repeat)


def main() -> None:
    """Runs all suites in turn, each time with the next seed, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="the first seed; by default a random one")
    arguments = parser.parse_args()
    first = arguments.seed if arguments.seed is not None else random.SystemRandom().getrandbits(31)
    suites = [*rust_suites(), python_suite()]
    sys.stdout.write(f"explore: {len(suites)} test programs, seeds from {first} on\n")
    end = time.monotonic() + 60 * arguments.minutes
    runs = failures = 0
    seed = first
    while time.monotonic() < end:
        for suite in suites:
            if time.monotonic() >= end:
                break
            runs += 1
            if (output := suite.run(seed)) is not None:
                failures += 1
                shown = "\n".join(output.splitlines()[-SHOWN:])
                sys.stdout.write(
                    f"{shown}\nexplore: failed; repeat with\n  {suite.repeat % seed}\n"
                )
                sys.stdout.flush()
        seed += 1
    sys.stdout.write(f"explore: {runs} runs, {seed - first} seeds, {failures} failed\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
