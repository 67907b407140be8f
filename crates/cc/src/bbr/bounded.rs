//! Rules that let loss and ECN bound the model: BBRv2, F-BBRv2 and BBRv3.
//!
//! Written along draft-ietf-ccwg-bbr-06 (BBRv3), whose names and sections the comments have; where
//! BBRv2 differs, [`version`](super::version) says so. This file has what acknowledgements tell
//! (section 5.5) and how the control parameters follow from the model (5.6). [`phases`] has the state
//! machine (5.3), [`losses`] the response to loss (5.5.10) and its undoing (5.5.11), [`options`] what
//! a user may change.
//!
//! Beyond the draft, as Google's Linux branches: the response to ECN; signals are reset when Startup
//! ends; packets in flight are counted at the next departure; Drain's gain. The allowance for
//! offload is the draft's: three bursts of a millisecond.
//!
//! Of the branch `v2alpha` BBRv2 has all but these: bursts are not enlarged on short paths; ECN, off
//! unless switched on, is BBRv3's and cuts volumes, not bandwidths; early windows grow for as long as
//! the drafts say; an equal round-trip time does not put ProbeRTT off, as draft-02 and Cho and Cho
//! have it.

mod losses;
mod options;
mod phases;

use super::State;
use super::assertion::Watch;
use super::bounds::Bounds;
use super::ecn::Ecn;
use super::frame::{Bbr, Frame, Rules, inflight};
use super::model::CycleMax;
use super::probe_bw::ProbeBw;
use super::recovery::is_recovery;
use super::signals::Signals;
use super::version::{Caution, Probing, Version};
use crate::{Ack, CaState, CongestionEvent, ConnectionConfig, Metric, Path, RateSample, Signal};
use dumbbell_units::Rate;

/// BBRv2, F-BBRv2 or BBRv3.
pub type BoundedBbr = Bbr<Bounded>;

/// Rules that let loss and ECN bound the model.
#[derive(Clone, Debug)]
pub struct Bounded {
    caution: Caution,
    probing: Probing,
    watch: Option<Watch>,
    max_bw: CycleMax,
    signals: Signals,
    bounds: Bounds,
    ecn: Ecn,
    probe_bw: ProbeBw,
    /// The transport's phase at the last acknowledgement or timeout.
    before: CaState,
    /// The state that loss ended, to return to if the loss was spurious.
    undo_state: Option<State>,
}

impl BoundedBbr {
    /// A version at the beginning of a connection.
    pub fn new(version: Version, init: &ConnectionConfig) -> BoundedBbr {
        let Version { params, caution, probing, assertion } = version;
        let rules = Bounded {
            caution,
            probing,
            watch: assertion.map(Watch::new),
            max_bw: CycleMax::default(),
            signals: Signals::default(),
            bounds: Bounds::new(),
            ecn: Ecn::new(caution.ecn),
            probe_bw: ProbeBw::new(init.now),
            before: CaState::Open,
            undo_state: None,
        };
        Bbr { frame: Frame::new(params, init), rules }
    }
}

impl Bounded {
    /// What the flow wants in flight: the BDP, unless congestion cut the window.
    fn target_inflight(&self, frame: &Frame) -> f64 {
        inflight(self, frame, self.bw(), 1.0).min(frame.window.get())
    }

    fn is_probing(&self, frame: &Frame) -> bool {
        matches!(frame.state, State::Startup | State::Refill | State::Up)
    }

    /// Whether losses or marks since `rate`'s packet was sent show that too much was in flight.
    fn is_too_high(&self, rate: &RateSample) -> bool {
        self.is_loss_too_high(rate.lost.into(), rate.send_state.in_flight.into())
            || self.ecn.is_too_high(rate)
    }

    fn is_loss_too_high(&self, lost: f64, in_flight: f64) -> bool {
        lost > in_flight * self.caution.loss_thresh
    }

    fn end_recovery(&mut self, frame: &mut Frame, path: &Path) {
        if is_recovery(self.before) && !is_recovery(path.ca_state) {
            frame.window.restore();
        }
        self.before = path.ca_state;
    }

    fn update_rounds(&mut self, frame: &mut Frame, path: &Path, rate: Option<&RateSample>) {
        match rate {
            Some(rate) => frame.rounds.update(rate.send_state.delivered, path.delivered),
            None => {
                frame.rounds.no_sample();
                false
            }
        };
        if frame.rounds.just_began() {
            self.probe_bw.count_round();
            self.ecn.end_round(frame.probe_rtt.min_rtt());
        }
    }

    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    fn update_signals(&mut self, frame: &Frame, path: &Path, ack: &Ack, rate: Option<&RateSample>) {
        let marked = self.ecn.is_heeded() && ack.marked > 0;
        self.signals.ecn_in_round |= marked;
        let Some(rate) = rate.filter(|_| ack.delivered > 0) else {
            self.signals.no_sample();
            return;
        };
        self.signals.observe(rate, path.delivered);
        if !frame.probe_rtt.limits(rate) || rate.rate >= self.max_bw.get() {
            self.max_bw.update(rate.rate);
        }
        self.signals.loss_in_round |= ack.lost > 0;
        if self.signals.round_start() {
            if !self.is_probing(frame) {
                let model = (self.max_bw.get(), frame.window.get());
                self.bounds.end_round(&self.signals, model, self.caution.beta, self.ecn.cut());
            }
            self.signals.end_round();
        }
    }

    /// BoundCwndForModel.
    fn volume_cap(&self, frame: &Frame) -> f64 {
        let long_term = match frame.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(self.caution.headroom),
            State::ProbeBw | State::Down | State::Refill | State::Up => self.bounds.inflight_hi(),
        };
        long_term.min(self.bounds.inflight_lo())
    }
}

impl Rules for Bounded {
    #[inline]
    fn bw(&self) -> Rate {
        self.max_bw.get().min(self.bounds.bw_lo())
    }

    #[inline]
    fn max_bw(&self) -> Rate {
        self.max_bw.get()
    }

    #[inline]
    fn is_raising(&self, frame: &Frame) -> bool {
        frame.state == State::Up
    }

    fn before(&self) -> CaState {
        self.before
    }

    fn update_model(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        let rate = ack.rate.as_ref();
        self.end_recovery(frame, path);
        self.ecn.observe(ack);
        self.update_rounds(frame, path, rate);
        self.update_signals(frame, path, ack, rate);
    }

    fn update_full_pipe(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        self.check_full_pipe(frame, path, ack);
    }

    fn on_drain(&mut self) {
        self.signals.reset();
    }

    fn enter_probe_bw(&mut self, frame: &mut Frame, path: &Path) {
        self.start_down(frame, path);
    }

    fn update_probe_bw(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        self.update_phase(frame, path, ack);
    }

    fn on_probe_rtt(&mut self, frame: &mut Frame, path: &Path) {
        self.probe_bw.interrupt();
        frame.rounds.restart(path.delivered);
    }

    /// Next is CRUISE, for what is in flight is below the BDP already.
    fn after_probe_rtt(&mut self, frame: &mut Frame, path: &Path) {
        self.bounds.forget_short_term();
        if frame.pipe.ever() {
            self.start_down(frame, path);
            frame.state = State::Cruise;
        }
    }

    fn end_ack(&mut self, ack: &Ack) {
        if let Some(rate) = &ack.rate {
            self.signals.advance(rate);
            self.signals.loss_in_cycle |= rate.lost > 0;
        }
        self.signals.ecn_in_cycle |= ack.marked > 0;
    }

    fn gains(&mut self, frame: &Frame) -> (f64, f64) {
        let (params, probing) = (&frame.params, &self.probing);
        let (pacing_gain, cwnd_gain) = match frame.state {
            State::Startup => (params.startup_pacing_gain, params.startup_cwnd_gain),
            State::Drain => (params.drain_pacing_gain, params.startup_cwnd_gain),
            State::Down => (probing.down_pacing_gain, params.cwnd_gain),
            State::Up => (probing.up_pacing_gain, probing.up_cwnd_gain),
            State::ProbeBw | State::Cruise | State::Refill => (1.0, params.cwnd_gain),
            State::ProbeRtt => (1.0, params.probe_rtt_bdp),
        };
        let Some(watch) = &mut self.watch else { return (pacing_gain, cwnd_gain) };
        watch.observe(frame.probe_rtt.min_rtt());
        (watch.pacing_gain(frame.state, pacing_gain), cwnd_gain)
    }

    /// SetCwnd.
    fn update_window(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        let bw = self.bw();
        if ack.delivered > 0 {
            let packets = frame.bdp(bw, frame.cwnd_gain) + frame.extra_acked(bw);
            let target = frame.with_allowance(packets, self.is_raising(frame));
            let early = (path.delivered as f64) < frame.scale.initial_window;
            frame.window.approach(target, ack.delivered, frame.pipe.ever(), early);
        }
        if frame.state == State::ProbeRtt {
            frame.window.cap(frame.probe_rtt_cwnd(bw));
        }
        frame.window.cap(self.volume_cap(frame));
    }

    fn on_congestion(&mut self, frame: &mut Frame, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            self.save(frame);
        }
        match event.signal {
            Signal::Loss | Signal::Nak if event.packets > 0 => self.on_loss(frame, path, event),
            Signal::Loss | Signal::Nak => {}
            Signal::Timeout => self.on_timeout(frame, path, event),
            // Marks are counted where they are acknowledged.
            Signal::Ecn => {}
        }
    }

    fn on_spurious_loss(&mut self, frame: &mut Frame, path: &Path) {
        self.undo(frame, path);
    }

    fn inspect(&self, _frame: &Frame, show: &mut dyn FnMut(Metric)) {
        let values = [
            ("bw_lo", self.bounds.bw_lo().bytes_per_sec()),
            ("inflight_hi", self.bounds.inflight_hi()),
            ("inflight_lo", self.bounds.inflight_lo()),
        ];
        values.into_iter().for_each(|(name, value)| show(Metric { name, value }));
        if let Some(watch) = &self.watch {
            let value = f64::from(u8::from(watch.is_detected()));
            show(Metric { name: "cubic_detected", value });
        }
    }
}

#[cfg(test)]
mod tests;
