//! DBAC, dynamic bandwidth aware congestion control (Han, "Optimizing transmission efficiency with
//! dynamic bandwidth aware congestion control (DBAC) in high-speed multipath networks", 2024).
//!
//! Like Reno, LIA cannot fill a path with a large bandwidth-delay product (BDP). DBAC runs CUBIC on
//! large paths and LIA on small ones. In LIA's equation a large path counts with a virtual window:
//! the one that LIA would have there.
//!
//! A path is large while its BDP, estimated from window, round-trip time and MSS, is at least a
//! threshold. On a large path, CUBIC's window `currentCubic` gives
//!
//! ```text
//! avgReno = sqrt(3 / (2 p))                                  (3)
//! avgCubic = 1.054 RTT^(3/4) / p^(3/4)                       (4)
//! virtualReno = currentCubic avgReno / avgCubic              (5)
//! alpha1 = LIA's alpha of virtualReno and the siblings' windows
//! W_dbac = virtualReno sqrt(alpha1) avgCubic / avgReno       (6)
//! ```
//!
//! and the congestion window is `W_dbac`. The virtual LIA window is `virtualReno sqrt(alpha1)`: the
//! paper takes LIA's mean window as Reno's times the root of alpha, citing RFC 6356. Small paths grow as
//! LIA with `alpha2`: LIA's alpha of the virtual windows of the large paths and the real windows of the
//! small ones. By (6) the virtual window is `W_dbac avgReno / avgCubic`. The paper's kernel stores it in
//! global variables; here a sibling computes it from `W_dbac`, the window that the large path publishes.
//! Each subflow uses the others' present windows at every acknowledgement,
//! and this iteration makes `alpha1` and `alpha2` converge.
//!
//! The paper leaves these open:
//!
//! - The threshold: option `threshold`, bytes, default 10^6. The BDP, rate times RTT, is
//!   `(cwnd MSS / RTT) RTT = cwnd MSS`, and is compared at every acknowledgement.
//! - `p`, a constant: option `p`, default 10^-6, the testbed's loss rate.
//! - `alpha1` has no upper limit. It exceeds 1 while another path is the best (maximum `w / rtt^2`)
//!   and this path's round-trip time grows with its queue. Then more than CUBIC's window is in
//!   flight, and the queue and `alpha1` grow until loss. LIA never grows faster than Reno (the
//!   second term of RFC 6356's increase), but (6) has no such term.
//! - The version of CUBIC: the paper cites RFC 8312; here it is [`crate::Cubic`] with its defaults. It
//!   counts packets even if the stack counts acknowledgements.
//! - The change of a path from small to large and back: CUBIC starts from the present window, without
//!   `W_max`. A path that becomes small keeps `currentCubic` as its window, not `W_dbac`.
//! - Several large paths: each counts with its virtual LIA window in the others' `alpha1`, too.
//! - The window that siblings compare with the threshold: `W_dbac`. The path itself compares
//!   `currentCubic`, so near the threshold the two can differ. A subflow uses its
//!   own MSS for its siblings.
//!
//! With `arithmetic=linux` small paths count acknowledgements and grow by whole 4096ths, as LIA in
//! the kernel that the paper changes.
//!
//! Two ablations, which the paper advises against: with `coupling=cubic` equation 1 takes CUBIC's window
//! instead of the virtual one; with `coupling=reno` siblings use `virtualReno` without the root. In both
//! the large path sends `currentCubic`: equation 6 is not applied.

use crate::algorithm::windowed;
use crate::arithmetic::Arithmetic;
use crate::coupled::{Member, siblings, this_subflow};
use crate::lia;
use crate::{
    Ack, AnySlowStart, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Cubic, CubicParameters, Metric, Options, Path, Sent, WindowRule, Windowed,
};
use dumbbell_units::{Span, Time};

/// The window with which a large path counts in LIA's equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coupling {
    /// The virtual LIA window.
    Lia,
    /// `virtualReno`.
    Reno,
    /// CUBIC's window.
    Cubic,
}

/// The windows of Reno and CUBIC at a fixed loss rate.
#[derive(Clone, Copy, Debug)]
struct MeanWindows {
    p: f64,
    /// `avgReno` (equation 3), packets.
    reno: f64,
}

impl MeanWindows {
    fn new(p: f64) -> MeanWindows {
        MeanWindows { p, reno: libm::sqrt(3.0 / (2.0 * p)) }
    }

    /// `avgReno / avgCubic` (equations 3 and 4) for a round-trip time in seconds.
    #[inline]
    fn reno_per_cubic(self, rtt: f64) -> f64 {
        let root = libm::sqrt(rtt / self.p); // x^0.75 is the root of x, times the root of that.
        let cubic = 1.054 * root * libm::sqrt(root);
        self.reno / cubic
    }
}

/// DBAC's window rule: CUBIC's on a large path, LIA's on a small one.
#[derive(Clone, Debug)]
struct DbacRule {
    threshold: f64,
    mean: MeanWindows,
    coupling: Coupling,
    arithmetic: Arithmetic,
    parameters: CubicParameters,
    /// CUBIC's state while the path is large.
    cubic: Option<Cubic>,
    /// `alpha1` on a large path, `alpha2` on a small one.
    alpha: f64,
    /// On a small path, the sum of the windows in LIA's equation, packets.
    total: f64,
    /// The virtual LIA window of a large path.
    virtual_cwnd: f64,
}

impl DbacRule {
    fn is_large(&self, cwnd: f64, mss: u32) -> bool {
        cwnd * f64::from(mss) >= self.threshold
    }

    /// The siblings with their windows in LIA's equation.
    fn siblings<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = Member> + Clone + 'a {
        siblings(path).map(|sibling| {
            if self.is_large(sibling.cwnd, path.mss) && self.coupling != Coupling::Cubic {
                let cwnd = sibling.cwnd * self.mean.reno_per_cubic(sibling.rtt);
                return Member { cwnd, ..sibling };
            }
            sibling
        })
    }

    /// Updates mode, alpha and virtual window from the present windows of all subflows.
    fn couple(&mut self, cwnd: f64, path: &Path) {
        let Some(own) = this_subflow(cwnd, path) else { return };
        if !self.is_large(cwnd, path.mss) {
            self.cubic = None;
            let members = self.siblings(path).chain([own]);
            let total = members.clone().map(|member| member.cwnd).sum();
            (self.alpha, self.total) = (lia::alpha(members), total);
            return;
        }
        if self.cubic.is_none() {
            self.cubic = Some(Cubic::new(self.parameters));
        }
        let share = match self.coupling {
            Coupling::Cubic => 1.0,
            Coupling::Lia | Coupling::Reno => self.mean.reno_per_cubic(own.rtt),
        };
        let shown = Member { cwnd: cwnd * share, ..own };
        self.alpha = lia::alpha(self.siblings(path).chain([shown]));
        self.virtual_cwnd = shown.cwnd * libm::sqrt(self.alpha);
    }

    /// `W_dbac / currentCubic` (equation 6); 1 on a small path.
    fn inflight_share(&self) -> f64 {
        match (&self.cubic, self.coupling) {
            // Equations 5 and 6 leave W_dbac = currentCubic sqrt(alpha1).
            (Some(_), Coupling::Lia) => libm::sqrt(self.alpha),
            _ => 1.0,
        }
    }
}

impl WindowRule for DbacRule {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        if let Some(cubic) = &mut self.cubic {
            return cubic.growth_per_packet(cwnd, acked, path) * ack.scale_to_packets(acked);
        }
        self.arithmetic.growth(acked, cwnd, self.alpha, self.total)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        match &mut self.cubic {
            Some(cubic) => cubic.decrease(cwnd, path, event),
            None => cwnd / 2.0,
        }
    }

    fn on_timeout(&mut self) {
        if let Some(cubic) = &mut self.cubic {
            cubic.on_timeout();
        }
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        if let Some(cubic) = &mut self.cubic {
            cubic.on_restart(path, pause);
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.total *= factor;
        self.virtual_cwnd *= factor;
        if let Some(cubic) = &mut self.cubic {
            cubic.on_mtu_update(factor);
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        value("large", f64::from(u8::from(self.cubic.is_some())));
        if self.cubic.is_some() {
            value("alpha1", self.alpha);
            value("virtual window", self.virtual_cwnd);
        } else {
            value("alpha2", self.alpha);
        }
    }
}

/// DBAC: a window by its rule, scaled by equation 6.
#[derive(Clone, Debug)]
pub struct Dbac {
    window: Windowed<DbacRule, AnySlowStart>,
}

impl Dbac {
    /// Takes the options `threshold` (bytes), `p`, `coupling`, `arithmetic`, `slow_start` and
    /// `initial_ssthresh`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Dbac, ConfigError> {
        let valid = "0 to 10^12 bytes";
        let rule = DbacRule {
            threshold: options.number("threshold", 1e6, 0.0..=1e12, valid)?,
            mean: MeanWindows::new(options.number("p", 1e-6, 1e-12..=1.0, "10^-12 to 1")?),
            coupling: options.choice(
                "coupling",
                Coupling::Lia,
                &[("lia", Coupling::Lia), ("reno", Coupling::Reno), ("cubic", Coupling::Cubic)],
                "lia, reno or cubic",
            )?,
            arithmetic: Arithmetic::from_options(options)?,
            parameters: CubicParameters::default(),
            cubic: None,
            alpha: 1.0,
            total: 0.0,
            virtual_cwnd: 0.0,
        };
        Ok(Dbac { window: windowed(rule, options, init)? })
    }
}

impl CongestionControl for Dbac {
    #[inline]
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let cwnd = self.window.control().cwnd;
        self.window.rule_mut().couple(cwnd, path);
        self.window.on_ack(path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.window.on_congestion(path, event);
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        let share = self.window.rule().inflight_share();
        let ControlParameters { cwnd, ssthresh, .. } = self.window.control();
        let cwnd = (cwnd * share).max(1.0);
        ControlParameters::new(cwnd).with_ssthresh(ssthresh * share)
    }

    fn on_established(&mut self, path: &Path) {
        self.window.on_established(path);
    }

    #[inline]
    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.window.on_sent(path, sent);
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.window.on_spurious_loss(path);
    }

    fn on_restart_after_idle(&mut self, cwnd: f64) {
        self.window.on_restart_after_idle(cwnd / self.window.rule().inflight_share());
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        self.window.on_mtu_update(path, previous_mss);
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        self.window.on_persistent_congestion(path);
    }

    fn on_receive_window_penalty(&mut self, path: &Path) {
        self.window.on_receive_window_penalty(path);
    }

    fn on_timer(&mut self, path: &Path) {
        self.window.on_timer(path);
    }

    fn next_timer(&self) -> Option<Time> {
        self.window.next_timer()
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.window.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::{assert_close, path};

    /// DBAC with this window, out of slow start.
    fn dbac(text: &str, cwnd: f64) -> Dbac {
        let init = ConnectionConfig::new(Time::ZERO, 1460).with_initial_window(cwnd).with_seed(1);
        let mut options = text.parse().expect("well formed");
        let mut dbac = Dbac::from_options(&mut options, &init).expect("within range");
        dbac.window = dbac.window.with_ssthresh(cwnd);
        dbac
    }

    fn acknowledge(dbac: &mut Dbac, path: &Path) -> f64 {
        let before = dbac.window.control().cwnd;
        dbac.on_ack(path, &Ack { delivered: 1, acked: 1, ..Ack::default() });
        dbac.window.control().cwnd - before
    }

    fn shown(dbac: &Dbac, name: &str) -> Option<f64> {
        let mut value = None;
        dbac.inspect(&mut |shown| value = (shown.name == name).then_some(shown.value).or(value));
        value
    }

    /// By hand: `avgReno` = sqrt(3 / 2e-6) = 1224.745 and
    /// `avgCubic` = 1.054 (0.1 / 1e-6)^(3/4) = 5927.078.
    #[test]
    fn equations_3_and_4_give_0_2066_at_100_ms_and_a_loss_rate_of_1e_6() {
        assert_close(MeanWindows::new(1e-6).reno_per_cubic(0.1), 0.206_635_539_596_435_6);
    }

    /// `virtualReno` = 0.206636 * 5000 = 1033.18 packets at 100 ms, beside 70 packets at 40 ms:
    /// `alpha1` = (1033.18 + 70) (1033.18 / 0.1^2) / (1033.18 / 0.1 + 70 / 0.04)^2 = 0.780834.
    #[test]
    fn a_large_path_sends_cubic_s_window_times_the_root_of_alpha_1() {
        let mut dbac = dbac("dbac", 5000.0);
        acknowledge(&mut dbac, &path(100, &[(70.0, 40)]));
        assert_close(shown(&dbac, "alpha1").expect("it is large"), 0.780_834_272_173_265_4);
        let virtual_window = shown(&dbac, "virtual window").expect("it is large");
        assert_close(virtual_window, 912.965_689_574_833_7);
        // The acknowledgement adds CUBIC's initial 5 %: 5000.05 sqrt(alpha1).
        assert_close(dbac.control().cwnd, 4_418.285_552_498_821);
    }

    /// The sibling's 4400 packets at 100 ms count as 0.206636 * 4400 = 909.196:
    /// `alpha2` = (909.196 + 70) (909.196 / 0.1^2) / (909.196 / 0.1 + 70 / 0.04)^2 = 0.757376.
    #[test]
    fn a_small_path_grows_as_lia_beside_the_virtual_window() {
        let mut dbac = dbac("dbac", 70.0);
        let growth = acknowledge(&mut dbac, &path(40, &[(4400.0, 100)]));
        assert_close(shown(&dbac, "alpha2").expect("it is small"), 0.757_376_090_255_613_1);
        assert!((growth - 0.000_773_467_008_449_2).abs() < 1e-12, "{growth}");
        dbac.on_congestion(&path(40, &[]), &CongestionEvent::loss());
        assert!((dbac.control().cwnd - 35.0).abs() < 0.001);
    }

    /// With 4400 packets themselves, alpha2 / 4470 = 0.939676 / 4470.
    #[test]
    fn with_cubic_s_own_window_in_equation_1_a_small_path_grows_more_slowly() {
        let mut dbac = dbac("dbac(coupling=cubic)", 70.0);
        let growth = acknowledge(&mut dbac, &path(40, &[(4400.0, 100)]));
        assert!((growth - 0.000_210_218_280_629_5).abs() < 1e-12, "{growth}");
    }

    #[test]
    fn the_threshold_decides_between_cubic_s_and_reno_s_reduction() {
        for (text, factor) in [("dbac(threshold=1e6)", 0.7), ("dbac(threshold=2e6)", 0.5)] {
            let mut dbac = dbac(text, 1000.0);
            let path = path(100, &[]);
            acknowledge(&mut dbac, &path);
            let before = dbac.window.control().cwnd;
            dbac.on_congestion(&path, &CongestionEvent::loss());
            assert_close(dbac.window.control().cwnd, before * factor);
        }
    }

    #[test]
    fn a_subflow_alone_is_reno_or_cubic() {
        let mut small = dbac("dbac", 100.0);
        assert_close(acknowledge(&mut small, &path(100, &[])), 0.01);
        let mut large = dbac("dbac", 1000.0);
        acknowledge(&mut large, &path(100, &[]));
        assert_close(shown(&large, "alpha1").expect("it is large"), 1.0);
    }
}
