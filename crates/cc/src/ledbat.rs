//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-06; LEDBAT is RFC 6817): a scavenger for background
//! transfers.
//!
//! `delay`, the queueing delay, is the minimum of the last four round-trip times less `base`, the
//! minimum of the last ten minutes. `TARGET` is 60 ms.
//!
//! ```text
//! GAIN = 1 / min(16, ceil(2 TARGET / base))
//! each round trip:  W += GAIN                                            delay <= TARGET
//!                   W += max(GAIN - W (delay / TARGET - 1), -W / 2)      delay > TARGET
//! slow start:       W += GAIN for each packet acknowledged
//! W >= 2
//! ```
//!
//! The initial slow start also ends when `delay` exceeds 3/4 of `TARGET`.
//!
//! *Slowdowns* empty the queue, so that flows measure the base delay and converge to equal rates: the
//! window is 2 packets for two round trips; then slow start restores it. The first slowdown begins
//! two round trips after the initial slow start. The interval between slowdowns is nine times the
//! duration of the last one, including its slow start. The draft does not say what a slowdown restores
//! that begins in the slow start after a timeout or a pause: here, the threshold of that slow start.
//!
//! Loss halves the window, once a round trip; in a slowdown, the window that it restores.

use crate::filters::WindowedMin;
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::{Span, Time};

/// Window of the base delay's minimum filter.
const BASE_HISTORY: Span = Span::from_secs(600);
/// Samples whose minimum is the current round-trip time (RFC 6817's `CURRENT_FILTER`).
const CURRENT_FILTER: usize = 4;
/// Fraction of the target above which the initial slow start ends.
const SLOW_START_TARGET: f64 = 0.75;
/// Minimum window, and the window of a slowdown, packets.
const MIN_WINDOW: f64 = 2.0;
/// Round trips from the initial slow start to the first slowdown; also those of a slowdown.
const SLOWDOWN_ROUNDS: u64 = 2;
/// Time between slowdowns, in durations of the last one.
const SLOWDOWN_INTERVAL: u64 = 9;

/// `GAIN` for a target and a base delay, seconds.
fn gain(target: f64, base: f64) -> f64 {
    if base > 0.0 { 1.0 / libm::ceil(2.0 * target / base).clamp(1.0, 16.0) } else { 1.0 / 16.0 }
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The initial slow start.
    SlowStart,
    /// Keeps the delay at the target until the next slowdown.
    CongestionAvoidance { next_slowdown: Time },
    /// A slowdown.
    Slowdown { start: Time, end: Time, window: f64 },
    /// Slow start after a slowdown, back to the window before it.
    RampUp { slowdown_start: Time },
}

/// LEDBAT++'s rule.
#[derive(Clone, Copy, Debug)]
pub struct LedbatPlusPlus {
    /// Seconds.
    target: f64,
    base: Option<WindowedMin<Span>>,
    current_delays: [Span; CURRENT_FILTER],
    samples: usize,
    state: State,
    /// Whether the last decrease ended the initial slow start, and the window before it, or the one that
    /// the slowdown would have restored.
    undo: (bool, f64),
}

impl LedbatPlusPlus {
    /// Takes the option `target`, a time.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<LedbatPlusPlus, ConfigError> {
        let range = Span::from_millis(1)..=Span::from_secs(1);
        let target = options.time("target", Span::from_millis(60), range, "1 ms to 1 s")?;
        Ok(LedbatPlusPlus {
            target: target.as_secs_f64(),
            base: None,
            current_delays: [Span::MAX; CURRENT_FILTER],
            samples: 0,
            state: State::SlowStart,
            undo: (false, 0.0),
        })
    }

    /// `base` and `delay`, seconds.
    fn delays(&self) -> Option<(f64, f64)> {
        let base = self.base?.get();
        let current = self.current_delays.iter().min().copied().unwrap_or(base);
        Some((base.as_secs_f64(), current.saturating_sub(base).as_secs_f64()))
    }

    /// Growth of a window of `w` packets for one packet acknowledged in congestion avoidance.
    fn growth(&self, w: f64, base: f64, delay: f64) -> f64 {
        let gain = gain(self.target, base);
        if delay <= self.target {
            return gain / w;
        }
        (gain - w * (delay / self.target - 1.0)).max(-w / 2.0) / w
    }
}

impl WindowRule for LedbatPlusPlus {
    /// The rule sets the window in `set_window`, in slow start too.
    #[inline]
    fn increase(&mut self, _cwnd: f64, _counted: f64, _path: &Path, _ack: &Ack) -> f64 {
        0.0
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.undo = (self.state == State::SlowStart, cwnd);
        if let State::Slowdown { window, .. } = &mut self.state {
            self.undo.1 = *window;
            *window /= 2.0;
        }
        cwnd / 2.0
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        self.current_delays[self.samples % CURRENT_FILTER] = rtt;
        self.samples += 1;
        let now = path.now.as_nanos();
        let window = BASE_HISTORY.as_nanos();
        self.base.get_or_insert_with(|| WindowedMin::new(window, now, rtt)).update(now, rtt);
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        // Before the first sample GAIN is at its minimum.
        let (base, delay) = self.delays().unwrap_or((0.0, 0.0));
        let grown = cwnd + gain(self.target, base) * f64::from(ack.acked);
        let slow_start = path.cwnd_limited.then_some((grown.min(ssthresh), ssthresh));
        let now = path.now;
        let rounds = path.srtt.unwrap_or(Span::ZERO) * SLOWDOWN_ROUNDS;
        match self.state {
            State::SlowStart => {
                let congested = ssthresh.is_finite();
                if !congested && delay <= SLOW_START_TARGET * self.target {
                    return slow_start;
                }
                self.state = State::CongestionAvoidance { next_slowdown: now + rounds };
                Some((cwnd, if congested { ssthresh } else { cwnd }))
            }
            State::CongestionAvoidance { next_slowdown } if now >= next_slowdown => {
                let window = cwnd.max(ssthresh);
                self.state = State::Slowdown { start: now, end: now + rounds, window };
                Some((MIN_WINDOW, window))
            }
            State::Slowdown { start, end, .. } if now >= end => {
                self.state = State::RampUp { slowdown_start: start };
                slow_start
            }
            State::Slowdown { window, .. } => Some((MIN_WINDOW, window)),
            State::RampUp { slowdown_start } if cwnd >= ssthresh => {
                let next_slowdown = now + now.since(slowdown_start) * SLOWDOWN_INTERVAL;
                self.state = State::CongestionAvoidance { next_slowdown };
                None
            }
            State::CongestionAvoidance { .. } if cwnd >= ssthresh => {
                let growth = self.growth(cwnd, base, delay) * f64::from(ack.acked);
                let window = (cwnd + growth).max(MIN_WINDOW);
                (growth < 0.0 || path.cwnd_limited).then_some((window, ssthresh.min(window)))
            }
            State::CongestionAvoidance { .. } | State::RampUp { .. } => slow_start,
        }
    }

    fn on_undo(&mut self, _path: &Path) {
        let (in_slow_start, before) = self.undo;
        match &mut self.state {
            _ if in_slow_start => self.state = State::SlowStart,
            State::Slowdown { window, .. } => *window = window.max(before),
            _ => {}
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.undo.1 *= factor;
        if let State::Slowdown { window, .. } = &mut self.state {
            *window *= factor;
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        if let Some((base, delay)) = self.delays() {
            value("base", base);
            value("delay", delay);
        }
        let stage = match self.state {
            State::SlowStart => 0,
            State::CongestionAvoidance { .. } => 1,
            State::Slowdown { .. } => 2,
            State::RampUp { .. } => 3,
        };
        value("stage", f64::from(stage));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Reno, StandardSlowStart, Windowed};

    type Flow = TestPath<Windowed<LedbatPlusPlus, StandardSlowStart>>;

    fn rule(text: &str) -> LedbatPlusPlus {
        let rule = LedbatPlusPlus::from_options(&mut text.parse().expect("well formed"));
        rule.expect("within range")
    }

    fn ledbat(text: &str, link: Link) -> Flow {
        let rule = rule(text);
        TestPath::new(Windowed::new(rule, StandardSlowStart, &init(1)), link)
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn a_slowdown_restores_the_bytes_of_the_window_at_another_mtu() {
        let mut ledbat = rule("ledbat");
        ledbat.state = State::Slowdown { start: Time::ZERO, end: Time::MAX, window: 100.0 };
        ledbat.on_mtu_update(0.5);
        assert!(matches!(ledbat.state, State::Slowdown { window: 50.0, .. }));
    }

    /// A path at `ms`, whose round-trip time is 100 ms.
    fn path_at(ms: u64) -> Path {
        let path = Path::new(1448, Time::ZERO + Span::from_millis(ms));
        Path { srtt: Some(Span::from_millis(100)), cwnd_limited: true, ..path }
    }

    fn acknowledge(flow: &mut Windowed<LedbatPlusPlus, StandardSlowStart>, ms: u64) -> (f64, f64) {
        flow.on_ack(&path_at(ms), &Ack::new(1).with_rtt(Some(Span::from_millis(100))));
        (flow.control().cwnd, flow.control().ssthresh)
    }

    /// A flow in its initial slow start, with a window of 100 packets.
    fn starting() -> Windowed<LedbatPlusPlus, StandardSlowStart> {
        Windowed::new(rule("ledbat++"), StandardSlowStart, &init(1).with_initial_window(100.0))
    }

    /// RFC 5681, section 3.1: the window before the timeout counts, not that after it.
    #[test]
    fn a_timeout_in_the_initial_slow_start_halves_the_threshold() {
        let mut flow = starting();
        flow.on_congestion(&path_at(0), &CongestionEvent::timeout());
        assert_eq!((flow.control().cwnd, flow.control().ssthresh), (1.0, 50.0));
        assert_eq!(acknowledge(&mut flow, 100), (1.0, 50.0));
        assert_eq!(acknowledge(&mut flow, 150), (1.5, 50.0), "slow start with GAIN 1/2");
    }

    #[test]
    fn a_slowdown_below_the_threshold_restores_the_threshold() {
        let mut flow = starting();
        flow.on_congestion(&path_at(0), &CongestionEvent::timeout());
        acknowledge(&mut flow, 100);
        assert_eq!(acknowledge(&mut flow, 300), (2.0, 50.0), "the first slowdown");
        assert_eq!(flow.rule().state, slowdown(300, 50.0));
    }

    fn slowdown(ms: u64, window: f64) -> State {
        State::Slowdown { start: path_at(ms).now, end: path_at(ms + 200).now, window }
    }

    #[test]
    fn an_undo_restores_the_window_after_a_slowdown() {
        let mut flow = starting();
        flow.rule_mut().state = slowdown(0, 100.0);
        assert_eq!(acknowledge(&mut flow, 0), (2.0, 100.0));
        flow.on_congestion(&path_at(50), &CongestionEvent::loss());
        assert_eq!(acknowledge(&mut flow, 50), (2.0, 50.0));
        flow.on_spurious_loss(&path_at(100));
        assert_eq!(acknowledge(&mut flow, 100), (2.0, 100.0));
    }

    #[test]
    fn the_initial_slow_start_goes_on_after_an_undone_timeout() {
        let mut flow = starting();
        flow.on_congestion(&path_at(0), &CongestionEvent::timeout());
        acknowledge(&mut flow, 100);
        flow.on_spurious_loss(&path_at(100));
        assert_eq!(acknowledge(&mut flow, 500), (100.5, f64::INFINITY));
    }

    #[test]
    fn the_gain_is_1_16_on_short_paths_and_1_at_twice_the_target() {
        for (base_ms, divisor) in
            [(1.0, 16.0), (7.4, 16.0), (10.0, 12.0), (50.0, 3.0), (150.0, 1.0)]
        {
            assert_eq!(gain(0.06, base_ms / 1e3), 1.0 / divisor, "{base_ms} ms");
        }
    }

    /// After a route change the minimum of ten minutes ago no longer counts: `GAIN` is 1 at 120 ms
    /// with a target of 60 ms, not 1/16 as at 1 ms.
    #[test]
    fn slow_start_s_gain_follows_the_base_delay_of_ten_minutes() {
        let mut rule = rule("ledbat++");
        let mut path = Path::new(1448, dumbbell_units::Time::ZERO);
        (path.min_rtt, path.cwnd_limited) = (Some(Span::from_millis(1)), true);
        let mut growth = |seconds: u64, rtt_ms: u64| {
            path.now = dumbbell_units::Time::ZERO + Span::from_secs(seconds);
            let rtt = Some(Span::from_millis(rtt_ms));
            let ack = Ack { acked: 1, rtt, ..Ack::default() };
            rule.observe(&path, &ack);
            rule.set_window(100.0, f64::INFINITY, &path, &ack).expect("slow start").0 - 100.0
        };
        assert_close(growth(0, 1), 1.0 / 16.0);
        assert_close(growth(601, 120), 1.0);
    }

    #[test]
    fn above_the_target_the_window_shrinks_with_the_excess_by_at_most_half() {
        let per_round = |delay| rule("ledbat++").growth(100.0, 0.12, delay) * 100.0;
        assert_close(per_round(0.06), 1.0);
        assert_close(per_round(0.066), 1.0 - 10.0);
        assert_close(per_round(0.2), -50.0);
    }

    #[test]
    fn between_slowdowns_the_delay_rises_to_the_target_and_no_further() {
        for target in [60.0, 25.0] {
            let mut flow =
                ledbat(&format!("ledbat++(target={target} ms)"), Link::new(20.0, 100, 1e4));
            flow.run_ms(120_000);
            for stage in [2.0, 1.0] {
                let reached = |flow: &Flow| flow.inspect("stage") == stage;
                assert!(flow.run_until(Span::from_secs(60), reached));
            }
            // The bursts of slow start have left the queue.
            flow.run_ms(2_000);
            let mut delays = Vec::new();
            assert!(flow.run_until(Span::from_secs(60), |flow| {
                delays.push(flow.inspect("delay") * 1e3);
                flow.inspect("stage") == 2.0
            }));
            let most = delays.iter().copied().fold(0.0, f64::max);
            assert!(most < 1.05 * target, "{most} ms");
            // The bursts overshoot the shorter target; the way back is a packet a round trip.
            let last = &delays[delays.len() * 9 / 10..];
            assert!(last.iter().all(|delay| *delay > 0.9 * target), "{last:?}");
            assert_eq!(flow.dropped, 0);
        }
    }

    #[test]
    fn a_slowdown_is_2_packets_for_2_round_trips_and_a_tenth_of_the_time() {
        let mut flow = ledbat("ledbat++", Link::new(20.0, 100, 1e4));
        flow.run_ms(60_000);
        let slowed = |flow: &Flow| flow.inspect("stage") == 2.0;
        let mut instants = Vec::new();
        for _ in 0..4 {
            for slow in [true, false] {
                assert!(flow.run_until(Span::from_secs(60), |flow| slowed(flow) == slow));
                instants.push(flow.path.now.as_secs_f64());
            }
            assert_eq!(flow.algorithm.control().cwnd.floor(), 2.0);
        }
        let length = instants[5] - instants[4];
        assert!((0.2..0.6).contains(&length), "{length} s: two round trips of 100 to 160 ms");
        // The queue was empty: the base delay was seen.
        assert_close(flow.inspect("base"), 0.1 + 1448.0 * 8.0 / 20e6);
        let window = flow.algorithm.control().ssthresh;
        assert!(
            flow.run_until(Span::from_secs(60), |flow| { flow.algorithm.control().cwnd >= window })
        );
        let took = flow.path.now.as_secs_f64() - instants[6];
        assert!(flow.run_until(Span::from_secs(60), |flow| slowed(flow)));
        let until = flow.path.now.as_secs_f64() - instants[6] - took;
        assert!((until / took / 9.0 - 1.0).abs() < 0.05, "{took} s, then {until} s");
    }

    #[test]
    fn the_first_slowdown_is_two_round_trips_after_the_initial_slow_start() {
        let mut flow = ledbat("ledbat++", Link::new(20.0, 100, 1e4));
        let started = |flow: &Flow| flow.algorithm.control().ssthresh.is_finite();
        assert!(flow.run_until(Span::from_secs(30), started));
        let delay = flow.inspect("delay");
        assert!((0.045..0.06).contains(&delay), "three quarters of the target: {delay}");
        let ended = flow.path.now;
        assert!(flow.run_until(Span::from_secs(30), |flow| flow.inspect("stage") == 2.0));
        let wait = flow.path.now.since(ended).as_secs_f64();
        assert!((0.2..=0.34).contains(&wait), "{wait} s");
    }

    /// Another flow's standing queue above the target appears as a longer path.
    #[test]
    fn it_gives_way_to_a_queue_that_another_flow_fills() {
        let mut flow = ledbat("ledbat++", Link::new(20.0, 100, 1e4));
        flow.run_ms(60_000);
        flow.link.rtt = Span::from_millis(100 + 90);
        flow.run_ms(20_000);
        let before = flow.path.delivered;
        flow.run_ms(20_000);
        let share = (flow.path.delivered - before) as f64 * 0.1 / 20.0 / (flow.link.bdp() / 1.9);
        assert!(share < 0.05, "{share} of the link");
    }

    #[test]
    fn it_yields_to_reno_and_uses_the_link_when_reno_stops() {
        let link = Link::new(20.0, 50, 200.0);
        let mut flow = ledbat("ledbat++", link);
        let mut reno = TestPath::new(Windowed::new(Reno, AnySlowStart::STANDARD, &init(1)), link);
        reno.sending = false;
        let mut share = |reno_sends: bool, reno: &mut TestPath<Windowed<Reno, AnySlowStart>>| {
            reno.sending = reno_sends;
            flow.run_beside(reno, Span::from_secs(30));
            let before = flow.path.delivered;
            flow.run_beside(reno, Span::from_secs(60));
            (flow.path.delivered - before) as f64 * 0.05 / 60.0 / link.bdp()
        };
        let (alone, beside, again) =
            (share(false, &mut reno), share(true, &mut reno), share(false, &mut reno));
        assert!(alone > 0.9 && again > 0.9, "{alone}, {again} of the link alone");
        assert!(beside < 0.1, "{beside} of the link beside Reno");
    }
}
