"""Flows of many transfers, and flows over UDP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dumbbell
from dumbbell import DumbbellError, Experiment, ExperimentError, Flow, Link, Result, metrics
from dumbbell.metrics.transfers import over_transfers, survival
from dumbbell.results.summary import side_by_side, summary_tables
from dumbbell.sweeps.figures import draw

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TEXT = """
duration = "20 s"
seeds = 2
link = [{ name = "bottleneck", rate = "20 Mbit/s", delay = "10 ms" }]
flow = [
  { name = "bulk", cc = "cubic" },
  { name = "web", cc = "reno", arrivals = "poisson(load=0.3)", sizes = "exponential(mean=100 kB)" },
]
"""


@pytest.fixture(scope="module")
def result() -> Result:
    return dumbbell.run(Experiment.parse(TEXT))


def test_a_load_is_resolved_to_the_time_between_transfers() -> None:
    resolved = Experiment.parse(TEXT).resolve()
    # 100 kB are 103,591 bytes with 52 of headers for each 1448: 138 ms at 6 Mbit/s.
    assert resolved.flows[1].arrivals == "poisson(every=138.121546 ms)"
    assert resolved.resolve() == resolved


def test_a_flow_has_the_counters_of_all_its_transfers(result: Result) -> None:
    of_flow = result.flows.filter(pl.col("flow") == "web")
    sums = result.transfers.group_by("seed", maintain_order=True).agg(
        pl.col("sent", "retransmitted", "timeouts").sum()
    )
    assert_frame_equal(of_flow.select(sums.columns), sums, check_dtypes=False)
    last = result.series.filter(pl.col("flow") == "web").group_by("seed").last()
    assert last.sort("seed")["received"].to_list() == of_flow["received"].to_list()


def test_transfers_that_are_complete_have_sent_all_their_bytes(result: Result) -> None:
    complete = result.transfers.filter(pl.col("completed").is_not_null())
    packets = (complete["bytes"] + 1447) // 1448
    assert ((complete["sent"] - complete["retransmitted"]) == packets).all()
    assert (complete["completed"] > complete["start"] + 0.04).all()  # two round trips


def test_transfers_depend_on_the_seed_alone(result: Result) -> None:
    other = dumbbell.run(result.experiment.override("flow.web.cc=bbr", "flow.bulk.cc=reno"))
    drawn = ["seed", "start", "bytes"]
    assert_frame_equal(other.transfers.select(drawn), result.transfers.select(drawn))
    first, second = (result.transfers.filter(seed=seed)["start"].to_list() for seed in (1, 2))
    assert first != second


def test_a_flow_of_transfers_changes_nothing_before_the_first() -> None:
    late = ', { name = "late", cc = "cubic", arrivals = ["19.9 s"], sizes = "constant(size=1 MB)" }'
    with_late = Experiment.parse(TEXT.replace(",\n]", f"{late},\n]"))
    before = pl.col("t") < 19.9
    series = [
        dumbbell.run(one).series.filter(pl.col("flow") == "bulk", before).drop("flow", "cc")
        for one in (Experiment.parse(TEXT), with_late)
    ]
    assert_frame_equal(*series)


def test_a_saved_result_has_its_transfers(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "result")
    loaded = Result.load(tmp_path / "result")
    assert_frame_equal(loaded.transfers, result.transfers)
    assert_frame_equal(metrics.transfer_summary(loaded), metrics.transfer_summary(result))
    assert loaded.of_seed(2).transfers["seed"].unique().to_list() == [2]


def test_percentiles_and_slowdown_are_those_of_the_transfers(result: Result) -> None:
    times = metrics.completion_times(result).filter(seed=1)
    row = metrics.transfer_summary(result).row(0, named=True)
    assert row["transfers"] == times.height
    assert 0.9 < row["completed_share"] < 0.99
    # More than 95 % are complete, so that this percentile is the time of one of them.
    assert row["completion_p95"] in times["took"].to_list()
    # So are more than 99 % of those that began early enough.
    assert row["completion_p99"] in times["took"].to_list()
    one = times.drop_nulls("took").row(0, named=True)
    assert one["slowdown"] == pytest.approx(one["took"] / (0.04 + 8 * one["bytes"] / 20e6))
    assert row["load_offered"] == pytest.approx(8 * sum(times["bytes"]) / 20e6 / 20)


def test_a_percentile_of_transfers_that_have_not_ended_is_infinite() -> None:
    overloaded = Experiment.parse(TEXT.replace("load=0.3", "load=1.2")).replace(seeds=1)
    row = metrics.transfer_summary(dumbbell.run(overloaded)).row(0, named=True)
    assert row["completed_share"] < 0.9
    assert row["completion_p95"] == row["completion_p99"] == math.inf


def test_percentiles_of_complete_transfers_are_interpolated() -> None:
    took = pl.DataFrame({"took": [0.1, 0.4, 0.2, 0.3], "slowdown": 1.0, "idle": 0.1})
    found = took.with_columns(elapsed="took").select(over_transfers()).row(0, named=True)
    assert (found["completed_share"], found["completion_p50"]) == (1, pytest.approx(0.25))
    assert found["completion_p95"] == pytest.approx(0.385)
    assert found["slowdown_p99"] == pytest.approx(10 * 0.397)


def test_the_share_of_incomplete_transfers_is_that_of_kaplan_and_meier() -> None:
    """The remissions under 6-MP, in weeks, of Freireich et al. (Blood 21, 1963), table II."""
    ended = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    going_on = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    weeks = pl.DataFrame(
        {"took": [*ended, *[None] * len(going_on)], "elapsed": [*ended, *going_on]}
    ).with_columns(idle=pl.lit(1.0), slowdown=pl.col("took") / 1.0)
    left = weeks.select(survival(pl.col("elapsed"))).to_series()
    steps = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    assert left.unique().sort(descending=True).to_list()[2:] == pytest.approx(steps, abs=5e-5)
    found = weeks.select(over_transfers()).row(0, named=True)
    assert (found["completion_p50"], found["completion_p95"]) == (23, math.inf)


def test_results_side_by_side_have_the_completion_times_of_each(result: Result) -> None:
    flows, transfers = side_by_side([result, result.of_seed(2)])
    assert [row[0] for row in flows.rows] == ["bulk", "bulk", "web", "web"]
    assert [row[:2] for row in transfers.rows] == [["web", "reno"]] * 2
    column = [column.title for column in transfers.columns].index("Median completion time")
    medians = metrics.transfer_summary(result)["completion_p50"]
    shown = [row[column] for row in transfers.rows]
    values = [one.value for one in shown if one is not None and not isinstance(one, str | float)]
    assert values == [medians.mean(), medians[1]]


def test_a_sweep_has_the_completion_times_of_its_results(tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 2\n", "seeds = 1\n")
    sweep = text + '[sweep]\n"link.bottleneck.rate" = ["20 Mbit/s", "50 Mbit/s"]\n'
    (tmp_path / "web.toml").write_text(sweep)
    swept = dumbbell.sweep(tmp_path / "web.toml", out=tmp_path / "out")
    for rate in (20, 50):
        one = dumbbell.run(Experiment.parse(text).override(f"link.bottleneck.rate={rate} Mbit/s"))
        expected = metrics.transfer_summary(one).row(0, named=True)
        run = swept.dataset.table("runs").filter(rate=rate * 1e6).row(0, named=True)
        flows = swept.dataset.table("flows").filter(rate=rate * 1e6)
        web = flows.filter(flow="web").row(0, named=True)
        for metric in metrics.TRANSFER_METRICS:
            assert web[metric] == pytest.approx(expected[metric]), metric
            if not metric.startswith("load"):
                assert run[metric] == pytest.approx(expected[metric]), metric
        assert flows.filter(flow="bulk")["transfers"].to_list() == [None]


def test_a_sweep_shows_completion_times_and_draws_what_is_known(tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 2\n", "seeds = 1\n").replace("load=0.3", "load=1.1")
    sweep = text + '[sweep]\n"link.bottleneck.rate" = ["3 Mbit/s", "50 Mbit/s"]\n'
    (tmp_path / "web.toml").write_text(sweep)
    swept = dumbbell.sweep(tmp_path / "web.toml", out=tmp_path / "out")
    titles = [column.title for column in swept.table().columns]
    assert titles[-3:] == ["Completed", "Median completion time", "p99 completion time"]
    slow, fast = swept.summary()["completion_p99"]
    assert slow == math.inf > fast
    drawn = swept.plot("rate", "completion_p99").get_lines()[0].get_ydata()
    assert list(drawn) == [pytest.approx(1e3 * fast)]  # type: ignore[arg-type]
    with pytest.raises(DumbbellError, match="1 of 2 runs are too short for completion_p99"):
        draw(swept.folder, "boxes", metric="completion_p99", by="rate")
    with pytest.raises(DumbbellError, match="no metric of a run is called"):
        draw(swept.folder, "lines", metric="queueing_delay")


def test_a_figure_whose_every_mean_is_infinite_is_refused(tmp_path: Path) -> None:
    text = TEXT.replace("seeds = 2\n", "").replace("load=0.3", "load=1.1").replace("20 s", "8 s")
    rates, queues = '["3 Mbit/s", "5 Mbit/s"]', '["1 BDP", "2 BDP"]'
    axes = f'"link.bottleneck.rate" = {rates}\n"link.bottleneck.queue" = {queues}\n'
    (tmp_path / "web.toml").write_text(f"{text}[sweep]\n{axes}")
    swept = dumbbell.sweep(tmp_path / "web.toml", out=tmp_path / "out", seeds=3)
    for kind in ("heat", "lines"):
        with pytest.raises(DumbbellError, match="of 12 runs are too short for completion_p99, at"):
            draw(swept.folder, kind, metric="completion_p99")
    draw(swept.folder, "heat", metric="completion_p50")


def test_responsiveness_of_an_idle_path_is_its_round_trips_per_minute() -> None:
    # draft-ietf-ippm-responsiveness: 60 s over the round-trip time, 40 ms and the transmission of
    # packets of 52 and 53 bytes at 20 Mbit/s.
    link = Link(name="b", rate="20 Mbit/s", delay="20 ms")
    ping = {"arrivals": "periodic(every=100 ms)", "sizes": "constant(size=1 B)"}
    probes = Flow(name="ping", cc="cubic", **ping)  # type: ignore[arg-type]
    idle = dumbbell.run(Experiment(links=[link], flows=[probes], duration="10 s"))
    assert metrics.responsiveness(idle)["rpm"].item() == pytest.approx(1500, rel=0.002)
    # A response to a request needs no handshake.
    asks = Flow(name="ask", cc="cubic", app="requests(think=200 ms)", sizes="constant(size=1 B)")
    asked = dumbbell.run(Experiment(links=[link], flows=[asks], duration="10 s"))
    assert metrics.responsiveness(asked)["rpm"].item() == pytest.approx(1500, rel=0.002)
    # A full queue of 1 BDP doubles the round-trip time.
    bulk = Flow(name="bulk", cc="cubic")
    loaded = dumbbell.run(Experiment(links=[link], flows=[probes, bulk], duration="60 s"))
    rpm = metrics.responsiveness(loaded).row(0, named=True)
    assert rpm["flow"] == "ping"
    assert 750 <= rpm["rpm"] < 1300


def test_jain_does_not_count_flows_that_only_probe() -> None:
    link = Link(name="b", rate="20 Mbit/s", delay="20 ms")
    ping = {"arrivals": "periodic(every=100 ms)", "sizes": "constant(size=1 B)"}
    probes = Flow(name="ping", cc="cubic", **ping)  # type: ignore[arg-type]
    bulk = Flow(name="bulk", cc="cubic", repeat=2)
    both = dumbbell.run(Experiment(links=[link], flows=[probes, bulk], duration="10 s"))
    rates = metrics.throughput(both).filter(pl.col("flow") != "ping")["throughput"]
    assert metrics.fairness(both)["jain"].item() == pytest.approx(metrics.jain(rates))
    over_time = metrics.jain_over_time(both)["jain"]
    assert over_time.min() >= 0.5  # type: ignore[operator]
    assert over_time.max() > 0.7  # type: ignore[operator]
    probes = Flow(name="ping", cc="cubic", repeat=2, **ping)  # type: ignore[arg-type]
    alone = dumbbell.run(Experiment(links=[link], flows=[probes], duration="1 s"))
    assert metrics.fairness(alone)["jain"].to_list() == [None]
    bulk = Flow(name="bulk", cc="cubic")
    beside = dumbbell.run(Experiment(links=[link], flows=[probes, bulk], duration="1 s"))
    assert "Jain" not in repr(beside)


@pytest.mark.parametrize(
    "keys", [{"arrivals": ["1.5 s"]}, {"app": "requests(think=1 s)", "start": "0.99 s"}]
)
def test_jain_does_not_count_flows_whose_transfers_never_came(keys: dict[str, Any]) -> None:
    link = Link(name="b", rate="20 Mbit/s", delay="20 ms")
    web = Flow(name="web", cc="cubic", sizes="constant(size=1 MB)", **keys)
    bulk = Flow(name="bulk", cc="cubic", repeat=2)
    flows = [web, bulk]
    short, long = (Experiment(links=[link], flows=flows, duration=f"{n} s") for n in (1, 3))
    found = [dumbbell.run(one) for one in (short, long)]
    swept = [dumbbell.sweep(one, {"link.b.queue": ["1 BDP"]}).runs for one in (short, long)]
    assert [result.transfers.height > 0 for result in found] == [False, True]
    for result, runs in zip(found, swept, strict=True):
        rates = metrics.throughput(result).filter(pl.col("flow") != "web")["throughput"]
        expected = pytest.approx(metrics.jain(rates))
        assert metrics.fairness(result)["jain"].item() == expected
        assert runs["jain"].item() == expected


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["exponential(mean=2 MB)", "constant(size=2 MB)"])
@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_a_fair_queue_slows_down_as_processor_sharing_does(load: float, sizes: str) -> None:
    """M/G/1 with processor sharing: the mean slowdown is 1 / (1 - load), whatever the sizes."""
    link = Link(name="b", rate="100 Mbit/s", delay="0.2 ms", aqm="fq_codel(target=20 ms)")
    flow = Flow(name="t", cc="cubic", arrivals=f"poisson(load={load})", sizes=sizes)
    experiment = Experiment(links=[link], flows=[flow], duration="1000 s", seeds=4, sample="10 s")
    slowdown = metrics.transfer_summary(dumbbell.run(experiment))["slowdown_mean"].mean()
    assert slowdown == pytest.approx(1 / (1 - load), rel=0.05)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"arrivals": "poisson(load=0.5)"}, "sizes: is missing beside arrivals"),
        ({"sizes": "web-search"}, "arrivals: is missing beside sizes"),
        (
            {"arrivals": ["1 s"], "sizes": "web-search", "bytes": "1 MB"},
            "bytes: is for one transfer, and the flow has many",
        ),
        (
            {"arrivals": "poisson(every=1 ns)", "sizes": "web-search"},
            "gives some 10,000,000,000 transfers; the maximum is 4,000,000",
        ),
        ({"arrivals": "poisson", "sizes": "web-search"}, "takes one of every and load"),
    ],
)
def test_what_does_not_fit_together_is_told(keys: Mapping[str, Any], said: str) -> None:
    link = Link(name="b", rate="10 Mbit/s", delay="1 ms")
    with pytest.raises(ExperimentError, match=said):
        _resolve(link, keys)


def test_a_load_needs_a_link_with_a_rate() -> None:
    link = Link(name="b", delay="1 ms")
    keys = {"arrivals": "poisson(load=0.5)", "sizes": "web-search"}
    with pytest.raises(ExperimentError, match="give one a rate, or write every in place of load"):
        _resolve(link, keys)


def _resolve(link: Link, keys: Mapping[str, Any]) -> None:
    flow = Flow(cc="reno", **keys)
    Experiment(links=[link], flows=[flow], duration="10 s").resolve()


def _over_udp(**keys: Any) -> Result:
    link = Link(name="b", rate="20 Mbit/s", delay="10 ms", queue="50 packets")
    media = Flow(name="media", cc="none", transport="udp", **keys)
    return dumbbell.run(Experiment(links=[link], flows=[media], duration="20 s"))


def test_udp_sends_at_its_rate_and_loses_what_does_not_fit() -> None:
    row = _over_udp(app_rate="25 Mbit/s").flows.row(0, named=True)
    assert row["sent"] == pytest.approx(25e6 * 20 / 8 / 1200, abs=2)
    # 1200 bytes have 28 of headers; 20 Mbit/s of 25.6 pass, and the queue is full at the end.
    assert row["lost"] / row["sent"] == pytest.approx(1 - 20 / (25 * 1228 / 1200), abs=2e-3)
    assert row["delivered"] == row["received"]
    assert row["queue_delay_p50"] == pytest.approx(51 * 1228 * 8 / 20e6, rel=0.13)


def test_udp_follows_the_rates_of_its_application_and_stops() -> None:
    rates = [["0 s", "2 Mbit/s"], ["5 s", "0 bit/s"], ["10 s", "6 Mbit/s"]]
    result = _over_udp(app_rates=rates, stop="15 s")
    bytes_by = dict(result.series.select("t", "received").iter_rows())
    assert bytes_by[5.1] == pytest.approx(5 * 2e6 / 8, abs=2400)
    assert bytes_by[10.0] == bytes_by[5.1]
    assert bytes_by[20.0] == pytest.approx(bytes_by[5.1] + 5 * 6e6 / 8, abs=2400)
    assert result.flows["lost"].item() == 0


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cc": "cubic", "transport": "udp", "app_rate": "1 Mbit/s"}, 'cc: .* write "none"'),
        ({"cc": "none"}, 'cc: "none" is for flows that nothing controls'),
        ({"cc": "none", "transport": "udp"}, "app_rate: is missing"),
        (
            {"cc": "none", "transport": "udp", "app_rate": "1 Mbit/s", "bytes": "1 MB"},
            "bytes: is not for a flow over UDP",
        ),
    ],
)
def test_a_flow_over_udp_has_a_rate_and_no_control(keys: dict[str, str], said: str) -> None:
    link = Link(name="b", rate="10 Mbit/s", delay="1 ms")
    with pytest.raises(ExperimentError, match=said):
        Experiment(links=[link], flows=[Flow(**keys)], duration="10 s")  # type: ignore[arg-type]


def test_transfers_that_go_on_after_stop_carry_no_more_than_the_link() -> None:
    experiment = Experiment.parse(
        """
        duration = "20 s"
        [[link]]
        name = "b"
        rate = "10 Mbit/s"
        delay = "20 ms"
        [[flow]]
        cc = "cubic"
        arrivals = "poisson(load=1.3)"
        sizes = "exponential(mean=100 kB)"
        stop = "6 s"
        """
    )
    row = metrics.transfer_summary(dumbbell.run(experiment)).row(0, named=True)
    assert row["completed_share"] == 1
    assert row["load_offered"] > 1 > row["load_carried"] > 0.8


def test_a_flow_that_did_not_complete_is_not_left_out_of_the_mean_time() -> None:
    flows = [
        Flow(name=name, cc="reno", bytes=size) for name, size in (("s", "1 MB"), ("l", "1 GB"))
    ]
    link = Link(name="b", rate="20 Mbit/s", delay="20 ms")
    result = dumbbell.run(Experiment(duration="5 s", links=[link], flows=flows))
    text = summary_tables(result)[0].markdown()
    short, long = (line for line in text.splitlines() if line.startswith(("| s", "| l")))
    assert long.rstrip(" |").endswith("\u2014")
    assert not short.rstrip(" |").endswith("\u2014")
    assert "a dash where a flow had not completed" in text
