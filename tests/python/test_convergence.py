"""Convergence on windows and rates drawn by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hand_made import result, zero

from dumbbell.metrics.convergence_times import convergence, crossing_time, fair_time, share_variance

T = np.arange(0, 120.05, 0.1)


def falling(to: float, by: float) -> np.ndarray:
    """A window that falls from 1000 to `to` in `by` seconds from 30 s on."""
    return np.asarray(np.interp(T, [0, 30, 30 + by, 120], [1000, 1000, to, to]))


def rising(to: float, by: float) -> np.ndarray:
    """A window that rises from 10 to `to` in `by` seconds from 30 s on, and was not before."""
    return np.where(T < 30, np.nan, np.interp(T, [0, 30, 30 + by, 120], [0, 10, to, to]))


def test_windows_that_swap_places_at_their_averages_cross_there() -> None:
    # 1000 - 49 s and 10 + 51 s meet at s = 9.9, where both are 514.9; averages 510 and 520.
    assert crossing_time(T, falling(510, 10), rising(520, 10), 30.0) == pytest.approx(9.9, abs=0.1)


def test_a_crossing_far_from_the_averages_does_not_count() -> None:
    spike = np.where((T > 32) & (T < 35), 3000.0, rising(490, 40))
    falls = falling(510, 40)
    assert crossing_time(T, falls, spike, 30.0) is None
    assert crossing_time(T, falls, spike, 30.0, close=10.0) == pytest.approx(2.1, abs=0.2)


def test_windows_that_never_meet_do_not_cross() -> None:
    assert crossing_time(T, falling(600, 10), rising(400, 10), 30.0) is None


def test_a_crossing_in_slow_start_does_not_count() -> None:
    early = crossing_time(T, falling(510, 10), rising(520, 10), 30.0)
    assert early == pytest.approx(9.9, abs=0.1)
    assert crossing_time(T, falling(510, 10), rising(520, 10), 30.0, settled=41.0) is None


def test_a_dip_of_200_ms_is_no_crossing() -> None:
    dip = np.where((T > 59.95) & (T < 60.25), 4.0, falling(600, 10))
    assert crossing_time(T, dip, rising(550, 10), 30.0) is None


def test_a_sawtooth_crosses_another_once_both_are_at_their_averages() -> None:
    saw = 400 + 200 * ((T / 20) % 1)
    other = np.where(T < 30, np.nan, np.minimum(400 + 200 * ((T / 20 + 0.5) % 1), (T - 30) * 20))
    found = crossing_time(T, saw, other, 30.0)
    assert found is not None
    assert 19 <= found <= 31


def test_a_second_flow_that_hardly_runs_does_not_converge() -> None:
    assert crossing_time(T, falling(510, 10), rising(500, 10), 120.0) is None


def test_flows_are_fair_from_the_first_window_that_begins_ten_fair_ones() -> None:
    unfair, fair = [1.0, 9.0], [5.0, 5.0]
    assert fair_time([unfair] * 7 + [fair] * 10) == 7
    assert fair_time([fair] * 10) == 0
    assert fair_time([fair] * 9 + [unfair] + [fair] * 10) == 10
    assert fair_time([fair] * 9) is None
    assert fair_time([unfair] * 50) is None


def test_windows_in_which_nothing_is_delivered_are_neither_fair_nor_unfair() -> None:
    unfair, fair, none = [1.0, 9.0], [5.0, 5.0], [0.0, 0.0]
    assert fair_time([unfair] * 3 + [none] * 12 + [unfair] * 3) is None
    assert fair_time([unfair] * 3 + [fair] * 4 + [none] * 3 + [fair] * 4) == 3


def test_the_bound_of_fairness_is_a_jains_index_of_95_percent() -> None:
    # Rates 1 and x: index (1 + x)^2 / (2 (1 + x^2)) is 0.95 at x = 0.6268.
    assert fair_time([[1, 0.63]] * 10) == 0
    assert fair_time([[1, 0.62]] * 10) is None


def test_flows_that_share_alike_are_stable_and_flows_that_take_turns_are_not() -> None:
    assert share_variance([[5, 5]] * 8) == 0
    assert share_variance([[1, 0], [0, 1]] * 4) == 0.25
    assert share_variance([[6, 4], [4, 6]] * 4) == pytest.approx(0.01)
    assert share_variance([]) is None


def test_the_convergence_of_a_result_is_told_for_every_seed() -> None:
    run = result(
        {
            "a": lambda t: 2e5 * min(t, 35) + 1e5 * max(t - 35, 0),
            "b": lambda t: 1e5 * max(t - 35, 0),
        },
        starts={"b": 30.0},
        cwnd={
            "a": lambda t: float(np.interp(t, [30, 40], [1000, 510])),
            "b": lambda t: float(np.interp(t, [30, 40], [10, 520])),
        },
        duration=120,
    )
    assert convergence(run).rows() == [
        (1, pytest.approx(9.9, abs=0.1), pytest.approx(5), pytest.approx(0, abs=1e-12))
    ]
    assert convergence(run, "a", "b").equals(convergence(run))


def test_convergence_with_a_flow_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match='there is no flow "c"'):
        convergence(result({"a": zero, "b": zero}), "a", "c")
    with pytest.raises(ValueError, match="two flows"):
        convergence(result({"a": zero}))


def test_flows_that_have_both_ended_do_not_count_as_fair() -> None:
    run = result(
        {"a": lambda t: 3e5 * min(t, 8), "b": lambda t: 1e5 * min(t, 8), "c": zero}, duration=40
    )
    ended = pl.when(pl.col("flow").cast(pl.String) == "c").then(40.0).otherwise(8.0)
    flows = run.flows.with_columns(end=ended)
    assert convergence(replace(run, flows=flows))["fair"].to_list() == [None]
