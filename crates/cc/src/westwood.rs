//! Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
//! Vegas TCP congestion control", ACM CCR 34(2), 2004), as Linux's `tcp_westwood.c` implements it.
//!
//! Growth is Reno's. After loss the window is the estimated bandwidth-delay product, even if that is
//! more than the window was:
//!
//! ```text
//! ssthresh = cwnd = BWE RTTmin      at least 2 packets; cwnd = 1 after a timeout
//! ```
//!
//! A bandwidth sample is the packets acknowledged in a round trip, or in 50 ms if that is longer,
//! over that time. `BWE` passes two low-pass filters, which the first sample initialises:
//!
//! ```text
//! bw_ns_est = 7/8 bw_ns_est + 1/8 sample
//! BWE       = 7/8 BWE       + 1/8 bw_ns_est
//! ```
//!
//! The paper sets the window when it detects loss. Linux, and this file, halve the window then and
//! set it to `BWE RTTmin` at the end of recovery (`CA_EVENT_COMPLETE_CWR`), from samples that
//! include recovery at half the rate. A timeout sets `ssthresh` at once and restarts the measurement
//! of `RTTmin` (`CA_EVENT_LOSS`). Linux counts whole ticks and bytes; here the numbers are exact.

use crate::{Ack, CongestionEvent, Metric, Path, Signal, WindowRule};
use dumbbell_units::{Span, Time};

/// Minimum duration of a bandwidth sample (Linux's `TCP_WESTWOOD_RTT_MIN`).
const MIN_SAMPLE: Span = Span::from_millis(50);

/// Westwood+'s rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Westwood {
    /// Bandwidth filtered once and twice (Linux's `bw_ns_est`, `bw_est`), packets/s.
    bandwidth: Option<(f64, f64)>,
    /// Packets delivered since the sample began.
    delivered: u64,
    sample_start: Option<Time>,
    rtt: Option<Span>,
    rtt_min: Option<Span>,
    /// Whether the next sample replaces `RTTmin`.
    reset_rtt_min: bool,
    /// Whether a reduction is in progress, whose end sets the window to the estimate.
    in_reduction: bool,
}

impl Westwood {
    /// `BWE RTTmin`, packets.
    fn bandwidth_delay(&self) -> f64 {
        let (bwe, rtt_min) =
            (self.bandwidth.unwrap_or_default().1, self.rtt_min.unwrap_or_default());
        (bwe * rtt_min.as_secs_f64()).max(2.0)
    }

    fn end_sample(&mut self, path: &Path) {
        let (Some(began), Some(rtt)) = (self.sample_start, self.rtt) else {
            self.sample_start = Some(path.now);
            return;
        };
        let length = path.now.since(began);
        if length <= rtt.max(MIN_SAMPLE) {
            return;
        }
        let sample = self.delivered as f64 / length.as_secs_f64();
        self.bandwidth = Some(match self.bandwidth {
            None => (sample, sample),
            Some((first, bwe)) => {
                let first = (7.0 * first + sample) / 8.0;
                (first, (7.0 * bwe + first) / 8.0)
            }
        });
        self.delivered = 0;
        self.sample_start = Some(path.now);
    }
}

impl WindowRule for Westwood {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, event: &CongestionEvent) -> f64 {
        if event.signal == Signal::Timeout {
            self.reset_rtt_min = true;
            return self.bandwidth_delay();
        }
        // An episode that follows within an acknowledgement begins at what the one before ended with.
        let ended = core::mem::replace(&mut self.in_reduction, true);
        let cwnd = if ended { self.bandwidth_delay() } else { cwnd };
        cwnd / 2.0
    }

    /// Called for the first time when the reduction has ended.
    fn set_window(
        &mut self,
        _cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        core::mem::take(&mut self.in_reduction).then(|| {
            let window = self.bandwidth_delay();
            (window, window)
        })
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.end_sample(path);
        self.delivered += u64::from(ack.delivered);
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            let least = self.rtt_min.filter(|_| !self.reset_rtt_min);
            self.rtt_min = Some(least.map_or(rtt, |least| least.min(rtt)));
            self.reset_rtt_min = false;
        }
    }

    /// A timeout cancels the reduction's end.
    fn on_timeout(&mut self) {
        self.in_reduction = false;
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.bandwidth = self.bandwidth.map(|(once, twice)| (once * factor, twice * factor));
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some((_, bwe)) = self.bandwidth {
            show(Metric { name: "BWE", value: bwe });
        }
        if let Some(rtt_min) = self.rtt_min {
            show(Metric { name: "RTTmin", value: rtt_min.as_secs_f64() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};

    fn westwood(link: Link) -> TestPath<Windowed<Westwood, AnySlowStart>> {
        TestPath::new(Windowed::new(Westwood::default(), AnySlowStart::STANDARD, &init(1)), link)
    }

    /// The window before the next reduction, in it, and after it.
    fn reduction(flow: &mut TestPath<Windowed<Westwood, AnySlowStart>>) -> [f64; 3] {
        let mut before = 0.0;
        assert!(flow.run_until(Span::from_secs(60), |flow| {
            let reducing = flow.path.ca_state.is_reducing();
            if !reducing {
                before = flow.algorithm.control().cwnd;
            }
            reducing
        }));
        let during = flow.algorithm.control().cwnd;
        assert!(flow.run_until(Span::from_secs(1), |flow| !flow.path.ca_state.is_reducing()));
        [before, during, flow.algorithm.control().cwnd]
    }

    #[test]
    fn after_the_queue_overflowed_the_window_is_the_bandwidth_delay_product() {
        let link = Link::new(20.0, 100, 100.0);
        let mut flow = westwood(link);
        flow.run_ms(60_000);
        let [before, during, after] = reduction(&mut flow);
        assert!(before > link.bdp() + 99.0, "{before}");
        assert!((during / before - 0.5).abs() < 0.01, "{before} to {during}");
        assert!((after / link.bdp() - 1.0).abs() < 0.02, "{after}, BDP {}", link.bdp());
    }

    #[test]
    fn random_loss_leaves_the_window_nearly_unchanged() {
        let mut flow = westwood(Link::new(20.0, 100, 100.0));
        flow.run_ms(60_000);
        // The flow is well below the rate of the link, and its estimate follows.
        flow.link.rate = flow.link.rate * 50.0;
        flow.run_ms(20_000);
        flow.link.loses = |seq| seq % 50_000 == 0;
        let [before, _, after] = reduction(&mut flow);
        assert!((0.9..=1.0).contains(&(after / before)), "{before} to {after}");
    }

    #[test]
    fn the_estimate_is_filtered_twice_by_an_eighth() {
        let mut rule = Westwood::default();
        let mut path = Path::new(1448, Time::ZERO);
        let mut acknowledge = |rule: &mut Westwood, ms: u64, delivered: u32| {
            path.now = Time::ZERO + Span::from_millis(ms);
            let rtt = Some(Span::from_millis(100));
            rule.observe(&path, &Ack { delivered, rtt, ..Ack::default() });
        };
        acknowledge(&mut rule, 0, 100);
        acknowledge(&mut rule, 200, 0);
        assert_eq!(rule.bandwidth, Some((500.0, 500.0)));
        acknowledge(&mut rule, 300, 300);
        acknowledge(&mut rule, 400, 0);
        let first = (7.0 * 500.0 + 1500.0) / 8.0;
        assert_eq!(rule.bandwidth, Some((first, (7.0 * 500.0 + first) / 8.0)));
    }

    /// A rule that has measured 1000 packets/s and 100 ms.
    fn measured() -> Westwood {
        Westwood {
            bandwidth: Some((1000.0, 1000.0)),
            rtt_min: Some(Span::from_millis(100)),
            ..Westwood::default()
        }
    }

    /// tcp_westwood_event, CA_EVENT_COMPLETE_CWR.
    #[test]
    fn at_the_end_of_recovery_the_window_is_the_estimate_even_if_larger() {
        let path = Path::new(1448, Time::ZERO);
        for cwnd in [60.0, 300.0] {
            let mut rule = measured();
            assert_eq!(rule.decrease(cwnd, &path, &CongestionEvent::loss()), cwnd / 2.0);
            let after = rule.set_window(cwnd / 2.0, cwnd / 2.0, &path, &Ack::default());
            assert_eq!(after, Some((100.0, 100.0)));
            assert_eq!(rule.set_window(100.0, 100.0, &path, &Ack::default()), None, "once");
        }
    }

    /// CA_EVENT_COMPLETE_CWR comes before tcp_enter_recovery.
    #[test]
    fn a_recovery_that_follows_at_once_halves_the_estimate() {
        let path = Path::new(1448, Time::ZERO);
        let mut rule = measured();
        assert_eq!(rule.decrease(300.0, &path, &CongestionEvent::loss()), 150.0);
        assert_eq!(rule.decrease(150.0, &path, &CongestionEvent::loss()), 50.0);
    }

    /// tcp_westwood_event, CA_EVENT_LOSS.
    #[test]
    fn a_timeout_sets_the_threshold_at_once_and_resets_rtt_min() {
        let path = Path::new(1448, Time::ZERO);
        let mut rule = measured();
        rule.decrease(60.0, &path, &CongestionEvent::loss());
        let timeout = CongestionEvent::timeout();
        assert_eq!(rule.decrease(30.0, &path, &timeout), 100.0);
        rule.on_timeout();
        assert_eq!(
            rule.set_window(1.0, 100.0, &path, &Ack::default()),
            None,
            "that recovery has no end"
        );
        rule.observe(&path, &Ack { rtt: Some(Span::from_millis(150)), ..Ack::default() });
        assert_eq!(rule.rtt_min, Some(Span::from_millis(150)));
    }
}
