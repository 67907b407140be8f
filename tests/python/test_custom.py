"""Algorithms of one's own, in Python."""

# ruff: noqa: ARG002 (an algorithm does not use all that it is told)

from __future__ import annotations

import math
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import dumbbell
from dumbbell import DumbbellError, Experiment, ExperimentError, Flow, Link, Result
from dumbbell.cc import CongestionControl, RoundControl, WindowRule

if TYPE_CHECKING:
    from dumbbell.cc import Ack, CongestionEvent, ConnectionConfig, RoundStats, Sent
    from dumbbell.cc import Path as CCPath


class Reno(WindowRule):
    """RFC 5681."""

    def increase(self, cwnd: float, acked: float, path: CCPath, ack: Ack) -> float:
        return acked / cwnd

    def decrease(self, cwnd: float, path: CCPath, event: CongestionEvent) -> float:
        return cwnd / 2


class Counting(Reno):
    """Reno that counts acknowledgements, of all its flows."""

    acks = 0

    def increase(self, cwnd: float, acked: float, path: CCPath, ack: Ack) -> float:
        Counting.acks += 1
        return super().increase(cwnd, acked, path, ack)


class Fixed(CongestionControl):
    """A window, and a rate if there is one."""

    def __init__(
        self, init: ConnectionConfig, window: float = 20.0, rate: float | None = None
    ) -> None:
        super().__init__(init)
        self.cwnd, self.pacing_rate = window, rate

    def on_ack(self, path: CCPath, ack: Ack) -> None:
        pass

    def on_congestion(self, path: CCPath, event: CongestionEvent) -> None:
        pass


class Recorder(Fixed):
    """Sees whatever there is to see."""

    seen: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, init: ConnectionConfig) -> None:
        super().__init__(init, window=60.0)
        self.seen["init"] = (init.now, init.mss, init.initial_window, init.seed)

    def on_established(self, path: CCPath) -> None:
        self.seen["established"] = (path.srtt, path.mss)
        self.timer = path.now + 1.0

    def on_timer(self, path: CCPath) -> None:
        self.seen["timer"] = path.now
        self.timer = None

    def on_sent(self, path: CCPath, sent: Sent) -> None:
        self.seen["sent"] = max(self.seen.get("sent", 0), sent.seq)

    def on_ack(self, path: CCPath, ack: Ack) -> None:
        assert ack.rate is not None
        self.seen["ack"] = (ack.delivered, ack.rtt, ack.rate.rate, ack.rate.send_state.in_flight)
        self.seen["path"] = (path.in_flight, path.ca_state, path.siblings, path.delivered)

    def on_congestion(self, path: CCPath, event: CongestionEvent) -> None:
        self.seen.setdefault("congestion", (event.signal, event.new_episode))

    def inspect(self) -> dict[str, float]:
        return {"a number": 42.0}


class Rounds(RoundControl):
    """Counts."""

    reports: list[tuple[int, int, float | None, float]] = []  # noqa: RUF012

    def __init__(self, init: ConnectionConfig) -> None:
        super().__init__(init)
        self.cwnd = 40.0

    def on_round(self, path: CCPath, report: RoundStats) -> None:
        self.reports.append((report.number, report.delivered, report.rtt_min, report.max_rate))


class Raises(Fixed):
    """Fails at the first loss."""

    def on_congestion(self, path: CCPath, event: CongestionEvent) -> None:
        raise LookupError("of my own making")


class Answers(Fixed):
    """Answers with what it is told to, at the first acknowledgement."""

    def __init__(self, init: ConnectionConfig, key: str, value: float | str) -> None:
        super().__init__(init)
        self.key, self.value = key, value

    def on_ack(self, path: CCPath, ack: Ack) -> None:
        setattr(self, self.key, float(self.value) if self.value != "text" else self.value)


class Tells(Answers):
    """The same, and shows an internal."""

    def inspect(self) -> dict[str, float]:
        return {"gain": 2.5}


class Shows(Fixed):
    """Shows what is no number."""

    def __init__(self, init: ConnectionConfig, all_of_it: bool) -> None:
        super().__init__(init)
        self.all_of_it = all_of_it

    def inspect(self) -> dict[str, float]:
        return 7 if self.all_of_it else {"phase": "up"}  # type: ignore[return-value, dict-item]


class Exits(Fixed):
    """Ends the process."""

    def on_ack(self, path: CCPath, ack: Ack) -> None:
        sys.exit(7)


class WrongRule(Reno):
    """Grows by nothing that is a number."""

    def increase(self, cwnd: float, acked: float, path: CCPath, ack: Ack) -> float:
        return math.nan


class Rises(Reno):
    """Multiplies the window by a factor on congestion, but leaves 2 packets."""

    def __init__(self, init: ConnectionConfig, factor: float) -> None:
        super().__init__(init)
        self.factor = factor

    def decrease(self, cwnd: float, path: CCPath, event: CongestionEvent) -> float:
        return max(2.0, self.factor * cwnd)


class Unfinished(CongestionControl):
    """Lacks what it must have."""


def experiment(*algorithms: type | str, **keys: Any) -> Experiment:
    link = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms")
    flows = [Flow(cc=cc) for cc in algorithms]
    settings: dict[str, Any] = {"duration": "5 s", "links": [link], "flows": flows} | keys
    return Experiment(**settings)


def run(*algorithms: type | str, **keys: Any) -> Result:
    return dumbbell.run(experiment(*algorithms, **keys))


def without(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("cc")


def test_a_flow_takes_a_class_or_a_table_and_gives_a_text() -> None:
    # mypy checks the types of both: nothing is ignored here.
    given: list[str | type | dict[str, object]] = ["bbr", {"name": "cubic", "abe": True}, Reno]
    texts: list[str] = [Flow(cc=cc).cc for cc in given]
    assert texts == ["bbr", "cubic(abe=on)", f"{Reno.__module__}:Reno"]


def test_reno_as_a_rule_in_python_does_what_the_built_in_one_does() -> None:
    for chosen in ("standard", "hystart"):
        options = f"arithmetic=exact, slow_start={chosen}"

        class Mine(Reno):
            slow_start = chosen

        globals()["Mine"] = Mine
        Mine.__qualname__ = "Mine"
        theirs, ours = run(f"reno({options})", f"reno({options})"), run(Mine, Mine)
        assert without(ours.series).equals(without(theirs.series), null_equal=True)
        assert theirs.flows["retransmitted"].sum() > 0


def test_an_algorithm_is_told_what_happens_and_shows_what_it_wants() -> None:
    result = run(Recorder)
    seen = Recorder.seen
    assert seen["init"] == (0.0, 1448, 10.0, seen["init"][3])
    # The handshake's packets take some microseconds to send.
    assert seen["established"] == (pytest.approx(0.04, abs=1e-3), 1448)
    assert seen["timer"] == pytest.approx(1.04, abs=1e-3)
    flow = result.flows.row(0, named=True)
    assert seen["sent"] == flow["sent"] - flow["retransmitted"] - 1
    delivered, rtt, rate, in_flight = seen["ack"]
    # The last acknowledgement is of two packets.
    assert (delivered, in_flight) == (2, 60)
    # 60 packets of 1500 bytes at 20 Mbit/s take 36 ms, which is less than the path's 40.
    assert rtt == pytest.approx(0.0412, abs=1e-3)
    assert rate == pytest.approx(60 * 1448 / 0.0412, rel=0.03)
    assert seen["path"] == (58, "open", [], pytest.approx(flow["delivered"] / 1448, abs=60))
    internals = result.internals.filter(pl.col("name") == "a number")["value"].unique()
    assert internals.to_list() == [42.0]
    assert "congestion" not in seen
    short = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms", queue="20 packets")
    run(Recorder, "cubic", links=[short])
    assert seen["congestion"] == ("loss", True)


def test_the_window_and_the_rate_that_it_answers_are_those_in_force() -> None:
    flow = run("test_custom:Fixed(window=20)").flows.row(0, named=True)
    # A window of 20 packets every 40 ms and the time of one packet or two on the wire.
    assert 8 * flow["delivered"] / 5 == pytest.approx(20 * 1448 * 8 / 0.0412, rel=0.03)
    flow = run("test_custom:Fixed(window=50, rate=250e3)").flows.row(0, named=True)
    assert 8 * flow["delivered"] / 5 == pytest.approx(8 * 250e3, rel=0.04)


def test_a_report_a_round_holds_what_happened_in_it() -> None:
    Rounds.reports.clear()
    run(Rounds)
    numbers = [number for number, *_ in Rounds.reports]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == pytest.approx(5 / 0.0412, rel=0.03)
    for _, delivered, rtt, rate in Rounds.reports[5:]:
        assert delivered == pytest.approx(40, abs=3)
        assert rtt == pytest.approx(0.0406, abs=1e-3)
        assert rate == pytest.approx(40 * 1448 / 0.0406, rel=0.05)


def test_subflows_of_a_multipath_connection_and_udt_have_it_too() -> None:
    links = [Link(name=name, rate="10 Mbit/s", delay="10 ms") for name in ("a", "b")]
    flow = Flow(cc="test_custom:Fixed(window=10)", paths=[["a"], ["b"]])
    result = run(links=links, flows=[flow])
    assert all(delivered > 0 for delivered in result.subflows["delivered"])
    udt = Flow(cc="test_custom:Fixed(window=10)", transport="udt")
    assert run(flows=[udt]).flows["delivered"][0] > 0


def test_the_same_seed_gives_the_same_run_however_many_threads() -> None:
    flows = [Flow(cc="test_custom:Reno", repeat=2), Flow(cc="cubic")]
    one = experiment(flows=flows, seeds=6, start_jitter="100 ms", duration="2 s")
    alone, together = (dumbbell.run(one, jobs=jobs) for jobs in (1, 4))
    assert alone.series.equals(together.series, null_equal=True)
    assert alone.flows["delivered"].n_unique() > 6


def test_an_exception_comes_back_as_itself_with_where_and_when_it_was_raised() -> None:
    with pytest.raises(LookupError, match="of my own making") as error:
        run("test_custom:Raises(window=500)", "reno", seeds=3)
    assert error.traceback[-1].name == "on_congestion"
    (note,) = error.value.__notes__
    assert note.startswith("in test_custom:Raises(window=500) after 0.")


@pytest.mark.parametrize(
    ("cc", "said"),
    [
        ("Answers(key=cwnd, value=nan)", "cwnd is NaN after on_ack, at 0."),
        ("Answers(key=cwnd, value=0.5)", "cwnd is 0.5 after on_ack, at 0."),
        ("Tells(key=cwnd, value=0.5)", "from 1 to 1e15; inspect shows gain = 2.5"),
        ("Answers(key=cwnd, value=inf)", "a window is a number of packets from 1 to 1e15"),
        ("Answers(key=cwnd, value=text)", "cwnd is text after on_ack, at 0."),
        ("Answers(key=cwnd, value=1e-300)", "cwnd is 1e-300 after on_ack, at 0."),
        ("Answers(key=ssthresh, value=nan)", "ssthresh is NaN after on_ack, at 0."),
        ("Answers(key=pacing_rate, value=-1)", "pacing_rate is -1 after on_ack, at 0."),
        ("Answers(key=cwnd, value=1e18)", "cwnd is 1000000000000000000 after on_ack, at 0."),
        ("Fixed(window=-1)", "cwnd is -1 after __init__, at 0"),
        ("Shows(all_of_it=on)", "the return value is 7 after inspect, at 0"),
        ("Shows(all_of_it=off)", "phase is 'up' after inspect, at 0"),
        ("WrongRule", "the increase is nan after increase, at 0."),
        ("Rises(factor=1.5)", "; a decrease returns 0 packets or more, and at most the window"),
    ],
)
def test_an_answer_that_cannot_be_is_one_paragraph_that_names_the_class(cc: str, said: str) -> None:
    with pytest.raises(DumbbellError) as error:
        run(f"test_custom:{cc}", "cubic")
    assert str(error.value).startswith(f"test_custom:{cc}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_decrease_may_leave_the_window_or_two_packets() -> None:
    for factor in (1, 0):
        assert run(f"test_custom:Rises({factor=})", "reno").flows["retransmitted"][0] > 0


class WithPrr(Reno):
    """A rule with what is for algorithms that set their window in recovery."""

    uses_prr = False


def test_a_rule_that_says_it_does_without_prr_is_refused() -> None:
    said = '"WithPrr" is a WindowRule, which leaves the window in recovery to the transport; leave'
    with pytest.raises(ExperimentError, match=said):
        run(WithPrr)


def test_an_algorithm_that_exits_is_refused_and_named() -> None:
    with pytest.raises(
        DumbbellError, match=r"raised SystemExit\(7\), in test_custom:Exits after 0"
    ):
        run(Exits)


class Early(Reno):
    """Leaves slow start by HyStart."""

    slow_start = "hystart"

    def __init__(self, init: ConnectionConfig, add: float = 1.0) -> None:
        super().__init__(init)
        self.add = add


def test_a_rule_has_its_slow_start_with_options_too() -> None:
    plain, named = (
        run(f"test_custom:Early{options}", "reno").flows for options in ("", "(add=1.0)")
    )
    assert plain["sent"].to_list() == named["sent"].to_list()


class Backoff(Early):
    """Reno that takes a packet off for each 100 acknowledged while the queue delays by 20 ms."""

    def increase(self, cwnd: float, acked: float, path: CCPath, ack: Ack) -> float:
        assert path.srtt is not None
        assert path.min_rtt is not None
        if path.srtt - path.min_rtt > 0.02:
            return -0.01 * acked
        return super().increase(cwnd, acked, path, ack)


def test_a_negative_increase_lowers_the_window_past_slow_start() -> None:
    deep = [Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms", queue="4 BDP")]
    ours, renos = (run(cc, links=deep).summary("cc").row(0, named=True) for cc in (Backoff, Early))
    assert ours["queue_delay_p95"] == pytest.approx(0.02, rel=0.1)
    assert renos["queue_delay_p95"] > 0.03
    assert ours["throughput"] == pytest.approx(renos["throughput"], rel=0.02)


class Shrinking(Early):
    """Takes a packet off at each acknowledgement, the one that ends slow start included."""

    def increase(self, cwnd: float, acked: float, path: CCPath, ack: Ack) -> float:
        return -1.0 if cwnd > 5 else 0.0


def test_a_window_lowered_when_slow_start_ends_stays_low() -> None:
    result = run(Shrinking)
    assert result.flows["retransmitted"][0] == 0
    assert result.series["cwnd"][1] > 10
    assert result.series["cwnd"][-1] < 6


class Alarm(CongestionControl):
    """Sets a timer once, or again and again to the present."""

    def __init__(self, init: ConnectionConfig, again: bool = False) -> None:
        super().__init__(init)
        self.cwnd, self.again, self.rang = 10.0, again, 0

    def on_established(self, path: CCPath) -> None:
        self.timer = path.now + 0.1

    def on_ack(self, path: CCPath, ack: Ack) -> None: ...

    def on_congestion(self, path: CCPath, event: CongestionEvent) -> None: ...

    def on_timer(self, path: CCPath) -> None:
        self.rang += 1
        if self.again:
            self.timer = path.now

    def inspect(self) -> dict[str, float]:
        return {"rang": self.rang}


def test_a_timer_rings_once_unless_it_is_set_again() -> None:
    shown = run("test_custom:Alarm", "reno").internals.filter(pl.col("name") == "rang")
    assert shown["value"].max() == 1


def test_a_timer_that_never_lets_time_pass_is_refused() -> None:
    with pytest.raises(DumbbellError, match="after on_timer, later than the current time"):
        run("test_custom:Alarm(again=true)", "reno")


def test_whoever_waits_for_it_can_interrupt() -> None:
    Counting.acks = 0
    before = set(threading.enumerate())
    one = experiment(Counting, duration="100000 s", sample="10 s")

    def stop(_step: str, done: float) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dumbbell.run(one, progress=stop)
    while set(threading.enumerate()) - before:
        time.sleep(0.01)
    # 20 Mbit/s for 100,000 s, two packets of 1500 bytes an acknowledgement.
    assert 0 < Counting.acks < 0.5 * 20e6 / 8 * 100_000 / 3000


def test_the_example_of_cubic_behaves_as_the_built_in_one() -> None:
    example = Path(__file__).parents[2] / "examples/cubic.py"
    ours, built_in = (
        dumbbell.compare([f"{example}:Cubic", "cubic(arithmetic=exact)"], seeds=3, duration="30 s")
        .summary()
        .iter_rows(named=True)
    )
    for metric in ("throughput", "queue_delay_mean", "retransmission_share", "jain"):
        assert ours[metric] == pytest.approx(built_in[metric], rel=0.01), metric
