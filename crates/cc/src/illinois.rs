//! Illinois (Liu, Basar and Srikant, "TCP-Illinois: a loss and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65, 2008), as Linux's
//! `tcp_illinois.c` implements it.
//!
//! The window grows by `alpha` a round trip and is reduced by the fraction `beta` on loss. Both are
//! functions of the queueing delay: `da` is its mean in the last round trip, `dm` its maximum ever,
//! both relative to the minimum round-trip time ever. A round trip with a recovery ends after it, and a
//! round-trip time above 3.36 s counts as 3.36 s.
//!
//! ```text
//! d1 = dm / 100, d2 = dm / 10, d3 = 8 dm / 10
//! alpha = 10                                              da <= d1
//!       = 10 / (1 + (da - d1) / (dm - d1) (10 - 0.3) / 0.3)   else: 0.3 at da = dm
//! beta  = 1/8                                             da <= d2
//!       = 1/2                                             da >= d3
//!       = linear between
//! ```
//!
//! After `da` has exceeded `d1`, `alpha` returns to 10 only after five round trips at or below it
//! (`theta`). Below 15 packets (`win_thresh`), and after a timeout, `alpha` and `beta` are Reno's, 1
//! and 1/2. Growth counts the packets that the cumulative acknowledgement covers, whatever the stack counts:
//! at the end of a recovery, which fills a hole, those of a round trip at once.
//!
//! As in Linux the window is in whole packets, `alpha` in whole 1/128, `beta` in whole 1/64, and every
//! division rounds down. The packets counted start at 0 whenever the window grows, what is left over is lost.

use crate::round::RoundRtts;
use crate::{Ack, CongestionEvent, Metric, Path, Signal, WindowRule};
use dumbbell_units::Span;

/// `alpha` is in parts of this.
const ALPHA_SCALE: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_SCALE / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_SCALE;
/// `beta` is in parts of this.
const BETA_SCALE: u64 = 64;
const BETA_MIN: u64 = BETA_SCALE / 8;
const BETA_MAX: u64 = BETA_SCALE / 2;
/// The longest round-trip time that counts, 3.36 s (Linux's `RTT_MAX`).
const RTT_MAX: Span = Span::from_micros(u32::MAX as u64 / ALPHA_MAX);
/// Window below which it is Reno, packets.
const WIN_THRESH: f64 = 15.0;
/// Round trips with `da <= d1` after which `alpha` is at its maximum again.
const THETA: u32 = 5;

/// Illinois' rule.
#[derive(Clone, Copy, Debug)]
pub struct Illinois {
    alpha: u64,
    beta: u64,
    rtts: RoundRtts,
    base_rtt: Span,
    max_rtt: Span,
    /// Whether `da` has exceeded `d1` since `alpha` was last at its maximum.
    rtt_above: bool,
    /// Round trips with `da <= d1` since then.
    rtt_low: u32,
    una: u64,
    /// Packets that the last acknowledgement covered cumulatively (Linux's `acked`).
    acked: u64,
    /// Packets acknowledged since the window grew (Linux's `snd_cwnd_cnt`).
    count: u64,
}

impl Default for Illinois {
    fn default() -> Illinois {
        Illinois {
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            rtts: RoundRtts::default(),
            base_rtt: Span::MAX,
            max_rtt: Span::ZERO,
            rtt_above: false,
            rtt_low: 0,
            una: 0,
            acked: 0,
            count: 0,
        }
    }
}

impl Illinois {
    /// `alpha`, with delays in µs.
    fn next_alpha(&mut self, da: u64, dm: u64) -> u64 {
        let d1 = dm / 100;
        if da > d1 {
            self.rtt_above = true;
            let excess = (da - d1) * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN;
            return (dm - d1) * ALPHA_MAX / (dm - d1 + excess);
        }
        if self.rtt_above {
            self.rtt_low += 1;
            if self.rtt_low < THETA {
                return self.alpha;
            }
            (self.rtt_above, self.rtt_low) = (false, 0);
        }
        ALPHA_MAX
    }

    /// `beta`, with delays in µs.
    fn next_beta(da: u64, dm: u64) -> u64 {
        let (d2, d3) = (dm / 10, 8 * dm / 10);
        if da <= d2 {
            BETA_MIN
        } else if da >= d3 || d3 <= d2 {
            BETA_MAX
        } else {
            (BETA_MIN * d3 - BETA_MAX * d2 + (BETA_MAX - BETA_MIN) * da) / (d3 - d2)
        }
    }
}

impl WindowRule for Illinois {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, ack: &Ack) -> f64 {
        if acked < f64::from(ack.acked) {
            return 0.0; // the acknowledgement was slow start's
        }
        let cwnd = (cwnd as u64).max(1);
        self.count += core::mem::replace(&mut self.acked, 1);
        let delta = self.count * self.alpha / ALPHA_SCALE;
        if delta < cwnd {
            return 0.0;
        }
        self.count = 0;
        (delta / cwnd) as f64
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        if event.signal == Signal::Timeout {
            self.rtts.restart(path);
        }
        self.count = 0;
        let cwnd = cwnd as u64;
        (cwnd - cwnd * self.beta / BETA_SCALE) as f64
    }

    /// tcp_illinois_acked: samples count in recovery too, although no round ends there.
    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.acked = path.una.saturating_sub(self.una);
        self.una = path.una;
        let rtt = ack.rtt.map(|rtt| rtt.min(RTT_MAX));
        self.rtts.sample(&ack.with_rtt(rtt));
        if let Some(rtt) = rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
        }
    }

    /// Updates `alpha` and `beta` once a round trip; never sets the window.
    fn set_window(
        &mut self,
        cwnd: f64,
        _ssthresh: f64,
        path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        let rtts = self.rtts.take_if_round_ended(path)?;
        if cwnd < WIN_THRESH {
            (self.alpha, self.beta) = (ALPHA_SCALE, BETA_MAX);
        } else {
            let base = self.base_rtt.as_micros();
            let mean = rtts.sum.as_micros() / u64::from(rtts.count);
            let (da, dm) = (mean.saturating_sub(base), self.max_rtt.as_micros() - base);
            self.alpha = self.next_alpha(da, dm);
            self.beta = Illinois::next_beta(da, dm);
        }
        None
    }

    fn on_timeout(&mut self) {
        (self.alpha, self.beta) = (ALPHA_SCALE, BETA_MAX);
        (self.rtt_above, self.rtt_low, self.count) = (false, 0, 0);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha as f64 / ALPHA_SCALE as f64 });
        show(Metric { name: "beta", value: self.beta as f64 / BETA_SCALE as f64 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};

    #[test]
    fn alpha_falls_from_10_without_delay_to_0_3_at_the_maximum_delay() {
        let mut rule = Illinois::default();
        assert_eq!(rule.next_alpha(1000, 100_000), ALPHA_MAX);
        assert_eq!(rule.next_alpha(100_000, 100_000), ALPHA_MIN);
        // Half of the way from d1 to dm: 10 / (1 + 97 / 6), in parts of 128, rounded down.
        assert_eq!(rule.next_alpha(50_500, 100_000), 73);
    }

    #[test]
    fn alpha_is_10_again_only_after_five_round_trips_without_delay() {
        let mut rule = Illinois::default();
        rule.alpha = rule.next_alpha(100_000, 100_000);
        for _ in 0..4 {
            rule.alpha = rule.next_alpha(0, 100_000);
            assert_eq!(rule.alpha, ALPHA_MIN);
        }
        assert_eq!(rule.next_alpha(0, 100_000), ALPHA_MAX);
    }

    #[test]
    fn beta_rises_from_1_8_at_d2_to_1_2_at_d3() {
        for (da, beta) in [(0, 8), (10, 8), (45, 20), (80, 32), (100, 32)] {
            assert_eq!(Illinois::next_beta(1000 * da, 100_000), beta, "{da} ms");
        }
    }

    #[test]
    fn small_windows_are_reno() {
        let mut rule = Illinois::default();
        let path = Path { una: 1, ..Path::new(1448, dumbbell_units::Time::ZERO) };
        let ack = Ack { rtt: Some(Span::from_millis(10)), ..Ack::default() };
        rule.observe(&path, &ack);
        assert_eq!(rule.set_window(14.9, 1.0, &path, &ack), None);
        assert_eq!((rule.alpha, rule.beta), (ALPHA_SCALE, BETA_MAX));
    }

    /// tcp_illinois_cong_avoid adds `acked`, which is `pkts_acked` of the acknowledgement.
    #[test]
    fn the_acknowledgement_that_fills_a_hole_counts_what_it_covers() {
        let mut rule = Illinois::default();
        let path = Path { una: 100, ..Path::new(1448, dumbbell_units::Time::ZERO) };
        let ack = Ack::new(1);
        rule.observe(&path, &ack);
        assert_eq!(rule.increase(200.0, 1.0, &path, &ack), 5.0, "alpha is 10");
        rule.observe(&path, &ack);
        assert_eq!(rule.increase(200.0, 1.0, &path, &ack), 0.0, "a duplicate covers nothing");
    }

    /// The paper's purpose: the window is concave between losses.
    #[test]
    fn growth_is_fast_on_an_empty_queue_and_slow_on_a_nearly_full_one() {
        let rule = Windowed::new(Illinois::default(), AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(rule, Link::new(20.0, 100, 150.0));
        flow.run_ms(60_000);
        assert!(flow.run_until(Span::from_secs(60), |flow| flow.path.ca_state.is_reducing()));
        assert!(flow.run_until(Span::from_secs(60), |flow| !flow.path.ca_state.is_reducing()));
        let (mut fast, mut slow) = (0.0_f64, f64::INFINITY);
        flow.run_until(Span::from_secs(60), |flow| {
            let alpha = flow.inspect("alpha");
            (fast, slow) = (fast.max(alpha), slow.min(alpha));
            flow.path.ca_state.is_reducing()
        });
        assert!(slow < 0.32, "{slow}");
        assert!(fast > 1.0, "{fast}");
        let control = flow.algorithm.control();
        assert!((control.cwnd / (flow.link.bdp() + 150.0) - 0.5).abs() < 0.02, "{}", control.cwnd);
    }

    /// RTT_MAX, U32_MAX / ALPHA_MAX: 3355443 us.
    #[test]
    fn a_round_trip_time_of_more_than_3_36_s_counts_as_3_36_s() {
        let mut rule = Illinois::default();
        let path = Path { una: 1, ..Path::new(1448, dumbbell_units::Time::ZERO) };
        for ms in [100, 3_355, 60_000] {
            let rtt = Some(Span::from_millis(ms));
            rule.observe(&path, &Ack { rtt, ..Ack::default() });
        }
        let cap = Span::from_micros(3_355_443);
        assert_eq!(rule.max_rtt, cap);
        let rtts = rule.rtts.take_if_round_ended(&path).expect("samples");
        assert_eq!(rtts.sum, Span::from_millis(3_455) + cap);
    }

    /// tcp_illinois_acked adds samples in every state; only tcp_illinois_cong_avoid ends a round.
    #[test]
    fn samples_in_recovery_count_in_the_round_that_ends_after_it() {
        let mut rule = Illinois::default();
        let path = |una, next_seq| {
            let path = Path::new(1448, dumbbell_units::Time::ZERO);
            Path { una, next_seq, ..path }
        };
        let sample = |rule: &mut Illinois, ms| {
            rule.observe(&path(0, 0), &Ack { rtt: Some(Span::from_millis(ms)), ..Ack::default() });
        };
        let end_round = |rule: &mut Illinois, una, next_seq| {
            rule.set_window(100.0, 1.0, &path(una, next_seq), &Ack::default());
            rule.beta
        };
        sample(&mut rule, 100);
        end_round(&mut rule, 1, 100);
        // The mean is 100 + 75 ms, of at most 100 ms of delay.
        [200, 200, 200, 100].into_iter().for_each(|ms| sample(&mut rule, ms));
        assert_eq!(end_round(&mut rule, 101, 200), 8 + 24 * 65 / 70);
        // A timeout forgets: rtt_reset.
        [200, 200, 200].into_iter().for_each(|ms| sample(&mut rule, ms));
        let timeout = CongestionEvent::timeout();
        rule.decrease(100.0, &path(150, 300), &timeout);
        sample(&mut rule, 100);
        assert_eq!(end_round(&mut rule, 301, 400), 8);
    }
}
