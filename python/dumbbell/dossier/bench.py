"""Runs scenarios, each as a sweep in a folder of the dossier: made once, resumed, shared."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dumbbell.dossier.measures import Runs
from dumbbell.dossier.source import source_of, write_path
from dumbbell.engine.progress import Progress, silent, titled
from dumbbell.errors import DumbbellError
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.work import FAILED_POINT, RUNNING_POINT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dumbbell.sweeps.plan import Sweep

PATIENCE: Final = 60.0
"""An algorithm whose simulations do not advance for so long hangs, s."""


class FailedRunError(DumbbellError):
    """Runs that cannot be made: the algorithm raises, or does not come to an end."""


@dataclass
class Bench:
    """Where runs are made and kept.

    Attributes:
        folder: The folder of the dossier.
        jobs: How many simulations to run at once; None for one a processor.
        dask: The address of a Dask scheduler whose workers do the work; None for threads.
        progress: Called with the current step and its completed fraction.
        cc: The algorithm in question; its source must stay what it is when the bench is made.
        made: The number of runs that were made, and of those that were there before.
    """

    folder: Path
    jobs: int | None = None
    dask: str | None = None
    progress: Progress = silent
    cc: str = ""
    made: int = 0
    found: int = 0

    def __post_init__(self) -> None:
        self._source = source_of(self.cc)

    def check_source(self) -> None:
        """Raises `DumbbellError` if the source of the algorithm in question was changed."""
        if source_of(self.cc) != self._source:
            problem = f"{self.cc}: its source was changed during the evaluation"
            raise DumbbellError(f"{problem}; evaluate it again")

    def run(
        self,
        sweep: Sweep,
        place: str,
        grid: Sequence[str] = (),
        *,
        seeds: int | None = None,
        series: bool = False,
    ) -> Runs:
        """Runs what is missing of a sweep in ``data/PLACE``; for the `grid` see `Runs`.

        The sweep has its own seeds unless `seeds` says how many. Time series are kept if `series`.

        Raises:
            DumbbellError: If the source of the algorithm in question was changed.
            FailedRunError: If an algorithm raises an exception, or hangs in a thread: of Dask's
                workers only their results are seen. It names the experiment file of the path.
        """
        self.check_source()
        file = f"scenarios/failed-{place.replace('/', '-')}.toml"
        (self.folder / file).unlink(missing_ok=True)
        # Dask's workers do not show how far they are: slow ones would be taken for hanging.
        told = titled(self.progress, place)
        watch = _Watch(told) if self.dask is None else told
        try:
            swept = run_sweep(
                sweep,
                self.folder / "data" / place,
                seeds=seeds,
                jobs=self.jobs,
                dask=self.dask,
                series=series,
                overwrite=True,
                progress=watch,
            )
        except Exception as error:
            self.check_source()
            is_hanging = isinstance(error, FailedRunError)
            point = getattr(error, RUNNING_POINT if is_hanging else FAILED_POINT, None)
            if point is None:
                raise
            write_path(self.folder / file, sweep.experiment(point))
            raise FailedRunError(f"{_told(error)}; the path is {file}") from error
        self.check_source()
        self.made += swept.made
        self.found += swept.total - swept.made
        return Runs(swept.dataset, grid)


def _told(error: Exception) -> str:
    """What an algorithm did; a `DumbbellError` says where by itself, the watch that it hangs."""
    if isinstance(error, FailedRunError):
        return str(error)
    if isinstance(error, DumbbellError):
        return f"it failed: {error}"
    where = "".join(f", {note}" for note in getattr(error, "__notes__", []))
    return f"it raised {type(error).__name__}: {error}{where}"


@dataclass
class _Watch:
    """Passes progress on, and ends work that does not advance."""

    progress: Progress
    done: float = -1.0
    since: float = field(default_factory=time.monotonic)

    def __call__(self, step: str, done: float) -> None:
        if done != self.done:
            self.done, self.since = done, time.monotonic()
        elif time.monotonic() - self.since > PATIENCE:
            raise FailedRunError(f"its simulation did not advance for {PATIENCE:.0f} s")
        self.progress(step, done)
