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
//! include recovery at half the rate. A recovery that is undone before all its packets are acknowledged has
//! no such end, so that the window comes back. A timeout sets `ssthresh` at once and restarts the
//! measurement of `RTTmin` (`CA_EVENT_LOSS`). Bandwidths are in whole bytes per jiffy, times in jiffies. An acknowledgement
//! that covers nothing counts as a packet, which the one that fills the hole does not count again.

use crate::arithmetic::{CongAvoidAi, Jiffies};
use crate::{Ack, CaState, CongestionEvent, Metric, Path, Signal, WindowRule};
use dumbbell_units::Span;

/// Samples of bandwidth in a second, at most (Linux's `TCP_WESTWOOD_RTT_MIN` is `HZ/20`).
const SAMPLES: u64 = 20;

/// `RTTmin` before the first sample.
const INITIAL_RTT: Span = Span::from_secs(20);

/// Westwood+'s rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Westwood {
    /// Bandwidth filtered once and twice (Linux's `bw_ns_est`, `bw_est`), bytes per jiffy; 0 before
    /// the first sample.
    bandwidth: (u64, u64),
    /// Bytes acknowledged since the sample began (`bk`).
    acked: u64,
    /// In jiffies, as all times here (`rtt_win_sx`).
    sample_start: u64,
    rtt: u64,
    rtt_min: u64,
    /// Whether the next sample replaces `RTTmin`.
    reset_rtt_min: bool,
    /// Packets acknowledged before this acknowledgement; `None` before the first one, which does not count.
    una: Option<u64>,
    /// Bytes counted for acknowledgements that covered nothing.
    accounted: u64,
    mss: u64,
    /// Jiffies in a second.
    hz: u64,
    /// The end of a reduction in progress, after which the window is the estimate (`high_seq`).
    reduction_end: Option<u64>,
    avoidance: CongAvoidAi,
}

impl Westwood {
    /// `BWE RTTmin`, packets (`tcp_westwood_bw_rttmin`).
    fn bandwidth_delay(&self) -> f64 {
        (self.bandwidth.1 * self.rtt_min / self.mss.max(1)).max(2) as f64
    }

    /// `westwood_update_window`.
    fn end_sample(&mut self, clock: Jiffies, now: u64) {
        let length = now - self.sample_start;
        if self.rtt == 0 || length <= self.rtt.max(clock.hz / SAMPLES) {
            return;
        }
        let sample = self.acked / length;
        self.bandwidth = match self.bandwidth {
            (0, 0) => (sample, sample),
            (first, bwe) => {
                let first = (7 * first + sample) / 8;
                (first, (7 * bwe + first) / 8)
            }
        };
        (self.acked, self.sample_start) = (0, now);
    }

    /// Bytes for which this acknowledgement counts (`westwood_acked_count`).
    fn acked_count(&mut self, path: &Path) -> u64 {
        let before = self.una.replace(path.una).unwrap_or(path.una);
        let acked = path.una.saturating_sub(before) * self.mss;
        if path.ca_state == CaState::Open {
            return acked;
        }
        if acked == 0 {
            self.accounted += self.mss;
            return self.mss;
        }
        if acked <= self.mss {
            return acked;
        }
        if self.accounted >= acked {
            self.accounted -= acked;
            return self.mss;
        }
        acked - core::mem::take(&mut self.accounted)
    }
}

impl WindowRule for Westwood {
    /// `tcp_westwood_init`.
    fn on_established(&mut self, path: &Path) {
        let clock = Jiffies::of(path);
        self.rtt = clock.of_span(INITIAL_RTT);
        (self.rtt_min, self.reset_rtt_min) = (self.rtt, true);
        self.sample_start = clock.at(path.now);
        (self.mss, self.hz) = (path.mss.into(), clock.hz);
    }

    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        self.avoidance.grow((cwnd as u64).max(1), acked as u64)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.avoidance = CongAvoidAi::default();
        if event.signal == Signal::Timeout {
            self.reset_rtt_min = true;
            return self.bandwidth_delay();
        }
        // An episode that follows within an acknowledgement begins at what the one before ended with.
        let ended = self.reduction_end.replace(path.next_seq);
        let cwnd = if ended.is_some() { self.bandwidth_delay() } else { cwnd };
        (cwnd as u64 / 2) as f64
    }

    /// Called for the first time when the reduction has ended.
    fn set_window(
        &mut self,
        _cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        self.reduction_end.take().map(|_| {
            let window = self.bandwidth_delay();
            (window, window)
        })
    }

    /// `tcp_westwood_pkts_acked`, then `tcp_westwood_ack`.
    fn observe(&mut self, path: &Path, ack: &Ack) {
        let clock = Jiffies::of(path);
        (self.mss, self.hz) = (path.mss.into(), clock.hz);
        if let Some(rtt) = ack.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.rtt = clock.of_micros(rtt);
        }
        self.end_sample(clock, clock.at(path.now));
        self.acked += self.acked_count(path);
        let reset = core::mem::take(&mut self.reset_rtt_min);
        self.rtt_min = if reset { self.rtt } else { self.rtt_min.min(self.rtt) };
    }

    /// A timeout cancels the reduction's end.
    fn on_timeout(&mut self) {
        self.reduction_end = None;
        self.avoidance = CongAvoidAi::default();
    }

    /// `tcp_try_undo_recovery` comes before `tcp_end_cwnd_reduction`, `tcp_try_undo_partial` and
    /// `tcp_try_undo_dsack` in place of it.
    fn on_undo(&mut self, path: &Path) {
        self.reduction_end = self.reduction_end.filter(|&end| path.una >= end);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if self.bandwidth.1 > 0 {
            let per_second = (self.bandwidth.1 * self.hz) as f64;
            show(Metric { name: "BWE", value: per_second / self.mss as f64 });
            show(Metric { name: "RTTmin", value: self.rtt_min as f64 / self.hz as f64 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};
    use dumbbell_units::Time;

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
        let mut path = Path::new(1000, Time::ZERO);
        rule.on_established(&path);
        let mut acknowledge = |rule: &mut Westwood, ms: u64, acked: u32| {
            path.now = Time::ZERO + Span::from_millis(ms);
            path.una += u64::from(acked);
            let rtt = Some(Span::from_millis(100));
            rule.observe(&path, &Ack::new(acked).with_rtt(rtt));
        };
        acknowledge(&mut rule, 50, 10); // the first one
        acknowledge(&mut rule, 100, 100);
        acknowledge(&mut rule, 200, 0);
        assert_eq!(rule.bandwidth, (500, 500), "100 packets of 1000 bytes in 200 jiffies");
        acknowledge(&mut rule, 250, 300);
        acknowledge(&mut rule, 350, 0);
        let first = (7 * 500 + 2000) / 8;
        assert_eq!(rule.bandwidth, (first, (7 * 500 + first) / 8));
    }

    /// westwood_acked_count
    #[test]
    fn duplicates_count_as_packets_which_the_filled_hole_does_not_again() {
        let mut rule = Westwood::default();
        let mut path = Path { ca_state: CaState::Recovery, ..Path::new(1000, Time::ZERO) };
        rule.on_established(&path);
        let mut counts = |una| {
            path.una = una;
            rule.acked_count(&path)
        };
        counts(0);
        assert_eq!([0, 0, 0].map(&mut counts), [1000; 3]);
        assert_eq!([10, 11].map(&mut counts), [6000, 1000], "4 duplicates");
    }

    /// A rule that has measured 1000 packets/s and 100 ms.
    fn measured() -> Westwood {
        Westwood { bandwidth: (1448, 1448), rtt_min: 100, mss: 1448, ..Westwood::default() }
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

    /// tcp_fastretrans_alert: only the end of a recovery is CA_EVENT_COMPLETE_CWR.
    #[test]
    fn the_estimate_replaces_an_undone_window_at_the_end_of_recovery_only() {
        for (una, after) in [(49, None), (50, Some((100.0, 100.0)))] {
            let path = Path { next_seq: 50, ..Path::new(1448, Time::ZERO) };
            let mut rule = measured();
            rule.decrease(300.0, &path, &CongestionEvent::loss());
            let path = Path { una, ..path };
            rule.on_undo(&path);
            assert_eq!(rule.set_window(300.0, 300.0, &path, &Ack::default()), after);
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
        assert_eq!(rule.rtt_min, 150);
    }
}
