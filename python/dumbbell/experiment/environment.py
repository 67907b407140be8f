"""What experiments refer to outside of their files: traces, and algorithms of the user."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dumbbell.experiment import linux_algorithms, user_code
from dumbbell.experiment.files import MOST_BYTES


@dataclass(frozen=True)
class Environment:
    """Traces and algorithms; files name those beside them. The Rust crate calls the methods."""

    folder: Path = Path()  # the folder of the file
    # Ctrl-C while a custom algorithm was imported. The Rust crate reports whatever a method raises
    # as a mistake in the experiment; the caller raises it afterwards.
    interrupts: list[KeyboardInterrupt] = field(default_factory=list, repr=False, compare=False)

    def locate_trace(self, path: str) -> str:
        """The path of a trace that a file names."""
        return str(self.folder / path)

    def locate_algorithm(self, cc: str) -> str:
        """An algorithm that a file names, with the path of its source if that is beside it."""
        if (file := linux_algorithms.object_of(cc)) is not None:
            there = self.folder / file
            return linux_algorithms.named(there) if there.is_file() else cc
        home, colon, rest = cc.partition(":")
        there = self.folder / home.strip()
        return f"{there}{colon}{rest}" if there.suffix == ".py" and there.is_file() else cc

    def trace(self, path: str) -> str:
        """The text of a trace; raises `ValueError` if it is no file of at most `MOST_BYTES`."""
        try:
            file = Path(path)
            if file.exists() and not file.is_file():
                raise ValueError(f'"{path}" is not a regular file')
            if file.stat().st_size > MOST_BYTES:
                raise ValueError(f'"{path}" has more than {MOST_BYTES // 10**6} MB, the maximum')
            return file.read_text(encoding="utf-8-sig")  # Windows' editors write a mark
        except OSError as error:
            raise ValueError(f'"{path}" cannot be read: {error.strerror}') from None
        except UnicodeDecodeError:
            raise ValueError(f'"{path}" cannot be read: it is not text') from None

    def algorithm(self, cc: str) -> tuple[str, str]:
        """Name and SHA-256 of the source of a custom algorithm: of a class, or of an eBPF object.

        Once the user has interrupted an import, no other one begins.
        """
        if self.interrupts:
            raise self.interrupts[0]
        if (file := linux_algorithms.object_of(cc)) is not None:
            return cc, linux_algorithms.digest_of(file)
        try:
            return user_code.find(cc)
        except KeyboardInterrupt as interrupt:
            self.interrupts.append(interrupt)
            raise
