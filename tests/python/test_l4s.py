"""L4S: DualPI2 and Prague beside measurements of Linux by others, and over rates and RTTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from command import dumbbell as command

import dumbbell
from dumbbell import Experiment, Flow, Link, Result
from dumbbell.results.summary import summary_tables

if TYPE_CHECKING:
    from pathlib import Path

AS_OF_2020 = "prague(rtt_target=1 ms)"
"""Prague before its RTT independence: it acts on its own round-trip time."""

MEASURED = [
    ("prague", 10, 34.3, "cubic", 10, 12.85),
    ("prague", 20, 32.1, "cubic", 20, 15.2),
    ("prague", 80, 29.75, "cubic", 80, 17.7),
    ("prague", 20, 28.4, "cubic", 10, 18.84),
    ("prague", 10, 37.86, "cubic", 20, 9.21),
    ("prague", 80, 22.43, "cubic", 20, 24.89),
    ("prague", 20, 40.69, "cubic", 80, 6.43),
    ("prague", 160, 10.13, "cubic", 10, 37.28),
    ("prague", 10, 41.67, "cubic", 160, 4.87),
    ("prague", 10, 30.77, "prague", 20, 15.84),
    ("cubic", 10, 26.76, "cubic", 20, 20.61),
    ("cubic", 20, 32.73, "cubic", 80, 14.75),
    ("cubic", 10, 36.5, "cubic", 160, 10.74),
]
"""Algorithm, RTT in ms and Mbit/s of two flows on 50 Mbit/s with Linux's dualpi2.

Heist and Morton, "L4S Tests", 2020 (github.com/heistp/l4s-tests), Scenario 1 Fairness Table: the
last minute of three; where a pair was measured twice, the mean.
"""


def run(rate: float, flows: list[Flow], aqm: str = "dualpi2", seconds: int = 180) -> Result:
    link = Link(name="bottleneck", rate=f"{rate} Mbit/s", delay="1 ms", aqm=aqm)
    return dumbbell.run(
        Experiment(
            links=[link], flows=flows, duration=f"{seconds} s", seeds=2, start_jitter="100 ms"
        )
    )


def received(result: Result, since: float) -> list[float]:
    """Bytes that each flow's receiver got from a time on, in the order of the flows."""
    late = result.series.filter(pl.col("t") >= since).group_by("seed", "flow")
    grown = late.agg(pl.col("received").last() - pl.col("received").first())
    return grown.group_by("flow").agg(pl.col("received").sum()).sort("flow")["received"].to_list()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "rtt", "rate", "second", "other_rtt", "other_rate"),
    MEASURED,
    ids=str,
)
def test_two_flows_share_dualpi2_as_they_did_on_linux(
    first: str, rtt: int, rate: float, second: str, other_rtt: int, other_rate: float
) -> None:
    flows = [
        Flow(cc=AS_OF_2020 if cc == "prague" else cc, rtt=f"{ms} ms")
        for cc, ms in ((first, rtt), (second, other_rtt))
    ]
    one, two = received(run(50, flows), since=118)
    assert one / (one + two) == pytest.approx(rate / (rate + other_rate), abs=0.07)


@pytest.mark.parametrize("rtt", [5, 20, 100])
@pytest.mark.parametrize("rate", [4, 40, 200])
def test_prague_and_cubic_share_within_a_factor_and_l4s_waits_little(rate: int, rtt: int) -> None:
    flows = [Flow(cc=cc, rtt=f"{rtt} ms") for cc in ("prague", "cubic")]
    result = run(rate, flows, "dualpi2(min_qlen_step=1)", seconds=90)
    prague, cubic = received(result, since=45)
    assert 0.5 < prague / cubic < 2.3
    assert prague + cubic > 0.92 * 2 * 45 * rate * 1e6 / 8
    waits = result.flows.filter(cc="prague")["queue_delay_p99"].to_list()
    packet = 1500 * 8 / (rate * 1e6)
    assert max(waits) < max(0.001, 3.2 * packet)


def test_prague_sends_ect_1_unless_its_flow_says_otherwise() -> None:
    def delay(**keys: object) -> float:
        flows = [Flow(cc="prague", **keys), Flow(cc="cubic")]  # type: ignore[arg-type]
        experiment = Experiment(
            links=[Link(name="it", rate="20 Mbit/s", delay="10 ms", aqm="dualpi2")],
            flows=flows,
            duration="10 s",
            stack_options={"ecn": "classic"},
        )
        return float(dumbbell.run(experiment).flows["queue_delay_p50"][0])

    assert delay() < 0.002
    assert delay(stack_options={"ecn": "accurate"}) > 0.005, "ECT(0) is Classic"


def test_prague_without_a_queue_that_marks_is_warned_of() -> None:
    def warnings(**keys: object) -> list[str]:
        link = Link(name="it", rate="10 Mbit/s", delay="10 ms", aqm=keys.pop("aqm", None))  # type: ignore[arg-type]
        flow = Flow(cc="prague", **keys)  # type: ignore[arg-type]
        return dumbbell.run(Experiment(links=[link], flows=[flow], duration="1 s")).warnings

    assert warnings(aqm="dualpi2") == warnings(aqm="step") == []
    assert warnings() == [
        "no link on the path of prague has an aqm, so no packet is marked and prague reacts to "
        'losses only, as Reno does; write an aqm that marks, such as aqm = "dualpi2"'
    ]
    (said,) = warnings(aqm="dualpi2", stack_options={"ecn": "off"})
    assert said.startswith(
        "without accurate ECN prague does not learn which share of its packets is marked; write "
        'ecn = "l4s"'
    )


def test_compare_takes_dualpi2_and_l4s(tmp_path: Path) -> None:
    arguments = ("--aqm", "dualpi2", "--cc", "prague,dctcp", "--ecn", "l4s", "--duration", "5 s")
    done = command("compare", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "prague" in done.stdout
    assert "dctcp" in done.stdout


def test_marks_are_counted_by_flow_and_shown_where_there_are_any() -> None:
    flows = [Flow(name=cc, cc=cc, rtt="20 ms") for cc in ("prague", "cubic")]
    both = run(40, flows, seconds=10)
    marked = both.flows.group_by("flow").agg(pl.col("marked").sum()).sort("flow")["marked"]
    assert marked[0] > 1000
    assert marked[1] == 0, "without ECN packets are dropped instead"
    of_link = int(both.links.group_by("seed").agg(pl.col("marked").last())["marked"].sum())
    assert 0 <= of_link - int(marked.sum()) < 100, "the last are on their way"
    titles = [column.title for column in summary_tables(both)[0].columns]
    assert "Marked" in titles
    plain = run(40, flows[1:], aqm="none", seconds=2)
    assert "Marked" not in [column.title for column in summary_tables(plain)[0].columns]
