//! Copa (Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet",
//! NSDI 2018).
//!
//! The rate steers towards a target (section 2): with the queueing delay `dq`,
//!
//! ```text
//! lambda_t = 1 / (delta dq)           packets/s
//! lambda   = cwnd / RTTstanding
//! dq       = RTTstanding - RTTmin
//! ```
//!
//! `RTTstanding` is the least round-trip time of the last half of a smoothed one, `RTTmin` that of
//! the last 10 s. For every packet acknowledged
//!
//! ```text
//! cwnd += v / (delta cwnd)    lambda <= lambda_t
//! cwnd -= v / (delta cwnd)    else
//! ```
//!
//! The velocity `v` is 1, and doubles once in a round trip after the window went the same way for
//! three; it is 1 again when the window turns. At first the window doubles every round trip, until
//! `lambda` exceeds `lambda_t`. The sender paces at `2 cwnd / RTTstanding`.
//!
//! In equilibrium a flow alone has `1 / delta` packets in the queue on average, which swings about
//! that in five round trips, and is empty once in a while (section 2.2).
//!
//! *Mode switching* (section 2.3). If the queue was nearly empty in the last five round trips,
//! `dq < 0.1 (RTTmax - RTTmin)` with `RTTmax` the greatest of the last four, only flows like this
//! one share it, and `delta` is 0.5. Otherwise a flow that fills queues does, and `1 / delta` does
//! as such a flow's window does: one more every round trip, half on loss, 2 at least.
//!
//! What the paper leaves open is as follows here: `v / delta` is a window at most, so that a round
//! trip at most doubles it; `v` is 1 as soon as the window turns, not only at the end of the round
//! trip; loss is ignored in default mode; a timeout leaves 2 packets, the least window, and slow
//! start.

use crate::filters::{WindowedMax, WindowedMin};
use crate::round::SequenceRound;
use crate::{
    Ack, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Options, Path, Signal,
};
use dumbbell_units::{Rate, Span, Time};

/// How long the least round-trip time is remembered.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Round trips of which the greatest counts.
const MAX_RTT_ROUNDS: u64 = 4;
/// Round trips within which the queue must have been nearly empty.
const EMPTY_ROUNDS: u64 = 5;
/// What of the swing of the round-trip time is nearly nothing.
const NEARLY_EMPTY: f64 = 0.1;
/// Round trips in one direction after which the velocity doubles.
const STEADY_ROUNDS: u32 = 3;
/// The least window, packets.
const MIN_WINDOW: f64 = 2.0;

/// The round-trip times that Copa goes by.
#[derive(Clone, Copy, Debug)]
struct RttFilters {
    rtt_min: WindowedMin<Span>,
    rtt_standing: WindowedMin<Span>,
    rtt_max: WindowedMax<Span>,
}

impl RttFilters {
    fn new(now: u64, rtt: Span) -> RttFilters {
        RttFilters {
            rtt_min: WindowedMin::new(MIN_RTT_WINDOW.as_nanos(), now, rtt),
            rtt_standing: WindowedMin::new(0, now, rtt),
            rtt_max: WindowedMax::new(0, now, rtt),
        }
    }

    fn update(&mut self, now: u64, rtt: Span, srtt: Span) {
        self.rtt_standing.set_window(srtt.as_nanos() / 2);
        self.rtt_max.set_window(srtt.as_nanos() * MAX_RTT_ROUNDS);
        self.rtt_min.update(now, rtt);
        self.rtt_standing.update(now, rtt);
        self.rtt_max.update(now, rtt);
    }

    /// `dq`, seconds.
    fn queueing_delay(&self) -> f64 {
        self.rtt_standing.get().saturating_sub(self.rtt_min.get()).as_secs_f64()
    }

    fn queue_nearly_empty(&self) -> bool {
        let swing = self.rtt_max.get().saturating_sub(self.rtt_min.get()).as_secs_f64();
        self.queueing_delay() <= NEARLY_EMPTY * swing
    }
}

/// How the window has been moving.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    up: bool,
    /// Round trips in this direction.
    rounds: u32,
    v: f64,
    /// The window when the round trip began.
    cwnd_at_round_start: f64,
}

impl Velocity {
    fn new(cwnd: f64, up: bool) -> Velocity {
        Velocity { up, rounds: 0, v: 1.0, cwnd_at_round_start: cwnd }
    }

    fn end_round(&mut self, cwnd: f64) {
        let up = cwnd > self.cwnd_at_round_start;
        if up != self.up {
            *self = Velocity::new(cwnd, up);
            return;
        }
        self.rounds += 1;
        if self.rounds > STEADY_ROUNDS {
            self.v *= 2.0;
        }
        self.cwnd_at_round_start = cwnd;
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
    /// When the queue was last seen nearly empty.
    nearly_empty_at: Time,
    competitive: bool,
    /// Whether there was loss in this round trip.
    loss_in_round: bool,
    mss: u32,
}

impl Copa {
    /// Copa at the beginning of a connection. Takes the options `delta` and `mode_switching`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Copa, ConfigError> {
        let delta = options.number("delta", 0.5, 0.001..=10.0, "0.001 to 10")?;
        Ok(Copa {
            default_inverse_delta: 1.0 / delta,
            mode_switching: options.switch("mode_switching", true)?,
            inverse_delta: 1.0 / delta,
            cwnd: init.initial_window,
            slow_start: true,
            rtts: None,
            round: SequenceRound::default(),
            velocity: Velocity::new(init.initial_window, true),
            nearly_empty_at: init.now,
            competitive: false,
            loss_in_round: false,
            mss: init.mss,
        })
    }

    fn switch_mode(&mut self, now: Time, srtt: Span, rtts: &RttFilters) {
        if rtts.queue_nearly_empty() {
            self.nearly_empty_at = now;
        }
        let fills = now.since(self.nearly_empty_at) > srtt * EMPTY_ROUNDS;
        self.competitive = self.mode_switching && !self.slow_start && fills;
        if !self.competitive {
            self.inverse_delta = self.default_inverse_delta;
        }
    }

    fn end_round(&mut self) {
        if !self.slow_start {
            self.velocity.end_round(self.cwnd);
        }
        if self.competitive && !self.loss_in_round {
            self.inverse_delta += 1.0;
        }
        self.loss_in_round = false;
    }

    fn set_direction(&mut self, up: bool) {
        if self.velocity.up != up && self.velocity.v > 1.0 {
            self.velocity = Velocity::new(self.cwnd, up);
        }
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
        self.set_direction(below);
        let step = (self.velocity.v * self.inverse_delta).min(self.cwnd) / self.cwnd * acknowledged;
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
        self.switch_mode(path.now, srtt, &rtts);
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
            self.velocity = Velocity::new(self.cwnd, true);
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
        self.velocity.cwnd_at_round_start *= factor;
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
    fn about_one_over_delta_packets_wait_and_the_link_is_busy() {
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
    fn the_queue_is_nearly_empty_every_five_round_trips_so_that_it_stays_in_default_mode() {
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

    #[test]
    fn the_velocity_doubles_after_three_round_trips_in_one_direction() {
        let mut motion = Velocity::new(100.0, true);
        let mut velocities = Vec::new();
        for cwnd in [110.0, 120.0, 130.0, 140.0, 150.0, 140.0] {
            motion.end_round(cwnd);
            velocities.push(motion.v);
        }
        assert_eq!(velocities, [1.0, 1.0, 1.0, 2.0, 4.0, 1.0]);
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
    fn where_a_queue_never_empties_it_competes_and_loss_halves_what_it_keeps_there() {
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
    fn it_paces_at_twice_the_window_a_standing_round_trip_time() {
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

    #[test]
    fn two_flows_share_a_link_and_keep_its_queue_short() {
        let link = Link::new(20.0, 50, 400.0);
        let (mut one, mut two) = (copa("copa", link), copa("copa", link));
        let (one_rate, two_rate) = delivered_beside(&mut one, &mut two);
        assert!((one_rate / two_rate - 1.0).abs() < 0.2, "{one_rate} to {two_rate}");
        assert_eq!(one.dropped + two.dropped, 0);
    }

    #[test]
    fn beside_reno_it_competes_and_has_its_share_unless_it_may_not_switch() {
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
