//! The state machine (draft-ietf-ccwg-bbr-06, section 5.3).

use super::super::version::{ECN_REPROBE_GAIN, UpEnds};
use super::*;

impl Bounded {
    /// CheckFullBWReached.
    pub(super) fn check_full_pipe(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        let rate = ack.rate.as_ref();
        self.check_startup_congestion(frame, path, ack, rate);
        if let Some(rate) = rate
            && frame.rounds.just_began()
            && !frame.probe_rtt.limits(rate)
        {
            // BBRv2 looks at the greatest rate, BBRv3 at the present one, for it looks in UP too.
            frame.pipe.observe(match self.probing.up_ends {
                UpEnds::InFlight(_) => self.max_bw.get(),
                UpEnds::Plateau => rate.rate,
            });
        }
    }

    /// Startup ends on loss when a round of recovery brought losses too often and a loss rate that
    /// is too high, on marks after two rounds of too many.
    fn check_startup_congestion(
        &mut self,
        frame: &mut Frame,
        path: &Path,
        ack: &Ack,
        rate: Option<&RateSample>,
    ) {
        if frame.pipe.ever() {
            return;
        }
        self.signals.loss_events += u32::from(ack.lost > 0);
        let lossy = self.signals.round_start()
            && path.ca_state == CaState::Recovery
            && self.signals.loss_events >= self.caution.full_loss_count
            && rate.is_some_and(|rate| self.is_too_high(rate));
        if self.signals.round_start() {
            self.signals.loss_events = 0;
        }
        if lossy || self.ecn.is_full() {
            if frame.state == State::Startup {
                self.undo_state = Some(State::Startup);
            }
            frame.pipe.declare_full();
            let keeps = self.caution.startup_keeps_delivered;
            let delivered = if keeps { self.signals.inflight_latest } else { 0.0 };
            let bdp = inflight(self, frame, self.max_bw.get(), 1.0);
            self.bounds.set_long_term(bdp.max(delivered));
        }
    }

    pub(super) fn start_down(&mut self, frame: &mut Frame, path: &Path) {
        self.signals.reset();
        self.probe_bw.begin_down(&self.probing, &mut frame.random, path.now);
        frame.rounds.restart(path.delivered);
        frame.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, frame: &mut Frame, path: &Path, growth_round: u32) {
        self.bounds.forget_short_term();
        self.probe_bw.begin_refill(growth_round);
        frame.rounds.restart(path.delivered);
        frame.state = State::Refill;
    }

    fn start_up(&mut self, frame: &mut Frame, path: &Path, rate: Rate) {
        self.probe_bw.begin_up(frame.window.get(), path.now);
        frame.rounds.restart(path.delivered);
        frame.pipe.restart(rate);
        frame.state = State::Up;
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_phase(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        let rate = ack.rate.as_ref();
        if !frame.pipe.ever() || self.adapt_long_term(frame, path, ack, rate) {
            return;
        }
        let in_network = frame.in_network(path, ack.prior_in_flight, self.bw());
        let bw = rate.map_or(Rate::ZERO, |rate| rate.rate);
        let state = frame.state;
        match state {
            State::Down | State::Cruise if self.start_probe_if_due(frame, path) => {}
            State::Down if self.is_time_to_cruise(frame, in_network) => {
                frame.state = State::Cruise;
            }
            State::Refill if frame.rounds.just_began() => self.start_up(frame, path, bw),
            State::Up if self.is_time_to_go_down(frame, path, in_network, bw) => {
                self.probe_bw.went_too_high = false;
                self.start_down(frame, path);
            }
            _ => {}
        }
    }

    /// AdaptLongTermModel: follows the feedback of a probe and moves `inflight_hi` with it. Returns
    /// whether it changed the state.
    fn adapt_long_term(
        &mut self,
        frame: &mut Frame,
        path: &Path,
        ack: &Ack,
        rate: Option<&RateSample>,
    ) -> bool {
        let Some(rate) = rate else { return false };
        let round_start = frame.rounds.just_began();
        if self.probe_bw.follow(round_start) && frame.state.is_probe_bw() {
            if !frame.probe_rtt.limits(rate) {
                self.max_bw.advance();
            }
            // The probe went as far as the one that had gone too high, and did no harm.
            if self.probe_bw.stopped_early && !self.probe_bw.went_too_high {
                self.start_refill(frame, path, 0);
                return true;
            }
        }
        if self.is_too_high(rate) {
            if self.probe_bw.judging {
                let limited = frame.probe_rtt.limits(rate);
                self.on_too_high(frame, path, f64::from(rate.send_state.in_flight), limited);
            }
        } else if self.bounds.inflight_hi().is_finite() {
            self.bounds.raise_long_term(f64::from(rate.send_state.in_flight));
            if frame.state == State::Up && self.is_at_long_term_bound(frame, path) {
                let cwnd = frame.window.get();
                let growth = self.probe_bw.grow(ack.delivered, cwnd, round_start);
                self.bounds.raise_long_term(self.bounds.inflight_hi() + growth);
            }
        }
        false
    }

    /// Whether `inflight_hi` is what limits the flow (5.3.3.6: C.is_cwnd_limited).
    fn is_at_long_term_bound(&self, frame: &Frame, path: &Path) -> bool {
        path.window_full && frame.window.get() >= self.bounds.inflight_hi()
    }

    fn start_probe_if_due(&mut self, frame: &mut Frame, path: &Path) -> bool {
        if self.have_marks_ceased(path) {
            let growth = self.bounds.inflight_hi() * ECN_REPROBE_GAIN;
            let round = if growth.is_finite() { libm::log2(growth.max(1.0)) as u32 } else { 30 };
            self.start_refill(frame, path, round);
            return true;
        }
        let target = self.target_inflight(frame);
        let due = self.probe_bw.is_due(&self.probing, path.now, target);
        if due {
            self.start_refill(frame, path, 0);
        }
        due
    }

    /// A cycle with marks but no losses, and now neither: others may have left.
    fn have_marks_ceased(&self, path: &Path) -> bool {
        let signals = &self.signals;
        let in_cycle = signals.ecn_in_cycle && !signals.loss_in_cycle;
        let lately = signals.ecn_in_round || signals.ecn_in_round_before;
        self.ecn.is_heeded() && in_cycle && !lately && path.ca_state == CaState::Open
    }

    fn is_time_to_cruise(&self, frame: &Frame, in_network: f64) -> bool {
        in_network <= self.bounds.with_headroom(self.caution.headroom)
            && in_network <= inflight(self, frame, self.max_bw.get(), 1.0)
    }

    fn is_time_to_go_down(
        &mut self,
        frame: &mut Frame,
        path: &Path,
        in_network: f64,
        bw: Rate,
    ) -> bool {
        if self.probe_bw.went_too_high && in_network >= self.bounds.inflight_hi() {
            self.probe_bw.stopped_early = true;
            return true;
        }
        match self.probing.up_ends {
            UpEnds::InFlight(gain) => {
                let min_rtt = frame.probe_rtt.min_rtt();
                min_rtt.is_some_and(|rtt| self.probe_bw.has_lasted(path.now, rtt))
                    && in_network >= inflight(self, frame, self.max_bw.get(), gain)
            }
            UpEnds::Plateau if self.is_at_long_term_bound(frame, path) => {
                frame.pipe.restart(bw);
                false
            }
            UpEnds::Plateau => frame.pipe.now(),
        }
    }
}
