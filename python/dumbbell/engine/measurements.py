"""Measurements with real packets that are kept in folders, so that none is made twice."""

from __future__ import annotations

import platform
from contextlib import closing
from typing import TYPE_CHECKING, Unpack

from dumbbell.engine.runner import Options, run_each
from dumbbell.errors import ResultError
from dumbbell.results.result import Result
from dumbbell.results.storage import check

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dumbbell.experiment.model import Experiment


def measurement(folder: Path, experiment: Experiment) -> Result | None:
    """The result of this experiment in a folder; None if it holds another one, or nothing.

    Titles and the reasons for settings may differ.
    """
    try:
        result = Result.load(folder)
    except ResultError:
        return None
    bare, wanted = (
        one.replace(title="", seeds=one.seed_list, assumed={}, calibrated={}, internals=False)
        for one in (result.experiment, experiment.resolve())
    )
    return result if bare == wanted else None


def missing(
    wanted: Mapping[Path, Experiment], *, overwrite: bool, repeat_invalid: bool = False
) -> dict[Path, Experiment]:
    """Those of the experiments, by their folder, that this kernel has not measured yet.

    With `repeat_invalid` one with invalid runs counts as missing. If there is a measurement of
    other settings, or of another kernel, and it may not be overwritten, that is an error.
    """
    lacking = {}
    for folder, experiment in wanted.items():
        there = measurement(folder, experiment)
        is_invalid = repeat_invalid and there is not None and bool(there.invalid_runs)
        if there is None or is_invalid or there.meta.get("kernel") != platform.release():
            check(folder, None, None, overwrite=overwrite or is_invalid)
            lacking[folder] = experiment
    return lacking


def measure(lacking: Mapping[Path, Experiment], **options: Unpack[Options]) -> None:
    """Runs experiments with real packets; each result is in its folder as soon as it is there.

    Runs that go on at once (``jobs``) must not keep the machine from being in time: runs during
    which it was not are invalid.
    """
    real: Options = {**options, "backend": "linux"}
    with closing(run_each(list(lacking.values()), **real)) as runs:
        for folder, result in zip(lacking, runs, strict=True):
            result.save(folder, overwrite=True)
