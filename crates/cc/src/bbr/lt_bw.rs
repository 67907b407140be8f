//! BBRv1's long-term bandwidth `lt_bw` of a path with a token-bucket policer, as in Linux.
//!
//! A token bucket lets a burst pass and then drops what exceeds its rate, so the maximum filter takes
//! the burst's rate for the path's. The path is policed if two sampling intervals in a row lose at
//! least 50/256 of what they deliver and their rates differ by at most an eighth or 4 kbit/s. An
//! interval has 4 to 16 rounds and begins and ends with a loss. For 48 rounds the mean of both rates is
//! then the bandwidth, and the pacing gain is 1.

use super::version::PACING_MARGIN_PERCENT;
use crate::Path;
use dumbbell_units::{Rate, Span, Time};

const LT_INTVL_MIN_RTTS: u32 = 4;
const LT_INTVL_MAX_RTTS: u32 = 4 * LT_INTVL_MIN_RTTS;
const LT_LOSS_THRESH: f64 = 50.0 / 256.0;
const LT_BW_RATIO: f64 = 1.0 / 8.0;
/// Bytes per second.
const LT_BW_DIFF: f64 = 4000.0 / 8.0;
const LT_BW_MAX_RTTS: u32 = 48;
const LT_INTVL_MIN_TIME: Span = Span::from_millis(1);

/// The detector of a policer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LtBw {
    /// The rate of the last interval, or the mean of two once in use.
    lt_bw: Option<Rate>,
    lt_use_bw: bool,
    lt_is_sampling: bool,
    lt_rtt_cnt: u32,
    lt_last_stamp: Time,
    lt_last_delivered: u64,
    lt_last_lost: u64,
}

/// What an acknowledgement (or a timeout) showed.
#[derive(Clone, Copy, Debug)]
pub struct LtBwSample {
    /// Packets were found lost.
    pub has_losses: bool,
    /// The rate sample was limited by the application.
    pub is_app_limited: bool,
    /// A round began.
    pub round_start: bool,
    /// The state is ProbeBW.
    pub is_probe_bw: bool,
}

impl LtBw {
    /// The bandwidth to use instead of the maximum, if the path is policed (`lt_use_bw`).
    #[inline]
    pub fn bw(&self) -> Option<Rate> {
        self.lt_bw.filter(|_| self.lt_use_bw)
    }

    /// Stops using `lt_bw` and sampling.
    pub fn reset_lt_bw_sampling(&mut self, path: &Path) {
        *self = LtBw::default();
        self.reset_lt_bw_sampling_interval(path);
    }

    fn reset_lt_bw_sampling_interval(&mut self, path: &Path) {
        self.lt_last_stamp = path.delivered_at;
        self.lt_last_delivered = path.delivered;
        self.lt_last_lost = path.lost;
        self.lt_rtt_cnt = 0;
    }

    /// Takes a sample. Returns whether `lt_bw` was in use until now, upon which the gain cycle
    /// restarts.
    pub fn lt_bw_sampling(&mut self, path: &Path, sample: LtBwSample) -> bool {
        if self.lt_use_bw {
            if sample.is_probe_bw && sample.round_start {
                self.lt_rtt_cnt += 1;
                if self.lt_rtt_cnt >= LT_BW_MAX_RTTS {
                    self.reset_lt_bw_sampling(path);
                    return true;
                }
            }
            return false;
        }
        if self.is_interval_over(path, sample) {
            self.lt_bw_interval_done(path);
        }
        false
    }

    fn is_interval_over(&mut self, path: &Path, sample: LtBwSample) -> bool {
        if !self.lt_is_sampling {
            // Until the first loss the bucket still had tokens.
            if !sample.has_losses {
                return false;
            }
            self.reset_lt_bw_sampling_interval(path);
            self.lt_is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset_lt_bw_sampling(path);
            return false;
        }
        self.lt_rtt_cnt += u32::from(sample.round_start);
        if self.lt_rtt_cnt > LT_INTVL_MAX_RTTS {
            self.reset_lt_bw_sampling(path);
            return false;
        }
        self.lt_rtt_cnt >= LT_INTVL_MIN_RTTS && sample.has_losses
    }

    fn lt_bw_interval_done(&mut self, path: &Path) {
        let delivered = (path.delivered - self.lt_last_delivered) as f64;
        let lost = (path.lost - self.lt_last_lost) as f64;
        let interval = path.delivered_at.since(self.lt_last_stamp);
        if delivered == 0.0 || lost < LT_LOSS_THRESH * delivered || interval < LT_INTVL_MIN_TIME {
            return;
        }
        let bw = Rate::from_bytes_in(delivered * f64::from(path.mss), interval);
        match self.lt_bw {
            Some(previous) if is_consistent(bw, previous) => {
                self.lt_bw = Some(Rate::from_bytes_per_sec(
                    (bw.bytes_per_sec() + previous.bytes_per_sec()) / 2.0,
                ));
                self.lt_use_bw = true;
                self.lt_rtt_cnt = 0;
            }
            _ => {
                self.lt_bw = Some(bw);
                self.reset_lt_bw_sampling_interval(path);
            }
        }
    }
}

fn is_consistent(bw: Rate, previous: Rate) -> bool {
    const MARGIN: f64 = (100.0 - PACING_MARGIN_PERCENT) / 100.0;
    let diff = (bw.bytes_per_sec() - previous.bytes_per_sec()).abs();
    diff <= previous.bytes_per_sec() * LT_BW_RATIO || diff * MARGIN <= LT_BW_DIFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with 100 packets of 1000 bytes each, of which some are lost.
    struct Policed {
        path: Path,
        lt: LtBw,
    }

    impl Policed {
        fn new() -> Policed {
            Policed { path: Path::new(1000, Time::ZERO), lt: LtBw::default() }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> bool {
            self.path.now += Span::from_millis(100);
            self.path.delivered_at = self.path.now;
            self.path.delivered += delivered;
            self.path.lost += lost;
            let sample = LtBwSample {
                has_losses: lost > 0,
                is_app_limited: false,
                round_start: true,
                is_probe_bw: true,
            };
            self.lt.lt_bw_sampling(&self.path, sample)
        }

        fn rounds(&mut self, count: u32, delivered: u64, lost: u64) {
            for _ in 0..count {
                self.round(delivered, lost);
            }
        }
    }

    #[test]
    fn two_lossy_intervals_of_similar_rate_are_a_policer() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        assert_eq!(flow.lt.bw(), None);
        flow.rounds(4, 110, 22);
        let bw = flow.lt.bw().expect("policed").bytes_per_sec();
        // The first interval begins with its first loss, that is, at the end of the first round.
        assert!((bw - (1_000_000.0 + 1_100_000.0) / 2.0).abs() < 1.0, "{bw}");
    }

    #[test]
    fn intervals_whose_rates_differ_by_more_than_an_eighth_are_no_policer() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        flow.rounds(4, 120, 24);
        assert_eq!(flow.lt.bw(), None);
    }

    #[test]
    fn loss_below_a_fifth_is_no_policer() {
        let mut flow = Policed::new();
        flow.rounds(40, 100, 19);
        assert_eq!(flow.lt.bw(), None);
    }

    #[test]
    fn the_long_term_rate_is_used_for_48_rounds() {
        let mut flow = Policed::new();
        flow.rounds(8, 100, 20);
        assert!(flow.lt.bw().is_some());
        assert!((0..47).all(|_| !flow.round(100, 0)));
        assert!(flow.round(100, 0));
        assert_eq!(flow.lt.bw(), None);
    }

    #[test]
    fn a_sample_limited_by_the_application_ends_the_sampling() {
        let mut flow = Policed::new();
        flow.rounds(4, 100, 20);
        let sample = LtBwSample {
            has_losses: true,
            is_app_limited: true,
            round_start: true,
            is_probe_bw: true,
        };
        flow.lt.lt_bw_sampling(&flow.path, sample);
        flow.rounds(4, 100, 20);
        assert_eq!(flow.lt.bw(), None);
    }
}
