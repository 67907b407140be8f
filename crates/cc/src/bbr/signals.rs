//! What the path delivered and whether it was congested, round by round
//! (draft-ietf-ccwg-bbr-06, section 5.5.10.3).
//!
//! `bw_latest` and `inflight_latest` are the greatest rate and volume delivered in the last round:
//! no bound is lowered below them. A round of losses begins with the first loss, so that a whole
//! round is measured before anything is concluded from it.

use crate::RateSample;
use dumbbell_units::Rate;

/// The signals of this round and, where it says so, of this ProbeBW cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// The greatest delivery rate of the last round.
    pub bw_latest: Rate,
    /// The most packets delivered between sending and acknowledging one, in the last round.
    pub inflight_latest: f64,
    /// Packets were lost.
    pub loss_in_round: bool,
    /// Packets were marked.
    pub ecn_in_round: bool,
    /// Packets were marked in the round before.
    pub ecn_in_round_before: bool,
    /// Packets were lost since probing ended.
    pub loss_in_cycle: bool,
    /// Packets were marked since probing ended.
    pub ecn_in_cycle: bool,
    /// Acknowledgements that found losses.
    pub loss_events: u32,
    began: u64,
    round_start: bool,
}

impl Signals {
    /// Takes a sample, at the beginning of an acknowledgement; `delivered` is `Path::delivered`.
    pub fn observe(&mut self, rate: &RateSample, delivered: u64) {
        self.bw_latest = self.bw_latest.max(rate.rate);
        self.inflight_latest = self.inflight_latest.max(f64::from(rate.delivered));
        self.round_start = rate.send_state.delivered >= self.began;
        if self.round_start {
            self.began = delivered;
        }
    }

    /// An acknowledgement without a sample.
    pub fn no_sample(&mut self) {
        self.round_start = false;
    }

    /// Whether a round ended with this acknowledgement.
    #[inline]
    pub fn round_start(&self) -> bool {
        self.round_start
    }

    /// Begins to measure the next round, at the end of an acknowledgement.
    pub fn advance(&mut self, rate: &RateSample) {
        if self.round_start {
            self.bw_latest = rate.rate;
            self.inflight_latest = f64::from(rate.delivered);
        }
    }

    /// A packet was found lost.
    pub fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.began = delivered;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
    }

    /// What was concluded from this round was concluded.
    pub fn end_round(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round_before = std::mem::take(&mut self.ecn_in_round);
    }

    /// Probing is over: what it caused shall not count against what follows.
    pub fn reset(&mut self) {
        *self = Signals { began: self.began, round_start: self.round_start, ..Signals::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SendState;

    fn sample(delivered_then: u64, delivered: u32, rate: f64) -> RateSample {
        let send_state = SendState { delivered: delivered_then, ..SendState::default() };
        let rate = Rate::from_bytes_per_sec(rate);
        RateSample { delivered, rate, send_state, ..RateSample::default() }
    }

    #[test]
    fn the_latest_rate_and_volume_are_maxima_over_one_round() {
        let mut signals = Signals::default();
        for (then, delivered, rate) in [(0, 10, 100.0), (3, 12, 90.0), (4, 8, 120.0)] {
            let sample = sample(then, delivered, rate);
            signals.observe(&sample, 10);
            signals.advance(&sample);
        }
        assert_eq!((signals.bw_latest.bytes_per_sec(), signals.inflight_latest), (120.0, 12.0));
        let next = sample(10, 9, 80.0);
        signals.observe(&next, 20);
        assert!(signals.round_start());
        assert_eq!(signals.bw_latest.bytes_per_sec(), 120.0, "the round that ended still counts");
        signals.advance(&next);
        assert_eq!((signals.bw_latest.bytes_per_sec(), signals.inflight_latest), (80.0, 9.0));
    }

    #[test]
    fn a_round_of_losses_begins_with_the_first_loss() {
        let mut signals = Signals::default();
        signals.observe(&sample(0, 1, 1.0), 100);
        signals.note_loss(150);
        signals.note_loss(170);
        signals.observe(&sample(149, 1, 1.0), 250);
        assert!(!signals.round_start());
        signals.observe(&sample(150, 1, 1.0), 251);
        assert!(signals.round_start());
    }
}
