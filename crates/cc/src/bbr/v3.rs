//! BBRv3 (draft-ietf-ccwg-bbr-06) and, by the numbers of their [`Version`], BBRv2 and F-BBRv2.
//!
//! The draft's functions, in the order of its pseudocode. Functions and state variables here have the
//! draft's names in snake case.
//!
//! | draft-06 | section | here |
//! |---|---|---|
//! | OnInit | 5.2.1 | `BbrV3::new`, `on_established` |
//! | OnTransmit, HandleRestartFromIdle | 5.2.2, 5.4.1 | `on_sent` |
//! | UpdateOnACK, UpdateModelAndState | 5.2.3 | `on_ack`, `update_model_and_state` |
//! | UpdateLatestDeliverySignals | 5.5.10.3 | `update_latest_delivery_signals` |
//! | UpdateCongestionSignals, UpdateMaxBw | 5.5.10.3, 5.5.5 | `update_congestion_signals`, `update_max_bw` |
//! | UpdateRound, StartRound | 5.5.1 | `update_round`, `filters::Rounds` |
//! | AdaptLowerBoundsFromCongestion, InitLowerBounds, LossLowerBounds | 5.5.10.3 | in `v3/loss` |
//! | ResetCongestionSignals, ResetShortTermModel | 5.5.10.3 | in `v3/loss` |
//! | AdvanceMaxBwFilter | 5.5.6 | `MaxBwFilter::advance` |
//! | UpdateACKAggregation | 5.5.9 | `AckAggregation::update_ack_aggregation` |
//! | CheckFullBWReached, ResetFullBW | 5.3.1.2 | `check_full_bw_reached`, `FullPipe` |
//! | CheckStartupDone, CheckStartupHighLoss | 5.3.1.1, 5.3.1.3 | in `v3/probe_bw` |
//! | EnterDrain, CheckDrainDone | 5.3.2 | in `v3/probe_bw` |
//! | IsTimeToProbeBW, PickProbeWait, TargetInflight | 5.3.3.8.3 | in `v3/probe_bw`, `v3/control` |
//! | UpdateProbeBWCyclePhase and what it calls | 5.3.3.9 | in `v3/probe_bw` |
//! | UpdateMinRTT | 5.3.4.3 | `MinRtt::update_min_rtt` |
//! | CheckProbeRTT, HandleProbeRTT, CheckProbeRTTDone | 5.3.4.3 | `check_probe_rtt`, `MinRtt::handle_probe_rtt` |
//! | ExitProbeRTT | 5.3.4.4 | `exit_probe_rtt` |
//! | AdvanceLatestDeliverySignals | 5.5.10.3 | `advance_latest_delivery_signals` |
//! | BoundBWForModel | 5.5.10.3 | `bw`, computed where it is used |
//! | UpdateControlParameters | 5.2.3 | `update_control_parameters` in `v3/control` |
//! | SetPacingRate, InitPacingRate | 5.6.2 | `Pacing::set_pacing_rate_with_gain`, `init_pacing_rate_from_rtt` |
//! | SetSendQuantum, UpdateOffloadBudget | 5.6.3, 5.5.8 | `Pacing::send_quantum`, `quantization_budget` |
//! | BDPMultiple, QuantizationBudget, Inflight | 5.6.4.2 | in `v3/control` |
//! | SaveCwnd, RestoreCwnd | 5.6.4.4 | `Window::save_cwnd`, `Window::restore_cwnd`, `exit_loss_recovery` |
//! | SetCwnd, BoundCwndForProbeRTT, BoundCwndForModel | 5.6.4.5 to 5.6.4.7 | in `v3/control` |
//! | HandleLostPacket, NoteLoss, InflightAtLoss, HandleInflightTooHigh | 5.5.10.2 | in `v3/loss` |
//! | SaveStateUponLoss, OnEnterRTO, OnEnterFastRecovery | 5.5.11.1, 5.6.4.4 | `on_congestion`, in `v3/loss` |
//! | HandleSpuriousLossDetection | 5.5.11.2 | in `v3/loss` |
//!
//! ## Differences from draft-ietf-ccwg-bbr-06
//!
//! Unless another source is named, Google's Linux branch `v3` decided; its function in `tcp_bbr.c` is in
//! the third column.
//!
//! | draft-06 | here | decided by |
//! |---|---|---|
//! | The response to ECN is left open, but a sender of ECT packets MUST take marks for congestion. | On paths of at most 5 ms marks lower `inflight_shortterm` and end Startup and UP: see ECN below. | `bbr_update_ecn_alpha`, `bbr_ecn_lower_bounds`, `bbr_check_ecn_too_high_in_startup` |
//! | DrainPacingGain is 0.5. | 0.35 | the draft itself up to -04; 88/256 in the branch |
//! | OnInit: `min_rtt` is `C.srtt`. | The transport's minimum. | `bbr_init` |
//! | InitPacingRate has no margin and is called once. | 1 % less; again with the first round-trip time and the window at that time. | `bbr_init_pacing_rate_from_rtt`, `bbr_set_pacing_rate` |
//! | HandleRestartFromIdle keeps `extra_acked_delivered`. | Sets it to 0. | `bbr_cwnd_event` |
//! | UpdateRound on every acknowledgement. | One without a rate sample ends no round. | `bbr_update_round_start` |
//! | UpdateLatestDeliverySignals, UpdateCongestionSignals on every acknowledgement. | Only if it has a rate sample and delivers packets. | the same there |
//! | NoteLoss alone sets `is_loss_in_round`. | So does an acknowledgement that reports losses. | `bbr_update_congestion_signals` |
//! | AdvanceMaxBwFilter empties the older slot. | A cycle without samples does not displace the previous one. | `bbr_advance_max_bw_filter` |
//! | UpdateACKAggregation on every acknowledgement, with a filter of 10 rounds, 1 in Startup. | On one with a rate sample. Two halves of 5 rounds, 1 in Startup: 5 to 10, 1 to 2. | `bbr_update_ack_aggregation` |
//! | `extra_acked` is bounded by `C.cwnd`. | Also by what `bw` delivers in 100 ms; an interval ends after 2^20 packets. | `bbr_ack_aggregation_cwnd`, `bbr_update_ack_aggregation` |
//! | CheckStartupHighLoss after CheckFullBWReached. | Before it. | `bbr_update_model` |
//! | CheckStartupHighLoss: in fast recovery for a full round. | In fast recovery when a loss round starts. | `bbr_check_loss_too_high_in_startup` |
//! | CheckStartupHighLoss: 6 discontiguous ranges lost in a round. | 6 acknowledgements that report losses. | `bbr_check_loss_too_high_in_startup` |
//! | `inflight_longterm` after high loss in Startup is at least `bdp`. | At least `max_bw * min_rtt` with the quantization budget. | `bbr_handle_queue_too_high_in_startup` |
//! | EnterDrain keeps the congestion signals. | Resets them; sets ssthresh, for monitoring. | `bbr_check_drain` |
//! | CheckDrainDone compares with Inflight(1.0), by `bw`. | By `max_bw`. | `bbr_check_drain` |
//! | CheckDrainDone, IsTimeToCruise, IsTimeToGoDown use `C.inflight`. | Packets in the network at the next departure; in ProbeBW of those in flight before the acknowledgement. | `bbr_packets_in_net_at_edt`, `bbr_update_cycle_phase` |
//! | UpdateProbeBWCyclePhase when new data is acknowledged. | On every acknowledgement. | `bbr_update_model` |
//! | TargetInflight is min(`bdp`, `C.cwnd`). | The same, but the BDP with the quantization budget (2 packets more in UP). | `bbr_target_inflight` |
//! | StartProbeBW_UP keeps `cycle_stamp`. | Sets it: no effect in BBRv3, BBRv2 needs it. | `bbr_start_bw_probe_up` |
//! | HandleInflightTooHigh only for lost packets: the `tx_in_flight` of an acknowledged one underestimates (5.5.10.2). | Also for an acknowledgement whose sample lost or marked too much, with its `tx_in_flight`. | `bbr_adapt_upper_bounds` |
//! | AdaptLongTermModel raises `inflight_longterm` to any `RS.tx_in_flight`. | Not by an acknowledgement whose interval is below the minimum round-trip time. | the transport's interface, which has `tx_in_flight` in the rate sample |
//! | InflightAtLoss: `lost_prefix` may be negative. | At least 0. | `bbr_inflight_hi_from_lost_skb` |
//! | NoteLoss saves the state for an undo, once a loss round. | Saved once a recovery episode. | `bbr_ssthresh` |
//! | OnEnterRTO: the window. | Also HandleLostPacket and ResetFullBW; outside of probes `inflight_shortterm` starts from the window before the timeout. | `bbr_skb_marked_lost`, `bbr_set_state` |
//! | !C.has_selective_acks: any loss is too much. | No such rule: transports here have selective acknowledgements. | `bbr_is_inflight_too_high` |
//! | UpdateMinRTT: `min_rtt` is renewed by a lower sample. | By an equal one, too. | `bbr_update_min_rtt` |
//! | Now() in UpdateMinRTT and ProbeRTT. | The coarse clock. | `tcp_jiffies32` there |
//! | BoundBWForModel sets `bw` at the end of UpdateModelAndState. | `bw` is computed where it is used. | `bbr_bw` |
//! | Gains are set on entering a state. | Once an acknowledgement, by the state: the same gains. | `bbr_update_gains` |
//! | Rates have no minimum. | 1 byte/s; the first one assumes a round-trip time of at least 1 us. | `bbr_rate_bytes_per_sec`, `bbr_init_pacing_rate_from_rtt` |
//! | SetSendQuantum: 1 ms of the pacing rate, at most 64 KB. | 1/1024 s, at most 65,215 bytes and 127 packets. | `bbr_tso_segs_generic`, without its addition on short paths; mainline's `bbr_tso_segs_goal` |
//! | SetCwnd on every acknowledgement. | One that delivers nothing only applies the bounds. | `bbr_set_cwnd` |
//! | UpdateOffloadBudget: 3 quanta for TCP, 1 for QUIC in the simplest case. | 3 for every transport. | `bbr_quantization_budget` |
//! | ProbeRTT calls MarkConnectionAppLimited of the transport. | The algorithm itself treats the samples of ProbeRTT as application-limited; see the head of `min_rtt.rs`. | the transport's interface |
//! | Volumes are bytes. | Whole packets; the BDP is rounded up, bounds are rounded down. | Linux counts packets |
//!
//! Where the draft contradicts itself, its pseudocode is followed. BoundCwndForModel does not apply
//! `inflight_longterm` in Drain (the table of 5.6.1 does). A restart from idle paces at `bw` less the margin
//! (5.4.1: exactly `bw`). Drain ends at the latest when the fourth round since its entry starts (5.3.2: after
//! 3 round trips).
//!
//! Where the branch differs from the draft and is not in the table, the draft is followed. CheckFullBWReached
//! looks once a round (the branch on every acknowledgement, so its Startup is mostly a round shorter);
//! DOWN's gain is 0.9 (0.91); the number of rounds of Drain is limited; CRUISE leaves
//! `inflight_shortterm` as it is;
//! the state that a spurious loss ended is restored; the window grows beyond its target for the initial
//! window (twice that); a packet that a tail loss probe repairs has no response of its own.
//!
//! ## ECN
//!
//! On paths of at most 5 ms; see the head of `ecn.rs`. A cycle that had marks but no losses goes to
//! REFILL as soon as a whole round had neither. (Linux waits for `TCP_CA_Open`, which an echoed mark
//! ends for about a round.)
//!
//! ## BBRv2
//!
//! BBRv2 is Google's branch `v2alpha` with the numbers of [`version::V2`](super::version::V2), except:
//! bursts are not enlarged on short paths; ECN, off unless switched on, is BBRv3's and cuts volumes, not
//! bandwidths; early windows grow for as long as the drafts say; an equal round-trip time does not put
//! ProbeRTT off, as draft-cardwell-iccrg-bbr-congestion-control-02 and Cho and Cho have it.

mod control;
mod loss;
mod probe_bw;

use super::ack_aggregation::AckAggregation;
use super::cubic_detector::CubicDetector;
use super::ecn::Ecn;
use super::min_rtt::MinRtt;
use super::model::{FullPipe, MaxBwFilter, Window, bdp_multiple, in_loss_recovery};
use super::pacing::{Pacing, packets_in_net_at_edt};
use super::version::{EXTRA_ACKED_WIN_RTTS, MIN_PIPE_CWND, ProbeUpExit, Version};
use crate::filters::Rounds;
use crate::{
    Ack, CaState, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Metric, Options, Path, RateSample, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

/// The states of BBRv2 and BBRv3. Their numbers are the values of the metric `state` of
/// [`inspect`](crate::CongestionControl::inspect).
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

/// BBRv3 or, by its [`Version`], BBRv2 or F-BBRv2. The [module](self) maps the draft's functions to ours
/// and lists the differences.
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
    /// The loss round ends when a packet is acknowledged before whose sending this many were delivered.
    /// The first loss starts it anew, so that a whole round is measured before the model is lowered.
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
    /// Whether acknowledged packets were sent by a probe whose feedback has not yet shown too much in
    /// flight.
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
    ///
    /// ```
    /// use dumbbell_cc::bbr::version::{V3, Version};
    /// use dumbbell_cc::{BbrV3, CongestionControl, ConnectionConfig};
    /// use dumbbell_units::Time;
    ///
    /// let version = Version { headroom: 0.1, ..V3 };
    /// let bbr = BbrV3::new(version, &ConnectionConfig::new(Time::ZERO, 1448));
    /// assert_eq!(bbr.control().cwnd, 10.0);
    /// ```
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
            min_rtt: MinRtt::new(version.probe_rtt_interval, config.now)
                .with_filter(version.min_rtt_filter_len, version.min_rtt_expires_on_exit),
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
            ecn: Ecn::new(version.ecn, version.ecn_max_rtt),
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
            pacing: Pacing::new(init_cwnd, f64::from(config.mss), startup_gain),
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

    /// The maximum `min_rtt` at which the flow responds to ECN marks; zero if it ignores all.
    pub fn ecn_max_rtt(&self) -> Span {
        if self.version.ecn { self.version.ecn_max_rtt } else { Span::ZERO }
    }

    /// The state of the state machine.
    pub fn state(&self) -> State {
        self.state
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

    fn update_model_and_state(&mut self, path: &Path, ack: &Ack) {
        self.exit_loss_recovery(path);
        self.update_round(path, ack);
        self.update_latest_delivery_signals(path, ack);
        self.update_congestion_signals(ack);
        self.update_ack_aggregation(path, ack);
        self.check_startup_high_loss(path, ack);
        self.check_full_bw_reached(ack);
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
        self.ecn_in_prev_round = core::mem::take(&mut self.ecn_in_round);
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

    fn check_full_bw_reached(&mut self, ack: &Ack) {
        if let Some(rate) = &ack.rate
            && self.round.round_start
            && !self.is_app_limited(rate)
        {
            // BBRv2 compares `max_bw`. BBRv3 compares the sample, because it runs the estimator in UP, too.
            self.full_pipe.check_full_bw_reached(match self.version.up_exit {
                ProbeUpExit::Inflight(_) => self.max_bw(),
                ProbeUpExit::FullBw => rate.rate,
            });
        }
    }

    /// `save_cwnd(true)`: the state is ProbeRTT by then, as in the draft.
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

    /// The end of CheckProbeRTTDone, and ExitProbeRTT. After DOWN has started the cycle, the flow goes
    /// straight to CRUISE, because inflight is already below the BDP.
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
        if !self.min_rtt.restarts(path, sent) {
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

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let scale = f64::from(previous_mss) / f64::from(path.mss);
        self.window.scale(scale);
        self.ack_aggregation.scale(scale);
        for packets in [
            &mut self.init_cwnd,
            &mut self.ssthresh,
            &mut self.inflight_shortterm,
            &mut self.inflight_longterm,
            &mut self.inflight_latest,
            &mut self.undo_inflight_shortterm,
            &mut self.undo_inflight_longterm,
            &mut self.bw_probe_up_acked,
        ] {
            *packets *= scale;
        }
        self.ssthresh = self.ssthresh.max(1.0);
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        self.on_congestion(path, &CongestionEvent::persistent_congestion(path));
        self.window.set(MIN_PIPE_CWND);
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
