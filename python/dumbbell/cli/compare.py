"""``dumbbell compare``: the quick question."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import metrics
from dumbbell.cli.algorithms import split_algorithms
from dumbbell.cli.output import (
    mbits,
    milliseconds,
    percent,
    plain,
    print_json,
    print_line,
    print_table,
    progress_bar,
    rows,
    too_wide,
    with_interval,
)
from dumbbell.engine.runner import run_all, run_until
from dumbbell.errors import DumbbellError, ExperimentError, QuantityError
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.experiment.resolve import resolve
from dumbbell.experiment.stacks import unknown
from dumbbell.experiment.types import needs_udt
from dumbbell.experiment.units import TIME
from dumbbell.metrics.intervals import mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from dumbbell.metrics.intervals import Until
    from dumbbell.results.result import Result

_GROUPS: Final = ("flow", "against")
"""The names of the flows of the algorithm in question, and of those that compete with it."""

_OPTIONS: Final = {"repeat": "--flows", "flow": "--flows", "sample": "--duration"}
"""The options that are not called as the key of the experiment is."""

COLUMNS: Final[dict[str, tuple[str, Callable[[float | None], str]]]] = {
    "throughput": ("throughput", mbits),
    "utilisation": ("utilisation", percent),
    "queue_delay_mean": ("queueing delay", milliseconds),
    "queue_delay_p95": ("its p95", milliseconds),
    "retransmission_share": ("retransmitted", percent),
    "jain": ("Jain's index", plain),
}
"""What the tables show of what was achieved: key -> head and how it is shown."""


@dataclass(frozen=True)
class Question:
    """The link, and how long and how often to look at it."""

    rate: str
    rtt: str
    queue: str
    loss: str
    duration: str
    stack: str
    flows: int
    seeds: int

    def experiment(self, *algorithms: str) -> Experiment:
        """An experiment in which `flows` flows of each of the algorithms share the link.

        Raises:
            ExperimentError: If an option is not valid; its key is the option.
        """
        try:
            link = Link(
                name="bottleneck",
                rate=self.rate,
                delay=self._delay(),
                queue=self.queue,
                loss=self.loss,
            )
            experiment = Experiment(
                links=[link],
                flows=[self._flow(name, cc) for name, cc in zip(_GROUPS, algorithms, strict=False)],
                duration=self.duration,
                seeds=self.seeds,
                stack=self.stack,
                start_jitter="100 ms",
            )
            return resolve(experiment)
        except ExperimentError as error:
            key = error.key.rpartition(".")[2]
            raise ExperimentError(error.problem, key=_OPTIONS.get(key, f"--{key}")) from None

    def _delay(self) -> str:
        try:
            return TIME.format(TIME.parse(self.rtt) // 2)
        except QuantityError as error:
            raise ExperimentError(str(error), key="rtt") from None

    def _flow(self, name: str, cc: str) -> Flow:
        try:
            transport = "udt" if needs_udt(cc) else "tcp"
            return Flow(name=name, cc=cc, rtt=self.rtt, repeat=self.flows, transport=transport)
        except ExperimentError as error:
            key = "against" if name == "against" and error.key == "cc" else error.key
            raise ExperimentError(error.problem, key=key) from None


def answer(
    question: Question,
    cc: str,
    against: str | None,
    *,
    jobs: int | None,
    until: Until | None,
    json: bool,
) -> None:
    """Runs every algorithm on the link and prints how they compare."""
    algorithms = split_algorithms(cc)
    rivals = [] if against is None else [against]
    experiments = [question.experiment(name, *rivals) for name in algorithms]
    if rivals:
        experiments.append(question.experiment(*rivals))
    began = time.perf_counter()
    with progress_bar("comparing") as progress:
        if until is None:
            every = run_all(experiments, jobs=jobs, progress=progress)
        else:
            values = partial(_values, until.metric)
            every = run_until(experiments, until, values, jobs=jobs, progress=progress)
    wall = time.perf_counter() - began
    results = dict(zip(algorithms, every, strict=False))
    rival = every[-1] if rivals else None
    runs = {name: judge(result, rival) for name, result in results.items()}
    if json:
        frames = [_labelled(result, name) for name, result in results.items()]
        flows = [row for frame in frames for row in rows(frame)]
        meta = _meta(question, every, wall) | ({} if until is None else {"until": vars(until)})
        table = [means(name, frame) for name, frame in runs.items()]
        print_json({"flows": flows, "algorithms": table, "meta": meta})
        return
    _print(question, runs, against)
    wide = [
        name
        for name, result in results.items()
        if until and not all(map(until.tight, _values(until.metric, result)))
    ]
    if until and wide:
        print_line(too_wide(until, f"With {', '.join(wide)} "))


def _values(metric: str, result: Result) -> list[list[float | None]]:
    """What of an algorithm's runs is to be known well."""
    runs = judge(result)
    if metric not in runs.columns:
        known = [column for column in runs.columns if column != "seed"]
        raise DumbbellError(f"--metric: {unknown('metric', metric, known)}")
    return [runs[metric].to_list()]


def judge(result: Result, rival: Result | None = None) -> pl.DataFrame:
    """What the flows of an algorithm achieved, one row a seed.

    Throughput and goodput are those of its flows together (bit/s), queueing delay and its p95 (s)
    are means over them, Jain's index is over all flows on the link. With a `rival` (its flows alone
    on the link) also the rival's throughput and the harm done to it.
    """
    own = pl.col("flow").cast(pl.String).str.starts_with("flow")
    runs = achieved(result, own)
    if rival is None:
        return runs
    harm = _harm(metrics.summary(result).filter(~own), metrics.summary(rival))
    return runs.join(harm, on="seed", how="left", maintain_order="left")


def achieved(result: Result, own: pl.Expr) -> pl.DataFrame:
    """What the flows that `own` chooses achieved, one row a seed; see `judge`."""
    runs = metrics.over_flows(metrics.summary(result).filter(own))
    used = metrics.utilisation(result).group_by("seed").agg(pl.col("utilisation").max())
    for table in (used, metrics.fairness(result)):
        runs = runs.join(table, on="seed", how="left", maintain_order="left")
    return runs


def _harm(together: pl.DataFrame, alone: pl.DataFrame) -> pl.DataFrame:
    """By seed, what was left to the rival, and the harm that this is."""
    left, had = (
        dict(metrics.over_flows(flows).select("seed", "throughput").iter_rows())
        for flows in (together, alone)
    )
    usual = sum(had.values()) / len(had)
    harm = [metrics.harm(had.get(seed, usual), rate) for seed, rate in left.items()]
    return pl.DataFrame(
        {"seed": list(left), "rival_throughput": list(left.values()), "harm": harm},
        schema_overrides={"seed": pl.UInt64},
    )


def means(name: str, runs: pl.DataFrame) -> dict[str, Any]:
    """An algorithm's means and, if there are several seeds, their 95 % intervals."""
    row: dict[str, Any] = {"cc": name}
    intervals = {}
    for metric in runs.columns[1:]:
        known = runs[metric].drop_nulls().to_list()
        estimate = mean(known) if known else None
        row[metric] = estimate and estimate.value
        intervals[metric] = [estimate.low, estimate.high] if estimate else None
    return row | ({"intervals": intervals} if runs.height > 1 else {})


def _labelled(result: Result, name: str) -> pl.DataFrame:
    return metrics.summary(result).with_columns(
        pl.col("flow", "cc").cast(pl.String), algorithm=pl.lit(name)
    )


def _meta(question: Question, results: list[Result], wall: float) -> dict[str, Any]:
    metas = [result.meta for result in results]
    sums = {key: sum(meta[key] for meta in metas) for key in ("data_packets", "events")}
    seed = {"seed": metas[0]["seeds"][0], "wall_s": wall}
    return metas[0] | sums | seed | {"question": vars(question)}


def _print(question: Question, runs: dict[str, pl.DataFrame], against: str | None) -> None:
    rival = f", each against as many of {against}" if against else ""
    seeds = _seeds(runs)
    title = (
        f"{question.rate}, {question.rtt}, queue {question.queue}: {question.flows} flow(s) "
        f"of each algorithm{rival}, {question.duration}{seeds}"
    )
    columns = dict(COLUMNS)
    if against:
        columns |= {"rival_throughput": (f"left to {against}", mbits), "harm": ("harm", percent)}
    cells = [
        [name, *(with_interval(frame[key], show) for key, (_, show) in columns.items())]
        for name, frame in runs.items()
    ]
    print_table(title, ["algorithm", *(head for head, _ in columns.values())], cells)
    print_line("\nThroughput: all flows of an algorithm together. Delays: one-way, per packet.")


def _seeds(runs: dict[str, pl.DataFrame]) -> str:
    counts = sorted({frame.height for frame in runs.values()})
    if counts == [1]:
        return ""
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"; mean of {many} seeds, below it its 95 % interval"
