//! YeAH (Baiocchi, Castellani and Vacirca, "YeAH-TCP: yet another highspeed TCP", PFLDnet 2007), as
//! Linux's `tcp_yeah.c` implements it.
//!
//! Once a round trip, from its minimum round-trip time `RTT` and the minimum ever, `RTTbase`:
//!
//! ```text
//! Q = cwnd (RTT - RTTbase) / RTT      packets in the queue
//! L = (RTT - RTTbase) / RTTbase       congestion level of the network
//! fast mode: Q <= 80 and L <= 1/8     grows as Scalable TCP: 1 / min(cwnd, 100)
//! slow mode: else                     grows as Reno: 1 / cwnd
//! ```
//!
//! *Precautionary decongestion*, in slow mode, if `Q > 80` and the window is above `reno_count`:
//!
//! ```text
//! cwnd <- max(cwnd - min(Q, cwnd / 2), reno_count)
//! ```
//!
//! `reno_count` estimates Reno's window: half the window when slow mode begins, one more for each
//! round trip in slow mode, 2 again after 50 round trips in fast mode.
//!
//! *Loss*: fewer than 16 consecutive round trips in slow mode mean that no Reno flow competes. The
//! reduction is then `Q`, clamped to [1/8, 1/2] of the window; otherwise it is half the window.
//! `reno_count` is halved.
//!
//! Growth in fast mode counts packets even if the stack counts acknowledgements. Samples of a recovery count,
//! and the rounds of one after a timeout are judged; a round begins when it ends. As in Linux a round-trip
//! time is in whole microseconds, and one more. The window and `Q` are real numbers here.

use crate::round::SequenceRound;
use crate::vegas::VegasRtts;
use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};
use dumbbell_units::Span;

/// Maximum packets in the queue (Linux's `TCP_YEAH_ALPHA`).
const ALPHA: f64 = 80.0;
/// Inverse of the maximum `L` in fast mode (`TCP_YEAH_PHY`).
const PHY: u64 = 8;
/// Round trips in slow mode that indicate a competing Reno flow (`TCP_YEAH_RHO`).
const RHO: u32 = 16;
/// Round trips in fast mode after which `reno_count` is reset (`TCP_YEAH_ZETA`).
const ZETA: u32 = 50;
/// Minimum reduction on loss, as a fraction of the window (`TCP_YEAH_DELTA`).
const MIN_DECREASE: f64 = 1.0 / 8.0;
/// Maximum reduction, as a fraction of the window (`TCP_YEAH_EPSILON`).
const MAX_DECREASE: f64 = 1.0 / 2.0;
/// Packets acknowledged for one packet of growth in fast mode (`TCP_SCALABLE_AI_CNT`).
const SCALABLE: f64 = 100.0;
/// A round trip with at most this many samples is ignored: they may all be of delayed
/// acknowledgements.
const FEW_SAMPLES: u32 = 2;

/// YeAH's rule.
#[derive(Clone, Copy, Debug)]
pub struct Yeah {
    round: SequenceRound,
    rtts: VegasRtts,
    last_q: f64,
    /// Consecutive round trips in slow mode; 0 in fast mode.
    doing_reno_now: u32,
    /// Round trips in fast mode.
    fast_count: u32,
    reno_count: f64,
}

impl Default for Yeah {
    fn default() -> Yeah {
        Yeah {
            round: SequenceRound::new(),
            rtts: VegasRtts::NONE,
            last_q: 0.0,
            doing_reno_now: 0,
            fast_count: 0,
            reno_count: 2.0,
        }
    }
}

impl Yeah {
    /// The window after precautionary decongestion, if it is due.
    fn decongest(&self, cwnd: f64) -> Option<f64> {
        let due = self.last_q > ALPHA && cwnd > self.reno_count;
        due.then(|| (cwnd - self.last_q.min(cwnd * MAX_DECREASE)).max(self.reno_count))
    }

    /// `vegas_enable`: the samples of a round begin now.
    fn enable(&mut self, path: &Path) {
        self.round.restart(path);
        self.rtts.samples = 0;
    }
}

impl WindowRule for Yeah {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, ack: &Ack) -> f64 {
        if self.doing_reno_now > 0 {
            acked / cwnd
        } else {
            ack.scale_to_packets(acked) / cwnd.min(SCALABLE)
        }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        let alone = self.doing_reno_now < RHO;
        let share = if alone {
            self.last_q.clamp(cwnd * MIN_DECREASE, cwnd * MAX_DECREASE)
        } else {
            cwnd / 2.0
        };
        self.fast_count = 0;
        self.reno_count = (self.reno_count / 2.0).max(2.0);
        cwnd - share
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        if self.rtts.observe(path, ack) {
            self.enable(path);
        }
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        _ssthresh: f64,
        path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        // tcp_yeah_cong_avoid ignores round trips in which the window does not limit sending.
        if !path.cwnd_limited || !self.round.advance(path) {
            return None;
        }
        let samples = core::mem::take(&mut self.rtts.samples);
        let (base, rtt) = (self.rtts.base, self.rtts.take_min());
        if samples <= FEW_SAMPLES {
            return None;
        }
        let waiting = rtt - base;
        self.last_q = cwnd * waiting as f64 / rtt as f64;
        if self.last_q <= ALPHA && waiting <= base / PHY {
            self.doing_reno_now = 0;
            self.fast_count += 1;
            if self.fast_count > ZETA {
                (self.fast_count, self.reno_count) = (0, 2.0);
            }
            return None;
        }
        let window = self.decongest(cwnd);
        let left = window.unwrap_or(cwnd);
        self.reno_count =
            if self.reno_count <= 2.0 { (left / 2.0).max(2.0) } else { self.reno_count + 1.0 };
        self.doing_reno_now += 1;
        window.map(|window| (window, window))
    }

    fn on_timeout(&mut self) {
        self.rtts.disable();
    }

    fn on_restart(&mut self, path: &Path, _pause: Span) {
        self.rtts.forget();
        self.enable(path);
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.last_q *= factor;
        self.reno_count *= factor;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "Q", value: self.last_q });
        show(Metric { name: "slow", value: f64::from(self.doing_reno_now) });
        show(Metric { name: "reno_count", value: self.reno_count });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CaState, CongestionControl, Windowed};
    use dumbbell_units::Time;

    fn path() -> Path {
        Path::new(1448, Time::ZERO)
    }

    /// A round trip with samples of `rtt_ms`, and what becomes of the window.
    fn round(rule: &mut Yeah, cwnd: f64, rtt_ms: u64) -> f64 {
        let ack = Ack { rtt: Some(Span::from_millis(rtt_ms)), ..Ack::default() };
        rule.enable(&Path { next_seq: 10, ..path() });
        let mut window = cwnd;
        for una in [3, 5, 11] {
            let path = Path { una, next_seq: 20, cwnd_limited: true, ..path() };
            rule.observe(&path, &ack);
            window = rule.set_window(cwnd, 0.0, &path, &ack).map_or(window, |(window, _)| window);
        }
        window
    }

    #[test]
    fn without_a_queue_it_is_scalable_and_with_one_it_is_reno() {
        let mut rule = Yeah::default();
        let mut growth = |rtt| {
            assert_eq!(round(&mut rule, 500.0, rtt), 500.0);
            rule.increase(500.0, 1.0, &path(), &Ack::default())
        };
        assert_eq!(growth(100), 0.01);
        assert_eq!(growth(112), 0.01, "less than an eighth of delay");
        assert_eq!(growth(114), 1.0 / 500.0);
        assert_eq!(growth(100), 0.01);
    }

    #[test]
    fn decongestion_removes_a_queue_above_80_up_to_half_the_window() {
        let mut rule = Yeah::default();
        round(&mut rule, 1000.0, 100);
        // 1000 x 25/125 packets wait.
        assert_eq!(round(&mut rule, 1000.0, 125), 1000.0 - 25e6 / 125_001.0);
        assert_eq!(rule.reno_count.round(), 400.0);
        assert_eq!(round(&mut rule, 1000.0, 400), 500.0);
        assert_eq!(rule.reno_count.round(), 401.0);
        rule.reno_count = 900.0;
        assert_eq!(round(&mut rule, 1000.0, 400), 900.0, "Reno would have as much");
    }

    #[test]
    fn loss_removes_the_queue_or_half_the_window_beside_a_reno_flow() {
        for (queue, slow, left) in
            [(20.0, 0, 875.0), (300.0, 15, 700.0), (900.0, 0, 500.0), (20.0, 16, 500.0)]
        {
            let mut rule =
                Yeah { last_q: queue, doing_reno_now: slow, reno_count: 100.0, ..Yeah::default() };
            assert_eq!(rule.decrease(1000.0, &path(), &CongestionEvent::loss()), left);
            assert_eq!(rule.reno_count, 50.0);
        }
    }

    #[test]
    fn a_lone_flow_keeps_about_80_packets_queued_and_loses_none() {
        let rule = Windowed::new(Yeah::default(), AnySlowStart::STANDARD, &init(1));
        // An overshoot of slow start would look like a Reno flow.
        let mut flow = TestPath::new(rule.with_ssthresh(400.0), Link::new(100.0, 100, 10_000.0));
        flow.run_ms(30_000);
        let (before, mut most) = (flow.path.delivered, 0.0_f64);
        flow.run(Span::from_secs(60), |flow| {
            most = most.max(flow.algorithm.control().cwnd - flow.link.bdp());
        });
        let share = (flow.path.delivered - before) as f64 / 600.0 / flow.link.bdp();
        assert_eq!(flow.dropped, 0);
        assert!((80.0..110.0).contains(&most), "{most} packets");
        assert!(share > 0.99, "{share}");
    }

    /// tcp_yeah.c sets `snd_ssthresh` to the window, whatever it was: in slow start the flow leaves it.
    #[test]
    fn decongestion_sets_the_threshold_upwards_too() {
        let mut rule = Yeah::default();
        round(&mut rule, 1000.0, 100);
        let ack = Ack { rtt: Some(Span::from_millis(125)), ..Ack::default() };
        let path = Path { una: 21, next_seq: 30, cwnd_limited: true, ..path() };
        (0..3).for_each(|_| rule.observe(&path, &ack));
        assert_eq!(
            rule.set_window(1000.0, 500.0, &path, &ack).map(|(_, new)| new as u32),
            Some(800)
        );
    }

    /// tcp_yeah_cong_avoid does not read `doing_vegas_now`; only tcp_vegas_state(Open) begins anew.
    #[test]
    fn rounds_are_judged_in_the_recovery_after_a_timeout_too() {
        let mut rule = Yeah::default();
        let ack = Ack { rtt: Some(Span::from_millis(100)), ..Ack::default() };
        let mut acknowledge = |ca_state, una, next_seq| {
            let path = Path { una, next_seq, ca_state, cwnd_limited: true, ..path() };
            rule.observe(&path, &ack);
            rule.set_window(50.0, 100.0, &path, &ack);
            (rule.fast_count, rule.rtts.samples)
        };
        assert_eq!(acknowledge(CaState::Loss, 1, 10), (0, 0), "one sample");
        assert_eq!(acknowledge(CaState::Loss, 5, 14), (0, 1));
        assert_eq!(acknowledge(CaState::Loss, 6, 15), (0, 2));
        assert_eq!(acknowledge(CaState::Loss, 11, 20), (1, 0), "a round trip in fast mode");
        assert_eq!(acknowledge(CaState::Loss, 15, 25), (1, 1));
        assert_eq!(acknowledge(CaState::Open, 21, 30), (1, 0), "vegas_enable");
        assert_eq!(acknowledge(CaState::Open, 29, 40), (1, 1));
    }

    /// tcp_yeah_cong_avoid returns before it judges the round.
    #[test]
    fn rounds_in_which_the_window_is_not_used_are_not_judged() {
        let mut rule = Yeah::default();
        let ack = Ack { rtt: Some(Span::from_millis(100)), ..Ack::default() };
        for una in 1..100 {
            let path = Path { una, next_seq: una, ..path() };
            rule.observe(&path, &ack);
            rule.observe(&path, &ack);
            rule.observe(&path, &ack);
            assert_eq!(rule.set_window(50.0, 0.0, &path, &ack), None);
        }
        assert_eq!((rule.fast_count, rule.doing_reno_now), (0, 0));
    }
}
