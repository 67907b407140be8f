#!/usr/bin/env python3
"""Runs the examples of README.md and puts what they print into it; with --check, only compares.

A block of commands or of Python that is followed by a block of text is an example, and the text is
what it printed.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLE = re.compile(
    r"(?<=^```)(sh|python)\n((?:(?!^```).)*)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def output(language: str, code: str, folder: str) -> str:
    """What an example prints when it runs in a folder."""
    command = ["sh", "-euc", code] if language == "sh" else [sys.executable, "-c", code]
    path = f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"README.md: an example failed:\n{code}\n{done.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").splitlines())


def main() -> int:
    """Brings the README up to date, or tells whether it is; returns the exit status."""
    text = README.read_text()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")

        def run(example: re.Match[str]) -> str:
            language, code, _ = example.groups()
            return f"{language}\n{code}```\n\n```text\n{output(language, code, folder)}```"

        fresh = EXAMPLE.sub(run, text)
    if "--check" not in sys.argv[1:]:
        README.write_text(fresh)
    elif fresh != text:
        sys.stderr.write("README.md: its examples print something else; run `make readme`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
