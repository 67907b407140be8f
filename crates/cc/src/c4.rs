//! C4, Christian's Congestion Control Code (Huitema, Nandakumar and Jennings): the editors' copy of the
//! specification after draft-huitema-ccwg-c4-spec-04 of July 2026. Sections are named, not numbered.
//!
//! A flow has a *nominal rate*, the maximum delivery rate seen, and a *nominal max RTT*, the maximum
//! round-trip time without C4's own queue, jitter included. Time is divided into *eras* of a round trip.
//! Rate and window follow from a coefficient `alpha` of the state ("Setting pacing rate, congestion window
//! and quantum"):
//!
//! ```text
//! pacing_rate = alpha nominal_rate
//! margin      = min(nominal_max_rtt / 4, 15 ms)                        0 in Initial
//! cwnd        = max(pacing_rate (nominal_max_rtt + margin), 2 MTU)
//! quantum     = max(min(4 ms pacing_rate, 64 KB), 2 MTU)
//! ```
//!
//! | state | alpha | ends |
//! |---|---|---|
//! | Initial | 2 | after 3 eras without more rate |
//! | Recovery | 15/16, or 7/8 to drain a queue | after an era |
//! | Cruising | 1 | after 2 eras |
//! | Probing | 17/16, or 33/32 if there were CE marks | after an era, with Recovery |
//! | Pushing | 5/4 | when an era brings less than 19/16 of the rate; after 3, with Initial |
//!
//! Recovery after a probe that raised the rate without congestion leads to Pushing.
//!
//! Congestion is too much delay, too many losses or too many marks. The thresholds depend on the
//! *sensitivity*, which grows with the nominal rate, so that large flows yield to small ones:
//!
//! ```text
//! delay:  rtt > nominal_max_rtt + delay_threshold       beta = min(1/4, excess / delay_threshold)
//!         delay_threshold = min(25 ms, (1/16 + 3/16 (1 - sensitivity)) nominal_max_rtt)
//! losses: smoothed_loss_rate > 0.02 + 0.5 (1 - sensitivity)                       beta = 1/4
//! marks:  ecn_alpha > ecn_threshold                     beta = min(1/4, excess / ecn_threshold)
//!         ecn_threshold = 3/32 (2 - sensitivity)
//! ```
//!
//! In Cruising, congestion multiplies the nominal rate by `1 - beta`. In Probing and Pushing it only
//! begins Recovery.
//!
//! | | specification | picoquic's `c4.c`, July 2026 | here |
//! |---|---|---|---|
//! | delivery rate | since the packet was sent, over the longer of two times | its own estimate | draft-cheng-iccrg-delivery-rate-estimation |
//! | more rate in Initial | any | 5/4 of that of the era before | 5/4 |
//! | delay in Cruising | reduces the rate | ends Probing, reduces nothing | reduces the rate |
//! | losses also lower the max RTT | "in some condition" | always in Cruising | always in Cruising |
//! | smoothed loss rate after Recovery | unspecified | 0 | 0 |
//! | `ecn_alpha` | at each acknowledgement | at each one with marks, and each era | as picoquic |
//! | Initial again after jitter | once (versions to 01) or always | once, below 1 MB/s | once |
//! | draining | after Initial, Pushing or a shorter RTT | after congestion in Recovery | after Initial and Pushing |
//! | timeout | no reaction | none | none |
//! | persistent congestion (RFC 9002) | unspecified | none | Initial, from 2 packets |
//!
//! On 20 Mbit/s, 40 ms and a queue of 1 BDP, C4 has 52 % beside CUBIC; 66 % on 100 Mbit/s, 20 ms, and 93 % on
//! 5 Mbit/s, 100 ms. A loss enters its rate with 1/16: above 8 Mbit/s, one is congestion. A queue of 5 BDP
//! that Initial has filled drains slowly: a BDP and more is left after 20 s.
//!
//! The state "resuming", for a rate remembered from an earlier connection, is not here.

use crate::{
    Ack, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Metric, Path,
};
use dumbbell_units::{Rate, Span, Time};

/// Coefficients of the states.
const ALPHA_INITIAL: f64 = 2.0;
const ALPHA_RECOVERY: f64 = 15.0 / 16.0;
const ALPHA_DRAINING: f64 = 7.0 / 8.0;
const ALPHA_CRUISING: f64 = 1.0;
const ALPHA_PROBING: f64 = 17.0 / 16.0;
const ALPHA_PROBING_MARKED: f64 = 33.0 / 32.0;
const ALPHA_PUSHING: f64 = 5.0 / 4.0;
/// The rate of an era of Pushing that "increased sufficiently".
const SUFFICIENT: f64 = 19.0 / 16.0;
/// The same in Initial.
const INITIAL_INCREASE: f64 = 5.0 / 4.0;
/// `MAX_JITTER`.
const MAX_JITTER: Span = Span::from_millis(250);
/// The margin of the round-trip time in the window, at most.
const MAX_MARGIN: Span = Span::from_millis(15);
/// The delay threshold, at most.
const MAX_DELAY_THRESHOLD: Span = Span::from_millis(25);
/// "Nominal max RTT on low latency links": its minimum.
const MIN_MAX_RTT: Span = Span::from_millis(1);
/// The smallest pacing rate in Initial, bytes/s.
const MIN_INITIAL_RATE: f64 = 131_072.0;
/// Packets received before losses end Initial.
const PACKETS_BEFORE_LOSS: u64 = 20;
/// `beta`, at most.
const MAX_BETA: f64 = 0.25;
/// Smallest window, packets.
const MIN_WINDOW: f64 = 2.0;
const QUANTUM_TIME: Span = Span::from_millis(4);
const MAX_QUANTUM: f64 = 65_536.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initial,
    Recovery,
    Cruising,
    Probing,
    Pushing,
}

/// A round trip: it ends when a packet sent in it is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Era {
    began: Time,
    max_rtt: Span,
    /// `None` without a sample.
    min_rtt: Option<Span>,
    /// The nominal rate when it began, bytes/s.
    nominal_rate: f64,
    app_limited: bool,
}

impl Era {
    const fn new(began: Time, nominal_rate: f64) -> Era {
        Era { began, max_rtt: Span::ZERO, min_rtt: None, nominal_rate, app_limited: false }
    }
}

/// A congestion signal and the reduction that it asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CongestionSignal {
    Delay(f64),
    Loss,
    Marks(f64),
}

/// C4.
#[derive(Clone, Debug)]
pub struct C4 {
    state: State,
    /// Bytes/s; 0 before the first measurement.
    nominal_rate: f64,
    /// Zero before the first measurement.
    nominal_max_rtt: Span,
    running_min_rtt: Span,
    alpha_current: f64,
    alpha_previous: f64,
    era: Era,
    /// Eras in this state that are over.
    eras: u32,
    /// Window of Initial, bytes.
    initial_cwnd: f64,
    nb_eras_no_increase: u32,
    /// The nominal rate when the last Recovery ended, bytes/s.
    rate_before: f64,
    /// Whether a packet of the last probe was limited by the application.
    probe_limited: bool,
    /// Whether Recovery follows Probing.
    has_probed: bool,
    /// Whether congestion began this Recovery or came in it.
    is_congested: bool,
    recent_congestions: u32,
    /// The maximum rate since the last Recovery ended, bytes/s.
    recent_maximum_rate: f64,
    smoothed_loss_rate: f64,
    ecn_alpha: f64,
    /// Packets delivered and marked at the last update of `ecn_alpha`.
    ecn_counts: (u64, u64),
    /// Whether jitter has led back to Initial.
    restarted: bool,
    mss: u32,
}

/// "Variable Sensitivity", of a rate in bytes/s.
fn sensitivity(rate: f64) -> f64 {
    match rate {
        rate if rate < 5e4 => 0.0,
        rate if rate < 1e6 => 0.92 * (rate - 5e4) / 9.5e5,
        rate => (0.92 + 0.08 * (rate - 1e6) / 9e6).min(1.0),
    }
}

impl C4 {
    /// C4 at the start of a connection.
    pub fn new(init: &ConnectionConfig) -> C4 {
        C4 {
            state: State::Initial,
            nominal_rate: 0.0,
            nominal_max_rtt: Span::ZERO,
            running_min_rtt: Span::ZERO,
            alpha_current: ALPHA_INITIAL,
            alpha_previous: ALPHA_INITIAL,
            era: Era::new(init.now, 0.0),
            eras: 0,
            initial_cwnd: init.initial_window * f64::from(init.mss),
            nb_eras_no_increase: 0,
            rate_before: 0.0,
            probe_limited: false,
            has_probed: false,
            is_congested: false,
            recent_congestions: 0,
            recent_maximum_rate: 0.0,
            smoothed_loss_rate: 0.0,
            ecn_alpha: 0.0,
            ecn_counts: (0, 0),
            restarted: false,
            mss: init.mss,
        }
    }

    fn delay_threshold(&self) -> Span {
        let fraction = 1.0 / 16.0 + (1.0 - sensitivity(self.nominal_rate)) * 3.0 / 16.0;
        self.nominal_max_rtt.mul_f64(fraction).min(MAX_DELAY_THRESHOLD)
    }

    fn loss_threshold(&self) -> f64 {
        0.02 + 0.5 * (1.0 - sensitivity(self.nominal_rate))
    }

    fn ecn_threshold(&self) -> f64 {
        (2.0 - sensitivity(self.nominal_rate)) * 3.0 / 32.0
    }

    /// Pacing rate, bytes/s.
    fn pacing_rate(&self) -> f64 {
        let rate = self.alpha_current * self.nominal_rate;
        if self.state == State::Initial { rate.max(MIN_INITIAL_RATE) } else { rate }
    }

    /// Window, bytes.
    fn cwnd(&self) -> f64 {
        let rate = self.alpha_current * self.nominal_rate;
        let window = if self.state == State::Initial {
            (rate * self.nominal_max_rtt.as_secs_f64()).max(self.initial_cwnd)
        } else {
            let margin = (self.nominal_max_rtt / 4).min(MAX_MARGIN);
            rate * (self.nominal_max_rtt + margin).as_secs_f64()
        };
        window.max(MIN_WINDOW * f64::from(self.mss))
    }

    fn begin_era(&mut self, now: Time) {
        self.alpha_previous = self.alpha_current;
        self.era = Era::new(now, self.nominal_rate);
    }

    fn enter(&mut self, state: State, alpha: f64, now: Time) {
        self.begin_era(now);
        (self.state, self.alpha_current, self.eras) = (state, alpha, 0);
    }

    fn enter_initial(&mut self, cwnd: f64, now: Time) {
        self.enter(State::Initial, ALPHA_INITIAL, now);
        self.initial_cwnd = cwnd;
        self.nb_eras_no_increase = 0;
        self.is_congested = false;
    }

    fn enter_recovery(&mut self, path: &Path, congestion: bool) {
        let in_flight = f64::from(path.in_flight) * f64::from(path.mss);
        let bdp = self.nominal_rate * self.running_min_rtt.as_secs_f64();
        let drains = matches!(self.state, State::Initial | State::Pushing) && in_flight > bdp;
        if self.state == State::Probing {
            self.probe_limited = self.era.app_limited;
        }
        self.has_probed = self.state == State::Probing;
        self.is_congested = congestion;
        let alpha = if drains { ALPHA_DRAINING } else { ALPHA_RECOVERY };
        self.enter(State::Recovery, alpha, path.now);
    }

    fn exit_initial(&mut self, path: &Path) {
        if self.nominal_rate > 0.0 {
            self.nominal_max_rtt =
                Span::from_secs_f64(self.cwnd() / 2.0 / self.nominal_rate).max(MIN_MAX_RTT);
            self.rate_before = self.nominal_rate;
            self.enter_recovery(path, false);
        }
    }

    fn exit_recovery(&mut self, path: &Path) {
        let has_grown = self.nominal_rate > self.rate_before && !self.is_congested;
        let recent = self.recent_maximum_rate;
        if self.is_congested {
            self.recent_congestions += 1;
            // "Reaction to persistent congestion"
            if self.recent_congestions > 1 && recent > 0.0 {
                self.nominal_rate = self.nominal_rate.min(recent);
            }
        } else {
            self.recent_congestions = 0;
            // "Trimming an overestimated nominal rate"
            if self.has_probed && !has_grown && !self.probe_limited && recent > 0.0 {
                self.nominal_rate = self.nominal_rate.min((self.nominal_rate + recent) / 2.0);
            }
        }
        let is_pushing = self.has_probed && has_grown;
        self.rate_before = self.nominal_rate;
        (self.recent_maximum_rate, self.smoothed_loss_rate, self.ecn_alpha) = (0.0, 0.0, 0.0);
        self.has_probed = false;
        self.is_congested = false;
        // "Restarting Initial if High Jitter"
        if !self.restarted && self.running_min_rtt * 5 < self.nominal_max_rtt * 2 {
            self.restarted = true;
            let cwnd = self.nominal_rate * self.nominal_max_rtt.as_secs_f64();
            self.enter_initial(cwnd, path.now);
        } else if is_pushing {
            self.enter(State::Pushing, ALPHA_PUSHING, path.now);
        } else {
            self.enter(State::Cruising, ALPHA_CRUISING, path.now);
        }
    }

    /// "Nominal max RTT", at the end of an era.
    fn update_max_rtt(&mut self) {
        let (Some(min_rtt), true) = (self.era.min_rtt, self.alpha_previous <= 1.0) else { return };
        self.running_min_rtt = match self.running_min_rtt {
            running if min_rtt < running => min_rtt,
            running => (running * 7 + min_rtt) / 8,
        };
        let max_rtt = self.era.max_rtt.min(self.running_min_rtt + MAX_JITTER);
        self.nominal_max_rtt = match self.nominal_max_rtt {
            nominal if max_rtt > nominal => max_rtt,
            nominal => ((nominal * 7 + max_rtt) / 8).max(MIN_MAX_RTT),
        };
    }

    fn end_era(&mut self, path: &Path) {
        self.eras += 1;
        self.update_ecn_alpha(path);
        if self.state != State::Initial {
            self.update_max_rtt();
        }
        match self.state {
            State::Initial => {
                if self.nominal_rate >= self.era.nominal_rate * INITIAL_INCREASE {
                    self.nb_eras_no_increase = 0;
                } else if !self.era.app_limited {
                    self.nb_eras_no_increase += 1;
                }
                if self.nb_eras_no_increase >= 3 {
                    return self.exit_initial(path);
                }
            }
            State::Recovery => return self.exit_recovery(path),
            State::Cruising if self.eras >= 2 && !self.era.app_limited => {
                let alpha = if path.marked > 0 { ALPHA_PROBING_MARKED } else { ALPHA_PROBING };
                return self.enter(State::Probing, alpha, path.now);
            }
            State::Probing => return self.enter_recovery(path, false),
            State::Pushing if self.eras > 1 => {
                if self.nominal_rate < SUFFICIENT * self.era.nominal_rate {
                    return self.enter_recovery(path, false);
                } else if self.eras >= 3 {
                    let cwnd = self.nominal_rate * self.nominal_max_rtt.as_secs_f64();
                    return self.enter_initial(cwnd, path.now);
                }
            }
            State::Cruising | State::Pushing => {}
        }
        self.begin_era(path.now);
    }

    fn update_rtt(&mut self, rtt: Span) {
        self.era.max_rtt = self.era.max_rtt.max(rtt);
        self.era.min_rtt = Some(self.era.min_rtt.map_or(rtt, |min| min.min(rtt)));
        if self.nominal_max_rtt.is_zero() {
            self.nominal_max_rtt = rtt.max(MIN_MAX_RTT);
            self.running_min_rtt = rtt;
        }
        self.running_min_rtt = self.running_min_rtt.min(rtt);
    }

    /// "Nominal rate".
    fn update_rate(&mut self, rate: f64) {
        self.recent_maximum_rate = self.recent_maximum_rate.max(rate);
        if !(self.state == State::Recovery && self.is_congested) {
            self.nominal_rate = self.nominal_rate.max(rate);
        }
    }

    fn update_loss_rate(&mut self, ack: &Ack) {
        for _ in 0..ack.lost {
            self.smoothed_loss_rate = (1.0 + 15.0 * self.smoothed_loss_rate) / 16.0;
        }
        self.smoothed_loss_rate *= libm::pow(15.0 / 16.0, f64::from(ack.delivered));
    }

    fn update_ecn_alpha(&mut self, path: &Path) {
        let (delivered, marked) = self.ecn_counts;
        self.ecn_counts = (path.delivered, path.marked);
        let (delivered, marked) = (path.delivered - delivered, path.marked - marked);
        if delivered > 0 {
            let frac = marked as f64 / delivered as f64;
            self.ecn_alpha =
                if frac >= 0.5 { frac } else { self.ecn_alpha + (frac - self.ecn_alpha) / 16.0 };
        }
    }

    /// "Handling of congestion signals": the strongest one of this acknowledgement.
    fn congestion(&mut self, path: &Path, ack: &Ack) -> Option<CongestionSignal> {
        if ack.marked > 0 {
            self.update_ecn_alpha(path);
        }
        if ack.lost > 0 && self.smoothed_loss_rate > self.loss_threshold() {
            return Some(CongestionSignal::Loss);
        }
        let ecn_threshold = self.ecn_threshold();
        if ack.marked > 0 && self.ecn_alpha > ecn_threshold {
            let beta = (self.ecn_alpha - ecn_threshold) / ecn_threshold;
            return Some(CongestionSignal::Marks(beta.min(MAX_BETA)));
        }
        let threshold = self.delay_threshold();
        let excess = ack.rtt?.saturating_sub(self.nominal_max_rtt + threshold);
        let beta = excess.as_secs_f64() / threshold.as_secs_f64();
        (!excess.is_zero()).then_some(CongestionSignal::Delay(beta.min(MAX_BETA)))
    }

    /// "Applying congestion signals".
    fn react(&mut self, path: &Path, congestion: CongestionSignal) {
        match self.state {
            State::Initial => {
                let exits = match congestion {
                    CongestionSignal::Loss => path.delivered > PACKETS_BEFORE_LOSS,
                    CongestionSignal::Delay(_) | CongestionSignal::Marks(_) => {
                        self.nb_eras_no_increase >= 2
                    }
                };
                if exits {
                    self.exit_initial(path);
                }
            }
            State::Recovery => self.is_congested = true,
            State::Cruising => {
                let beta = match congestion {
                    CongestionSignal::Delay(beta) | CongestionSignal::Marks(beta) => beta,
                    CongestionSignal::Loss => {
                        let max_rtt = self.nominal_max_rtt.mul_f64(1.0 - MAX_BETA);
                        self.nominal_max_rtt = max_rtt.max(MIN_MAX_RTT);
                        MAX_BETA
                    }
                };
                self.nominal_rate *= 1.0 - beta;
                self.enter_recovery(path, true);
            }
            State::Probing | State::Pushing => self.enter_recovery(path, true),
        }
    }
}

impl CongestionControl for C4 {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.update_rtt(rtt);
        }
        if let Some(sample) = ack.rate {
            self.era.app_limited |= sample.send_state.app_limited;
            self.update_rate(sample.rate.bytes_per_sec());
        }
        if self.state == State::Initial {
            let acknowledged = f64::from(ack.delivered) * f64::from(path.mss);
            self.initial_cwnd += acknowledged / f64::from(1 << (3 * self.nb_eras_no_increase));
        }
        self.update_loss_rate(ack);
        if !self.nominal_max_rtt.is_zero()
            && let Some(congestion) = self.congestion(path, ack)
        {
            self.react(path, congestion);
        }
        if ack.rate.is_some_and(|sample| sample.send_state.sent_at >= self.era.began) {
            self.end_era(path);
        }
    }

    /// Losses are counted in acknowledgements; a timeout is no signal ("Do not react to Probe Time
    /// Out").
    fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {}

    #[inline]
    fn control(&self) -> ControlParameters {
        let mss = f64::from(self.mss);
        let ssthresh = if self.state == State::Initial { f64::INFINITY } else { MIN_WINDOW };
        let control = ControlParameters::new(self.cwnd() / mss).with_ssthresh(ssthresh);
        if self.nominal_rate == 0.0 {
            return control;
        }
        let rate = Rate::from_bytes_per_sec(self.pacing_rate());
        let quantum = rate.bytes_in(QUANTUM_TIME).min(MAX_QUANTUM) / mss;
        control.with_pacing_rate(Some(rate)).with_max_send_quantum(Some((quantum as u32).max(2)))
    }

    /// RFC 9002, section 7.6.2.
    fn on_persistent_congestion(&mut self, path: &Path) {
        (self.nominal_rate, self.recent_maximum_rate) = (0.0, 0.0);
        self.enter_initial(MIN_WINDOW * f64::from(path.mss), path.now);
    }

    fn on_mtu_update(&mut self, path: &Path, _previous_mss: u32) {
        self.mss = path.mss;
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        value("state", f64::from(self.state as u8));
        value("nominal_rate", self.nominal_rate);
        value("nominal_max_rtt", self.nominal_max_rtt.as_secs_f64());
        value("sensitivity", sensitivity(self.nominal_rate));
        value("alpha_current", self.alpha_current);
    }
}

#[cfg(test)]
mod tests;
