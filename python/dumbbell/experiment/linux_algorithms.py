"""Algorithms that run with real packets only, as experiments name them.

``linux:NAME`` is an algorithm that the kernel calls NAME: built in, of a module, or of eBPF.
``linux:FILE.o`` is an eBPF object with one, which is loaded for the run.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dumbbell import _core


def is_of_linux(cc: str) -> bool:
    """Whether `cc` names an algorithm of this kind."""
    return _core.linux_algorithm(cc) is not None


def object_of(cc: str) -> Path | None:
    """The eBPF object of an algorithm; None if it is none of an object."""
    name = _core.linux_algorithm(cc)
    return Path(name) if name is not None and name.endswith(".o") else None


def named(file: Path) -> str:
    """The text that names the algorithm of an object in an experiment."""
    return f"linux:{file}"


def digest_of(file: Path) -> str:
    """The SHA-256 of an object; raises `ValueError` if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(f'"{file}" cannot be read: {error.strerror}') from None
