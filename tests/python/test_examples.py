"""The examples run, and show what they say they show."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dumbbell import Experiment, Result, metrics, run
from dumbbell.sweeps.drive import run_sweep
from dumbbell.sweeps.plan import Sweep

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, *overrides: str) -> Result:
    return run(Experiment.load(EXAMPLES / f"{name}.toml", overrides=list(overrides)))


def mean(result: Result, flow: str, column: str) -> float:
    summary = metrics.summary(result).filter(pl.col("flow") == flow)
    value = summary[column].mean()
    assert isinstance(value, float)
    return value


FILES = sorted(EXAMPLES.glob("*.toml"))
SWEEPS = [path for path in FILES if "[sweep]" in path.read_text()]


@pytest.mark.parametrize(
    "path", [path for path in FILES if path not in SWEEPS], ids=lambda path: path.stem
)
def test_an_example_runs_and_fills_a_link(path: Path) -> None:
    used = metrics.utilisation(run(path, seeds=1))["utilisation"].to_list()
    assert max(used) > 0.8


def test_bbr3_holds_its_share_beside_cubic_only_in_a_shallow_queue(
    tmp_path: Path,
) -> None:
    sweep = Sweep.load(EXAMPLES / "sweep.toml", overrides=["duration=20 s"])
    flows = run_sweep(sweep, tmp_path, seeds=1).dataset.table("flows").filter(rate=1e7)
    sums = flows.group_by("queue", "cc").agg(pl.col("throughput").sum())
    share = {
        queue: sums.filter(queue=queue, cc="bbr3")["throughput"].item()
        / sums.filter(queue=queue)["throughput"].sum()
        for queue in (0.5, 8.0)
    }
    assert share[0.5] > 0.4
    assert share[8.0] < share[0.5]


def test_two_flows_come_to_share() -> None:
    result = example("two-flows")
    late = metrics.throughput(result, since=60)["throughput"].to_numpy().reshape(-1, 2)
    assert (late.min(axis=1) / late.sum(axis=1) > 0.25).all()


def test_cubic_beats_bbr_at_a_deep_queue_and_not_at_a_shallow_one() -> None:
    deep = example("bbr-vs-cubic")
    assert mean(deep, "cubic", "throughput") > 2 * mean(deep, "bbr", "throughput")
    shallow = example("bbr-vs-cubic", "link.bottleneck.queue=0.5 BDP")
    assert mean(shallow, "bbr", "throughput") > mean(shallow, "cubic", "throughput")


def test_a_shallow_buffer_leaves_the_link_idle_and_a_deep_one_does_not() -> None:
    shallow = example("shallow-buffer")
    deep = example("shallow-buffer", "link.bottleneck.queue=1 BDP")
    used = [metrics.utilisation(one)["utilisation"].item() for one in (shallow, deep)]
    assert used[0] < 0.9
    assert used[1] > 0.97


def test_reno_favours_short_round_trip_times_more_than_cubic_does() -> None:
    def advantage(result: Result) -> float:
        return mean(result, "near", "throughput") / mean(result, "far", "throughput")

    reno, cubic = example("mixed-rtt"), example("mixed-rtt", "flow.*.cc=cubic")
    assert mean(reno, "near", "throughput") > mean(reno, "middle", "throughput")
    assert mean(reno, "middle", "throughput") > mean(reno, "far", "throughput")
    assert advantage(reno) > advantage(cubic) > 1


def test_short_transfers_complete_beside_the_bulk_transfer() -> None:
    web = metrics.transfer_summary(example("short-flows")).row(0, named=True)
    assert (web["flow"], web["transfers"]) == ("web", 409)
    assert web["completed_share"] > 0.99
    assert 0.06 < web["completion_p50"] < web["completion_p99"]
