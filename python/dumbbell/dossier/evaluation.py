"""Makes a dossier: runs the scenarios, judges the measures, searches for the worst."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumbbell.dossier.bench import Bench, FailedRunError
from dumbbell.dossier.clauses import choose, needs_series, untested
from dumbbell.dossier.folder import claim
from dumbbell.dossier.measures import values, with_enough_flows, worst_of_grid
from dumbbell.dossier.outcome import Dossier, Evidence, Finding, Options
from dumbbell.dossier.packs import FOLDER as SUITES
from dumbbell.dossier.packs import Pack, run_pack
from dumbbell.dossier.real import measure as measure_real
from dumbbell.dossier.scenarios import Scenario, is_for_media
from dumbbell.dossier.search import Search, start_of
from dumbbell.dossier.source import write_path
from dumbbell.dossier.verdict import Share
from dumbbell.engine.backend import sends_packets
from dumbbell.engine.progress import Progress, silent
from dumbbell.engine.runner import refuse_others, run_all
from dumbbell.errors import ExperimentError
from dumbbell.experiment.files import write_text
from dumbbell.experiment.user_code import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.dossier.clauses import Clause, Measure
    from dumbbell.dossier.measures import Runs
    from dumbbell.engine.backend import Backend

REFERENCES: Final = ("reno", "cubic")
"""The standards-track algorithms with which every other one is compared."""

_MOMENT: Final[dict[str, Any]] = {
    "duration": "100 ms",
    "sample": "50 ms",
    "start_jitter": "0 s",
    "seeds": 1,
}
"""The settings of the shortest run."""

_PATHS: Final = 100
"""How many random paths a scenario has if that is not given."""

_REAL_PATHS: Final = 3
"""The same with real packets, where each path takes as long as its run lasts."""

_SEARCHED: Final = 60
"""How many more paths the search for the worst tries for each measure if that is not given."""


def evaluate(
    cc: str | type,
    out: str | Path,
    *,
    clauses: Sequence[str] | None = None,
    paths: int | None = None,
    path_seed: int = 1,
    search: int | None = None,
    limits: Mapping[str, float] | None = None,
    packs: Sequence[str] = (),
    seeds: int | None = None,
    backend: Backend = "simulator",
    jobs: int | None = None,
    dask: str | None = None,
    progress: Progress = silent,
) -> Dossier:
    """Collects the evidence on an algorithm that RFC 9743 asks for; ``dumbbell evaluate`` runs it.

    `out` then holds ``index.html``, ``dossier.json``, ``dossier.md``, ``scenarios/`` with an
    experiment file for the worst path of each measure, and ``data/`` with the sweeps.

    Args:
        cc: The algorithm: ``"bbr3"``, ``"cubic(beta=0.8)"``, ``"my.py:MyCC"``, ``"quinn:cubic"``,
            or a class of `dumbbell.cc`.
        out: The folder; what is there from before is used again.
        clauses: The sections of the RFC, such as ``["5.1.3"]``, or measures; all if not given.
        paths: How many random paths each scenario has; if not given 100, or 3 with real packets.
        path_seed: The seed from which these are drawn; another one has paths that no dossier of the
            default has.
        search: How many more paths the search for the worst tries at most for each measure; 0 for
            none. If not given 60, or 0 with real packets. Simpler paths come on top.
        limits: Limits of measures in the place of those of the program, by the measures' names.
        packs: Published suites to be run too, such as ``["tcpeval"]``.
        seeds: How many seeds the tests of packs have; those of their files if not given.
        backend: ``"linux"`` for real packets with this kernel's algorithms, in real time, without
            search and packs.
        jobs: How many runs to make at once; as many as there are processors if not given, or one if
            packets are real.
        dask: The address of a Dask scheduler whose workers simulate.
        progress: Called periodically with the current step and its completed fraction (0 to 1).

    Raises:
        DumbbellError: If there is no such algorithm, clause, measure or pack, the backend runs
            none of what is asked for, or `out` cannot be written. An algorithm that raises or hangs
            is no error: the dossier says so; one whose source is changed meanwhile is.
        TestbedError: If this machine lacks what real packets need.
        OverwriteError: If `out` holds something else, such as a dossier on another algorithm.
    """
    from dumbbell.dossier.page import write_dossier

    cc = name_of(cc)
    chosen = choose(clauses, limits or {})
    suites = [Pack.load(name) for name in packs]
    is_real = sends_packets(backend)
    if paths is None:
        paths = _REAL_PATHS if is_real else _PATHS
    if search is None:
        search = 0 if is_real else _SEARCHED
    if is_real and (suites or search):
        problem = "linux runs neither packs nor a search for the worst"
        raise ExperimentError(problem, key="backend")
    if is_real and dask is not None:
        raise ExperimentError("is for the simulator", key="dask")
    _refuse_tcp_for_media(cc, chosen, suites)
    check_algorithm(cc, backend)
    claim(Path(out), cc, backend)
    bench = Bench(Path(out), jobs, dask, progress, cc)
    study = Evaluation(cc, list(REFERENCES), bench, paths, backend, path_seed)
    findings = [
        Finding(clause, [study.evidence(measure) for measure in clause.measures])
        for clause in chosen
    ]
    if search:
        findings = [
            replace(finding, evidence=[study.with_worst(one, search) for one in finding.evidence])
            for finding in findings
        ]
    packed = [run_pack(suite, study.algorithms, bench, seeds) for suite in suites]
    dossier = Dossier(
        cc,
        study.references,
        findings,
        list(untested()) if findings else [],
        paths,
        bench.made + bench.found,
        Path(out),
        packed,
        backend,
        Options(clauses, search, path_seed, dict(limits or {}), seeds),
    )
    bench.check_source()
    write_scenarios(dossier)
    write_text(Path(out) / "dossier.json", json.dumps(dossier.to_json(), indent=1) + "\n")
    write_dossier(dossier)
    return dossier


def _refuse_tcp_for_media(cc: str, chosen: Sequence[Clause], suites: Sequence[Pack]) -> None:
    """Raises `ExperimentError` if an algorithm for media is to be run with TCP."""
    bulk = [suite for suite in suites if all(one.is_bulk for one in suite.tests)]
    if is_for_media(cc) and (chosen or bulk):
        problem = f'"{cc}" controls media; all else is run with TCP, so give the pack rmcat alone'
        raise ExperimentError(problem, key="cc")


def check_algorithm(cc: str, backend: Backend = "simulator") -> None:
    """Raises `ExperimentError` if there is no such algorithm, or the backend cannot have it.

    With real packets it is tried for a moment, and what the machine lacks is a `TestbedError`.
    """
    is_real = backend == "linux"
    try:
        where = Scenario("wifi", SUITES / "rmcat") if is_for_media(cc) else Scenario("own")
        experiment = where.experiment({}, cc)
        refuse_others([experiment.resolve()], is_real=is_real)
        if is_real:
            run_all([experiment.replace(**_MOMENT)], backend=backend)
    except ExperimentError as error:
        raise ExperimentError(error.problem, key="cc") from None


@dataclass
class Evaluation:
    """Makes the evidence, each scenario once.

    Attributes:
        cc: The algorithm.
        references: Those that run on the same paths.
        bench: Where runs are made.
        paths: How many random paths each scenario has.
        backend: What runs them.
        path_seed: The seed from which the paths are drawn.
        runs: By scenario, its runs, or why there are none.
    """

    cc: str
    references: list[str]
    bench: Bench
    paths: int
    backend: Backend
    path_seed: int = 1
    runs: dict[str, Runs | str] = field(default_factory=dict)

    @property
    def algorithms(self) -> list[str]:
        """The algorithm, then its references, each once."""
        return list(dict.fromkeys([self.cc, *self.references]))

    def evidence(self, measure: Measure) -> Evidence:
        """What the random paths say of a measure."""
        runs = self._run(measure.scenario)
        if isinstance(runs, str):
            return Evidence.lacking(measure, runs)
        every = values(runs, measure.kind)
        found = worst_of_grid(runs, with_enough_flows(runs, every, measure.kind))
        if not found.height:
            few = f"no path that was drawn has {measure.kind.least_flows} flows of it"
            return Evidence.lacking(measure, few)
        known = {cc: found.filter(cc=cc)["value"].to_list() for cc in self.algorithms}
        if not known[self.cc]:
            return Evidence.lacking(measure, "the machine disturbed all runs that it takes")
        shares = {cc: Share.of(its, measure.limit) for cc, its in known.items() if its}
        return Evidence(measure, found, shares, every)

    def with_worst(self, evidence: Evidence, budget: int) -> Evidence:
        """The same with the worst path for the algorithm; none if it fails in the search."""
        if evidence.failure:
            return evidence
        measure, runs = evidence.measure, self.runs[evidence.measure.scenario]
        assert not isinstance(runs, str), "evidence without a failure has runs"
        search = Search(self.bench, measure, self.cc, self.references)
        start = start_of(runs, measure.kind, self._scenario(measure.scenario), self.cc)
        try:
            return replace(evidence, worst=search.worst(start, budget))
        except FailedRunError as error:
            return Evidence.lacking(measure, str(error))

    def _scenario(self, name: str) -> Scenario:
        return Scenario(name, seed=self.path_seed)

    def _run(self, scenario: str) -> Runs | str:
        if scenario not in self.runs:
            its = self._scenario(scenario)
            try:
                design = its.design(self.algorithms, self.paths)
                if self.backend == "linux":
                    paths = its.first(design.count // len(self.algorithms))
                    found = measure_real(self.bench, its, paths, self.algorithms)
                else:
                    series = needs_series(scenario)
                    found = self.bench.run(design, scenario, its.grid, series=series)
                self.runs[scenario] = found
            except FailedRunError as error:
                self.runs[scenario] = str(error)
        return self.runs[scenario]


def write_scenarios(dossier: Dossier) -> None:
    """Writes the experiment files of the worst and of the simplest path of every measure."""
    for one in dossier.evidence:
        for which, _, experiment in dossier.paths_of(one):
            write_path(dossier.folder / one.measure.file(which), experiment)
