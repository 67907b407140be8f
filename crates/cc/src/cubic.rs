//! CUBIC (RFC 9438), as Linux 6.18's `tcp_cubic.c` carries it out.
//!
//! After a reduction from `W_max` the window follows a cubic of the time `t` since congestion
//! avoidance began (section 4.2):
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max            (1)
//! K = cbrt((W_max - cwnd_epoch) / C)          (2)
//! target = W_cubic(t + RTT), held between cwnd and 1.5 cwnd
//! cwnd += (target - cwnd) / cwnd              for every packet acknowledged (4.4, 4.5)
//! ```
//!
//! Beside it runs an estimate of the window that Reno would have (section 4.3):
//!
//! ```text
//! W_est += alpha * segments_acked / cwnd      (4)
//! alpha = 3 (1 - beta) / (1 + beta)
//! ```
//!
//! That is the region of RFC 8312, which Linux and ns-3 have to this day. RFC 9438 lets `alpha` be 1
//! once `W_est >= cwnd_prior` (`tcp_friendliness=rfc`).
//!
//! On congestion (4.6, 4.7):
//!
//! ```text
//! W_max = cwnd (1 + beta) / 2 if cwnd < W_max and fast convergence is on, else cwnd
//! ssthresh = max(beta cwnd, 2)
//! ```
//!
//! Where the RFC and Linux differ:
//!
//! | | RFC 9438 | Linux | here |
//! |---|---|---|---|
//! | `RTT` in the target | smoothed | least | Linux |
//! | `W_est` above the cubic | `cwnd = W_est` at once | `W_est` is the target if greater | Linux |
//! | `alpha` once `W_est >= cwnd_prior` | 1 | unchanged | Linux; RFC with `tcp_friendliness=rfc` |
//! | `alpha` for `beta` 0.7 | 0.529 | 8/15, by integer division | RFC |
//! | target at or below `cwnd` | no growth | 1 packet in 100 round trips | RFC |
//! | `W_max` unknown (4.8, 4.10) | `W_max = cwnd`, `K = 0` | and 5 % a round trip at least | Linux |
//! | pause of the application (5.8) | `t` leaves out all time below `cwnd` | the idle time | Linux |
//! | spurious congestion (4.9) | may restore the epoch | a new epoch, old window | Linux |
//! | after a timeout (4.8) | `W_max` = window at the next epoch | the same | both |
//! | resolution | exact | whole packets and jiffies | RFC |

use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::{Span, Time};

/// The numbers that make a CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How steep the cubic is, packets/s^3.
    pub c: f64,
    /// What a reduction leaves of the window.
    pub beta: f64,
    /// Whether a flow whose window shrinks from loss to loss gives up some more (4.7).
    pub fast_convergence: bool,
    /// Whether, and how, the window keeps up with Reno's (4.3).
    pub reno_friendly: Option<RenoFriendly>,
    /// Most that the window grows for a packet acknowledged (4.2 and Linux: 1.5 times a round).
    pub max_growth: f64,
    /// How it grows while `W_max` is unknown, for a packet acknowledged.
    pub first_growth: FirstGrowth,
    /// How steep the cubic is that the window follows to the plateau; `c`, unless there is a slip.
    pub c_growth: f64,
    /// Most that the cubic grows, packets/s, if that is limited.
    pub s_max: Option<f64>,
    /// Whether growth goes by packets even where the stack counts acknowledgements.
    pub counts_packets: bool,
}

/// Growth while `W_max` is unknown, as a part of the window in a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FirstGrowth {
    /// The cubic's, and so much at least (Linux: 5 %).
    AtLeast(f64),
    /// So much (Linux 2.6.18: 2 %).
    Exactly(f64),
}

/// How fast the estimate of Reno's window grows, packets a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoFriendly {
    /// Until it reaches the window before the last reduction.
    pub alpha: f64,
    /// From there on.
    pub alpha_beyond: f64,
}

impl RenoFriendly {
    /// RFC 9438, section 4.3.
    pub fn rfc(beta: f64) -> RenoFriendly {
        RenoFriendly { alpha_beyond: 1.0, ..RenoFriendly::linux(beta) }
    }

    /// Linux, which never goes over to Reno's own slope.
    pub fn linux(beta: f64) -> RenoFriendly {
        let alpha = 3.0 * (1.0 - beta) / (1.0 + beta);
        RenoFriendly { alpha, alpha_beyond: alpha }
    }
}

impl Default for Parameters {
    /// RFC 9438's, but for Linux's estimate of Reno's window.
    fn default() -> Parameters {
        Parameters {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            reno_friendly: Some(RenoFriendly::linux(0.7)),
            max_growth: 0.5,
            first_growth: FirstGrowth::AtLeast(1.0 / 20.0),
            c_growth: 0.4,
            s_max: None,
            counts_packets: false,
        }
    }
}

impl Parameters {
    /// Takes the options `c`, `beta`, `fast_convergence` and `tcp_friendliness`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Parameters, ConfigError> {
        let default = Parameters::default();
        let beta = options.number("beta", default.beta, 0.1..=0.99, "0.1 to 0.99")?;
        let friendliness = options.choice(
            "tcp_friendliness",
            Some(RenoFriendly::linux(beta)),
            &[
                ("linux", Some(RenoFriendly::linux(beta))),
                ("rfc", Some(RenoFriendly::rfc(beta))),
                ("off", None),
            ],
            "linux, rfc or off",
        )?;
        let c = options.number("c", default.c, 1e-3..=1e3, "0.001 to 1000")?;
        Ok(Parameters {
            c,
            c_growth: c,
            beta,
            fast_convergence: options.switch("fast_convergence", default.fast_convergence)?,
            reno_friendly: friendliness,
            ..default
        })
    }
}

/// CUBIC's rule.
#[derive(Clone, Debug)]
pub struct Cubic {
    parameters: Parameters,
    /// `W_max`; `None` before the first reduction and after a timeout.
    w_max: Option<f64>,
    /// The window before the last reduction; 0 before there is one.
    cwnd_prior: f64,
    /// Congestion avoidance since the last reduction; `None` until it begins.
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    t_epoch: Time,
    /// The cubic's plateau, packets.
    origin: f64,
    /// When the plateau is reached, seconds after the start.
    k: f64,
    w_est: f64,
}

impl Epoch {
    /// Equation 2; a window at or above `W_max` is a plateau itself.
    fn begin(now: Time, cwnd: f64, w_max: Option<f64>, c: f64) -> Epoch {
        let origin = w_max.unwrap_or(0.0).max(cwnd);
        Epoch { t_epoch: now, origin, k: libm::cbrt((origin - cwnd) / c), w_est: cwnd }
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * from_plateau * from_plateau * from_plateau + self.origin
    }
}

impl Cubic {
    /// The rule at the beginning of a connection.
    pub fn new(parameters: Parameters) -> Cubic {
        Cubic { parameters, w_max: None, cwnd_prior: 0.0, epoch: None }
    }
}

impl WindowRule for Cubic {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let p = self.parameters;
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(path.now, cwnd, w_max, p.c));
        let ahead = path.min_rtt.unwrap_or(Span::ZERO);
        let t = (path.now.since(epoch.t_epoch) + ahead).as_secs_f64();
        let mut target = epoch.w_cubic(t, p.c_growth);
        if let Some(s_max) = p.s_max {
            target = target.min(cwnd + s_max * ahead.as_secs_f64());
        }
        if w_max.is_none() {
            target = match p.first_growth {
                FirstGrowth::AtLeast(growth) => target.max(cwnd * (1.0 + growth)),
                FirstGrowth::Exactly(growth) => cwnd * (1.0 + growth),
            };
        }
        if let Some(reno) = p.reno_friendly {
            let caught_up = epoch.w_est >= self.cwnd_prior;
            let alpha = if caught_up { reno.alpha_beyond } else { reno.alpha };
            epoch.w_est += alpha * acked / cwnd;
            target = target.max(epoch.w_est);
        }
        let packets = if p.counts_packets { ack.scale_to_packets(acked) } else { acked };
        ((target - cwnd) / cwnd).clamp(0.0, p.max_growth) * packets
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let p = self.parameters;
        let shrinking = self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max =
            Some(if shrinking && p.fast_convergence { cwnd * (1.0 + p.beta) / 2.0 } else { cwnd });
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
            epoch.t_epoch = (epoch.t_epoch + pause).min(path.now);
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.w_max = self.w_max.map(|w_max| w_max * factor);
        self.cwnd_prior *= factor;
        // The next epoch begins at the scaled window; its K is of the scaled plateau.
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
    pub(crate) fn growth(rule: &mut Cubic, cwnd: f64, path: &Path) -> f64 {
        rule.increase(cwnd, 1.0, path, &Ack::default())
    }

    pub(crate) fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn the_cubic_starts_at_the_window_is_flat_at_w_max_after_k_and_mirrors_itself_there() {
        let epoch = Epoch::begin(Time::ZERO, 700.0, Some(1000.0), 0.4);
        assert_close(epoch.k, 9.085_602_964_160_698); // cbrt(300 / 0.4)
        assert_close(epoch.w_cubic(0.0, 0.4), 700.0);
        assert_close(epoch.w_cubic(epoch.k, 0.4), 1000.0);
        assert_close(epoch.w_cubic(2.0 * epoch.k, 0.4), 1300.0);
        assert_close(epoch.w_cubic(epoch.k + 1.0, 0.4), 1000.4);
        assert_close(epoch.w_cubic(epoch.k - 5.0, 0.4), 950.0);
    }

    #[test]
    fn each_packet_acknowledged_moves_the_window_towards_the_cubic_a_round_trip_ahead() {
        let mut rule = cubic(|p| p.reno_friendly = None);
        let rtt = Span::from_millis(100);
        assert_close(rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss()), 700.0);
        growth(&mut rule, 700.0, &path_at(2.0, rtt));
        // t = 5 s: 0.4 (5.1 - K)^3 + 1000
        let target = 974.675_429_363_494_1;
        assert_close(growth(&mut rule, 900.0, &path_at(7.0, rtt)), (target - 900.0) / 900.0);
    }

    #[test]
    fn the_target_lies_between_the_window_and_one_and_a_half_of_it() {
        let mut rule = cubic(|p| p.reno_friendly = None);
        let rtt = Span::from_millis(100);
        rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss());
        growth(&mut rule, 700.0, &path_at(0.0, rtt));
        assert_eq!(growth(&mut rule, 701.0 + 500.0, &path_at(0.1, rtt)), 0.0);
        assert_eq!(growth(&mut rule, 700.0, &path_at(100.0, rtt)), 0.5);
    }

    #[test]
    fn a_window_that_shrinks_from_loss_to_loss_gives_up_some_more_if_convergence_is_fast() {
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

    /// Grows for `rounds` round trips so short that the cubic stands still.
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
    fn where_reno_is_faster_the_window_grows_by_alpha_and_by_one_beyond_the_last_reduction() {
        let alpha = 3.0 * 0.3 / 1.7;
        for (friendliness, beyond) in
            [(RenoFriendly::rfc(0.7), 1.0), (RenoFriendly::linux(0.7), alpha)]
        {
            let mut rule = cubic(|p| p.reno_friendly = Some(friendliness));
            let cwnd = rule.decrease(100.0, &path_at(0.0, Span::ZERO), &CongestionEvent::loss());
            // The cubic would stay at 70 packets: no time passes.
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
    fn before_the_first_loss_the_window_grows_by_five_percent_a_round_at_least() {
        let mut rule = cubic(|_| {});
        let path = path_at(1.0, Span::from_millis(10));
        assert_close(growth(&mut rule, 500.0, &path), 0.05);
        rule.decrease(500.0, &path, &CongestionEvent::loss());
        assert!(growth(&mut rule, 350.0, &path) < 0.05);
    }

    #[test]
    fn a_timeout_forgets_w_max_so_that_the_next_epoch_is_its_own_plateau() {
        let mut rule = cubic(|_| {});
        let path = path_at(1.0, Span::from_millis(100));
        let timeout = CongestionEvent::timeout();
        assert_close(rule.decrease(1000.0, &path, &timeout), 700.0);
        rule.on_timeout();
        growth(&mut rule, 700.0, &path);
        let epoch = rule.epoch.expect("begun by the growth");
        assert_eq!((epoch.k, epoch.origin, epoch.w_est > 700.0), (0.0, 700.0, true));
    }

    #[test]
    fn time_in_which_the_application_was_idle_does_not_count() {
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

    /// tcp_cubic.c and ns-3 have RFC 8312's region of Reno; RFC 9438's is an option.
    #[test]
    fn reno_s_window_is_estimated_as_linux_does_unless_the_rfc_is_asked_for() {
        for (text, expected) in [
            ("cubic", Some(RenoFriendly::linux(0.7))),
            ("cubic(tcp_friendliness=linux)", Some(RenoFriendly::linux(0.7))),
            ("cubic(tcp_friendliness=rfc)", Some(RenoFriendly::rfc(0.7))),
            ("cubic(tcp_friendliness=off)", None),
        ] {
            let mut options = text.parse().expect("well formed");
            let parameters = Parameters::from_options(&mut options).expect("within range");
            assert_eq!(parameters.reno_friendly, expected, "{text}");
        }
    }

    #[test]
    fn the_options_name_the_parameters() {
        let mut options = "cubic(c=4, beta=0.8, fast_convergence=off, tcp_friendliness=rfc)"
            .parse()
            .expect("well formed");
        let parameters = Parameters::from_options(&mut options).expect("within range");
        let expected = Parameters {
            c: 4.0,
            c_growth: 4.0,
            beta: 0.8,
            fast_convergence: false,
            reno_friendly: Some(RenoFriendly::rfc(0.8)),
            ..Parameters::default()
        };
        assert_eq!(parameters, expected);
    }
}
