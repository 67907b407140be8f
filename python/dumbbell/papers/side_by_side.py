"""Reproducing papers side by side: some are simulated while another is judged and drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dumbbell.errors import Interrupted
from dumbbell.papers.reproduction import PaperFolder, RunOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from dumbbell.engine.progress import Progress
    from dumbbell.papers.outcome import Reproduction
    from dumbbell.papers.study import Study

_AT_ONCE: Final = 2
"""Papers that run at once: one's simulations fill the processors while the other is judged."""

_POLL_INTERVAL: Final = 0.1  # s

T = TypeVar("T")


def reproduce_side_by_side(
    papers: Sequence[Study], out: Path, options: RunOptions
) -> list[Reproduction]:
    """Reproduces papers into folders of `out`; returns them in their order.

    If one fails or the user interrupts, the others are stopped. Real packets need the machine
    alone: with ``options.testbed`` one paper comes after another. A number of simulations at once
    (``options.jobs``) holds for all papers together.
    """
    stopped = Event()
    options = replace(options, progress=_until(stopped, options.progress))
    folders = [PaperFolder(study, out / study.paper.id, options) for study in papers]
    with ExitStack() as held:
        for folder in folders:
            held.enter_context(folder.reserved())
        if options.testbed:
            return [folder.reproduce() for folder in folders]
        pool = held.enter_context(ThreadPoolExecutor(1 if options.jobs else _AT_ONCE))
        runs = [pool.submit(folder.run) for folder in folders]
        try:
            # Matplotlib draws in this thread only.
            return [one.report(*_result(run)) for one, run in zip(folders, runs, strict=True)]
        except BaseException as error:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                raise _interrupted(runs) from None
            raise


def _result(run: Future[T]) -> T:
    """Waits in steps: a signal that another thread receives does not end a wait in this one."""
    while not run.done():
        wait([run], _POLL_INTERVAL)
    return run.result()


def _until(stopped: Event, progress: Progress) -> Progress:
    """The same, which interrupts work that reports its progress after the event."""

    def report(step: str, done: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        progress(step, done)

    return report


def _interrupted(runs: Iterable[Future[Any]]) -> KeyboardInterrupt:
    """What all papers together kept when they were interrupted."""
    errors = [run.exception() for run in runs if run.done() and not run.cancelled()]
    found = [error for error in errors if isinstance(error, Interrupted)]
    if not found:
        return KeyboardInterrupt()
    return Interrupted(sum(one.kept for one in found), sum(one.total for one in found))
