//! ECN, as Google's Linux branch of BBRv3 heeds it; the draft leaves it open.
//!
//! On paths of at most 5 ms, where marks come early, `alpha` is a moving average of the share of
//! marked packets, round by round, as in DCTCP. A round with marks leaves `1 - alpha / 3` of the
//! short-term volume; more than half of a flight marked means that too much was in flight; two such
//! rounds in a row end Startup. Elsewhere marks are ignored.

use super::version::{ECN_ALPHA_GAIN, ECN_FACTOR, ECN_FULL_ROUNDS, ECN_MAX_RTT, ECN_THRESH};
use crate::{Ack, RateSample};
use dumbbell_units::Span;

/// The share of marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    enabled: bool,
    eligible: bool,
    alpha: f64,
    delivered: f64,
    marked: f64,
    high_rounds: u32,
}

impl Ecn {
    /// Assumes the worst (`alpha` is 1), for a flow that starts into congestion.
    pub fn new(enabled: bool) -> Ecn {
        Ecn { enabled, eligible: false, alpha: 1.0, delivered: 0.0, marked: 0.0, high_rounds: 0 }
    }

    /// Whether marks are heeded on this path.
    #[inline]
    pub fn is_heeded(&self) -> bool {
        self.eligible
    }

    /// Counts what was delivered and marked.
    #[inline]
    pub fn observe(&mut self, ack: &Ack) {
        self.delivered += f64::from(ack.delivered);
        self.marked += f64::from(ack.marked);
    }

    /// A round is over.
    pub fn end_round(&mut self, min_rtt: Option<Span>) {
        self.eligible |= self.enabled && min_rtt.is_some_and(|rtt| rtt <= ECN_MAX_RTT);
        if !self.eligible || self.delivered == 0.0 {
            return;
        }
        let share = (self.marked / self.delivered).min(1.0);
        self.alpha += ECN_ALPHA_GAIN * (share - self.alpha);
        self.high_rounds = if share >= ECN_THRESH { self.high_rounds + 1 } else { 0 };
        (self.delivered, self.marked) = (0.0, 0.0);
    }

    /// Whether marks show that Startup filled the pipe.
    pub fn is_full(&self) -> bool {
        self.high_rounds >= ECN_FULL_ROUNDS
    }

    /// What a round with marks leaves of the short-term volume.
    pub fn cut(&self) -> f64 {
        1.0 - self.alpha * ECN_FACTOR
    }

    /// Whether the marks of a flight show that too much was in flight.
    #[inline]
    pub fn is_too_high(&self, rate: &RateSample) -> bool {
        self.eligible && f64::from(rate.marked) > ECN_THRESH * f64::from(rate.delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ecn: &mut Ecn, delivered: u32, marked: u32) {
        ecn.observe(&Ack { delivered, marked, ..Ack::default() });
        ecn.end_round(Some(Span::from_millis(5)));
    }

    #[test]
    fn alpha_moves_by_a_16th_towards_the_share_of_marks() {
        let mut ecn = Ecn::new(true);
        round(&mut ecn, 100, 0);
        assert_eq!(ecn.alpha, 15.0 / 16.0);
        round(&mut ecn, 100, 100);
        assert_eq!(ecn.alpha, 15.0 / 16.0 + 1.0 / 256.0);
    }

    #[test]
    fn all_packets_marked_cost_a_third() {
        assert!((Ecn::new(true).cut() - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn two_rounds_in_a_row_with_half_of_the_packets_marked_show_a_full_pipe() {
        let mut ecn = Ecn::new(true);
        round(&mut ecn, 100, 50);
        round(&mut ecn, 100, 49);
        round(&mut ecn, 100, 50);
        assert!(!ecn.is_full());
        round(&mut ecn, 100, 50);
        assert!(ecn.is_full());
    }

    #[test]
    fn marks_are_ignored_on_paths_longer_than_5_ms_or_when_off() {
        for (enabled, rtt_us, heeded) in
            [(true, 5000, true), (true, 5001, false), (false, 1, false)]
        {
            let mut ecn = Ecn::new(enabled);
            ecn.observe(&Ack { delivered: 10, marked: 10, ..Ack::default() });
            ecn.end_round(Some(Span::from_micros(rtt_us)));
            assert_eq!(ecn.is_heeded(), heeded);
        }
    }
}
