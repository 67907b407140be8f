"""Lists of algorithms, as ``--cc`` takes them."""

from __future__ import annotations

import re

from dumbbell.errors import ExperimentError


def split_algorithms(text: str) -> list[str]:
    """Splits at commas that are not within parentheses: ``a,b(x=1,y=2)`` is two algorithms."""
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    names = [part for part in parts if part]
    if not names:
        raise ExperimentError('"" names no algorithm; write some, such as "cubic,bbr"', key="--cc")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ExperimentError(f'"{twice}" is named twice; name every algorithm once', key="--cc")
    return names
