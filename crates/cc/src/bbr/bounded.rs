//! BBR that bounds its model by loss and ECN: BBRv3, draft-ietf-ccwg-bbr-06.
//!
//! This file has the order of steps on every acknowledgement (section 5.2.3) and how the control
//! parameters follow from the model (5.6). [`phases`] has the state machine (5.3), [`losses`] the
//! response to loss (5.5.10) and its undoing (5.5.11). Versions differ in [`Params`], [`Caution`]
//! and [`Probing`]; of those, BBRv2 would have its own, beside a rule for the end of UP.
//!
//! Beyond the draft, as Google's Linux branch: the response to ECN; signals are reset when Startup
//! ends; packets in flight are counted at the next departure; Drain's gain (see
//! [`Params::V3`]). The allowance for offload is the draft's: three bursts of a millisecond.

mod losses;
mod phases;

use super::State;
use super::aggregation::{Aggregation, HALF_ROUNDS};
use super::bounds::Bounds;
use super::ecn::Ecn;
use super::model::{CycleMax, Scale, at_least_minimum};
use super::pacing::Pacing;
use super::params::{Caution, Params, Probing};
use super::probe_bw::ProbeBw;
use super::probe_rtt::ProbeRtt;
use super::recovery::is_recovery;
use super::signals::Signals;
use super::startup::FullPipe;
use super::window::Window;
use crate::meters::Rounds;
use crate::{
    Ack, ConfigError, Congestion, CongestionControl, Control, Init, Inspect, Options, Path, Phase,
    RateSample, Sent, Signal,
};
use dumbbell_units::{Rate, Span};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

/// Least burst, packets.
const LEAST_BURST: f64 = 2.0;

/// BBRv3.
#[derive(Clone, Debug)]
pub struct BoundedBbr {
    params: Params,
    caution: Caution,
    probing: Probing,
    scale: Scale,
    random: SplitMix64,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: Rounds,
    max_bw: CycleMax,
    signals: Signals,
    bounds: Bounds,
    ecn: Ecn,
    pipe: FullPipe,
    drain_began: u64,
    probe_bw: ProbeBw,
    probe_rtt: ProbeRtt,
    aggregation: Aggregation,
    pacing: Pacing,
    window: Window,
    ssthresh: f64,
    idle_restart: bool,
    /// The transport's phase at the last acknowledgement or timeout.
    before: Phase,
    /// The state that loss ended, to return to if the loss was spurious.
    undo_state: Option<State>,
}

impl BoundedBbr {
    /// BBRv3 at the beginning of a connection.
    pub fn v3(init: &Init) -> BoundedBbr {
        BoundedBbr::new(Params::V3, Caution::V3, Probing::V3, init)
    }

    /// BBRv3 with options: `loss_thresh`, `beta`, `headroom` (shares), `ecn` (on or off),
    /// `drain_gain`, `down_gain`, `probe_rtt_interval` and `probe_wait` (s).
    ///
    /// # Errors
    /// If an option's value is not one it can have.
    pub fn v3_from_options(options: &mut Options, init: &Init) -> Result<BoundedBbr, ConfigError> {
        const SHARE: &str = "a number from 0 to 0.99";
        const GAIN: &str = "a number from 0.05 to 1";
        const SECONDS: &str = "seconds from 0.1 to 1000";
        let (mut params, mut caution, mut probing) = (Params::V3, Caution::V3, Probing::V3);
        let mut share = |key, value: &mut f64| {
            *value = options.number(key, *value, 0.0..=0.99, SHARE)?;
            Ok(())
        };
        share("loss_thresh", &mut caution.loss_thresh)?;
        share("beta", &mut caution.beta)?;
        share("headroom", &mut caution.headroom)?;
        caution.ecn = options.switch("ecn", caution.ecn)?;
        let mut gain = |key, value: &mut f64| {
            *value = options.number(key, *value, 0.05..=1.0, GAIN)?;
            Ok(())
        };
        gain("drain_gain", &mut params.drain_pacing_gain)?;
        gain("down_gain", &mut probing.down_pacing_gain)?;
        let mut seconds = |key, value: &mut Span| {
            let number = options.number(key, value.as_secs_f64(), 0.1..=1000.0, SECONDS)?;
            *value = Span::from_secs_f64(number);
            Ok(())
        };
        seconds("probe_rtt_interval", &mut params.probe_rtt_interval)?;
        seconds("probe_wait", &mut probing.wait)?;
        Ok(BoundedBbr::new(params, caution, probing, init))
    }

    fn new(params: Params, caution: Caution, probing: Probing, init: &Init) -> BoundedBbr {
        let scale = Scale { mss: f64::from(init.mss), initial_window: init.initial_window };
        BoundedBbr {
            params,
            caution,
            probing,
            scale,
            random: SplitMix64::seed_from_u64(init.seed),
            state: State::Startup,
            pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.startup_cwnd_gain,
            rounds: Rounds::default(),
            max_bw: CycleMax::default(),
            signals: Signals::default(),
            bounds: Bounds::new(),
            ecn: Ecn::new(caution.ecn),
            pipe: FullPipe::default(),
            drain_began: 0,
            probe_bw: ProbeBw::new(init.now),
            probe_rtt: ProbeRtt::new(&params, init.now),
            aggregation: Aggregation::new(init.now),
            pacing: Pacing::new(scale, params.startup_pacing_gain, init.now),
            window: Window::new(scale),
            ssthresh: f64::INFINITY,
            idle_restart: false,
            before: Phase::Open,
            undo_state: None,
        }
    }

    fn bw(&self) -> Rate {
        self.max_bw.get().min(self.bounds.bw_lo())
    }

    fn burst(&self) -> f64 {
        self.scale.burst(self.pacing.rate(), LEAST_BURST)
    }

    /// QuantizationBudget: at least three bursts, at least 4 packets, 2 more in UP.
    fn with_allowance(&self, packets: f64) -> f64 {
        let enough = at_least_minimum(packets.max(3.0 * self.burst()));
        if self.state == State::Up { enough + 2.0 } else { enough }
    }

    /// Packets to have in flight at `bw` for an empty queue.
    fn inflight(&self, bw: Rate) -> f64 {
        self.with_allowance(self.scale.bdp(bw, self.probe_rtt.min_rtt(), 1.0))
    }

    /// What the flow wants in flight: the BDP, unless congestion cut the window.
    fn target_inflight(&self) -> f64 {
        self.inflight(self.bw()).min(self.window.get())
    }

    fn in_network(&self, path: &Path, in_flight: u32) -> f64 {
        let burst = (self.pacing_gain > 1.0).then(|| self.burst());
        self.pacing.in_network(in_flight, path.now, self.bw(), burst, self.scale)
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// Whether losses or marks since `rate`'s packet was sent show that too much was in flight.
    fn is_too_high(&self, rate: &RateSample) -> bool {
        self.is_loss_too_high(rate.lost.into(), rate.stamp.in_flight.into())
            || self.ecn.is_too_high(rate)
    }

    fn is_loss_too_high(&self, lost: f64, in_flight: f64) -> bool {
        lost > in_flight * self.caution.loss_thresh
    }

    fn update_rounds(&mut self, path: &Path, rate: Option<&RateSample>) {
        match rate {
            Some(rate) => self.rounds.update(rate.stamp.delivered, path.delivered),
            None => {
                self.rounds.no_sample();
                false
            }
        };
        if self.rounds.just_began() {
            self.probe_bw.count_round();
            self.ecn.end_round(self.probe_rtt.min_rtt());
        }
    }

    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    fn update_signals(&mut self, path: &Path, ack: &Ack, rate: Option<&RateSample>) {
        let marked = self.ecn.is_heeded() && ack.marked > 0;
        self.signals.ecn_in_round |= marked;
        let Some(rate) = rate.filter(|_| ack.delivered > 0) else {
            self.signals.no_sample();
            return;
        };
        self.signals.observe(rate, path.delivered);
        if !self.probe_rtt.limits(rate) || rate.rate >= self.max_bw.get() {
            self.max_bw.update(rate.rate);
        }
        self.signals.loss_in_round |= ack.lost > 0;
        if self.signals.round_start() {
            if !self.is_probing() {
                let model = (self.max_bw.get(), self.window.get());
                self.bounds.end_round(&self.signals, model, self.caution.beta, self.ecn.cut());
            }
            self.signals.end_round();
        }
    }

    fn update_aggregation(&mut self, path: &Path, ack: &Ack) {
        if ack.rate.is_some() && ack.delivered > 0 {
            let full = self.pipe.ever();
            let half = if full { HALF_ROUNDS } else { self.params.startup_extra_acked_rounds };
            let (bw, cwnd) = (self.bw(), self.window.get());
            self.aggregation.observe(path, ack, bw, cwnd, self.scale, (&self.rounds, half));
        }
    }

    fn update_gains(&mut self) {
        let Params { startup_pacing_gain, startup_cwnd_gain, drain_pacing_gain, cwnd_gain, .. } =
            self.params;
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (startup_pacing_gain, startup_cwnd_gain),
            State::Drain => (drain_pacing_gain, startup_cwnd_gain),
            State::Down => (self.probing.down_pacing_gain, cwnd_gain),
            State::Up => (self.probing.up_pacing_gain, self.probing.up_cwnd_gain),
            State::ProbeBw | State::Cruise | State::Refill => (1.0, cwnd_gain),
            State::ProbeRtt => (1.0, self.params.probe_rtt_bdp),
        };
    }

    /// SetCwnd.
    fn update_window(&mut self, path: &Path, ack: &Ack) {
        if ack.delivered > 0 {
            let bdp = self.scale.bdp(self.bw(), self.probe_rtt.min_rtt(), self.cwnd_gain);
            let extra = self.aggregation.extra_acked(self.bw(), self.scale);
            let target = self.with_allowance(bdp + extra);
            let early = (path.delivered as f64) < self.scale.initial_window;
            self.window.approach(target, ack.delivered, self.pipe.ever(), early);
        }
        if self.state == State::ProbeRtt {
            self.window.cap(self.probe_rtt_cwnd());
        }
        self.window.cap(self.volume_cap());
    }

    /// Half a BDP.
    fn probe_rtt_cwnd(&self) -> f64 {
        let gain = self.params.probe_rtt_bdp;
        at_least_minimum(self.scale.bdp(self.bw(), self.probe_rtt.min_rtt(), gain))
    }

    /// BoundCwndForModel.
    fn volume_cap(&self) -> f64 {
        let long_term = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Cruise | State::ProbeRtt => self.bounds.with_headroom(self.caution.headroom),
            State::ProbeBw | State::Down | State::Refill | State::Up => self.bounds.inflight_hi(),
        };
        long_term.min(self.bounds.inflight_lo())
    }

    fn end_recovery(&mut self, path: &Path) {
        if is_recovery(self.before) && !is_recovery(path.phase) {
            self.window.restore();
        }
        self.before = path.phase;
    }
}

impl CongestionControl for BoundedBbr {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let rate = ack.rate.as_ref();
        self.end_recovery(path);
        self.ecn.observe(ack);
        self.update_rounds(path, rate);
        self.update_signals(path, ack, rate);
        self.update_aggregation(path, ack);
        self.update_startup(path, ack, rate);
        self.update_drain(path);
        self.update_probe_bw(path, ack, rate);
        self.update_min_rtt(path, ack);
        if let Some(rate) = rate {
            self.signals.advance(rate);
            self.signals.loss_in_cycle |= rate.lost > 0;
        }
        self.signals.ecn_in_cycle |= ack.marked > 0;
        self.update_gains();

        self.pacing.meet(path.srtt, self.window.get(), self.scale);
        self.pacing.set(self.bw(), self.pacing_gain, self.pipe.ever());
        self.update_window(path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &Congestion) {
        if event.new_episode {
            self.save();
        }
        match event.signal {
            Signal::Loss | Signal::Nak => self.on_loss(path, event),
            Signal::Timeout => self.on_timeout(path, event),
            // Marks are counted where they are acknowledged.
            Signal::Ecn => {}
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.window.get(),
            ssthresh: self.ssthresh,
            pacing_rate: Some(self.pacing.rate()),
            burst: Some(LEAST_BURST as u32),
        }
    }

    fn on_established(&mut self, path: &Path) {
        self.probe_rtt.observe(path.now, path.min_rtt);
        self.pacing.meet(path.srtt, self.window.get(), self.scale);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.pacing.on_sent(path.now, self.scale);
        if !(sent.from_idle && sent.app_limited) {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(path.now);
        if self.state.is_probe_bw() {
            self.pacing.set(self.bw(), 1.0, self.pipe.ever());
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_time_over(path.now) {
            self.exit_probe_rtt(path);
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.undo(path);
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        let min_rtt = self.probe_rtt.min_rtt().unwrap_or(Span::ZERO);
        let values = [
            ("state", f64::from(self.state.number())),
            ("bw", self.bw().bytes_per_sec()),
            ("max_bw", self.max_bw.get().bytes_per_sec()),
            ("bw_lo", self.bounds.bw_lo().bytes_per_sec()),
            ("min_rtt", min_rtt.as_secs_f64()),
            ("pacing_gain", self.pacing_gain),
            ("cwnd_gain", self.cwnd_gain),
            ("inflight_hi", self.bounds.inflight_hi()),
            ("inflight_lo", self.bounds.inflight_lo()),
            ("extra_acked", self.aggregation.extra_acked(self.bw(), self.scale)),
            ("round", self.rounds.count() as f64),
            ("full_bw_reached", f64::from(u8::from(self.pipe.ever()))),
        ];
        values.into_iter().for_each(|(name, value)| show(Inspect { name, value }));
    }
}

#[cfg(test)]
mod tests;
