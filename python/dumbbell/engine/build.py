"""Which build of the simulator runs here."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dumbbell import _core


@cache
def engine() -> str:
    """The simulator's version, and a hash of the extension module as it was built."""
    built = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return f"{_core.__version__}-{built[:16]}"
