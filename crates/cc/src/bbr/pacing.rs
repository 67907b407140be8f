//! The pacing rate, the size of bursts, and what pacing holds back.
//!
//! The rate is `gain * bw`, less 1 %. Until the pipe is full it only rises, for samples are then too
//! low. It begins at Startup's gain times the initial window per round-trip time, 1 ms if none is
//! known (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.1; draft-ietf-ccwg-bbr-06,
//! section 5.6.2).
//!
//! A packet that pacing has yet to release counts as in flight although it is not in the network.

use super::model::packets_in;
use super::version::{NOMINAL_RTT, PACING_MARGIN_PERCENT};
use crate::Path;
use dumbbell_units::{Rate, Span};

/// Share of the bandwidth at which to pace.
const MARGIN: f64 = (100.0 - PACING_MARGIN_PERCENT) / 100.0;

/// The pacing rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// The pacing rate, more than zero.
    pub pacing_rate: Rate,
    startup_pacing_gain: f64,
    has_seen_rtt: bool,
}

impl Pacing {
    /// InitPacingRate, before any round-trip time is known.
    pub fn new(init_cwnd: f64, mss: f64, startup_pacing_gain: f64) -> Pacing {
        let pacing_rate = Rate::ZERO;
        let mut pacing = Pacing { pacing_rate, startup_pacing_gain, has_seen_rtt: false };
        pacing.init_pacing_rate(init_cwnd * mss, NOMINAL_RTT);
        pacing
    }

    fn init_pacing_rate(&mut self, bytes: f64, rtt: Span) {
        // At most a window in a microsecond: a rate must be finite.
        let nominal_bandwidth = Rate::from_bytes_in(bytes, rtt.max(Span::from_micros(1)));
        self.pacing_rate = nominal_bandwidth * self.startup_pacing_gain * MARGIN;
    }

    /// Sets the rate anew from the first round-trip time, once.
    #[inline]
    pub fn init_pacing_rate_from_rtt(&mut self, srtt: Option<Span>, cwnd: f64, mss: f64) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, srtt) {
            self.has_seen_rtt = true;
            self.init_pacing_rate(cwnd * mss, srtt);
        }
    }

    /// SetPacingRateWithGain.
    #[inline]
    pub fn set_pacing_rate_with_gain(&mut self, bw: Rate, gain: f64, full_bw_reached: bool) {
        let rate = bw * gain * MARGIN;
        if full_bw_reached || rate > self.pacing_rate {
            // No sample can be as slow as a byte a second.
            self.pacing_rate = rate.max(Rate::from_bytes_per_sec(1.0));
        }
    }

    /// Minimum packets in a burst: 1 below `min_tso_rate` (bit/s), else 2.
    #[inline]
    pub fn min_tso_segs(&self, min_tso_rate: f64) -> f64 {
        if self.pacing_rate.bits_per_sec() < min_tso_rate { 1.0 } else { 2.0 }
    }

    /// Packets in a burst: what the pacing rate delivers in 1/1024 s, at least `min_tso_segs`, at most
    /// what fits into a buffer of 64 KiB beside its headers (Linux `bbr_tso_segs_goal`).
    pub fn send_quantum(&self, min_tso_segs: f64, mss: f64) -> f64 {
        const BUFFER: f64 = 65_536.0 - 1.0 - 320.0;
        let bytes = (self.pacing_rate.bytes_per_sec() / 1024.0).min(BUFFER);
        libm::floor(bytes / mss).max(min_tso_segs).min(127.0)
    }
}

/// Estimated packets in the network at the next packet's earliest departure time (Linux
/// `bbr_packets_in_net_at_edt`): `in_flight - bw * (EDT - now)`, plus the `departing` burst.
#[inline]
pub fn packets_in_net_at_edt(path: &Path, in_flight: u32, bw: Rate, departing: f64) -> f64 {
    let held_back = path.departure.since(path.now);
    let delivered = libm::floor(packets_in(bw, held_back, f64::from(path.mss)));
    (f64::from(in_flight) + departing - delivered).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    const MSS: f64 = 1448.0;

    fn pacing(startup_pacing_gain: f64) -> Pacing {
        Pacing::new(10.0, MSS, startup_pacing_gain)
    }

    fn mbit(pacing: &Pacing) -> f64 {
        pacing.pacing_rate.bits_per_sec() / 1e6
    }

    #[test]
    fn the_first_rate_is_the_initial_window_per_round_trip_time_times_2_885() {
        let mut pacing = pacing(739.0 / 256.0);
        assert!((mbit(&pacing) - 0.99 * 2.885 * 115.84).abs() < 0.3);
        // Linux 6.18 with srtt = 100.298 ms paces at 3.299 Mbit/s.
        pacing.init_pacing_rate_from_rtt(Some(Span::from_micros(100_298)), 10.0, MSS);
        assert!((mbit(&pacing) - 3.299).abs() < 0.003);
        pacing.init_pacing_rate_from_rtt(Some(Span::from_micros(50_000)), 10.0, MSS);
        assert!((mbit(&pacing) - 3.299).abs() < 0.003, "only the first one counts");
    }

    #[test]
    fn the_rate_does_not_fall_until_the_pipe_is_full() {
        let mut pacing = pacing(2.885);
        pacing.set_pacing_rate_with_gain(Rate::from_bits_per_sec(1e9), 1.0, false);
        assert!((mbit(&pacing) - 990.0).abs() < 1e-9);
        pacing.set_pacing_rate_with_gain(Rate::from_bits_per_sec(1e8), 1.0, false);
        assert!((mbit(&pacing) - 990.0).abs() < 1e-9);
        pacing.set_pacing_rate_with_gain(Rate::from_bits_per_sec(1e8), 1.25, true);
        assert!((mbit(&pacing) - 123.75).abs() < 1e-9);
    }

    #[test]
    fn the_rate_is_never_zero() {
        let mut pacing = pacing(2.885);
        pacing.set_pacing_rate_with_gain(Rate::ZERO, 1.0, true);
        assert!(pacing.pacing_rate.bytes_per_sec() > 0.0);
        pacing.init_pacing_rate_from_rtt(Some(Span::ZERO), 10.0, MSS);
        assert!(pacing.pacing_rate.bytes_per_sec().is_finite());
    }

    #[test]
    fn a_burst_is_a_millisecond_of_packets_between_the_minimum_and_64_kib() {
        let mut pacing = pacing(2.885);
        for (mbit, min_tso_segs, burst) in [(1.0, 1.0, 1.0), (95.7, 2.0, 8.0), (1e5, 2.0, 45.0)] {
            pacing.pacing_rate = Rate::from_bits_per_sec(mbit * 1e6);
            assert_eq!(pacing.send_quantum(min_tso_segs, MSS), burst);
        }
    }

    #[test]
    fn packets_that_wait_for_their_departure_are_not_in_the_network() {
        let bw = Rate::from_bytes_per_sec(1_448_000.0);
        let mut path = Path::new(1448, Time::ZERO);
        (0..8).for_each(|_| path.pace(bw));
        assert_eq!(packets_in_net_at_edt(&path, 20, bw, 0.0), 12.0);
        assert_eq!(packets_in_net_at_edt(&path, 20, bw, 2.0), 14.0);
    }
}
