//! BBRv1, as Linux 6.18 has it: the order of steps on every acknowledgement.
//!
//! Where it differs from draft-cardwell-iccrg-bbr-congestion-control-00, Linux is followed: the
//! long-term bandwidth, the widening for aggregation, the allowance for offload in the window
//! (three bursts, rounded up to an even number, and 2 more while probing), packets in flight counted
//! at the next departure.
//! What Linux knows and a transport here does not tell: that an acknowledgement may have been
//! delayed, which Linux says only of a lone short segment.

use super::State;
use super::aggregation::{Aggregation, HALF_ROUNDS};
use super::cycle::{GainCycle, Progress};
use super::drain;
use super::model::{Scale, at_least_minimum};
use super::pacing::Pacing;
use super::params::{MIN_CWND, Params};
use super::policer::{Evidence, Policer};
use super::probe_rtt::ProbeRtt;
use super::recovery::{Conservation, is_recovery};
use super::startup::FullPipe;
use super::window::Window;
use crate::meters::{Rounds, WindowedMax};
use crate::{Ack, Congestion, CongestionControl, Control, Init, Inspect, Path, Sent, Signal};
use dumbbell_units::{Rate, Span};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

/// Rounds over which the greatest delivery rate is taken: a cycle of gains and two.
const BW_ROUNDS: u64 = 10;
/// Until so many packets are delivered, the window grows whatever its target.
const EARLY: u64 = 10;
/// Below this pacing rate packets are sent one by one.
const ONE_BY_ONE_BELOW: f64 = 1.2e6;

/// BBRv1.
#[derive(Clone, Debug)]
pub struct BbrV1 {
    params: Params,
    scale: Scale,
    random: SplitMix64,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: Rounds,
    max_bw: WindowedMax<f64>,
    policer: Policer,
    pipe: FullPipe,
    cycle: GainCycle,
    probe_rtt: ProbeRtt,
    aggregation: Aggregation,
    conservation: Conservation,
    pacing: Pacing,
    window: Window,
    ssthresh: f64,
    idle_restart: bool,
}

impl BbrV1 {
    /// The algorithm at the beginning of a connection.
    pub fn new(init: &Init) -> BbrV1 {
        let params = Params::V1;
        let scale = Scale { mss: f64::from(init.mss), initial_window: init.initial_window };
        BbrV1 {
            params,
            scale,
            random: SplitMix64::seed_from_u64(init.seed),
            state: State::Startup,
            pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.startup_cwnd_gain,
            rounds: Rounds::default(),
            max_bw: WindowedMax::new(BW_ROUNDS, 0, 0.0),
            policer: Policer::default(),
            pipe: FullPipe::default(),
            cycle: GainCycle::default(),
            probe_rtt: ProbeRtt::new(&params, init.now),
            aggregation: Aggregation::new(init.now),
            conservation: Conservation::default(),
            pacing: Pacing::new(scale, params.startup_pacing_gain, init.now),
            window: Window::new(scale),
            ssthresh: f64::INFINITY,
            idle_restart: false,
        }
    }

    fn max_bw(&self) -> Rate {
        Rate::from_bytes_per_sec(self.max_bw.get())
    }

    fn bw(&self) -> Rate {
        self.policer.bw().unwrap_or_else(|| self.max_bw())
    }

    fn burst(&self) -> f64 {
        self.scale.burst(self.pacing.rate(), self.least_burst())
    }

    fn least_burst(&self) -> f64 {
        if self.pacing.rate().bits_per_sec() < ONE_BY_ONE_BELOW { 1.0 } else { 2.0 }
    }

    /// Packets that must be in flight for `packets` to be in the network: three bursts more, for one
    /// is in the sender's queue, one in its segmentation, one in the receiver's reassembly; even,
    /// for a receiver that acknowledges every other packet.
    fn with_allowance(&self, packets: f64) -> f64 {
        let even = libm::ceil((packets + 3.0 * self.burst()) / 2.0) * 2.0;
        let probing = self.state == State::ProbeBw && self.cycle.is_probing();
        if probing { even + 2.0 } else { even }
    }

    fn inflight(&self, gain: f64) -> f64 {
        self.with_allowance(self.scale.bdp(self.max_bw(), self.probe_rtt.min_rtt(), gain))
    }

    fn in_network(&self, path: &Path, in_flight: u32) -> f64 {
        let burst = (self.pacing_gain > 1.0).then(|| self.burst());
        self.pacing.in_network(in_flight, path.now, self.bw(), burst, self.scale)
    }

    fn update_bw(&mut self, path: &Path, ack: &Ack) {
        let Some(rate) = &ack.rate else {
            self.rounds.no_sample();
            return;
        };
        if self.rounds.update(rate.stamp.delivered, path.delivered) {
            self.conservation.end_round();
        }
        let app_limited = self.probe_rtt.limits(rate);
        self.update_policer(path, ack.lost > 0, app_limited);
        if !app_limited || rate.rate >= self.max_bw() {
            self.max_bw.update(self.rounds.count(), rate.rate.bytes_per_sec());
        }
    }

    fn update_policer(&mut self, path: &Path, loss: bool, app_limited: bool) {
        let evidence = Evidence {
            loss,
            app_limited,
            round_start: self.rounds.just_began(),
            probe_bw: self.state == State::ProbeBw,
        };
        let was_policed = self.policer.bw().is_some();
        if self.policer.observe(path, evidence) {
            self.enter_probe_bw(path);
        } else if !was_policed && self.policer.bw().is_some() {
            self.pacing_gain = 1.0;
        }
    }

    fn update_cycle(&mut self, path: &Path, ack: &Ack) {
        if self.state != State::ProbeBw {
            return;
        }
        let progress = Progress {
            delivered_at: path.delivered_at,
            min_rtt: self.probe_rtt.min_rtt(),
            loss: ack.lost > 0,
            in_network: self.in_network(path, ack.prior_in_flight),
            probe_target: self.inflight(self.pacing_gain),
            drain_target: self.inflight(1.0),
        };
        if self.cycle.is_over(self.pacing_gain, &progress) {
            self.cycle.advance(path.delivered_at);
        }
    }

    fn update_full_pipe(&mut self, ack: &Ack) {
        let app_limited = ack.rate.as_ref().is_some_and(|rate| self.probe_rtt.limits(rate));
        if !self.pipe.ever() && self.rounds.just_began() && !app_limited {
            self.pipe.observe(self.max_bw());
        }
    }

    fn update_drain(&mut self, path: &Path) {
        if self.state == State::Startup && self.pipe.ever() {
            self.state = State::Drain;
            self.ssthresh = self.inflight(1.0);
        }
        if self.state == State::Drain {
            let in_network = self.in_network(path, path.in_flight);
            if drain::is_over(in_network, self.inflight(1.0), 0, self.params.drain_rounds) {
                self.enter_probe_bw(path);
            }
        }
    }

    fn update_min_rtt(&mut self, path: &Path, ack: &Ack) {
        let expired = self.probe_rtt.observe(path.now, ack.rtt);
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.window.save(is_recovery(self.conservation.before()));
            self.probe_rtt.enter(path);
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

    fn probe_rtt_cwnd(&self) -> f64 {
        let min_rtt = self.probe_rtt.min_rtt();
        at_least_minimum(self.params.probe_rtt_bdp * self.scale.bdp(self.bw(), min_rtt, 1.0))
    }

    fn exit_probe_rtt(&mut self, path: &Path) {
        self.probe_rtt.exit(path.now);
        self.window.restore();
        if self.pipe.ever() {
            self.enter_probe_bw(path);
        } else {
            self.state = State::Startup;
        }
    }

    fn enter_probe_bw(&mut self, path: &Path) {
        self.state = State::ProbeBw;
        self.cycle.start(&mut self.random, path.delivered_at);
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (self.params.startup_pacing_gain, self.params.startup_cwnd_gain),
            State::Drain => (self.params.drain_pacing_gain, self.params.startup_cwnd_gain),
            State::ProbeBw if self.policer.bw().is_some() => (1.0, self.params.cwnd_gain),
            State::ProbeBw => (self.cycle.gain(), self.params.cwnd_gain),
            // The other states are not BBRv1's.
            _ => (1.0, 1.0),
        };
    }

    fn update_window(&mut self, path: &Path, ack: &Ack) {
        if ack.delivered > 0 {
            let recovery = self.conservation.apply(path, ack, &mut self.window);
            if recovery.began {
                self.rounds.restart(path.delivered);
            }
            if !recovery.conserved {
                let full = self.pipe.ever();
                self.window.approach(
                    self.target_cwnd(),
                    ack.delivered,
                    full,
                    path.delivered < EARLY,
                );
            }
        }
        if self.state == State::ProbeRtt {
            self.window.cap(MIN_CWND);
        }
    }

    fn target_cwnd(&self) -> f64 {
        let bdp = self.scale.bdp(self.bw(), self.probe_rtt.min_rtt(), self.cwnd_gain);
        let extra = if self.pipe.ever() { self.extra_acked() } else { 0.0 };
        self.with_allowance(bdp + extra)
    }

    fn extra_acked(&self) -> f64 {
        self.aggregation.extra_acked(self.bw(), self.scale)
    }
}

impl CongestionControl for BbrV1 {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.update_bw(path, ack);
        if ack.rate.is_some() && ack.delivered > 0 {
            let (bw, cwnd) = (self.bw(), self.window.get());
            let rounds = (&self.rounds, HALF_ROUNDS);
            self.aggregation.observe(path, ack, bw, cwnd, self.scale, rounds);
        }
        self.update_cycle(path, ack);
        self.update_full_pipe(ack);
        self.update_drain(path);
        self.update_min_rtt(path, ack);
        self.update_gains();

        self.pacing.meet(path.srtt, self.window.get(), self.scale);
        self.pacing.set(self.bw(), self.pacing_gain, self.pipe.ever());
        self.update_window(path, ack);
    }

    fn on_congestion(&mut self, path: &Path, event: &Congestion) {
        if event.new_episode {
            let cut = is_recovery(self.conservation.before()) || self.state == State::ProbeRtt;
            self.window.save(cut);
        }
        if event.signal == Signal::Timeout {
            self.conservation.on_timeout(path, &mut self.window);
            self.pipe.restart(Rate::ZERO);
            self.rounds.force();
            self.update_policer(path, true, false);
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.window.get(),
            ssthresh: self.ssthresh,
            pacing_rate: Some(self.pacing.rate()),
            burst: Some(self.least_burst() as u32),
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
        if self.state == State::ProbeBw {
            self.pacing.set(self.bw(), 1.0, self.pipe.ever());
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_time_over(path.now) {
            self.exit_probe_rtt(path);
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.pipe.restart(Rate::ZERO);
        self.policer.reset(path);
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        let min_rtt = self.probe_rtt.min_rtt().unwrap_or(Span::ZERO);
        let values = [
            ("state", f64::from(self.state.number())),
            ("bw", self.bw().bytes_per_sec()),
            ("max_bw", self.max_bw.get()),
            ("min_rtt", min_rtt.as_secs_f64()),
            ("pacing_gain", self.pacing_gain),
            ("cwnd_gain", self.cwnd_gain),
            ("extra_acked", self.extra_acked()),
            ("round", self.rounds.count() as f64),
            ("full_bw_reached", f64::from(u8::from(self.pipe.ever()))),
            ("policed", f64::from(u8::from(self.policer.bw().is_some()))),
        ];
        values.into_iter().for_each(|(name, value)| show(Inspect { name, value }));
    }
}

#[cfg(test)]
mod tests;
