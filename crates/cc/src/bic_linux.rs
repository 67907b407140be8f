//! BIC in Linux's arithmetic (`arithmetic=linux`): Linux 6.18's `tcp_bic.c`, in integers.
//!
//! The equations are those of [`crate::Bic`]. The window grows by a packet for each `cnt` packets
//! acknowledged. With growth of `g` packets in a round trip, `cnt = w / g`; every division rounds
//! down. While `W_max` is unknown, `cnt` is at most 20. Above `low_window` it is then divided by
//! `ratio`, and is at least 1.
//!
//! While the window is constant, `cnt` is computed at most every 32 ms. `W_max` and `ssthresh` are
//! whole packets, and `beta` is `round(1024 beta) / 1024`. `s_max`, `low_window` and `smooth_part` are
//! rounded down.

use crate::arithmetic::{CongAvoidAi, Jiffies, LastUpdate};
use crate::bic::{ACK_RATIO_SHIFT, B};
use crate::{Ack, Bic, CongestionEvent, Metric, Path, WindowRule};

/// Scale of `beta`.
const SCALE: u64 = 1024;
/// `B` of the equations.
const BICTCP_B: u64 = B as u64;
/// Maximum of `cnt` while `W_max` is unknown: 5 % a round trip.
const MAX_INITIAL_CNT: u64 = 20;

/// BIC's rule in Linux's arithmetic.
#[derive(Clone, Debug)]
pub struct BicLinux {
    /// The options, and `ratio`.
    exact: Bic,
    /// `W_max`; 0 before the first loss and after a timeout.
    last_max_cwnd: u64,
    last_update: LastUpdate,
    /// Packets acknowledged for each packet of growth.
    cnt: u64,
    avoidance: CongAvoidAi,
}

impl BicLinux {
    /// The rule at the start of a connection, with the options of `exact`.
    pub fn new(exact: Bic) -> BicLinux {
        BicLinux {
            exact,
            last_max_cwnd: 0,
            last_update: LastUpdate::default(),
            cnt: 0,
            avoidance: CongAvoidAi::default(),
        }
    }

    /// `bictcp_update`: `cnt` at a window of `cwnd` packets.
    fn updated_cnt(&self, cwnd: u64) -> u64 {
        if cwnd <= self.exact.low_window as u64 {
            return cwnd;
        }
        let mut cnt = self.search_cnt(cwnd);
        if self.last_max_cwnd == 0 {
            cnt = cnt.min(MAX_INITIAL_CNT);
        }
        ((cnt << ACK_RATIO_SHIFT) / u64::from(self.exact.ratio_in_sixteenths())).max(1)
    }

    /// Binary search up to `W_max`, max probing beyond.
    fn search_cnt(&self, cwnd: u64) -> u64 {
        let (w_max, s_max) = (self.last_max_cwnd, self.exact.s_max as u64);
        let smooth = cwnd * self.exact.smooth_part as u64 / BICTCP_B;
        if cwnd < w_max {
            let distance = (w_max - cwnd) / BICTCP_B;
            if distance <= 1 { smooth } else { cwnd / distance.min(s_max) }
        } else if cwnd < w_max + BICTCP_B {
            smooth
        } else if cwnd < w_max + s_max * (BICTCP_B - 1) {
            cwnd * (BICTCP_B - 1) / (cwnd - w_max)
        } else {
            cwnd / s_max
        }
    }
}

impl WindowRule for BicLinux {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        let (cwnd, clock) = (cwnd as u64, Jiffies::of(path));
        let now = clock.at(path.now);
        if !self.last_update.is_recent(cwnd, now, clock.hz) {
            self.last_update.set(cwnd, now);
            self.cnt = self.updated_cnt(cwnd);
        }
        self.avoidance.grow(self.cnt, acked as u64)
    }

    #[inline]
    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.exact.observe(path, ack);
    }

    /// `bictcp_recalc_ssthresh`.
    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let cwnd = cwnd as u64;
        let beta = libm::round(self.exact.beta * SCALE as f64) as u64;
        let yields = cwnd < self.last_max_cwnd && self.exact.fast_convergence;
        self.last_max_cwnd = if yields { cwnd * (SCALE + beta) / (2 * SCALE) } else { cwnd };
        self.avoidance = CongAvoidAi::default();
        let ssthresh =
            if cwnd <= self.exact.low_window as u64 { cwnd / 2 } else { cwnd * beta / SCALE };
        ssthresh as f64
    }

    /// `bictcp_reset`.
    fn on_timeout(&mut self) {
        self.exact.on_timeout();
        self.last_max_cwnd = 0;
        self.last_update = LastUpdate::default();
        self.cnt = 0;
        self.avoidance = CongAvoidAi::default();
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.last_max_cwnd = (self.last_max_cwnd as f64 * factor) as u64;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if self.last_max_cwnd > 0 {
            show(Metric { name: "W_max", value: self.last_max_cwnd as f64 });
        }
        self.exact.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::tests::path_at;
    use dumbbell_units::Span;

    /// After loss at `w_max`.
    fn bic(text: &str, w_max: f64) -> BicLinux {
        let mut options = text.parse().expect("well formed");
        let mut rule = BicLinux::new(Bic::from_options(&mut options).expect("within range"));
        rule.decrease(w_max, &path(0.0), &CongestionEvent::loss());
        rule
    }

    /// A path with a jiffy of 4 ms.
    fn path(seconds: f64) -> Path {
        Path { jiffy: Span::from_millis(4), ..path_at(seconds, Span::ZERO) }
    }

    /// Quotients of whole numbers, by hand.
    #[test]
    fn cnt_is_the_window_over_the_growth_rounded_down() {
        let rule = bic("bic(ack_ratio=off)", 1000.0);
        for (cwnd, cnt) in [
            (14, 14),     // Reno
            (805, 50),    // 805 / 16
            (960, 96),    // (1000 - 960) / 4 = 10
            (989, 494),   // 11 / 4 = 2
            (993, 4965),  // 7 / 4 = 1: 993 * 20 / 4
            (1003, 5015), // within 4 packets beyond W_max
            (1030, 103),  // 1030 * 3 / 30
            (1100, 68),   // 1100 / 16
        ] {
            assert_eq!(rule.updated_cnt(cwnd), cnt, "a window of {cwnd}");
        }
    }

    #[test]
    fn cnt_is_divided_by_ratio_above_low_window_and_at_least_1() {
        let mut rule = bic("bic", 1000.0);
        assert_eq!([14, 805, 15].map(|cwnd| rule.updated_cnt(cwnd)), [14, 25, 1]);
        rule.observe(&path(0.0), &Ack::new(1));
        assert_eq!(rule.updated_cnt(805), 50 * 16 / 31);
    }

    #[test]
    fn before_loss_and_after_a_timeout_cnt_is_at_most_20() {
        let mut rule = bic("bic(ack_ratio=off)", 1000.0);
        rule.on_timeout();
        assert_eq!([1000, 100].map(|cwnd| rule.updated_cnt(cwnd)), [20, 6]);
    }

    /// 819/1024 of 1000 is 799.8, of 900 719.8; 900 * (1024 + 819) / 2048 = 809.9; half of 13 is 6.5.
    #[test]
    fn ssthresh_and_w_max_are_whole_packets() {
        let mut rule = bic("bic", 1000.0);
        let mut loss = |cwnd| rule.decrease(cwnd, &path(1.0), &CongestionEvent::loss());
        assert_eq!([1000.0, 900.0, 13.0].map(&mut loss), [799.0, 719.0, 6.0]);
        let mut rule = bic("bic", 1000.0);
        rule.decrease(900.0, &path(1.0), &CongestionEvent::loss());
        assert_eq!(rule.last_max_cwnd, 809);
    }

    #[test]
    fn while_the_window_is_constant_cnt_stays_for_32_ms() {
        let mut rule = bic("bic", 1000.0);
        rule.increase(800.0, 1.0, &path(1.0), &Ack::default());
        let before = rule.cnt;
        rule.observe(&path(1.0), &Ack::new(9));
        for (ms, updated) in [(1028, false), (1032, true)] {
            rule.increase(800.0, 1.0, &path(f64::from(ms) / 1000.0), &Ack::default());
            assert_eq!(rule.cnt != before, updated, "at {ms} ms");
        }
    }
}
