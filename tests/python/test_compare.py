"""`dumbbell.compare`: algorithms on one link, from Python."""

from __future__ import annotations

import polars as pl
import pytest

import dumbbell
from dumbbell import ExperimentError, metrics


@pytest.fixture(scope="module")
def comparison() -> dumbbell.Comparison:
    return dumbbell.compare(
        ["cubic", "bbr3"], against="reno", rate="20 Mbit/s", duration="5 s", seeds=3
    )


def test_a_comparison_has_a_row_for_every_algorithm_and_seed(
    comparison: dumbbell.Comparison,
) -> None:
    runs = comparison.runs
    assert runs.select("algorithm", "seed").rows() == [
        (name, seed) for name in ("cubic", "bbr3") for seed in (1, 2, 3)
    ]
    assert runs["throughput"].is_between(1e6, 20e6).all()
    assert (runs["throughput"] + runs["rival_throughput"] < 20e6).all()
    assert runs["harm"].is_between(0, 1).all()


def test_its_summary_has_means_and_their_intervals(comparison: dumbbell.Comparison) -> None:
    summary = comparison.summary(ci=True)
    values = comparison.runs.filter(algorithm="cubic")["throughput"].to_list()
    expected = metrics.mean(values)
    cubic = summary.row(0, named=True)
    assert cubic["algorithm"] == "cubic"
    assert (cubic["throughput"], cubic["throughput_low"]) == (expected.value, expected.low)
    assert repr(comparison.summary()) == repr(comparison)


def test_its_flows_are_those_of_its_results(comparison: dumbbell.Comparison) -> None:
    flows = comparison.flows.filter(pl.col("algorithm") == "bbr3")
    expected = metrics.summary(comparison.results["bbr3"])
    assert flows["throughput"].to_list() == expected["throughput"].to_list()


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"rtt": "40"}, "rtt"),
        ({"rate": "fast"}, "rate"),
        ({"flows": 0}, "flows"),
        ({"against": "renu"}, "against"),
        ({"cc": "cubik"}, "cc"),
    ],
)
def test_an_argument_that_is_wrong_is_named(arguments: dict[str, object], key: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        dumbbell.compare(**arguments)  # type: ignore[arg-type]
    assert caught.value.key == key
