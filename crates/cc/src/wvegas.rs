//! wVegas, weighted Vegas (Cao, Xu and Fu, "Delay-based congestion control for multipath TCP",
//! ICNP 2012), as Linux's Multipath TCP implements it (`mptcp_wvegas.c`, v0.95).
//!
//! Once a round trip, from its mean round-trip time `RTT` and the minimum ever, `baseRTT`:
//!
//! ```text
//! diff = cwnd (RTT - baseRTT) / RTT
//! slow start:  diff > gamma:   cwnd = min(cwnd, cwnd baseRTT / RTT + 1), and slow start is over
//! else:        diff >= alpha:  alpha = max(2, total_alpha x / sum(x)),  x = cwnd / RTT
//!              diff > alpha:   cwnd -= 1
//!              diff < alpha:   cwnd += 1
//! ```
//!
//! `total_alpha` is 10 packets, which all subflows together keep in queues; `alpha` is initially 2
//! and `gamma` is 1.
//!
//! The queue is drained when the queueing delay is twice its minimum since the last drain:
//! `cwnd *= baseRTT / (2 RTT)`. Only `cwnd -= 1` lowers the slow start threshold. Every round trip
//! raises it to 3/4 of the window (`tcp_current_ssthresh`), so slow start recovers the window within
//! a round trip after a drain. The minimum window is 2 packets. On loss it is halved; in recovery
//! the flow is Reno.
//!
//! Differences from Linux: Linux drains at any `diff`. In a simulation without other disturbances,
//! delays of a fraction of a packet double constantly and Linux's rule would drain an empty queue;
//! here it drains only if `diff >= alpha`. Linux weights subflows by their rates when they last set
//! `alpha`; here by their present rates.

use crate::coupled::siblings;
use crate::round::{RoundRtts, RttSummary};
use crate::{Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::Span;

/// Minimum window and minimum `alpha`, packets.
const MIN_PACKETS: f64 = 2.0;

/// A round trip with at most this many samples is ignored: they may all be of delayed
/// acknowledgements.
const FEW_SAMPLES: u32 = 2;

/// Round-trip times by round, with the cases in which the flow acts as Reno.
#[derive(Clone, Copy, Debug, Default)]
struct VegasRounds {
    base_rtt: Option<Span>,
    rtts: RoundRtts,
    /// Whether the flow acts as Reno on this acknowledgement: in recovery, or with too few samples.
    reno: bool,
}

impl VegasRounds {
    fn observe(&mut self, path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        }
        self.reno = path.ca_state != CaState::Open;
        if self.reno {
            self.rtts.restart(path);
        }
    }

    /// At the end of a round, the minimum round-trip time ever, s, and the samples of the round.
    fn take_if_round_ended(&mut self, path: &Path, ack: &Ack) -> Option<(f64, RttSummary)> {
        let rtts = self.rtts.update(path, ack).filter(|_| !self.reno)?;
        self.reno = rtts.count <= FEW_SAMPLES;
        let base = self.base_rtt.filter(|base| !self.reno && !base.is_zero())?;
        Some((base.as_secs_f64(), rtts))
    }

    /// Reno's growth if the flow acts as Reno, else 0.
    #[inline]
    fn increase(&self, cwnd: f64, acked: f64) -> f64 {
        if self.reno { acked / cwnd } else { 0.0 }
    }
}

/// wVegas' rule.
#[derive(Clone, Copy, Debug)]
pub struct WeightedVegas {
    total_alpha: f64,
    gamma: f64,
    alpha: f64,
    rounds: VegasRounds,
    /// Minimum queueing delay since the last drain, s.
    min_queueing_delay: Option<f64>,
}

impl WeightedVegas {
    /// Takes the options `total_alpha` and `gamma`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<WeightedVegas, ConfigError> {
        Ok(WeightedVegas {
            total_alpha: options.number("total_alpha", 10.0, 0.0..=1e6, "0 to 10^6 packets")?,
            gamma: options.number("gamma", 1.0, 0.0..=1e6, "0 to 10^6 packets")?,
            alpha: MIN_PACKETS,
            rounds: VegasRounds::default(),
            min_queueing_delay: None,
        })
    }

    /// Congestion avoidance at the end of a round trip; returns window and slow start threshold.
    fn congestion_avoidance(
        &mut self,
        (mut cwnd, mut ssthresh): (f64, f64),
        (base, rtt): (f64, f64),
        path: &Path,
    ) -> (f64, f64) {
        let diff = cwnd * (rtt - base) / rtt;
        if diff >= self.alpha {
            let own = cwnd / rtt;
            let sum = siblings(path).map(|member| member.rate()).sum::<f64>() + own;
            self.alpha = (self.total_alpha * own / sum).max(MIN_PACKETS);
        }
        if diff > self.alpha {
            cwnd -= 1.0;
            ssthresh = ssthresh.min(cwnd);
        } else if diff < self.alpha {
            cwnd += 1.0;
        }
        let delay = rtt - base;
        let least =
            self.min_queueing_delay.filter(|&least| least > 0.0).map_or(delay, |l| l.min(delay));
        self.min_queueing_delay = Some(least);
        if diff >= self.alpha && least > 0.0 && delay >= 2.0 * least {
            self.min_queueing_delay = None;
            cwnd *= base / (2.0 * rtt);
        }
        let cwnd = cwnd.max(MIN_PACKETS);
        (cwnd, ssthresh.max(0.75 * cwnd))
    }
}

impl WindowRule for WeightedVegas {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        self.rounds.increase(cwnd, acked)
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.rounds.observe(path, ack);
        if self.rounds.reno {
            self.alpha = MIN_PACKETS;
            self.min_queueing_delay = None;
        }
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        let (base, rtts) = self.rounds.take_if_round_ended(path, ack)?;
        let rtt = rtts.mean();
        if cwnd < ssthresh {
            if cwnd * (rtt - base) / rtt <= self.gamma {
                return None;
            }
            let window = cwnd.min(cwnd * base / rtt + 1.0).max(MIN_PACKETS);
            return Some((window, window));
        }
        Some(self.congestion_avoidance((cwnd, ssthresh), (base, rtt), path))
    }

    /// mptcp_wvegas_cong_avoid checks tcp_is_cwnd_limited only where it acts as Reno.
    fn grows_when_app_limited(&self) -> bool {
        !self.rounds.reno
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::{assert_close, path};
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, Windowed};

    fn rule() -> WeightedVegas {
        let mut options = "wvegas".parse().expect("well formed");
        WeightedVegas::from_options(&mut options).expect("within range")
    }

    #[test]
    fn a_subflow_keeps_its_share_of_ten_packets_in_the_queue() {
        // 20 ms of 120 ms wait: 10 packets of 60. It has a quarter of the rate: alpha 2.5.
        let mut wvegas = rule();
        let path = path(120, &[(180.0, 120)]);
        assert_eq!(wvegas.congestion_avoidance((60.0, 60.0), (0.1, 0.12), &path), (59.0, 59.0));
        assert_close(wvegas.alpha, 2.5);
    }

    #[test]
    fn below_alpha_the_window_grows_by_1_and_the_threshold_to_3_4_of_it() {
        let path = path(101, &[]);
        assert_eq!(rule().congestion_avoidance((60.0, 60.0), (0.1, 0.101), &path), (61.0, 60.0));
        assert_eq!(rule().congestion_avoidance((60.0, 20.0), (0.1, 0.101), &path), (61.0, 45.75));
    }

    #[test]
    fn the_window_grows_even_if_it_does_not_limit_sending() {
        assert!(rule().grows_when_app_limited());
        let unused = Path { cwnd_limited: false, ..path(101, &[]) };
        assert_eq!(rule().congestion_avoidance((60.0, 60.0), (0.1, 0.101), &unused), (61.0, 60.0));
    }

    #[test]
    fn a_queue_that_has_doubled_is_drained_and_the_threshold_stays() {
        let (mut wvegas, path) = (rule(), path(104, &[]));
        assert_eq!(
            wvegas.congestion_avoidance((600.0, 500.0), (0.1, 0.1005), &path),
            (601.0, 500.0)
        );
        let (cwnd, ssthresh) = wvegas.congestion_avoidance((601.0, 500.0), (0.1, 0.1021), &path);
        assert_close(cwnd, 600.0 * 0.1 / 0.2042);
        assert_eq!(ssthresh, 500.0);
    }

    #[test]
    fn after_a_drain_slow_start_fills_the_link_again() {
        // A BDP of 333 packets. A drain halves the window; by a packet a round trip it would take
        // 8 s to where it was.
        let link = Link::new(80.0, 50, 3000.0);
        let mut flow = TestPath::new(Windowed::new(rule(), AnySlowStart::STANDARD, &init(1)), link);
        flow.run_ms(20_000);
        let before = flow.path.delivered;
        flow.run_ms(60_000);
        let used = (flow.path.delivered - before) as f64 / (60.0 / 0.05 * flow.link.bdp());
        assert!(used > 0.9, "{used} of the link");
    }
}
