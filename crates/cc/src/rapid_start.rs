//! Rapid Start (Oku, draft-kazuho-ccwg-rapid-start-02).
//!
//! While the path shows no queue, the window triples in a round trip instead of doubling (section 3.2):
//!
//! ```text
//! rtt_floor            = minimum RTT of the round (RFC 9406's currentRoundMinRTT)
//! queue_buildup_thresh = min(min_rtt + 4 ms, 1.1 min_rtt)
//! cwnd                += 2 acked if rtt_floor <= queue_buildup_thresh, else acked
//! ```
//!
//! The first loss or mark begins a recovery period in which the window falls with what is delivered and
//! lost (section 3.3), `beta` being what the rule of congestion avoidance leaves of its window:
//!
//! ```text
//! cwnd *= silence_factor                            silence_factor = beta + 2/3 (1 - beta)
//! cwnd -= ack_factor acked + loss_factor lost           ack_factor = 2/3 (1 - beta)
//! cwnd >= beta pre_recovery_cwnd / 3                   loss_factor = silence_factor
//! ```
//!
//! At the end it is `beta` times what was delivered in the period, the BDP with the queue, whatever was
//! lost. Then Rapid Start ends. A later slow start doubles.
//!
//! | | draft | here |
//! |---|---|---|
//! | recovery period | that of the transport | a round trip, as QUIC's (RFC 9002, section 7.3.2), in TCP too |
//! | the window meanwhile in TCP | unspecified | no PRR |
//! | first flight | SHOULD be paced over a round trip, up to twice the initial window | as the transport does it |
//! | lower bound | MAY be `beta` times the initial window | RFC 5681's 2 packets |
//! | with HyStart++ | can be combined | not combined |
//! | CUBIC's `W_max` | unspecified | the window before the recovery period (RFC 9438) |
//! | timeout | unspecified | ends Rapid Start |

use crate::round::SequenceRound;
use crate::{Ack, Metric, Path, SlowStart};
use dumbbell_units::{Span, Time};

/// Growth for each packet acknowledged without and with a queue.
const RAPID: f64 = 2.0;
const CLASSIC: f64 = 1.0;
/// `K`.
const K: f64 = 2.0 / 3.0;
/// The most aggressive growth factor in a round trip.
const MAX_GROWTH: f64 = 3.0;
/// RFC 5681's minimum, packets.
const MIN_WINDOW: f64 = 2.0;

/// The recovery period that ends Rapid Start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Recovery {
    began: Time,
    pre_recovery_cwnd: f64,
    /// The window that the last acknowledgement left, packets.
    cwnd: f64,
    beta: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Startup,
    Recovery(Recovery),
    Ended,
}

/// Rapid Start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RapidStart {
    stage: Stage,
    round: SequenceRound,
    rtt_floor: Option<Span>,
    /// Packets lost before the present acknowledgement.
    lost: u64,
}

impl RapidStart {
    /// Rapid Start before the first acknowledgement.
    pub const fn new() -> RapidStart {
        let (stage, round) = (Stage::Startup, SequenceRound::new());
        RapidStart { stage, round, rtt_floor: None, lost: 0 }
    }

    /// Whether the last round shows a queue.
    fn builds_queue(&self, path: &Path) -> bool {
        let (Some(rtt_floor), Some(min_rtt)) = (self.rtt_floor, path.min_rtt) else { return false };
        rtt_floor > (min_rtt + Span::from_millis(4)).min(min_rtt * 11 / 10)
    }
}

impl Default for RapidStart {
    fn default() -> RapidStart {
        RapidStart::new()
    }
}

impl SlowStart for RapidStart {
    fn should_exit(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> bool {
        if self.round.advance(path) {
            self.rtt_floor = None;
        }
        self.rtt_floor = match (self.rtt_floor, ack.rtt) {
            (Some(floor), Some(rtt)) => Some(floor.min(rtt)),
            (floor, rtt) => floor.or(rtt),
        };
        self.lost = path.lost;
        false
    }

    fn increase(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        let is_rapid = self.stage == Stage::Startup && !self.builds_queue(path);
        f64::from(ack.acked) * if is_rapid { RAPID } else { CLASSIC }
    }

    fn begin_recovery(&mut self, cwnd: f64, ssthresh: f64, path: &Path) -> Option<f64> {
        if self.stage != Stage::Startup {
            self.stage = Stage::Ended;
            return None;
        }
        let beta = (ssthresh / cwnd).min(1.0);
        let silence_factor = beta + K * (1.0 - beta);
        let pre_recovery_cwnd = cwnd;
        let cwnd = (cwnd * silence_factor).max(MIN_WINDOW);
        self.stage = Stage::Recovery(Recovery { began: path.now, pre_recovery_cwnd, cwnd, beta });
        Some(cwnd)
    }

    fn recover(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> Option<f64> {
        let Stage::Recovery(recovery) = &mut self.stage else { return None };
        let ack_factor = K * (1.0 - recovery.beta);
        let loss_factor = recovery.beta + ack_factor;
        let lost = path.lost.saturating_sub(self.lost) as f64;
        self.lost = path.lost;
        // The transport has set another window, for example because it undid the reduction.
        let is_replaced = cwnd != recovery.cwnd;
        let is_over = ack.rate.is_some_and(|sample| sample.send_state.sent_at > recovery.began);
        let delivered = if is_over { 0.0 } else { f64::from(ack.delivered) };
        let lowest = recovery.pre_recovery_cwnd * recovery.beta / MAX_GROWTH;
        let reduced = cwnd - ack_factor * delivered - loss_factor * lost;
        recovery.cwnd = reduced.max(lowest).max(MIN_WINDOW).min(cwnd.max(MIN_WINDOW));
        let cwnd = recovery.cwnd;
        if is_over || is_replaced {
            self.stage = Stage::Ended;
        }
        (!is_replaced).then_some(cwnd)
    }

    fn sets_recovery_window(&self) -> bool {
        matches!(self.stage, Stage::Recovery(_))
    }

    fn restart(&mut self, _path: &Path) {
        self.stage = Stage::Ended;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let rtt_floor = self.rtt_floor.map_or(0.0, Span::as_secs_f64);
        show(Metric { name: "rtt_floor", value: rtt_floor });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{Algorithm, CongestionControl, CongestionEvent};

    fn flow(name: &str, link: Link) -> TestPath<Algorithm> {
        TestPath::new(Algorithm::parse(name, &init(1)).expect("built in"), link)
    }

    fn window(flow: &TestPath<Algorithm>) -> f64 {
        flow.algorithm.control().cwnd
    }

    #[test]
    fn the_window_triples_each_round_trip_while_no_queue_builds() {
        let mut flow = flow("reno(slow_start=rapid)", Link::new(1000.0, 100, 1e9));
        let mut windows = Vec::new();
        for _ in 0..5 {
            flow.run_ms(105);
            windows.push(window(&flow));
        }
        assert_eq!(windows, [30.0, 90.0, 270.0, 810.0, 2430.0]);
    }

    /// Section 3.2: the smaller of 4 ms and a tenth.
    #[test]
    fn a_queue_above_the_threshold_makes_it_double() {
        for (min_rtt, rtt, growth) in
            [(20, 22, 2.0), (20, 23, 1.0), (100, 104, 2.0), (100, 105, 1.0)]
        {
            let mut rapid = RapidStart::new();
            let mut path = Path::new(1448, Time::ZERO);
            path.min_rtt = Some(Span::from_millis(min_rtt));
            let ack = Ack::new(1).with_rtt(Some(Span::from_millis(rtt)));
            rapid.should_exit(10.0, &path, &ack);
            assert_eq!(rapid.increase(10.0, &path, &ack), growth, "{min_rtt}, {rtt}");
        }
    }

    /// The factors of section 3.3.1, and what appendix A derives from them for every loss ratio.
    #[test]
    fn recovery_leaves_beta_times_what_was_delivered() {
        for (beta, silence_factor) in [(0.5, 5.0 / 6.0), (0.7, 0.9)] {
            for lost_of_each_three in [0u32, 1, 2] {
                let mut rapid = RapidStart::new();
                let mut path = Path::new(1448, Time::ZERO);
                let mut cwnd = rapid.begin_recovery(3000.0, 3000.0 * beta, &path).expect("first");
                assert!((cwnd - 3000.0 * silence_factor).abs() < 1e-9);
                for _ in 0..1000 {
                    path.lost += u64::from(lost_of_each_three);
                    let ack = Ack::new(3 - lost_of_each_three);
                    cwnd = rapid.recover(cwnd, &path, &ack).expect("in recovery");
                }
                let full_bdp = 1000.0 * f64::from(3 - lost_of_each_three);
                assert!((cwnd / (beta * full_bdp) - 1.0).abs() < 1e-9, "{cwnd}, {full_bdp}");
            }
        }
    }

    #[test]
    fn the_window_does_not_fall_below_a_third_of_the_usual_reduction() {
        let mut rapid = RapidStart::new();
        let mut path = Path::new(1448, Time::ZERO);
        let cwnd = rapid.begin_recovery(3000.0, 1500.0, &path).expect("first");
        path.lost = 2999;
        assert_eq!(rapid.recover(cwnd, &path, &Ack::new(1)), Some(500.0));
    }

    #[test]
    fn only_the_first_recovery_is_its_own() {
        let mut flow = flow("cubic(slow_start=rapid)", Link::new(50.0, 40, 170.0));
        assert!(flow.run_until(Span::from_secs(5), |flow| flow.dropped > 0));
        flow.run_ms(1000);
        assert!(flow.algorithm.uses_prr());
        let before = window(&flow);
        flow.algorithm.on_congestion(&flow.path, &CongestionEvent::loss());
        assert!((window(&flow) / before - 0.7).abs() < 0.01);
    }

    /// Full BDP: that of the link and its queue. The window after the first losses is beta times it,
    /// from three growth factors of the last round.
    #[test]
    fn after_the_first_losses_the_window_is_beta_times_the_full_bdp() {
        for (mbit, rtt) in [(20.0, 40), (50.0, 100), (100.0, 60)] {
            let link = Link::new(mbit, rtt, 1.0);
            let link = Link { queue: link.bdp(), ..link };
            let mut flow = flow("reno(slow_start=rapid)", link);
            assert!(flow.run_until(Span::from_secs(5), |flow| !flow.algorithm.uses_prr()));
            assert!(flow.run_until(Span::from_secs(5), |flow| flow.algorithm.uses_prr()));
            let expected = 0.5 * 2.0 * link.bdp();
            let ratio = window(&flow) / expected;
            assert!((0.85..1.15).contains(&ratio), "{mbit} Mbit/s: {ratio}");
        }
    }

    #[test]
    fn rapid_start_fills_a_long_path_sooner_than_slow_start() {
        let link = Link::new(100.0, 100, 863.0);
        let full = |name: &str| {
            let mut flow = flow(name, link);
            let bdp = link.bdp();
            assert!(flow.run_until(Span::from_secs(5), |flow| window(flow) >= bdp));
            flow.path.now.as_secs_f64() / link.rtt.as_secs_f64()
        };
        // From 10 packets to 863 in the fifth round trip of tripling and the seventh of doubling.
        let (rapid, classic) =
            (full("cubic(slow_start=rapid)"), full("cubic(slow_start=standard)"));
        assert!((5.0..5.5).contains(&rapid) && (7.0..7.5).contains(&classic), "{rapid}, {classic}");
        // The losses included, it delivers more in 1.5 s.
        let delivered = |name: &str| {
            let mut flow = flow(name, link);
            flow.run_ms(1500);
            flow.path.delivered
        };
        assert!(delivered("cubic(slow_start=rapid)") > delivered("cubic(slow_start=standard)"));
    }
}
