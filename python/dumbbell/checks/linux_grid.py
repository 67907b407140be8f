"""The simulator against Linux: cells run with real packets and simulated, and how far they differ.

Each cell is run several times with real packets. What was measured stays in a folder, so that a
plan that was interrupted goes on where it was. Whether a run counts is decided by the health of the
testbed alone. The simulator has the seeds of these runs, so that starts and random losses are the
same. Every cell is simulated twice: as it is, and with the mean lateness of the testbed's packets
as a jitter, so that a difference can be assigned to the model or to the machine.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

import numpy as np
import polars as pl
from scipy import stats

from dumbbell.display import Column, Table
from dumbbell.engine import measurements
from dumbbell.engine.runner import Options, run_all
from dumbbell.experiment.model import Experiment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dumbbell.checks.linux_cells import Cell
    from dumbbell.results.result import Result


class Metric(NamedTuple):
    """What is compared of a cell, and how it is shown."""

    title: str
    share: float  # how far the simulator may be from Linux, as a share of Linux's value
    least: float = 0.0  # or this far, whatever the share, in the unit of result tables
    target: float = 0.95  # the share of cells that are to be that close
    unit: str = ""
    scale: float = 1.0  # that unit in the unit of result tables


MEASURES: Final = {
    "goodput": Metric("goodput", 0.03, 0, 0.98, "Mbit/s", 1e6),
    "queue_delay": Metric("mean queueing delay", 0.10, 0.1e-3, 0.95, "ms", 1e-3),
    "retransmitted": Metric("retransmitted packets", 0.25, 10),
    "completion": Metric("median completion time", 0.10, 0.1e-3, 0.95, "ms", 1e-3),
}
"""What is compared, by its name in tables."""

VARIATIONS: Final = 8
"""How often a cell is simulated with each seed where it is chaotic."""

_FEW: Final = 3
"""How often each cell is, to find those."""

CONFIDENCE: Final = 0.95
"""Of each of the two one-sided tests by which distributions are equivalent."""

ALIKE: Final = 0.2
"""How far from one half the chance that a simulated run has more than one of Linux may be if they
are *alike*: the liberal bound of Wellek (Testing Statistical Hypotheses of Equivalence and
Noninferiority, 2010, table 1.1)."""

_ENOUGH: Final = 8
"""How many runs of Linux it takes to say so."""

_NUMBER: Final = re.compile(r"-\d+$")


@dataclass(frozen=True)
class Plan:
    """Cells, and how often each is run.

    Attributes:
        cells: The cells.
        runs: How often each is run with real packets.
        most: How often those are run of which Linux's own runs differ by more than the tolerance.
    """

    cells: Sequence[Cell]
    runs: int = 3
    most: int = 9


def measure(
    plan: Plan, folder: Path, *, overwrite: bool = False, **options: Unpack[Options]
) -> None:
    """Runs with real packets what `folder` does not hold yet: every cell once, then again.

    Then those cells are run more often whose own runs differ. Measurements of other settings, or of
    another kernel, are replaced with `overwrite`, and are an `OverwriteError` without. For the
    `options` see `measurements.measure`.
    """
    _measure(plan.cells, range(1, plan.runs + 1), folder, overwrite, options)
    known = measured(plan, folder)
    varied = {row["cell"] for row in _values(known).iter_rows(named=True) if _varies(row)}
    more = [cell for cell in plan.cells if cell.name in varied]
    _measure(more, range(plan.runs + 1, plan.most + 1), folder, overwrite, options)


def _measure(
    cells: Iterable[Cell], seeds: range, folder: Path, overwrite: bool, options: Options
) -> None:
    wanted = {_folder(folder, cell, seed): cell.run(seed) for seed in seeds for cell in cells}
    lacking = measurements.missing(wanted, overwrite=overwrite, repeat_invalid=True)
    measurements.measure(lacking, **(options | {"fresh": overwrite}))


def _folder(folder: Path, cell: Cell, seed: int) -> Path:
    return folder / "runs" / f"{cell.name}-{seed}"


def measured(plan: Plan, folder: Path) -> pl.DataFrame:
    """What was measured: a row for each cell, run and value; see `SCHEMA`."""
    rows = []
    for cell in plan.cells:
        for seed in range(1, max(plan.runs, plan.most) + 1):
            run = measurements.measurement(_folder(folder, cell, seed), cell.run(seed))
            if run is not None:
                rows += _rows(cell, run)
    return pl.DataFrame(rows, SCHEMA, orient="row")


SCHEMA: Final = {
    **dict.fromkeys(("cell", "family", "kernel", "experiment"), pl.String),
    "run": pl.UInt64,
    "invalid": pl.String,  # why the run does not count; null if it does
    "late_mean": pl.Float64,  # lateness of the testbed's packets, s
    "late_p99": pl.Float64,
    "late_max": pl.Float64,
    "group": pl.String,  # flows that are alike; empty for the whole cell
    "metric": pl.String,  # a key of `MEASURES`
    "value": pl.Float64,
}
"""The columns of `measured`: the raw values of every run, with the health of the testbed."""


def _rows(cell: Cell, run: Result) -> list[tuple[Any, ...]]:
    (seed,) = run.seeds
    health = run.meta.get("testbed", {}).get(str(seed), {})
    late = [health.get(key) for key in ("late_mean_s", "late_p99_s", "late_max_s")]
    invalid = "; ".join(run.meta.get("invalid", {}).get(str(seed), [])) or None
    text = cell.experiment.to_toml()
    before = (cell.name, cell.family, run.meta.get("kernel"), text, seed, invalid, *late)
    return [(*before, *row) for row in _achieved(run)]


def _achieved(run: Result) -> list[tuple[str, str, float]]:
    """Group, metric and value of one run; of a connection over several paths those of each."""
    flows = run.by_subflow().flows.with_columns(
        group=pl.col("flow").cast(pl.String).str.replace(_NUMBER.pattern, ""),
        goodput=8 * pl.col("received") / (pl.col("end") - pl.col("start")),
        took=pl.col("completed") - pl.col("start"),
    )
    rows: list[tuple[str, str, float]] = []
    for (group,), some in flows.group_by("group", maintain_order=True):
        if group == "transfer":
            took = some["took"].fill_null(math.inf)  # one that is not complete is the longest
            rows.append((str(group), "completion", float(statistics.median(took))))
        else:
            rows.append((str(group), "goodput", float(some["goodput"].sum())))
    whole = flows.filter(pl.col("group") != "transfer").select(
        (pl.col("queue_delay_mean") * pl.col("sent")).sum() / pl.col("sent").sum()
    )
    rows.append(("", "queue_delay", float(whole.item())))
    rows.append(("", "retransmitted", float(flows.select(pl.sum("retransmitted")).item())))
    return rows


def compare(measurements_: pl.DataFrame, *, jobs: int | None = None) -> pl.DataFrame:
    """Simulates the cells that were measured, and judges each of their values.

    A value is chaotic if Linux's own runs differ by more than the tolerance, or simulated runs do
    with a microsecond more of jitter or with the testbed's lateness. Its cell is then simulated
    `VARIATIONS` times.

    Returns:
        A row for each cell with a valid run, group and metric. ``linux`` has the values of valid
        runs, ``simulated`` those of runs with their seeds, ``jittered`` the same with the testbed's
        mean lateness. ``bound`` is how far the simulator may be off. ``verdict`` and
        ``with_jitter``: see `judge`. ``alike``: of an undecided value, see `are_alike`.
        ``late_mean`` and ``late_p99`` are medians over the runs; ``runs`` and ``invalid`` say how
        many there are.
    """
    known = _values(measurements_)
    cells, rows = known.unique("cell", maintain_order=True), list(known.iter_rows(named=True))
    few = _simulated(cells, _FEW, jobs)
    chaotic = [_is_chaotic(row, few[_key(row)]) for row in rows]
    names = {row["cell"] for row, is_chaotic in zip(rows, chaotic, strict=True) if is_chaotic}
    many = _simulated(cells.filter(pl.col("cell").is_in(names)), VARIATIONS, jobs)
    judged = [
        _judged(row, many[_key(row)] if is_chaotic else _without_variations(few[_key(row)]))
        for row, is_chaotic in zip(rows, chaotic, strict=True)
    ]
    return pl.DataFrame(judged, infer_schema_length=None)


Runs = list[list[float]]
"""A value in simulated runs: for each seed a list of its variations."""

Models = dict[str, Runs]
"""A value ``simulated`` as the cell is, and ``jittered``: with the testbed's mean lateness."""


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["cell"], row["group"], row["metric"]


def _simulated(
    cells: pl.DataFrame, variations: int, jobs: int | None
) -> dict[tuple[str, str, str], Models]:
    """The values of cells, groups and metrics. Each variation has 1 us more of jitter."""
    models = ("simulated", "jittered")
    wanted = [
        (row, model, variation)
        for model in models
        for row in cells.iter_rows(named=True)
        for variation in range(variations)
    ]
    values: dict[tuple[str, str, str], Models] = {}
    results = run_all([_experiment(*one) for one in wanted], jobs=jobs)
    for (row, model, _), result in zip(wanted, results, strict=True):
        for at, seed in enumerate(result.seeds):
            for group, metric, value in _achieved(result.of_seed(seed)):
                empty: Models = {name: [[] for _ in result.seeds] for name in models}
                of_value = values.setdefault((row["cell"], group, metric), empty)
                of_value[model][at].append(value)
    return values


def _experiment(row: dict[str, Any], model: str, variation: int) -> Experiment:
    """A cell as it is simulated."""
    one = Experiment.parse(row["experiment"]).replace(seeds=row["seeds"])
    late = 2e6 * (row["late_mean"] or 0) if model == "jittered" else 0.0
    if (jitter := round(late) + variation) == 0:
        return one
    return one.replace(links=[link.replace(jitter=f"{jitter} us") for link in one.links])


def _without_variations(models: Models) -> Models:
    """The first variation of each seed alone."""
    return {model: [some[:1] for some in runs] for model, runs in models.items()}


def _judged(row: dict[str, Any], models: Models) -> dict[str, Any]:
    """A row of `compare`."""
    bound = _bound(row)
    verdicts = {model: judge(runs, row["linux"], bound) for model, runs in models.items()}
    values = {model: list(chain.from_iterable(runs)) for model, runs in models.items()}
    alike = verdicts["simulated"] == "undecided" and are_alike(models["simulated"], row["linux"])
    verdict = {"verdict": verdicts["simulated"], "with_jitter": verdicts["jittered"]}
    return row | values | {"bound": bound} | verdict | {"alike": alike}


def _values(measured_: pl.DataFrame) -> pl.DataFrame:
    """A row for each cell with a valid run, group and metric, with the values of valid runs."""
    valid = pl.col("invalid").is_null()
    rows = measured_.group_by("cell", "family", "group", "metric", maintain_order=True).agg(
        pl.first("experiment"),
        pl.median("late_mean"),
        pl.median("late_p99"),
        linux=pl.col("value").filter(valid),
        seeds=pl.col("run").filter(valid),
        runs=valid.sum(),
        invalid=(~valid).sum(),
    )
    return rows.filter(pl.col("runs") > 0)


def _bound(row: dict[str, Any]) -> float:
    """How far the simulator may be from Linux; the least if Linux's transfers are not complete."""
    metric, linux = MEASURES[row["metric"]], float(statistics.median(row["linux"]))
    return max(metric.share * abs(linux), metric.least) if math.isfinite(linux) else metric.least


def _off(one: float, other: float) -> float:
    """By how much one value is more than another; two that are infinite are the same."""
    return 0.0 if one == other else one - other


def _varies(row: dict[str, Any]) -> bool:
    """Whether Linux's own runs differ by more than the simulator may."""
    linux: list[float] = row["linux"]
    return _off(max(linux), min(linux)) / 2 > _bound(row)


def _is_chaotic(row: dict[str, Any], models: Models) -> bool:
    """Whether they do, or whether simulated runs of one seed do."""
    seeds = [[*one, *other] for one, other in zip(*models.values(), strict=True)]
    spreads = [_off(max(some), min(some)) for some in seeds]
    return _varies(row) or max(spreads) > _bound(row)


def judge(simulated: Runs, linux: Sequence[float], bound: float) -> str:
    """Whether the simulator is within a bound of Linux, in runs with the same seeds.

    Without variations the medians decide: ``agrees`` or ``differs``. With them two one-sided tests
    of the mean difference do (Schuirmann, 1987): ``agrees`` if it is within the bound, ``differs``
    if it is beyond it, each with 95 % confidence; else ``undecided``. There is no such mean if a
    value is infinite, as of transfers that are not complete: then the medians decide too.
    """
    every = list(chain.from_iterable(simulated))
    is_finite = all(map(math.isfinite, [*every, *linux]))
    if not is_finite or all(len(variations) == 1 for variations in simulated):
        off = _off(statistics.median(every), statistics.median(linux))
        return "agrees" if abs(off) <= bound else "differs"
    low, high = _difference(simulated, linux)
    if -bound <= low and high <= bound:
        return "agrees"
    return "differs" if low > bound or high < -bound else "undecided"


def _difference(simulated: Runs, linux: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean difference, by Student's t, 95 % on either side.

    A few runs of Linux say little about how far its runs vary. So they are taken to vary as the
    variations of a seed do, unless an F-test (95 %) says that they vary more.
    """
    seeds, variations = len(linux), len(simulated[0])
    off = [statistics.fmean(some) - one for some, one in zip(simulated, linux, strict=True)]
    free = seeds * (variations - 1)
    variance = statistics.fmean(map(statistics.variance, simulated)) * (1 + 1 / variations)
    if seeds > 1:
        between = statistics.variance(off)
        if between > variance * float(stats.f.ppf(CONFIDENCE, seeds - 1, free)):
            variance, free = between, seeds - 1
    half = float(stats.t.ppf(CONFIDENCE, free)) * math.sqrt(variance / seeds)
    mean = statistics.fmean(off)
    return mean - half, mean + half


def are_alike(simulated: Runs, linux: Sequence[float]) -> bool:
    """Whether simulated and real runs have equivalent distributions: the Mann-Whitney test of it.

    The chance that a simulated run has more than one of Linux, ties counted half, is near one half
    with 95 % confidence on either side (see `ALIKE`). Its variance is that of the shares of runs of
    the other side above each run or seed (Sen, 1960), and at least that of equal distributions.
    """
    seeds, variations = len(linux), len(simulated[0])
    if seeds < _ENOUGH:
        return False
    runs = np.asarray(simulated)[:, :, None]
    more = (np.sign(runs - np.asarray(linux)) + 1) / 2
    between = sum(
        float(np.var(shares, ddof=1)) for shares in (more.mean((0, 1)), more.mean((1, 2)))
    )
    variance = max(between, (1 + 1 / variations) / 12) / seeds
    half = float(stats.t.ppf(CONFIDENCE, seeds - 1)) * math.sqrt(variance)
    return abs(float(more.mean()) - 0.5) + half <= ALIKE


def agreement(compared: pl.DataFrame, measurements_: pl.DataFrame) -> Table:
    """How many values agree, metric by metric; the project's own eBPF programs apart.

    The note says how many runs do not count.
    """
    rows = []
    for title, some in (
        ("Linux's algorithms", compared.filter(pl.col("family") != "ports")),
        ("eBPF programs", compared.filter(family="ports")),
    ):
        for name, metric in MEASURES.items():
            ours = some.filter(metric=name)
            if ours.is_empty():
                continue
            counts = [ours.filter(verdict=one).height for one in ("agrees", "differs", "undecided")]
            counts.append(int(ours["alike"].sum()))
            met = f"{counts[0] / ours.height:.0%} (target {metric.target:.0%})"
            rows.append([title, f"{metric.title} within {_limit(metric)}", *map(str, counts), met])
    heads = ["", "compared", "agree", "differ", "undecided", "of these alike", "reached"]
    runs = measurements_.unique(["cell", "run"])
    late = runs["invalid"].is_not_null().sum()
    note = f"Of {runs.height} runs with real packets {late} do not count: the testbed was late."
    return Table([Column(head, number=head in heads[2:6]) for head in heads], rows, note)


def _limit(metric: Metric) -> str:
    least = f" or {metric.least / metric.scale:g} {metric.unit}".rstrip() if metric.least else ""
    return f"{metric.share:.0%}{least}"


def table(compared: pl.DataFrame) -> Table:
    """All cells, or some of them: path, Linux, simulator, verdicts, and the testbed's lateness."""
    heads = ["cell", "path", "what", "Linux", "simulated", "verdict", "with jitter", "late, us"]
    rows = []
    for row in compared.iter_rows(named=True):
        metric = MEASURES[row["metric"]]
        what = " ".join(filter(None, (metric.title, row["group"]))) + _in(metric.unit)
        values = [_spread(row["linux"], metric), _spread(row["simulated"], metric)]
        jittered = "" if row["verdict"] == "agrees" else _jittered(row, metric)
        late = "" if row["late_mean"] is None else f"{row['late_mean'] * 1e6:.0f}"
        path = _path(Experiment.parse(row["experiment"]))
        verdict = row["verdict"] + (", alike" if row["alike"] else "")
        rows.append([row["cell"], path, what, *values, verdict, jittered, late])
    return Table([Column(head, number=head == heads[-1]) for head in heads], rows)


def _in(unit: str) -> str:
    return f", {unit}" if unit else ""


def _jittered(row: dict[str, Any], metric: Metric) -> str:
    return f"{_spread(row['jittered'], metric)}: {row['with_jitter']}"


def _spread(values: Sequence[float], metric: Metric) -> str:
    """The median of some runs, and their range if they differ as shown."""
    middle, low, high = (
        _digits(value / metric.scale)
        for value in (statistics.median(values), min(values), max(values))
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _path(experiment: Experiment) -> str:
    (link, *others), flow = experiment.links, experiment.flows[0]
    buffer = experiment.stack_options.get("receive_window")
    rates = [link.rate] if link.rate else [f"{rate} from {at}" for at, rate in link.rates or []]
    parts = [
        *rates,
        flow.rtt or (flow.rtts[0] if flow.rtts else f"{link.delay} each way"),
        *(f"{delay} there from {at}" for at, delay in link.reroutes or []),
        link.aqm or link.queue,
        f"loss {link.loss:g}" if isinstance(link.loss, float) and link.loss else "",
        link.loss if isinstance(link.loss, str) else "",
        link.reorder,
        *(f"back {other.rate}" for other in others if not flow.paths),
        *(f"and {other.rate}, {other.queue}" for other in others if flow.paths),
        f"receive buffer {buffer} packets" if buffer else "",
    ]
    return ", ".join(part for part in parts if part)
