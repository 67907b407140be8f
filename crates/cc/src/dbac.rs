//! DBAC, dynamic bandwidth aware congestion control (Han, "Optimizing transmission efficiency with
//! dynamic bandwidth aware congestion control (DBAC) in high-speed multipath networks", 2024).
//!
//! LIA cannot fill a path of a large bandwidth-delay product, as Reno cannot. DBAC has CUBIC's
//! window there and LIA's elsewhere, and lets the LIA subflows see, in the place of CUBIC's window,
//! the one that LIA would have had on that path.
//!
//! A path is large while its BDP, estimated from window, round-trip time and MSS, is at least a
//! threshold. On a large path runs CUBIC; from its window `currentCubic` come
//!
//! ```text
//! avgReno = sqrt(3 / (2 p))                                  (3)
//! avgCubic = 1.054 RTT^(3/4) / p^(3/4)                       (4)
//! virtualReno = currentCubic avgReno / avgCubic              (5)
//! alpha1 = LIA's alpha of virtualReno and the siblings' windows
//! W_dbac = virtualReno sqrt(alpha1) avgCubic / avgReno       (6)
//! ```
//!
//! and `W_dbac` is what may be in flight. The virtual LIA window is `virtualReno sqrt(alpha1)`, as
//! LIA's mean window is Reno's times the root of alpha. The other paths grow as LIA does, with
//! `alpha2`: LIA's alpha of that virtual window and the real windows of the small paths. By (6) the
//! virtual window is `W_dbac avgReno / avgCubic`: siblings compute it from the window that they see.
//! Each subflow goes by the others' present windows at every acknowledgement, which is the
//! iteration that makes `alpha1` and `alpha2` converge.
//!
//! What the paper leaves open, and what is done here:
//!
//! - The threshold: the option `threshold`, bytes, 10^6 unless given. The BDP, rate times RTT, is
//!   `(cwnd MSS / RTT) RTT = cwnd MSS`, and is compared at every acknowledgement.
//! - `p`, a fixed number: the option `p`, 10^-6 unless given, the testbed's loss rate.
//! - `alpha1` is not capped. It exceeds 1 while another path is the best (its `w / rtt^2` the
//!   greatest) and this one's round-trip time grows with its queue; then more than CUBIC's window is
//!   in flight, the queue grows, and with it `alpha1`, until there is loss. LIA itself never grows
//!   faster than Reno (the second term of RFC 6356's increase), but (6) has no such term.
//! - CUBIC is RFC 9438's; it begins a new epoch when a path becomes large.
//!
//! With `arithmetic=linux` small paths grow by acknowledgements and in whole 4096ths, as with LIA in
//! the kernel that the paper changes.
//!
//! With `coupling=cubic` equation 1 takes CUBIC's window itself in the place of virtual ones, with
//! `coupling=reno` siblings take `virtualReno` without the root: what the paper says not to do.

use crate::algorithm::windowed;
use crate::coupled::{Member, siblings, this_subflow};
use crate::lia::{self, Arithmetic};
use crate::{
    Ack, AnySlowStart, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Cubic, CubicParameters, Metric, Options, Path, Sent, WindowRule, Windowed,
};
use dumbbell_units::{Span, Time};

/// Which window a large path shows in LIA's equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coupling {
    /// What LIA would have.
    Lia,
    /// What Reno would have.
    Reno,
    /// What it has.
    Cubic,
}

/// Equations 3 and 4: what Reno would hold for each packet that CUBIC holds.
fn reno_per_cubic(p: f64, rtt: f64) -> f64 {
    let reno = (3.0 / (2.0 * p)).sqrt();
    let root = (rtt / p).sqrt(); // x^0.75 is the root of x, times the root of that.
    let cubic = 1.054 * root * root.sqrt();
    reno / cubic
}

/// DBAC's rule: LIA's or CUBIC's, as the path is small or large.
#[derive(Clone, Debug)]
struct DbacRule {
    threshold: f64,
    p: f64,
    coupling: Coupling,
    arithmetic: Arithmetic,
    parameters: CubicParameters,
    /// CUBIC's state while the path is large.
    cubic: Option<Cubic>,
    /// `alpha1` on a large path, `alpha2` on a small one.
    alpha: f64,
    /// The windows that `alpha` is of, packets.
    total: f64,
    /// The virtual LIA window of a large path.
    virtual_cwnd: f64,
}

impl DbacRule {
    fn is_large(&self, cwnd: f64, mss: u32) -> bool {
        cwnd * f64::from(mss) >= self.threshold
    }

    /// The siblings with the windows that enter LIA's equation.
    fn siblings<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = Member> + Clone + 'a {
        siblings(path).map(|sibling| {
            if self.is_large(sibling.cwnd, path.mss) && self.coupling != Coupling::Cubic {
                let cwnd = sibling.cwnd * reno_per_cubic(self.p, sibling.rtt);
                return Member { cwnd, ..sibling };
            }
            sibling
        })
    }

    /// Sets mode, alpha and virtual window for the present windows of all.
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
            Coupling::Lia | Coupling::Reno => reno_per_cubic(self.p, own.rtt),
        };
        let shown = Member { cwnd: cwnd * share, ..own };
        self.alpha = lia::alpha(self.siblings(path).chain([shown]));
        self.virtual_cwnd = shown.cwnd * self.alpha.sqrt();
    }

    /// What of the window may be in flight: equation 6.
    fn inflight_share(&self) -> f64 {
        match (&self.cubic, self.coupling) {
            // Siblings see what is in flight; without the root it is CUBIC's window.
            (Some(_), Coupling::Lia) => self.alpha.sqrt(),
            _ => 1.0,
        }
    }
}

impl WindowRule for DbacRule {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        if let Some(cubic) = &mut self.cubic {
            return cubic.increase(cwnd, acked, path, ack);
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

/// DBAC: a window by its rule, of which equation 6 says how much may be in flight.
#[derive(Clone, Debug)]
pub struct Dbac {
    window: Windowed<DbacRule, AnySlowStart>,
}

impl Dbac {
    /// Takes the options `threshold` (bytes), `p`, `coupling`, `arithmetic`, `hystart` and
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
            p: options.number("p", 1e-6, 1e-12..=1.0, "10^-12 to 1")?,
            coupling: options.choice(
                "coupling",
                Coupling::Lia,
                &[("lia", Coupling::Lia), ("reno", Coupling::Reno), ("cubic", Coupling::Cubic)],
                "lia, reno or cubic",
            )?,
            arithmetic: Arithmetic::from_options(options)?,
            parameters: CubicParameters { counts_packets: true, ..CubicParameters::default() },
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

    #[test]
    fn equations_3_to_5_give_the_windows_of_the_testbed() {
        // sqrt(1.5e6) = 1224.745 and 1.054 * (1e5)^0.75 = 5927.05.
        assert_close(reno_per_cubic(1e-6, 0.1), 1_500_000f64.sqrt() / (1.054 * 1e5f64.powf(0.75)));
        let ratio = reno_per_cubic(1e-6, 0.1);
        assert!((ratio - 0.20664).abs() < 1e-5, "{ratio}");
    }

    #[test]
    fn a_large_path_sends_cubic_s_window_times_the_root_of_alpha_1() {
        let mut dbac = dbac("dbac", 5000.0);
        let path = path(100, &[(70.0, 40)]);
        acknowledge(&mut dbac, &path);
        let reno = 5000.0 * reno_per_cubic(1e-6, 0.1);
        let own = Member { cwnd: reno, rtt: 0.1 };
        let alpha1 = lia::alpha([own, Member { cwnd: 70.0, rtt: 0.04 }].into_iter());
        assert_close(shown(&dbac, "alpha1").expect("it is large"), alpha1);
        assert_close(shown(&dbac, "virtual window").expect("it is large"), reno * alpha1.sqrt());
        let window = dbac.window.control().cwnd;
        assert_close(dbac.control().cwnd, window * alpha1.sqrt());
        // Equation 6 the long way round: virtual LIA window times avgCubic / avgReno.
        let by_six = reno * alpha1.sqrt() / reno_per_cubic(1e-6, 0.1) * window / 5000.0;
        assert_close(dbac.control().cwnd, by_six);
    }

    #[test]
    fn a_small_path_grows_as_lia_beside_the_virtual_window() {
        let mut dbac = dbac("dbac", 70.0);
        let seen = 4400.0;
        let growth = acknowledge(&mut dbac, &path(40, &[(seen, 100)]));
        let virtual_lia = Member { cwnd: seen * reno_per_cubic(1e-6, 0.1), rtt: 0.1 };
        let alpha2 = lia::alpha([virtual_lia, Member { cwnd: 70.0, rtt: 0.04 }].into_iter());
        assert_close(shown(&dbac, "alpha2").expect("it is small"), alpha2);
        let expected = (alpha2 / (virtual_lia.cwnd + 70.0)).min(1.0 / 70.0);
        assert!((growth - expected).abs() < 1e-12, "{growth} is not {expected}");
        dbac.on_congestion(&path(40, &[]), &CongestionEvent::loss());
        assert!((dbac.control().cwnd - 35.0).abs() < 0.1);
    }

    #[test]
    fn with_cubic_s_own_window_in_equation_1_a_small_path_grows_more_slowly() {
        let path = path(40, &[(4400.0, 100)]);
        let [virtual_lia, cubic] =
            ["dbac", "dbac(coupling=cubic)"].map(|text| acknowledge(&mut dbac(text, 70.0), &path));
        assert!(cubic < 0.5 * virtual_lia, "{cubic} and {virtual_lia}");
    }

    #[test]
    fn the_threshold_decides_which_window_falls_by_which_factor() {
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
