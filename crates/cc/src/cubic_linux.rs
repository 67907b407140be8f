//! CUBIC in Linux's arithmetic (`arithmetic=linux`): Linux 6.18's `bictcp_update`, in integers.
//!
//! The equations are those of [`crate::Cubic`]. Windows are whole packets, times are jiffies, and the
//! time of the cubic is in units of 1/1024 s (`BICTCP_HZ`, 10 bits):
//!
//! ```text
//! K       = cbrt((W_max - cwnd) 2^40 / C')              C' = round(1024 C), 410
//! t       = 1024 (now - epoch_start + min RTT) / HZ
//! target  = W_max -+ (C' |t - K|^3 / 2^40)
//! cnt     = cwnd / (target - cwnd), or 100 cwnd if target <= cwnd
//! cnt     = at most 20 while W_max is unknown
//! W_est  += 1 for each cwnd beta_scale / 8 packets acknowledged; beta_scale = 15, alpha = 8/15
//! cnt     = at most cwnd / (W_est - cwnd)
//! cnt     = at least 2
//! ```
//!
//! Every division rounds down. The window grows by a packet for each `cnt` packets acknowledged.
//! `cnt` is computed at most once a jiffy, and while the window is constant at most every 32 ms; only
//! `W_est` is compared more often. `W_max` and `ssthresh` are whole packets, and `beta` is
//! `round(1024 beta) / 1024`. The minimum RTT has no samples from the first second of an epoch, and
//! starts again after a timeout.
//!
//! The cube root is exact, rounded down. Linux's is from a table and one step of Newton's method; it
//! is between 0.11 % lower and 0.15 % higher for `W_max - cwnd` up to 4,000 packets.

use crate::arithmetic::{CongAvoidAi, Jiffies, LastUpdate};
use crate::{Ack, CongestionEvent, CubicParameters, Metric, Path, WindowRule};
use dumbbell_units::Span;

/// Scale of `beta` and `C`.
const SCALE: u64 = 1024;
/// Bits of the time of the cubic that are fractions of a second (`BICTCP_HZ`).
const BICTCP_HZ: u32 = 10;
/// Bits by which `C' t^3` is scaled.
const CUBE_SHIFT: u32 = 10 + 3 * BICTCP_HZ;
/// Maximum of `cnt` while `W_max` is unknown: 5 % a round trip.
const MAX_INITIAL_CNT: u64 = 20;
/// Minimum of `cnt`: the window grows by at most half in a round trip.
const MIN_CNT: u64 = 2;

/// CUBIC's window rule in Linux's arithmetic.
#[derive(Clone, Debug)]
pub struct CubicLinux {
    /// `C'`: `C` in 1024ths of a packet/s^3 (`cube_rtt_scale`).
    c: u64,
    /// `beta` in 1024ths.
    beta: u64,
    fast_convergence: bool,
    /// `8 / alpha` while `W_est` is below the window of the last reduction, and beyond; `None` turns
    /// the Reno-friendly region off.
    beta_scale: Option<(u64, u64)>,
    /// `W_max`; 0 before the first reduction and after a timeout.
    last_max_cwnd: u64,
    /// The window before the last reduction; 0 before there is one.
    cwnd_prior: u64,
    /// Minimum RTT.
    delay_min: Option<Span>,
    last_update: LastUpdate,
    /// Packets acknowledged for each packet of growth.
    cnt: u64,
    avoidance: CongAvoidAi,
    /// The present congestion avoidance stage; `None` until its first acknowledgement.
    epoch: Option<Epoch>,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When the stage began, in jiffies.
    epoch_start: u64,
    /// Window of the plateau.
    bic_origin_point: u64,
    /// `K`, 1/1024 s.
    bic_k: u64,
    /// `W_est`.
    tcp_cwnd: u64,
    /// Packets acknowledged that `tcp_cwnd` does not include yet.
    ack_cnt: u64,
}

/// The largest whole number whose cube is at most `a`.
fn cubic_root(a: u64) -> u64 {
    let root = libm::cbrt(a as f64) as u64;
    // The floating-point root may be off by one.
    (root.saturating_sub(1)..=root + 1)
        .rev()
        .find(|&x| u128::from(x).pow(3) <= a.into())
        .unwrap_or(0)
}

impl CubicLinux {
    /// The rule at the start of a connection.
    pub fn new(parameters: CubicParameters) -> CubicLinux {
        let scaled = |value: f64| (libm::round(value * SCALE as f64) as u64).max(1);
        let beta_scale = |alpha: f64| libm::floor(8.0 / alpha) as u64;
        CubicLinux {
            c: scaled(parameters.c),
            beta: scaled(parameters.beta),
            fast_convergence: parameters.fast_convergence,
            beta_scale: parameters
                .reno_friendly
                .map(|reno| (beta_scale(reno.alpha), beta_scale(reno.alpha_beyond))),
            last_max_cwnd: 0,
            cwnd_prior: 0,
            delay_min: None,
            last_update: LastUpdate::default(),
            cnt: 0,
            avoidance: CongAvoidAi::default(),
            epoch: None,
        }
    }

    /// `bictcp_update`: computes `cnt`.
    #[inline]
    fn update(&mut self, cwnd: u64, acked: u64, path: &Path) {
        if let Some(epoch) = &mut self.epoch {
            epoch.ack_cnt += acked;
        }
        let clock = Jiffies::of(path);
        let now = clock.at(path.now);
        if self.last_update.is_recent(cwnd, now, clock.hz) {
            return;
        }
        let epoch = match self.epoch {
            Some(epoch) if self.last_update.last_time == now => epoch,
            epoch => {
                let epoch = epoch.unwrap_or_else(|| self.begin(cwnd, acked, now));
                self.last_update.set(cwnd, now);
                self.cnt = self.cubic_cnt(&epoch, cwnd, now, clock);
                epoch
            }
        };
        self.epoch = Some(self.befriend(epoch, cwnd));
        self.cnt = self.cnt.max(MIN_CNT);
    }

    fn begin(&self, cwnd: u64, acked: u64, now: u64) -> Epoch {
        let distance = self.last_max_cwnd.saturating_sub(cwnd);
        Epoch {
            epoch_start: now,
            bic_origin_point: self.last_max_cwnd.max(cwnd),
            bic_k: cubic_root(((1 << CUBE_SHIFT) / self.c).saturating_mul(distance)),
            tcp_cwnd: cwnd,
            ack_cnt: acked,
        }
    }

    /// `cnt` by the cubic.
    fn cubic_cnt(&self, epoch: &Epoch, cwnd: u64, now: u64, clock: Jiffies) -> u64 {
        let rtt = clock.of_span(self.delay_min.unwrap_or(Span::ZERO));
        let t = ((now - epoch.epoch_start + rtt) << BICTCP_HZ) / clock.hz;
        let from_plateau = u128::from(t.abs_diff(epoch.bic_k));
        let delta = (u128::from(self.c) * from_plateau.pow(3)) >> CUBE_SHIFT;
        let delta = u64::try_from(delta).unwrap_or(u64::MAX);
        let target = if t < epoch.bic_k {
            epoch.bic_origin_point.saturating_sub(delta)
        } else {
            epoch.bic_origin_point.saturating_add(delta)
        };
        let cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max_cwnd == 0 { cnt.min(MAX_INITIAL_CNT) } else { cnt }
    }

    /// Updates `W_est`, and `cnt` if it is above the window.
    #[inline]
    fn befriend(&mut self, mut epoch: Epoch, cwnd: u64) -> Epoch {
        let Some((below, beyond)) = self.beta_scale else {
            return epoch;
        };
        let beta_scale = if epoch.tcp_cwnd < self.cwnd_prior { below } else { beyond };
        let packets = (cwnd * beta_scale / 8).max(1);
        // `W_est` grows while more than `packets` are left.
        if epoch.ack_cnt > packets {
            let grown = (epoch.ack_cnt - 1) / packets;
            epoch.tcp_cwnd += grown;
            epoch.ack_cnt -= grown * packets;
        }
        if epoch.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (epoch.tcp_cwnd - cwnd));
        }
        epoch
    }
}

impl WindowRule for CubicLinux {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        let acked = acked as u64;
        self.update(cwnd as u64, acked, path);
        self.avoidance.grow(self.cnt, acked)
    }

    /// `cubictcp_acked`: the minimum RTT.
    #[inline]
    fn observe(&mut self, path: &Path, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let rtt = Span::from_micros((rtt.as_nanos() / 1000).max(1));
        if self.delay_min.is_some_and(|delay_min| delay_min <= rtt) {
            return;
        }
        let clock = Jiffies::of(path);
        let since = |epoch: Epoch| clock.at(path.now) - epoch.epoch_start;
        if self.epoch.is_none_or(|epoch| since(epoch) >= clock.hz) {
            self.delay_min = Some(rtt);
        }
    }

    /// `cubictcp_recalc_ssthresh`.
    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let cwnd = cwnd as u64;
        let yields = cwnd < self.last_max_cwnd && self.fast_convergence;
        self.last_max_cwnd = if yields { cwnd * (SCALE + self.beta) / (2 * SCALE) } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.avoidance = CongAvoidAi::default();
        (cwnd * self.beta / SCALE) as f64
    }

    /// `bictcp_reset`.
    fn on_timeout(&mut self) {
        self.last_max_cwnd = 0;
        self.delay_min = None;
        self.last_update = LastUpdate::default();
        self.cnt = 0;
        self.avoidance = CongAvoidAi::default();
        self.epoch = None;
    }

    /// `cubictcp_cwnd_event`: excludes idle time from `t`.
    fn on_restart(&mut self, path: &Path, pause: Span) {
        let clock = Jiffies::of(path);
        let now = clock.at(path.now);
        if let Some(epoch) = &mut self.epoch {
            let idle = now - clock.at(path.now - pause);
            epoch.epoch_start = (epoch.epoch_start + idle).min(now);
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        let scaled = |packets: u64| (packets as f64 * factor) as u64;
        self.last_max_cwnd = scaled(self.last_max_cwnd);
        self.cwnd_prior = scaled(self.cwnd_prior);
        self.epoch = None;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        if self.last_max_cwnd > 0 {
            value("W_max", self.last_max_cwnd as f64);
        }
        if let Some(epoch) = self.epoch {
            value("K", epoch.bic_k as f64 / (1 << BICTCP_HZ) as f64);
            value("W_est", epoch.tcp_cwnd as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::tests::{growth, path_at};
    use dumbbell_units::Time;

    fn cubic(text: &str) -> CubicLinux {
        let mut options = text.parse().expect("well formed");
        CubicLinux::new(CubicParameters::from_options(&mut options).expect("within range"))
    }

    /// A path with a jiffy of 4 ms.
    fn path(seconds: f64) -> Path {
        Path { jiffy: Span::from_millis(4), ..path_at(seconds, Span::ZERO) }
    }

    /// The rule after loss at `cwnd`, with a minimum RTT of `rtt_ms`, and its window.
    fn after_loss(cwnd: f64, rtt_ms: u64) -> (CubicLinux, f64) {
        let mut rule = cubic("cubic");
        rule.observe(&path(0.0), &sample(rtt_ms));
        let reduced = rule.decrease(cwnd, &path(0.0), &CongestionEvent::loss());
        (rule, reduced)
    }

    fn sample(rtt_ms: u64) -> Ack {
        Ack { rtt: Some(Span::from_millis(rtt_ms)), ..Ack::default() }
    }

    #[test]
    fn the_cube_root_is_the_largest_whole_number() {
        for root in (0..3000).chain([99_999, 1_000_000, 2_000_000]) {
            let cube: u64 = root * root * root;
            assert_eq!(
                (cubic_root(cube), cubic_root(cube + 1)),
                (root, root.max(u64::from(cube == 0)))
            );
            assert_eq!(cubic_root(cube + 3 * root * root + 3 * root), root, "below the next cube");
        }
    }

    /// `cubic_root(2^40 / 410 * (W_max - cwnd))`, as the kernel's table gives it.
    #[test]
    fn k_is_within_two_thousandths_of_linux_s() {
        let linux =
            [(1, 1388), (10, 2991), (100, 6451), (300, 9294), (1000, 13_897), (3000, 20_033)];
        for (distance, k) in linux {
            let mut rule = cubic("cubic");
            rule.last_max_cwnd = 5000;
            let epoch = rule.begin(5000 - distance, 1, 0);
            assert!(epoch.bic_k.abs_diff(k) * 500 <= k, "{distance}: {} is not {k}", epoch.bic_k);
        }
    }

    /// 717/1024 of 1000 is 700.2, of 900 630.2; 900 * (1024 + 717) / 2048 = 765.1.
    #[test]
    fn ssthresh_and_w_max_are_whole_packets() {
        let (mut rule, reduced) = after_loss(1000.0, 100);
        assert_eq!((reduced, rule.last_max_cwnd), (700.0, 1000));
        assert_eq!(rule.decrease(900.0, &path(1.0), &CongestionEvent::loss()), 630.0);
        assert_eq!(rule.last_max_cwnd, 765);
    }

    /// K = 9300/1024 s. The epoch begins at 2 s. Targets: 710; then 864, 915, 1000, 1025.
    #[test]
    fn cnt_is_that_of_linux_s_formulas_at_jiffies() {
        let (mut rule, cwnd) = after_loss(1000.0, 100);
        growth(&mut rule, cwnd, &path(2.0));
        assert_eq!((rule.epoch.expect("begun").bic_k, rule.cnt), (9300, 70));
        for (seconds, cwnd, cnt) in
            [(4.0, 750, 6), (5.0, 900, 60), (12.0, 990, 99), (15.0, 1100, 110_000)]
        {
            growth(&mut rule, f64::from(cwnd), &path(seconds));
            assert_eq!(rule.cnt, cnt, "at {seconds} s");
        }
    }

    /// Windows 1 to 13 s after the loss by the kernel's formulas and its cube roots, computed apart from
    /// this program: 2 packets are acknowledged each `2 RTT / cwnd`.
    #[test]
    fn windows_after_loss_are_within_a_packet_of_linux_s_formulas() {
        let linux = [
            (1000, 100, [789, 858, 910, 947, 973, 989, 997, 1000, 1000, 1000, 1003, 1010, 1024]),
            (100, 20, [96, 122, 149, 176, 203, 229, 256, 283, 309, 336, 363, 389, 416]),
            (20, 10, [66, 118, 172, 225, 279, 332, 387, 441, 494, 549, 602, 657, 710]),
        ];
        for (w_max, rtt_ms, expected) in linux {
            let (mut rule, mut cwnd) = after_loss(f64::from(w_max), rtt_ms);
            let (mut us, mut windows) = (0, [0_u64; 13]);
            while us < 14_000_000 {
                let second = us as usize / 1_000_000;
                if second > 0 && windows[second - 1] == 0 {
                    windows[second - 1] = cwnd as u64;
                }
                let now = Path { now: Time::ZERO + Span::from_micros(us), ..path(0.0) };
                cwnd += rule.increase(cwnd, 2.0, &now, &Ack::default());
                us += 2000 * rtt_ms / cwnd as u64;
            }
            for (window, expected) in windows.iter().zip(expected) {
                assert!(window.abs_diff(expected) <= 1, "{windows:?}, {w_max} packets");
            }
        }
    }

    #[test]
    fn while_the_window_is_constant_cnt_stays_for_32_ms() {
        let (mut rule, _) = after_loss(1000.0, 100);
        growth(&mut rule, 700.0, &path(2.0));
        let begun = rule.cnt;
        for (ms, updated) in [(2004, false), (2028, false), (2032, true)] {
            growth(&mut rule, 700.0, &path(f64::from(ms) / 1000.0));
            assert_eq!(rule.cnt != begun, updated, "at {ms} ms");
        }
    }

    /// 15/8 of 80 packets are 150: after 151 packets `W_est` is 81.
    #[test]
    fn the_estimate_of_reno_grows_by_a_packet_in_15_eighths_of_a_window() {
        let (mut rule, _) = after_loss(80.0, 10);
        for (seconds, acked, w_est) in [(1.0, 1.0, 80), (1.1, 149.0, 80), (1.2, 1.0, 81)] {
            rule.increase(80.0, acked, &path(seconds), &Ack::default());
            assert_eq!(rule.epoch.expect("begun").tcp_cwnd, w_est, "at {seconds} s");
        }
        assert_eq!(rule.beta_scale, Some((15, 15)));
        assert_eq!(cubic("cubic(tcp_friendliness=rfc)").beta_scale, Some((15, 8)));
        assert_eq!(cubic("cubic(tcp_friendliness=off)").beta_scale, None);
    }

    #[test]
    fn before_loss_and_after_a_timeout_cnt_is_at_most_20() {
        let mut rule = cubic("cubic");
        growth(&mut rule, 1000.0, &path(1.0));
        assert_eq!(rule.cnt, 20);
        let (mut rule, _) = after_loss(1000.0, 100);
        rule.on_timeout();
        growth(&mut rule, 700.0, &path(1.0));
        let epoch = rule.epoch.expect("begun by the growth");
        assert_eq!((rule.cnt, epoch.bic_k, epoch.bic_origin_point), (20, 0, 700));
    }

    #[test]
    fn the_window_grows_by_at_most_a_packet_for_2_acknowledged() {
        let (mut rule, _) = after_loss(1000.0, 100);
        growth(&mut rule, 700.0, &path(1.0));
        growth(&mut rule, 701.0, &path(100.0));
        assert_eq!(rule.cnt, 2);
    }

    #[test]
    fn the_minimum_rtt_has_no_samples_from_the_first_second_of_an_epoch() {
        let (mut rule, _) = after_loss(1000.0, 100);
        growth(&mut rule, 700.0, &path(1.0));
        for (seconds, min_ms) in [(1.5, 100), (2.0, 50)] {
            rule.observe(&path(seconds), &sample(50));
            assert_eq!(rule.delay_min, Some(Span::from_millis(min_ms)), "at {seconds} s");
        }
        rule.on_timeout();
        rule.observe(&path(3.0), &sample(120));
        assert_eq!(rule.delay_min, Some(Span::from_millis(120)));
    }

    #[test]
    fn idle_time_is_excluded_from_t_in_jiffies() {
        let (mut rule, _) = after_loss(1000.0, 100);
        growth(&mut rule, 700.0, &path(1.0));
        rule.on_restart(&path(31.0), Span::from_secs(29));
        assert_eq!(rule.epoch.expect("begun").epoch_start, 250 * 30);
        rule.on_restart(&path(31.0), Span::from_secs(31));
        assert_eq!(rule.epoch.expect("begun").epoch_start, 250 * 31, "not in the future");
    }
}
