"""Theory: the formulas give the numbers of the papers and RFCs that they come from."""

from __future__ import annotations

import math

import pytest
import theory_page

import dumbbell
from dumbbell import theory

LOSSES = [10.0**-k for k in range(2, 9)]

# RFC 3649, section 5: tables of the response functions of standard TCP and HighSpeed TCP.
STANDARD = [12, 38, 120, 379, 1200, 3795, 12000]
HIGH_SPEED = [12, 38, 263, 1795, 12279, 83981, 574356]

# RFC 9438, section 5.1: average windows of CUBIC with C = 0.4 at RTT 0.1 s and 0.01 s.
CUBIC_100_MS = [12, 38, 187, 1054, 5926, 33325, 187400]
CUBIC_10_MS = [12, 38, 120, 379, 1200, 5926, 33325]


def test_the_windows_of_highspeed_tcp_are_those_of_rfc_3649() -> None:
    for loss, window in zip(LOSSES, HIGH_SPEED, strict=True):
        assert theory.hstcp(loss) == pytest.approx(window, abs=0.5 + 1e-4 * window)


def test_mathis_is_within_rounding_of_the_standard_tcp_of_rfc_3649() -> None:
    for loss, window in zip(LOSSES, STANDARD, strict=True):
        assert theory.reno(loss) == pytest.approx(window, rel=0.025)


def test_the_constants_of_mathis_are_those_of_his_table() -> None:
    assert theory.reno(1e-4) == pytest.approx(122, rel=0.005)
    assert theory.reno(1e-4, acked=2) == pytest.approx(87, rel=0.005)
    assert theory.reno(1e-4, independent=True) == pytest.approx(131)
    assert theory.reno(1e-4, acked=2, independent=True) == pytest.approx(93)


@pytest.mark.parametrize(("rtt", "table"), [(0.1, CUBIC_100_MS), (0.01, CUBIC_10_MS)])
def test_the_windows_of_cubic_are_those_of_rfc_9438(rtt: float, table: list[int]) -> None:
    for loss, window in zip(LOSSES, table, strict=True):
        assert theory.cubic(loss, rtt) == pytest.approx(window, abs=0.5 + 1e-3 * window)


def test_cubic_of_rfc_9438_is_1_054_times_the_power_of_three_quarters() -> None:
    assert theory.cubic(1e-6, 0.1) == pytest.approx(1.054 * 1e5**0.75, rel=5e-4)


def test_scalable_tcp_has_a_window_of_0_08_over_the_loss() -> None:
    for loss in LOSSES[1:]:
        assert theory.stcp(loss) * loss == pytest.approx(0.08)


def test_over_time_scalable_tcp_has_what_its_logarithm_says() -> None:
    """Between two periodic losses: packets over round trips, `w` growing by 1 % in each."""
    trips = math.log(8 / 7) / 0.01
    peak = 1e6 / (0.125 / 0.01)  # packets of a cycle: peak * 0.125 / 0.01
    assert theory.stcp(1e-6, over_time=True) == pytest.approx(peak * 12.5 / trips)


def test_scalable_tcp_and_bic_are_reno_in_their_low_windows() -> None:
    assert theory.stcp(0.01) == theory.bic(0.01) == theory.reno(0.01)


def test_padhye_without_timeouts_is_mathis() -> None:
    for acked in (1, 2):
        assert theory.pftk(1e-9, 0.1, rto=0.2, acked=acked) == pytest.approx(
            theory.reno(1e-9, acked=acked), rel=1e-3
        )


def test_padhye_is_the_equation_of_rfc_5348_where_timeouts_are_rare() -> None:
    p, rtt, rto = 0.01, 0.1, 0.4
    bytes_per_second = 1460 / (
        rtt * math.sqrt(2 * p / 3) + rto * (3 * math.sqrt(3 * p / 8)) * p * (1 + 32 * p**2)
    )
    assert theory.pftk(p, rtt, rto=rto) * 1460 / rtt == pytest.approx(bytes_per_second)


def test_padhye_never_passes_the_largest_window() -> None:
    assert theory.pftk(1e-6, 0.1, rto=0.2, most=64) == 64


def test_every_packet_between_two_losses_of_bic_is_in_one_of_its_phases() -> None:
    """Counts round trips of the rule itself: halve the deficit, by s_max at most."""
    for loss in (1e-5, 1e-6, 1e-7):
        top = 1.0
        while _packets_of_bic(top) < 1 / loss:
            top *= 1.001
        window, packets, trips = 0.875 * top, 0.0, 0
        while top - window > 0.01:
            packets, trips = packets + window, trips + 1
            window += min((top - window) / 2, 32.0)
        assert theory.bic(loss) == pytest.approx(packets / trips, rel=0.05)


def test_every_packet_between_two_losses_of_linux_s_bic_is_in_one_of_its_phases() -> None:
    for loss in (1e-4, 1e-5, 1e-6):
        average = theory.bic_linux(loss)
        top = average
        while _cycle_of_linux_bic(top)[0] < 1 / loss:
            top *= 1.0005
        packets, trips = _cycle_of_linux_bic(top)
        assert average == pytest.approx(packets / trips, rel=0.03)


def _cycle_of_linux_bic(top: float) -> tuple[float, int]:
    window, packets, trips = 819 / 1024 * top, 0.0, 0
    while top - window > 0:
        packets, trips = packets + window, trips + 1
        window += 0.2 if top - window < 8 else min((top - window) / 4, 16.0)
    return packets, trips


def _packets_of_bic(top: float) -> float:
    window, packets = 0.875 * top, 0.0
    while top - window > 0.01:
        packets += window
        window += min((top - window) / 2, 32.0)
    return packets


def test_bbr_beside_loss_based_flows_fills_the_cap_of_two_bdp_in_flight() -> None:
    """The fixed point of Ware's model: what BBR has in flight is twice its estimated BDP."""
    rtt, rate, queue = 0.04, 1000.0, 320.0
    share = theory.bbr_share(queue / (rate * rtt), queue, rtt=rtt, rate=rate, duration=400)
    lost_to_probing = 1 - (queue / rate + 0.2 + rtt) / 10
    others = 1 - share / lost_to_probing
    estimated = rtt + (others * queue + 4) / rate
    in_flight = (1 - others) * (queue + rate * rtt)
    assert in_flight == pytest.approx(2 * (1 - others) * rate * estimated)


def test_bbr_has_more_than_half_of_a_deep_queue_but_for_its_probing() -> None:
    share = theory.bbr_share(64, 64_000, rtt=0.1, rate=10_000, duration=120)
    assert share == pytest.approx((0.5 + 1 / 128 + 4 / 64_000) * (1 - (6.4 + 0.3) / 10))


def test_the_model_of_bbr_is_refused_below_one_bdp() -> None:
    with pytest.raises(ValueError, match="does not hold below 1 BDP"):
        theory.bbr_share(0.5, 50, rtt=0.1, rate=1000, duration=100)


@pytest.mark.parametrize("loss", [0.0, -1.0, 1.5, math.nan])
def test_a_loss_that_is_no_probability_is_refused(loss: float) -> None:
    for window in (theory.reno, theory.hstcp, theory.stcp, theory.bic):
        with pytest.raises(ValueError, match="loss"):
            window(loss)


def test_a_window_of_one_packet_a_second_is_its_bits() -> None:
    assert theory.rate(1, 1.0, mss=1500) == 12_000


@pytest.mark.parametrize("cc", ["reno", "hstcp", "stcp", "bic", "cubic"])
def test_the_simulator_is_within_a_tenth_of_the_response_functions_at_1e_5(cc: str) -> None:
    case = [c for c in theory_page.CASES if c.cc.startswith(cc) and not c.independent][-1]
    result = dumbbell.run(theory_page.experiment(case, 1e-5))
    assert theory_page.windows(result) == [pytest.approx(case.window(1e-5), rel=0.1)]


def test_every_experiment_of_the_page_is_valid() -> None:
    for case in theory_page.CASES:
        for loss in theory_page.LOSSES:
            theory_page.experiment(case, loss).resolve()
