"""What experiments refer to outside of their files: traces, and algorithms written in Python."""

from __future__ import annotations

from pathlib import Path

from dumbbell import _core
from dumbbell.errors import QuantityError
from dumbbell.experiment import user_code


def trace(path: str) -> str:
    """The text of a trace.

    Raises:
        ValueError: If it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(f'"{path}" cannot be read: {reason}') from None


def algorithm(cc: str) -> tuple[str, str]:
    """Name and SHA-256 of the source of a custom algorithm.

    Raises:
        ValueError: If there is none.
    """
    return user_code.find(cc)


def read_trace(path: str) -> list[int]:
    """The delivery opportunities of a trace in mahimahi's format, ms.

    Raises:
        QuantityError: If it cannot be read, or is no trace.
    """
    try:
        return _core.parse_trace(path, trace(path))
    except ValueError as error:
        raise QuantityError(str(error)) from None
