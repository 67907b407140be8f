//! F-BBRv2's detector of CUBIC (Cho and Cho, "Improvement of Bandwidth Fairness between TCP BBRv2 and
//! CUBIC", J. KICS 49(1), 2024, section IV, algorithm 1).
//!
//! BBRv2 leaves 15 % of what is safe to others. CUBIC takes it, the more the deeper the queue. But
//! CUBIC never lets the queue run empty, so that not even ProbeRTT sees the path's delay:
//!
//! ```text
//!     if RTprop_current > RTprop * 1.2 and state is ProbeBW_CRUISE: pacing_gain = 1.15
//! ```
//!
//! `RTprop` is the first value of `min_rtt` after the connection began, `RTprop_current` the present
//! one. Everything else is BBRv2.

use super::version::CubicResponse;
use dumbbell_units::Span;

/// Detects CUBIC by a `min_rtt` that has risen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicDetector {
    response: CubicResponse,
    first_min_rtt: Option<Span>,
    is_detected: bool,
}

impl CubicDetector {
    /// A detector without samples.
    pub fn new(response: CubicResponse) -> CubicDetector {
        CubicDetector { response, first_min_rtt: None, is_detected: false }
    }

    /// Takes the present `min_rtt`.
    #[inline]
    pub fn update(&mut self, min_rtt: Option<Span>) {
        self.first_min_rtt = self.first_min_rtt.or(min_rtt);
        if let (Some(first), Some(current)) = (self.first_min_rtt, min_rtt) {
            self.is_detected = current > first.mul_f64(self.response.min_rtt_ratio);
        }
    }

    /// Whether a CUBIC flow seems to share the queue.
    #[inline]
    pub fn is_detected(&self) -> bool {
        self.is_detected
    }

    /// The pacing gain of ProbeBW_CRUISE, if CUBIC is detected.
    #[inline]
    pub fn cruise_pacing_gain(&self) -> Option<f64> {
        self.is_detected.then_some(self.response.cruise_pacing_gain)
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::F2;
    use super::*;

    fn detector(ms: &[u64]) -> CubicDetector {
        let mut detector = CubicDetector::new(F2.cubic_response.expect("F-BBRv2 has it"));
        ms.iter().for_each(|&ms| detector.update(Some(Span::from_millis(ms))));
        detector
    }

    #[test]
    fn cubic_is_detected_above_1_2_times_the_first_min_rtt() {
        assert!(!detector(&[40]).is_detected());
        assert!(!detector(&[40, 48]).is_detected());
        assert!(detector(&[40, 49]).is_detected());
    }

    #[test]
    fn the_first_min_rtt_counts_not_the_minimum() {
        assert!(!detector(&[40, 30, 48]).is_detected());
    }

    #[test]
    fn cubic_is_gone_when_min_rtt_is_back() {
        assert!(!detector(&[40, 80, 41]).is_detected());
    }

    #[test]
    fn cruise_is_15_percent_faster_only_while_cubic_is_detected() {
        assert_eq!(detector(&[40, 60]).cruise_pacing_gain(), Some(1.15));
        assert_eq!(detector(&[40, 41]).cruise_pacing_gain(), None);
    }

    #[test]
    fn nothing_is_detected_before_there_is_a_round_trip_time() {
        let mut detector = detector(&[]);
        detector.update(None);
        assert!(!detector.is_detected());
    }
}
