//! BIC (Xu, Harfoush and Rhee, "Binary increase congestion control for fast long-distance
//! networks", INFOCOM 2004), as Linux's `tcp_bic.c` implements it.
//!
//! After loss at a window `W_max` the window returns to `W_max` by binary search, and grows beyond
//! it in the same steps in reverse order. Growth in a round trip, packets:
//!
//! ```text
//! w <= low_window:         1                          Reno
//! w < W_max:               d = (W_max - w) / B
//!   d > S_max              S_max                      additive increase
//!   1 < d <= S_max         d                          binary search
//!   d <= 1                 B / smooth_part            so that it takes smooth_part round trips
//! w >= W_max:
//!   w < W_max + B          B / smooth_part
//!   w < W_max + S_max (B - 1)   (w - W_max) / (B - 1) max probing
//!   else                   S_max
//! at least w / 20 before the first loss
//! ```
//!
//! multiplied by `ratio`, the average packets per acknowledgement (initially 2; not at or below
//! `low_window`), and at most `w`. On loss
//!
//! ```text
//! W_max = w (1 + beta) / 2 if w < W_max and fast convergence is on, else w
//! w = w / 2 if w <= low_window, else beta w
//! ```
//!
//! | | paper | Linux | here |
//! |---|---|---|---|
//! | `S_max` | 32 | 16 (`max_increment`) | Linux; option `s_max` |
//! | `B` | 2: half of the way | 4: a quarter | Linux |
//! | `beta` | 0.875 | 819/1024 | Linux; option `beta` |
//! | `S_min` and `smooth_part` | 0.01 | 4 packets in 20 round trips | Linux; option `smooth_part` |
//! | `low_window` | 14 | 14 | 14; option `low_window` |
//! | `d` | exact | whole packets, so that `d <= 1` is within 8 packets of `W_max` | Linux |
//! | `ssthresh` at first | none | 100 until 2.6.21, none since | none; option `initial_ssthresh` |
//! | growth counts | acknowledgements | `ratio` for each acknowledgement up to 3.19, since 4.0 for each packet | as the stack counts, times `ratio` unless `ack_ratio=off` |
//!
//! `ratio` is in sixteenths, and each update subtracts its integer part (`delayed_ack`). It settles
//! at 31/16 if every packet is acknowledged, and anywhere from 2 to 47/16 if every second one is.
//! It compensated for delayed acknowledgements while the kernel counted acknowledgements. Since 4.0
//! the kernel counts packets and CUBIC has no `ratio`, but BIC kept it and is about twice as fast as
//! its formulas. `ack_ratio=off` gives the formulas.
//!
//! [`crate::BicLinux`] is the rule for `arithmetic=linux`: whole packets and jiffies.

use crate::{Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};

/// Binary search covers 1/B of the distance in a round trip (Linux's `BICTCP_B`).
pub(crate) const B: f64 = 4.0;
/// Minimum growth before the first loss, as a fraction of the window (Linux: 20 acknowledgements
/// for a packet).
const FIRST_GROWTH: f64 = 1.0 / 20.0;
/// Bits of `delayed_ack` that are fraction (Linux's `ACK_RATIO_SHIFT`).
pub(crate) const ACK_RATIO_SHIFT: u32 = 4;
/// `delayed_ack` at first and after a timeout.
const DELAYED_ACK: u32 = 2 << ACK_RATIO_SHIFT;

/// BIC's rule.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    pub(crate) s_max: f64,
    pub(crate) low_window: f64,
    pub(crate) beta: f64,
    pub(crate) smooth_part: f64,
    pub(crate) fast_convergence: bool,
    /// Whether growth is multiplied by `ratio`.
    ack_ratio: bool,
    /// `ratio`, in sixteenths.
    delayed_ack: u32,
    /// `None` before the first loss and after a timeout.
    w_max: Option<f64>,
}

impl Bic {
    /// Takes the options `s_max`, `low_window`, `beta`, `smooth_part`, `fast_convergence` and
    /// `ack_ratio`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Bic, ConfigError> {
        Ok(Bic {
            s_max: options.number("s_max", 16.0, 1.0..=10_000.0, "1 to 10000")?,
            low_window: options.number("low_window", 14.0, 0.0..=10_000.0, "0 to 10000")?,
            beta: options.number("beta", 819.0 / 1024.0, 0.1..=0.99, "0.1 to 0.99")?,
            smooth_part: options.number("smooth_part", 20.0, 1.0..=10_000.0, "1 to 10000")?,
            fast_convergence: options.switch("fast_convergence", true)?,
            ack_ratio: options.switch("ack_ratio", true)?,
            delayed_ack: DELAYED_ACK,
            w_max: None,
        })
    }

    /// Growth of a window of `w` packets, above `low_window`, in a round trip.
    fn per_round(&self, w: f64) -> f64 {
        let w_max = self.w_max.unwrap_or(0.0);
        if w < w_max {
            let distance = libm::floor((w_max - w) / B);
            if distance <= 1.0 { B / self.smooth_part } else { distance.min(self.s_max) }
        } else if w < w_max + B {
            B / self.smooth_part
        } else if w < w_max + self.s_max * (B - 1.0) {
            (w - w_max) / (B - 1.0)
        } else {
            self.s_max
        }
    }

    /// Average packets per acknowledgement, in sixteenths; 16 with `ack_ratio=off`.
    pub(crate) fn ratio_in_sixteenths(&self) -> u32 {
        if self.ack_ratio { self.delayed_ack } else { 1 << ACK_RATIO_SHIFT }
    }

    /// Average packets per acknowledgement; 1 with `ack_ratio=off`.
    fn ratio(&self) -> f64 {
        f64::from(self.ratio_in_sixteenths()) / f64::from(1 << ACK_RATIO_SHIFT)
    }
}

impl WindowRule for Bic {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        if cwnd <= self.low_window {
            return acked / cwnd;
        }
        let mut growth = self.per_round(cwnd) / cwnd;
        if self.w_max.is_none() {
            growth = growth.max(FIRST_GROWTH);
        }
        (growth * self.ratio()).min(1.0) * acked
    }

    /// bictcp_acked.
    #[inline]
    fn observe(&mut self, path: &Path, ack: &Ack) {
        if path.ca_state == CaState::Open && ack.delivered > 0 {
            self.delayed_ack -= self.delayed_ack >> ACK_RATIO_SHIFT;
            self.delayed_ack += ack.delivered;
        }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let shrinking = self.w_max.is_some_and(|w_max| cwnd < w_max);
        let yields = shrinking && self.fast_convergence;
        self.w_max = Some(if yields { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd });
        if cwnd <= self.low_window { cwnd / 2.0 } else { cwnd * self.beta }
    }

    fn on_timeout(&mut self) {
        self.w_max = None;
        self.delayed_ack = DELAYED_ACK;
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.w_max = self.w_max.map(|w_max| w_max * factor);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some(w_max) = self.w_max {
            show(Metric { name: "W_max", value: w_max });
        }
        show(Metric { name: "ratio", value: self.ratio() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    /// Without Linux's compensation for delayed acknowledgements.
    const FORMULAS: &str = "bic(ack_ratio=off)";

    fn bic(text: &str) -> Bic {
        Bic::from_options(&mut text.parse().expect("well formed")).expect("within range")
    }

    fn path() -> Path {
        Path::new(1448, Time::ZERO)
    }

    /// The growth of a round trip at a window of `w` packets.
    fn growth(rule: &mut Bic, w: f64) -> f64 {
        rule.increase(w, w, &path(), &Ack::default())
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn loss_leaves_819_parts_in_1024_and_a_half_in_a_low_window() {
        assert_close(bic(FORMULAS).decrease(1024.0, &path(), &CongestionEvent::loss()), 819.0);
        assert_close(bic(FORMULAS).decrease(14.0, &path(), &CongestionEvent::loss()), 7.0);
    }

    #[test]
    fn below_w_max_growth_is_linear_then_by_quarters_then_smooth() {
        let mut rule = bic(FORMULAS);
        rule.decrease(1000.0, &path(), &CongestionEvent::loss());
        assert_close(growth(&mut rule, 800.0), 16.0);
        assert_close(growth(&mut rule, 960.0), 10.0);
        assert_close(growth(&mut rule, 988.0), 3.0);
        assert_close(growth(&mut rule, 993.0), 0.2);
    }

    #[test]
    fn beyond_w_max_it_probes_ever_faster_up_to_s_max() {
        let mut rule = bic(FORMULAS);
        rule.decrease(1000.0, &path(), &CongestionEvent::loss());
        assert_close(growth(&mut rule, 1003.0), 0.2);
        assert_close(growth(&mut rule, 1030.0), 10.0);
        assert_close(growth(&mut rule, 1100.0), 16.0);
        let mut paper = bic("bic(s_max=32, ack_ratio=off)");
        paper.decrease(1000.0, &path(), &CongestionEvent::loss());
        assert_close(growth(&mut paper, 1100.0), 32.0);
    }

    #[test]
    fn in_a_low_window_it_is_reno() {
        let mut rule = bic(FORMULAS);
        rule.decrease(100.0, &path(), &CongestionEvent::loss());
        assert_close(growth(&mut rule, 14.0), 1.0);
    }

    #[test]
    fn before_loss_and_after_a_timeout_growth_is_at_least_1_20() {
        let mut rule = bic(FORMULAS);
        assert_close(growth(&mut rule, 1000.0), 50.0);
        assert_close(growth(&mut rule, 100.0), 16.0);
        rule.decrease(1000.0, &path(), &CongestionEvent::loss());
        rule.on_timeout();
        assert_close(growth(&mut rule, 1000.0), 50.0);
    }

    #[test]
    fn fast_convergence_lowers_w_max_while_the_window_shrinks() {
        for (text, expected) in
            [(FORMULAS, 900.0 * (1024.0 + 819.0) / 2048.0), ("bic(fast_convergence=off)", 900.0)]
        {
            let mut rule = bic(text);
            rule.decrease(1000.0, &path(), &CongestionEvent::loss());
            rule.decrease(900.0, &path(), &CongestionEvent::loss());
            assert_close(rule.w_max.expect("a loss"), expected);
        }
    }

    /// The ratio after `times` of these acknowledgements in a row, in sixteenths.
    fn delayed_ack(rule: &mut Bic, path: &Path, acks: &[u32], times: u32) -> u32 {
        for _ in 0..times {
            for &delivered in acks {
                rule.observe(path, &Ack { delivered, ..Ack::default() });
            }
        }
        rule.delayed_ack
    }

    /// `delayed_ack += pkts_acked - (delayed_ack >> 4)`, by hand.
    #[test]
    fn the_ratio_is_two_at_first_and_falls_by_whole_packets() {
        let mut rule = bic("bic");
        assert_eq!(rule.delayed_ack, 32);
        assert_eq!(delayed_ack(&mut rule, &path(), &[1], 1), 31);
        assert_eq!(delayed_ack(&mut rule, &path(), &[1], 99), 31, "its whole packet is 1");
        assert_eq!(delayed_ack(&mut rule, &path(), &[2], 1), 32);
        assert_eq!(delayed_ack(&mut rule, &path(), &[2], 99), 32);
        assert_eq!(delayed_ack(&mut rule, &path(), &[3, 2], 99), 47, "2 does not bring it down");
        let disorder = Path { ca_state: CaState::Disorder, ..path() };
        assert_eq!(delayed_ack(&mut rule, &disorder, &[9], 9), 47, "only in Open");
        rule.on_timeout();
        assert_eq!(rule.delayed_ack, 32);
    }

    #[test]
    fn growth_is_multiplied_by_ratio_above_low_window_up_to_the_window() {
        let mut rule = bic("bic");
        rule.decrease(1000.0, &path(), &CongestionEvent::loss());
        assert_close(growth(&mut rule, 800.0), 2.0 * 16.0);
        assert_close(growth(&mut rule, 14.0), 1.0);
        assert_close(growth(&mut rule, 16.0), 16.0);
        let mut before_loss = bic("bic");
        assert_close(growth(&mut before_loss, 1000.0), 100.0);
    }

    /// Every second packet is acknowledged: the stack of 2006 counts that as one.
    #[test]
    fn the_ratio_compensates_delayed_acknowledgements_that_count_once() {
        let mut rule = bic("bic");
        rule.decrease(1000.0, &path(), &CongestionEvent::loss());
        let mut grown = 0.0;
        for _ in 0..400 {
            let ack = Ack { delivered: 2, acked: 1, ..Ack::default() };
            rule.observe(&path(), &ack);
            grown += rule.increase(800.0, 1.0, &path(), &ack);
        }
        assert_close(grown, 16.0);
    }
}
