//! BBRv3 (draft-ietf-ccwg-bbr-06) and, by the numbers of their [`Version`], BBRv2 and F-BBRv2.
//!
//! The draft's functions, in the order of its pseudocode. State variables have the draft's names, too.
//!
//! | draft-06 | here |
//! |---|---|
//! | OnInit | `BbrV3::new`, `on_established` |
//! | OnTransmit, HandleRestartFromIdle | `on_sent` |
//! | UpdateOnACK | `on_ack` |
//! | UpdateModelAndState | `update_model_and_state` |
//! | UpdateLatestDeliverySignals | `update_latest_delivery_signals` |
//! | UpdateCongestionSignals, UpdateMaxBw | `update_congestion_signals`, `update_max_bw` |
//! | UpdateRound | `update_round`, `Rounds` |
//! | AdaptLowerBoundsFromCongestion, InitLowerBounds, LossLowerBounds | the same in `v3/loss` |
//! | UpdateACKAggregation | `AckAggregation::update_ack_aggregation` |
//! | CheckFullBWReached, ResetFullBW | `check_full_bw_reached`, `FullPipe` |
//! | CheckStartupDone, CheckStartupHighLoss | the same in `v3/probe_bw` |
//! | EnterDrain, CheckDrainDone | the same in `v3/probe_bw` |
//! | UpdateProbeBWCyclePhase and what it calls | the same in `v3/probe_bw` |
//! | AdaptLongTermModel, ProbeInflightLongtermUpward | the same in `v3/probe_bw` |
//! | UpdateMinRTT | `MinRtt::update_min_rtt` |
//! | CheckProbeRTT, HandleProbeRTT, ExitProbeRTT | `check_probe_rtt`, `MinRtt::handle_probe_rtt`, `exit_probe_rtt` |
//! | AdvanceLatestDeliverySignals | `advance_latest_delivery_signals` |
//! | BoundBWForModel | `bw`, computed where it is used |
//! | UpdateControlParameters | `update_control_parameters` |
//! | SetPacingRate | `Pacing::set_pacing_rate_with_gain` |
//! | SetSendQuantum, UpdateOffloadBudget | `Pacing::send_quantum` |
//! | BDPMultiple, QuantizationBudget, Inflight | `bdp_multiple`, `quantization_budget`, `inflight` |
//! | SetCwnd, BoundCwndForModel | `set_cwnd`, `bound_cwnd_for_model` |
//! | HandleLostPacket, NoteLoss, InflightAtLoss | the same in `v3/loss` |
//! | HandleInflightTooHigh | the same in `v3/loss` |
//! | SaveStateUponLoss, OnEnterRTO | the same in `v3/loss` |
//! | HandleSpuriousLossDetection | the same in `v3/loss` |

mod loss;
mod probe_bw;

use super::ack_aggregation::AckAggregation;
use super::cubic_detector::CubicDetector;
use super::ecn::Ecn;
use super::min_rtt::MinRtt;
use super::model::{FullPipe, MaxBwFilter, Window, bdp_multiple, in_loss_recovery};
use super::pacing::Pacing;
use super::version::{EXTRA_ACKED_WIN_RTTS, MIN_PIPE_CWND, ProbeUpExit, Version};
use crate::filters::Rounds;
use crate::{
    Ack, CaState, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Metric, Options, Path, RateSample, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

/// The states of BBRv2 and BBRv3. `inspect` shows their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubles the rate every round until the pipe is full.
    Startup = 0,
    /// Empties the queue that Startup built.
    Drain = 1,
    /// Sends little, to see the round-trip time of an empty queue.
    ProbeRtt = 3,
    /// Probes for more bandwidth.
    ProbeBwUp = 4,
    /// Empties the queue that probing built, and yields.
    ProbeBwDown = 5,
    /// Sends as fast as the path delivers, with headroom for others.
    ProbeBwCruise = 6,
    /// Fills the pipe for a round before probing.
    ProbeBwRefill = 7,
}

impl State {
    /// IsInAProbeBWState.
    #[inline]
    fn is_probe_bw(self) -> bool {
        !matches!(self, State::Startup | State::Drain | State::ProbeRtt)
    }
}

/// What acknowledgements show of the last probe for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    /// Nothing.
    Init,
    /// The pipe is being filled.
    Refilling,
    /// The probe began; its packets are not yet acknowledged.
    ProbeStarting,
    /// Packets of the probe are acknowledged.
    ProbeFeedback,
    /// The probe is over; its last packets are being acknowledged.
    ProbeStopping,
}

/// Infinite bandwidth: no bound.
const UNBOUNDED: Rate = Rate::from_bytes_per_sec(f64::INFINITY);

/// BBRv3 or, by its [`Version`], BBRv2 or F-BBRv2.
#[derive(Clone, Debug)]
pub struct BbrV3 {
    version: Version,
    random: SplitMix64,
    init_cwnd: f64,

    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    round: Rounds,
    full_pipe: FullPipe,
    drain_start_round: u64,
    idle_restart: bool,

    max_bw_filter: MaxBwFilter,
    min_rtt: MinRtt,
    ack_aggregation: AckAggregation,
    extra_acked: f64,
    /// Infinite where not set, as the two bounds below.
    bw_shortterm: Rate,
    inflight_shortterm: f64,
    inflight_longterm: f64,

    /// Maximum delivery rate of the last round.
    bw_latest: Rate,
    /// Maximum number of packets delivered between sending and acknowledging one, in the last round.
    inflight_latest: f64,
    /// A round for the response to losses begins with the first loss, so that a whole round is
    /// measured before the model is lowered.
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Acknowledgements of this round that reported losses (Linux).
    loss_events_in_round: u32,
    /// Packets were lost since probing ended (Linux).
    loss_in_cycle: bool,
    ecn: Ecn,
    ecn_in_round: bool,
    /// Packets were marked in the previous round.
    ecn_in_prev_round: bool,
    /// Packets were marked since probing ended (Linux).
    ecn_in_cycle: bool,

    ack_phase: AckPhase,
    cycle_stamp: Time,
    bw_probe_wait: Span,
    rounds_since_probe_up: u64,
    /// Whether what is acknowledged was sent by a probe that has not yet been found to go too high.
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,

    /// The state that a loss ended.
    undo_state: Option<State>,
    undo_bw_shortterm: Rate,
    undo_inflight_shortterm: f64,
    undo_inflight_longterm: f64,
    /// The transport's state at the last acknowledgement or timeout (Linux).
    prev_ca_state: CaState,

    cubic_detector: Option<CubicDetector>,
    window: Window,
    pacing: Pacing,
    ssthresh: f64,
}

impl BbrV3 {
    /// A version at the beginning of a connection.
    pub fn new(version: Version, config: &ConnectionConfig) -> BbrV3 {
        let init_cwnd = config.initial_window;
        let startup_gain = version.startup_pacing_gain;
        BbrV3 {
            version,
            random: SplitMix64::seed_from_u64(config.seed),
            init_cwnd,
            state: State::Startup,
            pacing_gain: startup_gain,
            cwnd_gain: version.startup_cwnd_gain,
            round: Rounds::default(),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            idle_restart: false,
            max_bw_filter: MaxBwFilter::default(),
            min_rtt: MinRtt::new(version.probe_rtt_interval, config.now),
            ack_aggregation: AckAggregation::new(config.now),
            extra_acked: 0.0,
            bw_shortterm: UNBOUNDED,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            bw_latest: Rate::ZERO,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_events_in_round: 0,
            loss_in_cycle: false,
            ecn: Ecn::new(version.ecn),
            ecn_in_round: false,
            ecn_in_prev_round: false,
            ecn_in_cycle: false,
            ack_phase: AckPhase::Init,
            cycle_stamp: config.now,
            bw_probe_wait: Span::ZERO,
            rounds_since_probe_up: 0,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            undo_state: None,
            undo_bw_shortterm: Rate::ZERO,
            undo_inflight_shortterm: 0.0,
            undo_inflight_longterm: 0.0,
            prev_ca_state: CaState::Open,
            cubic_detector: version.cubic_response.map(CubicDetector::new),
            window: Window::new(init_cwnd),
            pacing: Pacing::new(init_cwnd, f64::from(config.mss), startup_gain, config.now),
            ssthresh: f64::INFINITY,
        }
    }

    /// A version with the options of [`Version::with_options`].
    ///
    /// # Errors
    /// If an option's value is not one it can have.
    pub fn from_options(
        version: Version,
        options: &mut Options,
        config: &ConnectionConfig,
    ) -> Result<BbrV3, ConfigError> {
        Ok(BbrV3::new(version.with_options(options)?, config))
    }

    #[inline]
    fn max_bw(&self) -> Rate {
        self.max_bw_filter.max_bw()
    }

    /// The bandwidth to send at.
    #[inline]
    fn bw(&self) -> Rate {
        self.max_bw().min(self.bw_shortterm)
    }

    /// IsProbingBW.
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }

    fn is_app_limited(&self, rate: &RateSample) -> bool {
        self.min_rtt.is_app_limited(&rate.send_state)
    }

    fn bdp_multiple(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        bdp_multiple(bw, self.min_rtt.min_rtt, gain, f64::from(path.mss), self.init_cwnd)
    }

    /// Packets that must be in flight for `inflight_cap` to be in the network: at least three bursts,
    /// one in the sender's queue, one in its segmentation offload, one in the receiver's reassembly.
    /// Two more in UP, so that even a small BDP is exceeded.
    fn quantization_budget(&self, path: &Path, inflight_cap: f64) -> f64 {
        let offload_budget = 3.0 * self.send_quantum(path);
        let inflight_cap = inflight_cap.max(offload_budget).max(MIN_PIPE_CWND);
        if self.state == State::ProbeBwUp { inflight_cap + 2.0 } else { inflight_cap }
    }

    /// Packets to have in flight at `gain * bw` for an empty queue.
    fn inflight(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        self.quantization_budget(path, self.bdp_multiple(path, bw, gain))
    }

    /// What the flow wants in flight: the BDP, unless congestion cut the window.
    fn target_inflight(&self, path: &Path) -> f64 {
        self.inflight(path, self.bw(), 1.0).min(self.window.cwnd)
    }

    /// Packets in flight that leave headroom, of at least one packet, to others.
    fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        let headroom = (self.version.headroom * longterm).max(1.0);
        libm::floor(longterm - headroom).max(MIN_PIPE_CWND)
    }

    fn min_tso_segs(&self) -> f64 {
        self.pacing.min_tso_segs(self.version.min_tso_rate)
    }

    fn send_quantum(&self, path: &Path) -> f64 {
        self.pacing.send_quantum(self.min_tso_segs(), f64::from(path.mss))
    }

    fn packets_in_net_at_edt(&self, path: &Path, in_flight: u32) -> f64 {
        let departing = (self.pacing_gain > 1.0).then(|| self.send_quantum(path));
        let mss = f64::from(path.mss);
        self.pacing.packets_in_net_at_edt(in_flight, path.now, self.bw(), departing, mss)
    }

    fn update_model_and_state(&mut self, path: &Path, ack: &Ack) {
        let rate = ack.rate.as_ref();
        self.exit_loss_recovery(path);
        self.update_round(path, ack);
        self.update_latest_delivery_signals(path, ack);
        self.update_congestion_signals(ack);
        self.update_ack_aggregation(path, ack);
        self.check_startup_high_loss(path, ack);
        self.check_full_bw_reached(rate);
        self.check_startup_done(path);
        self.check_drain_done(path);
        self.update_probe_bw_cycle_phase(path, ack);
        self.min_rtt.update_min_rtt(path, ack.rtt);
        self.check_probe_rtt(path, ack);
        self.advance_latest_delivery_signals(ack);
        if let Some(detector) = &mut self.cubic_detector {
            detector.update(self.min_rtt.min_rtt);
        }
    }

    /// Restores the window that loss recovery had cut.
    fn exit_loss_recovery(&mut self, path: &Path) {
        if in_loss_recovery(self.prev_ca_state) && !in_loss_recovery(path.ca_state) {
            self.window.restore_cwnd();
        }
        self.prev_ca_state = path.ca_state;
    }

    fn update_round(&mut self, path: &Path, ack: &Ack) {
        self.ecn.count(ack);
        self.round.update_round(ack.rate.as_ref(), path.delivered);
        if self.round.round_start {
            self.rounds_since_probe_up += 1;
            self.ecn.update_ecn_alpha(self.min_rtt.min_rtt);
        }
    }

    fn update_latest_delivery_signals(&mut self, path: &Path, ack: &Ack) {
        self.loss_round_start = false;
        let Some(rate) = ack.rate.as_ref().filter(|_| ack.delivered > 0) else { return };
        self.bw_latest = self.bw_latest.max(rate.rate);
        self.inflight_latest = self.inflight_latest.max(f64::from(rate.delivered));
        if rate.send_state.delivered >= self.loss_round_delivered {
            self.loss_round_delivered = path.delivered;
            self.loss_round_start = true;
        }
    }

    fn update_congestion_signals(&mut self, ack: &Ack) {
        self.ecn_in_round |= self.ecn.is_eligible() && ack.marked > 0;
        let Some(rate) = ack.rate.as_ref().filter(|_| ack.delivered > 0) else { return };
        self.update_max_bw(rate);
        self.is_loss_in_round |= ack.lost > 0;
        if !self.loss_round_start {
            return;
        }
        self.adapt_lower_bounds_from_congestion();
        self.is_loss_in_round = false;
        self.ecn_in_prev_round = std::mem::take(&mut self.ecn_in_round);
    }

    fn update_max_bw(&mut self, rate: &RateSample) {
        if rate.rate >= self.max_bw() || !self.is_app_limited(rate) {
            self.max_bw_filter.update(rate.rate);
        }
    }

    fn update_ack_aggregation(&mut self, path: &Path, ack: &Ack) {
        let win_rtts = if self.full_pipe.full_bw_reached { EXTRA_ACKED_WIN_RTTS } else { 1 };
        let (bw, cwnd) = (self.bw(), self.window.cwnd);
        self.ack_aggregation.update_ack_aggregation((path, ack), bw, cwnd, &self.round, win_rtts);
    }

    fn check_full_bw_reached(&mut self, rate: Option<&RateSample>) {
        if let Some(rate) = rate
            && self.round.round_start
            && !self.is_app_limited(rate)
        {
            // BBRv2 looks at the maximum, BBRv3 at the present rate, for it looks in UP too.
            self.full_pipe.check_full_bw_reached(match self.version.up_exit {
                ProbeUpExit::Inflight(_) => self.max_bw(),
                ProbeUpExit::FullBw => rate.rate,
            });
        }
    }

    fn check_probe_rtt(&mut self, path: &Path, ack: &Ack) {
        if self.state != State::ProbeRtt && self.min_rtt.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.window.save_cwnd(true);
            self.min_rtt.enter_probe_rtt(path);
            self.ack_phase = AckPhase::ProbeStopping;
            self.round.start_round(path.delivered);
        }
        if self.state == State::ProbeRtt {
            let probe_rtt_cwnd = self.probe_rtt_cwnd(path);
            if self.min_rtt.handle_probe_rtt(path, probe_rtt_cwnd, &mut self.round) {
                self.exit_probe_rtt(path);
            }
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt_cwnd(&self, path: &Path) -> f64 {
        let gain = self.version.probe_rtt_cwnd_gain;
        self.bdp_multiple(path, self.bw(), gain).max(MIN_PIPE_CWND)
    }

    /// The end of CheckProbeRTTDone, and ExitProbeRTT: from CRUISE on, for what is in flight is below
    /// the BDP already.
    fn exit_probe_rtt(&mut self, path: &Path) {
        self.min_rtt.exit_probe_rtt(path);
        self.window.restore_cwnd();
        self.reset_short_term_model();
        if self.full_pipe.full_bw_reached {
            self.start_probe_bw_down(path);
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn advance_latest_delivery_signals(&mut self, ack: &Ack) {
        if let Some(rate) = &ack.rate {
            if self.loss_round_start {
                self.bw_latest = rate.rate;
                self.inflight_latest = f64::from(rate.delivered);
            }
            self.loss_in_cycle |= rate.lost > 0;
        }
        self.ecn_in_cycle |= ack.marked > 0;
    }

    fn update_control_parameters(&mut self, path: &Path, ack: &Ack) {
        (self.pacing_gain, self.cwnd_gain) = self.gains();
        let mss = f64::from(path.mss);
        self.pacing.init_pacing_rate_from_rtt(path.srtt, self.window.cwnd, mss);
        let full = self.full_pipe.full_bw_reached;
        self.pacing.set_pacing_rate_with_gain(self.bw(), self.pacing_gain, full);
        self.set_cwnd(path, ack);
    }

    /// The pacing gain and the window gain of the state (section 5.6.1).
    fn gains(&self) -> (f64, f64) {
        let version = &self.version;
        let cruise = self.cubic_detector.as_ref().and_then(CubicDetector::cruise_pacing_gain);
        match self.state {
            State::Startup => (version.startup_pacing_gain, version.startup_cwnd_gain),
            State::Drain => (version.drain_pacing_gain, version.startup_cwnd_gain),
            State::ProbeBwDown => (version.down_pacing_gain, version.default_cwnd_gain),
            State::ProbeBwCruise => (cruise.unwrap_or(1.0), version.default_cwnd_gain),
            State::ProbeBwRefill => (1.0, version.default_cwnd_gain),
            State::ProbeBwUp => (version.up_pacing_gain, version.up_cwnd_gain),
            State::ProbeRtt => (1.0, version.probe_rtt_cwnd_gain),
        }
    }

    fn set_cwnd(&mut self, path: &Path, ack: &Ack) {
        let bw = self.bw();
        self.extra_acked = self.ack_aggregation.extra_acked(bw, f64::from(path.mss));
        if ack.delivered > 0 {
            let inflight_cap = self.bdp_multiple(path, bw, self.cwnd_gain) + self.extra_acked;
            let max_inflight = self.quantization_budget(path, inflight_cap);
            let full = self.full_pipe.full_bw_reached;
            let is_first_flight = (path.delivered as f64) < self.init_cwnd;
            self.window.grow_towards(max_inflight, ack.delivered, full, is_first_flight);
        }
        if self.state == State::ProbeRtt {
            self.window.bound(self.probe_rtt_cwnd(path));
        }
        self.bound_cwnd_for_model();
    }

    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
        };
        self.window.bound(cap.min(self.inflight_shortterm));
    }
}

impl CongestionControl for BbrV3 {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.update_model_and_state(path, ack);
        self.update_control_parameters(path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            self.save_state_upon_loss();
        }
        match event.signal {
            Signal::Loss if event.packets > 0 => self.handle_lost_packet(path, event),
            Signal::Loss => {}
            Signal::Timeout => self.on_enter_rto(path, event),
            // Marks are counted where they are acknowledged.
            Signal::Ecn => {}
        }
    }

    fn control(&self) -> ControlParameters {
        ControlParameters::new(self.window.cwnd)
            .with_ssthresh(self.ssthresh)
            .with_pacing_rate(Some(self.pacing.pacing_rate))
            .with_min_send_quantum(Some(self.min_tso_segs() as u32))
    }

    fn on_established(&mut self, path: &Path) {
        self.min_rtt.update_min_rtt(path, path.min_rtt);
        let mss = f64::from(path.mss);
        self.pacing.init_pacing_rate_from_rtt(path.srtt, self.window.cwnd, mss);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.pacing.on_sent(path.now, f64::from(path.mss));
        if !(sent.from_idle && sent.app_limited) {
            return;
        }
        self.idle_restart = true;
        self.ack_aggregation.restart(path.now);
        if self.state.is_probe_bw() {
            let full = self.full_pipe.full_bw_reached;
            self.pacing.set_pacing_rate_with_gain(self.bw(), 1.0, full);
        } else if self.state == State::ProbeRtt && self.min_rtt.is_probe_rtt_done(path) {
            self.exit_probe_rtt(path);
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.handle_spurious_loss_detection(path);
    }

    fn on_receive_window_penalty(&mut self, _path: &Path) {
        self.window.set(self.window.cwnd / 2.0);
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let min_rtt = self.min_rtt.min_rtt.unwrap_or(Span::ZERO);
        let values = [
            ("state", f64::from(self.state as u8)),
            ("bw", self.bw().bytes_per_sec()),
            ("max_bw", self.max_bw().bytes_per_sec()),
            ("min_rtt", min_rtt.as_secs_f64()),
            ("pacing_gain", self.pacing_gain),
            ("cwnd_gain", self.cwnd_gain),
            ("extra_acked", self.extra_acked),
            ("round_count", self.round.round_count as f64),
            ("full_bw_reached", f64::from(u8::from(self.full_pipe.full_bw_reached))),
            ("bw_shortterm", self.bw_shortterm.bytes_per_sec()),
            ("inflight_longterm", self.inflight_longterm),
            ("inflight_shortterm", self.inflight_shortterm),
        ];
        values.into_iter().for_each(|(name, value)| show(Metric { name, value }));
        if let Some(detector) = &self.cubic_detector {
            let value = f64::from(u8::from(detector.is_detected()));
            show(Metric { name: "cubic_detected", value });
        }
    }
}

#[cfg(test)]
mod tests;
