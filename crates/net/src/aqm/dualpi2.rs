//! DualPI2: the Dual-Queue Coupled AQM with PI2 (RFC 9332, Appendix A), as in Linux
//! (net/sched/sch_dualpi2.c).
//!
//! ECT(1) and CE packets enter the low-latency queue L, all others the Classic queue C. Every
//! `tupdate` (16 ms) a PI controller updates the base probability `p'`, where `q` is the greater
//! age of the two queues' heads:
//!
//! ```text
//! p' = p' + alpha (q - target) + beta (q - q_last)
//! ```
//!
//! C is dropped from or marked with `p_C = p'^2`, as the rate of a Classic flow is proportional to
//! 1/sqrt(p). L is marked with `p_CL = k p'`, as the rate of a Scalable flow is proportional to 1/p.
//! The coupling factor `k = 2` gives both about the same rate at the same round-trip time (section
//! 2.1). L is also marked above `step_thresh` (1 ms) of sojourn time.
//!
//! L goes first. A weighted round robin with the weights `classic_protection` (10 %) for C and the
//! rest for L keeps it from starving C.
//!
//! Overload is `p_CL` above 100 %. Then C only drops, and packets of L are dropped with `p'^2` too,
//! others marked (`drop_on_overload`). Without it, `p'` is at most `1/k`, and the link's queue limit
//! is what drops.
//!
//! Where RFC and kernel differ, this is the kernel:
//!
//! | RFC 9332, Appendix A.1 | Linux, and here |
//! |---|---|
//! | L: one draw with max(p'_L, p_CL), where p'_L is a ramp from 0.8 to 1.2 ms | a draw with p_CL, then the step |
//! | Drops and marks are spread evenly (`recur`) | at random |
//! | `q` is the age of C's head | the greater age of the two heads |
//! | - | `p_C` and `p_CL` do not apply with less than two packets queued |
//! | L's own AQM marks only with more than one packet queued (`Th_len`) | `min_qlen_step`, 0 by default |
//!
//! Below 12 Mbit/s one full packet takes longer than the step's 1 ms. Then the step marks almost every
//! packet that waits for a single other one, unless `min_qlen_step` is 1 or more.

use crate::aqm::Verdict;
use crate::aqm::fifo::{AqmCounters, Fifo};
use crate::rng::Rng;
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct DualPi2Config {
    /// Target queueing delay of the PI controller.
    #[cfg_attr(feature = "serde", serde(rename = "target_ns"))]
    pub target: Span,
    /// Update interval of the PI controller.
    #[cfg_attr(feature = "serde", serde(rename = "tupdate_ns"))]
    pub tupdate: Span,
    /// Integral gain, 1/s per update.
    pub alpha: f64,
    /// Proportional gain, 1/s per update.
    pub beta: f64,
    /// Ratio of L's coupled marking probability to the base probability.
    pub coupling_factor: f64,
    /// Sojourn time above which every packet of L is marked.
    #[cfg_attr(feature = "serde", serde(rename = "step_thresh_ns"))]
    pub step_thresh: Span,
    /// Packets in L, below which an arriving packet is exempt from the step.
    pub min_qlen_step: u32,
    /// Share of the rate that C gets at least while both queues are busy.
    pub classic_protection: f64,
    /// Whether packets of L are dropped at overload.
    pub drop_on_overload: bool,
}

impl Default for DualPi2Config {
    /// Linux's defaults. They give a stability margin of 10 dB at a maximum RTT of 100 ms. In the
    /// kernel's fixed point `alpha` is 0.16007 and `beta` 3.1996; `tc` prints 0.15625 and 3.1953.
    fn default() -> DualPi2Config {
        DualPi2Config {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling_factor: 2.0,
            step_thresh: Span::from_millis(1),
            min_qlen_step: 0,
            classic_protection: 0.1,
            drop_on_overload: true,
        }
    }
}

/// The state of DualPI2; names as in Linux.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<P> {
    config: DualPi2Config,
    /// Bytes of a packet of maximum size. Less backlog than two are never marked or dropped from by
    /// probability.
    mtu: u32,
    l_queue: Fifo<P>,
    /// Whether the step applies to each packet of L.
    applies_step: VecDeque<bool>,
    c_queue: Fifo<P>,
    /// Base probability p'.
    pi2_prob: f64,
    /// Queueing delay at the last update.
    last_qdelay: Span,
    next_update: Time,
    /// Weighted bytes that L may send before C's turn, negative; C's turn if positive.
    c_protection_credit: f64,
    rng: Rng,
}

impl<P: Packet> DualPi2<P> {
    pub(crate) fn new(config: DualPi2Config, mtu: u32, rng: Rng) -> DualPi2<P> {
        DualPi2 {
            config,
            mtu,
            l_queue: Fifo::default(),
            applies_step: VecDeque::new(),
            c_queue: Fifo::default(),
            pi2_prob: 0.0,
            last_qdelay: Span::ZERO,
            next_update: Time::ZERO + config.tupdate,
            c_protection_credit: c_protection_init(&config, mtu),
            rng,
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.l_queue.backlog() + self.c_queue.backlog()
    }

    /// Adds a packet to its queue.
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) {
        self.update_until(now);
        if packet.is_l4s() {
            let queued = self.l_queue.backlog().packets;
            self.applies_step.push_back(queued >= self.config.min_qlen_step);
            self.l_queue.push(now, packet);
        } else {
            self.c_queue.push(now, packet);
        }
    }

    /// The packet to send at `now`.
    pub(crate) fn dequeue(&mut self, now: Time, counters: &mut AqmCounters<P>) -> Option<P> {
        self.update_until(now);
        loop {
            let is_l = self.is_turn_of_l();
            let queue = if is_l { &mut self.l_queue } else { &mut self.c_queue };
            let Some((since, mut packet)) = queue.pop() else {
                self.c_protection_credit = c_protection_init(&self.config, self.mtu);
                return None;
            };
            let applies_step = is_l && self.applies_step.pop_front() == Some(true);
            let is_late = applies_step && now.since(since) > self.config.step_thresh;
            let (is_ecn, size) = (packet.is_ecn_capable(), packet.size());
            match self.verdict(is_l, is_ecn) {
                Verdict::Drop => {
                    counters.discard(now, DropReason::Early, packet);
                    continue;
                }
                Verdict::Mark => counters.mark(&mut packet),
                Verdict::Pass if is_late && is_ecn => counters.mark(&mut packet),
                Verdict::Pass => {}
            }
            self.count_turn(is_l, size);
            return Some(packet);
        }
    }

    /// Whether the next packet comes from L (`dequeue_packet`).
    fn is_turn_of_l(&self) -> bool {
        let is_empty = |queue: &Fifo<P>| queue.backlog().packets == 0;
        !is_empty(&self.l_queue) && (is_empty(&self.c_queue) || self.c_protection_credit <= 0.0)
    }

    /// Changes the credit of the round robin if the other queue waits.
    fn count_turn(&mut self, is_l: bool, size: u32) {
        let wc = self.config.classic_protection;
        let (other, weight) = if is_l { (&self.c_queue, wc) } else { (&self.l_queue, wc - 1.0) };
        if other.backlog().packets > 0 {
            self.c_protection_credit += weight * f64::from(size);
        }
    }

    /// The decision about a packet that has left L or C (`must_drop`).
    fn verdict(&mut self, is_l: bool, is_ecn: bool) -> Verdict {
        if self.backlog().bytes < 2 * u64::from(self.mtu) {
            return Verdict::Pass;
        }
        let p_cl = self.pi2_prob * self.config.coupling_factor;
        let overload = p_cl > 1.0;
        match is_l {
            true if overload && self.config.drop_on_overload && self.roll_squared() => {
                Verdict::Drop
            }
            true if overload || self.rng.uniform() < p_cl => mark_or_drop(is_ecn),
            true => Verdict::Pass,
            false if self.roll_squared() => mark_or_drop(is_ecn && !overload),
            false => Verdict::Pass,
        }
    }

    /// True with probability p'^2: two draws, both below p' (RFC 9332, A.1).
    fn roll_squared(&mut self) -> bool {
        self.rng.uniform() < self.pi2_prob && self.rng.uniform() < self.pi2_prob
    }

    /// Runs the updates that are due by `now`.
    fn update_until(&mut self, now: Time) {
        while self.next_update <= now {
            let age = |queue: &Fifo<P>| {
                queue.head().map_or(Span::ZERO, |(since, _)| self.next_update.since(since))
            };
            self.calculate_probability(age(&self.l_queue).max(age(&self.c_queue)));
            self.next_update += self.config.tupdate;
        }
    }

    /// Updates the base probability for this queueing delay.
    fn calculate_probability(&mut self, qdelay: Span) {
        let DualPi2Config { target, alpha, beta, coupling_factor, drop_on_overload, .. } =
            self.config;
        let [delay, last, target] =
            [qdelay, self.last_qdelay, target].map(|span| span.as_nanos() as f64 / 1e9);
        let max = if drop_on_overload { 1.0 } else { (1.0 / coupling_factor).min(1.0) };
        let step = alpha * (delay - target) + beta * (delay - last);
        self.pi2_prob = (self.pi2_prob + step).clamp(0.0, max);
        self.last_qdelay = qdelay;
    }
}

fn mark_or_drop(is_ecn: bool) -> Verdict {
    if is_ecn { Verdict::Mark } else { Verdict::Drop }
}

/// The credit after both queues were empty: L goes first if it has the higher weight.
fn c_protection_init(config: &DualPi2Config, mtu: u32) -> f64 {
    f64::from(mtu) * (2.0 * config.classic_protection - 1.0)
}

#[cfg(test)]
mod tests;
