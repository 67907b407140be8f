"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called periodically with the current step, such as "simulating", and its completed fraction (0
to 1). Work that is done side by side calls it from several threads, each with a title of its own
before its steps."""


def silent(_step: str, _done: float) -> None:
    """A `Progress` that shows nothing."""


def titled(progress: Progress, title: str) -> Progress:
    """The same for a part of the work: `title` stands before its steps."""
    return lambda step, done: progress(f"{title}: {step}", done)
