from collections.abc import Mapping

from dumbbell.cc import CongestionEvent, ConnectionConfig, Path, RoundControl, RoundStats


class Calm(RoundControl):
    """Keeps a backlog of `target` packets, however long the queue is."""

    def __init__(self, init: ConnectionConfig, target: float = 4.0) -> None:
        super().__init__(init)
        self.target, self.backlog, self.starting = target, 0.0, True

    def on_round(self, path: Path, report: RoundStats) -> None:
        if report.rtt_min is None or path.min_rtt is None or path.reducing:
            return
        self.backlog = self.cwnd * (1 - path.min_rtt / report.rtt_min)
        if self.backlog < self.target:
            self.cwnd += report.delivered if self.starting else 1
        else:
            self.cwnd -= self.backlog - self.target
            self.starting = False
            self.ssthresh = self.cwnd

    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        if event.new_episode:
            self.cwnd = max(2, self.cwnd / 2)
            self.starting = False
        if event.signal == "timeout":
            self.cwnd = 1
            self.starting = True

    def inspect(self) -> Mapping[str, float]:
        return {"backlog": self.backlog}
