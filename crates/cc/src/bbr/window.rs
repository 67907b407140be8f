//! The congestion window.
//!
//! It grows by what is delivered towards its target, `gain * BDP` and allowances, and falls to it
//! at once; but while the pipe is not known to be full, it does not fall, and grows beyond the
//! target until the first ten packets are delivered. It is never less than 4
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3; draft-ietf-ccwg-bbr-06, 5.6.4.6).

use super::model::{Scale, at_least_minimum};

/// The window, and the last one that neither loss recovery nor ProbeRTT had cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    cwnd: f64,
    prior: f64,
}

impl Window {
    /// The initial window.
    pub fn new(scale: Scale) -> Window {
        Window { cwnd: scale.initial_window, prior: 0.0 }
    }

    /// Packets that may be in flight.
    #[inline]
    pub fn get(&self) -> f64 {
        self.cwnd
    }

    /// Recovery sets the window itself, to no less than one packet.
    #[inline]
    pub fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.max(1.0);
    }

    /// Goes towards `target` on `acked` packets. `full` is whether the pipe was ever full, `early`
    /// whether hardly anything was delivered yet.
    #[inline]
    pub fn approach(&mut self, target: f64, acked: u32, full: bool, early: bool) {
        let grown = self.cwnd + f64::from(acked);
        if full {
            self.cwnd = grown.min(target);
        } else if self.cwnd < target || early {
            self.cwnd = grown;
        }
        self.cwnd = at_least_minimum(self.cwnd);
    }

    /// Is at most `most`, but not on that account less than 4.
    #[inline]
    pub fn cap(&mut self, most: f64) {
        self.cwnd = self.cwnd.min(at_least_minimum(most));
    }

    /// Remembers the window before it is cut; if it is `cut` already, the greater of the two.
    pub fn save(&mut self, cut: bool) {
        self.prior = if cut { self.prior.max(self.cwnd) } else { self.cwnd };
    }

    /// The window before it was cut.
    pub fn prior(&self) -> f64 {
        self.prior
    }

    /// Is again at least what it was before it was cut.
    pub fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { mss: 1448.0, initial_window: 10.0 };

    #[test]
    fn the_window_grows_by_what_is_delivered_and_falls_to_its_target_at_once() {
        let mut window = Window::new(SCALE);
        window.approach(14.0, 3, true, false);
        assert_eq!(window.get(), 13.0);
        window.approach(14.0, 3, true, false);
        assert_eq!(window.get(), 14.0);
        window.approach(8.0, 3, true, false);
        assert_eq!(window.get(), 8.0);
    }

    #[test]
    fn the_window_does_not_fall_before_the_pipe_is_full() {
        let mut window = Window::new(SCALE);
        window.approach(6.0, 3, false, false);
        assert_eq!(window.get(), 10.0);
        window.approach(6.0, 3, false, true);
        assert_eq!(window.get(), 13.0);
    }

    #[test]
    fn the_window_is_at_least_4_but_recovery_may_cut_it_to_1() {
        let mut window = Window::new(SCALE);
        window.approach(1.0, 1, true, false);
        assert_eq!(window.get(), 4.0);
        window.set(0.0);
        assert_eq!(window.get(), 1.0);
        window.cap(0.0);
        assert_eq!(window.get(), 1.0, "a cap does not raise the window");
    }

    #[test]
    fn the_window_from_before_a_cut_is_restored() {
        let mut window = Window::new(SCALE);
        window.save(false);
        window.set(5.0);
        window.save(true);
        window.restore();
        assert_eq!(window.get(), 10.0);
    }
}
