"""What theory expects of a flow: response functions, Padhye's rate, Ware's share for BBR.

A response function gives the average window in packets of one flow whose packets are lost with a
probability ``loss``. Most assume *periodic* losses, one after every ``1/loss`` packets; where
losses are independent the average differs, and `reno` says by how much. A window becomes a rate by
`rate`. `scripts/pages/theory_page.py` compares them with the simulator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PERIODIC: Final = {1: math.sqrt(3 / 2), 2: math.sqrt(3 / 4)}
"""Mathis's constant C for periodic losses, by packets per acknowledgement that opens the window."""

RANDOM: Final = {1: 1.31, 2: 0.93}
"""Mathis's constant C for independent losses, by packets per acknowledgement."""


def rate(window: float, rtt: float, mss: int = 1448) -> float:
    """The payload rate of a flow with an average window, bit/s.

    Formula: ``8 * mss * window / rtt``.

    Args:
        window: Average window, packets.
        rtt: Round-trip time, s.
        mss: Payload of a packet, bytes.
    """
    return 8 * mss * window / _positive("rtt", rtt)


def reno(loss: float, *, acked: int = 1, independent: bool = False) -> float:
    """Reno's average window, packets: Mathis's formula.

    Formula: ``C / sqrt(loss)``. Source: Mathis, Semke, Mahdavi, Ott: "The Macroscopic Behavior of
    the TCP Congestion Avoidance Algorithm", CCR 27(3), 1997, equation 3 and table 1.

    Args:
        loss: Probability that a packet is lost.
        acked: Packets for each acknowledgement that opens the window: 1, or 2 with delayed
            acknowledgements that are counted one by one.
        independent: Whether losses are independent of each other rather than periodic.
    """
    constants = RANDOM if independent else PERIODIC
    if acked not in constants:
        raise ValueError(f"acked: {acked} is neither 1 nor 2 packets an acknowledgement")
    return constants[acked] / math.sqrt(_probability(loss))


def pftk(loss: float, rtt: float, *, rto: float, acked: int = 1, most: float = math.inf) -> float:
    """Reno's average window with timeouts, packets: Padhye's approximate model.

    Formula, as a rate times the round-trip time:
    ``min(most, rtt / (rtt sqrt(2 b p / 3) + rto min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2)))`` with
    ``p`` the loss and ``b`` the packets per acknowledgement. Source: Padhye, Firoiu, Towsley,
    Kurose: "Modeling TCP Throughput: A Simple Model and its Empirical Validation", SIGCOMM 1998,
    the approximate model; RFC 5348 section 3.1 has it without the two minima.

    Args:
        loss: Probability that a loss event begins with a packet.
        rtt: Round-trip time, s.
        rto: Retransmission timeout, s.
        acked: Packets per acknowledgement (b).
        most: Largest window, packets.
    """
    p, b = _probability(loss), acked
    congestion = math.sqrt(2 * b * p / 3)
    timeouts = min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return min(most, 1 / (congestion + _positive("rto", rto) / _positive("rtt", rtt) * timeouts))


def hstcp(loss: float) -> float:
    """HighSpeed TCP's average window, packets.

    Formula: ``max(0.12 / loss^0.835, 1.2 / sqrt(loss))``: above a loss of 1e-3 it is Reno's, as
    this document rounds it. Source: RFC 3649, section 5, with Low_Window 38, High_Window 83000,
    Low_P 1e-3, High_P 1e-7.
    """
    p = _probability(loss)
    standard = 1.2 / math.sqrt(p)
    return standard if p >= 1e-3 else 0.12 / math.pow(p, 0.835)


def stcp(loss: float, *, a: float = 0.01, b: float = 0.125, over_time: bool = False) -> float:
    """Scalable TCP's average window, packets.

    Formula: ``a / (b loss)``, 0.08 / loss with the usual values, but Reno's up to its legacy window
    of 16 packets. Source: Kelly: "Scalable TCP: Improving Performance in Highspeed Wide Area
    Networks", CCR 33(2), 2003, section 3. This is the average seen by packets. Over time it
    is ``a / (-ln(1 - b) loss)``, 6 % less: the logarithm of the window grows by ``a`` a round trip
    and falls by ``-ln(1 - b)`` at a loss, whatever the losses' distribution.

    Args:
        loss: Probability that a packet is lost.
        a: Packets by which the window grows for each packet acknowledged; half of it where delayed
            acknowledgements are counted one by one.
        b: Share of the window that is given up at a loss.
        over_time: Whether to give the average over time, from which a rate follows.
    """
    window = a / ((-math.log1p(-b) if over_time else b) * _probability(loss))
    return window if window > 16 else min(reno(loss), 16.0)


def bic(
    loss: float, *, s_max: float = 32.0, s_min: float = 0.01, b: float = 0.125, acked: int = 1
) -> float:
    """BIC's average window, packets.

    Formula: with ``W`` the window at a loss, the deficit ``b W`` is closed by ``n1`` steps of
    `s_max` packets a round trip, and the rest of it by halving it every round trip until it is
    below `s_min`, ``n2`` steps. The number of packets of both phases is ``1 / loss``, which gives
    ``W``; the average is ``1 / (loss (n1 + n2))``, but Reno's up to the low window of 14 packets.
    Source: Xu, Harfoush, Rhee: "Binary Increase
    Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM 2004, section IV.

    Args:
        loss: Probability that a packet is lost.
        s_max: Largest increment, packets a round trip.
        s_min: Smallest increment, packets a round trip.
        b: Share of the window that is given up at a loss.
        acked: Packets per acknowledgement that opens the window; it stretches all growth.
    """
    wanted = 1 / (acked * _probability(loss))
    window = _average(wanted, lambda w: _bic_cycle(w, s_max, s_min, b))
    return window if window > 14 else min(reno(loss, acked=acked), 14.0)


def bic_linux(
    loss: float, *, s_max: float = 16.0, b: float = 1 - 819 / 1024, smooth: float = 20.0
) -> float:
    """The average window of Linux's BIC, packets, which searches in smaller steps than the paper's.

    Formula: as `bic`, with the cycle of ``tcp_bic.c``: with ``d`` the distance to the window at the
    last loss, ``s_max`` packets a round trip while ``d / 4`` is more than that, then ``d / 4`` down
    to ``d`` = 8, then ``4 / smooth``; so that the last 8 packets take ``2 smooth`` round trips.

    Args:
        loss: Probability that a packet is lost.
        s_max: Largest increment, packets a round trip (``max_increment``).
        b: Share of the window that is given up at a loss.
        smooth: Round trips for 4 packets near the window at the last loss (``smooth_part``).
    """
    window = _average(1 / _probability(loss), lambda w: _linux_cycle(w, s_max, b, smooth))
    return window if window > 14 else min(reno(loss), 14.0)


def cubic(loss: float, rtt: float, *, c: float = 0.4, beta: float = 0.7) -> float:
    """CUBIC's average window, packets.

    Formula: ``(c (3 + beta) / (4 (1 - beta)))^(1/4) (rtt / loss)^(3/4)``, but at least Reno's
    ``1.2 / sqrt(loss)``. Source: RFC 9438, section 5.1, equation 5 and tables 1 and 2.

    Args:
        loss: Probability that a packet is lost.
        rtt: Round-trip time, s.
        c: How fast the cubic grows, packets/s^3.
        beta: Share of the window that is kept at a loss.
    """
    p = _probability(loss)
    scale = math.pow(c * (3 + beta) / (4 * (1 - beta)), 0.25)
    concave = scale * math.pow(_positive("rtt", rtt) / p, 0.75)
    return max(concave, 1.2 / math.sqrt(p))


def bbr_share(
    buffer: float, queue: float, *, flows: int = 1, rtt: float, rate: float, duration: float
) -> float:
    """The share of a link that BBRv1 flows get beside any number of loss-based flows.

    Formula: the loss-based flows have ``p = 1/2 - 1/(2 buffer) - 4 flows / queue``; BBR has
    ``(1 - p) (duration - probing) / duration`` with ``probing = (queue/rate + 0.2 s + rtt)
    duration / 10 s``. Source: Ware, Mukerjee, Seshan, Sherry: "Modeling BBR's Interactions with
    Loss-Based Congestion Control", IMC 2019, section 5. It follows from BBR's cap of two
    estimated bandwidth-delay products in flight, with 4 packets of each flow and the other flows'
    queue in the way of estimating the delay.

    Args:
        buffer: The queue's capacity, bandwidth-delay products; at least 1.
        queue: The queue's capacity, packets.
        flows: BBR flows.
        rtt: Round-trip time without a queue, s.
        rate: The link's rate, packets/s.
        duration: How long they share it, s.

    Raises:
        ValueError: If the buffer is below 1 BDP, where the model does not hold.
    """
    if buffer < 1:
        raise ValueError(f"buffer: the model does not hold below 1 BDP, and this is {buffer:g}")
    others = 0.5 - 1 / (2 * buffer) - 4 * flows / _positive("queue", queue)
    probing = (queue / rate + 0.2 + rtt) * duration / 10
    return (1 - max(others, 0.0)) * max(duration - probing, 0.0) / duration


def _bic_cycle(w: float, s_max: float, s_min: float, b: float) -> tuple[float, float]:
    """Packets and round trips between two losses at window `w`, steps taken as continuous."""
    deficit = b * w
    n1 = max(deficit / s_max - 2, 0.0)
    climbed = n1 * s_max
    rest = deficit - climbed
    n2 = max(math.log2(rest / s_min) + 2, 1.0)
    linear = n1 * (w - deficit + climbed / 2)
    search = w * n2 - 2 * rest + s_min
    return linear + search, n1 + n2


def _linux_cycle(w: float, s_max: float, b: float, smooth: float) -> tuple[float, float]:
    """Packets and round trips between two losses at window `w` of Linux's BIC."""
    deficit, near = b * w, 8.0
    far = min(max(deficit, near), 4 * s_max)
    n1 = max(deficit - far, 0.0) / s_max
    n2 = math.log(far / near) / math.log(4 / 3)
    last = min(deficit, near)
    n3 = last * smooth / 4
    packets = n1 * (w - (deficit + far) / 2) + n2 * w - 4 * (far - near) + n3 * (w - last / 2)
    return packets, n1 + n2 + n3


def _average(wanted: float, cycle: Callable[[float], tuple[float, float]]) -> float:
    """The average window of the cycle that has `wanted` packets: packets over round trips."""
    low, high = 1.0, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cycle(middle)[0] < wanted else (low, middle)
    return wanted / cycle(low)[1]


def _probability(loss: float) -> float:
    if not 0 < loss <= 1:
        raise ValueError(f"loss: {loss:g} is not a probability above 0")
    return loss


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name}: {value:g} is not above 0")
    return value
