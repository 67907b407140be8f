"""Templates of links in runs, beside what was measured on such paths."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command import dumbbell as command

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, Result, metrics

if TYPE_CHECKING:
    from pathlib import Path


def run(
    template: str, *, seconds: int, sample: str = "100 ms", flow: Flow | None = None, **link: Any
) -> Result:
    bottleneck = Link(name="bottleneck", template=template, **link)
    flows = [flow or Flow(cc="cubic")]
    return dumbbell.run(
        Experiment(links=[bottleneck], flows=flows, duration=f"{seconds} s", sample=sample)
    )


def test_round_trips_over_leo_change_every_15_s_and_nothing_arrives_for_a_while() -> None:
    # Huston (APNIC 2024): the minimum of the round-trip time changes every 15 s. LeoReplayer's
    # trace of Starlink: at each change nothing arrives for 59 to 135 ms, 86 ms on average.
    light = Flow(cc="cubic", app_rate="2 Mbit/s")
    series = run("leo(loss=0)", seconds=150, sample="2 ms", flow=light).series
    rtt = series.filter(pl.col("rtt").is_not_null())
    base = []
    for slot in range(10):
        within = rtt.filter(pl.col("t").is_between(15 * slot + 2, 15 * slot + 14.9))["rtt"]
        low, high = within.quantile(0.01), within.quantile(0.99)
        assert low is not None
        assert high is not None
        assert high - low < 0.006, "steady within a slot"
        base.append(low)
    steps = [abs(later - earlier) for earlier, later in pairwise(base)]
    assert max(steps) > 0.003
    assert all(0.039 < one < 0.05 for one in base)
    grown = series.filter(pl.col("received").diff() > 0)["t"].to_list()
    gaps = {at: later - at for at, later in pairwise(grown) if later - at > 0.04}
    assert len(gaps) == 9
    assert all((at + 0.05) % 15 < 0.1 for at in gaps)
    assert min(gaps.values()) > 0.04
    assert mean(gaps.values()) == pytest.approx(0.086, abs=0.02)


def test_packets_over_wifi_arrive_in_the_bunches_of_picoquics_trace() -> None:
    # Issue 1697: 19 bunches within 3.15 s.
    light = Flow(cc="cubic", app_rate="2 Mbit/s")
    result = run("wifi(every=1 s, period=100 s)", seconds=30, sample="2 ms", flow=light)
    grown = result.series.with_columns(pl.col("received").diff().alias("grown"))
    times = grown.filter(pl.col("grown") > 0, pl.col("t") > 2)["t"].to_list()
    bunches = [later for earlier, later in pairwise(times) if later - earlier > 0.08]
    apart = (bunches[-1] - bunches[0]) / (len(bunches) - 1)
    assert 3.15 / apart == pytest.approx(19, abs=1)


@pytest.mark.parametrize("frames", [4, 18, 32])
def test_wifi_alone_carries_the_base_rate_of_its_frames(frames: int) -> None:
    # R = n l / (T_data + T_oh) of Høiland-Jørgensen et al. (2017) at 144.4 Mbit/s, in us; a packet
    # of 1228 bytes is a frame of 1272.
    data, overhead = 32 + 8 * frames * 1272 / 144.4, 34 + 16 + 16 + 8 * 58 / 144.4 + 67.5
    rate = 8 * frames * 1228 / (data + overhead)
    flood = Flow(cc="none", transport="udp", app_rate="200 Mbit/s")
    result = run(f"wifi(stations=0, every=off, frames={frames})", seconds=10, flow=flood)
    carried = metrics.utilisation(result)["utilisation"].item() * 144.4
    assert carried == pytest.approx(rate, rel=0.005)


@pytest.mark.parametrize("cc", ["cubic", "bbr", "bbr3"])
def test_a_policer_lets_pass_its_rate_and_its_bucket(cc: str) -> None:
    result = run("policer(rate=2 Mbit/s, burst=100 kB)", seconds=30, flow=Flow(cc=cc))
    sent = result.links.filter(pl.col("t") == 30)["sent_bytes"].item()
    assert sent <= 2e6 / 8 * 30 + 100_000
    assert sent > 0.9 * (2e6 / 8 * 30 + 100_000)


def test_a_policer_costs_about_six_times_the_losses_of_a_queue() -> None:
    # Flach et al. (2016): 6 times the loss rate of connections that are not policed, an average
    # over rates, buckets and paths. One path is within a factor of 2.
    policed = metrics.summary(run("policer", seconds=60))["retransmission_share"].item()
    queued = run("cable(rate=1.5 Mbit/s, rtt=40 ms)", seconds=60, queue="1 BDP")
    shaped = metrics.summary(queued)["retransmission_share"].item()
    assert 3 < policed / shaped < 12


def test_a_bloated_cable_modem_adds_its_buffer_to_the_round_trip() -> None:
    result = run("cable(rate=20 Mbit/s)", seconds=20)
    late = result.series.filter(pl.col("t") > 10)["rtt"]
    assert late.max() == pytest.approx(0.020 + 0.200, rel=0.02)


def test_lte_fills_a_queue_for_seconds_with_cubic_and_not_with_vegas() -> None:
    # Winstein et al. (2013), figure 7: CUBIC's delay on cellular links is of seconds.
    delay = metrics.summary(run("lte", seconds=60))["queue_delay_p95"].item()
    assert 1 < delay < 100
    assert (
        metrics.summary(run("lte", seconds=60, flow=Flow(cc="vegas")))["queue_delay_p95"].item() < 1
    )


def test_the_seed_of_a_template_alone_decides_the_path() -> None:
    paths = [
        Experiment(
            links=[Link(name="a", template=template)], flows=[Flow(cc=cc)], duration="60 s", seeds=2
        ).resolve()
        for template, cc in [("leo", "cubic"), ("leo", "bbr"), ("leo(seed=2)", "bbr")]
    ]
    rates = [path.links[0].rates for path in paths]
    assert rates[0] == rates[1] != rates[2]


def test_templates_are_values_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "paths.toml").write_text(
        'duration = "5 s"\n[[link]]\nname = "a"\n[[flow]]\ncc = "cubic"\n'
        '[sweep]\n"link.a.template" = ["cable", "policer", "5g"]\n'
    )
    command("sweep", "paths.toml", "--out", "out", cwd=tmp_path)
    found = command(
        "query",
        "select template, avg(throughput) as r from flows group by all",
        "out",
        "--json",
        cwd=tmp_path,
    )
    rates = {row["template"]: row["r"] for row in json.loads(found.stdout)["rows"]}
    assert rates["policer"] < 2e6
    assert 5e7 < rates["cable"] < rates["5g"]


def test_compare_takes_a_template(tmp_path: Path) -> None:
    arguments = ["compare", "--template", "policer", "--cc", "cubic", "--flows", "1", "--json"]
    printed = json.loads(command(*arguments, "--duration", "10 s", cwd=tmp_path).stdout)
    assert printed["meta"]["question"]["template"] == "policer"
    assert printed["algorithms"][0]["throughput"] < 1.6e6


@pytest.mark.parametrize("key", ["rate", "rtt"])
def test_compare_refuses_rate_and_rtt_beside_a_template(key: str) -> None:
    value = {"rate": "1 Mbit/s", "rtt": "10 ms"}[key]
    with pytest.raises(ExperimentError, match=rf'option of the template, "leo\({key}={value}\)"'):
        dumbbell.compare("cubic", template="leo", **{key: value})  # type: ignore[arg-type]
