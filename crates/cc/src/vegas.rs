//! Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global internet",
//! IEEE JSAC 13(8), 1995), as Linux's `tcp_vegas.c` implements it.
//!
//! Once a round trip, from its minimum round-trip time `RTT` and the minimum ever, `baseRTT`:
//!
//! ```text
//! diff = cwnd (RTT - baseRTT) / baseRTT           about the packets in the queue
//! slow start:  diff > gamma:  cwnd = min(cwnd, cwnd baseRTT / RTT + 1), and slow start is over
//! else:        diff < alpha:  cwnd += 1
//!              diff > beta:   cwnd -= 1
//! ```
//!
//! with `alpha` 2, `beta` 4 and `gamma` 1. A lone flow therefore keeps 2 to 4 packets in the queue.
//!
//! In slow start a round-trip time reflects the window of a round trip ago, half of the present one.
//! Slow start therefore ends well above the rate of the link, and the window then falls by a packet
//! a round trip. The minimum window is 2 packets. On loss it is halved. In recovery, unless a timeout has left
//! nothing in flight, and at the end of a round trip with fewer than three samples, the flow acts as Reno.
//! As in Linux the window is in whole packets, and a round-trip time in whole microseconds, and one more.
//!
//! | | paper | Linux | here |
//! |---|---|---|---|
//! | slow start | doubles every other round trip | every round trip | Linux |
//! | `alpha`, `beta`, `gamma` | 1, 3, 1 | 2, 4, 1 | Linux; options |
//! | `diff` | `cwnd (1 - baseRTT / RTT)` | over `baseRTT`, in whole packets | Linux |
//! | a window that does not limit sending | unspecified | grows | Linux |
//! | a packet that is sent with nothing in flight | unspecified | measures `baseRTT` anew | Linux |
//! | loss | three mechanisms that retransmit sooner | as any flow | Linux |

use crate::arithmetic::CongAvoidAi;
use crate::round::SequenceRound;
use crate::{Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::Span;

/// A round trip with at most this many samples is ignored: they may all be of delayed
/// acknowledgements.
const FEW_SAMPLES: u32 = 2;
/// Minimum window, packets.
const MIN_WINDOW: u64 = 2;
/// The round-trip time of a path that no sample has measured, µs.
const UNKNOWN: u64 = i32::MAX as u64;

/// Round-trip times as Linux's Vegas, Veno and YeAH take them: in whole µs, and one more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VegasRtts {
    /// Minimum ever (`baseRTT`).
    pub(crate) base: u64,
    /// Minimum since it was last taken (`minRTT`).
    pub(crate) min: u64,
    /// Samples (`cntRTT`).
    pub(crate) samples: u32,
    /// Whether Vegas and Veno use them (`doing_vegas_now`): from Open on until another state, and from a
    /// restart on, even in that state.
    pub(crate) is_enabled: bool,
    state: CaState,
}

impl VegasRtts {
    pub(crate) const NONE: VegasRtts = VegasRtts {
        base: UNKNOWN,
        min: UNKNOWN,
        samples: 0,
        is_enabled: true,
        state: CaState::Open,
    };

    /// Takes the acknowledgement's sample. Returns whether the state is Open again (`vegas_enable`), from
    /// when on the minimum is measured anew.
    pub(crate) fn observe(&mut self, path: &Path, ack: &Ack) -> bool {
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.as_micros() + 1;
            self.base = self.base.min(rtt);
            self.min = self.min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if core::mem::replace(&mut self.state, path.ca_state) == path.ca_state {
            return false;
        }
        self.is_enabled = path.ca_state == CaState::Open;
        if self.is_enabled {
            self.min = UNKNOWN;
        }
        self.is_enabled
    }

    /// A timeout (`tcp_vegas_state`).
    pub(crate) fn disable(&mut self) {
        (self.is_enabled, self.state) = (false, CaState::Loss);
    }

    /// The minimum, which is measured anew from now on.
    pub(crate) fn take_min(&mut self) -> u64 {
        core::mem::replace(&mut self.min, UNKNOWN)
    }

    /// After a pause the path may be another one (`tcp_vegas_init`).
    pub(crate) fn forget(&mut self) {
        (self.base, self.min, self.is_enabled) = (UNKNOWN, UNKNOWN, true);
    }

    /// The minimum ever, s.
    pub(crate) fn base_secs(&self) -> Option<f64> {
        (self.base < UNKNOWN).then_some(self.base as f64 / 1e6)
    }
}

/// Vegas' rule.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    round: SequenceRound,
    rtts: VegasRtts,
    /// Whether the flow acts as Reno on this acknowledgement: in recovery, or with too few samples.
    reno: bool,
    diff: u64,
    avoidance: CongAvoidAi,
}

impl Vegas {
    /// Takes the options `alpha`, `beta` and `gamma`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Vegas, ConfigError> {
        let mut packets = |key, default| options.number(key, default, 0.0..=1e6, "0 to 10^6");
        Ok(Vegas {
            alpha: packets("alpha", 2.0)?,
            beta: packets("beta", 4.0)?,
            gamma: packets("gamma", 1.0)?,
            round: SequenceRound::new(),
            rtts: VegasRtts::NONE,
            reno: false,
            diff: 0,
            avoidance: CongAvoidAi::default(),
        })
    }

    /// `vegas_enable`: the samples of a round begin now.
    fn enable(&mut self, path: &Path) {
        self.round.restart(path);
        self.rtts.samples = 0;
    }
}

impl WindowRule for Vegas {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        if self.reno { self.avoidance.grow((cwnd as u64).max(1), acked as u64) } else { 0.0 }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.avoidance = CongAvoidAi::default();
        (cwnd as u64 / 2) as f64
    }

    fn on_timeout(&mut self) {
        self.avoidance = CongAvoidAi::default();
        self.rtts.disable();
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        if self.rtts.observe(path, ack) {
            self.enable(path);
        }
        self.reno = !self.rtts.is_enabled;
    }

    /// `tcp_vegas_cong_avoid`.
    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        if self.reno || !self.round.advance(path) {
            return None;
        }
        let samples = core::mem::take(&mut self.rtts.samples);
        let (base, rtt) = (self.rtts.base, self.rtts.take_min());
        self.reno = samples <= FEW_SAMPLES;
        if self.reno {
            return None;
        }
        let in_slow_start = cwnd < ssthresh;
        let mut window = cwnd as u64;
        self.diff = window * (rtt - base) / base;
        let diff = self.diff as f64;
        let mut is_reduced = false;
        if in_slow_start {
            if diff <= self.gamma {
                return None;
            }
            window = window.min(window * base / rtt + 1);
            is_reduced = true;
        } else if diff > self.beta {
            window = window.saturating_sub(1);
            is_reduced = true;
        } else if diff < self.alpha {
            window += 1;
        }
        let ssthresh = if is_reduced { ssthresh.min(window as f64) } else { ssthresh };
        let window = window.max(MIN_WINDOW);
        // tcp_current_ssthresh
        Some((window as f64, ssthresh.max((window / 2 + window / 4) as f64)))
    }

    /// tcp_vegas_cong_avoid checks tcp_is_cwnd_limited only where it acts as Reno.
    fn grows_when_app_limited(&self) -> bool {
        !self.reno
    }

    fn on_restart(&mut self, path: &Path, _pause: Span) {
        self.rtts.forget();
        self.enable(path);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "diff", value: self.diff as f64 });
        if let Some(base) = self.rtts.base_secs() {
            show(Metric { name: "baseRTT", value: base });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Reno, Windowed};

    fn vegas(text: &str, link: Link) -> TestPath<Windowed<Vegas, AnySlowStart>> {
        let rule = Vegas::from_options(&mut text.parse().expect("well formed"));
        let rule = rule.expect("within range");
        TestPath::new(Windowed::new(rule, AnySlowStart::STANDARD, &init(1)), link)
    }

    #[test]
    fn two_to_four_packets_wait_in_the_queue_and_none_is_lost() {
        for (mbit, rtt) in [(10.0, 20), (10.0, 100), (100.0, 40)] {
            let mut flow = vegas("vegas", Link::new(mbit, rtt, 3000.0));
            flow.run_ms(150_000);
            flow.run(Span::from_secs(10), |flow| {
                let waiting = flow.algorithm.control().cwnd - flow.link.bdp();
                // 4 whole packets are fewer than 5; the window is a packet more than is in flight.
                assert!((1.0..=6.1).contains(&waiting), "{mbit} Mbit/s, {rtt} ms: {waiting}");
            });
            let diff = flow.inspect("diff");
            assert!((1.9..=4.1).contains(&diff), "{mbit} Mbit/s, {rtt} ms: {diff}");
            assert_eq!(flow.dropped, 0);
        }
    }

    #[test]
    fn more_packets_wait_if_alpha_and_beta_say_so() {
        let mut flow = vegas("vegas(alpha=20, beta=22)", Link::new(10.0, 50, 1000.0));
        flow.run_ms(60_000);
        let diff = flow.inspect("diff");
        assert!((19.0..=23.0).contains(&diff), "{diff}");
    }

    #[test]
    fn slow_start_ends_above_gamma_with_the_window_of_the_actual_rate() {
        let mut flow = vegas("vegas", Link::new(100.0, 40, 10_000.0));
        let mut before = 0.0;
        assert!(flow.run_until(Span::from_secs(5), |flow| {
            let control = flow.algorithm.control();
            let over = control.ssthresh.is_finite();
            before = if over { before } else { control.cwnd };
            over
        }));
        let control = flow.algorithm.control();
        assert_eq!(control.cwnd, control.ssthresh);
        // diff = cwnd (RTT / baseRTT - 1), and the new window is cwnd baseRTT / RTT + 1.
        // `diff` and the window are rounded down, each by less than a packet.
        let ratio = |diff: f64| diff / before + 1.0;
        let diff = flow.inspect("diff");
        assert!(diff > 1.0);
        let window = before / ratio(diff) + 1.0;
        assert!((window - 2.0..=window).contains(&control.cwnd), "{} of {window}", control.cwnd);
    }

    /// tcp_vegas_cong_avoid: `diff` is 321 * 240 / 40241 and 321 * 260 / 40241, rounded down.
    #[test]
    fn slow_start_ends_at_two_whole_packets_in_the_queue() {
        for (rtt, ends) in [(40_480, false), (40_500, true)] {
            let rule = Vegas::from_options(&mut "vegas".parse().expect("well formed"));
            let mut rule = rule.expect("within range");
            let mut path = Path::new(1448, dumbbell_units::Time::ZERO);
            let mut acknowledge = |rule: &mut Vegas, us: u64, una: u64| {
                (path.una, path.next_seq) = (una, 400);
                let ack = Ack::new(1).with_rtt(Some(Span::from_micros(us)));
                rule.observe(&path, &ack);
                rule.set_window(321.0, f64::INFINITY, &path, &ack)
            };
            assert_eq!(acknowledge(&mut rule, 40_240, 1), None);
            assert_eq!([2, 3].map(|una| acknowledge(&mut rule, rtt, una)), [None; 2]);
            assert_eq!(acknowledge(&mut rule, rtt, 401).is_some(), ends, "{rtt} us");
        }
    }

    #[test]
    fn loss_halves_the_window_and_vegas_goes_on_after_recovery() {
        let mut flow = vegas("vegas", Link::new(10.0, 50, 1000.0));
        flow.run_ms(30_000);
        let before = flow.algorithm.control().cwnd;
        flow.link.loses = |seq| seq == 26_000;
        flow.run_until(Span::from_secs(10), |flow| flow.dropped > 0);
        flow.run_until(Span::from_secs(1), |flow| flow.path.ca_state == CaState::Recovery);
        assert!((flow.algorithm.control().cwnd - before / 2.0).abs() <= 1.0);
        flow.run_ms(30_000);
        let diff = flow.inspect("diff");
        assert!((1.9..=4.1).contains(&diff), "{diff}");
    }

    /// tcp_event_data_sent: CA_EVENT_TX_START is tcp_vegas_init, which follows tcp_vegas_state(Loss).
    #[test]
    fn after_a_timeout_with_nothing_in_flight_it_is_vegas_again() {
        let rule = Vegas::from_options(&mut "vegas".parse().expect("well formed"));
        let mut rule = rule.expect("within range");
        let path = Path::new(1448, dumbbell_units::Time::ZERO);
        let path = Path { ca_state: CaState::Loss, next_seq: 10, ..path };
        let mut is_vegas = |restarts| {
            rule.on_timeout();
            if restarts {
                rule.on_restart(&path, Span::ZERO);
            }
            rule.observe(&path, &Ack::new(1));
            !rule.reno
        };
        assert_eq!([false, true, false].map(&mut is_vegas), [false, true, false]);
    }

    #[test]
    fn it_yields_to_reno_which_fills_the_queue() {
        let link = Link::new(20.0, 50, 86.0);
        let mut flow = vegas("vegas", link);
        let mut reno = TestPath::new(Windowed::new(Reno, AnySlowStart::STANDARD, &init(1)), link);
        flow.run_beside(&mut reno, Span::from_secs(30));
        let before = (flow.path.delivered, reno.path.delivered);
        flow.run_beside(&mut reno, Span::from_secs(60));
        let (vegas, reno) =
            ((flow.path.delivered - before.0) as f64, (reno.path.delivered - before.1) as f64);
        assert!(vegas < reno / 2.0, "{vegas} to {reno}");
    }
}
