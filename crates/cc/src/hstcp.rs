//! HighSpeed TCP (RFC 3649).
//!
//! The response function is a straight line, on logarithmic axes, through the points
//! (`Low_P`, `Low_Window`) and (`High_P`, `High_Window`) (section 5):
//!
//! ```text
//! w = (p / Low_P)^S Low_Window
//! S = (log High_Window - log Low_Window) / (log High_P - log Low_P)
//! ```
//!
//! with `Low_Window` 38, `Low_P` 10^-3, `High_Window` 83000 and `High_P` 10^-7, which is about
//! `w = 0.12 / p^0.835`, or `p(w) = 0.078 / w^1.2`. Above `Low_Window` the window follows
//!
//! ```text
//! w <- w + a(w) / w     for every acknowledgement
//! w <- (1 - b(w)) w     on loss
//! b(w) = (High_Decrease - 0.5) (log w - log Low_Window) / (log High_Window - log Low_Window) + 0.5
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
//! ```
//!
//! with `High_Decrease` 0.1; up to `Low_Window` it is Reno: `a` 1, `b` 0.5.
//!
//! | | RFC 3649 | here |
//! |---|---|---|
//! | `a(w)` | the equation, or the table of appendix B | the equation |
//! | `p(w)` in it | 0.078 / w^1.2; in the program of appendix B 1 / (12.8 w^1.2) | the program |
//! | growth by `a(w) / w` | for every acknowledgement | for every packet |
//! | windows above 100,000, where the table ends | unspecified | `b` stays, `a` follows the equation |
//!
//! Counting packets gives the RFC's response function whether or not acknowledgements are delayed.
//! [`crate::HighSpeedLinux`] counts acknowledgements, as Linux does (`arithmetic=linux`).

use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};

const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;
/// Where the program of appendix B stops.
const TOP: f64 = 100_000.0;

/// The fraction of a window of `w` packets by which loss reduces it.
pub(crate) fn b(w: f64) -> f64 {
    let range = libm::log(HIGH_WINDOW) - libm::log(LOW_WINDOW);
    let log = libm::log(w.clamp(LOW_WINDOW, TOP)) - libm::log(LOW_WINDOW);
    (HIGH_DECREASE - 0.5) * log / range + 0.5
}

/// Packets by which a window of `w` packets grows in a round trip.
pub(crate) fn a(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let p = 1.0 / (12.8 * libm::pow(w, 1.2));
    let b = b(w);
    (w * w * p * 2.0 * b / (2.0 - b)).max(1.0)
}

/// HighSpeed TCP's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighSpeed {
    /// A window in whole packets and its `a`, cached because `a` takes logarithms.
    cached: (f64, f64),
}

impl WindowRule for HighSpeed {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        let w = libm::floor(cwnd);
        if self.cached.0 != w {
            self.cached = (w, a(w));
        }
        self.cached.1 * acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        (1.0 - b(cwnd)) * cwnd
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let (w, a) = self.cached;
        show(Metric { name: "a", value: a });
        show(Metric { name: "b", value: b(w) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    /// RFC 3649, appendix B: window, a(w), b(w) in hundredths.
    #[rustfmt::skip]
    const APPENDIX_B: [(u32, u32, u32); 73] = [
        (38, 1, 50), (118, 2, 44), (221, 3, 41), (347, 4, 38), (495, 5, 37), (663, 6, 35),
        (851, 7, 34), (1058, 8, 33), (1284, 9, 32), (1529, 10, 31), (1793, 11, 30), (2076, 12, 29),
        (2378, 13, 28), (2699, 14, 28), (3039, 15, 27), (3399, 16, 27), (3778, 17, 26),
        (4177, 18, 26), (4596, 19, 25), (5036, 20, 25), (5497, 21, 24), (5979, 22, 24),
        (6483, 23, 23), (7009, 24, 23), (7558, 25, 22), (8130, 26, 22), (8726, 27, 22),
        (9346, 28, 21), (9991, 29, 21), (10661, 30, 21), (11358, 31, 20), (12082, 32, 20),
        (12834, 33, 20), (13614, 34, 19), (14424, 35, 19), (15265, 36, 19), (16137, 37, 19),
        (17042, 38, 18), (17981, 39, 18), (18955, 40, 18), (19965, 41, 17), (21013, 42, 17),
        (22101, 43, 17), (23230, 44, 17), (24402, 45, 16), (25618, 46, 16), (26881, 47, 16),
        (28193, 48, 16), (29557, 49, 15), (30975, 50, 15), (32450, 51, 15), (33986, 52, 15),
        (35586, 53, 14), (37253, 54, 14), (38992, 55, 14), (40808, 56, 14), (42707, 57, 13),
        (44694, 58, 13), (46776, 59, 13), (48961, 60, 13), (51258, 61, 13), (53677, 62, 12),
        (56230, 63, 12), (58932, 64, 12), (61799, 65, 12), (64851, 66, 11), (68113, 67, 11),
        (71617, 68, 11), (75401, 69, 10), (79517, 70, 10), (84035, 71, 10), (89053, 72, 10),
        (94717, 73, 9),
    ];

    /// The program in appendix B writes a row whenever `a` is more than one above the row before.
    #[test]
    fn the_functions_give_the_table_of_appendix_b_row_by_row() {
        let mut rows = vec![(38, 1, 50)];
        let mut last = 1.0;
        for w in 39..100_000 {
            let (a, b) = (a(f64::from(w)), b(f64::from(w)));
            if a > last + 1.0 {
                rows.push((w, a as u32, (b * 100.0).round() as u32));
                last = a;
            }
        }
        assert_eq!(rows, APPENDIX_B);
    }

    #[test]
    fn the_decrease_goes_from_a_half_at_low_window_to_a_tenth_at_high_window() {
        assert!((b(38.0) - 0.5).abs() < 1e-12);
        assert!((b(83_000.0) - 0.1).abs() < 1e-12);
        assert_eq!((b(5.0), b(1e9)), (b(38.0), b(100_000.0)));
    }

    #[test]
    fn it_is_reno_up_to_low_window_and_grows_by_a_of_w_above() {
        let (path, mut rule) = (Path::new(1448, Time::ZERO), HighSpeed::default());
        let mut grows = |w: f64| rule.increase(w, w, &path, &Ack::default());
        assert_eq!(grows(10.0), 1.0);
        assert_eq!(grows(38.0), 1.0);
        assert_eq!(grows(118.0) as u32, 2);
        assert_eq!(grows(94_717.0) as u32, 73);
        let loss = CongestionEvent::loss();
        assert_eq!(rule.decrease(20.0, &path, &loss), 10.0);
        assert!((rule.decrease(83_000.0, &path, &loss) - 74_700.0).abs() < 1e-6);
    }
}
