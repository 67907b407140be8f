//! CUBIC (RFC 9438), as Linux 6.18's `tcp_cubic.c` implements it.
//!
//! In congestion avoidance the window follows a cubic function of `t`, the time since congestion
//! avoidance began (section 4.2):
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max                      (1)
//! K = cbrt((W_max - cwnd_epoch) / C)                    (2)
//! target = W_cubic(t + RTT), clamped to [cwnd, 1.5 cwnd]
//! cwnd += (target - cwnd) / cwnd                        for each packet acknowledged (4.4, 4.5)
//! ```
//!
//! The Reno-friendly region (section 4.3) keeps the window at least at an estimate of Reno's:
//!
//! ```text
//! W_est += alpha_cubic * segments_acked / cwnd          (4)
//! alpha_cubic = 3 (1 - beta_cubic) / (1 + beta_cubic)
//! ```
//!
//! On congestion (sections 4.6 and 4.7):
//!
//! ```text
//! W_max = cwnd (1 + beta_cubic) / 2   if cwnd < W_max and fast convergence is on
//!         cwnd                        otherwise
//! cwnd_prior = cwnd
//! ssthresh = max(beta_cubic * cwnd, 2)
//! cwnd = ssthresh
//! ```
//!
//! Differences, by section of the RFC:
//!
//! | section | RFC 9438 | Linux | here |
//! |---|---|---|---|
//! | 4.2 `RTT` in the target | smoothed | minimum | Linux |
//! | 4.2 `K` and `W_max` if `cwnd_epoch > W_max` | equation 2: `K < 0` | `K = 0`, `W_max = cwnd_epoch` | Linux |
//! | 4.2 target at or below `cwnd` | no growth | 1 packet in 100 round trips | RFC; Linux with `arithmetic=linux` |
//! | 4.2 resolution | exact | whole packets and jiffies | RFC; Linux with `arithmetic=linux` |
//! | 4.3 test for the region | `W_cubic(t) < W_est` | `target < W_est` | Linux |
//! | 4.3 in the region | `cwnd = W_est` at once | `target = W_est` | Linux |
//! | 4.3 `alpha_cubic` once `W_est >= cwnd_prior` | 1 | unchanged, as in RFC 8312 | Linux; RFC with `tcp_friendliness=rfc` |
//! | 4.3 `alpha_cubic` for `beta_cubic` 0.7 | 0.529 | 8/15, by integer division | RFC; Linux with `arithmetic=linux` |
//! | 4.4, 4.5 growth | for each acknowledgement | for each packet acknowledged | Linux |
//! | 4.6 `ssthresh` | `beta_cubic * flight_size`; `cwnd` allowed if it does not grow unused | `cwnd` | Linux |
//! | 4.6 `beta_cubic` | 0.7 | 717/1024 | RFC; Linux with `arithmetic=linux` |
//! | 4.6 minimum `cwnd` after an ECN echo | 1 | 2 | Linux |
//! | 4.8 `cwnd` after a timeout | 1 (RFC 5681) | packets in flight + 1 | Linux |
//! | 4.8, 4.10 growth while `W_max` is unknown | `W_max = cwnd_epoch`, `K = 0` | the same, and at least 5 % a round trip | Linux |
//! | 4.9 spurious congestion | may restore `cwnd`, `ssthresh`, `cwnd_prior`, `W_max` and the epoch | restores `cwnd` and `ssthresh` only, where they are now lower | Linux |
//! | 4.10 slow start continues while | `cwnd <= ssthresh` | `cwnd < ssthresh` | Linux |
//! | 4.10 slow start | HyStart++ | HyStart | Linux; RFC with `slow_start=hystart++` |
//! | 5.1 `C` | 0.4 | 410/1024 | RFC; Linux with `arithmetic=linux` |
//! | 5.8 time excluded from `t` | all application-limited time | idle time | idle time that the application caused |
//!
//! The last column names the source that this module follows. [`crate::CubicLinux`] is the rule for
//! `arithmetic=linux`. The RFC and Linux agree on `W_max` after a
//! timeout (4.8): it is the window at the start of the next epoch. [`crate::Windowed`] implements what
//! CUBIC shares with Reno: the window after a timeout, the undo, the minimum of `ssthresh`.

use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::{Span, Time};

/// Maximum growth for each packet acknowledged, packets: the target is at most 1.5 `cwnd` (4.2).
const MAX_GROWTH: f64 = 0.5;
/// Minimum growth of the window in a round trip while `W_max` is unknown, as a fraction (Linux).
const MIN_INITIAL_GROWTH: f64 = 1.0 / 20.0;

/// CUBIC's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// `C`, packets/s^3.
    pub c: f64,
    /// `beta_cubic`: the fraction of the window that a reduction leaves.
    pub beta: f64,
    /// Whether `W_max` is lowered further while the window shrinks from loss to loss (4.7).
    pub fast_convergence: bool,
    /// Growth of `W_est` (4.3); `None` turns the Reno-friendly region off.
    pub reno_friendly: Option<RenoFriendly>,
}

/// `alpha_cubic`: growth of `W_est`, packets a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoFriendly {
    /// While `W_est < cwnd_prior`.
    pub alpha: f64,
    /// Once `W_est >= cwnd_prior`.
    pub alpha_beyond: f64,
}

impl RenoFriendly {
    /// RFC 9438, section 4.3.
    pub fn rfc(beta: f64) -> RenoFriendly {
        RenoFriendly { alpha_beyond: 1.0, ..RenoFriendly::linux(beta) }
    }

    /// Linux and RFC 8312: the same `alpha_cubic` throughout.
    pub fn linux(beta: f64) -> RenoFriendly {
        let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
        RenoFriendly { alpha, alpha_beyond: alpha }
    }
}

impl Default for Parameters {
    /// RFC 9438's, with Linux's `alpha_cubic`.
    fn default() -> Parameters {
        Parameters {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            reno_friendly: Some(RenoFriendly::linux(0.7)),
        }
    }
}

impl Parameters {
    /// Takes the options `c`, `beta`, `fast_convergence` and `tcp_friendliness`.
    ///
    /// # Errors
    /// If the value of one is invalid.
    pub fn from_options(options: &mut Options) -> Result<Parameters, ConfigError> {
        let default = Parameters::default();
        let beta = options.number("beta", default.beta, 0.1..=0.99, "0.1 to 0.99")?;
        let reno_friendly = options.choice(
            "tcp_friendliness",
            Some(RenoFriendly::linux(beta)),
            &[
                ("linux", Some(RenoFriendly::linux(beta))),
                ("rfc", Some(RenoFriendly::rfc(beta))),
                ("off", None),
            ],
            "linux, rfc or off",
        )?;
        Ok(Parameters {
            c: options.number("c", default.c, 1e-3..=1e3, "0.001 to 1000")?,
            beta,
            fast_convergence: options.switch("fast_convergence", default.fast_convergence)?,
            reno_friendly,
        })
    }
}

/// CUBIC's window rule (RFC 9438).
#[derive(Clone, Debug)]
pub struct Cubic {
    parameters: Parameters,
    /// `W_max`; `None` before the first reduction and after a timeout.
    w_max: Option<f64>,
    /// The window before the last reduction; 0 before there is one.
    cwnd_prior: f64,
    /// The present congestion avoidance stage; `None` until its first acknowledgement.
    epoch: Option<Epoch>,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// When the stage began.
    pub(crate) t_epoch: Time,
    /// `W_max` of equation 1: the window of the plateau, packets.
    pub(crate) w_max: f64,
    /// `K`: seconds from `t_epoch` until `W_cubic` reaches `w_max`.
    pub(crate) k: f64,
    /// `W_est`: the estimate of Reno's window, packets.
    pub(crate) w_est: f64,
}

impl Epoch {
    /// Equation 2. If `cwnd_epoch` is at or above `W_max`, it becomes `W_max`, and `K` is 0.
    pub(crate) fn begin(now: Time, cwnd_epoch: f64, w_max: Option<f64>, c: f64) -> Epoch {
        let w_max = w_max.unwrap_or(0.0).max(cwnd_epoch);
        let k = libm::cbrt((w_max - cwnd_epoch) / c);
        Epoch { t_epoch: now, w_max, k, w_est: cwnd_epoch }
    }

    /// Equation 1.
    pub(crate) fn w_cubic(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * from_plateau * from_plateau * from_plateau + self.w_max
    }

    /// Excludes an idle period of `pause`, which ends `now`, from `t`.
    pub(crate) fn exclude(&mut self, pause: Span, now: Time) {
        self.t_epoch = (self.t_epoch + pause).min(now);
    }
}

/// `W_max` after congestion at a window of `cwnd` (4.7).
pub(crate) fn next_w_max(cwnd: f64, w_max: Option<f64>, beta: f64, fast_convergence: bool) -> f64 {
    let shrinking = w_max.is_some_and(|w_max| cwnd < w_max);
    if shrinking && fast_convergence { cwnd * (1.0 + beta) / 2.0 } else { cwnd }
}

impl Cubic {
    /// The rule at the start of a connection.
    pub fn new(parameters: Parameters) -> Cubic {
        Cubic { parameters, w_max: None, cwnd_prior: 0.0, epoch: None }
    }

    /// `(target - cwnd) / cwnd`: the growth of the window for each packet acknowledged. First updates
    /// `W_est` for `segments_acked` (equation 4).
    #[inline]
    pub(crate) fn growth_per_packet(&mut self, cwnd: f64, segments_acked: f64, path: &Path) -> f64 {
        let p = self.parameters;
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(path.now, cwnd, w_max, p.c));
        let rtt = path.min_rtt.unwrap_or(Span::ZERO);
        let t = path.now.since(epoch.t_epoch);
        let mut target = epoch.w_cubic((t + rtt).as_secs_f64(), p.c);
        if w_max.is_none() {
            target = target.max(cwnd * (1.0 + MIN_INITIAL_GROWTH));
        }
        if let Some(reno) = p.reno_friendly {
            let reached = epoch.w_est >= self.cwnd_prior;
            let alpha = if reached { reno.alpha_beyond } else { reno.alpha };
            epoch.w_est += alpha * segments_acked / cwnd;
            target = target.max(epoch.w_est);
        }
        ((target - cwnd) / cwnd).clamp(0.0, MAX_GROWTH)
    }
}

impl WindowRule for Cubic {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        self.growth_per_packet(cwnd, acked, path) * acked
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let p = self.parameters;
        self.w_max = Some(next_w_max(cwnd, self.w_max, p.beta, p.fast_convergence));
        self.cwnd_prior = cwnd;
        self.epoch = None;
        cwnd * p.beta
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
        self.cwnd_prior *= factor;
        // The next epoch computes K from the scaled window and the scaled W_max.
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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn path_at(seconds: f64, min_rtt: Span) -> Path {
        let now = Time::ZERO + Span::from_secs_f64(seconds);
        Path { min_rtt: Some(min_rtt), cwnd_limited: true, ..Path::new(1448, now) }
    }

    fn cubic(change: impl FnOnce(&mut Parameters)) -> Cubic {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        Cubic::new(parameters)
    }

    /// The growth for one packet acknowledged.
    pub(crate) fn growth(rule: &mut impl WindowRule, cwnd: f64, path: &Path) -> f64 {
        rule.increase(cwnd, 1.0, path, &Ack::default())
    }

    pub(crate) fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn the_cubic_starts_at_cwnd_and_is_symmetric_about_w_max_at_k() {
        let epoch = Epoch::begin(Time::ZERO, 700.0, Some(1000.0), 0.4);
        assert_close(epoch.k, 9.085_602_964_160_698); // cbrt(300 / 0.4)
        assert_close(epoch.w_cubic(0.0, 0.4), 700.0);
        assert_close(epoch.w_cubic(epoch.k, 0.4), 1000.0);
        assert_close(epoch.w_cubic(2.0 * epoch.k, 0.4), 1300.0);
        assert_close(epoch.w_cubic(epoch.k + 1.0, 0.4), 1000.4);
        assert_close(epoch.w_cubic(epoch.k - 5.0, 0.4), 950.0);
    }

    #[test]
    fn a_packet_acknowledged_grows_the_window_towards_w_cubic_of_t_plus_rtt() {
        let mut rule = cubic(|p| p.reno_friendly = None);
        let rtt = Span::from_millis(100);
        assert_close(rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss()), 700.0);
        growth(&mut rule, 700.0, &path_at(2.0, rtt));
        // t = 5 s, RTT = 0.1 s: 0.4 (5.1 - 9.0856)^3 + 1000
        let target = 974.675_429_363_494_1;
        assert_close(growth(&mut rule, 900.0, &path_at(7.0, rtt)), (target - 900.0) / 900.0);
    }

    #[test]
    fn the_target_is_clamped_to_1_to_1_5_times_the_window() {
        let mut rule = cubic(|p| p.reno_friendly = None);
        let rtt = Span::from_millis(100);
        rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss());
        growth(&mut rule, 700.0, &path_at(0.0, rtt));
        assert_eq!(growth(&mut rule, 701.0 + 500.0, &path_at(0.1, rtt)), 0.0);
        assert_eq!(growth(&mut rule, 700.0, &path_at(100.0, rtt)), 0.5);
    }

    #[test]
    fn fast_convergence_lowers_w_max_while_the_window_shrinks() {
        for (fast, expected) in [(true, 900.0 * 1.7 / 2.0), (false, 900.0)] {
            let mut rule = cubic(|p| p.fast_convergence = fast);
            let path = path_at(0.0, Span::from_millis(100));
            rule.decrease(1000.0, &path, &CongestionEvent::loss());
            assert_eq!(rule.w_max, Some(1000.0));
            assert_close(rule.decrease(900.0, &path, &CongestionEvent::loss()), 630.0);
            assert_close(rule.w_max.expect("a reduction"), expected);
            rule.decrease(950.0, &path, &CongestionEvent::loss());
            assert_eq!(rule.w_max, Some(950.0));
        }
    }

    /// Grows for `rounds` round trips of zero length, in which `W_cubic` is constant.
    fn grow(rule: &mut Cubic, mut cwnd: f64, rounds: u32) -> f64 {
        for _ in 0..rounds {
            let round = cwnd;
            let mut left = round;
            while left > 0.0 {
                cwnd +=
                    rule.increase(cwnd, left.min(1.0), &path_at(0.0, Span::ZERO), &Ack::default());
                left -= 1.0;
            }
        }
        cwnd
    }

    #[test]
    fn in_the_reno_friendly_region_the_window_grows_by_alpha_then_by_1() {
        let alpha = 9.0 / 17.0; // 3 (1 - 0.7) / (1 + 0.7)
        for (friendliness, beyond) in
            [(RenoFriendly::rfc(0.7), 1.0), (RenoFriendly::linux(0.7), alpha)]
        {
            let mut rule = cubic(|p| p.reno_friendly = Some(friendliness));
            let cwnd = rule.decrease(100.0, &path_at(0.0, Span::ZERO), &CongestionEvent::loss());
            // No time passes: W_cubic stays at 70 packets.
            let below = grow(&mut rule, cwnd, 20);
            let per_round = (grow(&mut rule, below, 20) - below) / 20.0;
            assert!((per_round / alpha - 1.0).abs() < 0.02, "{per_round}");
            let above = grow(&mut rule, 100.0, 40);
            assert!(above > 100.0);
            let per_round = (grow(&mut rule, above, 20) - above) / 20.0;
            assert!((per_round / beyond - 1.0).abs() < 0.02, "{per_round}");
        }
    }

    #[test]
    fn before_the_first_loss_the_window_grows_by_at_least_5_percent_a_round() {
        let mut rule = cubic(|_| {});
        let path = path_at(1.0, Span::from_millis(10));
        assert_close(growth(&mut rule, 500.0, &path), 0.05);
        rule.decrease(500.0, &path, &CongestionEvent::loss());
        assert!(growth(&mut rule, 350.0, &path) < 0.05);
    }

    #[test]
    fn after_a_timeout_w_max_is_the_window_at_the_start_of_the_epoch() {
        let mut rule = cubic(|_| {});
        let path = path_at(1.0, Span::from_millis(100));
        let timeout = CongestionEvent::timeout();
        assert_close(rule.decrease(1000.0, &path, &timeout), 700.0);
        rule.on_timeout();
        growth(&mut rule, 700.0, &path);
        let epoch = rule.epoch.expect("begun by the growth");
        assert_eq!((epoch.k, epoch.w_max, epoch.w_est > 700.0), (0.0, 700.0, true));
    }

    #[test]
    fn idle_time_is_excluded_from_t() {
        let rtt = Span::from_millis(100);
        let grown = |pause: u64| {
            let mut rule = cubic(|p| p.reno_friendly = None);
            rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss());
            growth(&mut rule, 700.0, &path_at(0.0, rtt));
            let pause = Span::from_secs(pause);
            rule.on_restart(&path_at(2.0 + pause.as_secs_f64(), rtt), pause);
            growth(&mut rule, 800.0, &path_at(3.0 + pause.as_secs_f64(), rtt))
        };
        assert_eq!(grown(30), grown(0));
    }

    /// `alpha_cubic` for `beta_cubic` 0.7 is 0.9/1.7 = 9/17; for 0.8 it is 0.6/1.8 = 1/3.
    #[test]
    fn the_estimate_of_reno_is_linux_s_unless_rfc_or_off_is_chosen() {
        let alphas = |text: &str| {
            let mut options = text.parse().expect("well formed");
            let parameters = Parameters::from_options(&mut options).expect("within range");
            parameters.reno_friendly.map(|reno| (reno.alpha, reno.alpha_beyond))
        };
        for (text, alpha, beyond) in [
            ("cubic", 0.529_411_764_705_882_4, 0.529_411_764_705_882_4),
            ("cubic(tcp_friendliness=linux)", 0.529_411_764_705_882_4, 0.529_411_764_705_882_4),
            ("cubic(tcp_friendliness=rfc)", 0.529_411_764_705_882_4, 1.0),
            ("cubic(beta=0.8, tcp_friendliness=rfc)", 1.0 / 3.0, 1.0),
        ] {
            let (shown_alpha, shown_beyond) = alphas(text).expect("the region is on");
            assert_close(shown_alpha, alpha);
            assert_close(shown_beyond, beyond);
        }
        assert_eq!(alphas("cubic(tcp_friendliness=off)"), None);
    }

    /// `K = cbrt((1000 - 800) / 4)` = 3.684031498640387 s; `W_max` stays 900 without convergence.
    #[test]
    fn the_options_change_the_cubic_and_the_reduction() {
        let mut options = "cubic(c=4, beta=0.8, fast_convergence=off, tcp_friendliness=off)"
            .parse()
            .expect("well formed");
        let mut rule = Cubic::new(Parameters::from_options(&mut options).expect("within range"));
        let path = path_at(0.0, Span::from_millis(100));
        assert_close(rule.decrease(1000.0, &path, &CongestionEvent::loss()), 800.0);
        growth(&mut rule, 800.0, &path);
        assert_close(rule.epoch.expect("begun by the growth").k, 3.684_031_498_640_387);
        assert_close(rule.decrease(900.0, &path, &CongestionEvent::loss()), 720.0);
        assert_eq!(rule.w_max, Some(900.0));
    }
}
