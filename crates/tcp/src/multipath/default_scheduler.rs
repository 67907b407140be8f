//! Linux's default scheduler (6.18, net/mptcp/protocol.c: `mptcp_subflow_get_send`,
//! `__subflow_push_pending`), the send buffers that limit it, and the connection's retransmissions
//! (`__mptcp_retrans`).
//!
//! - The subflow is selected whose queue would drain first at its average pacing rate, whether its window
//!   has space or not. What it has sent is in its queue until it is acknowledged (`sk_wmem_queued`).
//! - It gets 64 kB, or what the receive window leaves, if its send buffer is not full.
//! - If no data was acknowledged for the longest retransmission timeout of the subflows, one that has
//!   nothing to send repeats what the receiver waits for. A subflow that hears nothing during five such
//!   timeouts is stale: it gets no data, and the others repeat all that it has.
//! - A subflow's send buffer is twice its window when it was last short of data, and the connection's is
//!   the sum of them. The application fills it when a third of it is free.

use super::scheduler::Backlog;
use super::subflow_sender::SubflowSender;
use crate::Sender;
use crate::stack::{SKB_OVERHEAD, TCP_INIT_CWND};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// `MPTCP_SEND_BURST_SIZE`, bytes.
const SEND_BURST_SIZE: u64 = 65_428;
/// Bytes of data in a page fragment (`SKB_FRAG_PAGE_ORDER`, `mptcp_data_frag`): a burst ends with one.
const PAGE_FRAG_SIZE: u64 = 32_768 - 40;
/// The connection's send buffer without subflows (`tcp_wmem[0]`), bytes.
const MIN_BUFFER: u64 = 4_096;
/// `stale_loss_cnt`: timeouts without progress after which a subflow is not yet stale.
const STALE_LOSS_CNT: u32 = 4;
/// Timeout when no subflow waits for an acknowledgement (`TCP_RTO_MIN`).
const DEFAULT_TIMEOUT: Span = Span::from_millis(200);
/// The shortest timeout: a jiffy.
const MIN_TIMEOUT: Span = Span::from_millis(4);

/// A subflow's queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The ends of its bursts that are not acknowledged, packets: each is an `sk_buff`.
    burst_ends: VecDeque<u32>,
    /// Average of the pacing rates at which it got data, bytes per second; 0 before the first.
    avg_pacing_rate: u64,
    /// Size of the send buffer, bytes (`sk_sndbuf`); 0 before the subflow is established.
    sndbuf: u64,
    /// When the subflow last heard from the peer.
    heard_at: Time,
    /// The same at the first of the connection's timeouts since it made progress, and their number.
    stale_heard_at: Time,
    stale_count: u32,
    is_stale: bool,
}

/// What to do at a timeout of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmit {
    /// Nothing: all subflows are busy.
    Nothing,
    /// This subflow repeats the page fragment that the receiver waits for.
    Fragment(usize),
    /// A subflow has become stale: the others repeat all.
    All,
}

impl Queue {
    /// The subflow is established.
    fn begin(&mut self, sender: &Sender) {
        if self.avg_pacing_rate == 0 {
            self.avg_pacing_rate = pacing_rate(sender);
            self.expand(sender);
        }
    }

    /// Bytes with overhead of what is enqueued and not acknowledged (`sk_wmem_queued`). Each burst that was
    /// sent is in an `sk_buff`.
    fn wmem_queued(&mut self, subflow: &SubflowSender) -> u64 {
        let sender = &subflow.sender;
        let (una, _) = sender.sequence_range();
        while self.burst_ends.front().is_some_and(|&end| end <= una) {
            self.burst_ends.pop_front();
        }
        let skbs = self.burst_ends.len() as u64 + subflow.unsent_skbs();
        subflow.queued() + skbs * SKB_OVERHEAD
    }

    /// How long the queue takes to drain, in units of 2^-32 s; [`u64::MAX`] if the pacing rate is unknown.
    fn linger_time(&mut self, subflow: &SubflowSender) -> u64 {
        (self.wmem_queued(subflow) << 32).checked_div(self.avg_pacing_rate).unwrap_or(u64::MAX)
    }

    /// Averages the pacing rate over the `wmem` bytes in the queue and those of a burst.
    fn average(&mut self, burst: u64, wmem: u64, sender: &Sender) {
        let (burst, wmem) = (u128::from(burst), u128::from(wmem));
        let rates = [self.avg_pacing_rate, pacing_rate(sender)].map(u128::from);
        self.avg_pacing_rate = ((rates[0] * wmem + rates[1] * burst) / (burst + wmem)) as u64;
    }

    /// Whether the subflow may get data (`mptcp_subflow_active`).
    fn is_active(&mut self, sender: &Sender) -> bool {
        self.is_stale &= self.stale_heard_at == self.heard_at;
        !self.is_stale && sender.is_established()
    }

    /// A timeout of the connection passed while the subflow waits for acknowledgements; returns whether it
    /// may be stale (`mptcp_pm_subflow_chk_stale`).
    fn check_stale(&mut self) -> bool {
        if self.stale_count > 0 && self.stale_heard_at != self.heard_at {
            (self.stale_count, self.is_stale) = (0, false);
            return false;
        }
        self.stale_heard_at = self.heard_at;
        self.stale_count += 1;
        !self.is_stale && self.stale_count > STALE_LOSS_CNT
    }

    /// Grows the send buffer for the window; returns whether it did.
    fn expand(&mut self, sender: &Sender) -> bool {
        let before = self.sndbuf;
        self.sndbuf = self.sndbuf.max(sndbuf(sender));
        self.sndbuf > before
    }
}

/// Size of the send buffer for the window of a subflow, bytes (`tcp_sndbuf_expand`).
pub(super) fn sndbuf(sender: &Sender) -> u64 {
    let (cwnd, _) = sender.cwnd_and_ssthresh();
    let stack = sender.stack();
    let size = sender.sndbuf_windows() * u64::from(cwnd.max(TCP_INIT_CWND)) * stack.per_mss();
    size.min(u64::from(stack.tcp_wmem))
}

/// End of the page fragment that holds this byte.
pub(super) fn end_of_fragment(number: u64) -> u64 {
    (number + 1).next_multiple_of(PAGE_FRAG_SIZE)
}

/// `sk_pacing_rate`, bytes per second; 0 if unknown.
fn pacing_rate(sender: &Sender) -> u64 {
    sender.path().pacing_rate.map_or(0, |rate| rate.bytes_per_sec() as u64)
}

/// The scheduler's state.
#[derive(Debug, Default)]
pub(super) struct DefaultScheduler {
    queues: Vec<Queue>,
    /// End of what the application has written, bytes.
    written: u64,
    /// When the connection retransmits; `None` if nothing waits for an acknowledgement.
    pub(super) retransmit_at: Option<Time>,
    /// From the last acknowledgement of data to that time.
    timeout: Span,
}

impl DefaultScheduler {
    /// End of what an application has written that always has data, bytes: it fills the buffer when a
    /// third of it is free (`sk_stream_write_space`).
    pub(super) fn written(&mut self, una: u64) -> u64 {
        let size = MIN_BUFFER + self.queues.iter().map(|queue| queue.sndbuf).sum::<u64>();
        if (una + size).saturating_sub(self.written) >= size / 3 {
            self.written = una + size;
        }
        self.written
    }

    /// The subflow for the next data, and how many bytes it takes.
    pub(super) fn select_subflow<'a>(
        &mut self,
        now: Time,
        subflows: impl ExactSizeIterator<Item = &'a SubflowSender>,
        backlog: Backlog,
    ) -> Option<(usize, u64)> {
        self.queues.resize(subflows.len(), Queue::default());
        let queues = self.queues.iter_mut().zip(subflows).enumerate();
        let mut timeout = Span::ZERO;
        let active = queues.filter_map(|(at, (queue, subflow))| {
            queue.is_active(&subflow.sender).then(|| {
                queue.begin(&subflow.sender);
                if queue.stale_count == 0 {
                    timeout = timeout.max(subflow.sender.time_to_timeout(now));
                }
                (queue.linger_time(subflow), (at, queue, subflow))
            })
        });
        let first = active.min_by_key(|&(linger_time, _)| linger_time);
        self.timeout =
            if timeout > Span::ZERO { timeout.max(MIN_TIMEOUT) } else { DEFAULT_TIMEOUT };
        let (_, (at, queue, subflow)) = first?;
        let burst = SEND_BURST_SIZE.min(backlog.open);
        let wmem = queue.wmem_queued(subflow);
        let room = queue.sndbuf.saturating_sub(wmem);
        if burst == 0 || room == 0 {
            return None;
        }
        queue.average(burst, wmem, &subflow.sender);
        // Whole page fragments, up to the one in which the burst or the room ends.
        let end = end_of_fragment(backlog.next_seq + burst.min(room) - 1);
        self.retransmit_at.get_or_insert(now + self.timeout);
        Some((at, end - backlog.next_seq))
    }

    /// A subflow heard from the peer.
    #[inline]
    pub(super) fn on_heard(&mut self, at: usize, now: Time) {
        if let Some(queue) = self.queues.get_mut(at) {
            queue.heard_at = now;
        }
    }

    /// Data was acknowledged; `is_waiting` if there is more (`mptcp_reset_rtx_timer`).
    #[inline]
    pub(super) fn on_data_acknowledged(&mut self, now: Time, is_waiting: bool) {
        self.retransmit_at = is_waiting.then(|| now + self.timeout);
    }

    /// Retransmits if it is time to (`mptcp_subflow_get_retrans`).
    pub(super) fn retransmit<'a>(
        &mut self,
        now: Time,
        subflows: impl Iterator<Item = &'a Sender>,
    ) -> Retransmit {
        if self.retransmit_at.is_none_or(|at| now < at) {
            return Retransmit::Nothing;
        }
        self.retransmit_at = Some(now + self.timeout);
        let (mut idle, mut silent) = (None, None);
        for (at, (queue, sender)) in self.queues.iter_mut().zip(subflows).enumerate() {
            let (una, end) = sender.sequence_range();
            if !sender.is_established() {
                continue;
            }
            if una == end {
                idle = idle.or(Some(at));
            } else if queue.check_stale() {
                silent = silent.or(Some(at));
            }
        }
        let is_alternative = |(at, queue): (usize, &Queue)| {
            Some(at) != silent && !queue.is_stale && queue.stale_count < STALE_LOSS_CNT - 1
        };
        if let Some(at) = silent
            && self.queues.iter().enumerate().any(is_alternative)
        {
            self.queues[at].is_stale = true;
            return Retransmit::All;
        }
        idle.map_or(Retransmit::Nothing, Retransmit::Fragment)
    }

    /// A subflow has sent a burst of new packets, up to `end`.
    pub(super) fn on_burst(&mut self, at: usize, end: u32) {
        if let Some(queue) = self.queues.get_mut(at) {
            queue.burst_ends.push_back(end);
        }
    }

    /// A subflow has sent what it could: if its window is not full, its send buffer grows
    /// (`tcp_should_expand_sndbuf`). Returns whether it did.
    pub(super) fn on_sent(&mut self, at: usize, sender: &Sender) -> bool {
        let is_short = sender.path().in_flight < sender.cwnd_and_ssthresh().0;
        is_short
            && self.queues.get_mut(at).is_some_and(|queue| queue.sndbuf > 0 && queue.expand(sender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// mptcp_pm_subflow_chk_stale.
    #[test]
    fn a_subflow_that_hears_nothing_during_five_timeouts_is_stale() {
        let mut queue = Queue { heard_at: Time::ZERO + Span::from_secs(1), ..Queue::default() };
        assert_eq!([(); 5].map(|()| queue.check_stale()), [false, false, false, false, true]);
        queue.heard_at = Time::ZERO + Span::from_secs(2);
        assert_eq!(
            [(); 6].map(|()| queue.check_stale()),
            [false, false, false, false, false, true]
        );
    }

    /// A page of 32 kB less the 40 bytes of its `mptcp_data_frag`.
    #[test]
    fn a_burst_ends_with_a_fragment_of_32728_bytes() {
        let ends = [0, 32_727, 32_728, 65_455, 65_456].map(end_of_fragment);
        assert_eq!(ends, [32_728, 32_728, 65_456, 65_456, 98_184]);
    }
}
