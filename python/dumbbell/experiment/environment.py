"""What experiments refer to outside of their files: traces, and algorithms written in Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dumbbell.experiment import user_code


@dataclass(frozen=True)
class Environment:
    """Traces and algorithms; files name those beside them. The Rust crate calls the methods.

    Attributes:
        folder: The folder of the file.
    """

    folder: Path = Path()

    def locate_trace(self, path: str) -> str:
        """The path of a trace that a file names."""
        return str(self.folder / path)

    def locate_algorithm(self, cc: str) -> str:
        """An algorithm that a file names, with the path of its source if that is beside it."""
        home, colon, rest = cc.partition(":")
        there = self.folder / home.strip()
        return f"{there}{colon}{rest}" if there.suffix == ".py" and there.is_file() else cc

    def trace(self, path: str) -> str:
        """The text of a trace.

        Raises:
            ValueError: If it cannot be read.
        """
        try:
            return Path(path).read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise ValueError(f'"{path}" cannot be read: {reason}') from None

    def algorithm(self, cc: str) -> tuple[str, str]:
        """Name and SHA-256 of the source of a custom algorithm.

        Raises:
            ValueError: If there is none.
        """
        return user_code.find(cc)
