#!/usr/bin/env python3
"""Runs the examples of the documents and puts what they print into them; with --check, compares.

Names of documents say which; all of them if none is named. In a document

- a block of commands or of Python is run, those of a document one after the other in one folder;
- if a block of text follows it, that is what it printed;
- a block of Python or TOML whose first line is a comment with a file's name is written to it;
- a block after `<!-- not run: REASON -->` is left out, and so is every one of a document that has
  `<!-- nothing is run: REASON -->`;
- what an example needs and a reader has already, `<!-- before: COMMAND -->` makes;
- between `<!-- made: NAME ARGUMENT -->` and `<!-- end -->` stands a table of `reference.py`;
- `<!-- printed: 47, 46 to 51.5 -->` lists what a sentence takes from printed text: each must
  be printed in the document, so that somebody reads the sentence again when it no longer is.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import reference

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<mark><!-- (?P<why>not run|before): (?P<what>[^>]*) -->\n+)?"
    r"^```(?P<language>sh|python|toml)\n(?P<code>.*?)^```\n"
    r"(?P<printed>\n```text\n(?P<text>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
MADE = re.compile(r"(<!-- made: ([^>]*) -->\n).*?(<!-- end -->)", re.DOTALL)
TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"<!-- printed: ([^>]*) -->")
FILE = re.compile(r"# ([\w/-]+\.(?:py|toml))\n")
PROGRESS = re.compile(r"^.+: \d+%\n", re.MULTILINE)
"""What a slow machine prints after 30 s without a terminal."""


def run(language: str, code: str, folder: Path) -> str:
    """What a block prints when it runs in a folder."""
    command = ["sh", "-euc", code] if language == "sh" else [sys.executable, "-c", code]
    path = f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"an example failed:\n{code}\n{done.stdout}")
    printed = PROGRESS.sub("", done.stdout)
    return "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())


def fresh(text: str, folder: Path) -> str:
    """A document with what its examples print now."""

    def example(block: re.Match[str]) -> str:
        language, code = block["language"], block["code"]
        file = FILE.match(code)
        if file and language != "sh":
            (folder / file[1]).parent.mkdir(exist_ok=True)
            (folder / file[1]).write_text(code)
        elif language != "toml" and block["why"] != "not run":
            if block["why"] == "before":
                run("sh", block["what"], folder)
            printed = run(language, code, folder)
            if block["printed"]:
                return f"{block['mark'] or ''}```{language}\n{code}```\n\n```text\n{printed}```\n"
        return block[0]

    return text if "<!-- nothing is run:" in text else BLOCK.sub(example, text)


def with_tables(text: str) -> str:
    """A document with the tables that the program makes now."""
    return MADE.sub(lambda found: f"{found[1]}\n{reference.make(found[2])}\n{found[3]}", text)


def not_printed(text: str) -> list[str]:
    """What sentences of a document take from printed text that it does not have."""
    printed = "\n".join(TEXT.findall(text))
    taken = [item for mark in PRINTED.findall(text) for item in mark.split(", ")]
    return [
        one for one in taken if not re.search(rf"(?<![\d.,]){re.escape(one)}(?![\d.])", printed)
    ]


def main() -> int:
    """Brings documents up to date, or tells whether they are; returns the exit status."""
    named = [Path(name).resolve() for name in sys.argv[1:] if name != "--check"]
    stale = 0
    for document in named or DOCUMENTS:
        text = document.read_text()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(ROOT / "examples")
            now = fresh(with_tables(text), Path(folder))
        name = document.relative_to(ROOT)
        if old := not_printed(now):
            stale = 1
            sys.stderr.write(f"{name}: a sentence has {', '.join(old)}, which is not printed now\n")
        if "--check" not in sys.argv[1:]:
            document.write_text(now)
        elif now != text:
            stale = 1
            sys.stderr.write(f"{name}: its examples print something else; run `make readme`\n")
    return stale


if __name__ == "__main__":
    sys.exit(main())
