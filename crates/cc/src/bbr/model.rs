//! From rates and times to packets.

use super::version::MIN_CWND;
use dumbbell_units::{Rate, Span};

/// What a packet is, for turning bytes per second into packets in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Payload bytes of a full packet.
    pub mss: f64,
    /// Initial window, packets: what is safe while no round-trip time is known.
    pub initial_window: f64,
}

impl Scale {
    /// Packets that pass in `span` at `bw`.
    #[inline]
    pub fn packets(&self, bw: Rate, span: Span) -> f64 {
        bw.bytes_in(span) / self.mss
    }

    /// `gain` times the bandwidth-delay product, in whole packets, rounded up: rounding down would
    /// lower the next bandwidth sample, and so on.
    #[inline]
    pub fn bdp(&self, bw: Rate, min_rtt: Option<Span>, gain: f64) -> f64 {
        // What is above a whole number by less than this is noise of the multiplication.
        const NOISE: f64 = 1e-6;
        match min_rtt {
            None => self.initial_window,
            Some(rtt) => libm::ceil(self.packets(bw, rtt) * gain - NOISE),
        }
    }

    /// Packets that Linux sends at once at a pacing rate: a millisecond's worth (1/1024 s), at
    /// least `least`, at most what fits into a 64 KiB buffer beside its headers.
    pub fn burst(&self, pacing_rate: Rate, least: f64) -> f64 {
        const BUFFER: f64 = 65_536.0 - 1.0 - 320.0;
        let bytes = (pacing_rate.bytes_per_sec() / 1024.0).min(BUFFER);
        libm::floor(bytes / self.mss).max(least).min(127.0)
    }
}

/// The greatest delivery rate of this ProbeBW cycle and the one before
/// (draft-ietf-ccwg-bbr-06, section 5.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CycleMax {
    before: Rate,
    now: Rate,
}

impl CycleMax {
    /// The greatest rate of both cycles.
    #[inline]
    pub fn get(&self) -> Rate {
        self.before.max(self.now)
    }

    /// Takes a sample.
    #[inline]
    pub fn update(&mut self, rate: Rate) {
        self.now = self.now.max(rate);
    }

    /// A cycle is over: the one before is forgotten, unless there is nothing to replace it.
    pub fn advance(&mut self) {
        if self.now > Rate::ZERO {
            *self = CycleMax { before: self.now, now: Rate::ZERO };
        }
    }
}

/// The window never asks for less than [`MIN_CWND`].
#[inline]
pub fn at_least_minimum(packets: f64) -> f64 {
    packets.max(MIN_CWND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { mss: 1448.0, initial_window: 10.0 };

    #[test]
    fn the_bdp_of_100_packets_a_second_over_100_ms_is_10_packets() {
        let bw = Rate::from_bytes_per_sec(144_800.0);
        assert_eq!(SCALE.bdp(bw, Some(Span::from_millis(100)), 1.0), 10.0);
        assert_eq!(SCALE.bdp(bw, Some(Span::from_millis(100)), 1.25), 13.0);
    }

    #[test]
    fn the_bdp_is_the_initial_window_while_no_round_trip_time_is_known() {
        assert_eq!(SCALE.bdp(Rate::from_bytes_per_sec(1e9), None, 2.0), 10.0);
    }

    #[test]
    fn the_greatest_rate_is_forgotten_after_two_cycles_but_not_for_nothing() {
        let rate = Rate::from_bytes_per_sec;
        let mut max = CycleMax::default();
        max.update(rate(9.0));
        max.advance();
        max.update(rate(5.0));
        assert_eq!(max.get(), rate(9.0));
        max.advance();
        assert_eq!(max.get(), rate(5.0));
        max.advance();
        assert_eq!(max.get(), rate(5.0));
    }

    #[test]
    fn a_burst_is_a_millisecond_of_packets_between_the_least_and_64_kib() {
        assert_eq!(SCALE.burst(Rate::from_bits_per_sec(1e6), 1.0), 1.0);
        assert_eq!(SCALE.burst(Rate::from_bits_per_sec(95.7e6), 2.0), 8.0);
        assert_eq!(SCALE.burst(Rate::from_bits_per_sec(100e9), 2.0), 45.0);
    }
}
