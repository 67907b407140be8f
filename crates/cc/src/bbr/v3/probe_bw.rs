//! The state machine (draft-ietf-ccwg-bbr-06, section 5.3): the ends of Startup and Drain, and ProbeBW.
//!
//! DOWN drains what probing queued, CRUISE holds, REFILL fills the pipe for a round, UP probes. The
//! next probe comes 2 to 3 s after DOWN began, or after as many rounds as Reno at this BDP would go
//! without a loss, at most 63. In UP `inflight_longterm` grows by 1, 2, 4, ... packets a round while it
//! is what limits the flow. The effects of a probe are seen a round later, which `ack_phase` tracks.

use super::super::version::ECN_REPROBE_GAIN;
use super::*;
use rand_xoshiro::rand_core::Rng;

impl BbrV3 {
    /// Sets `full_bw_reached` after a round in fast recovery in which enough acknowledgements reported
    /// losses and the loss rate was too high, or after two rounds with too many marks.
    pub(super) fn check_startup_high_loss(&mut self, path: &Path, ack: &Ack) {
        if self.full_pipe.full_bw_reached {
            return;
        }
        self.loss_events_in_round += u32::from(ack.lost > 0);
        let is_loss_too_high = self.loss_round_start
            && path.ca_state == CaState::Recovery
            && self.loss_events_in_round >= self.version.startup_full_loss_count
            && ack.rate.as_ref().is_some_and(|rate| self.is_inflight_too_high(rate));
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
        if is_loss_too_high || self.ecn.is_too_high_in_startup() {
            if self.state == State::Startup {
                self.undo_state = Some(State::Startup);
            }
            self.full_pipe.full_bw_reached = true;
            let uses_latest = self.version.startup_exit_uses_inflight_latest;
            let inflight_latest = if uses_latest { self.inflight_latest } else { 0.0 };
            let bdp = self.inflight(path, self.max_bw(), 1.0);
            self.inflight_longterm = bdp.max(inflight_latest);
        }
    }

    pub(super) fn check_startup_done(&mut self, path: &Path) {
        if self.state == State::Startup && self.full_pipe.full_bw_reached {
            self.enter_drain(path);
        }
    }

    fn enter_drain(&mut self, path: &Path) {
        self.state = State::Drain;
        self.drain_start_round = self.round.round_count;
        self.ssthresh = self.inflight(path, self.max_bw(), 1.0);
        self.reset_congestion_signals();
    }

    pub(super) fn check_drain_done(&mut self, path: &Path) {
        if self.state != State::Drain {
            return;
        }
        let in_net = self.packets_in_net_at_edt(path, path.in_flight);
        let rounds = self.round.round_count - self.drain_start_round;
        if in_net <= self.inflight(path, self.max_bw(), 1.0)
            || self.version.drain_max_rounds.is_some_and(|max| rounds > max)
        {
            self.start_probe_bw_down(path);
        }
    }

    pub(super) fn start_probe_bw_down(&mut self, path: &Path) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = path.now;
        if !self.version.ack_phase {
            self.max_bw_filter.advance();
        }
        self.ack_phase = AckPhase::ProbeStopping;
        self.round.start_round(path.delivered);
        self.state = State::ProbeBwDown;
    }

    /// Draws the wait for the next probe at random, so that flows mix.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = u64::from(self.random.next_u32() >> 31);
        let share = f64::from(self.random.next_u32()) / 4_294_967_296.0;
        self.bw_probe_wait = self.version.bw_probe_base + self.version.bw_probe_rand.mul_f64(share);
    }

    /// UP will first raise `inflight_longterm` by `2^bw_probe_up_rounds` packets a round.
    pub(super) fn start_probe_bw_refill(&mut self, path: &Path, bw_probe_up_rounds: u32) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = bw_probe_up_rounds;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.round.start_round(path.delivered);
        self.state = State::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self, path: &Path, delivery_rate: Rate) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.round.start_round(path.delivered);
        self.cycle_stamp = path.now;
        self.full_pipe.reset_full_bw(delivery_rate);
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    pub(super) fn update_probe_bw_cycle_phase(&mut self, path: &Path, ack: &Ack) {
        if !self.full_pipe.full_bw_reached || self.adapt_long_term_model(path, ack) {
            return;
        }
        let in_net = self.packets_in_net_at_edt(path, ack.prior_in_flight);
        let delivery_rate = ack.rate.as_ref().map_or(Rate::ZERO, |rate| rate.rate);
        match self.state {
            State::ProbeBwDown => {
                if !self.is_time_to_probe_bw(path) && self.is_time_to_cruise(path, in_net) {
                    self.state = State::ProbeBwCruise;
                }
            }
            State::ProbeBwCruise => {
                self.is_time_to_probe_bw(path);
            }
            State::ProbeBwRefill => {
                if self.round.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_probe_bw_up(path, delivery_rate);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(path, in_net, delivery_rate) {
                    self.prev_probe_too_high = false;
                    self.start_probe_bw_down(path);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// Tracks the feedback of a probe and moves `inflight_longterm` with it. Returns whether it changed
    /// the state.
    pub(super) fn adapt_long_term_model(&mut self, path: &Path, ack: &Ack) -> bool {
        let rate = ack.rate.as_ref();
        let is_app_limited = rate.is_some_and(|rate| self.is_app_limited(rate));
        let round_start = self.round.round_start;
        if self.ack_phase == AckPhase::ProbeStarting && round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !is_app_limited && self.version.ack_phase {
                self.max_bw_filter.advance();
            }
            // The precautionary probe reached `inflight_longterm` without too much loss.
            if self.state.is_probe_bw()
                && self.prev_probe_precautionary
                && !self.prev_probe_too_high
            {
                self.start_probe_bw_refill(path, 0);
                return true;
            }
        }
        // Without a rate sample, the transport does not report `tx_in_flight`.
        let tx_in_flight = rate.map_or(0.0, |rate| f64::from(rate.send_state.in_flight));
        if rate.is_some_and(|rate| self.is_inflight_too_high(rate)) {
            if self.is_bw_probe_sample {
                self.handle_inflight_too_high(path, tx_in_flight, is_app_limited);
            }
        } else if self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(path, ack.delivered);
            }
        }
        false
    }

    /// Whether `inflight_longterm` is what limits the flow.
    fn is_limited_by_inflight_longterm(&self, path: &Path) -> bool {
        path.window_full && self.window.cwnd >= self.inflight_longterm
    }

    pub(super) fn probe_inflight_longterm_upward(&mut self, path: &Path, newly_acked: u32) {
        if !self.is_limited_by_inflight_longterm(path) {
            return;
        }
        self.bw_probe_up_acked += f64::from(newly_acked);
        let delta = libm::floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
        if delta > 0.0 {
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta;
        }
        if self.round.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = libm::floor(self.window.cwnd / growth_this_round).max(1.0);
    }

    /// Goes to REFILL if it is time for the next probe, and returns whether it did.
    pub(super) fn is_time_to_probe_bw(&mut self, path: &Path) -> bool {
        if self.is_ecn_reprobe_time(path) {
            let growth = self.inflight_longterm * ECN_REPROBE_GAIN;
            let rounds = if growth.is_finite() { libm::log2(growth.max(1.0)) as u32 } else { 30 };
            self.start_probe_bw_refill(path, rounds);
            return true;
        }
        let is_time = self.has_elapsed_in_phase(path, self.bw_probe_wait)
            || self.is_reno_coexistence_probe_time(path);
        if is_time {
            self.start_probe_bw_refill(path, 0);
        }
        is_time
    }

    /// Whether a cycle had marks but no losses, and now has neither: others may have left.
    fn is_ecn_reprobe_time(&self, path: &Path) -> bool {
        self.ecn.is_eligible()
            && self.ecn_in_cycle
            && !self.loss_in_cycle
            && !self.ecn_in_round
            && !self.ecn_in_prev_round
            && path.ca_state == CaState::Open
    }

    /// Whether the phase, UP or DOWN, has lasted for longer than `interval`.
    fn has_elapsed_in_phase(&self, path: &Path, interval: Span) -> bool {
        path.now > self.cycle_stamp + interval
    }

    fn is_reno_coexistence_probe_time(&self, path: &Path) -> bool {
        let reno_rounds = self.target_inflight(path);
        self.rounds_since_probe_up as f64 >= reno_rounds.min(self.version.bw_probe_max_rounds)
    }

    fn is_time_to_cruise(&self, path: &Path, in_net: f64) -> bool {
        in_net <= self.inflight_with_headroom() && in_net <= self.inflight(path, self.max_bw(), 1.0)
    }

    fn is_time_to_go_down(&mut self, path: &Path, in_net: f64, delivery_rate: Rate) -> bool {
        if self.prev_probe_too_high && in_net >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        match self.version.up_exit {
            ProbeUpExit::Inflight(gain) => {
                let min_rtt = self.min_rtt.min_rtt;
                min_rtt.is_some_and(|rtt| self.has_elapsed_in_phase(path, rtt))
                    && in_net >= self.inflight(path, self.max_bw(), gain)
            }
            ProbeUpExit::FullBw if self.is_limited_by_inflight_longterm(path) => {
                self.full_pipe.reset_full_bw(delivery_rate);
                false
            }
            ProbeUpExit::FullBw => self.full_pipe.full_bw_now,
        }
    }
}
