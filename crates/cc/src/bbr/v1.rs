//! BBRv1, as Linux 6.18 has it: rules that take no heed of loss.
//!
//! Where it differs from draft-cardwell-iccrg-bbr-congestion-control-00, Linux is followed: the
//! long-term bandwidth, the widening for aggregation, the allowance for offload in the window
//! (three bursts, rounded up to an even number, and 2 more while probing), packets in flight counted
//! at the next departure.
//! What Linux knows and a transport here does not tell: that an acknowledgement may have been
//! delayed, which Linux says only of a lone short segment.

use super::State;
use super::cycle::{GainCycle, Progress};
use super::frame::{Bbr, Frame, Rules, inflight};
use super::policer::{Evidence, Policer};
use super::recovery::{Conservation, is_recovery};
use super::version::V1;
use crate::filters::WindowedMax;
use crate::{Ack, CaState, CongestionEvent, ConnectionConfig, Metric, Path, Signal};
use dumbbell_units::Rate;

/// Rounds over which the greatest delivery rate is taken: a cycle of gains and two.
const BW_ROUNDS: u64 = 10;
/// Until so many packets are delivered, the window grows whatever its target.
const EARLY: u64 = 10;

/// BBRv1.
pub type BbrV1 = Bbr<Unbounded>;

/// Rules that take no heed of loss.
#[derive(Clone, Debug)]
pub struct Unbounded {
    max_bw: WindowedMax<f64>,
    policer: Policer,
    cycle: GainCycle,
    conservation: Conservation,
}

impl BbrV1 {
    /// The algorithm at the beginning of a connection.
    pub fn new(init: &ConnectionConfig) -> BbrV1 {
        let rules = Unbounded {
            max_bw: WindowedMax::new(BW_ROUNDS, 0, 0.0),
            policer: Policer::default(),
            cycle: GainCycle::default(),
            conservation: Conservation::default(),
        };
        Bbr { frame: Frame::new(V1, init), rules }
    }
}

impl Unbounded {
    fn update_policer(&mut self, frame: &mut Frame, path: &Path, loss: bool, app_limited: bool) {
        let evidence = Evidence {
            loss,
            app_limited,
            round_start: frame.rounds.just_began(),
            probe_bw: frame.state == State::ProbeBw,
        };
        let was_policed = self.policer.bw().is_some();
        if self.policer.observe(path, evidence) {
            self.enter_probe_bw(frame, path);
        } else if !was_policed && self.policer.bw().is_some() {
            frame.pacing_gain = 1.0;
        }
    }

    fn update_cycle(&mut self, frame: &Frame, path: &Path, ack: &Ack) {
        if frame.state != State::ProbeBw {
            return;
        }
        let progress = Progress {
            delivered_at: path.delivered_at,
            min_rtt: frame.probe_rtt.min_rtt(),
            loss: ack.lost > 0,
            in_network: frame.in_network(path, ack.prior_in_flight, self.bw()),
            probe_target: inflight(self, frame, self.max_bw(), frame.pacing_gain),
            drain_target: inflight(self, frame, self.max_bw(), 1.0),
        };
        if self.cycle.is_over(frame.pacing_gain, &progress) {
            self.cycle.advance(path.delivered_at);
        }
    }

    fn target_cwnd(&self, frame: &Frame) -> f64 {
        let bdp = frame.bdp(self.bw(), frame.cwnd_gain);
        let extra = if frame.pipe.ever() { frame.extra_acked(self.bw()) } else { 0.0 };
        frame.with_allowance(bdp + extra, self.is_raising(frame))
    }
}

impl Rules for Unbounded {
    fn bw(&self) -> Rate {
        self.policer.bw().unwrap_or_else(|| self.max_bw())
    }

    fn max_bw(&self) -> Rate {
        Rate::from_bytes_per_sec(self.max_bw.get())
    }

    fn is_raising(&self, frame: &Frame) -> bool {
        frame.state == State::ProbeBw && self.cycle.is_probing()
    }

    fn before(&self) -> CaState {
        self.conservation.before()
    }

    fn update_model(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        let Some(rate) = &ack.rate else {
            frame.rounds.no_sample();
            return;
        };
        if frame.rounds.update(rate.send_state.delivered, path.delivered) {
            self.conservation.end_round();
        }
        let app_limited = frame.probe_rtt.limits(rate);
        self.update_policer(frame, path, ack.lost > 0, app_limited);
        if !app_limited || rate.rate >= self.max_bw() {
            self.max_bw.update(frame.rounds.count(), rate.rate.bytes_per_sec());
        }
    }

    /// The cycle of gains advances here, before Drain ends and the cycle begins, as in Linux.
    fn update_full_pipe(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        self.update_cycle(frame, path, ack);
        let app_limited = ack.rate.as_ref().is_some_and(|rate| frame.probe_rtt.limits(rate));
        if !frame.pipe.ever() && frame.rounds.just_began() && !app_limited {
            frame.pipe.observe(self.max_bw());
        }
    }

    fn enter_probe_bw(&mut self, frame: &mut Frame, path: &Path) {
        frame.state = State::ProbeBw;
        self.cycle.start(&mut frame.random, path.delivered_at);
    }

    fn after_probe_rtt(&mut self, frame: &mut Frame, path: &Path) {
        if frame.pipe.ever() {
            self.enter_probe_bw(frame, path);
        }
    }

    fn gains(&mut self, frame: &Frame) -> (f64, f64) {
        let params = &frame.params;
        match frame.state {
            State::Startup => (params.startup_pacing_gain, params.startup_cwnd_gain),
            State::Drain => (params.drain_pacing_gain, params.startup_cwnd_gain),
            State::ProbeBw if self.policer.bw().is_some() => (1.0, params.cwnd_gain),
            State::ProbeBw => (self.cycle.gain(), params.cwnd_gain),
            // The other states are not BBRv1's.
            _ => (1.0, 1.0),
        }
    }

    fn update_window(&mut self, frame: &mut Frame, path: &Path, ack: &Ack) {
        if ack.delivered > 0 {
            let recovery = self.conservation.apply(path, ack, &mut frame.window);
            if recovery.began {
                frame.rounds.restart(path.delivered);
            }
            if !recovery.conserved {
                let (target, full) = (self.target_cwnd(frame), frame.pipe.ever());
                frame.window.approach(target, ack.delivered, full, path.delivered < EARLY);
            }
        }
        if frame.state == State::ProbeRtt {
            frame.window.cap(frame.probe_rtt_cwnd(self.bw()));
        }
    }

    fn on_congestion(&mut self, frame: &mut Frame, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            let cut = is_recovery(self.before()) || frame.state == State::ProbeRtt;
            frame.window.save(cut);
        }
        if event.signal == Signal::Timeout {
            self.conservation.on_timeout(path, &mut frame.window);
            frame.pipe.restart(Rate::ZERO);
            frame.rounds.force();
            self.update_policer(frame, path, true, false);
        }
    }

    fn on_spurious_loss(&mut self, frame: &mut Frame, path: &Path) {
        frame.pipe.restart(Rate::ZERO);
        self.policer.reset(path);
    }

    fn inspect(&self, _frame: &Frame, show: &mut dyn FnMut(Metric)) {
        let policed = f64::from(u8::from(self.policer.bw().is_some()));
        show(Metric { name: "policed", value: policed });
    }
}

#[cfg(test)]
mod tests;
