//! LIA, the linked increases of RFC 6356 (Wischik, Raiciu, Greenhalgh and Handley, "Design,
//! implementation and evaluation of congestion control for multipath TCP", NSDI 2011).
//!
//! For every packet acknowledged on subflow i (section 3, in packets):
//!
//! ```text
//! cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i)
//! alpha = cwnd_total max(cwnd_i / rtt_i^2) / (sum(cwnd_i / rtt_i))^2        (2)
//! ```
//!
//! and on loss the window is halved, as Reno's. `alpha` gives the connection the throughput of a
//! Reno flow on the best of its paths; the second term keeps a subflow from growing faster than
//! Reno. On paths of equal round-trip time the windows are inversely proportional to the loss rates
//! (Khalili et al., CoNEXT 2012, equation 2).
//!
//! `alpha` is computed exactly at every acknowledgement, from the smoothed round-trip times. Which subflows
//! the sums include: see `coupled.rs`. With `arithmetic=linux` the window grows as in
//! the kernel of the MPTCP project (`mptcp_ccc_cong_avoid`, versions 0.86 to 0.95):
//!
//! - Congestion avoidance counts acknowledgements, not packets: half as fast if every other packet
//!   is acknowledged.
//! - Each acknowledgement adds a whole number of 4096ths of a packet, at least one. While
//!   `alpha / cwnd_total` is at least 1/4096, rounding down takes up to half of the growth. Below it,
//!   the window can grow faster than by RFC 6356.
//!
//! A subflow without siblings is Reno.

use crate::arithmetic::Arithmetic;
use crate::coupled::{Member, siblings, this_subflow};
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};

/// `alpha` (equation 2) of these subflows.
#[inline]
pub(crate) fn alpha(members: impl Iterator<Item = Member>) -> f64 {
    let (mut total, mut best, mut rates) = (0.0, 0.0f64, 0.0);
    for member in members {
        total += member.cwnd;
        best = best.max(member.rate() / member.rtt);
        rates += member.rate();
    }
    total * best / (rates * rates)
}

impl Arithmetic {
    /// Growth of a window of `cwnd` packets for an acknowledgement of `acked` packets; `total` is the
    /// sum of all windows. Linux's is the same for each acknowledgement, in whole 4096ths of a packet.
    #[inline]
    pub(crate) fn growth(self, acked: f64, cwnd: f64, alpha: f64, total: f64) -> f64 {
        match self {
            Arithmetic::Exact => acked * (alpha / total).min(1.0 / cwnd),
            Arithmetic::Linux => {
                let each = libm::floor(4096.0 * alpha / total).max(1.0) / 4096.0;
                acked.min(1.0) * each.min(1.0 / cwnd)
            }
        }
    }
}

/// LIA's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia {
    arithmetic: Arithmetic,
    alpha: Option<f64>,
}

impl Lia {
    /// Takes the option `arithmetic`, `exact` or `linux`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn from_options(options: &mut Options) -> Result<Lia, ConfigError> {
        Ok(Lia { arithmetic: Arithmetic::from_options(options)?, alpha: None })
    }
}

impl WindowRule for Lia {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        let Some(own) = this_subflow(cwnd, path) else {
            return self.arithmetic.growth(acked, cwnd, 1.0, cwnd);
        };
        let alpha = alpha(siblings(path).chain([own]));
        self.alpha = Some(alpha);
        let total: f64 = siblings(path).map(|member| member.cwnd).sum::<f64>() + cwnd;
        self.arithmetic.growth(acked, cwnd, alpha, total)
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
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

    fn growth(cwnd: f64, path: &Path) -> (f64, f64) {
        let mut lia = Lia::default();
        let growth = lia.increase(cwnd, 1.0, path, &Ack::default());
        (lia.alpha.expect("there is a round-trip time"), growth)
    }

    #[test]
    fn two_equal_subflows_grow_together_by_half_a_packet_a_round_trip() {
        // alpha = 20 (10 / 0.01) / (200)^2; together 20 alpha / 20 = 1/2 a round trip.
        let (alpha, growth) = growth(10.0, &path(100, &[(10.0, 100)]));
        assert_close(alpha, 0.5);
        assert_close(growth, 0.5 / 20.0);
    }

    #[test]
    fn alpha_weighs_windows_by_round_trip_times() {
        // 1000 packets at 100 ms and 100 at 20 ms: 1100 * 250,000 / (10,000 + 5,000)^2.
        let (alpha, growth) = growth(1000.0, &path(100, &[(100.0, 20)]));
        assert_close(alpha, 1100.0 * 250_000.0 / 225e6);
        assert_close(growth, 1.0 / 1000.0); // alpha / 1100 is more: capped as Reno
    }

    #[test]
    fn in_linux_s_arithmetic_large_windows_grow_by_whole_4096ths() {
        let grown = |cwnd| {
            let mut lia = Lia { arithmetic: Arithmetic::Linux, alpha: None };
            lia.increase(cwnd, 1.0, &path(100, &[(100.0, 40)]), &Ack::default())
        };
        // best / (sum of cwnd best_rtt / rtt)^2 in 4096ths: 4096 * 1200 / 1450^2 = 2.3.
        assert_close(grown(1200.0), 2.0 / 4096.0);
        // 4096 * 4000 / 4250^2 = 0.9.
        assert_close(grown(4000.0), 1.0 / 4096.0);
    }

    /// `mptcp_ccc_cong_avoid` adds to `snd_cwnd_cnt` once, however many packets were acknowledged.
    #[test]
    fn in_linux_s_arithmetic_growth_counts_acknowledgements() {
        for (arithmetic, factor) in [(Arithmetic::Linux, 1.0), (Arithmetic::Exact, 2.0)] {
            let paths = [path(100, &[(100.0, 40)]), path(100, &[])];
            for path in paths.into_iter().chain([Path { srtt: None, ..path(100, &[]) }]) {
                let [one, two] = [1.0, 2.0].map(|acked| {
                    Lia { arithmetic, alpha: None }.increase(50.0, acked, &path, &Ack::default())
                });
                assert_close(two, factor * one);
            }
        }
    }

    #[test]
    fn a_subflow_without_siblings_that_can_be_used_is_reno() {
        assert_eq!(growth(40.0, &path(50, &[])), (1.0, 1.0 / 40.0));
        let mut failed = path(50, &[(10.0, 20)]);
        failed.multipath.siblings[0].active = false;
        assert_eq!(growth(40.0, &failed), (1.0, 1.0 / 40.0));
    }

    #[test]
    fn a_subflow_before_its_first_round_trip_time_is_reno() {
        let unknown = Path { srtt: None, ..path(50, &[(10.0, 20)]) };
        assert_eq!(Lia::default().increase(10.0, 2.0, &unknown, &Ack::default()), 0.2);
    }
}
