"""Every kind of link with real packets: `make test-kernel`, where TUN and namespaces may be had.

Each run lasts seconds and has 10 Mbit/s or less; what is looked for is what tells the link from a
plain one, by a wide margin.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from machine import valid_run

from dumbbell import run as simulate
from dumbbell.experiment.model import Experiment, Flow, Link
from dumbbell.metrics import summary

if TYPE_CHECKING:
    from dumbbell.results.result import Result

DEEP = {"name": "link", "rate": "10 Mbit/s", "delay": "10 ms", "queue": "300 ms"}
"""A link on which a loss-based flow alone waits for long."""

SLOW = {"name": "one", "cc": "reno", "app_rate": "1 Mbit/s"}
"""A flow that fills nothing: what its packets meet is the link's doing."""

MANAGEMENTS = ("red", "cake", "codel", "fq_codel", "fq_pie", "pie", "dualpi2")


def run(links: list[dict[str, Any]], *flows: dict[str, Any], seconds: float = 4) -> Result:
    """Runs flows over links with real packets."""
    experiment = Experiment(
        links=[Link(**link) for link in links],
        flows=[Flow(**flow) for flow in flows or ({"name": "one", "cc": "cubic"},)],
        duration=f"{seconds} s",
        sample="100 ms",
        internals=False,
    )
    return valid_run(experiment)


@cache
def plain() -> Result:
    """One flow of CUBIC over the deep droptail queue."""
    return run([DEEP])


def of(result: Result, flow: str = "one") -> dict[str, Any]:
    """What a flow achieved."""
    return summary(result).filter(pl.col("flow").cast(pl.String) == flow).row(0, named=True)


def counted(result: Result, what: str, link: str = "link") -> int:
    """A counter of a link at the end."""
    return int(_of_link(result, link)[what].max())


def mbits(result: Result, begin: float, end: float, link: str = "link") -> float:
    """What a link sent between two times, Mbit/s."""
    sent = _of_link(result, link).filter(pl.col("t").is_between(begin - 1e-6, end + 1e-6))
    return float(sent["sent_bytes"].max() - sent["sent_bytes"].min()) * 8e-6 / (end - begin)


def _of_link(result: Result, link: str) -> pl.DataFrame:
    return result.links.filter(pl.col("link").cast(pl.String) == link)


@pytest.mark.parametrize("aqm", MANAGEMENTS)
def test_managed_queues_are_short_where_droptail_is_long(aqm: str) -> None:
    long, short = of(plain())["queue_delay_p50"], of(run([DEEP | {"aqm": aqm}]))
    assert long > 0.080
    assert short["queue_delay_p50"] < long / 3
    assert short["throughput"] > 5e6
    assert short["retransmitted"] > 0


@pytest.mark.parametrize("aqm", MANAGEMENTS)
def test_managed_queues_mark_what_uses_ecn_and_drop_next_to_nothing(aqm: str) -> None:
    flow = {"name": "one", "cc": "cubic", "stack_options": {"ecn": "classic"}}
    result = run([DEEP | {"aqm": aqm}], flow)
    assert counted(result, "marked") > 0
    assert counted(result, "dropped") < counted(result, "marked")
    assert of(result)["queue_delay_p50"] < of(plain())["queue_delay_p50"] / 3


def test_fq_codel_lets_a_thin_flow_pass_the_queue_of_a_thick_one() -> None:
    flows = ({"name": "thick", "cc": "cubic"}, SLOW)
    shared, fair = run([DEEP], *flows), run([DEEP | {"aqm": "fq_codel"}], *flows)
    assert of(shared)["queue_delay_p50"] > 0.050
    # One packet of the other flow may be on the wire: 1.2 ms.
    assert of(fair)["queue_delay_p95"] < 0.005
    assert of(fair, "thick")["queue_delay_p50"] > of(fair)["queue_delay_p50"]


def test_gilbert_elliott_loses_as_often_as_it_is_bad_and_in_bursts() -> None:
    link = DEEP | {"loss": "gilbert-elliott(p=0.01, r=0.25)"}
    result = run([link], {"name": "one", "cc": "bbr"}, seconds=6)
    sent = of(result)["sent"]
    # p / (p + r) = 3.8 %; some 150 losses in 40 bursts.
    assert 0.01 < counted(result, "lost") / sent < 0.09
    assert counted(result, "dropped") == 0


def test_periodic_losses_are_as_many_as_the_period_says() -> None:
    result = run([DEEP | {"loss": "periodic(every=100)"}], {"name": "one", "cc": "bbr"})
    through = counted(result, "sent_bytes") / 1500
    assert counted(result, "lost") == pytest.approx(through / 99, rel=0.1)


def test_a_trace_sends_when_it_says_and_not_between() -> None:
    # 12 Mbit/s for half a second, nothing for the other half.
    trace = [*range(1, 501), 1000]
    link = {"name": "link", "trace": trace, "delay": "10 ms", "queue": "100 packets"}
    result = run([link])
    assert mbits(result, 2.1, 2.4) > 9
    assert mbits(result, 2.6, 2.9) == 0
    assert mbits(result, 3.1, 3.4) > 9


def test_rates_change_when_they_are_to_and_an_outage_is_one() -> None:
    link = {key: DEEP[key] for key in ("name", "delay")} | {
        "queue": "50 packets",
        "rates": [
            ["0 s", "10 Mbit/s"],
            ["2 s", "2 Mbit/s"],
            ["3 s", "0 bit/s"],
            ["4 s", "5 Mbit/s"],
        ],
    }
    result = run([link], seconds=6)
    assert mbits(result, 1, 1.9) == pytest.approx(10, rel=0.1)
    assert mbits(result, 2.1, 2.9) == pytest.approx(2, rel=0.1)
    assert mbits(result, 3.1, 3.9) == 0
    assert mbits(result, 5, 6) == pytest.approx(5, rel=0.2)


def test_jitter_delays_evenly_and_reordering_only_a_few() -> None:
    plain, jitter, late = (
        of(run([DEEP | more], SLOW, seconds=3))
        for more in ({}, {"jitter": "20 ms"}, {"reorder": "5 % by 15 ms"})
    )
    assert plain["queue_delay_p99"] < 0.005
    assert jitter["queue_delay_p50"] > 0.007
    assert jitter["queue_delay_p99"] < 0.025
    assert late["queue_delay_p50"] < 0.003
    assert 0.012 < late["queue_delay_p99"] < 0.020


def test_a_longer_route_is_a_longer_round_trip() -> None:
    result = run([DEEP | {"reroutes": [["2 s", "40 ms"]]}], SLOW)
    times = result.series.group_by(pl.col("t") > 2, maintain_order=True).agg(
        pl.col("srtt").filter(pl.col("srtt") > 0).last()
    )
    before, after = times["srtt"]
    assert after - before == pytest.approx(0.030, abs=0.005)


def test_a_flow_over_two_bottlenecks_has_less_than_those_over_one() -> None:
    links = [
        {"name": name, "rate": rate, "delay": "5 ms", "queue": "1 BDP"}
        for name, rate in (("near", "8 Mbit/s"), ("far", "4 Mbit/s"))
    ]
    flows = [
        {"name": "both", "cc": "reno", "path": ["near", "far"]},
        {"name": "one", "cc": "reno", "path": ["near"]},
        {"name": "two", "cc": "reno", "path": ["far"]},
    ]
    result = run(links, *flows, seconds=6)
    for name, rate in (("near", 8), ("far", 4)):
        assert mbits(result, 1, 6, name) > 0.8 * rate
        assert counted(result, "dropped", name) > 0
    assert of(result, "both")["throughput"] < of(result)["throughput"]


def test_a_token_bucket_lets_a_burst_out_at_once() -> None:
    link = {"name": "link", "rate": "1 Mbit/s", "delay": "10 ms", "queue": "50 packets"}
    short = {"name": "one", "cc": "reno", "bytes": "12 kB"}
    line, bucket = (
        of(run([link | more], short, seconds=1))["completed"] for more in ({}, {"burst": "15 kB"})
    )
    # Nine packets take 12 ms each on a line.
    assert line > 0.120
    assert bucket < 0.080


def test_an_application_that_pauses_sends_nothing_then() -> None:
    steps = [["0 s", "2 Mbit/s"], ["1 s", "0 bit/s"], ["2 s", "5 Mbit/s"]]
    result = run([DEEP], {"name": "one", "cc": "cubic", "app_rates": steps}, seconds=3)
    # On the wire it is 52 bytes of headers more for 1448.
    assert mbits(result, 0.3, 0.9) == pytest.approx(2 * 1500 / 1448, rel=0.1)
    assert mbits(result, 1.1, 1.9) == 0
    assert mbits(result, 2.2, 3) == pytest.approx(5 * 1500 / 1448, rel=0.1)


@pytest.mark.parametrize(
    "template", ["wifi(rate=20 Mbit/s, every=2 s, period=1 s)", "leo(rate=10 Mbit/s, slot=3 s)"]
)
def test_a_template_is_the_same_path_for_real_packets(template: str) -> None:
    link = {"name": "link", "template": template}
    flow = {"name": "one", "cc": "cubic"}
    real = run([link], flow, seconds=8)
    simulated = simulate(
        Experiment(links=[Link(**link)], flows=[Flow(**flow)], duration="8 s")  # type: ignore[arg-type]
    )
    assert of(real)["throughput"] == pytest.approx(of(simulated)["throughput"], rel=0.15)
    assert of(real)["queue_delay_p50"] == pytest.approx(of(simulated)["queue_delay_p50"], rel=0.3)
