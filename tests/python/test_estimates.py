"""Estimates from seeds, against what statistics says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumbbell import ExperimentError, Until
from dumbbell.metrics import intervals


def test_the_interval_of_a_mean_ends_where_the_range_of_its_metric_does() -> None:
    shares = [0.7, 0.99, 0.99, 1.0, 1.0]
    assert (intervals.mean(shares).high or 0) > 1
    for metric in ("utilisation", "jain", "share", "retransmission_share"):
        assert intervals.mean(shares, metric).high == 1
    assert intervals.mean([0.0, 0.0, 3.0], "throughput").low == 0
    assert (intervals.mean([-2.0, 0.0, 1.0], "harm").low or 0) < -2
    assert intervals.mean([0.26, 0.9, 1.0], "jain", lowest=0.25).low == 0.25
    assert intervals.median([5.0, 6, 10, 0, 4, 0], limit=50).low == 0
    above = intervals.mean([1.02, 1.04], "utilisation")
    assert above.high == above.value, "an end is never on the wrong side of the mean"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_a_clipped_interval_contains_the_same_values_of_the_metric(runs: list[float]) -> None:
    whole, clipped = intervals.mean(runs), intervals.mean(runs, "jain")
    assert clipped.value == whole.value
    for true in (0.0, 0.25, 0.5, 0.75, 1.0):
        inside = (whole.low or 0) <= true <= (whole.high or 0)
        assert inside == ((clipped.low or 0) <= true <= (clipped.high or 0))


def test_median_of_uncensored_runs_lies_inside_its_interval() -> None:
    estimate = intervals.median([3.0, 1.0, 2.0, 5.0, 4.0])
    assert estimate.value == 3.0
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= 3.0 <= estimate.high


def test_interval_covers_the_true_median_in_about_95_percent_of_samples() -> None:
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        estimate = intervals.median(draw.normal(10.0, 2.0, size=25).tolist())
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 10.0 <= estimate.high
    assert 0.90 <= covered / 300 <= 0.99


@pytest.mark.parametrize("seeds", [2, 3, 5, 10, 20])
def test_interval_of_a_mean_covers_the_truth_in_95_percent_of_cases(seeds: int) -> None:
    draw = np.random.default_rng(2)
    covered = 0
    for _ in range(4000):
        estimate = intervals.mean(draw.normal(10.0, 2.0, size=seeds).tolist())
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 10.0 <= estimate.high
    assert covered / 4000 == pytest.approx(0.95, abs=0.01)


def test_interval_of_a_mean_is_that_of_a_textbook() -> None:
    """Four runs, 3 degrees of freedom: t = 3.182, s = 1.2910, half = 2.054."""
    estimate = intervals.mean([1.0, 2.0, 3.0, 4.0])
    assert estimate.low == pytest.approx(2.5 - 2.054, abs=1e-3)
    assert estimate.high == pytest.approx(2.5 + 2.054, abs=1e-3)


def test_interval_of_a_median_of_few_runs_is_wider_than_that_of_the_mean() -> None:
    """The same four runs; the standard error of a median is sqrt(pi / 2) that of a mean."""
    estimate = intervals.median([1.0, 2.0, 3.0, 4.0])
    assert estimate.low == pytest.approx(2.5 - 1.2533 * 2.054, abs=1e-3)
    assert estimate.high == pytest.approx(2.5 + 1.2533 * 2.054, abs=1e-3)
    assert estimate.within(0, 5).ends == {"value": 2.5, "low": 0, "high": 5}


def test_one_run_has_a_median_and_no_interval() -> None:
    assert intervals.median([3.0]).ends == {"value": 3.0, "low": None, "high": None}


def test_an_estimate_as_text_has_its_interval_and_its_censored_runs() -> None:
    assert str(intervals.mean([3.0])) == "3"
    assert str(intervals.median([1.0, 2.0, 3.0])) == "2 (-1.113 to 5.113)"
    assert str(intervals.median([46.0] * 19 + [None], 120.0)) == (
        "46 (46 to 46), 1 of 20 runs > 120"
    )
    assert str(intervals.median([50.0, None, None], 120.0)) == (
        "> 120 (50 to > 120), 2 of 3 runs > 120"
    )


def test_one_run_has_a_mean_and_no_interval() -> None:
    assert intervals.mean([3.0]) == intervals.Estimate(3.0, None, None, (3.0,))


def test_runs_that_agree_have_a_mean_without_doubt() -> None:
    estimate = intervals.mean([7.0] * 4)
    assert (estimate.value, estimate.low, estimate.high) == (7.0, 7.0, 7.0)


def test_censored_runs_are_kept_as_longer_than_all_others() -> None:
    estimate = intervals.median([10.0, 20.0, 30.0, None, None])
    assert estimate.value == 30.0
    assert estimate.censored == 2
    assert estimate.high is None
    assert estimate.runs == (10.0, 20.0, 30.0, None, None)


def test_median_is_beyond_the_limit_once_half_of_the_runs_are() -> None:
    assert intervals.median([10.0, 20.0, None, None]).value is None
    assert intervals.median([10.0, 20.0, 30.0, None, None, None, None]).value is None


def test_runs_that_all_stay_beyond_the_limit_have_no_number_at_all() -> None:
    estimate = intervals.median([None] * 8)
    assert (estimate.value, estimate.low, estimate.high) == (None, None, None)
    assert estimate.censored == 8


def test_ratio_of_medians_of_constant_runs_is_exact() -> None:
    estimate = intervals.ratio_of_medians([90.0] * 8, [15.0] * 8, 120.0)
    assert (estimate.value, estimate.low, estimate.high) == (6.0, 6.0, 6.0)


def test_ratio_says_nothing_where_its_lower_side_is_beyond_the_limit() -> None:
    estimate = intervals.ratio_of_medians([90.0] * 8, [None] * 8, 120.0)
    assert (estimate.value, estimate.low, estimate.high) == (None, None, None)
    assert estimate.limit is None


def test_ratio_with_its_upper_side_beyond_the_limit_is_above_limit_over_lower() -> None:
    estimate = intervals.ratio_of_medians([None] * 8, [15.0] * 8, 120.0)
    assert (estimate.value, estimate.limit) == (None, 8.0)


def test_same_runs_give_the_same_interval_every_time() -> None:
    runs = [5.0, 9.0, 2.0, 7.0, None]
    assert intervals.median(runs) == intervals.median(runs)


@pytest.mark.parametrize("runs", [[], [1.0, math.nan]])
def test_no_runs_or_runs_that_are_not_numbers_are_refused(runs: list[float | None]) -> None:
    with pytest.raises(ValueError, match="at least one run"):
        intervals.median(runs)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 0}, "width: 0 is not a share of the mean; write more than 0 and less than 1"),
        ({"width": 5}, "width: 5 is not a share of the mean"),
        ({"width": math.nan}, "width: nan is not a share of the mean"),
        ({"max_seeds": 0}, "max_seeds: 0 is not a number from 10 to 100,000; with fewer seeds"),
    ],
)
def test_a_limit_on_the_interval_that_none_can_have_is_refused(
    wrong: dict[str, float], said: str
) -> None:
    with pytest.raises(ExperimentError) as error:
        Until(**({"width": 0.05} | wrong))  # type: ignore[arg-type]
    assert str(error.value).startswith(said)
