//! BALIA, the balanced linked adaptation (Peng, Walid, Hwang and Low, "Multipath TCP: analysis,
//! design, and implementation", IEEE/ACM Transactions on Networking 24(1), 2016;
//! draft-walid-mptcp-congestion-control-04).
//!
//! With `x_r = w_r / rtt_r` and `alpha_r = max(x) / x_r`, for each packet acknowledged on subflow r
//! and for each loss:
//!
//! ```text
//! w_r += x_r / (rtt_r (sum x)^2) (1 + alpha_r) / 2 (4 + alpha_r) / 5
//! w_r -= w_r / 2 min(alpha_r, 1.5)
//! ```
//!
//! On a single path both are Reno's.

use crate::coupled::{siblings, this_subflow};
use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};

/// BALIA's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia {
    alpha: Option<f64>,
}

/// This subflow's rate, the maximum and the sum of all, packets/s.
struct Rates {
    own: f64,
    max: f64,
    sum: f64,
    rtt: f64,
}

fn rates(cwnd: f64, path: &Path) -> Option<Rates> {
    let own = this_subflow(cwnd, path)?;
    let rates = siblings(path).map(|member| member.rate()).chain([own.rate()]);
    let most = rates.clone().fold(0.0, f64::max);
    Some(Rates { own: own.rate(), max: most, sum: rates.sum(), rtt: own.rtt })
}

impl WindowRule for Balia {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        let Some(x) = rates(cwnd, path) else { return acked / cwnd };
        let alpha = x.max / x.own;
        self.alpha = Some(alpha);
        let pooled = x.own / (x.rtt * x.sum * x.sum);
        acked * pooled * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, _event: &CongestionEvent) -> f64 {
        let alpha = rates(cwnd, path).map_or(1.0, |x| x.max / x.own);
        cwnd - cwnd / 2.0 * alpha.min(1.5)
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some(value) = self.alpha {
            show(Metric { name: "alpha", value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::{assert_close, path};

    fn growth(cwnd: f64, path: &Path) -> f64 {
        Balia::default().increase(cwnd, 1.0, path, &Ack::default())
    }

    #[test]
    fn on_a_single_path_it_is_reno() {
        assert_close(growth(40.0, &path(100, &[])), 1.0 / 40.0);
        assert_eq!(
            Balia::default().decrease(40.0, &path(100, &[]), &CongestionEvent::loss()),
            20.0
        );
    }

    #[test]
    fn a_slower_subflow_grows_and_shrinks_more_than_its_share() {
        // x is 100 and 300 packets/s: alpha 3.
        let path = path(100, &[(30.0, 100)]);
        let pooled = 100.0 / (0.1 * 400.0 * 400.0);
        assert_close(growth(10.0, &path), pooled * 2.0 * 7.0 / 5.0);
        assert_close(
            Balia::default().decrease(10.0, &path, &CongestionEvent::loss()),
            10.0 - 5.0 * 1.5,
        );
    }

    #[test]
    fn the_fastest_subflow_halves_its_window() {
        assert_eq!(
            Balia::default().decrease(30.0, &path(100, &[(10.0, 100)]), &CongestionEvent::loss()),
            15.0
        );
    }
}
