//! CUBIC of 2006: Linux 2.6.18's, version 2.0 (after Rhee and Xu, "CUBIC: a new TCP-friendly
//! high-speed TCP variant", PFLDnet 2005).
//!
//! The equations are those of [`crate::Cubic`] with `C` 410/1024 and `beta` 819/1024. Differences:
//!
//! - The cubic grows by at most `S_max`, 160 packets a second, whatever the round-trip time
//!   (`max_increment`, 16 packets in 100 ms). The target is otherwise at most 2 `cwnd`, not 1.5.
//! - While `W_max` is unknown (before the first reduction and after a timeout), the target is exactly
//!   2 % above `cwnd`, or `W_est` if that is higher.
//! - `W_est` has one `alpha`, `3 (1 - beta) / (1 + beta)`, and counts acknowledgements; the cubic
//!   counts packets even if the stack counts acknowledgements.
//! - Slow start is RFC 5681's, up to 100 packets (`initial_ssthresh`).
//!
//! That kernel had two arithmetic errors. They are reproduced unless `errors=off`:
//!
//! - Time was scaled twice, so the window followed `(C / 12.8) (t - K)^3 + W_max`, while `K` was
//!   computed with `C` (`cube_rtt_scale`: 32 instead of 410; corrected in 2.6.19, "cubic: scaling
//!   error").
//! - `S_max` was divided by 8, as if the round-trip time were in eighths of a tick: 20 packets a
//!   second, 2 in 100 ms.
//!
//! With both errors the window grows by 20 packets a second almost always.

use crate::cubic::{Epoch, next_w_max};
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::Span;

/// `C` in the computation of `K`, packets/s^3.
const C: f64 = 410.0 / 1024.0;
/// The fraction of the window that a reduction leaves.
const BETA: f64 = 819.0 / 1024.0;
/// Maximum growth for each packet acknowledged, packets: the target is at most 2 `cwnd`.
const MAX_GROWTH: f64 = 1.0;
/// Growth in a round trip while `W_max` is unknown, as a fraction.
const INITIAL_GROWTH: f64 = 1.0 / 50.0;

/// The window rule of Linux 2.6.18's CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic2006 {
    /// `C` in `W_cubic(t)`, packets/s^3.
    c_growth: f64,
    /// Maximum growth of the cubic, packets/s.
    s_max: f64,
    fast_convergence: bool,
    /// `W_max`; `None` before the first reduction and after a timeout.
    w_max: Option<f64>,
    /// The present congestion avoidance stage; `None` until its first acknowledgement.
    epoch: Option<Epoch>,
}

impl Cubic2006 {
    /// Takes the options `errors` and `fast_convergence`.
    ///
    /// # Errors
    /// If the value of one is invalid.
    pub fn from_options(options: &mut Options) -> Result<Cubic2006, ConfigError> {
        let errors = options.switch("errors", true)?;
        Ok(Cubic2006 {
            c_growth: if errors { 32.0 / 1024.0 } else { C },
            s_max: if errors { 20.0 } else { 160.0 },
            fast_convergence: options.switch("fast_convergence", true)?,
            w_max: None,
            epoch: None,
        })
    }
}

impl WindowRule for Cubic2006 {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(path.now, cwnd, w_max, C));
        let rtt = path.min_rtt.unwrap_or(Span::ZERO);
        let t = path.now.since(epoch.t_epoch);
        let target = if w_max.is_none() {
            cwnd * (1.0 + INITIAL_GROWTH)
        } else {
            let target = epoch.w_cubic((t + rtt).as_secs_f64(), self.c_growth);
            target.min(cwnd + self.s_max * rtt.as_secs_f64())
        };
        epoch.w_est += 3.0 * (1.0 - BETA) / (1.0 + BETA) * acked / cwnd;
        let growth = (target.max(epoch.w_est) - cwnd) / cwnd;
        growth.clamp(0.0, MAX_GROWTH) * ack.scale_to_packets(acked)
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.w_max = Some(next_w_max(cwnd, self.w_max, BETA, self.fast_convergence));
        self.epoch = None;
        cwnd * BETA
    }

    fn on_timeout(&mut self) {
        self.w_max = None;
        self.epoch = None;
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        if let Some(epoch) = &mut self.epoch {
            epoch.exclude(pause, path.now);
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.w_max = self.w_max.map(|w_max| w_max * factor);
        self.epoch = None;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        if let Some(w_max) = self.w_max {
            value("W_max", w_max);
        }
        if let Some(epoch) = self.epoch {
            value("K", epoch.k);
            value("W_est", epoch.w_est);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::tests::{assert_close, growth, path_at};
    use dumbbell_units::Span;

    fn cubic_2006(text: &str) -> Cubic2006 {
        let mut options = text.parse().expect("well formed");
        Cubic2006::from_options(&mut options).expect("within range")
    }

    #[test]
    fn before_the_first_loss_the_window_grows_by_exactly_2_percent_a_round() {
        let mut rule = cubic_2006("cubic-2006");
        let path = path_at(1.0, Span::from_millis(100));
        assert_close(growth(&mut rule, 5000.0, &path), 0.02);
        assert_close(rule.decrease(1024.0, &path, &CongestionEvent::loss()), 819.0);
    }

    #[test]
    fn growth_is_at_most_16_packets_in_100_ms_or_2_with_the_error() {
        for (text, per_round) in [("cubic-2006(errors=off)", 16.0), ("cubic-2006", 2.0)] {
            for rtt in [10, 100] {
                let mut rule = cubic_2006(text);
                let path = path_at(0.0, Span::from_millis(rtt));
                let cwnd = rule.decrease(100_000.0, &path, &CongestionEvent::loss());
                let expected = per_round * rtt as f64 / 100.0;
                assert_close(growth(&mut rule, cwnd, &path) * cwnd, expected);
            }
        }
    }

    #[test]
    fn with_the_error_w_cubic_rises_at_1_32_instead_of_410_1024() {
        for (text, c) in [("cubic-2006(errors=off)", 410.0 / 1024.0), ("cubic-2006", 1.0 / 32.0)] {
            let mut rule = cubic_2006(text);
            let rtt = Span::from_millis(100);
            let cwnd = rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss());
            growth(&mut rule, cwnd, &path_at(0.0, rtt));
            let k = libm::cbrt((1000.0 - cwnd) / (410.0 / 1024.0));
            // Three seconds beyond K, within the limit of growth of either.
            let target = 1000.0 + c * 3.0 * 3.0 * 3.0;
            let grown = growth(&mut rule, target - 1.0, &path_at(k + 2.9, rtt)) * (target - 1.0);
            assert!((grown - 1.0).abs() < 1e-6, "{text}: {grown}");
        }
    }

    #[test]
    fn growth_counts_packets_even_if_the_stack_counts_acknowledgements() {
        let mut rule = cubic_2006("cubic-2006");
        let path = path_at(0.0, Span::from_millis(100));
        let cwnd = rule.decrease(100_000.0, &path, &CongestionEvent::loss());
        let delayed = Ack { delivered: 2, acked: 1, ..Ack::default() };
        let grown = rule.increase(cwnd, 1.0, &path, &delayed);
        assert_close(grown, 2.0 * growth(&mut rule, cwnd, &path));
    }
}
