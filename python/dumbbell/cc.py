"""Congestion control algorithms of your own, in Python.

An algorithm is a class. In an experiment ``cc = "my_module:MyCC"`` or ``cc = "my_file.py:MyCC"``
names it, with options for its constructor if it has some: ``"my_file.py:MyCC(gain=2)"``; so does
``dumbbell compare --cc my_module:MyCC``. Every flow has an object of its own. There are three
tiers, from the simplest to the fullest:

- `WindowRule`: how a window grows and how it shrinks; slow start, recovery, timeouts are given.
- `RoundControl`: told once a round trip what happened in it. Millions of packets a second.
- `CongestionControl`: told of every acknowledgement. Two million packets a second.

Windows and thresholds are in packets, rates in bytes/s, times in s. The objects that tell of an
event (`Path`, `Ack`) are used again for the next one: keep their values, not the objects. Whatever
is drawn at random is to come from ``init.seed``, so that the same seed gives the same run.

An exception ends the run and comes back as itself. So does, in one paragraph, an answer that cannot
be, such as a window that is not a number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from dumbbell._core import (
    Ack,
    CongestionEvent,
    ConnectionConfig,
    Path,
    PeerReport,
    RateSample,
    Round,
    Sent,
    SendState,
    Subflow,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Ack",
    "CongestionEvent",
    "CongestionControl",
    "ConnectionConfig",
    "Path",
    "PeerReport",
    "RateSample",
    "Round",
    "RoundControl",
    "Sent",
    "SendState",
    "Subflow",
    "WindowRule",
]


class _Own(ABC):
    """What all tiers have."""

    _tier: ClassVar[Literal["rule", "round", "ack"]]

    uses_prr: ClassVar[bool] = True
    """Whether the transport spreads a window reduction over the recovery episode (RFC 6937bis).
    Algorithms that hold a model of the path keep their own window in recovery and say False."""

    def __init__(self, init: ConnectionConfig) -> None:
        """An algorithm at the beginning of a flow; what overrides this calls it first."""

    def inspect(self) -> Mapping[str, float]:
        """Named internals, for plots; asked for at every sample of the result."""
        return {}


class _Answering(_Own):
    """What answers with a window and a rate of its own."""

    cwnd: float
    """The answer: the congestion window, packets; 1 or more."""
    ssthresh: float
    """The slow start threshold, packets. Infinite until slow start is over, or if there is none.
    The transport paces at twice the window a round trip far below it, and tells ``cwnd_limited``
    by it, as Linux does."""
    pacing_rate: float | None
    """The answer: the pacing rate, bytes/s; None leaves it to the stack."""

    def __init__(self, init: ConnectionConfig) -> None:
        """Begins with the initial window and no rate; what overrides this calls it first."""
        super().__init__(init)
        self.cwnd = init.initial_window
        self.ssthresh = math.inf
        self.pacing_rate = None


class CongestionControl(_Answering):
    """An algorithm that is told of every event.

    Its answer is what `cwnd` and `pacing_rate` hold when a method returns.
    """

    _tier = "ack"

    timer: float | None = None
    """When `on_timer` is to be called, s of simulated time; None for not at all. It is None again
    when that is called, which may set it to a later time."""

    @abstractmethod
    def on_ack(self, path: Path, ack: Ack) -> None:
        """Packets were newly delivered."""

    @abstractmethod
    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        """The network signalled congestion.

        Once per lost packet, ECN echo that counts, and timeout. ``event.new_episode`` tells the
        first signal of a recovery episode, which is the one that a window answers.
        """

    def on_established(self, path: Path) -> None:
        """The handshake is done; `path` has the first round-trip time, if there is one."""

    def on_sent(self, path: Path, sent: Sent) -> None:
        """A packet was handed to the network."""

    def on_timer(self, path: Path) -> None:
        """The instant has come that `timer` asked for."""

    def on_spurious_loss(self, path: Path) -> None:
        """The last episode turned out to be spurious: undo what was answered to it."""


class RoundControl(_Answering):
    """An algorithm that is told once a round trip what happened in it.

    Its answer is what `cwnd` and `pacing_rate` hold when a method returns; it stands until the next
    round ends, or congestion comes.
    """

    _tier = "round"

    @abstractmethod
    def on_round(self, path: Path, report: Round) -> None:
        """A round ended: a packet was acknowledged that was sent after the round began."""

    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        """A recovery episode began, or the retransmission timer expired: told at once."""


class WindowRule(_Own):
    """How a window grows in congestion avoidance and shrinks on congestion.

    The rest is RFC 5681's: slow start below the threshold, no growth in recovery or while the
    window is not used, one reduction an episode, one packet after a timeout.
    """

    _tier = "rule"

    hystart: ClassVar[Literal["off", "on", "train", "delay", "plusplus", "ns-3"]] = "off"
    """How slow start may end before there is loss; as the option of the built-in algorithms."""

    @abstractmethod
    def increase(self, cwnd: float, acked: float, path: Path, ack: Ack) -> float:
        """Packets by which the window `cwnd` grows, for `acked` packets acknowledged."""

    @abstractmethod
    def decrease(self, cwnd: float, path: Path, event: CongestionEvent) -> float:
        """What congestion leaves of the window `cwnd`, packets; at least 2 are left."""

    def observe(self, path: Path, ack: Ack) -> None:
        """Told of every acknowledgement, in slow start and recovery too, before anything grows."""

    def on_timeout(self) -> None:
        """A retransmission timeout: forget what was learned."""

    def on_undo(self) -> None:
        """The last decrease was undone: it was for a loss that was none."""
