//! F-BBRv2: noticing CUBIC, and asserting oneself against it (Cho and Cho, "Improvement of Bandwidth
//! Fairness between TCP BBRv2 and CUBIC", J. KICS 49(1), 2024, section IV, algorithm 1).
//!
//! BBRv2 leaves 15 % of what is safe to others, which CUBIC takes, the more the deeper the queue. But
//! CUBIC never lets the queue run empty, so that not even ProbeRTT sees the path's delay:
//!
//! ```text
//!     if RTprop_current > RTprop * 1.2 and state is ProbeBW_CRUISE: pacing_gain = 1.15
//! ```
//!
//! `RTprop` is the first value of `min_rtt` after the connection began, `RTprop_current` the present
//! one. Everything else is BBRv2.

use super::State;
use super::version::Assertion;
use dumbbell_units::Span;

/// The watch for CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watch {
    assertion: Assertion,
    first: Option<Span>,
    detected: bool,
}

impl Watch {
    /// A watch that has seen nothing.
    pub fn new(assertion: Assertion) -> Watch {
        Watch { assertion, first: None, detected: false }
    }

    /// Takes the present `min_rtt`.
    #[inline]
    pub fn observe(&mut self, min_rtt: Option<Span>) {
        let (Some(first), Some(now)) = (self.first.or(min_rtt), min_rtt) else { return };
        self.first = Some(first);
        self.detected = now > first.mul_f64(self.assertion.threshold);
    }

    /// Whether CUBIC seems to be there.
    #[inline]
    pub fn is_detected(&self) -> bool {
        self.detected
    }

    /// The pacing gain to use in `state` instead of BBRv2's `gain`.
    #[inline]
    pub fn pacing_gain(&self, state: State, gain: f64) -> f64 {
        let asserts = self.detected && state == State::Cruise;
        if asserts { self.assertion.cruise_pacing_gain } else { gain }
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::F2;
    use super::*;

    fn watch(ms: &[u64]) -> Watch {
        let mut watch = Watch::new(F2.assertion.expect("F-BBRv2 has it"));
        ms.iter().for_each(|&ms| watch.observe(Some(Span::from_millis(ms))));
        watch
    }

    #[test]
    fn cubic_is_detected_above_1_2_times_the_first_min_rtt() {
        assert!(!watch(&[40]).is_detected());
        assert!(!watch(&[40, 48]).is_detected());
        assert!(watch(&[40, 49]).is_detected());
    }

    #[test]
    fn the_first_min_rtt_counts_not_the_least() {
        assert!(!watch(&[40, 30, 48]).is_detected());
    }

    #[test]
    fn cubic_is_gone_when_min_rtt_is_back() {
        assert!(!watch(&[40, 80, 41]).is_detected());
    }

    #[test]
    fn beside_cubic_only_cruise_is_15_percent_faster() {
        let watch = watch(&[40, 60]);
        assert_eq!(watch.pacing_gain(State::Cruise, 1.0), 1.15);
        for (state, gain) in [(State::Up, 1.25), (State::Down, 0.75), (State::Refill, 1.0)] {
            assert_eq!(watch.pacing_gain(state, gain), gain);
        }
    }

    #[test]
    fn without_cubic_no_gain_is_changed() {
        assert_eq!(watch(&[40, 41]).pacing_gain(State::Cruise, 1.0), 1.0);
    }

    #[test]
    fn nothing_is_detected_before_there_is_a_round_trip_time() {
        let mut watch = watch(&[]);
        watch.observe(None);
        assert!(!watch.is_detected());
    }
}
