"""``--until-ci``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.cli.given import refuse_given
from dumbbell.errors import DumbbellError, unknown
from dumbbell.experiment.model import MOST_SEEDS
from dumbbell.experiment.quantities import parse_probability
from dumbbell.metrics.intervals import Until
from dumbbell.sweeps.plan import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typer import Context


def parse_until(
    context: Context,
    share: str | None,
    metric: str,
    most: int,
    *,
    known: Sequence[str] = METRICS,
) -> Until | None:
    """What ``--until-ci``, ``--metric`` and ``--most-seeds`` ask for; None without the first.

    The metric is to be one of `known`.

    Raises:
        DumbbellError: If one of them is not valid.
    """
    if share is None:
        refuse_given(context, ("metric", "most_seeds"), "goes with --until-ci, such as 5%")
        return None
    try:
        width = parse_probability(share)
    except DumbbellError:
        width = 0.0
    if width == 0:
        problem = f'--until-ci: "{share}" is not a share of the mean'
        raise DumbbellError(f"{problem}; write, for example, 5%")
    if metric not in known:
        raise DumbbellError(f"--metric: {unknown('metric', metric, list(known))}")
    if not Until.LEAST <= most <= MOST_SEEDS:
        problem = f"--most-seeds: {most} is not a number from {Until.LEAST} to {MOST_SEEDS:,}"
        raise DumbbellError(f"{problem}; with fewer seeds an interval says too little")
    return Until(width, metric, most)
