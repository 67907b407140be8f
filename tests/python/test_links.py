"""Links that have more than a rate, a delay and a droptail queue, as users write them."""

import json
import math
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, metrics
from dumbbell.experiment import capacity


def experiment(**link: Any) -> Experiment:
    return Experiment(
        duration="5 s",
        links=[Link(name="it", delay="20 ms", **link)],
        flows=[Flow(cc="cubic"), Flow(cc="cubic", start="100 ms")],
    )


def scenario_link(experiment: Experiment) -> dict[str, object]:
    scenario = json.loads(experiment.resolve().scenario(1))
    link = scenario["links"][0]
    assert isinstance(link, dict)
    return link


AQMS = ("cake", "codel", "dualpi2", "fq_codel", "fq_pie", "pie", "red")


def aqm(text: str) -> Any:
    """What the simulator takes for an active queue management."""
    return scenario_link(experiment(rate="10 Mbit/s", aqm=text))["aqm"]


def test_a_name_alone_stands_for_all_options_of_the_rfc() -> None:
    resolved = experiment(rate="10 Mbit/s", aqm="fq_codel").resolve().links[0]
    expected = "fq_codel(target=5 ms, interval=100 ms, ecn=on, ce_threshold=off, "
    expected += "quantum=1.5 kB, queues=1024)"
    assert resolved.aqm == expected
    assert resolved.queue == "unlimited"
    assert scenario_link(experiment(rate="10 Mbit/s", aqm="pie"))["aqm"] == {
        "pie": {
            "target_ns": 15_000_000,
            "update_ns": 15_000_000,
            "burst_ns": 150_000_000,
            "alpha": 0.125,
            "beta": 1.25,
            "ecn": True,
            "ecn_limit": 0.1,
        }
    }


def test_options_are_read_with_their_units_and_resolving_again_changes_nothing() -> None:
    for text in ("codel(target=1.5 ms,ecn=off)", "red(min=30 kB, max=0.09 MB, weight=1e-3)"):
        once = experiment(rate="10 Mbit/s", aqm=text).resolve()
        assert once.resolve() == once
    assert aqm("codel( target = 1.5 ms , ecn=off )") == {
        "codel": {
            "target_ns": 1_500_000,
            "interval_ns": 100_000_000,
            "ecn": False,
            "ce_threshold_ns": None,
        }
    }
    shallow = aqm("fq_codel(ce_threshold=1 ms)")["fq_codel"]
    assert shallow["ce_threshold_ns"] == 1_000_000
    red = aqm("red(min=30 kB, max=90 kB)")["red"]
    assert (red["unit"], red["min"], red["max"]) == ("bytes", 30_000, 90_000)


def test_losses_jitter_and_reordering_come_out_as_plain_numbers() -> None:
    link = scenario_link(
        experiment(
            rate="10 Mbit/s",
            loss="gilbert-elliott(p=1e-4, r=0.3)",
            jitter="5 ms",
            reorder="1 % by 10 ms",
        )
    )
    channel = {"p": 1e-4, "r": 0.3, "bad": 1.0, "good": 0.0}
    assert link["loss_model"] == {"gilbert_elliott": channel}
    periodic = scenario_link(experiment(rate="10 Mbit/s", loss="periodic(every=100)"))
    assert periodic["loss_model"] == {"periodic": 100}
    assert link["loss"] == 0
    assert link["jitter_ns"] == 5_000_000
    assert link["reorder"] == {"share": 0.01, "delay_ns": 10_000_000}


def test_the_bdp_is_of_a_time_lines_greatest_rate_and_of_a_traces_mean() -> None:
    line = [["0 s", "10 Mbit/s"], ["1 s", "20 Mbit/s"], ["2 s", "0 bit/s"], ["3 s", "1 Mbit/s"]]
    resolved = experiment(rates=line).resolve().links[0]
    assert resolved.queue == "100 kB", "20 Mbit/s over 40 ms"
    # Two opportunities of 1500 bytes in 3 ms are 8 Mbit/s: 40 kB in 40 ms.
    assert experiment(trace=[1, 3]).resolve().links[0].queue == "40 kB"


def test_a_trace_is_looked_for_beside_the_experiment_and_resolves_to_its_times(
    tmp_path: Path,
) -> None:
    (tmp_path / "lte.trace").write_text("1\n1\n2\n5\n")
    written = experiment(trace="lte.trace").to_toml()
    (tmp_path / "experiment.toml").write_text(written)
    loaded = Experiment.load(tmp_path / "experiment.toml")
    resolved = loaded.resolve()
    assert resolved.links[0].trace == [1, 1, 2, 5]
    assert Experiment.parse(resolved.to_toml(defaults=True)) == resolved
    assert scenario_link(loaded)["trace_ms"] == [1, 1, 2, 5]


def test_a_trace_that_is_not_one_is_answered_with_its_line(tmp_path: Path) -> None:
    trace = tmp_path / "bad.trace"
    trace.write_text("1\n2.5\n")
    with pytest.raises(ExperimentError, match=r'holds "2.5" in line 2; each line of a trace is'):
        experiment(trace=str(trace)).resolve()


def test_a_trace_may_begin_with_the_mark_that_windows_editors_write(tmp_path: Path) -> None:
    trace = tmp_path / "marked.trace"
    trace.write_text("1\n2\n", encoding="utf-8-sig")
    assert experiment(trace=str(trace)).resolve().links[0].trace == [1, 2]


def test_the_bucket_of_a_policer_holds_a_full_packet() -> None:
    with pytest.raises(ExperimentError, match=r"burst: .* not even a packet of 1500 bytes fits"):
        experiment(rate="10 Mbit/s", queue="none", burst="1499 B").resolve()
    experiment(rate="10 Mbit/s", queue="none", burst="1500 B").resolve()


@pytest.mark.parametrize("path", ["/dev/zero", "."])
def test_a_trace_that_is_no_regular_file_is_refused_unread(path: str) -> None:
    with pytest.raises(ExperimentError, match=r'".*" is not a regular file'):
        experiment(trace=path).resolve()


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ({"aqm": "codel"}, r'link.it.aqm: "codel" has no queue to manage, as the link has no'),
        ({"rate": "1 Mbit/s", "trace": [1]}, r"link.it.trace: is given beside rate; a link has"),
        ({"rates": [["0 s", "1 Mbit/s"]], "burst": "15 kB"}, r"link.it.burst: .* has none"),
    ],
)
def test_what_does_not_fit_together_is_refused(link: dict[str, object], problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        experiment(**link).resolve()


def test_every_management_runs_and_keeps_the_queue_short() -> None:
    queue = {}
    for name in (None, *AQMS):
        result = dumbbell.run(experiment(rate="20 Mbit/s", queue="4 BDP", aqm=name))
        queue[name] = max(result.flows["queue_delay_mean"].to_list())
    assert all(queue[name] < queue[None] / 2 for name in AQMS), queue


def test_ecn_flows_are_marked_over_a_trace_with_everything_else_on() -> None:
    lossy = experiment(
        trace=[1, 2, 2, 3],
        aqm="pie",
        loss="gilbert-elliott(p=1e-4, r=0.3, bad=0.5)",
        jitter="1 ms",
        reorder="0.1 % by 3 ms",
    ).replace(stack_options={"ecn": "classic"})
    once, again = dumbbell.run(lossy), dumbbell.run(lossy)
    assert max(once.links["marked"].to_list()) > 0
    assert once.flows.equals(again.flows)


def test_what_a_rate_that_varies_could_carry_is_its_integral() -> None:
    line = capacity.parse_rates([["0 s", "10 Mbit/s"], ["5 s", "0 bit/s"], ["6 s", "2 Mbit/s"]])
    assert capacity.line_capacity(line, 0, 10) == 50e6 + 8e6
    assert capacity.line_capacity(line, 4.5, 6.5) == 5e6 + 1e6
    assert capacity.line_capacity(line, 5, 6) == 0


def test_what_a_trace_could_carry_is_its_opportunities_over_and_over() -> None:
    trace = [1, 1, 2, 4]  # 4 packets in 4 ms: 12 Mbit/s
    assert capacity.trace_capacity(trace, 0, 1) == 12e6
    assert capacity.trace_capacity(trace, 0, 0.001) == 2 * 12_000
    assert capacity.trace_capacity(trace, 0.002, 0.005) == 3 * 12_000


@pytest.mark.parametrize(
    "rate",
    [
        {"rates": [["0 s", "10 Mbit/s"], ["1 s", "2 Mbit/s"], ["2 s", "20 Mbit/s"]]},
        {"trace": [1, 2, 2, 3]},
    ],
)
def test_a_flow_uses_most_of_a_link_whose_rate_varies(rate: dict[str, object]) -> None:
    result = dumbbell.run(experiment(**rate))
    share = metrics.utilisation(result, since=1)["utilisation"].item()
    assert 0.8 < share <= 1.001


def test_a_token_bucket_s_first_depth_is_part_of_what_a_link_could_send() -> None:
    result = dumbbell.run(experiment(rate="10 Mbit/s", burst="1 MB"))
    assert result.capacity("it", 0, 5) == 8e6 + 50e6
    assert result.capacity("it", 1, 5) == 40e6
    assert 0.95 < metrics.utilisation(result)["utilisation"].item() <= 1


def test_a_reroute_moves_the_round_trip_time_but_not_what_is_under_way() -> None:
    rerouted = experiment(rate="20 Mbit/s", reroutes=[["4 s", "60 ms"], ["8 s", "10 ms"]])
    idle = [Flow(cc="cubic", app_rate="1 Mbit/s")]
    series = dumbbell.run(rerouted.replace(duration="12 s", flows=idle)).series
    spans = {"first": (0, 4), "longer": (5, 8), "shorter": (9, 12)}
    least = {
        name: series.filter(pl.col("t").is_between(*span))["rtt"].min()
        for name, span in spans.items()
    }
    assert least == pytest.approx({"first": 0.040, "longer": 0.080, "shorter": 0.030}, rel=0.1)


def test_an_application_pauses_and_goes_on_when_it_is_told_to() -> None:
    pausing = [["0 s", "4 Mbit/s"], ["1 s", "0 bit/s"], ["3 s", "4 Mbit/s"]]
    flows = [
        Flow(cc="cubic", app_rates=pausing),
        Flow(cc="udt", transport="udt", app_rates=pausing),
    ]
    series = dumbbell.run(experiment(rate="20 Mbit/s").replace(flows=flows)).series
    for _, flow in series.group_by("flow"):
        paused, before, after = (
            flow.filter(pl.col("t") <= t)["delivered"].to_list()[-1] for t in (1.5, 3.0, 4.5)
        )
        assert paused == before == pytest.approx(500_000, rel=0.02)
        assert after > 1_000_000


def test_an_application_has_one_rate_or_several() -> None:
    flow = Flow(cc="cubic", app_rate="1 Mbit/s", app_rates=[["0 s", "1 Mbit/s"]])
    with pytest.raises(ExperimentError, match=r"flow.flow-1.app_rates: is given beside app_rate"):
        experiment().replace(flows=[flow]).resolve()


def test_a_number_is_the_nearest_double_and_none_beside_it() -> None:
    draw = random.Random(1)
    for loss in (math.nextafter(1, 0), *(draw.random() for _ in range(500))):
        assert Link(name="l", loss=loss).loss == loss
