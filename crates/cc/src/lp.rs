//! TCP-LP, for background transfers (Kuzmanovic and Knightly, "TCP-LP: low-priority service via
//! end-point congestion control", IEEE/ACM ToN 14(4), 2006), as Linux's `tcp_lp.c` implements it.
//!
//! Growth and losses are Reno's. Besides, the smoothed delay `sowd` shows a queue before it overflows:
//!
//! ```text
//! early congestion:  sowd > owd_min + 15 % (owd_max - owd_min)
//! first time:        ssthresh = cwnd = 1/2 cwnd, and no growth for `inference` = 3 round-trip times
//! within these:      ssthresh = cwnd = 1
//! ```
//!
//! Delays are whole milliseconds, as in Linux. `sowd` is 7/8 of itself and 1/8 of each sample; `owd_max`
//! is the second-highest sample, so that one outlier does not count. After an early congestion
//! `owd_min` becomes `sowd` and `owd_max` 2 `sowd`.
//!
//! | | paper | Linux | here |
//! |---|---|---|---|
//! | delay | one way, by timestamps | one way, by timestamps, whose rate it estimates | round trip |
//! | early congestion if `sowd` is | above the threshold | at it or above | above it |
//! | extremes after early congestion | stay | `sowd` and 2 `sowd` | Linux |
//! | growth after early congestion | additive | slow start up to the old `ssthresh` | additive |
//!
//! A delay on the way back counts here. Linux's own numbers depend on where the timestamps of both ends
//! begin, which is random, and on an estimate of the receiver's clock in whole Hz; here the clocks
//! agree, as in the paper.

use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};
use dumbbell_units::{Span, Time};

/// Share of the range of delays above which there is early congestion, percent.
const THRESHOLD: u64 = 15;
/// Round-trip times in which the window does not grow after an early congestion.
const INFERENCE: u64 = 3;

/// TCP-LP's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lp {
    /// Smoothed delay, ms, times 8.
    sowd: u64,
    /// Minimum and maximum delay, ms; the maximum is the second-highest.
    owd_min: Option<u64>,
    owd_max: u64,
    owd_max_rsv: u64,
    last_drop: Option<Time>,
    inference: Span,
    /// Whether the last early congestion was less than `inference` ago.
    within_inference: bool,
    /// The window that an early congestion leaves, as a share; 0 for one packet.
    early_congestion: Option<f64>,
}

impl Lp {
    /// `tcp_lp_rtt_sample`.
    fn sample(&mut self, owd: u64) {
        self.owd_min = Some(self.owd_min.map_or(owd, |min| min.min(owd)));
        if owd > self.owd_max {
            self.owd_max = owd;
            if owd > self.owd_max_rsv {
                if self.owd_max_rsv > 0 {
                    self.owd_max = self.owd_max_rsv;
                }
                self.owd_max_rsv = owd;
            }
        }
        self.sowd = match self.sowd {
            0 => owd << 3,
            sowd => sowd + owd - (sowd >> 3),
        };
    }

    /// Whether `sowd` is below the threshold.
    fn is_within_threshold(&self) -> bool {
        let min = self.owd_min.unwrap_or(u64::MAX / THRESHOLD);
        // In Linux, too, the range is unsigned and wraps around below 0.
        let range = (self.owd_max as u32).wrapping_sub(min as u32);
        self.sowd >> 3 <= min + THRESHOLD * u64::from(range) / 100
    }
}

impl WindowRule for Lp {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    /// `tcp_lp_pkts_acked`.
    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.early_congestion = None;
        if let Some(rtt) = ack.rtt {
            self.sample(rtt.as_nanos() / 1_000_000);
            self.inference = rtt * INFERENCE;
        }
        self.within_inference =
            self.last_drop.is_some_and(|drop| path.now.since(drop) < self.inference);
        if self.sowd == 0 || self.is_within_threshold() {
            return;
        }
        self.owd_min = Some(self.sowd >> 3);
        self.owd_max = self.sowd >> 2;
        self.owd_max_rsv = self.sowd >> 2;
        self.early_congestion = Some(if self.within_inference { 0.0 } else { 0.5 });
        self.last_drop = Some(path.now);
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        match self.early_congestion {
            Some(share) => {
                let window = (cwnd * share).max(1.0);
                Some((window, window))
            }
            None => self.within_inference.then_some((cwnd, ssthresh)),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let ms = |ms: u64| ms as f64 / 1e3;
        show(Metric { name: "sowd", value: ms(self.sowd) / 8.0 });
        show(Metric { name: "owd_max", value: ms(self.owd_max) });
        if let Some(min) = self.owd_min {
            show(Metric { name: "owd_min", value: ms(min) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, Reno, Windowed};

    fn lp(link: Link) -> TestPath<Windowed<Lp, AnySlowStart>> {
        TestPath::new(Windowed::new(Lp::default(), AnySlowStart::STANDARD, &init(1)), link)
    }

    /// Acknowledges one packet at `ms` with a round-trip time; returns the new window from 100.
    fn acknowledge(rule: &mut Lp, ms: u64, rtt: u64) -> Option<f64> {
        let path = Path::new(1448, Time::ZERO + Span::from_millis(ms));
        let ack = Ack::new(1).with_rtt(Some(Span::from_millis(rtt)));
        rule.observe(&path, &ack);
        rule.set_window(100.0, 50.0, &path, &ack).map(|window| window.0)
    }

    /// tcp_lp_rtt_sample and tcp_lp_pkts_acked, computed by hand.
    #[test]
    fn delays_and_threshold_are_those_of_the_kernel_s_code() {
        let mut rule = Lp::default();
        assert_eq!(acknowledge(&mut rule, 0, 50), None);
        assert_eq!(
            (rule.sowd, rule.owd_min, rule.owd_max, rule.owd_max_rsv),
            (400, Some(50), 50, 50)
        );
        // The maximum becomes the second-highest, 50, and sowd 400 + 90 - 50 = 440: 55 > 50.
        assert_eq!(acknowledge(&mut rule, 10, 90), Some(50.0));
        assert_eq!(
            (rule.sowd, rule.owd_min, rule.owd_max, rule.owd_max_rsv),
            (440, Some(55), 110, 110)
        );
        // Nothing grows for 3 * 50 ms. The threshold is 50 + 15 * 60 / 100 = 59.
        assert_eq!(acknowledge(&mut rule, 159, 50), Some(100.0));
        assert_eq!(rule.sowd, 440 + 50 - 55);
        assert_eq!(acknowledge(&mut rule, 160, 50), None, "the inference is over");
        // sowd = 431, then 458 and 481: 60 ms at the second sample of 80 ms.
        assert_eq!([1000, 1010].map(|ms| acknowledge(&mut rule, ms, 80)), [None, Some(50.0)]);
        assert_eq!((rule.sowd, rule.owd_min, rule.owd_max), (481, Some(60), 120));
    }

    #[test]
    fn a_second_early_congestion_within_the_inference_leaves_one_packet() {
        let mut rule = Lp::default();
        acknowledge(&mut rule, 0, 50);
        assert_eq!(acknowledge(&mut rule, 10, 90), Some(50.0));
        // sowd = 440 + 200 - 55 = 585, 73 ms, and the threshold is 55 + 15 * 55 / 100 = 63.
        assert_eq!(acknowledge(&mut rule, 11, 200), Some(1.0));
        assert_eq!((rule.owd_min, rule.owd_max), (Some(73), 146));
    }

    #[test]
    fn it_yields_to_reno_and_uses_what_is_left() {
        let link = Link::new(20.0, 50, 86.0);
        let mut flow = lp(link);
        let mut reno = TestPath::new(Windowed::new(Reno, AnySlowStart::STANDARD, &init(1)), link);
        flow.run_beside(&mut reno, Span::from_secs(60));
        let (lp, reno) = (flow.path.delivered as f64, reno.path.delivered as f64);
        assert!(lp < reno / 8.0, "{lp} to {reno}");
    }

    #[test]
    fn alone_it_uses_most_of_the_link_and_loses_nothing() {
        let rule = Windowed::new(Lp::default(), AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(rule, Link::new(20.0, 50, 86.0));
        flow.run_ms(10_000);
        let before = flow.path.delivered;
        flow.run_ms(30_000);
        let mbit = (flow.path.delivered - before) as f64 * 1448.0 * 8.0 / 30e6;
        assert!(mbit > 14.0, "{mbit}");
        assert_eq!(flow.dropped, 0);
    }
}
