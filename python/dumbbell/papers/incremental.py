"""What is shown and drawn of a paper while the rest of it is still being simulated.

Simulations run beside Python, so this costs a reproduction next to no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell.figures import render, styled
from dumbbell.report.result import PointBudget, result_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dumbbell.experiment.model import Experiment
    from dumbbell.figures import Picture
    from dumbbell.papers.outcome import PaperFigure
    from dumbbell.papers.runs import Runs
    from dumbbell.report.result import ResultPage


class IncrementalReport:
    """Views of results as they come, and figures as soon as all that they need has come.

    Attributes:
        views: What the page shows of every result, in the order of the results.
        pictures: Figures by their id.
    """

    def __init__(
        self, figures: Sequence[PaperFigure], runs: Runs, experiments: Sequence[Experiment]
    ) -> None:
        """For these figures and a page that shows these experiments."""
        self.views: list[ResultPage] = []
        self.pictures: dict[str, Picture] = {}
        self._figures, self._runs = figures, runs
        self._budget = PointBudget.of(experiments)
        self._there: set[str] = set()

    def add(self, name: str) -> None:
        """Takes the result of that name, which is among the runs now."""
        self._there.add(name)
        number = len(self._there)
        place = f"runs/{name}"
        self.views.append(result_page(number, name, self._runs[name], place, self._budget))
        for figure in self._figures:
            if name in figure.experiments and self._there.issuperset(figure.experiments):
                self.pictures[figure.id] = picture_of(figure, self._runs)


def picture_of(figure: PaperFigure, runs: Runs) -> Picture:
    """Draws a figure of a paper."""
    with styled():
        return render(figure.draw(runs))
