"""The measured Linux flows, and the simulator beside them."""

from __future__ import annotations

import polars as pl
import pytest
from linux_page import simulate

from dumbbell.metrics import throughput
from dumbbell.metrics.convergence_times import convergence
from dumbbell.papers import Paper, Runs, folder_of
from dumbbell.papers.staggered_start import linux_flows

# What was noted when the flows were measured: throughputs of both flows over the last 30 s of each
# run, Mbit/s.
LAST_30_S = {
    "reno": [(44, 51), (42, 50), (30, 62)],
    "cubic": [(71, 26), (58, 38), (48, 49)],
    "bbr": [(45, 48), (46, 48), (45, 49)],
}


@pytest.mark.parametrize("cc", linux_flows.MEASURED)
def test_measured_pairs_have_the_throughputs_that_were_noted_then(cc: str) -> None:
    rates = throughput(linux_flows.pair(cc), since=89.9)
    for run, noted in enumerate(LAST_30_S[cc], 1):
        found = rates.filter(pl.col("seed") == run)["throughput"].to_list()
        assert [rate / 1e6 for rate in found] == pytest.approx(noted, abs=1.0)


def test_measured_reno_windows_cross_as_late_as_was_noted_then() -> None:
    times = convergence(linux_flows.pair("reno"))["crossing"].to_list()
    assert times[0] == pytest.approx(56, abs=0.5)
    assert times[2] is None


def test_measured_cubic_windows_cross_in_one_run_of_three() -> None:
    times = convergence(linux_flows.pair("cubic"))["crossing"].to_list()
    assert times[:2] == [None, None]
    assert times[2] == pytest.approx(67, abs=0.5)


def test_a_flow_that_was_not_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="no flow of cubic was measured in scenario single-7"):
        linux_flows.single("cubic", 7.0)


@pytest.fixture(scope="module")
def beside() -> pl.DataFrame:
    paper = Paper.load(folder_of("staggered-start"))
    return linux_flows.compare(Runs(simulate(paper, seeds=4)))


@pytest.mark.parametrize("quantity", linux_flows.TARGETS)
@pytest.mark.parametrize("cc", linux_flows.MEASURED)
def test_a_simulated_flow_alone_does_what_linux_does(
    beside: pl.DataFrame, cc: str, quantity: str
) -> None:
    rows = beside.filter(
        pl.col("cc") == cc, pl.col("quantity") == quantity, pl.col("scenario") != "pair"
    )
    assert rows.height == 3
    assert rows["verdict"].to_list() == ["within"] * 3, rows


@pytest.mark.parametrize("cc", linux_flows.MEASURED)
def test_simulated_pairs_have_the_round_trip_times_of_linux(beside: pl.DataFrame, cc: str) -> None:
    rows = beside.filter(
        pl.col("cc") == cc, pl.col("quantity") == "rtt", pl.col("scenario") == "pair"
    )
    assert rows["verdict"].to_list() == ["within"] * 2, rows
