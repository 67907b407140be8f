"""The measured Linux flows, and the simulator beside them."""

from __future__ import annotations

import linux_flows
import polars as pl
import pytest
from linux_flows import measured_pair

from dumbbell.metrics import throughput
from dumbbell.metrics.convergence_times import convergence

# What was noted when the flows were measured: throughputs of both flows over the last 30 s of each
# run, Mbit/s.
LAST_30_S = {
    "reno": [(44, 51), (42, 50), (30, 62)],
    "cubic": [(71, 26), (58, 38), (48, 49)],
    "bbr": [(45, 48), (46, 48), (45, 49)],
}

# Likewise: convergence times, s; None if not within the 90 s observed.
CONVERGENCE: dict[str, dict[str, tuple[float | None, ...]]] = {
    "crossing": {"reno": (56.1, None, None), "cubic": (None, None, 67.1), "bbr": (4.1, 3.5, 9.3)},
    "fair": {"reno": (20.0, 22.0, 23.0), "cubic": (None, 44.0, 25.0), "bbr": (10.0, 1.0, 2.0)},
}


@pytest.mark.parametrize("cc", linux_flows.ALGORITHMS)
def test_measured_pairs_have_the_throughputs_that_were_noted_then(cc: str) -> None:
    rates = throughput(measured_pair(cc), since=89.9)
    for run, noted in enumerate(LAST_30_S[cc], 1):
        found = rates.filter(pl.col("seed") == run)["throughput"].to_list()
        assert [rate / 1e6 for rate in found] == pytest.approx(noted, abs=1.0)


@pytest.mark.parametrize("name", CONVERGENCE)
@pytest.mark.parametrize("cc", linux_flows.ALGORITHMS)
def test_measured_pairs_have_the_convergence_times_that_were_noted_then(cc: str, name: str) -> None:
    times = convergence(measured_pair(cc))[name].to_list()
    for time, noted in zip(times, CONVERGENCE[name][cc], strict=True):
        assert time == (None if noted is None else pytest.approx(noted, abs=0.05))


def test_a_flow_that_was_not_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="no flow of cubic was measured in scenario single-7"):
        linux_flows.measured_single("cubic", 7.0)


@pytest.fixture(scope="module")
def beside() -> pl.DataFrame:
    return linux_flows.compare(linux_flows.simulate(seeds=4))


@pytest.mark.parametrize("quantity", linux_flows.TOLERANCES)
@pytest.mark.parametrize("cc", linux_flows.ALGORITHMS)
def test_a_simulated_flow_alone_does_what_linux_does(
    beside: pl.DataFrame, cc: str, quantity: str
) -> None:
    rows = beside.filter(
        pl.col("cc") == cc, pl.col("quantity") == quantity, pl.col("scenario") != "pair"
    )
    assert rows.height == 3
    assert rows["verdict"].to_list() == ["within"] * 3, rows


@pytest.mark.parametrize("cc", linux_flows.ALGORITHMS)
def test_simulated_pairs_have_the_round_trip_times_of_linux(beside: pl.DataFrame, cc: str) -> None:
    rows = beside.filter(
        pl.col("cc") == cc, pl.col("quantity") == "rtt", pl.col("scenario") == "pair"
    )
    assert rows["verdict"].to_list() == ["within"] * 2, rows
