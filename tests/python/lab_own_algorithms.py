"""The algorithms of lab_own.js in Python."""

# ruff: noqa: ARG002 (an algorithm does not use all that it is told)

from __future__ import annotations

from typing import TYPE_CHECKING

from dumbbell import cc

if TYPE_CHECKING:
    from dumbbell.cc import Ack, CongestionEvent, ConnectionConfig, Path, RoundStats, Sent


class Rule(cc.WindowRule):
    """A rule with an option, slow start with HyStart, and every method."""

    slow_start = "hystart"

    def __init__(self, init: ConnectionConfig, beta: float = 0.5) -> None:
        super().__init__(init)
        self.beta, self.seen, self.undone = beta, 0, 0

    def observe(self, path: Path, ack: Ack) -> None:
        self.seen += ack.delivered

    def increase(self, cwnd: float, acked: float, path: Path, ack: Ack) -> float:
        assert path.srtt is not None
        assert path.min_rtt is not None
        return acked / cwnd * (0.5 if path.srtt > 2 * path.min_rtt else 1)

    def decrease(self, cwnd: float, path: Path, event: CongestionEvent) -> float:
        return cwnd / 4 if event.signal == "timeout" else cwnd * self.beta

    def on_undo(self) -> None:
        self.undone += 1

    def inspect(self) -> dict[str, float]:
        return {"seen": self.seen, "undone": self.undone}


class Round(cc.RoundControl):
    """A window and a pacing rate once a round trip."""

    def __init__(self, init: ConnectionConfig) -> None:
        super().__init__(init)
        self.report: RoundStats | None = None

    def on_round(self, path: Path, report: RoundStats) -> None:
        self.report = report
        if report.lost:
            self.cwnd = max(self.cwnd * 0.7, 4)
        else:
            assert path.min_rtt is not None
            calm = report.rtt_max is not None and report.rtt_max < 1.5 * path.min_rtt
            self.cwnd += 2 if calm else 0.5
        self.pacing_rate = max(1.2 * report.max_rate, 1e5)

    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        if event.signal == "timeout":
            self.cwnd = 4
        elif event.send_state is not None:
            self.cwnd = max(event.send_state.in_flight * 0.9, 4)

    def inspect(self) -> dict[str, float]:
        if (report := self.report) is None:
            return {"number": 0}
        names = ("number", "start", "duration", "delivered", "rtt_mean", "rate", "app_limited")
        found = {name: getattr(report, name) for name in names}
        return {name: -1.0 if value is None else float(value) for name, value in found.items()}


class Control(cc.CongestionControl):
    """A window, a pacing rate and a timer, by events."""

    uses_prr = False

    def __init__(self, init: ConnectionConfig) -> None:
        super().__init__(init)
        self.ticks = self.flying = self.sent = self.spurious = 0
        self.sampled = self.siblings = 0.0

    def on_established(self, path: Path) -> None:
        self.timer = path.now + 0.05

    def on_timer(self, path: Path) -> None:
        self.ticks += 1
        self.flying += path.in_flight
        self.timer = path.now + 0.05

    def on_sent(self, path: Path, sent: Sent) -> None:
        self.sent += not sent.retransmission

    def on_spurious_loss(self, path: Path) -> None:
        self.spurious += 1

    def on_ack(self, path: Path, ack: Ack) -> None:
        if path.cwnd_limited and not path.reducing:
            self.cwnd += ack.acked / self.cwnd
        if (rate := ack.rate) is not None:
            self.sampled = rate.send_state.delivered + rate.lost + rate.interval
            self.pacing_rate = 1.5 * rate.rate
        self.siblings = 0.0
        for one in path.siblings:
            self.siblings = self.siblings + one.cwnd + one.srtt + one.delivered_between_losses[0]

    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        if event.new_episode:
            self.cwnd = max(self.cwnd / 2, 2)
        self.ssthresh = self.cwnd

    def inspect(self) -> dict[str, float]:
        names = ("ticks", "flying", "sent", "spurious", "sampled", "siblings")
        return {name: float(getattr(self, name)) for name in names}
