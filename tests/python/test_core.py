"""The simulator as Python sees it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest

from dumbbell import Experiment, Flow, Link, _core

if TYPE_CHECKING:
    from dumbbell._core import Table


def a_scenario(duration: str = "1 s") -> str:
    link = Link(name="l", rate="10 Mbit/s", delay="10 ms")
    return (
        Experiment(links=[link], flows=[Flow(cc="reno")], duration=duration).resolve().scenario(1)
    )


@pytest.mark.slow
def test_the_stub_says_what_the_module_has() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "dumbbell._core", "--mypy-config-file"]
    checked = subprocess.run(
        [*command, "pyproject.toml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_algorithm_in_the_list_is_one_and_no_other_is() -> None:
    assert {"reno", "cubic"} <= set(_core.algorithms())
    for name in _core.algorithms():
        _core.check_algorithm(name)
    with pytest.raises(ValueError, match='no algorithm is called "tahoe"; choose from'):
        _core.check_algorithm("tahoe")


def test_every_stack_is_complete() -> None:
    stacks = _core.stacks()
    assert {"linux", "linux-2.6.18", "ns-3"} <= set(stacks)
    assert all(fields.keys() == stacks["linux"].keys() for fields in stacks.values())


def test_a_scenario_that_is_none_is_a_value_error() -> None:
    for bad in ("", "{}", "[]", a_scenario().replace('"seed"', '"sed"')):
        with pytest.raises(ValueError, match="the scenario is not valid"):
            _core.simulate(bad)


def address(table: Table, column: str) -> int:
    """Where the values of a column lie in memory."""
    (chunk,) = pa.table(table)[column].chunks
    values = chunk.buffers()[1]
    assert values is not None
    return int(values.address)


def test_tables_are_handed_over_without_copying() -> None:
    outcome = _core.simulate(a_scenario())
    assert outcome.series.column_names[:3] == ["flow", "t", "cwnd"]
    assert len(outcome.series) == 11
    for column in ("t", "cwnd", "delivered", "ca_state"):
        assert address(outcome.series, column) == address(outcome.series, column)
        series = pl.DataFrame(outcome.series)[column]
        values = series.to_numpy(allow_copy=False)
        assert values.ctypes.data == address(outcome.series, column)


def test_tables_outlive_the_outcome_they_came_from() -> None:
    series = pl.DataFrame(_core.simulate(a_scenario()).series)
    assert series["t"].to_list() == pytest.approx([k / 10 for k in range(11)])


def test_other_threads_run_while_a_simulation_does() -> None:
    watch, seen = _core.RunMonitor(), [0.0]

    def simulate() -> None:
        with contextlib.suppress(InterruptedError):
            _core.simulate(a_scenario("100000 s"), watch)

    thread = threading.Thread(target=simulate)
    thread.start()
    while thread.is_alive() and len(set(seen)) < 5:
        seen.append(watch.done)
        time.sleep(0.001)
    watch.stop()
    thread.join()
    assert seen == sorted(seen)
    assert 0 < seen[-1] < 1


def test_a_watch_is_done_when_the_simulation_is() -> None:
    watch = _core.RunMonitor()
    _core.simulate(a_scenario(), watch)
    assert watch.done == 1


def test_a_simulation_can_be_stopped() -> None:
    watch = _core.RunMonitor()
    watch.stop()
    with pytest.raises(InterruptedError):
        _core.simulate(a_scenario("1000 s"), watch)
    assert watch.done < 0.01
