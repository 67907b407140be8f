"""What can be told and drawn of a paper while the rest of it is still being simulated.

Simulations run beside Python, so what is done here costs a reproduction next to no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.figures import render, styled
from dumbbell.papers.frame import Runs
from dumbbell.report.result import PointBudget, result_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.figures import Picture
    from dumbbell.papers.frame import Plate
    from dumbbell.report.result import ResultPage
    from dumbbell.results.result import Result


class Meanwhile:
    """Takes results one by one; tells of each, and draws figures once all that they need is there.

    Attributes:
        told: How the page tells of every result, in their order.
        pictures: Figures by the id of their plate.
    """

    def __init__(self, plates: Sequence[Plate], experiments: Sequence[Experiment]) -> None:
        """For these figures, and a page that tells of these experiments."""
        self.told: list[ResultPage] = []
        self.pictures: dict[str, Picture] = {}
        self._plates = plates
        self._results: dict[str, Result] = {}
        self._budget = PointBudget.of(experiments)

    def take(self, name: str, result: Result) -> None:
        """A result of that name has come."""
        self._results[name] = result
        self.told.append(
            result_page(len(self._results), name, result, f"runs/{name}", self._budget)
        )
        for plate in self._plates:
            needs = plate.experiments
            if name in needs and all(one in self._results for one in needs):
                self.pictures[plate.id] = picture_of(plate, Runs(self._results, {}))


def picture_of(plate: Plate, runs: Runs) -> Picture:
    """Draws a figure of a paper."""
    with styled():
        return render(plate.draw(runs))
