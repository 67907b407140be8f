//! The pacing rate: `gain * bw`, less 1 %.
//!
//! Until the pipe is full the rate only rises, for samples are then too low. It begins at the gain
//! of Startup times the initial window per round-trip time, 1 ms if none is known
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.1; draft-ietf-ccwg-bbr-06, 5.6.2).
//!
//! A packet that pacing has yet to release counts as in flight although it is not in the network.
//! So this also keeps when the next packet will depart, as Linux does (earliest departure time).

use super::model::Scale;
use super::version::{NOMINAL_RTT, PACING_MARGIN};
use dumbbell_units::{Rate, Span, Time};

/// The pacing rate and when it lets the next packet depart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    rate: Rate,
    startup_gain: f64,
    has_seen_rtt: bool,
    departure: Time,
}

impl Pacing {
    /// The rate before any round-trip time is known.
    pub fn new(scale: Scale, startup_gain: f64, now: Time) -> Pacing {
        let rate = Rate::ZERO;
        let mut pacing = Pacing { rate, startup_gain, has_seen_rtt: false, departure: now };
        pacing.begin(scale.initial_window * scale.mss, NOMINAL_RTT);
        pacing
    }

    fn begin(&mut self, window: f64, rtt: Span) {
        // Never faster than a window in a microsecond: a rate must be finite.
        let rtt = rtt.max(Span::from_micros(1));
        self.rate = Rate::from_bytes_in(window, rtt) * self.startup_gain * PACING_MARGIN;
    }

    /// The pacing rate, more than zero.
    #[inline]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Begins anew with the first round-trip time, once.
    #[inline]
    pub fn meet(&mut self, srtt: Option<Span>, cwnd: f64, scale: Scale) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, srtt) {
            self.has_seen_rtt = true;
            self.begin(cwnd * scale.mss, srtt);
        }
    }

    /// Paces at `gain * bw`; `full` is whether the pipe was ever full.
    #[inline]
    pub fn set(&mut self, bw: Rate, gain: f64, full: bool) {
        let rate = bw * gain * PACING_MARGIN;
        if full || rate > self.rate {
            // No sample can be as slow as a byte a second.
            self.rate = rate.max(Rate::from_bytes_per_sec(1.0));
        }
    }

    /// A packet was sent.
    #[inline]
    pub fn on_sent(&mut self, now: Time, scale: Scale) {
        self.departure = self.departure.max(now) + self.rate.time_for(scale.mss);
    }

    /// Packets of `in_flight` that are in the network when the next one departs: less what will
    /// have been delivered until then, plus, if they are to become more, the `burst` that departs.
    #[inline]
    pub fn in_network(
        &self,
        in_flight: u32,
        now: Time,
        bw: Rate,
        burst: Option<f64>,
        scale: Scale,
    ) -> f64 {
        let delivered = libm::floor(scale.packets(bw, self.departure.since(now)));
        (f64::from(in_flight) + burst.unwrap_or(0.0) - delivered).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { mss: 1448.0, initial_window: 10.0 };

    fn mbit(rate: Rate) -> f64 {
        rate.bits_per_sec() / 1e6
    }

    #[test]
    fn the_first_rate_is_the_initial_window_over_the_round_trip_time_times_2_885() {
        let mut pacing = Pacing::new(SCALE, 739.0 / 256.0, Time::ZERO);
        assert!((mbit(pacing.rate()) - 0.99 * 2.885 * 115.84).abs() < 0.3);
        // Linux 6.18 with srtt = 100.298 ms paces at 3.299 Mbit/s.
        pacing.meet(Some(Span::from_micros(100_298)), 10.0, SCALE);
        assert!((mbit(pacing.rate()) - 3.299).abs() < 0.003);
        pacing.meet(Some(Span::from_micros(50_000)), 10.0, SCALE);
        assert!((mbit(pacing.rate()) - 3.299).abs() < 0.003, "only the first one counts");
    }

    #[test]
    fn the_rate_does_not_fall_until_the_pipe_is_full() {
        let mut pacing = Pacing::new(SCALE, 2.885, Time::ZERO);
        pacing.set(Rate::from_bits_per_sec(1e9), 1.0, false);
        assert!((mbit(pacing.rate()) - 990.0).abs() < 1e-9);
        pacing.set(Rate::from_bits_per_sec(1e8), 1.0, false);
        assert!((mbit(pacing.rate()) - 990.0).abs() < 1e-9);
        pacing.set(Rate::from_bits_per_sec(1e8), 1.25, true);
        assert!((mbit(pacing.rate()) - 123.75).abs() < 1e-9);
    }

    #[test]
    fn the_rate_is_never_zero() {
        let mut pacing = Pacing::new(SCALE, 2.885, Time::ZERO);
        pacing.set(Rate::ZERO, 1.0, true);
        assert!(pacing.rate().bytes_per_sec() > 0.0);
        pacing.meet(Some(Span::ZERO), 10.0, SCALE);
        assert!(pacing.rate().bytes_per_sec().is_finite());
    }

    #[test]
    fn packets_that_wait_for_their_departure_are_not_in_the_network() {
        let mut pacing = Pacing::new(SCALE, 2.885, Time::ZERO);
        let bw = Rate::from_bytes_per_sec(1_448_000.0 / 0.99);
        pacing.set(bw, 1.0, true);
        (0..8).for_each(|_| pacing.on_sent(Time::ZERO, SCALE));
        assert_eq!(pacing.in_network(20, Time::ZERO, bw, None, SCALE), 12.0);
        assert_eq!(pacing.in_network(20, Time::ZERO, bw, Some(2.0), SCALE), 14.0);
    }
}
