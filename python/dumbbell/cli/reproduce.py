"""``dumbbell reproduce``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import papers
from dumbbell.cli.output import print_json, print_line, progress_bar
from dumbbell.engine.runner import known_backend
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.papers import Reproduction
    from dumbbell.papers.outcome import Number


def reproduce_papers(
    chosen: list[str],
    *,
    out: Path,
    overwrite: bool,
    seeds: int | None,
    jobs: int | None,
    extensions: bool,
    backend: str,
    figures: list[str],
    json: bool,
) -> None:
    """Reproduces papers, or some figures of one, and says where to look."""
    _check(seeds, jobs)
    is_real = known_backend(backend) == "linux"
    for name in chosen if is_real and chosen != ["all"] else []:
        if not papers.Paper.load(papers.folder_of(name)).testbed:
            raise DumbbellError(f"{name}: nothing of it runs with real packets")
    if figures:
        if len(chosen) != 1 or chosen == ["all"]:
            raise DumbbellError("--figure: name the one paper whose figure it is")
        with progress_bar() as progress:
            drawn = papers.draw(chosen[0], figures, out, jobs=jobs, seeds=seeds, progress=progress)
        if json:
            print_json({"figures": [f"{path}.svg" for path in drawn]})
        for path in drawn if not json else []:
            print_line(f"{path}.svg")
        return
    with progress_bar() as progress:
        done = papers.reproduce(
            chosen,
            out,
            jobs=jobs,
            seeds=seeds,
            extensions=extensions,
            testbed=is_real,
            overwrite=overwrite,
            progress=progress,
        )
    if json:
        print_json({"papers": [one.as_json() for one in done], "report": str(out / "index.html")})
        return
    for one in done:
        _print(one)
    print_line(f"\nThe report is {out / 'index.html'}")


def _check(seeds: int | None, jobs: int | None) -> None:
    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value is not None and value < 1:
            raise DumbbellError(f"{option}: {value} is too few; write 1 or more")


def _print(done: Reproduction) -> None:
    from dumbbell.papers.page import interval, measured, unit

    print_line(f"{done.paper.id}: {done.paper.title}")
    for number in done.numbers:
        in_unit = unit(number)
        said, found = f"{number.said.published:g}{in_unit}", f"{measured(number)}{in_unit}"
        sure = f"95 %: {interval(number)}{in_unit}"
        real = _real(number)
        print_line(f"  {number.quantity}: published {said}, measured {found} ({sure}){real}")
    for claim in done.claims:
        print_line(
            f"  {'confirmed' if claim.found.confirmed else 'not confirmed'}: {claim.said.text}"
        )


def _real(number: Number) -> str:
    """What real packets say of a number."""
    from dumbbell.papers.page import measured, unit

    real, in_unit = number.testbed, unit(number)
    if real is None:
        return ""
    matched = measured(number, real.matched) if real.matched else ""
    simulated = f"matched simulation {matched}{in_unit}, " if matched else ""
    return f"; {simulated}real {measured(number, real.found)}{in_unit} ({real.count})"
