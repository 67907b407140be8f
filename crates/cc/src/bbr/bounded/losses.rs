//! The response to loss, and its undoing (draft-ietf-ccwg-bbr-06, 5.5.10 and 5.5.11).

use super::super::bounds::inflight_at_loss;
use super::*;

impl Bounded {
    /// SaveStateUponLoss.
    pub(super) fn save(&mut self, frame: &mut Frame) {
        frame.window.save(is_recovery(self.before) || frame.state == State::ProbeRtt);
        self.bounds.save();
        self.undo_state = None;
    }

    /// HandleLostPacket: judges the flight that led up to the lost packet, if it was a probe.
    pub(super) fn on_loss(&mut self, frame: &mut Frame, path: &Path, event: &CongestionEvent) {
        self.signals.note_loss(path.delivered);
        let Some(send_state) = event.send_state.filter(|_| self.probe_bw.judging) else { return };
        let in_flight = f64::from(send_state.in_flight);
        let lost = f64::from((path.lost as u32).wrapping_sub(send_state.lost));
        if self.is_loss_too_high(lost, in_flight) {
            let safe = inflight_at_loss(in_flight, lost, self.caution.loss_thresh);
            let limited = frame.probe_rtt.is_limited(send_state.delivered, send_state.app_limited);
            self.on_too_high(frame, path, safe, limited);
        }
    }

    /// HandleInflightTooHigh: once a probe, lowers `inflight_hi` to `safe`, but to no less than
    /// CUBIC would leave, and stops probing.
    pub(super) fn on_too_high(&mut self, frame: &mut Frame, path: &Path, safe: f64, limited: bool) {
        self.probe_bw.went_too_high = true;
        self.probe_bw.judging = false;
        if !limited {
            let least = libm::floor(self.target_inflight(frame) * self.caution.beta);
            self.bounds.set_long_term(safe.max(least));
        }
        if frame.state == State::Up {
            self.undo_state = Some(State::Up);
            self.start_down(frame, path);
        }
    }

    /// OnEnterRTO: one packet beyond what is in flight.
    pub(super) fn on_timeout(&mut self, frame: &mut Frame, path: &Path, event: &CongestionEvent) {
        self.on_loss(frame, path, event);
        self.before = CaState::Loss;
        frame.pipe.restart(Rate::ZERO);
        if !self.is_probing(frame) {
            // The round of losses will lower it from what it was before the window is cut.
            self.bounds.begin_short_term(frame.window.prior().max(frame.window.get()));
        }
        frame.window.set(f64::from(path.in_flight) + 1.0);
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn undo(&mut self, frame: &mut Frame, path: &Path) {
        frame.window.restore();
        self.signals.loss_in_round = false;
        frame.pipe.restart(Rate::ZERO);
        self.bounds.restore();
        match self.undo_state.take().filter(|_| self.caution.undo_returns) {
            Some(State::Startup) if frame.state != State::Startup => {
                frame.pipe.retract();
                if frame.state != State::ProbeRtt {
                    frame.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(frame.state, State::Up | State::ProbeRtt) => {
                self.start_refill(frame, path, 0);
            }
            _ => {}
        }
    }
}
