"""Base classes for congestion control algorithms written in Python.

An algorithm is a class. An experiment names it by ``cc = "my_module:MyCC"`` or
``cc = "my_file.py:MyCC"``, with options for its constructor in parentheses:
``"my_file.py:MyCC(gain=2)"``. ``dumbbell compare --cc my_module:MyCC`` takes the same names. Each
flow has its own instance. There are three base classes, from the simplest to the most general:

- `WindowRule`: the increase and the decrease of a window; slow start, recovery and timeouts are
  provided.
- `RoundControl`: one call per round trip with a summary of the round.
- `CongestionControl`: a call for each acknowledgement and each congestion event.

Windows and thresholds are in packets, rates in bytes/s, times in s. The `Path` and `Ack` objects
are reused for the next event: keep their values, not the objects. State belongs in the instance:
a variable of the module or of the class is shared by all flows of all runs, so that results depend
on the order of the runs. Draw random numbers from ``init.seed`` only, so that the same seed gives
the same run.

An exception ends the run and is raised again from it. An invalid result, such as a window that is
not a number, ends the run with a `DumbbellError`.
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
    RateSample,
    RoundStats,
    SendState,
    Sent,
    Subflow,
    UdtReport,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Ack",
    "CongestionControl",
    "CongestionEvent",
    "ConnectionConfig",
    "Path",
    "RateSample",
    "RoundControl",
    "RoundStats",
    "SendState",
    "Sent",
    "Subflow",
    "UdtReport",
    "WindowRule",
]


class _Algorithm(ABC):
    """Base of all custom algorithms. An instance holds the state of one flow and nothing else."""

    _tier: ClassVar[Literal["rule", "round", "ack"]]

    def __init__(self, init: ConnectionConfig) -> None:
        """Creates the algorithm of one flow; subclasses call this first."""

    def inspect(self) -> Mapping[str, float]:
        """Internal variables by name, recorded at every sample of the result."""
        return {}


class _Controller(_Algorithm):
    """Base of the algorithms that set a window and a pacing rate."""

    uses_prr: ClassVar[bool] = True
    """Whether the transport spreads a window reduction over the recovery episode (proportional rate
    reduction, RFC 9937). False for model-based algorithms that set their own window in recovery."""

    cwnd: float
    """Congestion window, packets; 1 to 1e15."""
    ssthresh: float
    """Slow start threshold, packets; infinite before slow start has ended, or without slow start.
    As in Linux, the transport uses it for the default pacing rate (twice the window per round trip
    in slow start) and for ``cwnd_limited``."""
    pacing_rate: float | None
    """Pacing rate, bytes/s; None for the transport's default."""

    def __init__(self, init: ConnectionConfig) -> None:
        """Sets the initial window and no pacing rate; subclasses call this first."""
        super().__init__(init)
        self.cwnd = init.initial_window
        self.ssthresh = math.inf
        self.pacing_rate = None


class CongestionControl(_Controller):
    """An algorithm with a call per event.

    The transport reads `cwnd`, `ssthresh`, `pacing_rate` and `timer` when a method returns.
    """

    _tier = "ack"

    timer: float | None = None
    """Simulated time of the next call of `on_timer`, s; None for no call. Reset to None before that
    call, which may set it to a later time."""

    @abstractmethod
    def on_ack(self, path: Path, ack: Ack) -> None:
        """Called when packets were newly delivered."""

    @abstractmethod
    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        """Called for each lost packet, each ECN signal and each timeout.

        ``event.new_episode`` is true for the first signal of a recovery episode. Windows are
        reduced for that one only.
        """

    def on_established(self, path: Path) -> None:
        """Called after the handshake; `path` has the first round-trip time if there is a sample."""

    def on_sent(self, path: Path, sent: Sent) -> None:
        """Called when a packet was handed to the network."""

    def on_timer(self, path: Path) -> None:
        """Called at the time that `timer` was set to."""

    def on_spurious_loss(self, path: Path) -> None:
        """Called when the last recovery episode was spurious: undo the reaction to it."""


class RoundControl(_Controller):
    """An algorithm with a call per round trip.

    The transport reads `cwnd`, `ssthresh` and `pacing_rate` when a method returns. They stay in
    force until the next round ends or congestion is signalled.
    """

    _tier = "round"

    @abstractmethod
    def on_round(self, path: Path, report: RoundStats) -> None:
        """Called when a round ends: a packet sent after the start of the round was acknowledged."""

    def on_congestion(self, path: Path, event: CongestionEvent) -> None:
        """Called at once when a recovery episode begins or the retransmission timer expires."""


class WindowRule(_Algorithm):
    """Increase in congestion avoidance and decrease on congestion.

    The rest is RFC 5681: slow start below the threshold, no increase in recovery or while the
    window does not limit sending, one decrease per recovery episode, one packet after a timeout.
    """

    _tier = "rule"

    slow_start: ClassVar[
        Literal[
            "standard",
            "hystart",
            "hystart-train",
            "hystart-delay",
            "hystart-ns3",
            "hystart++",
            "search",
            "rapid",
        ]
    ] = "standard"
    """How slow start grows and ends; values as of the option of built-in algorithms."""

    @abstractmethod
    def increase(self, cwnd: float, acked: float, path: Path, ack: Ack) -> float:
        """Increase of the window `cwnd` for `acked` acknowledged packets, packets.

        A negative one lowers the window, and the threshold of slow start to it: a delay-based rule
        backs off so. It is not called in slow start, in recovery, or while the window does not
        limit sending.
        """

    @abstractmethod
    def decrease(self, cwnd: float, path: Path, event: CongestionEvent) -> float:
        """New window after congestion at the window `cwnd`, packets; raised to 2 if it is less.

        A window above `cwnd` (or 2) is an error.
        """

    def observe(self, path: Path, ack: Ack) -> None:
        """Called for each acknowledgement, in any state, before the window grows."""

    def on_timeout(self) -> None:
        """Called after a retransmission timeout: forget what was learned about the path."""

    def on_undo(self) -> None:
        """Called when the last decrease was undone, because its loss was spurious."""
