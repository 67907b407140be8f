//! BBR's response to ECN, which the draft leaves open, as in Google's Linux branch `v3`.
//!
//! Only on paths of at most 5 ms unless `ecn_max_rtt` says more: there marks come early. `ecn_alpha` is a moving average of the share
//! of marked packets per round, as in DCTCP. A round with marks multiplies `inflight_shortterm` by
//! `1 - ecn_alpha / 3`. More than half of a flight marked means that too much was in flight; two such
//! rounds in a row end Startup.

use super::version::{ECN_ALPHA_GAIN, ECN_FACTOR, ECN_THRESH, FULL_ECN_COUNT};
use crate::{Ack, RateSample};
use dumbbell_units::Span;

/// The share of marked packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    enabled: bool,
    max_rtt: Span,
    ecn_eligible: bool,
    ecn_alpha: f64,
    delivered: f64,
    delivered_ce: f64,
    startup_ecn_rounds: u32,
}

impl Ecn {
    /// A flow that responds to marks, if it does, on paths of at most `max_rtt`. `ecn_alpha` begins at
    /// 1, for a flow that starts into congestion.
    pub fn new(enabled: bool, max_rtt: Span) -> Ecn {
        Ecn {
            enabled,
            max_rtt,
            ecn_eligible: false,
            ecn_alpha: 1.0,
            delivered: 0.0,
            delivered_ce: 0.0,
            startup_ecn_rounds: 0,
        }
    }

    /// Whether the flow responds to marks on this path.
    #[inline]
    pub fn is_eligible(&self) -> bool {
        self.ecn_eligible
    }

    /// Counts what an acknowledgement delivered.
    #[inline]
    pub fn count(&mut self, ack: &Ack) {
        self.delivered += f64::from(ack.delivered);
        self.delivered_ce += f64::from(ack.marked);
    }

    /// A round is over.
    pub fn update_ecn_alpha(&mut self, min_rtt: Option<Span>) {
        self.ecn_eligible |= self.enabled && min_rtt.is_some_and(|rtt| rtt <= self.max_rtt);
        if !self.ecn_eligible || self.delivered == 0.0 {
            return;
        }
        let ce_ratio = (self.delivered_ce / self.delivered).min(1.0);
        self.ecn_alpha += ECN_ALPHA_GAIN * (ce_ratio - self.ecn_alpha);
        let is_high = ce_ratio >= ECN_THRESH;
        self.startup_ecn_rounds = if is_high { self.startup_ecn_rounds + 1 } else { 0 };
        (self.delivered, self.delivered_ce) = (0.0, 0.0);
    }

    /// Whether marks show that Startup has filled the pipe.
    pub fn is_too_high_in_startup(&self) -> bool {
        self.startup_ecn_rounds >= FULL_ECN_COUNT
    }

    /// Factor by which a round with marks multiplies `inflight_shortterm`.
    pub fn ecn_cut(&self) -> f64 {
        1.0 - self.ecn_alpha * ECN_FACTOR
    }

    /// Whether the marks of a flight show that too much was in flight.
    #[inline]
    pub fn is_inflight_too_high(&self, rate: &RateSample) -> bool {
        self.ecn_eligible && f64::from(rate.marked) > ECN_THRESH * f64::from(rate.delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ecn: &mut Ecn, delivered: u32, marked: u32) {
        ecn.count(&Ack { delivered, marked, ..Ack::default() });
        ecn.update_ecn_alpha(Some(Span::from_millis(5)));
    }

    #[test]
    fn ecn_alpha_moves_by_a_16th_towards_the_share_of_marks() {
        let mut ecn = Ecn::new(true, Span::from_millis(5));
        round(&mut ecn, 100, 0);
        assert_eq!(ecn.ecn_alpha, 15.0 / 16.0);
        round(&mut ecn, 100, 100);
        assert_eq!(ecn.ecn_alpha, 15.0 / 16.0 + 1.0 / 256.0);
    }

    #[test]
    fn all_packets_marked_cost_a_third() {
        assert!((Ecn::new(true, Span::from_millis(5)).ecn_cut() - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn two_rounds_in_a_row_with_half_of_the_packets_marked_show_a_full_pipe() {
        let mut ecn = Ecn::new(true, Span::from_millis(5));
        round(&mut ecn, 100, 50);
        round(&mut ecn, 100, 49);
        round(&mut ecn, 100, 50);
        assert!(!ecn.is_too_high_in_startup());
        round(&mut ecn, 100, 50);
        assert!(ecn.is_too_high_in_startup());
    }

    #[test]
    fn marks_are_ignored_on_paths_longer_than_5_ms_or_when_off() {
        for (enabled, rtt_us, eligible) in
            [(true, 5000, true), (true, 5001, false), (false, 1, false)]
        {
            let mut ecn = Ecn::new(enabled, Span::from_millis(5));
            ecn.count(&Ack { delivered: 10, marked: 10, ..Ack::default() });
            ecn.update_ecn_alpha(Some(Span::from_micros(rtt_us)));
            assert_eq!(ecn.is_eligible(), eligible);
        }
    }
}
