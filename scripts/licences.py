#!/usr/bin/env python3
"""Writes THIRD-PARTY-LICENSES, which wheels have: the licences of the Rust libraries in them.

These are the libraries that are linked into the engine or into the laboratory's page, and the files
of their packages with licences and copyrights. A text that several libraries have stands once.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENCES = ROOT / "THIRD-PARTY-LICENSES"
PRODUCTS = {
    "dumbbell-py": (
        "aarch64-apple-darwin",
        "aarch64-unknown-linux-gnu",
        "x86_64-unknown-linux-gnu",
    ),
    "dumbbell-wasm": ("wasm32-unknown-unknown",),
}
"""What is shipped, and the systems that it is built for."""
FILE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-_.].*)?", re.IGNORECASE)
HEAD = """\
The Rust libraries in the wheels of dumbbell, in its engine or in the laboratory's page, and their
licences. scripts/licences.py writes this file. Where there is a choice, dumbbell uses a library
under Apache-2.0 or MIT. Rust's standard library is under Apache-2.0 OR MIT too.

"""
LINE = f"{'-' * 72}\n"


def libraries(products: dict[str, tuple[str, ...]] = PRODUCTS) -> set[str]:
    """The libraries that are linked into products for these systems: name and version."""
    found = set()
    for package, targets in products.items():
        options = ["--edges=normal,no-proc-macro", *(f"--target={target}" for target in targets)]
        found |= set(re.findall(r"(\S+) v(\S+)", cargo("tree", f"--package={package}", *options)))
    return {f"{name} {version}" for name, version in found if not name.startswith("dumbbell-")}


def cargo(*arguments: str) -> str:
    """What Cargo prints."""
    command = ["cargo", *arguments, "--locked"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main() -> None:
    """Reads the packages and writes their licences."""
    chosen = libraries()
    table = []
    texts: dict[str, tuple[str, list[str]]] = {}
    for package in json.loads(cargo("metadata", "--format-version=1"))["packages"]:
        library = f"{package['name']} {package['version']}"
        if library not in chosen:
            continue
        folder = Path(package["manifest_path"]).parent
        files = [path for path in sorted(folder.rglob("*")) if FILE.fullmatch(path.name)]
        authors = ", ".join(author.partition(" <")[0] for author in package["authors"])
        by = "" if files else f", by {authors}; its package has no text"
        table.append(f"{library}: {package['license']}{by}\n")
        for path in files:
            text = path.read_text().strip()
            # The same words are the same text, however their lines are broken.
            users = texts.setdefault(" ".join(text.split()), (text, []))[1]
            if library not in users:
                users.append(library)
    blocks = [f"{LINE}{', '.join(users)}\n{LINE}\n{text}\n\n" for text, users in texts.values()]
    LICENCES.write_text("".join([HEAD, *table, "\n", *blocks]))


if __name__ == "__main__":
    main()
