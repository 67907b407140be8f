"""CUBIC (RFC 9438) as a class: a start for algorithms that change a part of it.

dumbbell compare --cc 'cubic(arithmetic=exact),examples/cubic.py:Cubic'
"""

from collections.abc import Mapping
from math import cbrt

from dumbbell.cc import Ack, CongestionEvent, ConnectionConfig, Path, WindowRule


class Cubic(WindowRule):
    """CUBIC with fast convergence and the Reno-friendly region, as in Linux."""

    slow_start = "hystart"  # as Linux's CUBIC has it; without this line "standard"

    def __init__(self, init: ConnectionConfig, c: float = 0.4, beta: float = 0.7) -> None:
        super().__init__(init)
        self.c, self.beta = c, beta
        self.alpha = 3 * (1 - beta) / (1 + beta)  # section 4.3
        self.known_w_max: float | None = None  # None until congestion, and after a timeout
        self.w_max = self.w_est = self.k = self.epoch_start = 0.0
        self.in_epoch = False

    def increase(self, cwnd: float, acked: float, path: Path, ack: Ack) -> float:
        if not self.in_epoch:  # equation 2
            self.in_epoch, self.epoch_start, self.w_est = True, path.now, cwnd
            self.w_max = max(self.known_w_max or 0.0, cwnd)
            self.k = cbrt((self.w_max - cwnd) / self.c)
        t = path.now - self.epoch_start + (path.min_rtt or 0.0)
        target = self.c * (t - self.k) ** 3 + self.w_max  # equation 1
        if self.known_w_max is None:
            target = max(target, 1.05 * cwnd)
        self.w_est += self.alpha * acked / cwnd  # equation 4
        target = max(target, self.w_est)
        return min(max(target - cwnd, 0.0) / cwnd, 0.5) * acked

    def decrease(self, cwnd: float, path: Path, event: CongestionEvent) -> float:
        shrinks = self.known_w_max is not None and cwnd < self.known_w_max
        self.known_w_max = cwnd * (1 + self.beta) / 2 if shrinks else cwnd  # section 4.7
        self.in_epoch = False
        return self.beta * cwnd

    def on_timeout(self) -> None:
        self.known_w_max = None
        self.in_epoch = False

    def inspect(self) -> Mapping[str, float]:
        return {"W_max": self.w_max, "W_est": self.w_est, "K": self.k}
