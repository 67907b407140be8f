//! Copa (Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet",
//! NSDI 2018).
//!
//! The rate moves towards a target rate that depends on the queueing delay `dq` (section 2):
//!
//! ```text
//! dq       = RTTstanding - RTTmin
//! lambda_t = 1 / (delta dq)           target rate, packets/s
//! lambda   = cwnd / RTTstanding       current rate
//! ```
//!
//! `RTTstanding` is the minimum round-trip time of the last `srtt / 2`, `RTTmin` that of the last
//! 10 s. For each packet acknowledged
//!
//! ```text
//! cwnd += v / (delta cwnd)    lambda <= lambda_t     (cwnd dq <= RTTstanding / delta: dq may be 0)
//! cwnd -= v / (delta cwnd)    otherwise
//! ```
//!
//! Slow start doubles the window every round trip until `lambda` exceeds `lambda_t`. The pacing rate
//! is `2 cwnd / RTTstanding`. In equilibrium a lone flow keeps `1 / delta` packets in the queue on
//! average. The queue oscillates and is empty about once in five round trips (section 2.2).
//!
//! *Mode switching* (section 2.3). If the queue was nearly empty in the last five round trips, that
//! is, if a round-trip time was below `RTTmin + 0.1 (RTTmax - RTTmin)` with `RTTmax` the maximum of
//! the last four, only Copa flows share the link. The flow is in default mode and `delta` is 0.5.
//! Otherwise a buffer-filling flow competes. In competitive mode, `1 / delta` grows by one every
//! round trip, is halved on loss, and is at least 2.
//!
//! | | paper | authors' genericCC (`markoviancc.cc`) | here |
//! |---|---|---|---|
//! | velocity `v` | doubles after three round trips in one direction | from the second one on | genericCC; paper with `doubling_after=3` |
//! | direction | window against that of a round trip ago | majority of the acknowledgements of a round trip | genericCC |
//! | maximum of `v / delta` | none | the window | genericCC |
//! | nearly empty | within five round trips | within four | paper |
//! | comparison | `dq < 0.1 (RTTmax - RTTmin)` | the same | `<=`: true for a path without any queue |
//! | loss in default mode | ignored | `cwnd *= 0.7` above 30 % loss in two round trips | paper |
//! | timeout | unspecified | new start | window of 2 packets and slow start |
//!
//! The first row matters with several flows. If `v` doubles only after three round trips, the
//! oscillations of flows out of phase cancel, the queue is not empty within five round trips, and
//! Copa flows among themselves stay in competitive mode and fill the queue. In genericCC with that
//! wait, 8 flows at 100 Mbit/s, 40 ms and 4 BDP have 55 ms of queueing delay, and 3.2 ms as
//! published. Doubling at once makes the oscillations larger: lower utilisation (0.92 to 0.97 in
//! genericCC), but default mode.
//!
//! Limit: flows with fewer than about 20 packets in flight do not see every time that the queue is
//! nearly empty, and still use competitive mode. Ten flows at 46 Mbit/s, 20 ms and 1 BDP have 13 ms
//! of queueing delay and are in competitive mode most of the time. In genericCC, where every packet
//! is acknowledged, they have 5.4 ms and are in it for 15 % of the acknowledgements.

use crate::filters::{WindowedMax, WindowedMin};
use crate::round::SequenceRound;
use crate::{
    Ack, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Options, Path, Signal,
};
use dumbbell_units::{Rate, Span};

/// Window of `RTTmin`.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Window of `RTTmax`, round trips.
const MAX_RTT_ROUNDS: u64 = 4;
/// Round trips within which the queue must have been nearly empty in default mode.
const EMPTY_ROUNDS: u64 = 5;
/// Queueing delay of a nearly empty queue, as a fraction of `RTTmax - RTTmin`.
const NEARLY_EMPTY: f64 = 0.1;
/// Minimum window, packets.
const MIN_WINDOW: f64 = 2.0;

/// Filters of the round-trip time.
#[derive(Clone, Copy, Debug)]
struct RttFilters {
    rtt_min: WindowedMin<Span>,
    rtt_standing: WindowedMin<Span>,
    rtt_max: WindowedMax<Span>,
    /// Minimum of the last [`EMPTY_ROUNDS`].
    recent_min: WindowedMin<Span>,
}

impl RttFilters {
    fn new(now: u64, rtt: Span) -> RttFilters {
        RttFilters {
            rtt_min: WindowedMin::new(MIN_RTT_WINDOW.as_nanos(), now, rtt),
            rtt_standing: WindowedMin::new(0, now, rtt),
            rtt_max: WindowedMax::new(0, now, rtt),
            recent_min: WindowedMin::new(0, now, rtt),
        }
    }

    fn update(&mut self, now: u64, rtt: Span, srtt: Span) {
        self.rtt_standing.set_window(srtt.as_nanos() / 2);
        self.rtt_max.set_window(srtt.as_nanos() * MAX_RTT_ROUNDS);
        self.recent_min.set_window(srtt.as_nanos() * EMPTY_ROUNDS);
        self.rtt_min.update(now, rtt);
        self.recent_min.update(now, rtt);
        self.rtt_standing.update(now, rtt);
        self.rtt_max.update(now, rtt);
    }

    /// `dq`, seconds.
    fn queueing_delay(&self) -> f64 {
        self.rtt_standing.get().saturating_sub(self.rtt_min.get()).as_secs_f64()
    }

    /// Whether the queue was nearly empty within [`EMPTY_ROUNDS`].
    fn queue_nearly_empty(&self) -> bool {
        let rtt_min = self.rtt_min.get();
        let excess = |rtt: Span| rtt.saturating_sub(rtt_min).as_secs_f64();
        excess(self.recent_min.get()) <= NEARLY_EMPTY * excess(self.rtt_max.get())
    }
}

/// The velocity `v` and the direction of the window.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    v: f64,
    up: bool,
    /// Consecutive round trips in this direction after the first.
    rounds: u32,
    /// Round trips in one direction before `v` doubles.
    doubling_after: u32,
    /// Packets acknowledged in this round trip while the window rose, less those while it fell.
    net_up: f64,
}

impl Velocity {
    fn new(up: bool, doubling_after: u32) -> Velocity {
        Velocity { v: 1.0, up, rounds: 0, doubling_after, net_up: 0.0 }
    }

    /// The direction of the round is that of most of its acknowledgements; `v` is 1 after a turn. A tie
    /// is a turn too (genericCC: `prev_update_dir * update_dir > 0`).
    fn end_round(&mut self) {
        let goes_on = if self.up { self.net_up > 0.0 } else { self.net_up < 0.0 };
        if !goes_on {
            *self = Velocity::new(!self.up, self.doubling_after);
            return;
        }
        self.net_up = 0.0;
        self.rounds += 1;
        if self.rounds > self.doubling_after {
            self.v *= 2.0;
        }
    }
}

/// Copa.
#[derive(Clone, Debug)]
pub struct Copa {
    /// `1 / delta` in default mode.
    default_inverse_delta: f64,
    mode_switching: bool,
    /// `1 / delta`: packets that the flow keeps in the queue.
    inverse_delta: f64,
    cwnd: f64,
    slow_start: bool,
    rtts: Option<RttFilters>,
    round: SequenceRound,
    velocity: Velocity,
    competitive: bool,
    /// Whether there was a loss in this round trip.
    loss_in_round: bool,
    mss: u32,
}

impl Copa {
    /// Copa at the start of a connection. Takes the options `delta`, `mode_switching` and
    /// `doubling_after`, the round trips in one direction before the velocity doubles.
    ///
    /// # Errors
    /// If the value of one is invalid.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Copa, ConfigError> {
        let delta = options.number("delta", 0.5, 0.001..=10.0, "0.001 to 10")?;
        let doubling_after =
            options.number("doubling_after", 0.0, 0.0..=100.0, "0 to 100 round trips")? as u32;
        Ok(Copa {
            default_inverse_delta: 1.0 / delta,
            mode_switching: options.switch("mode_switching", true)?,
            inverse_delta: 1.0 / delta,
            cwnd: init.initial_window,
            slow_start: true,
            rtts: None,
            round: SequenceRound::default(),
            velocity: Velocity::new(true, doubling_after),
            competitive: false,
            loss_in_round: false,
            mss: init.mss,
        })
    }

    fn switch_mode(&mut self, rtts: &RttFilters) {
        self.competitive = self.mode_switching && !self.slow_start && !rtts.queue_nearly_empty();
        if !self.competitive {
            self.inverse_delta = self.default_inverse_delta;
        }
    }

    fn end_round(&mut self) {
        if !self.slow_start {
            self.velocity.end_round();
        }
        if self.competitive && !self.loss_in_round {
            self.inverse_delta += 1.0;
        }
        self.loss_in_round = false;
    }

    fn update_cwnd(&mut self, rtts: &RttFilters, limited: bool, acknowledged: f64) {
        let (dq, standing) = (rtts.queueing_delay(), rtts.rtt_standing.get().as_secs_f64());
        // lambda <= lambda_t, without dividing by a delay that may be zero.
        let below = self.cwnd * dq <= self.inverse_delta * standing;
        if self.slow_start && below {
            self.cwnd += if limited { acknowledged } else { 0.0 };
            return;
        }
        self.slow_start = false;
        let velocity = &mut self.velocity;
        velocity.net_up += if below { acknowledged } else { -acknowledged };
        if velocity.v * self.inverse_delta > self.cwnd {
            velocity.v = (velocity.v / 2.0).max(1.0);
        }
        let step = (velocity.v * self.inverse_delta).min(self.cwnd) / self.cwnd * acknowledged;
        if !below {
            self.cwnd = (self.cwnd - step).max(MIN_WINDOW);
        } else if limited {
            self.cwnd += step;
        }
    }
}

impl CongestionControl for Copa {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        let now = path.now.as_nanos();
        let srtt = path.srtt.unwrap_or(rtt);
        let mut rtts = self.rtts.unwrap_or_else(|| RttFilters::new(now, rtt));
        rtts.update(now, rtt, srtt);
        self.rtts = Some(rtts);
        self.switch_mode(&rtts);
        if self.round.advance(path) {
            self.end_round();
        }
        self.update_cwnd(&rtts, path.cwnd_limited, f64::from(ack.delivered));
    }

    fn on_congestion(&mut self, _path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            self.loss_in_round = true;
            if self.competitive {
                self.inverse_delta = (self.inverse_delta / 2.0).max(self.default_inverse_delta);
            }
        }
        if event.signal == Signal::Timeout {
            self.cwnd = MIN_WINDOW;
            self.slow_start = true;
            self.velocity = Velocity::new(true, self.velocity.doubling_after);
        }
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        let rate = self.rtts.map(|rtts| {
            Rate::from_bytes_in(2.0 * self.cwnd * f64::from(self.mss), rtts.rtt_standing.get())
        });
        let ssthresh = if self.slow_start { f64::INFINITY } else { MIN_WINDOW };
        ControlParameters::new(self.cwnd).with_ssthresh(ssthresh).with_pacing_rate(rate)
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.cwnd = (self.cwnd * factor).max(MIN_WINDOW);
        self.mss = path.mss;
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        value("delta", 1.0 / self.inverse_delta);
        value("velocity", self.velocity.v);
        value("competitive", f64::from(self.competitive));
        if let Some(rtts) = self.rtts {
            value("dq", rtts.queueing_delay());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, Reno, Windowed};

    fn copa(text: &str, link: Link) -> TestPath<Copa> {
        let copa = Copa::from_options(&mut text.parse().expect("well formed"), &init(1));
        TestPath::new(copa.expect("within range"), link)
    }

    /// Means of the queue, packets, and of what the link carried, as a part of its rate.
    fn means(flow: &mut TestPath<Copa>, seconds: u64) -> (f64, f64) {
        let (mut sum, mut count) = (0.0, 0.0);
        let before = flow.path.delivered;
        flow.run(Span::from_secs(seconds), |flow| {
            (sum, count) = (sum + flow.queued(), count + 1.0);
        });
        let carried = (flow.path.delivered - before) as f64 * flow.link.rtt.as_secs_f64();
        (sum / count, carried / seconds as f64 / flow.link.bdp())
    }

    #[test]
    fn about_1_over_delta_packets_are_queued_and_the_link_is_busy() {
        for (mbit, rtt, delta) in [(10.0, 50, 0.5), (50.0, 20, 0.5), (50.0, 50, 0.1)] {
            let mut flow = copa(&format!("copa(delta={delta})"), Link::new(mbit, rtt, 2000.0));
            flow.run_ms(20_000);
            let (queue, carried) = means(&mut flow, 40);
            let what = format!("{mbit} Mbit/s, {rtt} ms, delta {delta}: {queue} wait, {carried}");
            assert!((0.5..=2.0).contains(&(queue * delta)), "{what}");
            assert!(carried > 0.95, "{what}");
            assert_eq!(flow.dropped, 0);
        }
    }

    #[test]
    fn a_lone_flow_stays_in_default_mode() {
        let mut flow = copa("copa", Link::new(20.0, 50, 2000.0));
        flow.run_ms(10_000);
        flow.run(Span::from_secs(60), |flow| assert_eq!(flow.inspect("delta"), 0.5));
    }

    #[test]
    fn the_rate_goes_towards_the_target_rate() {
        let mut flow = copa("copa", Link::new(20.0, 50, 2000.0));
        flow.run_ms(10_000);
        let mut before = flow.algorithm.control().cwnd;
        flow.run(Span::from_secs(10), |flow| {
            let rtts = flow.algorithm.rtts.expect("there were samples");
            let cwnd = flow.algorithm.control().cwnd;
            let target = 1.0 / (flow.inspect("delta") * flow.inspect("dq"));
            let below = before / rtts.rtt_standing.get().as_secs_f64() <= target;
            assert_eq!(cwnd > before, below);
            before = cwnd;
        });
    }

    /// By hand: the second round trip upwards doubles `v`, or the fifth after a wait of three; a
    /// turn makes it 1.
    #[test]
    fn the_velocity_doubles_in_one_direction_and_is_1_after_a_turn() {
        for (doubling_after, expected) in
            [(0, [2.0, 4.0, 8.0, 16.0, 1.0, 2.0]), (3, [1.0, 1.0, 1.0, 2.0, 1.0, 1.0])]
        {
            let mut velocity = Velocity::new(true, doubling_after);
            let velocities = [5.0, 1.0, 9.0, 3.0, -1.0, -4.0].map(|net_up| {
                velocity.net_up = net_up;
                velocity.end_round();
                velocity.v
            });
            assert_eq!(velocities, expected);
        }
    }

    /// markoviancc.cc: `update_amt` is 1 and `prev_update_dir` changes its sign, whatever it was.
    #[test]
    fn a_round_trip_without_a_majority_is_a_turn() {
        for up in [true, false] {
            let mut velocity = Velocity::new(up, 0);
            velocity.v = 8.0;
            velocity.end_round();
            assert_eq!((velocity.v, velocity.up), (1.0, !up));
        }
    }

    #[test]
    fn slow_start_doubles_until_the_rate_exceeds_the_target() {
        let link = Link::new(100.0, 40, 2000.0);
        let mut flow = copa("copa", link);
        assert!(flow.run_until(Span::from_secs(5), |p| p.algorithm.control().ssthresh < 1e9));
        let cwnd = flow.algorithm.control().cwnd;
        assert!((0.3..2.0).contains(&(cwnd / link.bdp())), "{cwnd}, BDP {}", link.bdp());
    }

    /// Another flow keeps the queue full: the round-trip time never falls back.
    #[test]
    fn with_a_standing_queue_1_over_delta_grows_and_is_halved_on_loss() {
        let mut flow = copa("copa", Link::new(20.0, 50, 2000.0));
        flow.run_ms(5_000);
        flow.link.rtt = Span::from_millis(100);
        flow.run_ms(3_000);
        assert_eq!(flow.inspect("competitive"), 1.0);
        let packets = 1.0 / flow.inspect("delta");
        assert!(packets > 10.0, "one more in each of some 25 round trips: {packets}");
        flow.algorithm.on_congestion(&flow.path, &CongestionEvent::loss());
        assert_eq!(1.0 / flow.inspect("delta"), packets / 2.0);
    }

    #[test]
    fn the_pacing_rate_is_twice_cwnd_over_rtt_standing() {
        let mut flow = copa("copa", Link::new(20.0, 50, 2000.0));
        flow.run_ms(10_000);
        let control = flow.algorithm.control();
        let standing = flow.algorithm.rtts.expect("there were samples").rtt_standing.get();
        let rate = control.pacing_rate.expect("Copa paces").bytes_per_sec();
        let expected = 2.0 * control.cwnd * 1448.0 / standing.as_secs_f64();
        assert!((rate / expected - 1.0).abs() < 1e-9);
    }

    /// Packets that each delivers in a minute beside the other, after half a minute.
    fn delivered_beside<B: CongestionControl>(
        one: &mut TestPath<Copa>,
        two: &mut TestPath<B>,
    ) -> (f64, f64) {
        one.run_beside(two, Span::from_secs(30));
        let before = (one.path.delivered, two.path.delivered);
        one.run_beside(two, Span::from_secs(60));
        ((one.path.delivered - before.0) as f64, (two.path.delivered - before.1) as f64)
    }

    /// The authors' genericCC gives two such flows 10.2 and 8.1 Mbit/s at 40 ms: a ratio of 1.26.
    #[test]
    fn two_flows_share_a_link_in_default_mode() {
        let link = Link::new(20.0, 40, 400.0);
        let (mut one, mut two) = (copa("copa", link), copa("copa", link));
        let (one_rate, two_rate) = delivered_beside(&mut one, &mut two);
        assert!((one_rate / two_rate - 1.0).abs() < 0.3, "{one_rate} to {two_rate}");
        assert_eq!((one.inspect("delta"), two.inspect("delta")), (0.5, 0.5));
        assert_eq!(one.dropped + two.dropped, 0);
    }

    #[test]
    fn beside_reno_it_has_its_share_only_with_mode_switching() {
        let link = Link::new(20.0, 50, 86.0);
        let share = |text: &str| {
            let reno = Windowed::new(Reno, AnySlowStart::STANDARD, &init(1));
            let (mut copa, mut reno) = (copa(text, link), TestPath::new(reno, link));
            let (copa_rate, reno_rate) = delivered_beside(&mut copa, &mut reno);
            copa_rate / (copa_rate + reno_rate)
        };
        let (switching, default) = (share("copa"), share("copa(mode_switching=off)"));
        assert!((0.3..0.7).contains(&switching), "{switching}");
        assert!(default < switching / 2.0, "{default}");
    }
}
