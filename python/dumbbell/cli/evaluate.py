"""``dumbbell evaluate``: the evidence on algorithms that RFC 9743 asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, Exit, Option

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line, print_table, print_text, progress_bar

if TYPE_CHECKING:
    from dumbbell.dossier import Dossier
    from dumbbell.dossier.gate import Breach

QUICK_PATHS: Final = 44
"""With so many each measure has the 29 paths that evidence for an algorithm takes; some lack two
flows."""


def evaluate_algorithms(
    cc: Annotated[str, Argument(metavar="CC", help="Algorithms, separated by commas.")],
    out: Annotated[Path, options.out("Folder for the dossiers; resumes what is there.")],
    clauses: Annotated[
        str | None,
        Option(help="Sections of RFC 9743, or measures; default: all, or none with --pack."),
    ] = None,
    pack: Annotated[
        str | None, Option(help="Published test suites, such as tcpeval,rmcat.")
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="44 paths, no search; one seed for suites.")
    ] = False,
    paths: Annotated[
        int | None,
        Option(min=1, help="Random paths for each scenario; default: 100, or 3 on linux."),
    ] = None,
    path_seed: Annotated[int, Option(min=0, help="Seed from which the paths are drawn.")] = 1,
    search: Annotated[
        int | None,
        Option(min=0, help="Paths of each search for the worst; default: 60, or 0 on linux."),
    ] = None,
    gate: Annotated[
        Path | None, Option(help="Thresholds (TOML); exit status 1 if one is exceeded.")
    ] = None,
    junit: Annotated[Path | None, Option(help="File for the gate's result as JUnit.")] = None,
    backend: options.OnBackend = "simulator",
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    json: options.Json = False,
) -> None:
    """Collect the evidence on algorithms that RFC 9743 asks for."""
    from dumbbell.dossier import evaluate
    from dumbbell.dossier.folder import check_several
    from dumbbell.dossier.gate import Gate, write_junit
    from dumbbell.dossier.page import write_side_by_side

    algorithms = options.split_algorithms(cc)
    thresholds = Gate.load(gate) if gate else Gate()
    is_real = backend == "linux"
    packs = pack.split(",") if pack else []
    sections = clauses.split(",") if clauses else ([] if packs else None)
    sections = None if sections == ["all"] else sections
    dossiers = []
    named = options.named("clauses", "backend", "dask", cc="CC", packs="--pack")
    with named, progress_bar("collecting evidence") as progress:
        thresholds.check_run(sections)
        if len(algorithms) > 1:
            check_several(out)
        for name in algorithms:
            folder = out if len(algorithms) == 1 else out / name.replace("/", "_")
            dossiers.append(
                evaluate(
                    name,
                    folder,
                    clauses=sections,
                    paths=paths or (QUICK_PATHS if quick and not is_real else None),
                    path_seed=path_seed,
                    search=0 if quick and search is None else search,
                    limits=thresholds.limits,
                    packs=packs,
                    seeds=1 if quick else None,
                    backend=backend,
                    jobs=jobs,
                    dask=dask,
                    progress=progress,
                )
            )
    if len(dossiers) > 1:
        write_side_by_side(dossiers, out)
    broken = [(one, thresholds.broken(one)) for one in dossiers]
    if junit:
        write_junit(junit, thresholds, broken)
    if json:
        found = [
            one.to_json() | {"broken": [vars(b) for b in breaches]} for one, breaches in broken
        ]
        print_json({"dossiers": found})
    else:
        _print_all(broken, out)
    # With real packets a failure says what the testbed lacks, no error of the algorithm.
    is_failed = not is_real and any(one.failures for one, _ in broken)
    if is_failed or any(breaches for _, breaches in broken):
        raise Exit(1)


def _print_all(broken: list[tuple[Dossier, list[Breach]]], out: Path) -> None:
    """Prints the dossiers, then the limits that their algorithms exceed."""
    for one, _ in broken:
        _print(one)
    for one, breaches in broken:
        for breach in breaches:
            print_text(f"{one.cc}: {breach.sentence}")
    if len(broken) > 1:
        print_line(f"They stand side by side in {out / 'index.html'}")


def _print(dossier: Dossier) -> None:
    from dumbbell.dossier import words

    if dossier.findings:
        print_table(words.heading(dossier), dossier.table())
        if few := words.too_few(dossier):
            print_text(f"\n{few}")
    else:
        print_text(words.heading(dossier))
    for suite in dossier.packs:
        print_text(f"\n{suite.pack.title}. {suite.note}")
        for title, table in suite.tables(dossier.algorithms):
            print_line()
            print_table(title, table)
    for title, found in zip(("For it", "Against it"), dossier.extremes(), strict=True):
        for one in found:
            print_text(f"{title}: {words.named(one, dossier)}")
    if dossier.untested and not dossier.left_out:
        named = "; ".join(f"{one.section} {one.title}" for one in dossier.untested)
        print_text(f"Not tested: {named}")
    for failure in dossier.failures:
        print_text(f"Runs could not be made: {failure}")
    print_line(f"\nThe dossier is {dossier.folder / 'index.html'}")
