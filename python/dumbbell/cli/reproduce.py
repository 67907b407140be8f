"""``dumbbell reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Context, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar
from dumbbell.errors import DumbbellError

STUDY: Final = "bbr-questions"  # runs by its name alone, as no paper


if TYPE_CHECKING:
    from dumbbell.papers.outcome import Number


def reproduce_papers(
    context: Context,
    names: options.Papers = None,
    out: Annotated[Path, options.out("Folder; every paper has one in it.")] = Path(
        "results/papers"
    ),
    overwrite: options.Overwrite = False,
    figure: Annotated[
        list[str] | None,
        Option("--figure", metavar="ID", help="Draw only this figure, such as 2a."),
    ] = None,
    full: Annotated[
        bool,
        Option("--full", help="Also run what explains results and goes beyond the papers."),
    ] = False,
    backend: options.OnBackend = "simulator",
    seeds: options.Seeds = None,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    json: options.Json = False,
) -> None:
    """Reproduce papers: published and measured numbers and figures.

    Without a name, or with all, these are five papers: staggered-start, tein2, f-bbrv2, ar-udt and
    dbac. Two more run by their names alone: bbrv3-promises and bbrv3-hardware.
    """
    from dumbbell import papers

    options.refuse_existing(out, overwrite=True, folder=True)
    names = names or ["all"]
    if STUDY in names:
        without = ("figure", "full", "overwrite", "seeds")
        options.refuse_given(context, without, f"has no effect on {STUDY}; leave it out")
        _answer_questions(names, out, backend, jobs, dask, json)
        return
    how: dict[str, Any] = {"jobs": jobs, "seeds": seeds, "dask": dask}
    is_real = backend == "linux"
    for name in names if is_real and names != ["all"] else []:
        if not papers.Paper.load(papers.folder_of(name)).testbed:
            raise DumbbellError(f"{name}: nothing of it runs with real packets")
    if figure:
        if len(names) != 1 or names == ["all"]:
            raise DumbbellError("--figure: name the one paper whose figure it is")
        options.refuse_given(context, ("full", "overwrite"), "has no effect beside --figure")
        if is_real:
            problem = "linux has no effect beside --figure, which draws simulated runs"
            raise DumbbellError(f"--backend: {problem}; leave one of them out")
        with options.named("dask"), progress_bar() as progress:
            drawn = papers.draw(names[0], figure, out, progress=progress, **how)
        files = [f"{path}.svg" for path in drawn]
        if json:
            print_json({"figures": files})
        else:
            print_line("\n".join(files))
        return
    how |= {"full": full, "testbed": is_real, "overwrite": overwrite}
    with options.named("dask"), progress_bar() as progress:
        done = papers.reproduce(names, out, progress=progress, **how)
    if json:
        print_json({"papers": [one.as_json() for one in done], "report": str(out / "index.html")})
        return
    for one in done:
        print_text(f"{one.paper.id}: {one.paper.title}")
        for number in one.numbers:
            print_text(f"  {_compared(number)}")
        for claim in one.claims:
            linux = f" (Linux: {claim.linux.verdict})" if one.linux else ""
            print_text(f"  {claim.simulated.verdict}{linux}: {claim.spec.text}")
    print_line(f"\nThe report is {out / 'index.html'}")


def _answer_questions(
    names: list[str], out: Path, backend: str, jobs: int | None, dask: str | None, json: bool
) -> None:
    """Answers BBR's open questions: no paper, as nothing published is to be compared."""
    from dumbbell.dossier.questions import answer_questions

    if names != [STUDY]:
        raise DumbbellError(f"{STUDY}: runs by itself; name the papers in another command")
    if backend == "linux":
        raise DumbbellError(f"{STUDY}: nothing of it runs with real packets")
    folder = out / STUDY
    with options.named("dask"), progress_bar("asking BBR") as progress:
        answers = answer_questions(folder, jobs=jobs, dask=dask, progress=progress)
    if json:
        print_json({"questions": [one.as_json() for one in answers]})
        return
    for one in answers:
        print_table(f"{one.question['title']}: {one.question['text']}", one.table())
        print_text(one.sentence)
    print_line(f"\nThe answers are in {folder / 'index.html'}")


def _compared(number: Number) -> str:
    """The published value of a number, the measured one, and that of real packets."""
    from dumbbell.papers.numbers import rows, unit

    [row], in_unit, real = rows([number]), f" {unit(number)}".rstrip(), number.testbed
    value = f"measured {row.measured}{in_unit} (95 %: {row.interval}{in_unit})"
    text = f"{number.quantity}: published {row.published}{in_unit}, {value}"
    if real is None:
        return text
    simulated = f"matched simulation {row.matched}{in_unit}, " if row.matched else ""
    return f"{text}; {simulated}real {row.linux}{in_unit} ({real.count})"
