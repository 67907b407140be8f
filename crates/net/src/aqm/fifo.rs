//! The parts of all AQM queues: a first-in-first-out queue with arrival times, and counters of
//! drops and marks.

use crate::{Backlog, DropReason, Packet};
use dumbbell_units::Time;
use std::collections::VecDeque;

/// A first-in-first-out queue of packets with their arrival times.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<(Time, P)>,
    backlog: Backlog,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), backlog: Backlog::default() }
    }
}

impl<P: Packet> Fifo<P> {
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(crate) fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(packet.size());
        self.packets.push_back((now, packet));
    }

    /// The head of the queue and its arrival time.
    pub(crate) fn head(&self) -> Option<(Time, &P)> {
        self.packets.front().map(|(since, packet)| (*since, packet))
    }

    /// Passes the head of the queue to `send` and removes it. A packet that is moved out instead is
    /// copied once more.
    #[inline]
    pub(crate) fn pass_head(&mut self, send: impl FnOnce(&P)) {
        if let Some((_, packet)) = self.packets.front() {
            send(packet);
            self.backlog.remove(packet.size());
            self.packets.pop_front();
        }
    }

    /// Removes the head of the queue and returns it with its arrival time.
    pub(crate) fn pop(&mut self) -> Option<(Time, P)> {
        let (since, packet) = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some((since, packet))
    }

    /// Removes an acknowledgement that the last packet supersedes: the first of two or, if `aggressive`,
    /// one alone that stands directly before the last packet with the same ECN echo
    /// (net/sched/sch_cake.c, cake_ack_filter).
    pub(crate) fn filter_ack(&mut self, aggressive: bool) -> Option<P> {
        let last = self.packets.len().checked_sub(1)?;
        let packet = |at: usize| &self.packets[at].1;
        if !packet(last).is_pure_ack() {
            return None;
        }
        let mut eligible = None;
        let mut is_found = false;
        for at in (0..last).filter(|&at| packet(at).flow() == packet(last).flow()) {
            // An acknowledgement whose successor echoes something else carries information.
            eligible = eligible.filter(|&first| packet(first).ecn_echo() == packet(at).ecn_echo());
            if !packet(last).supersedes(packet(at)) {
                continue;
            }
            is_found = eligible.is_some();
            if is_found {
                break;
            }
            eligible = Some(at);
        }
        let first = eligible?;
        let is_next = first + 1 == last && packet(first).ecn_echo() == packet(last).ecn_echo();
        if is_found || (aggressive && is_next) {
            let (_, acknowledgement) = self.packets.remove(first)?;
            self.backlog.remove(acknowledgement.size());
            return Some(acknowledgement);
        }
        None
    }
}

/// Drops and marks of an AQM queue.
#[derive(Clone, Debug)]
pub(crate) struct AqmCounters<P> {
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    /// Packets that were dropped after they were accepted: time, reason and packet.
    pub(crate) discarded: VecDeque<(Time, DropReason, P)>,
    /// Whether `discarded` is filled.
    pub(crate) records_discarded: bool,
}

impl<P> Default for AqmCounters<P> {
    fn default() -> AqmCounters<P> {
        AqmCounters { dropped: 0, marked: 0, discarded: VecDeque::new(), records_discarded: false }
    }
}

impl<P: Packet> AqmCounters<P> {
    /// Drops a packet that was accepted before.
    pub(crate) fn discard(&mut self, now: Time, why: DropReason, packet: P) {
        self.dropped += 1;
        if self.records_discarded {
            self.discarded.push_back((now, why, packet));
        }
    }

    /// Marks an ECN-capable packet.
    pub(crate) fn mark(&mut self, packet: &mut P) {
        packet.mark();
        self.marked += 1;
    }

    /// Marks the head of a queue if it is ECN-capable; returns whether it is.
    pub(crate) fn mark_head(&mut self, queue: &mut Fifo<P>) -> bool {
        let head = queue.packets.front_mut().map(|(_, packet)| packet);
        let Some(packet) = head.filter(|packet| packet.is_ecn_capable()) else { return false };
        self.mark(packet);
        true
    }

    /// Signals congestion by the head of a queue: marks it if `ecn` and it is ECN-capable, else drops it.
    /// Returns whether it was dropped.
    pub(crate) fn drop_or_mark_head(&mut self, now: Time, ecn: bool, queue: &mut Fifo<P>) -> bool {
        if ecn && self.mark_head(queue) {
            return false;
        }
        if let Some((_, packet)) = queue.pop() {
            self.discard(now, DropReason::Early, packet);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledgement of `number` with an ECN echo; 0 acknowledges nothing.
    #[derive(Clone, Copy, Debug)]
    struct Ack {
        flow: u32,
        number: u32,
        ecn_echo: u8,
    }

    impl Packet for Ack {
        fn size(&self) -> u32 {
            52
        }

        fn flow(&self) -> u32 {
            self.flow
        }

        fn is_pure_ack(&self) -> bool {
            true
        }

        fn supersedes(&self, earlier: &Ack) -> bool {
            earlier.number > 0 && self.number > earlier.number
        }

        fn ecn_echo(&self) -> u8 {
            self.ecn_echo
        }
    }

    /// The numbers of (flow, number, echo) that stay queued.
    fn filtered(aggressive: bool, acks: &[(u32, u32, u8)]) -> Vec<u32> {
        let mut fifo = Fifo::default();
        for &(flow, number, ecn_echo) in acks {
            fifo.push(Time::ZERO, Ack { flow, number, ecn_echo });
            fifo.filter_ack(aggressive);
        }
        assert_eq!(fifo.backlog().packets as usize, fifo.packets.len());
        assert_eq!(fifo.backlog().bytes as usize, 52 * fifo.packets.len());
        std::iter::from_fn(|| fifo.pop()).map(|(_, ack)| ack.number).collect()
    }

    /// cake_ack_filter drops the first of two eligible acknowledgements, in aggressive mode one alone.
    #[test]
    fn the_ack_filter_leaves_two_acknowledgements_or_one() {
        let acks: Vec<_> = (1..=9).map(|number| (0, number, 0)).collect();
        assert_eq!(filtered(false, &acks), [8, 9]);
        assert_eq!(filtered(true, &acks), [9]);
    }

    #[test]
    fn the_ack_filter_keeps_each_change_of_the_ecn_echo() {
        let acks = [(0, 1, 0), (0, 2, 0), (0, 3, 1), (0, 4, 1), (0, 5, 0), (0, 6, 0), (0, 7, 0)];
        assert_eq!(filtered(true, &acks), [2, 4, 7]);
    }

    #[test]
    fn the_ack_filter_leaves_data_duplicates_and_other_flows() {
        assert_eq!(filtered(true, &[(0, 0, 0), (0, 0, 0), (0, 5, 0)]), [0, 0, 5]);
        assert_eq!(filtered(true, &[(0, 5, 0), (0, 5, 0), (0, 5, 0)]), [5, 5, 5]);
        assert_eq!(filtered(true, &[(1, 5, 0), (0, 6, 0), (1, 4, 0)]), [5, 6, 4]);
    }
}
