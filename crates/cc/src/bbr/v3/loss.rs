//! The response to loss (draft-ietf-ccwg-bbr-06, 5.5.10) and its undoing (5.5.11).
//!
//! Two time scales. The short-term model, `bw_shortterm` and `inflight_shortterm`, responds to
//! congestion between probes and is reset when the next probe begins. The long-term model,
//! `inflight_longterm`, is the maximum volume in flight that probes found to lose an acceptable share.

use super::*;

impl BbrV3 {
    pub(super) fn save_state_upon_loss(&mut self) {
        let is_cut = in_loss_recovery(self.prev_ca_state) || self.state == State::ProbeRtt;
        self.window.save_cwnd(is_cut);
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// Examines the flight that led up to the lost packet, if it was a probe.
    pub(super) fn handle_lost_packet(&mut self, path: &Path, event: &CongestionEvent) {
        self.note_loss(path);
        let Some(sent) = event.send_state.filter(|_| self.is_bw_probe_sample) else { return };
        let tx_in_flight = f64::from(sent.in_flight);
        let lost = f64::from((path.lost as u32).wrapping_sub(sent.lost));
        if self.is_loss_too_high(lost, tx_in_flight) {
            let safe = inflight_at_loss(tx_in_flight, lost, self.version.loss_thresh);
            self.handle_inflight_too_high(path, safe, self.min_rtt.is_app_limited(&sent));
        }
    }

    fn note_loss(&mut self, path: &Path) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = path.delivered;
        }
        self.is_loss_in_round = true;
        self.loss_in_cycle = true;
    }

    fn is_loss_too_high(&self, lost: f64, tx_in_flight: f64) -> bool {
        lost > tx_in_flight * self.version.loss_thresh
    }

    /// Whether losses or marks since `rate`'s packet was sent show that too much was in flight.
    pub(super) fn is_inflight_too_high(&self, rate: &RateSample) -> bool {
        self.is_loss_too_high(rate.lost.into(), rate.send_state.in_flight.into())
            || self.ecn.is_inflight_too_high(rate)
    }

    /// Once per probe: lowers `inflight_longterm` to `tx_in_flight`, but not below Beta times the
    /// target, and stops probing.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        path: &Path,
        tx_in_flight: f64,
        is_app_limited: bool,
    ) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !is_app_limited {
            let floor = libm::floor(self.target_inflight(path) * self.version.beta);
            self.inflight_longterm = libm::floor(tx_in_flight.max(floor));
        }
        if self.state == State::ProbeBwUp {
            self.undo_state = Some(State::ProbeBwUp);
            self.start_probe_bw_down(path);
        }
    }

    /// OnEnterRTO: the window becomes one packet more than is in flight.
    pub(super) fn on_enter_rto(&mut self, path: &Path, event: &CongestionEvent) {
        self.handle_lost_packet(path, event);
        self.prev_ca_state = CaState::Loss;
        self.full_pipe.reset_full_bw(Rate::ZERO);
        if !self.is_probing_bw() && self.inflight_shortterm.is_infinite() {
            // The next loss round lowers it from what it was before the window is cut.
            self.inflight_shortterm = self.window.prior_cwnd.max(self.window.cwnd);
        }
        self.window.set(f64::from(path.in_flight) + 1.0);
    }

    pub(super) fn handle_spurious_loss_detection(&mut self, path: &Path) {
        self.window.restore_cwnd();
        self.is_loss_in_round = false;
        self.full_pipe.reset_full_bw(Rate::ZERO);
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        match self.undo_state.take().filter(|_| self.version.restores_undo_state) {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill(path, 0);
            }
            _ => {}
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = 0.0;
        self.loss_events_in_round = 0;
        self.loss_in_cycle = false;
        self.ecn_in_round = false;
        self.ecn_in_prev_round = false;
        self.ecn_in_cycle = false;
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// Once a round, responds to losses and marks in it.
    pub(super) fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.is_probing_bw() || !(self.is_loss_in_round || self.ecn_in_round) {
            return;
        }
        self.init_lower_bounds();
        let mut ecn_inflight_shortterm = f64::INFINITY;
        if self.ecn_in_round {
            ecn_inflight_shortterm = libm::floor(self.inflight_shortterm * self.ecn.ecn_cut());
        }
        if self.is_loss_in_round {
            self.loss_lower_bounds();
        }
        self.inflight_shortterm = self.inflight_shortterm.min(ecn_inflight_shortterm);
    }

    /// Marks lower the volume only.
    fn init_lower_bounds(&mut self) {
        if self.is_loss_in_round && self.bw_shortterm >= UNBOUNDED {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.window.cwnd;
        }
    }

    fn loss_lower_bounds(&mut self) {
        let beta = self.version.beta;
        self.bw_shortterm = self.bw_latest.max(self.bw_shortterm * beta);
        self.inflight_shortterm =
            self.inflight_latest.max(libm::floor(self.inflight_shortterm * beta));
    }
}

/// InflightAtLoss: the number of packets in flight at which losses crossed `loss_thresh`. `tx_in_flight`
/// and `lost` include the lost packet itself.
pub(super) fn inflight_at_loss(tx_in_flight: f64, lost: f64, loss_thresh: f64) -> f64 {
    let inflight_prev = (tx_in_flight - 1.0).max(0.0);
    let lost_prev = lost - 1.0;
    let lost_prefix = (loss_thresh * inflight_prev - lost_prev) / (1.0 - loss_thresh);
    inflight_prev + lost_prefix.max(0.0)
}
