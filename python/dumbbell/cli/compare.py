"""``dumbbell compare``: the quick question."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from dumbbell import metrics
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
)
from dumbbell.errors import ExperimentError, QuantityError
from dumbbell.experiment import Experiment, Flow, Link
from dumbbell.keys import needs_udt
from dumbbell.resolve import resolve
from dumbbell.runner import run_all
from dumbbell.units import TIME

if TYPE_CHECKING:
    from dumbbell.results import Result

_GROUPS: Final = ("flow", "against")
"""The names of the flows of the algorithm in question, and of those that compete with it."""

_OPTIONS: Final = {"repeat": "--flows", "flow": "--flows", "sample": "--duration"}
"""The options that are not called as the key of the experiment is."""


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


def split_algorithms(text: str) -> list[str]:
    """Splits at commas that are not within parentheses: ``a,b(x=1,y=2)`` is two algorithms."""
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    names = [part for part in parts if part]
    if not names:
        raise ExperimentError('"" names no algorithm; write some, such as "cubic,bbr"', key="--cc")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ExperimentError(f'"{twice}" is named twice; name every algorithm once', key="--cc")
    return names


def answer(
    question: Question, cc: str, against: str | None, *, jobs: int | None, json: bool
) -> None:
    """Runs every algorithm on the link and prints how they compare."""
    algorithms = split_algorithms(cc)
    rivals = [] if against is None else [against]
    experiments = [question.experiment(name, *rivals) for name in algorithms]
    if rivals:
        experiments.append(question.experiment(*rivals))
    began = time.perf_counter()
    with progress_bar("comparing") as progress:
        every = run_all(experiments, jobs=jobs, progress=progress)
    wall = time.perf_counter() - began
    results = dict(zip(algorithms, every, strict=False))
    rival = every[-1] if rivals else None
    table = [judge(name, result, rival) for name, result in results.items()]
    if json:
        frames = [_labelled(result, name) for name, result in results.items()]
        flows = [row for frame in frames for row in rows(frame)]
        print_json({"flows": flows, "algorithms": table, "meta": _meta(question, every, wall)})
    else:
        _print(question, table, against)


def judge(name: str, result: Result, rival: Result | None = None) -> dict[str, Any]:
    """What one algorithm achieved, as the mean over seeds.

    Throughput is the sum over its flows (bit/s), queueing delay and its p95 (s) are means over
    them, Jain's index is over all flows on the link. With a `rival` (its flows alone on the link)
    also the rival's throughput and the harm done to it.
    """
    summary = metrics.summary(result)
    own = summary.filter(pl.col("flow").cast(pl.String).str.starts_with("flow"))
    others = summary.filter(pl.col("flow").cast(pl.String).str.starts_with("against"))
    row = {
        "cc": name,
        "throughput": _total(own, "throughput"),
        "goodput": _total(own, "goodput"),
        "utilisation": _mean(metrics.utilisation(result), "utilisation"),
        "queue_delay_mean": _mean(own, "queue_delay_mean"),
        "queue_delay_p95": _mean(own, "queue_delay_p95"),
        "retransmission_share": _total(own, "retransmitted") / max(_total(own, "sent"), 1),
        "jain": _mean(metrics.fairness(result), "jain"),
    }
    if rival is not None:
        alone = _total(metrics.summary(rival), "throughput")
        together = _total(others, "throughput")
        row |= {"rival_throughput": together, "harm": metrics.harm(alone, together)}
    return row


def _total(frame: pl.DataFrame, column: str) -> float:
    """The sum over flows, as the mean over seeds."""
    return float(frame[column].sum()) / max(frame["seed"].n_unique(), 1)


def _mean(frame: pl.DataFrame, column: str) -> float | None:
    mean = frame[column].mean()
    return float(mean) if isinstance(mean, float) else None


def _labelled(result: Result, name: str) -> pl.DataFrame:
    return metrics.summary(result).with_columns(
        pl.col("flow", "cc").cast(pl.String), algorithm=pl.lit(name)
    )


def _meta(question: Question, results: list[Result], wall: float) -> dict[str, Any]:
    metas = [result.meta for result in results]
    sums = {key: sum(meta[key] for meta in metas) for key in ("data_packets", "events")}
    seed = {"seed": metas[0]["seeds"][0], "wall_s": wall}
    return metas[0] | sums | seed | {"question": vars(question)}


def _print(question: Question, table: list[dict[str, Any]], against: str | None) -> None:
    rival = f", each against as many of {against}" if against else ""
    seeds = f", mean of {question.seeds} seeds" if question.seeds > 1 else ""
    title = (
        f"{question.rate}, {question.rtt}, queue {question.queue}: {question.flows} flow(s) "
        f"of each algorithm{rival}, {question.duration}{seeds}"
    )
    columns = {
        "throughput": ("throughput", mbits),
        "utilisation": ("utilisation", percent),
        "queue_delay_mean": ("queueing delay", milliseconds),
        "queue_delay_p95": ("its p95", milliseconds),
        "retransmission_share": ("retransmitted", percent),
        "jain": ("Jain's index", plain),
    }
    if against:
        columns |= {"rival_throughput": (f"left to {against}", mbits), "harm": ("harm", percent)}
    cells = [[row["cc"], *(show(row[key]) for key, (_, show) in columns.items())] for row in table]
    print_table(title, ["algorithm", *(head for head, _ in columns.values())], cells)
    print_line("\nThroughput is the sum over an algorithm's flows; delays are one-way, per packet.")
