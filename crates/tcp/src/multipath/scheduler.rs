//! Which subflow takes the next packets (the schedulers of the MPTCP project's Linux, v0.95; Linux
//! itself has another, mptcp_subflow_get_send).
//!
//! All choose among subflows that are available and have room in their windows:
//!
//! - `lowest-rtt` (the default there): the one of the least smoothed round-trip time.
//! - `round-robin`: one packet each, in turns.
//! - `redundant`: all of them; every packet is sent on every subflow (mptcp_redundant.c).
//! - `blest` (Ferlin et al., IFIP Networking 2016; mptcp_blest.c): as `lowest-rtt`, but a slower
//!   subflow is left out if what the fastest could send meanwhile would not fit into the receive
//!   window any more. The estimate is scaled by lambda, which follows what happens: 1.2 at first,
//!   4 % more after an RTT in which the window blocked, 1 % less otherwise, from 1.0 to 1.3.
//! - `ecf` (Lim et al., CoNEXT 2017; mptcp_ecf.c): as `lowest-rtt`, but a slower subflow is left
//!   out if the fastest would have sent all that waits earlier.

use crate::Sender;
use dumbbell_units::{Span, Time};

/// How packets are given to subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The least round-trip time first.
    #[default]
    LowestRtt,
    /// In turns.
    RoundRobin,
    /// Everything on every subflow.
    Redundant,
    /// Lowest RTT, without blocking the receive window.
    Blest,
    /// Earliest completion first.
    Ecf,
}

impl Scheduler {
    /// The names that [`Scheduler::named`] knows, the default first.
    pub const NAMES: &[&str] = &["lowest-rtt", "round-robin", "redundant", "blest", "ecf"];

    /// The scheduler of that name, if there is one.
    pub fn named(name: &str) -> Option<Scheduler> {
        match name {
            "lowest-rtt" => Some(Scheduler::LowestRtt),
            "round-robin" => Some(Scheduler::RoundRobin),
            "redundant" => Some(Scheduler::Redundant),
            "blest" => Some(Scheduler::Blest),
            "ecf" => Some(Scheduler::Ecf),
            _ => None,
        }
    }
}

/// What a scheduler knows of the connection, packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// What waits to be given to a subflow.
    pub(super) unsent: u32,
    /// The receive window.
    pub(super) window: u32,
}

/// A scheduler at work.
#[derive(Debug)]
pub(super) struct SchedulerState {
    pub(super) scheduler: Scheduler,
    next_turn: usize,
    blest: Blest,
    /// ECF waits for the fastest subflow.
    ecf_waiting: bool,
}

impl SchedulerState {
    pub(super) fn new(scheduler: Scheduler) -> SchedulerState {
        SchedulerState { scheduler, next_turn: 0, blest: Blest::default(), ecf_waiting: false }
    }

    /// Whether whoever has room while the receive window is closed may repeat what blocks it.
    pub(super) fn is_opportunistic(&self) -> bool {
        !matches!(self.scheduler, Scheduler::RoundRobin | Scheduler::Redundant)
    }

    /// The receive window blocked.
    pub(super) fn on_blocked(&mut self) {
        self.blest.blocked = true;
    }

    /// The subflow for the next packets, and how many it takes at most.
    #[inline]
    pub(super) fn select_subflow<'a>(
        &mut self,
        now: Time,
        subflows: impl ExactSizeIterator<Item = &'a Sender> + Clone,
        load: Backlog,
    ) -> Option<(usize, u32)> {
        let rooms = subflows.clone().map(|sender| sender.cwnd_space(now)).enumerate();
        if self.scheduler == Scheduler::RoundRobin {
            let count = subflows.len();
            let open = rooms.filter(|&(_, room)| room > 0);
            let from = self.next_turn;
            let (next, _) = open.min_by_key(|&(at, _)| (at + count - from) % count)?;
            self.next_turn = (next + 1) % count;
            return Some((next, 1));
        }
        let srtt = |sender: &Sender| sender.path().srtt.unwrap_or(Span::MAX);
        let open = rooms.zip(subflows.clone()).filter(|((_, room), _)| *room > 0);
        let ((at, room), sender) = open.min_by_key(|(_, sender)| srtt(sender))?;
        if matches!(self.scheduler, Scheduler::LowestRtt | Scheduler::Redundant) {
            return Some((at, room));
        }
        let ready = subflows.clone().filter(|sender| sender.is_established());
        let fastest = ready.min_by_key(|sender| srtt(sender))?;
        self.blest.update_rtts(subflows);
        if srtt(sender) <= srtt(fastest) {
            return Some((at, room));
        }
        let waits = match self.scheduler {
            Scheduler::Blest => self.blest.blest_waits(now, at, sender, fastest, load),
            _ => self.should_wait_ecf(sender, fastest, load),
        };
        // One by one: every packet that is given away changes the answer.
        (!waits).then_some((at, 1))
    }

    /// ECF's two inequalities, with beta = 1/4.
    fn should_wait_ecf(&mut self, slow: &Sender, fast: &Sender, load: Backlog) -> bool {
        let window = |sender: &Sender| f64::from(sender.cwnd_and_ssthresh().0);
        let secs = |span: Option<Span>| span.unwrap_or(Span::ZERO).as_secs_f64();
        let (cwnd_f, cwnd_s) = (window(fast), window(slow));
        let (rtt_f, rtt_s) = (secs(fast.path().srtt), secs(slow.path().srtt));
        // Linux keeps twice the mean deviation in its place.
        let delta = (fast.rtt_deviation().max(slow.rtt_deviation()) * 2).as_secs_f64();
        let waiting = f64::from(load.unsent);
        let margin = if self.ecf_waiting { 1.25 } else { 1.0 };
        let by_fast = rtt_f * (waiting.max(cwnd_f) + cwnd_f);
        if by_fast < margin * cwnd_f * (rtt_s + delta) {
            if rtt_s * waiting.max(cwnd_s) >= cwnd_s * (2.0 * rtt_f + delta) {
                self.ecf_waiting = true;
                return true;
            }
        } else {
            self.ecf_waiting = false;
        }
        false
    }
}

/// BLEST's memory.
#[derive(Debug)]
struct Blest {
    lambda: f64,
    updated: Time,
    blocked: bool,
    /// Least and greatest smoothed round-trip time of each subflow.
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
        for ((least, most), sender) in self.rtts.iter_mut().zip(subflows) {
            if let Some(srtt) = sender.path().srtt {
                (*least, *most) = ((*least).min(srtt), (*most).max(srtt));
            }
        }
    }

    fn blest_waits(
        &mut self,
        now: Time,
        at: usize,
        slow: &Sender,
        fast: &Sender,
        load: Backlog,
    ) -> bool {
        let (least, most) = self.rtts[at];
        if now.since(self.updated) >= least {
            let change = if std::mem::take(&mut self.blocked) { 0.04 } else { -0.01 };
            self.lambda = (self.lambda + change).clamp(1.0, 1.3);
            self.updated = now;
        }
        let (cwnd, _) = slow.cwnd_and_ssthresh();
        let in_flight = slow.path().in_flight + 1;
        let filled = (f64::from(in_flight) / f64::from(cwnd)).min(1.0);
        let swing = most.saturating_sub(least).as_secs_f64();
        let lingers = least.as_secs_f64() + swing * filled;
        let lingers = lingers.max(slow.path().srtt.unwrap_or(Span::ZERO).as_secs_f64());
        let by_fast = self.lambda * packets_sent_within(fast, lingers);
        let (una, end) = slow.sequence_range();
        by_fast > f64::from(load.window) - f64::from(end - una) - 1.0
    }
}

/// Packets that a subflow will send within so many seconds, by Reno's growth.
fn packets_sent_within(sender: &Sender, secs: f64) -> f64 {
    let rtt = sender.path().srtt.unwrap_or(Span::ZERO).as_secs_f64().max(1e-6);
    let rounds = (secs / rtt).floor() + 1.0;
    let (cwnd, ssthresh) = sender.cwnd_and_ssthresh();
    let cwnd = f64::from(cwnd);
    if ssthresh.is_infinite() {
        return cwnd * (f64::from(1 << rounds.min(16.0) as u32) - 1.0);
    }
    (cwnd.max(ssthresh + 1.0) + (rounds - 1.0) / 2.0) * rounds
}
