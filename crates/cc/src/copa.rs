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
use crate::round::Round;
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
struct Rtts {
    least: WindowedMin<Span>,
    standing: WindowedMin<Span>,
    greatest: WindowedMax<Span>,
}

impl Rtts {
    fn new(now: u64, rtt: Span) -> Rtts {
        Rtts {
            least: WindowedMin::new(MIN_RTT_WINDOW.as_nanos(), now, rtt),
            standing: WindowedMin::new(0, now, rtt),
            greatest: WindowedMax::new(0, now, rtt),
        }
    }

    fn update(&mut self, now: u64, rtt: Span, srtt: Span) {
        self.standing.set_window(srtt.as_nanos() / 2);
        self.greatest.set_window(srtt.as_nanos() * MAX_RTT_ROUNDS);
        self.least.update(now, rtt);
        self.standing.update(now, rtt);
        self.greatest.update(now, rtt);
    }

    /// `dq`, seconds.
    fn queueing(&self) -> f64 {
        self.standing.get().saturating_sub(self.least.get()).as_secs_f64()
    }

    fn nearly_empty(&self) -> bool {
        let swing = self.greatest.get().saturating_sub(self.least.get()).as_secs_f64();
        self.queueing() <= NEARLY_EMPTY * swing
    }
}

/// How the window has been moving.
#[derive(Clone, Copy, Debug)]
struct Motion {
    up: bool,
    /// Round trips in this direction.
    rounds: u32,
    velocity: f64,
    /// The window when the round trip began.
    began: f64,
}

impl Motion {
    fn new(cwnd: f64, up: bool) -> Motion {
        Motion { up, rounds: 0, velocity: 1.0, began: cwnd }
    }

    fn end_round(&mut self, cwnd: f64) {
        let up = cwnd > self.began;
        if up != self.up {
            *self = Motion::new(cwnd, up);
            return;
        }
        self.rounds += 1;
        if self.rounds > STEADY_ROUNDS {
            self.velocity *= 2.0;
        }
        self.began = cwnd;
    }
}

/// Copa.
#[derive(Clone, Debug)]
pub struct Copa {
    /// `1 / delta` in default mode.
    default_packets: f64,
    switches: bool,
    /// `1 / delta`: packets that the flow keeps in the queue.
    packets: f64,
    cwnd: f64,
    slow_start: bool,
    rtts: Option<Rtts>,
    round: Round,
    motion: Motion,
    /// When the queue was last seen nearly empty.
    emptied: Time,
    competes: bool,
    /// Whether there was loss in this round trip.
    lost: bool,
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
            default_packets: 1.0 / delta,
            switches: options.switch("mode_switching", true)?,
            packets: 1.0 / delta,
            cwnd: init.initial_window,
            slow_start: true,
            rtts: None,
            round: Round::default(),
            motion: Motion::new(init.initial_window, true),
            emptied: init.now,
            competes: false,
            lost: false,
            mss: init.mss,
        })
    }

    fn switch_mode(&mut self, now: Time, srtt: Span, rtts: &Rtts) {
        if rtts.nearly_empty() {
            self.emptied = now;
        }
        let fills = now.since(self.emptied) > srtt * EMPTY_ROUNDS;
        self.competes = self.switches && !self.slow_start && fills;
        if !self.competes {
            self.packets = self.default_packets;
        }
    }

    fn end_round(&mut self) {
        if !self.slow_start {
            self.motion.end_round(self.cwnd);
        }
        if self.competes && !self.lost {
            self.packets += 1.0;
        }
        self.lost = false;
    }

    fn turn(&mut self, up: bool) {
        if self.motion.up != up && self.motion.velocity > 1.0 {
            self.motion = Motion::new(self.cwnd, up);
        }
    }

    fn steer(&mut self, rtts: &Rtts, limited: bool, acknowledged: f64) {
        let (dq, standing) = (rtts.queueing(), rtts.standing.get().as_secs_f64());
        // lambda <= lambda_t, without dividing by a delay that may be zero.
        let below = self.cwnd * dq <= self.packets * standing;
        if self.slow_start && below {
            self.cwnd += if limited { acknowledged } else { 0.0 };
            return;
        }
        self.slow_start = false;
        self.turn(below);
        let step = (self.motion.velocity * self.packets).min(self.cwnd) / self.cwnd * acknowledged;
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
        let mut rtts = self.rtts.unwrap_or_else(|| Rtts::new(now, rtt));
        rtts.update(now, rtt, srtt);
        self.rtts = Some(rtts);
        self.switch_mode(path.now, srtt, &rtts);
        if self.round.ends(path) {
            self.end_round();
        }
        self.steer(&rtts, path.cwnd_limited, f64::from(ack.delivered));
    }

    fn on_congestion(&mut self, _path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            self.lost = true;
            if self.competes {
                self.packets = (self.packets / 2.0).max(self.default_packets);
            }
        }
        if event.signal == Signal::Timeout {
            self.cwnd = MIN_WINDOW;
            self.slow_start = true;
            self.motion = Motion::new(self.cwnd, true);
        }
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        let rate = self.rtts.map(|rtts| {
            Rate::from_bytes_in(2.0 * self.cwnd * f64::from(self.mss), rtts.standing.get())
        });
        let ssthresh = if self.slow_start { f64::INFINITY } else { MIN_WINDOW };
        ControlParameters { cwnd: self.cwnd, ssthresh, pacing_rate: rate, min_send_quantum: None }
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        value("delta", 1.0 / self.packets);
        value("velocity", self.motion.velocity);
        value("competitive", f64::from(self.competes));
        if let Some(rtts) = self.rtts {
            value("dq", rtts.queueing());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Link, Pipe, init};
    use crate::{AnySlowStart, Reno, Windowed};

    fn copa(text: &str, link: Link) -> Pipe<Copa> {
        let copa = Copa::from_options(&mut text.parse().expect("well formed"), &init(1));
        Pipe::new(copa.expect("within range"), link)
    }

    /// Means of the queue, packets, and of what the link carried, as a part of its rate.
    fn means(pipe: &mut Pipe<Copa>, seconds: u64) -> (f64, f64) {
        let (mut sum, mut count) = (0.0, 0.0);
        let before = pipe.path.delivered;
        pipe.run(Span::from_secs(seconds), |pipe| {
            (sum, count) = (sum + pipe.queued(), count + 1.0);
        });
        let carried = (pipe.path.delivered - before) as f64 * pipe.link.rtt.as_secs_f64();
        (sum / count, carried / seconds as f64 / pipe.link.bdp())
    }

    #[test]
    fn about_one_over_delta_packets_wait_and_the_link_is_busy() {
        for (mbit, rtt, delta) in [(10.0, 50, 0.5), (50.0, 20, 0.5), (50.0, 50, 0.1)] {
            let mut pipe = copa(&format!("copa(delta={delta})"), Link::new(mbit, rtt, 2000.0));
            pipe.run_ms(20_000);
            let (queue, carried) = means(&mut pipe, 40);
            let what = format!("{mbit} Mbit/s, {rtt} ms, delta {delta}: {queue} wait, {carried}");
            assert!((0.5..=2.0).contains(&(queue * delta)), "{what}");
            assert!(carried > 0.95, "{what}");
            assert_eq!(pipe.dropped, 0);
        }
    }

    #[test]
    fn the_queue_is_nearly_empty_every_five_round_trips_so_that_it_stays_in_default_mode() {
        let mut pipe = copa("copa", Link::new(20.0, 50, 2000.0));
        pipe.run_ms(10_000);
        pipe.run(Span::from_secs(60), |pipe| assert_eq!(pipe.inspect("delta"), 0.5));
    }

    #[test]
    fn the_rate_goes_towards_the_target_rate() {
        let mut pipe = copa("copa", Link::new(20.0, 50, 2000.0));
        pipe.run_ms(10_000);
        let mut before = pipe.algorithm.control().cwnd;
        pipe.run(Span::from_secs(10), |pipe| {
            let rtts = pipe.algorithm.rtts.expect("there were samples");
            let cwnd = pipe.algorithm.control().cwnd;
            let target = 1.0 / (pipe.inspect("delta") * pipe.inspect("dq"));
            let below = before / rtts.standing.get().as_secs_f64() <= target;
            assert_eq!(cwnd > before, below);
            before = cwnd;
        });
    }

    #[test]
    fn the_velocity_doubles_after_three_round_trips_in_one_direction() {
        let mut motion = Motion::new(100.0, true);
        let mut velocities = Vec::new();
        for cwnd in [110.0, 120.0, 130.0, 140.0, 150.0, 140.0] {
            motion.end_round(cwnd);
            velocities.push(motion.velocity);
        }
        assert_eq!(velocities, [1.0, 1.0, 1.0, 2.0, 4.0, 1.0]);
    }

    #[test]
    fn slow_start_doubles_until_the_rate_exceeds_the_target() {
        let link = Link::new(100.0, 40, 2000.0);
        let mut pipe = copa("copa", link);
        assert!(pipe.run_until(Span::from_secs(5), |p| p.algorithm.control().ssthresh < 1e9));
        let cwnd = pipe.algorithm.control().cwnd;
        assert!((0.3..2.0).contains(&(cwnd / link.bdp())), "{cwnd}, BDP {}", link.bdp());
    }

    /// Another flow keeps the queue full: the round-trip time never falls back.
    #[test]
    fn where_a_queue_never_empties_it_competes_and_loss_halves_what_it_keeps_there() {
        let mut pipe = copa("copa", Link::new(20.0, 50, 2000.0));
        pipe.run_ms(5_000);
        pipe.link.rtt = Span::from_millis(100);
        pipe.run_ms(3_000);
        assert_eq!(pipe.inspect("competitive"), 1.0);
        let packets = 1.0 / pipe.inspect("delta");
        assert!(packets > 10.0, "one more in each of some 25 round trips: {packets}");
        pipe.algorithm.on_congestion(
            &pipe.path,
            &CongestionEvent {
                signal: Signal::Loss,
                new_episode: true,
                packets: 1,
                seq: 0,
                send_state: None,
            },
        );
        assert_eq!(1.0 / pipe.inspect("delta"), packets / 2.0);
    }

    #[test]
    fn it_paces_at_twice_the_window_a_standing_round_trip_time() {
        let mut pipe = copa("copa", Link::new(20.0, 50, 2000.0));
        pipe.run_ms(10_000);
        let control = pipe.algorithm.control();
        let standing = pipe.algorithm.rtts.expect("there were samples").standing.get();
        let rate = control.pacing_rate.expect("Copa paces").bytes_per_sec();
        let expected = 2.0 * control.cwnd * 1448.0 / standing.as_secs_f64();
        assert!((rate / expected - 1.0).abs() < 1e-9);
    }

    /// Packets that each delivers in a minute beside the other, after half a minute.
    fn beside<B: CongestionControl>(one: &mut Pipe<Copa>, two: &mut Pipe<B>) -> (f64, f64) {
        one.run_beside(two, Span::from_secs(30));
        let before = (one.path.delivered, two.path.delivered);
        one.run_beside(two, Span::from_secs(60));
        ((one.path.delivered - before.0) as f64, (two.path.delivered - before.1) as f64)
    }

    #[test]
    fn two_flows_share_a_link_and_keep_its_queue_short() {
        let link = Link::new(20.0, 50, 400.0);
        let (mut one, mut two) = (copa("copa", link), copa("copa", link));
        let (one_rate, two_rate) = beside(&mut one, &mut two);
        assert!((one_rate / two_rate - 1.0).abs() < 0.2, "{one_rate} to {two_rate}");
        assert_eq!(one.dropped + two.dropped, 0);
    }

    #[test]
    fn beside_reno_it_competes_and_has_its_share_unless_it_may_not_switch() {
        let link = Link::new(20.0, 50, 86.0);
        let share = |text: &str| {
            let reno = Windowed::new(Reno, AnySlowStart::STANDARD, &init(1));
            let (mut copa, mut reno) = (copa(text, link), Pipe::new(reno, link));
            let (copa_rate, reno_rate) = beside(&mut copa, &mut reno);
            copa_rate / (copa_rate + reno_rate)
        };
        let (switching, default) = (share("copa"), share("copa(mode_switching=off)"));
        assert!((0.3..0.7).contains(&switching), "{switching}");
        assert!(default < switching / 2.0, "{default}");
    }
}
