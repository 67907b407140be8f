//! What all versions have, and the order of steps on every event.
//!
//! [`Bbr`] is a [`Frame`], which is the same in all versions, and [`Rules`], of which there are two
//! kinds: [`Unbounded`](super::v1::Unbounded) takes no heed of loss (BBRv1), [`Bounded`](super::bounded::Bounded)
//! lets loss and ECN bound the model (BBRv2, F-BBRv2, BBRv3). The numbers are in
//! [`version`](super::version).

use super::State;
use super::aggregation::{Aggregation, HALF_ROUNDS};
use super::drain;
use super::model::{Scale, at_least_minimum};
use super::pacing::Pacing;
use super::probe_rtt::ProbeRtt;
use super::startup::FullPipe;
use super::version::{Allowance, Params};
use super::window::Window;
use crate::filters::Rounds;
use crate::{
    Ack, CaState, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Metric,
    Path, Sent,
};
use dumbbell_units::{Rate, Span};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

/// BBR of some version.
#[derive(Clone, Debug)]
pub struct Bbr<R> {
    pub(super) frame: Frame,
    pub(super) rules: R,
}

/// What all versions have.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(super) params: Params,
    pub(super) scale: Scale,
    pub(super) random: SplitMix64,
    pub(super) state: State,
    pub(super) pacing_gain: f64,
    pub(super) cwnd_gain: f64,
    pub(super) rounds: Rounds,
    pub(super) pipe: FullPipe,
    pub(super) drain_began: u64,
    pub(super) probe_rtt: ProbeRtt,
    pub(super) aggregation: Aggregation,
    pub(super) pacing: Pacing,
    pub(super) window: Window,
    pub(super) ssthresh: f64,
    pub(super) idle_restart: bool,
}

/// What differs between versions in kind, not only in number.
pub trait Rules {
    /// The bandwidth to send at.
    fn bw(&self) -> Rate;

    /// The greatest bandwidth of the path.
    fn max_bw(&self) -> Rate;

    /// Whether the flow is in the phase of ProbeBW that puts more in flight.
    fn is_raising(&self, frame: &Frame) -> bool;

    /// The transport's phase at the last acknowledgement or timeout.
    fn before(&self) -> CaState;

    /// Takes what an acknowledgement tells of rounds, bandwidth and congestion.
    fn update_model(&mut self, frame: &mut Frame, path: &Path, ack: &Ack);

    /// Looks whether the pipe is full.
    fn update_full_pipe(&mut self, frame: &mut Frame, path: &Path, ack: &Ack);

    /// Startup is over.
    fn on_drain(&mut self) {}

    /// Drain is over.
    fn enter_probe_bw(&mut self, frame: &mut Frame, path: &Path);

    /// Moves through the phases of ProbeBW, where that comes after Drain.
    fn update_probe_bw(&mut self, _frame: &mut Frame, _path: &Path, _ack: &Ack) {}

    /// ProbeRTT begins.
    fn on_probe_rtt(&mut self, _frame: &mut Frame, _path: &Path) {}

    /// ProbeRTT is over; goes on to ProbeBW if the pipe was ever full.
    fn after_probe_rtt(&mut self, frame: &mut Frame, path: &Path);

    /// The model is up to date: the acknowledgement is over for it.
    fn end_ack(&mut self, _ack: &Ack) {}

    /// The pacing gain and the window gain of the state.
    fn gains(&mut self, frame: &Frame) -> (f64, f64);

    /// Sets the window.
    fn update_window(&mut self, frame: &mut Frame, path: &Path, ack: &Ack);

    /// The network signalled congestion.
    fn on_congestion(&mut self, frame: &mut Frame, path: &Path, event: &CongestionEvent);

    /// The last episode of loss was spurious.
    fn on_spurious_loss(&mut self, frame: &mut Frame, path: &Path);

    /// Shows what only these rules have.
    fn inspect(&self, frame: &Frame, show: &mut dyn FnMut(Metric));
}

impl Frame {
    /// A connection at its beginning.
    pub fn new(params: Params, init: &ConnectionConfig) -> Frame {
        let scale = Scale { mss: f64::from(init.mss), initial_window: init.initial_window };
        Frame {
            params,
            scale,
            random: SplitMix64::seed_from_u64(init.seed),
            state: State::Startup,
            pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.startup_cwnd_gain,
            rounds: Rounds::default(),
            pipe: FullPipe::default(),
            drain_began: 0,
            probe_rtt: ProbeRtt::new(&params, init.now),
            aggregation: Aggregation::new(init.now),
            pacing: Pacing::new(scale, params.startup_pacing_gain, init.now),
            window: Window::new(scale),
            ssthresh: f64::INFINITY,
            idle_restart: false,
        }
    }

    fn least_burst(&self) -> f64 {
        let slow = self.pacing.rate().bits_per_sec() < self.params.one_packet_below;
        if slow { 1.0 } else { 2.0 }
    }

    fn burst(&self) -> f64 {
        self.scale.burst(self.pacing.rate(), self.least_burst())
    }

    /// Packets that must be in flight for `packets` to be in the network: three bursts are
    /// elsewhere, one in the sender's queue, one in its segmentation, one in the receiver's
    /// reassembly. Two more while `raising`, so that even a small BDP is exceeded.
    pub fn with_allowance(&self, packets: f64, raising: bool) -> f64 {
        let bursts = 3.0 * self.burst();
        let enough = match self.params.allowance {
            Allowance::Added => libm::ceil((packets + bursts) / 2.0) * 2.0,
            Allowance::AtLeast => at_least_minimum(packets.max(bursts)),
        };
        if raising { enough + 2.0 } else { enough }
    }

    /// `gain` times the BDP at `bw`, without allowances.
    pub fn bdp(&self, bw: Rate, gain: f64) -> f64 {
        self.scale.bdp(bw, self.probe_rtt.min_rtt(), gain)
    }

    /// Packets of `in_flight` that are in the network when the next one departs.
    pub fn in_network(&self, path: &Path, in_flight: u32, bw: Rate) -> f64 {
        let burst = (self.pacing_gain > 1.0).then(|| self.burst());
        self.pacing.in_network(in_flight, path.now, bw, burst, self.scale)
    }

    /// The window of ProbeRTT.
    pub fn probe_rtt_cwnd(&self, bw: Rate) -> f64 {
        let gain = self.params.probe_rtt_bdp;
        at_least_minimum(if gain > 0.0 { self.bdp(bw, gain) } else { 0.0 })
    }

    /// Packets by which the window is widened for acknowledgements that come in clumps.
    pub fn extra_acked(&self, bw: Rate) -> f64 {
        self.aggregation.extra_acked(bw, self.scale)
    }

    fn update_aggregation(&mut self, path: &Path, ack: &Ack, bw: Rate) {
        if ack.rate.is_some() && ack.delivered > 0 {
            let full = self.pipe.ever();
            let half = if full { HALF_ROUNDS } else { self.params.startup_extra_acked_rounds };
            let (cwnd, rounds) = (self.window.get(), (&self.rounds, half));
            self.aggregation.observe(path, ack, bw, cwnd, self.scale, rounds);
        }
    }

    /// Begins to pace by the first round-trip time.
    fn meet(&mut self, path: &Path) {
        self.pacing.meet(path.srtt, self.window.get(), self.scale);
    }
}

/// Packets to have in flight at `gain * bw` for an empty queue.
pub fn inflight<R: Rules>(rules: &R, frame: &Frame, bw: Rate, gain: f64) -> f64 {
    frame.with_allowance(frame.bdp(bw, gain), rules.is_raising(frame))
}

impl<R: Rules> Bbr<R> {
    fn update_drain(&mut self, path: &Path) {
        let Bbr { frame, rules } = self;
        if frame.state == State::Startup && frame.pipe.ever() {
            frame.state = State::Drain;
            frame.drain_began = frame.rounds.count();
            frame.ssthresh = inflight(rules, frame, rules.max_bw(), 1.0);
            rules.on_drain();
        }
        if frame.state == State::Drain {
            let in_network = frame.in_network(path, path.in_flight, rules.bw());
            let target = inflight(rules, frame, rules.max_bw(), 1.0);
            let spent = frame.rounds.count() - frame.drain_began;
            if drain::is_over(in_network, target, spent, frame.params.drain_rounds) {
                rules.enter_probe_bw(frame, path);
            }
        }
    }

    fn update_min_rtt(&mut self, path: &Path, ack: &Ack) {
        let Bbr { frame, rules } = self;
        let expired = frame.probe_rtt.observe(path, ack.rtt);
        if expired && !frame.idle_restart && frame.state != State::ProbeRtt {
            frame.state = State::ProbeRtt;
            // The greater of this window and the last one that was saved, as the state is ProbeRTT
            // by now (bbr_save_cwnd, and the draft's EnterProbeRTT).
            frame.window.save(true);
            frame.probe_rtt.enter(path);
            rules.on_probe_rtt(frame, path);
        }
        if frame.state == State::ProbeRtt {
            let most = frame.probe_rtt_cwnd(rules.bw());
            if frame.probe_rtt.hold(path, most, &mut frame.rounds) {
                self.exit_probe_rtt(path);
            }
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.frame.idle_restart = false;
        }
    }

    fn exit_probe_rtt(&mut self, path: &Path) {
        self.frame.probe_rtt.exit(path);
        self.frame.window.restore();
        self.frame.state = State::Startup;
        self.rules.after_probe_rtt(&mut self.frame, path);
    }
}

impl<R: Rules> CongestionControl for Bbr<R> {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.rules.update_model(&mut self.frame, path, ack);
        self.frame.update_aggregation(path, ack, self.rules.bw());
        self.rules.update_full_pipe(&mut self.frame, path, ack);
        self.update_drain(path);
        self.rules.update_probe_bw(&mut self.frame, path, ack);
        self.update_min_rtt(path, ack);
        self.rules.end_ack(ack);

        let Bbr { frame, rules } = self;
        (frame.pacing_gain, frame.cwnd_gain) = rules.gains(frame);
        frame.meet(path);
        frame.pacing.set(rules.bw(), frame.pacing_gain, frame.pipe.ever());
        rules.update_window(frame, path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.rules.on_congestion(&mut self.frame, path, event);
    }

    fn control(&self) -> ControlParameters {
        ControlParameters {
            cwnd: self.frame.window.get(),
            ssthresh: self.frame.ssthresh,
            pacing_rate: Some(self.frame.pacing.rate()),
            min_send_quantum: Some(self.frame.least_burst() as u32),
        }
    }

    fn on_established(&mut self, path: &Path) {
        self.frame.probe_rtt.observe(path, path.min_rtt);
        self.frame.meet(path);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        let frame = &mut self.frame;
        frame.pacing.on_sent(path.now, frame.scale);
        if !(sent.from_idle && sent.app_limited) {
            return;
        }
        frame.idle_restart = true;
        frame.aggregation.restart(path.now);
        if frame.state.is_probe_bw() {
            frame.pacing.set(self.rules.bw(), 1.0, frame.pipe.ever());
        } else if frame.state == State::ProbeRtt && frame.probe_rtt.is_time_over(path) {
            self.exit_probe_rtt(path);
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.rules.on_spurious_loss(&mut self.frame, path);
    }

    fn on_receive_window_penalty(&mut self, _path: &Path) {
        self.frame.window.set(self.frame.window.get() / 2.0);
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let (frame, bw) = (&self.frame, self.rules.bw());
        let min_rtt = frame.probe_rtt.min_rtt().unwrap_or(Span::ZERO);
        let values = [
            ("state", f64::from(frame.state.number())),
            ("bw", bw.bytes_per_sec()),
            ("max_bw", self.rules.max_bw().bytes_per_sec()),
            ("min_rtt", min_rtt.as_secs_f64()),
            ("pacing_gain", frame.pacing_gain),
            ("cwnd_gain", frame.cwnd_gain),
            ("extra_acked", frame.extra_acked(bw)),
            ("round", frame.rounds.count() as f64),
            ("full_bw_reached", f64::from(u8::from(frame.pipe.ever()))),
        ];
        values.into_iter().for_each(|(name, value)| show(Metric { name, value }));
        self.rules.inspect(frame, show);
    }
}
