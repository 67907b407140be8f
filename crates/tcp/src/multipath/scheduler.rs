//! Schedulers: which subflow takes the next packets.
//!
//! `default` is [Linux's](super::default_scheduler). The others are those of the MPTCP project's Linux,
//! v0.95, and choose among available subflows with space in their windows:
//!
//! - `lowest-rtt` (the default there): the subflow with the lowest smoothed RTT.
//! - `round-robin`: one packet each in turn.
//! - `redundant`: every packet is sent on every subflow (`mptcp_redundant.c`).
//! - `blest` (Ferlin et al., IFIP Networking 2016; `mptcp_blest.c`): as `lowest-rtt`, but skips a slower
//!   subflow if the receive window would then block the fastest one. The estimate of what the fastest
//!   one sends is scaled by lambda: 1.2 at first, +4 % after an RTT in which the window blocked,
//!   otherwise -1 %, within 1.0 to 1.3.
//! - `ecf` (Lim et al., CoNEXT 2017; `mptcp_ecf.c`): as `lowest-rtt`, but skips a slower subflow if the
//!   fastest one would complete the backlog earlier. The backlog ends with the connection's send buffer,
//!   the sum of those of the subflows (`mptcp_update_sndbuf`), which are twice their windows.

use super::default_scheduler::{DefaultScheduler, sndbuf};
use super::subflow_sender::SubflowSender;
use crate::Sender;
use dumbbell_units::{Span, Time};

/// How packets are assigned to subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The queue that drains first, as Linux.
    #[default]
    Default,
    /// Lowest round-trip time first.
    LowestRtt,
    /// In turn.
    RoundRobin,
    /// Every packet on every subflow.
    Redundant,
    /// Lowest RTT, without blocking the receive window.
    Blest,
    /// Earliest completion first.
    Ecf,
}

impl Scheduler {
    /// The names that [`Scheduler::named`] knows, the default first.
    pub const NAMES: &[&str] =
        &["default", "lowest-rtt", "round-robin", "redundant", "blest", "ecf"];

    /// The scheduler of that name, if there is one.
    pub fn named(name: &str) -> Option<Scheduler> {
        match name {
            "default" => Some(Scheduler::Default),
            "lowest-rtt" => Some(Scheduler::LowestRtt),
            "round-robin" => Some(Scheduler::RoundRobin),
            "redundant" => Some(Scheduler::Redundant),
            "blest" => Some(Scheduler::Blest),
            "ecf" => Some(Scheduler::Ecf),
            _ => None,
        }
    }
}

/// The connection's backlog, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Data available and not assigned to a subflow.
    pub(super) unsent: u64,
    /// The receive window.
    pub(super) window: u64,
    /// The part of it that is free.
    pub(super) open: u64,
    /// The next byte to be assigned.
    pub(super) next_seq: u64,
}

impl Backlog {
    /// The part of the unsent data that a send buffer of this size holds.
    fn unsent_within(self, sndbuf: u64) -> u64 {
        self.unsent.min(sndbuf.saturating_sub(self.window - self.open))
    }
}

/// A scheduler and its state.
#[derive(Debug)]
pub(super) struct SchedulerState {
    pub(super) scheduler: Scheduler,
    /// The state of Linux's default scheduler, if it is that.
    pub(super) default: Option<DefaultScheduler>,
    next_turn: usize,
    blest: Blest,
    /// ECF is waiting for the fastest subflow.
    ecf_waiting: bool,
    /// The connection's send buffer so far, bytes, for ECF.
    sndbuf: u64,
}

impl SchedulerState {
    pub(super) fn new(scheduler: Scheduler) -> SchedulerState {
        let default = (scheduler == Scheduler::Default).then(DefaultScheduler::default);
        let blest = Blest::default();
        SchedulerState { scheduler, default, next_turn: 0, blest, ecf_waiting: false, sndbuf: 0 }
    }

    /// Whether a subflow with space may retransmit the packet that blocks the receive window.
    pub(super) fn is_opportunistic(&self) -> bool {
        matches!(self.scheduler, Scheduler::LowestRtt | Scheduler::Blest | Scheduler::Ecf)
    }

    /// The receive window blocked.
    pub(super) fn on_blocked(&mut self) {
        self.blest.blocked = true;
    }

    /// The subflow for the next data, and the most bytes that it takes.
    #[inline]
    pub(super) fn select_subflow<'a>(
        &mut self,
        now: Time,
        subflows: impl ExactSizeIterator<Item = &'a SubflowSender> + Clone,
        backlog: Backlog,
    ) -> Option<(usize, u64)> {
        if let Some(default) = &mut self.default {
            return default.select_subflow(now, subflows, backlog);
        }
        let senders = subflows.map(|subflow| &subflow.sender);
        let mss = u64::from(senders.clone().next()?.stack().mss);
        let (at, packets) = self.select_available(now, senders, backlog, mss)?;
        Some((at, u64::from(packets) * mss))
    }

    /// The available subflow for the next packets, and the most that it takes.
    fn select_available<'a>(
        &mut self,
        now: Time,
        subflows: impl ExactSizeIterator<Item = &'a Sender> + Clone,
        backlog: Backlog,
        mss: u64,
    ) -> Option<(usize, u32)> {
        let spaces = subflows.clone().map(|sender| sender.cwnd_space(now)).enumerate();
        if self.scheduler == Scheduler::RoundRobin {
            let count = subflows.len();
            let open = spaces.filter(|&(_, space)| space > 0);
            let from = self.next_turn;
            let (next, _) = open.min_by_key(|&(at, _)| (at + count - from) % count)?;
            self.next_turn = (next + 1) % count;
            return Some((next, 1));
        }
        let srtt = |sender: &Sender| sender.path().srtt.unwrap_or(Span::MAX);
        let open = spaces.zip(subflows.clone()).filter(|((_, space), _)| *space > 0);
        let ((at, space), sender) = open.min_by_key(|(_, sender)| srtt(sender))?;
        if matches!(self.scheduler, Scheduler::LowestRtt | Scheduler::Redundant) {
            return Some((at, space));
        }
        let ready = subflows.clone().enumerate().filter(|(_, sender)| sender.is_established());
        let buffers = ready.clone().map(|(_, sender)| sndbuf(sender)).sum::<u64>();
        self.sndbuf = self.sndbuf.max(buffers.min(sender.stack().tcp_wmem.into()));
        let (fastest_at, fastest) = ready.min_by_key(|(_, sender)| srtt(sender))?;
        self.blest.update_rtts(subflows);
        if srtt(sender) <= srtt(fastest) {
            return Some((at, space));
        }
        let should_wait = match self.scheduler {
            Scheduler::Blest => {
                let fast = (fastest_at, fastest);
                self.blest.blest_waits(now, (at, sender), fast, backlog.window / mss)
            }
            _ => {
                let unsent = backlog.unsent_within(self.sndbuf).div_ceil(mss);
                self.should_wait_ecf(sender, fastest, unsent)
            }
        };
        // One packet: each assignment changes the decision.
        (!should_wait).then_some((at, 1))
    }

    /// ECF's two inequalities, with beta = 1/4.
    fn should_wait_ecf(&mut self, slow: &Sender, fast: &Sender, unsent: u64) -> bool {
        let window = |sender: &Sender| f64::from(sender.cwnd_and_ssthresh().0);
        let secs = |span: Option<Span>| span.unwrap_or(Span::ZERO).as_secs_f64();
        let (cwnd_f, cwnd_s) = (window(fast), window(slow));
        let (rtt_f, rtt_s) = (secs(fast.path().srtt), secs(slow.path().srtt));
        // Linux uses twice the mean deviation.
        let delta = (fast.rtt_deviation().max(slow.rtt_deviation()) * 2).as_secs_f64();
        let unsent = unsent as f64;
        let margin = if self.ecf_waiting { 1.25 } else { 1.0 };
        let by_fast = rtt_f * (unsent.max(cwnd_f) + cwnd_f);
        if by_fast < margin * cwnd_f * (rtt_s + delta) {
            if rtt_s * unsent.max(cwnd_s) >= cwnd_s * (2.0 * rtt_f + delta) {
                self.ecf_waiting = true;
                return true;
            }
        } else {
            self.ecf_waiting = false;
        }
        false
    }
}

/// BLEST's state.
#[derive(Debug)]
struct Blest {
    lambda: f64,
    updated: Time,
    blocked: bool,
    /// Minimum and maximum smoothed RTT of each subflow.
    rtts: Vec<(Span, Span)>,
}

impl Default for Blest {
    fn default() -> Blest {
        Blest { lambda: 1.2, updated: Time::ZERO, blocked: false, rtts: Vec::new() }
    }
}

impl Blest {
    fn update_rtts<'a>(&mut self, subflows: impl ExactSizeIterator<Item = &'a Sender>) {
        self.rtts.resize(subflows.len(), (Span::MAX, Span::ZERO));
        for ((min, max), sender) in self.rtts.iter_mut().zip(subflows) {
            if let Some(srtt) = sender.path().srtt {
                (*min, *max) = ((*min).min(srtt), (*max).max(srtt));
            }
        }
    }

    fn blest_waits(
        &mut self,
        now: Time,
        (slow_at, slow): (usize, &Sender),
        (fast_at, fast): (usize, &Sender),
        window: u64,
    ) -> bool {
        let (min, max) = self.rtts[slow_at];
        if now.since(self.updated) >= min {
            let change = if std::mem::take(&mut self.blocked) { 0.04 } else { -0.01 };
            self.lambda = (self.lambda + change).clamp(1.0, 1.3);
            self.updated = now;
        }
        let (cwnd, _) = slow.cwnd_and_ssthresh();
        let in_flight = slow.path().in_flight + 1;
        let filled = (f64::from(in_flight) / f64::from(cwnd)).min(1.0);
        let rtt_range = max.saturating_sub(min).as_secs_f64();
        let linger_time = min.as_secs_f64() + rtt_range * filled;
        let linger_time = linger_time.max(slow.path().srtt.unwrap_or(Span::ZERO).as_secs_f64());
        let by_fast =
            self.lambda * self.packets_sent_within(fast_at, fast.cwnd_and_ssthresh(), linger_time);
        let (una, end) = slow.sequence_range();
        by_fast > window as f64 - f64::from(end - una) - 1.0
    }

    /// Packets that a subflow sends within `secs` by Reno's growth (`blestsched_estimate_bytes`).
    fn packets_sent_within(&self, at: usize, (cwnd, ssthresh): (u32, f64), secs: f64) -> f64 {
        let (min, max) = self.rtts[at];
        let rtt = ((min.as_secs_f64() + max.as_secs_f64()) / 2.0).max(1e-6);
        let rounds = (secs / rtt).floor() + 1.0;
        let cwnd = f64::from(cwnd);
        if ssthresh.is_infinite() {
            return cwnd * (f64::from(1 << rounds.min(16.0) as u32) - 1.0);
        }
        (cwnd.max(ssthresh + 1.0) + (rounds - 1.0) / 2.0) * rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `blestsched_estimate_bytes`: 100 ms are 3 rounds of (20 + 60) / 2 ms.
    #[test]
    fn blest_takes_the_middle_of_the_fast_subflows_round_trip_times() {
        let rtts = vec![(Span::from_millis(20), Span::from_millis(60))];
        let blest = Blest { rtts, ..Blest::default() };
        assert_eq!(blest.packets_sent_within(0, (10, f64::INFINITY), 0.1), 10.0 * (8.0 - 1.0));
        assert_eq!(blest.packets_sent_within(0, (10, 20.0), 0.1), (21.0 + 1.0) * 3.0);
    }
}
