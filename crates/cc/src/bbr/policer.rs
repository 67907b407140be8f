//! The long-term bandwidth of a policed path, in BBRv1 as Linux has it.
//!
//! A token bucket lets a burst pass and then drops what exceeds its rate, so the maximum filter
//! believes in the burst. If two intervals in a row, of 4 to 16 rounds, each beginning and ending
//! with a loss, lose at least 50/256 of what they deliver, and their rates differ by at most an
//! eighth or 4 kbit/s, the path is policed: for 48 rounds the mean of both rates is the bandwidth
//! and the gain is 1.

use super::version::PACING_MARGIN;
use crate::Path;
use dumbbell_units::{Rate, Span, Time};

const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
const LOSS_THRESH: f64 = 50.0 / 256.0;
const CONSISTENT_RATIO: f64 = 1.0 / 8.0;
const CONSISTENT_DIFFERENCE: f64 = 4000.0 / 8.0;
const ROUNDS_IN_USE: u32 = 48;
const LEAST_TIME: Span = Span::from_millis(1);

/// The detector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Policer {
    /// The rate of the last interval, or the mean of two once in use.
    bw: Option<Rate>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    began: Time,
    began_delivered: u64,
    began_lost: u64,
}

/// What an acknowledgement (or a timeout) told about losses.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Packets were just found lost.
    pub loss: bool,
    /// The rate sample was limited by the application.
    pub app_limited: bool,
    /// A round began.
    pub round_start: bool,
    /// The state is ProbeBW.
    pub probe_bw: bool,
}

impl Policer {
    /// The bandwidth to use instead of the maximum, if the path is policed.
    #[inline]
    pub fn bw(&self) -> Option<Rate> {
        self.bw.filter(|_| self.in_use)
    }

    /// Forgets everything.
    pub fn reset(&mut self, path: &Path) {
        *self = Policer::default();
        self.begin_interval(path);
    }

    fn begin_interval(&mut self, path: &Path) {
        self.began = path.delivered_at;
        self.began_delivered = path.delivered;
        self.began_lost = path.lost;
        self.rounds = 0;
    }

    /// Takes evidence. Returns whether the path was held to be policed and is no longer, upon which
    /// the cycle of gains begins anew.
    pub fn observe(&mut self, path: &Path, evidence: Evidence) -> bool {
        if self.in_use {
            if evidence.probe_bw && evidence.round_start {
                self.rounds += 1;
                if self.rounds >= ROUNDS_IN_USE {
                    self.reset(path);
                    return true;
                }
            }
            return false;
        }
        if self.is_interval_over(path, evidence) {
            self.end_interval(path);
        }
        false
    }

    fn is_interval_over(&mut self, path: &Path, evidence: Evidence) -> bool {
        if !self.sampling {
            // Until the first loss the bucket still had tokens.
            if !evidence.loss {
                return false;
            }
            self.begin_interval(path);
            self.sampling = true;
        }
        if evidence.app_limited {
            self.reset(path);
            return false;
        }
        self.rounds += u32::from(evidence.round_start);
        if self.rounds > MOST_ROUNDS {
            self.reset(path);
            return false;
        }
        self.rounds >= LEAST_ROUNDS && evidence.loss
    }

    fn end_interval(&mut self, path: &Path) {
        let delivered = (path.delivered - self.began_delivered) as f64;
        let lost = (path.lost - self.began_lost) as f64;
        let elapsed = path.delivered_at.since(self.began);
        if delivered == 0.0 || lost < LOSS_THRESH * delivered || elapsed < LEAST_TIME {
            return;
        }
        let bw = Rate::from_bytes_in(delivered * f64::from(path.mss), elapsed);
        match self.bw {
            Some(previous) if is_consistent(bw, previous) => {
                self.bw = Some(Rate::from_bytes_per_sec(
                    (bw.bytes_per_sec() + previous.bytes_per_sec()) / 2.0,
                ));
                self.in_use = true;
                self.rounds = 0;
            }
            _ => {
                self.bw = Some(bw);
                self.begin_interval(path);
            }
        }
    }
}

fn is_consistent(bw: Rate, previous: Rate) -> bool {
    let difference = (bw.bytes_per_sec() - previous.bytes_per_sec()).abs();
    difference <= previous.bytes_per_sec() * CONSISTENT_RATIO
        || difference * PACING_MARGIN <= CONSISTENT_DIFFERENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with 100 packets of 1000 bytes each, of which some are lost.
    struct Policed {
        path: Path,
        policer: Policer,
    }

    impl Policed {
        fn new() -> Policed {
            Policed { path: Path::new(1000, Time::ZERO), policer: Policer::default() }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> bool {
            self.path.now += Span::from_millis(100);
            self.path.delivered_at = self.path.now;
            self.path.delivered += delivered;
            self.path.lost += lost;
            let evidence =
                Evidence { loss: lost > 0, app_limited: false, round_start: true, probe_bw: true };
            self.policer.observe(&self.path, evidence)
        }

        fn rounds(&mut self, count: u32, delivered: u64, lost: u64) {
            for _ in 0..count {
                self.round(delivered, lost);
            }
        }
    }

    #[test]
    fn two_lossy_intervals_of_like_rate_are_a_policer() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        assert_eq!(flow.policer.bw(), None);
        flow.rounds(4, 110, 22);
        let bw = flow.policer.bw().expect("policed").bytes_per_sec();
        // The first interval begins with its first loss, that is, at the end of the first round.
        assert!((bw - (1_000_000.0 + 1_100_000.0) / 2.0).abs() < 1.0, "{bw}");
    }

    #[test]
    fn intervals_whose_rates_differ_by_more_than_an_eighth_are_no_policer() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        flow.rounds(4, 120, 24);
        assert_eq!(flow.policer.bw(), None);
    }

    #[test]
    fn loss_below_a_fifth_is_no_policer() {
        let mut flow = Policed::new();
        flow.rounds(40, 100, 19);
        assert_eq!(flow.policer.bw(), None);
    }

    #[test]
    fn the_long_term_rate_is_used_for_48_rounds() {
        let mut flow = Policed::new();
        flow.rounds(8, 100, 20);
        assert!(flow.policer.bw().is_some());
        assert!((0..47).all(|_| !flow.round(100, 0)));
        assert!(flow.round(100, 0));
        assert_eq!(flow.policer.bw(), None);
    }

    #[test]
    fn a_sample_limited_by_the_application_ends_the_sampling() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        let evidence =
            Evidence { loss: true, app_limited: true, round_start: true, probe_bw: true };
        flow.policer.observe(&flow.path, evidence);
        flow.rounds(4, 100, 20);
        assert_eq!(flow.policer.bw(), None);
    }
}
