#!/usr/bin/env python3
"""Compiles the eBPF programs of `crates/bpf` into the objects that the Python package ships.

Needs clang, llvm-strip and libbpf's headers (Debian: clang, llvm, libbpf-dev). The objects suit any
kernel and little-endian machine. Beside them is a record of which sources they were made of, and by
which compiler: a test compares the sources with those that are there, and builds them again, which
gives the same bytes where the compiler is the same.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "crates/bpf/src/bpf"
OBJECTS = ROOT / "python/dumbbell/bpf/objects"
RECORD = OBJECTS / "sources.sha256"
COMPILER = OBJECTS / "compiler.txt"
HEADERS = Path("/usr/include/bpf/bpf_helpers.h")
COMPILE = ["clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"]
# Where sources lay must not be told: a build in another folder gives the same bytes.
COMPILE += ["-fdebug-compilation-dir=."]


def digests(folder: Path = SOURCES) -> str:
    """The SHA-256 of every source, as sha256sum prints them."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".c", ".h"})
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in files
    )


def build(folder: Path = OBJECTS) -> list[Path]:
    """Compiles every program into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for source in sorted(SOURCES.glob("*.bpf.c")):
        target = folder / source.with_suffix(".o").name
        # From the sources' folder: an object names its sources as the compiler was given them.
        compiled = [*COMPILE, "-c", source.name, "-o", str(target)]
        subprocess.run(compiled, cwd=SOURCES, check=True)
        subprocess.run(["llvm-strip", "-g", str(target)], check=True)
        made.append(target)
    return made


def compiler() -> str:
    """Which clang this is."""
    said = subprocess.run(["clang", "--version"], check=True, capture_output=True, text=True)
    return said.stdout.splitlines(keepends=True)[0]


def lacking() -> list[str]:
    """What is missing for a build."""
    tools = [tool for tool in ("clang", "llvm-strip") if shutil.which(tool) is None]
    return tools + ([] if HEADERS.exists() else [str(HEADERS)])


def main() -> None:
    """Builds and records."""
    if missing := lacking():
        sys.exit(
            f"bpf: {', '.join(missing)} not found; on Debian or Ubuntu: "
            "apt-get install clang llvm libbpf-dev"
        )
    for old in OBJECTS.glob("*.bpf.o"):
        old.unlink()
    for made in build():
        print(f"bpf: {made.relative_to(ROOT)}, {made.stat().st_size} bytes")
    RECORD.write_text(digests())
    COMPILER.write_text(compiler())


if __name__ == "__main__":
    main()
