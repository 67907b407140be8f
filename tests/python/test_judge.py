"""When runs confirm a claim, and how many are needed to say so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dumbbell.metrics import intervals, sequential
from dumbbell.papers import Runs, Verdict
from dumbbell.papers.judge import deciding, is_near, judge
from dumbbell.papers.runs import Asked, NotRunError, asked_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def table(**values: Sequence[float | None]) -> Runs:
    """Runs of experiments whose throughputs are given."""
    found = {asked_for(name, "throughput", {}): list(runs) for name, runs in values.items()}
    return Runs({}, table=found)


def first_is_faster(runs: Runs) -> Verdict:
    one, other = runs.value("one"), runs.value("other")
    return Verdict(one > other, f"{one:.1f} and {other:.1f}")


def test_a_claim_on_whose_side_all_runs_lie_is_confirmed() -> None:
    found = judge(first_is_faster, table(one=[9.0, 9.1, 9.2], other=[4.0, 4.1, 4.2]))
    assert (found.verdict, found.support) == ("confirmed", 1.0)
    assert (found.evidence, found.single, found.runs) == ("9.1 and 4.1", (3, 3), "3 runs")


def test_a_claim_on_whose_other_side_all_runs_lie_is_not_confirmed() -> None:
    found = judge(first_is_faster, table(one=[4.0, 4.1, 4.2], other=[9.0, 9.1, 9.2]))
    assert (found.verdict, found.support, found.single) == ("not confirmed", 0.0, (0, 3))


def test_a_claim_on_both_sides_of_which_runs_lie_is_inconclusive() -> None:
    found = judge(first_is_faster, table(one=[4.0, 5.0, 9.0], other=[5.0, 4.5, 5.5, 4.8]))
    assert found.verdict == "inconclusive"
    assert found.single == (2, 3)
    assert found.runs == "3 to 4 runs"


@pytest.mark.parametrize("limit", [8.0, 10.0])
def test_a_claim_without_medians_is_judged_by_all_runs_and_not_repeated(limit: float) -> None:
    def all_are_fast(runs: Runs) -> Verdict:
        return Verdict(min(runs.values("one")) > limit, "")

    found = judge(all_are_fast, table(one=[9.0, 9.1, 9.2]))
    assert found.verdict == ("confirmed" if limit < 9.0 else "not confirmed")
    assert (found.support, found.single, found.runs) == (None, None, "3 runs")
    assert judge(all_are_fast, table(one=[9.0, 9.1])).verdict == "inconclusive"


@pytest.mark.parametrize("runs", [[9.0], [9.0, 9.1]])
def test_fewer_than_three_runs_are_inconclusive(runs: list[float]) -> None:
    found = judge(first_is_faster, table(one=runs, other=[4.0] * 3))
    assert (found.verdict, found.support) == ("inconclusive", None)


def test_quantities_of_one_experiment_are_redrawn_together() -> None:
    """What one flow has more, the other has less: their sum does not vary, so it decides."""
    shares = [3.0, 5.0, 4.0, 6.0, 2.0]
    runs = Runs(
        {},
        table={
            asked_for("both", "throughput", {"flow": "a"}): list(shares),
            asked_for("both", "throughput", {"flow": "b"}): [10.0 - share for share in shares],
        },
    )

    def sum_is_ten(runs: Runs) -> Verdict:
        total = sum(runs.value("both", flow=flow) for flow in ("a", "b"))
        return Verdict(abs(total - 10.0) < 1e-9, "")

    assert judge(sum_is_ten, runs).support == 1.0


def test_censored_runs_are_redrawn_as_beyond_the_limit() -> None:
    def is_seen(runs: Runs) -> Verdict:
        return Verdict(runs.median("times", limit=120.0).value is not None, "")

    times = {asked_for("times", "throughput", {}): [50.0] * 12 + [None] * 11}
    found = judge(is_seen, Runs({}, table=times))
    assert found.verdict == "inconclusive"
    assert found.single == (12, 23)


def test_only_experiments_that_keep_a_claim_open_get_more_runs() -> None:
    def order(runs: Runs) -> Verdict:
        one, other, third = (runs.value(name) for name in ("one", "other", "third"))
        return Verdict(one > other > third, "")

    runs = table(one=[4.0, 5.0, 9.0], other=[5.0, 4.5, 5.5], third=[1.0, 1.1, 1.2])
    assert judge(order, runs).verdict == "inconclusive"
    assert deciding(order, runs, ["one", "other", "third"]) == {"one", "other"}


def test_few_censored_runs_are_inconclusive() -> None:
    def is_seen(runs: Runs) -> Verdict:
        return Verdict(runs.median("times", limit=120.0).value is not None, "")

    for count, verdict in ((6, "inconclusive"), (12, "not confirmed")):
        times: dict[Asked, list[float | None]] = {
            asked_for("times", "throughput", {}): [None] * count
        }
        assert judge(is_seen, Runs({}, table=times)).verdict == verdict


def test_what_was_not_run_is_named() -> None:
    with pytest.raises(NotRunError, match='"other"'):
        judge(first_is_faster, table(one=[1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("runs", "published", "near"),
    [
        ([99.0, 100.0, 101.0], 100.0, True),
        ([99.0, 100.0, 101.0], 200.0, False),
        ([99.0, 100.0, 101.0], 82.0, None),
        ([-9.9, -10.0, -10.1], -10.0, True),
        ([-9.9, -10.0, -10.1], 10.0, False),
        ([100.0, 100.0], 100.0, None),
    ],
)
def test_a_number_is_near_or_not_where_its_whole_interval_is(
    runs: list[float], published: float, near: bool | None
) -> None:
    assert is_near(intervals.median(runs), published, len(runs)) is near


@pytest.mark.parametrize(("count", "near"), [(6, None), (12, False)])
def test_censored_runs_need_a_bootstrap_to_decide(count: int, near: bool | None) -> None:
    censored = intervals.median([None] * count, 120.0)
    assert is_near(censored, 40.0, count) is near


def test_runs_double_from_look_to_look_up_to_the_maximum() -> None:
    assert sequential.looks(24) == [3, 6, 12, 24]
    assert sequential.looks(20) == [3, 6, 12, 20]
    assert sequential.looks(2) == [2]
    with pytest.raises(ValueError, match="at most 384 runs"):
        sequential.looks(385)


@pytest.mark.parametrize("count", range(1, 9))
def test_all_looks_together_err_in_five_percent_of_cases(count: int) -> None:
    """The boundary by numerical integration; those of one and two looks are Pocock's own."""
    confidence = sequential.confidence(sequential.FIRST * 2 ** (count - 1))
    assert error_of(boundary(confidence), [2**look for look in range(count)]) == pytest.approx(
        0.05, abs=2e-4
    )
    known = {1: 1.960, 2: 2.178}
    if count in known:
        assert boundary(confidence) == pytest.approx(known[count], abs=1e-3)


def boundary(confidence: float) -> float:
    """The normal deviate of a two-sided confidence, by bisection of the error function."""
    low, high = 0.0, 10.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if math.erf(middle / math.sqrt(2)) < confidence else (low, middle)
        )
    return low


def error_of(deviate: float, counts: list[int], points: int = 801) -> float:
    """How often a standardised sum of normal runs exceeds a deviate at any look."""
    before, density, at = 0, np.ones(1), np.zeros(1)
    for count in counts:
        edge = deviate * math.sqrt(count)
        grid = np.linspace(-edge, edge, points)
        weights = np.full(points, grid[1] - grid[0])
        weights[[0, -1]] /= 2
        spread = count - before
        kernel: NDArray[np.float64] = np.exp(-((grid[:, None] - at) ** 2) / (2 * spread))
        density = weights * (kernel @ density) / math.sqrt(2 * math.pi * spread)
        before, at = count, grid
    return float(1 - density.sum())


def test_intervals_of_few_runs_contain_the_median_as_often_as_they_say() -> None:
    """Normal and skewed runs, looked at until the interval excludes the true median."""
    draw, confidence = np.random.default_rng(5), sequential.confidence(6)
    samples = {
        0.0: draw.normal(size=(2_000, 6)),
        1.0: draw.lognormal(sigma=0.5, size=(2_000, 6)),
    }
    for true, runs in samples.items():
        missed = sum(
            any(
                not found.low <= true <= found.high  # type: ignore[operator]
                for found in (intervals.median(row[:n], confidence=confidence) for n in (3, 6))
            )
            for row in runs.tolist()
        )
        assert missed / len(runs) < 0.05
