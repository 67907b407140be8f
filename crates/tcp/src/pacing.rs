//! Pacing and bursts by segmentation offload, as in Linux's `tcp_update_pacing_rate`,
//! `tcp_tso_autosize`, `tcp_tso_should_defer` and `tcp_update_skb_after_send`.

use crate::Stack;
use dumbbell_cc::{ControlParameters, Path};
use dumbbell_units::{Rate, Span, Time};

/// Packets at the start of a connection of which all but the last leave unpaced.
const UNPACED_PACKETS: u64 = 10;
/// Maximum burst by segmentation offload, bytes: 64 KiB less the longest header and 1
/// (`sk_dst_gso_max_size`, `MPTCP_MAX_GSO_SIZE`; `MAX_TCP_HEADER` is 320). A buffer has no more either.
pub(crate) const GSO_MAX_SIZE: u32 = 65_215;
/// Duration of a burst at the pacing rate: 2^-10 s (`sk_pacing_shift`).
const BURST_TIME: f64 = 1.0 / 1024.0;
/// Minimum burst, packets (`tcp_min_tso_segs`).
const MIN_TSO_SEGS: u32 = 2;
/// Maximum wait for a full burst.
const MAX_DEFER: Span = Span::from_millis(1);

/// The pacing rate: the algorithm's own, otherwise Linux's rule for windows
/// (`tcp_update_pacing_rate`): 200 % of max(cwnd, packets_out) * mss / srtt while cwnd is below
/// ssthresh/2, 120 % above. Packets that are still out keep the rate up after a reduction.
#[inline]
pub(crate) fn pacing_rate(
    control: &ControlParameters,
    cwnd: u32,
    packets_out: u32,
    srtt: Option<Span>,
    mss: u32,
) -> Option<Rate> {
    if control.pacing_rate.is_some() {
        return control.pacing_rate;
    }
    let ssthresh = control.ssthresh as u32;
    let ratio = if cwnd < ssthresh / 2 { 2.0 } else { 1.2 };
    let bytes = f64::from(cwnd.max(packets_out)) * f64::from(mss);
    srtt.map(|srtt| Rate::from_bytes_in(bytes * ratio, srtt))
}

/// Packets of a full burst (`tcp_tso_autosize`): a millisecond at the pacing rate, more on very short
/// paths, at most 64 kB.
#[inline]
pub(crate) fn tso_autosize(
    stack: &Stack,
    control: &ControlParameters,
    rate: Rate,
    min_rtt: Span,
) -> u32 {
    if !stack.tso {
        return 1;
    }
    // Short paths add 64 kB, halved for each 512 us of round trip (`tcp_tso_rtt_log`).
    let halvings = (min_rtt.as_micros() >> 9).min(31);
    let near = f64::from(GSO_MAX_SIZE >> halvings);
    let bytes = (rate.bytes_per_sec() * BURST_TIME + near).min(f64::from(GSO_MAX_SIZE));
    let packets = (bytes / f64::from(stack.mss)) as u32;
    packets
        .max(control.min_send_quantum.unwrap_or(MIN_TSO_SEGS))
        .min(control.max_send_quantum.unwrap_or(u32::MAX))
}

/// Whether an acknowledgement is expected within a millisecond, and no burst could have departed for a
/// millisecond: then one that is not full may wait (`tcp_tso_should_defer`).
#[inline]
pub(crate) fn is_ack_near(path: &Path, oldest_sent_at: Option<Time>) -> bool {
    if path.now.since(path.departure) > MAX_DEFER {
        return false;
    }
    let Some(oldest) = oldest_sent_at else { return false };
    let srtt = path.srtt.unwrap_or(Span::ZERO);
    oldest + srtt <= path.now + MAX_DEFER.min(srtt / 2)
}

/// When the burst after one that leaves now departs (`tcp_update_skb_after_send`): after `length`, the
/// time that this one takes at the pacing rate, less its lateness, which counts up to half of that.
/// At once if nothing is paced, and while `sent` includes only the first packets.
#[inline]
pub(crate) fn next_departure(path: &Path, length: Option<Span>, sent: u64) -> Time {
    let departs = path.departure.max(path.now);
    let Some(length) = length.filter(|_| sent >= UNPACED_PACKETS) else { return departs };
    let late = departs.since(path.departure);
    departs + length.saturating_sub(late.min(length / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(ssthresh: f64) -> ControlParameters {
        ControlParameters::new(100.0).with_ssthresh(ssthresh)
    }

    #[test]
    fn windows_are_paced_at_200_percent_in_slow_start_and_then_at_120() {
        let srtt = Some(Span::from_millis(100));
        let window_rate = 100.0 * 1448.0 / 0.1;
        let slow =
            pacing_rate(&control(f64::INFINITY), 100, 90, srtt, 1448).expect("srtt is known");
        assert!((slow.bytes_per_sec() - 2.0 * window_rate).abs() < 1.0);
        let fast = pacing_rate(&control(150.0), 100, 90, srtt, 1448).expect("srtt is known");
        assert!((fast.bytes_per_sec() - 1.2 * window_rate).abs() < 1.0);
    }

    /// tcp_update_pacing_rate: `snd_cwnd < snd_ssthresh / 2` decides the ratio, whatever is out, and
    /// the division truncates.
    #[test]
    fn the_window_alone_decides_between_200_and_120_percent() {
        let srtt = Some(Span::from_millis(100));
        let ratio = |cwnd, ssthresh, packets_out| {
            let rate = pacing_rate(&control(ssthresh), cwnd, packets_out, srtt, 1448);
            let packets = f64::from(packets_out.max(cwnd));
            rate.expect("srtt is known").bytes_per_sec() / (packets * 1448.0 / 0.1)
        };
        // After a timeout: the window is 1, and 100 packets are still out.
        assert!((ratio(1, 50.0, 100) - 2.0).abs() < 1e-6);
        assert!((ratio(24, 51.0, 10) - 2.0).abs() < 1e-6);
        assert!((ratio(25, 51.0, 10) - 1.2).abs() < 1e-6, "25 is not below 51 / 2");
    }

    #[test]
    fn a_burst_at_120_mbit_on_a_long_path_is_ten_packets() {
        let stack = Stack::linux();
        let size = |mbit: f64| {
            let rate = Rate::from_bits_per_sec(mbit * 1e6);
            tso_autosize(&stack, &control(2.0), rate, Span::from_millis(100))
        };
        assert_eq!(size(120.0), 10);
        assert_eq!(size(1.0), 2, "never fewer than two");
        assert_eq!(size(10_000.0), 45, "never more than 64 kB");
    }

    #[test]
    fn a_late_burst_advances_the_next_by_half_its_length_at_most() {
        let length = Some(Span::from_millis(1));
        let mut path = Path::new(1448, Time::from_nanos(10_000_000));
        path.departure = Time::ZERO;
        path.departure = next_departure(&path, length, 100);
        assert_eq!(path.departure, Time::from_nanos(10_500_000));
        path.now = Time::from_nanos(10_600_000);
        path.departure = next_departure(&path, length, 101);
        assert_eq!(path.departure, Time::from_nanos(11_500_000));
    }

    /// A retransmission by a timer does not wait for pacing.
    #[test]
    fn a_burst_before_its_departure_postpones_the_next_by_its_length() {
        let mut path = Path::new(1448, Time::from_nanos(5));
        path.departure = Time::from_nanos(7);
        assert_eq!(next_departure(&path, Some(Span::from_nanos(10)), 100), Time::from_nanos(17));
    }

    #[test]
    fn the_first_nine_packets_are_not_paced() {
        let mut path = Path::new(1448, Time::from_nanos(5));
        path.departure = path.now;
        let length = Some(Span::from_millis(1));
        assert_eq!(next_departure(&path, length, 9), Time::from_nanos(5));
        assert_eq!(next_departure(&path, length, 10), Time::from_nanos(1_000_005));
    }
}
