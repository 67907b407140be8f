//! ABE, alternative backoff with ECN (RFC 8511): after a mark the window is reduced less than after a
//! loss, because a mark comes from a short queue.
//!
//! ```text
//! ECN echo in congestion avoidance:  ssthresh = max(beta_ecn * FlightSize, 2)      (section 3)
//! ECN echo in slow start, or loss:   as without ABE
//! ```
//!
//! `beta_ecn` is 0.8 for Reno, whose `beta` is 0.5, and 0.85 for CUBIC, whose `beta` is 0.7 (section
//! 3.1). The rest of a rule's reaction, such as CUBIC's `W_max`, is that to a loss. As in the rules,
//! `cwnd` stands for `FlightSize`.

use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, Signal, WindowRule};
use dumbbell_units::Span;

/// `beta_ecn` for Reno.
pub(crate) const BETA_ECN_RENO: f64 = 0.8;
/// `beta_ecn` for CUBIC.
pub(crate) const BETA_ECN_CUBIC: f64 = 0.85;

/// A rule with ABE if it is on.
#[derive(Clone, Debug)]
pub struct Abe<R> {
    rule: R,
    /// The share of the window that an ECN echo leaves; `None` for that of the rule.
    beta_ecn: Option<f64>,
}

impl<R: WindowRule> Abe<R> {
    /// Takes the options `abe` and `beta_ecn`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub(crate) fn from_options(
        rule: R,
        beta_ecn: f64,
        options: &mut Options,
    ) -> Result<Abe<R>, ConfigError> {
        let is_on = options.switch("abe", false)?;
        let beta_ecn = options.number("beta_ecn", beta_ecn, 0.1..=0.99, "0.1 to 0.99")?;
        Ok(Abe { rule, beta_ecn: is_on.then_some(beta_ecn) })
    }
}

// No default body may stand in for the rule's own method.
#[deny(clippy::missing_trait_methods)]
impl<R: WindowRule> WindowRule for Abe<R> {
    fn on_established(&mut self, path: &Path) {
        self.rule.on_established(path);
    }

    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        self.rule.increase(cwnd, acked, path, ack)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        let after_loss = self.rule.decrease(cwnd, path, event);
        match self.beta_ecn {
            Some(beta_ecn) if event.signal == Signal::Ecn => cwnd * beta_ecn,
            _ => after_loss,
        }
    }

    fn decrease_in_slow_start(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.rule.decrease_in_slow_start(cwnd, path, event)
    }

    #[inline]
    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.rule.observe(path, ack);
    }

    #[inline]
    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        self.rule.set_window(cwnd, ssthresh, path, ack)
    }

    #[inline]
    fn grows_when_app_limited(&self) -> bool {
        self.rule.grows_when_app_limited()
    }

    #[inline]
    fn lowers_ssthresh(&self) -> bool {
        self.rule.lowers_ssthresh()
    }

    fn on_timeout(&mut self) {
        self.rule.on_timeout();
    }

    fn on_undo(&mut self, path: &Path) {
        self.rule.on_undo(path);
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        self.rule.on_restart(path, pause);
    }

    fn on_cwnd_restart(&mut self, cwnd: f64) {
        self.rule.on_cwnd_restart(cwnd);
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.rule.on_mtu_update(factor);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.rule.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, CongestionControl, CongestionEvent, ConnectionConfig, Path};
    use dumbbell_units::{Span, Time};

    /// The windows of 1000 packets after events, the first of which ends slow start.
    fn after<const N: usize>(text: &str, events: [CongestionEvent; N]) -> [f64; N] {
        let config = ConnectionConfig::new(Time::ZERO, 1448).with_initial_window(1000.0);
        let mut algorithm = Algorithm::parse(text, &config).expect(text);
        events.map(|event| {
            algorithm.on_congestion(&Path::new(1448, Time::ZERO), &event);
            algorithm.control().cwnd
        })
    }

    #[test]
    fn in_congestion_avoidance_a_mark_leaves_beta_ecn() {
        let (mark, loss, timeout) =
            (CongestionEvent::ecn(), CongestionEvent::loss(), CongestionEvent::timeout());
        for (text, beta_ecn, beta) in [
            ("reno", 0.5, 0.5),
            ("reno(abe=on)", 0.8, 0.5),
            ("cubic", 0.7, 0.7),
            ("cubic(abe=on)", 0.85, 0.7),
            ("cubic(abe=on, beta_ecn=0.9)", 0.9, 0.7),
            ("cubic(abe=on, arithmetic=linux)", 0.85, 0.7),
        ] {
            let [first, second, third] = after(text, [mark, mark, loss]);
            assert_eq!(first, 1000.0 * beta, "{text}: in slow start as after a loss");
            assert!((second - first * beta_ecn).abs() < 1.0, "{text}");
            assert!((third - second * beta).abs() < 1.0, "{text}");
            assert_eq!(after(text, [timeout]), [1.0], "{text}");
        }
    }

    #[test]
    fn cubic_grows_to_the_same_plateau_after_a_mark() {
        // The window that was reached stays W_max, so K is shorter: cbrt(15 / 0.4) = 3.35 s.
        let config = ConnectionConfig::new(Time::ZERO, 1448).with_initial_window(100.0 / 0.7);
        let text = "cubic(abe=on, fast_convergence=off)";
        let mut cubic = Algorithm::parse(text, &config).expect("valid");
        let mut path = Path::new(1448, Time::ZERO);
        cubic.on_congestion(&path, &CongestionEvent::ecn()); // ends slow start
        cubic.on_congestion(&path, &CongestionEvent::ecn());
        path.cwnd_limited = true;
        path.now = Time::ZERO + Span::from_millis(1);
        cubic.on_ack(&path, &crate::Ack::new(1));
        let mut k = 0.0;
        cubic.inspect(&mut |shown| k = if shown.name == "K" { shown.value } else { k });
        assert!((k - 3.347).abs() < 0.01, "{k}");
    }
}
