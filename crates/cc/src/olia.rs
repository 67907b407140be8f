//! OLIA, the opportunistic linked increases (Khalili, Gast, Popovic and Le Boudec, "MPTCP is not
//! Pareto-optimal: performance issues and a possible solution", CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control-05).
//!
//! For every packet acknowledged on subflow r:
//!
//! ```text
//! w_r += (w_r / rtt_r^2) / (sum(w_p / rtt_p))^2 + alpha_r / w_r
//! ```
//!
//! and on loss the window is halved, as Reno's. The first term gives optimal resource pooling;
//! `alpha_r` shifts window to paths that are better than their windows suggest. `l_p` is the larger
//! of the packets delivered since the last loss and between the last two losses. `M` is the set of
//! paths with the maximum window, `B` the set with the maximum `l_p / rtt_p^2` (the square of Reno's
//! rate):
//!
//! ```text
//! alpha_r =  1 / (paths |B \ M|)   r in B \ M
//!           -1 / (paths |M|)       r in M, if B \ M is not empty
//!            0                     otherwise
//! ```
//!
//! The paper allows an `ssthresh` of one packet after a loss. Here the minimum is two, as in all
//! window rules and in the authors' module for Linux (mptcp_olia.c).

use crate::coupled::{siblings, this_subflow};
use crate::filters::LossIntervals;
use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};

/// OLIA's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Olia {
    losses: LossIntervals,
    alpha: f64,
}

/// The window and quality of a path, from which `alpha` follows.
#[derive(Clone, Copy)]
struct PathQuality {
    cwnd: f64,
    /// `l_p / rtt_p^2`.
    quality: f64,
}

impl PathQuality {
    fn new(cwnd: f64, delivered: [u64; 2], rtt: f64) -> PathQuality {
        let packets = delivered[0].max(delivered[1]) as f64;
        PathQuality { cwnd, quality: packets / (rtt * rtt) }
    }
}

impl Olia {
    fn alpha(&self, cwnd: f64, rtt: f64, path: &Path) -> f64 {
        let own = PathQuality::new(cwnd, self.losses.between(path.delivered), rtt);
        let others = path.multipath.siblings.iter().filter(|sibling| sibling.active);
        let all = others
            .map(|sibling| {
                let rtt = sibling.srtt.as_secs_f64();
                PathQuality::new(sibling.cwnd, sibling.delivered_between_losses, rtt)
            })
            .chain([own]);
        let max_cwnd = all.clone().fold(0.0, |max, path| path.cwnd.max(max));
        let best = all.clone().fold(0.0, |best, path| path.quality.max(best));
        let is_largest = |path: &PathQuality| path.cwnd >= max_cwnd;
        let is_collected = |path: &PathQuality| path.quality >= best && !is_largest(path);
        let (paths, collected) = (all.clone().count(), all.clone().filter(is_collected).count());
        if collected == 0 {
            0.0
        } else if is_collected(&own) {
            1.0 / (paths * collected) as f64
        } else if is_largest(&own) {
            -1.0 / (paths * all.filter(is_largest).count()) as f64
        } else {
            0.0
        }
    }
}

impl WindowRule for Olia {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        let Some(own) = this_subflow(cwnd, path) else { return acked / cwnd };
        let rates = siblings(path).map(|member| member.rate()).sum::<f64>() + own.rate();
        self.alpha = self.alpha(cwnd, own.rtt, path);
        let growth = own.rate() / own.rtt / (rates * rates) + self.alpha / cwnd;
        // The window stays at least 1 packet.
        (acked * growth).max(1.0 - cwnd)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, _event: &CongestionEvent) -> f64 {
        self.losses.on_loss(path.delivered);
        cwnd / 2.0
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::{assert_close, path};

    fn growth(olia: &mut Olia, cwnd: f64, path: &Path) -> f64 {
        olia.increase(cwnd, 1.0, path, &Ack::default())
    }

    #[test]
    fn equal_paths_share_one_reno_flow() {
        // (10 / 0.01) / 200^2 = 1/40: a quarter of Reno's growth on each.
        assert_close(growth(&mut Olia::default(), 10.0, &path(100, &[(10.0, 100)])), 1.0 / 40.0);
    }

    #[test]
    fn window_moves_from_the_largest_to_a_better_path() {
        let mut path = path(100, &[(30.0, 100)]);
        path.delivered = 900;
        path.multipath.siblings[0].delivered_between_losses = [100, 200];
        let mut olia = Olia::default();
        let pooled = (10.0 / 0.01) / (400.0f64 * 400.0);
        assert_close(growth(&mut olia, 10.0, &path), pooled + 0.5 / 10.0);
        // Seen from the other side, which is the largest.
        path.delivered = 200;
        path.multipath.siblings[0].cwnd = 10.0;
        path.multipath.siblings[0].delivered_between_losses = [900, 0];
        let pooled = (30.0 / 0.01) / (400.0f64 * 400.0);
        assert_close(growth(&mut olia, 30.0, &path), pooled - 0.5 / 30.0);
    }

    #[test]
    fn a_shorter_path_is_better_at_the_same_loss_rate() {
        let mut path = path(10, &[(30.0, 100)]);
        path.delivered = 100;
        path.multipath.siblings[0].delivered_between_losses = [100, 100];
        let mut olia = Olia::default();
        growth(&mut olia, 10.0, &path);
        assert_eq!(olia.alpha, 0.5);
    }

    #[test]
    fn the_best_path_with_the_largest_window_needs_no_help() {
        let mut path = path(100, &[(10.0, 100)]);
        path.delivered = 500;
        let mut olia = Olia::default();
        growth(&mut olia, 30.0, &path);
        assert_eq!(olia.alpha, 0.0);
    }

    #[test]
    fn l_counts_packets_since_the_last_loss_and_between_the_last_two() {
        let mut olia = Olia::default();
        let loss = CongestionEvent::loss();
        let mut path = path(100, &[]);
        for delivered in [700, 1000] {
            path.delivered = delivered;
            olia.decrease(10.0, &path, &loss);
        }
        assert_eq!(olia.losses.between(1050), [50, 300]);
    }
}
