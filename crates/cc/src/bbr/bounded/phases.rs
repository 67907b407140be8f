//! The state machine of BBRv3 (draft-ietf-ccwg-bbr-06, section 5.3).

use super::super::drain;
use super::super::params::ECN_REPROBE_GAIN;
use super::*;

impl BoundedBbr {
    /// CheckFullBWReached and CheckStartupDone.
    pub(super) fn update_startup(&mut self, path: &Path, ack: &Ack, rate: Option<&RateSample>) {
        self.check_startup_congestion(path, ack, rate);
        if let Some(rate) = rate
            && self.rounds.just_began()
            && !self.probe_rtt.limits(rate)
        {
            self.pipe.observe(rate.rate);
        }
        if self.state == State::Startup && self.pipe.ever() {
            self.state = State::Drain;
            self.drain_began = self.rounds.count();
            self.ssthresh = self.inflight(self.max_bw.get());
            self.signals.reset();
        }
    }

    /// Startup ends on loss when a round of recovery brought losses six times and a loss rate that
    /// is too high, on marks after two rounds of too many.
    fn check_startup_congestion(&mut self, path: &Path, ack: &Ack, rate: Option<&RateSample>) {
        if self.pipe.ever() {
            return;
        }
        self.signals.loss_events += u32::from(ack.lost > 0);
        let lossy = self.signals.round_start()
            && path.phase == Phase::Recovery
            && self.signals.loss_events >= self.caution.full_loss_count
            && rate.is_some_and(|rate| self.is_too_high(rate));
        if self.signals.round_start() {
            self.signals.loss_events = 0;
        }
        if lossy || self.ecn.is_full() {
            if self.state == State::Startup {
                self.undo_state = Some(State::Startup);
            }
            self.pipe.declare_full();
            let bdp = self.inflight(self.max_bw.get());
            self.bounds.set_long_term(bdp.max(self.signals.inflight_latest));
        }
    }

    /// CheckDrainDone.
    pub(super) fn update_drain(&mut self, path: &Path) {
        if self.state != State::Drain {
            return;
        }
        let in_network = self.in_network(path, path.in_flight);
        let spent = self.rounds.count() - self.drain_began;
        let target = self.inflight(self.max_bw.get());
        if drain::is_over(in_network, target, spent, self.params.drain_rounds) {
            self.start_down(path);
        }
    }

    pub(super) fn start_down(&mut self, path: &Path) {
        self.signals.reset();
        self.probe_bw.begin_down(&self.probing, &mut self.random, path.now);
        self.rounds.restart(path.delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, path: &Path, growth_round: u32) {
        self.bounds.forget_short_term();
        self.probe_bw.begin_refill(growth_round);
        self.rounds.restart(path.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, path: &Path, rate: Rate) {
        self.probe_bw.begin_up(self.window.get());
        self.rounds.restart(path.delivered);
        self.pipe.restart(rate);
        self.state = State::Up;
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, path: &Path, ack: &Ack, rate: Option<&RateSample>) {
        if !self.pipe.ever() || self.adapt_long_term(path, ack, rate) {
            return;
        }
        let in_network = self.in_network(path, ack.prior_in_flight);
        let bw = rate.map_or(Rate::ZERO, |rate| rate.rate);
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.start_probe_if_due(path) => {}
            State::Down if self.is_time_to_cruise(in_network) => self.state = State::Cruise,
            State::Refill if self.rounds.just_began() => self.start_up(path, bw),
            State::Up if self.is_time_to_go_down(path, in_network, bw) => {
                self.probe_bw.went_too_high = false;
                self.start_down(path);
            }
            _ => {}
        }
    }

    /// AdaptLongTermModel: follows the feedback of a probe and moves `inflight_hi` with it. Returns
    /// whether it changed the state.
    fn adapt_long_term(&mut self, path: &Path, ack: &Ack, rate: Option<&RateSample>) -> bool {
        let Some(rate) = rate else { return false };
        if self.probe_bw.follow(self.rounds.just_began()) && self.state.is_probe_bw() {
            if !self.probe_rtt.limits(rate) {
                self.max_bw.advance();
            }
            // The probe went as far as the one that had gone too high, and did no harm.
            if self.probe_bw.stopped_early && !self.probe_bw.went_too_high {
                self.start_refill(path, 0);
                return true;
            }
        }
        if self.is_too_high(rate) {
            if self.probe_bw.judging {
                let limited = self.probe_rtt.limits(rate);
                self.on_too_high(path, f64::from(rate.stamp.in_flight), limited);
            }
        } else if self.bounds.inflight_hi().is_finite() {
            self.bounds.raise_long_term(f64::from(rate.stamp.in_flight));
            if self.state == State::Up && self.is_at_long_term_bound(path) {
                let cwnd = self.window.get();
                let growth = self.probe_bw.grow(ack.delivered, cwnd, self.rounds.just_began());
                self.bounds.raise_long_term(self.bounds.inflight_hi() + growth);
            }
        }
        false
    }

    /// Whether `inflight_hi` is what limits the flow.
    fn is_at_long_term_bound(&self, path: &Path) -> bool {
        path.cwnd_limited && self.window.get() >= self.bounds.inflight_hi()
    }

    fn start_probe_if_due(&mut self, path: &Path) -> bool {
        if self.have_marks_ceased(path) {
            let growth = self.bounds.inflight_hi() * ECN_REPROBE_GAIN;
            let round = if growth.is_finite() { libm::log2(growth.max(1.0)) as u32 } else { 30 };
            self.start_refill(path, round);
            return true;
        }
        let due = self.probe_bw.is_due(&self.probing, path.now, self.target_inflight());
        if due {
            self.start_refill(path, 0);
        }
        due
    }

    /// A cycle with marks but no losses, and now neither: others may have left.
    fn have_marks_ceased(&self, path: &Path) -> bool {
        let signals = &self.signals;
        let in_cycle = signals.ecn_in_cycle && !signals.loss_in_cycle;
        let lately = signals.ecn_in_round || signals.ecn_in_round_before;
        self.ecn.is_heeded() && in_cycle && !lately && path.phase == Phase::Open
    }

    fn is_time_to_cruise(&self, in_network: f64) -> bool {
        in_network <= self.bounds.with_headroom(self.caution.headroom)
            && in_network <= self.inflight(self.max_bw.get())
    }

    fn is_time_to_go_down(&mut self, path: &Path, in_network: f64, bw: Rate) -> bool {
        if self.probe_bw.went_too_high && in_network >= self.bounds.inflight_hi() {
            self.probe_bw.stopped_early = true;
            return true;
        }
        if self.is_at_long_term_bound(path) {
            self.pipe.restart(bw);
            return false;
        }
        self.pipe.now()
    }

    /// UpdateMinRTT and CheckProbeRTT.
    pub(super) fn update_min_rtt(&mut self, path: &Path, ack: &Ack) {
        let expired = self.probe_rtt.observe(path.now, ack.rtt);
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.window.save(is_recovery(self.before));
            self.probe_rtt.enter(path);
            self.probe_bw.interrupt();
            self.rounds.restart(path.delivered);
        }
        if self.state == State::ProbeRtt
            && self.probe_rtt.hold(path, self.probe_rtt_cwnd(), &mut self.rounds)
        {
            self.exit_probe_rtt(path);
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    /// Next is CRUISE, for what is in flight is below the BDP already.
    pub(super) fn exit_probe_rtt(&mut self, path: &Path) {
        self.probe_rtt.exit(path.now);
        self.window.restore();
        self.bounds.forget_short_term();
        if self.pipe.ever() {
            self.start_down(path);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
