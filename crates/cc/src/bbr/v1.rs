//! BBRv1, as Linux 6.18's `tcp_bbr.c` has it.
//!
//! | `tcp_bbr.c` | here |
//! |---|---|
//! | `bbr_main` | `on_ack` |
//! | `bbr_update_bw` | `update_bw`, `lt_bw_sampling` |
//! | `bbr_update_ack_aggregation` | `AckAggregation::update_ack_aggregation` |
//! | `bbr_update_cycle_phase` | `update_cycle_phase`, `is_next_cycle_phase`, `advance_cycle_phase` |
//! | `bbr_check_full_bw_reached` | `check_full_bw_reached` |
//! | `bbr_check_drain` | `check_drain` |
//! | `bbr_update_min_rtt` | `update_min_rtt`, `MinRtt` |
//! | `bbr_update_gains` | `update_gains` |
//! | `bbr_set_pacing_rate` | `Pacing::set_pacing_rate_with_gain` |
//! | `bbr_set_cwnd` | `set_cwnd`, `set_cwnd_to_recover_or_restore` |
//! | `bbr_cwnd_event` | `on_sent` |
//! | `bbr_ssthresh`, `bbr_set_state` | `on_congestion` |
//! | `bbr_undo_cwnd` | `on_spurious_loss` |
//!
//! ProbeBW is a cycle of eight phases, each with a pacing gain: 5/4 probes for more bandwidth, 3/4
//! drains the queue that this may have built, and six phases at 1 cruise. A phase lasts one `min_rtt`,
//! with two exceptions: probing continues until 5/4 BDP are in flight, unless packets are lost;
//! draining ends early when at most the BDP is in flight. A flow begins the cycle at a random phase
//! other than draining, so that flows mix.
//!
//! Loss recovery conserves packets: in the first round of fast recovery one packet is sent for each
//! packet delivered. From then on the window grows by what is delivered, less what is lost. When
//! recovery ends, the window is what it was before. A timeout leaves one packet.
//!
//! Differences from draft-cardwell-iccrg-bbr-congestion-control-00, all of them Linux's: `lt_bw`; the
//! window is widened by `extra_acked`; the quantization budget (three bursts, the sum rounded up to an
//! even number, 2 more while probing); packets in flight are counted at the next departure.
//!
//! Differences from Linux 6.18:
//! - Linux does not renew an expired `min_rtt` with an acknowledgement that may have been delayed, which
//!   it says only of a lone short segment. A transport here does not report it.
//! - While no round-trip time is known, the BDP is the connection's initial window, not 10 packets.
//! - Rates and times are not rounded to Linux's units.

use super::ack_aggregation::AckAggregation;
use super::lt_bw::{LtBw, LtBwSample};
use super::min_rtt::MinRtt;
use super::model::{FullPipe, Window, bdp_multiple, in_loss_recovery};
use super::pacing::{Pacing, packets_in_net_at_edt};
use super::version::{EXTRA_ACKED_WIN_RTTS, MIN_PIPE_CWND, MIN_RTT_FILTER_LEN};
use crate::filters::{Rounds, WindowedMax};
use crate::{
    Ack, CaState, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Metric,
    Path, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Gains of Startup: 2/ln 2 = 2.885 in Linux's 256ths.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Pacing gain of Drain: the inverse of 2.885 in 256ths.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Window gain of ProbeBW.
const CWND_GAIN: f64 = 2.0;
/// The pacing gains of ProbeBW's eight phases.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Rounds over which the maximum delivery rate is taken: a gain cycle and two.
const BW_RTTS: u64 = 10;
/// Below this pacing rate, bit/s, a burst may be one packet.
const MIN_TSO_RATE: f64 = 1.2e6;
/// Until this many packets are delivered, the window grows whatever its target (TCP_INIT_CWND).
const FIRST_FLIGHT: u64 = 10;

/// The states of BBRv1. Their numbers are the values of the metric `state` of
/// [`inspect`](crate::CongestionControl::inspect).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubles the rate every round until the pipe is full.
    Startup = 0,
    /// Empties the queue that Startup built.
    Drain = 1,
    /// Cycles through eight phases of gains.
    ProbeBw = 2,
    /// Sends little, to see the round-trip time of an empty queue.
    ProbeRtt = 3,
}

/// BBRv1. The [module](self) maps Linux's functions to ours and lists the differences.
#[derive(Clone, Debug)]
pub struct BbrV1 {
    random: SplitMix64,
    init_cwnd: f64,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    round: Rounds,
    full_pipe: FullPipe,
    /// The maximum delivery rate, bytes/s.
    max_bw_filter: WindowedMax<f64>,
    min_rtt: MinRtt,
    ack_aggregation: AckAggregation,
    extra_acked: f64,
    lt_bw: LtBw,
    cycle_idx: usize,
    /// When the phase of the gain cycle began.
    cycle_stamp: Time,
    packet_conservation: bool,
    /// The transport's state at the last acknowledgement or timeout.
    prev_ca_state: CaState,
    idle_restart: bool,
    window: Window,
    pacing: Pacing,
    ssthresh: f64,
}

impl BbrV1 {
    /// The algorithm at the beginning of a connection.
    pub fn new(config: &ConnectionConfig) -> BbrV1 {
        let init_cwnd = config.initial_window;
        BbrV1 {
            random: SplitMix64::seed_from_u64(config.seed),
            init_cwnd,
            state: State::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            round: Rounds::default(),
            full_pipe: FullPipe::default(),
            max_bw_filter: WindowedMax::new(BW_RTTS, 0, 0.0),
            min_rtt: MinRtt::new(MIN_RTT_FILTER_LEN, config.now),
            ack_aggregation: AckAggregation::new(config.now),
            extra_acked: 0.0,
            lt_bw: LtBw::default(),
            cycle_idx: 0,
            cycle_stamp: Time::ZERO,
            packet_conservation: false,
            prev_ca_state: CaState::Open,
            idle_restart: false,
            window: Window::new(init_cwnd),
            pacing: Pacing::new(init_cwnd, f64::from(config.mss), HIGH_GAIN),
            ssthresh: f64::INFINITY,
        }
    }

    /// The state of the state machine.
    pub fn state(&self) -> State {
        self.state
    }

    fn max_bw(&self) -> Rate {
        Rate::from_bytes_per_sec(self.max_bw_filter.get())
    }

    /// The bandwidth to send at.
    fn bw(&self) -> Rate {
        self.lt_bw.bw().unwrap_or_else(|| self.max_bw())
    }

    fn is_app_limited(&self, ack: &Ack) -> bool {
        ack.rate.as_ref().is_some_and(|rate| self.min_rtt.is_app_limited(&rate.send_state))
    }

    fn bdp(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        bdp_multiple(bw, self.min_rtt.min_rtt, gain, f64::from(path.mss), self.init_cwnd)
    }

    fn min_tso_segs(&self) -> f64 {
        self.pacing.min_tso_segs(MIN_TSO_RATE)
    }

    fn send_quantum(&self, path: &Path) -> f64 {
        self.pacing.send_quantum(self.min_tso_segs(), f64::from(path.mss))
    }

    /// Adds a burst each in the sender's queue, its segmentation offload and the receiver's reassembly,
    /// and makes the sum even, for a receiver that acknowledges every other packet. Two more while
    /// probing, so that even a small BDP is exceeded.
    fn quantization_budget(&self, path: &Path, cwnd: f64) -> f64 {
        let even = libm::ceil((cwnd + 3.0 * self.send_quantum(path)) / 2.0) * 2.0;
        let is_probing = self.state == State::ProbeBw && self.cycle_idx == 0;
        if is_probing { even + 2.0 } else { even }
    }

    /// Packets to have in flight at `gain * bw` for an empty queue.
    fn inflight(&self, path: &Path, bw: Rate, gain: f64) -> f64 {
        self.quantization_budget(path, self.bdp(path, bw, gain))
    }

    fn packets_in_net_at_edt(&self, path: &Path, in_flight: u32) -> f64 {
        let departing = if self.pacing_gain > 1.0 { self.send_quantum(path) } else { 0.0 };
        packets_in_net_at_edt(path, in_flight, self.bw(), departing)
    }

    fn update_bw(&mut self, path: &Path, ack: &Ack) {
        self.round.update_round(ack.rate.as_ref(), path.delivered);
        let Some(rate) = &ack.rate else { return };
        if self.round.round_start {
            self.packet_conservation = false;
        }
        let is_app_limited = self.is_app_limited(ack);
        self.lt_bw_sampling(path, ack.lost > 0, is_app_limited);
        if !is_app_limited || rate.rate >= self.max_bw() {
            self.max_bw_filter.update(self.round.round_count, rate.rate.bytes_per_sec());
        }
    }

    fn lt_bw_sampling(&mut self, path: &Path, has_losses: bool, is_app_limited: bool) {
        let sample = LtBwSample {
            has_losses,
            is_app_limited,
            round_start: self.round.round_start,
            is_probe_bw: self.state == State::ProbeBw,
        };
        let was_policed = self.lt_bw.bw().is_some();
        if self.lt_bw.lt_bw_sampling(path, sample) {
            self.reset_probe_bw_mode(path);
        } else if !was_policed && self.lt_bw.bw().is_some() {
            self.pacing_gain = 1.0;
        }
    }

    fn update_cycle_phase(&mut self, path: &Path, ack: &Ack) {
        if self.state == State::ProbeBw && self.is_next_cycle_phase(path, ack) {
            self.advance_cycle_phase(path);
        }
    }

    fn is_next_cycle_phase(&self, path: &Path, ack: &Ack) -> bool {
        let elapsed = path.delivered_at.since(self.cycle_stamp);
        let is_full_length = self.min_rtt.min_rtt.is_some_and(|rtt| elapsed > rtt);
        let gain = self.pacing_gain;
        if gain == 1.0 {
            return is_full_length;
        }
        let in_net = self.packets_in_net_at_edt(path, ack.prior_in_flight);
        if gain > 1.0 {
            return is_full_length
                && (ack.lost > 0 || in_net >= self.inflight(path, self.max_bw(), gain));
        }
        is_full_length || in_net <= self.inflight(path, self.max_bw(), 1.0)
    }

    fn advance_cycle_phase(&mut self, path: &Path) {
        self.cycle_idx = (self.cycle_idx + 1) % PACING_GAIN_CYCLE.len();
        self.cycle_stamp = path.delivered_at;
    }

    /// Enters ProbeBW at a random phase.
    fn reset_probe_bw_mode(&mut self, path: &Path) {
        self.state = State::ProbeBw;
        let below_7 = (u64::from(self.random.next_u32()) * 7) >> 32;
        self.cycle_idx = 7 - below_7 as usize;
        self.advance_cycle_phase(path);
    }

    fn check_full_bw_reached(&mut self, ack: &Ack) {
        if !self.full_pipe.full_bw_reached && self.round.round_start && !self.is_app_limited(ack) {
            self.full_pipe.check_full_bw_reached(self.max_bw());
        }
    }

    fn check_drain(&mut self, path: &Path) {
        if self.state == State::Startup && self.full_pipe.full_bw_reached {
            self.state = State::Drain;
            self.ssthresh = self.inflight(path, self.max_bw(), 1.0);
        }
        if self.state == State::Drain
            && self.packets_in_net_at_edt(path, path.in_flight)
                <= self.inflight(path, self.max_bw(), 1.0)
        {
            self.reset_probe_bw_mode(path);
        }
    }

    fn update_min_rtt(&mut self, path: &Path, ack: &Ack) {
        self.min_rtt.update_min_rtt(path, ack.rtt);
        if self.min_rtt.probe_rtt_expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            // As in `bbr_save_cwnd`, the state is ProbeRTT by now.
            self.window.save_cwnd(true);
            self.min_rtt.enter_probe_rtt(path);
        }
        if self.state == State::ProbeRtt
            && self.min_rtt.handle_probe_rtt(path, MIN_PIPE_CWND, &mut self.round)
        {
            self.exit_probe_rtt(path);
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn exit_probe_rtt(&mut self, path: &Path) {
        self.min_rtt.exit_probe_rtt(path);
        self.window.restore_cwnd();
        self.state = State::Startup;
        if self.full_pipe.full_bw_reached {
            self.reset_probe_bw_mode(path);
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (DRAIN_GAIN, HIGH_GAIN),
            State::ProbeBw if self.lt_bw.bw().is_some() => (1.0, CWND_GAIN),
            State::ProbeBw => (PACING_GAIN_CYCLE[self.cycle_idx], CWND_GAIN),
            State::ProbeRtt => (1.0, 1.0),
        };
    }

    fn set_cwnd(&mut self, path: &Path, ack: &Ack) {
        let (bw, full) = (self.bw(), self.full_pipe.full_bw_reached);
        self.extra_acked = self.ack_aggregation.extra_acked(bw, f64::from(path.mss));
        if ack.delivered > 0 && !self.set_cwnd_to_recover_or_restore(path, ack) {
            let extra = if full { self.extra_acked } else { 0.0 };
            let target = self.quantization_budget(path, self.bdp(path, bw, self.cwnd_gain) + extra);
            let is_first_flight = path.delivered < FIRST_FLIGHT;
            self.window.grow_towards(target, ack.delivered, full, is_first_flight);
        }
        if self.state == State::ProbeRtt {
            self.window.bound(MIN_PIPE_CWND);
        }
    }

    /// Cuts or restores the window. Returns whether packets are conserved, so that it is final.
    fn set_cwnd_to_recover_or_restore(&mut self, path: &Path, ack: &Ack) -> bool {
        let conserved = f64::from(path.in_flight) + f64::from(ack.delivered);
        if ack.lost > 0 {
            self.window.set(self.window.cwnd - f64::from(ack.lost));
        }
        let prev = core::mem::replace(&mut self.prev_ca_state, path.ca_state);
        if path.ca_state == CaState::Recovery && prev != CaState::Recovery {
            self.packet_conservation = true;
            self.round.start_round(path.delivered);
            self.window.set(conserved);
        } else if in_loss_recovery(prev) && !in_loss_recovery(path.ca_state) {
            self.packet_conservation = false;
            self.window.restore_cwnd();
        }
        if self.packet_conservation {
            self.window.set(self.window.cwnd.max(conserved));
        }
        self.packet_conservation
    }
}

impl CongestionControl for BbrV1 {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.update_bw(path, ack);
        let (bw, cwnd) = (self.bw(), self.window.cwnd);
        let win_rtts = EXTRA_ACKED_WIN_RTTS;
        self.ack_aggregation.update_ack_aggregation((path, ack), bw, cwnd, &self.round, win_rtts);
        self.update_cycle_phase(path, ack);
        self.check_full_bw_reached(ack);
        self.check_drain(path);
        self.update_min_rtt(path, ack);
        self.update_gains();

        let mss = f64::from(path.mss);
        self.pacing.init_pacing_rate_from_rtt(path.srtt, self.window.cwnd, mss);
        let full = self.full_pipe.full_bw_reached;
        self.pacing.set_pacing_rate_with_gain(self.bw(), self.pacing_gain, full);
        self.set_cwnd(path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            let is_cut = in_loss_recovery(self.prev_ca_state) || self.state == State::ProbeRtt;
            self.window.save_cwnd(is_cut);
        }
        if event.signal == Signal::Timeout {
            self.prev_ca_state = CaState::Loss;
            self.window.set(f64::from(path.in_flight) + 1.0);
            self.full_pipe.reset_full_bw(Rate::ZERO);
            // Linux treats a timeout like the end of a round.
            self.round.round_start = true;
            self.lt_bw_sampling(path, true, false);
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
        match self.state {
            State::ProbeBw => {
                let full = self.full_pipe.full_bw_reached;
                self.pacing.set_pacing_rate_with_gain(self.bw(), 1.0, full);
            }
            State::ProbeRtt if self.min_rtt.is_probe_rtt_done(path) => self.exit_probe_rtt(path),
            _ => {}
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.full_pipe.reset_full_bw(Rate::ZERO);
        self.lt_bw.reset_lt_bw_sampling(path);
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let scale = f64::from(previous_mss) / f64::from(path.mss);
        self.init_cwnd *= scale;
        self.ssthresh = (self.ssthresh * scale).max(1.0);
        self.window.scale(scale);
        self.ack_aggregation.scale(scale);
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
        let lt_use_bw = self.lt_bw.bw().is_some();
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
            ("lt_use_bw", f64::from(u8::from(lt_use_bw))),
        ];
        values.into_iter().for_each(|(name, value)| show(Metric { name, value }));
    }
}

#[cfg(test)]
mod tests;
