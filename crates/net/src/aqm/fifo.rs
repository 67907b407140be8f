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

    /// Arrival time of the head of the queue.
    pub(crate) fn head_since(&self) -> Option<Time> {
        self.packets.front().map(|&(since, _)| since)
    }

    /// The head of the queue and its arrival time.
    pub(crate) fn pop(&mut self) -> Option<(Time, P)> {
        let (since, packet) = self.packets.pop_front()?;
        self.backlog.remove(packet.size());
        Some((since, packet))
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

    /// Signals congestion: returns the packet marked if `ecn` and it is ECN-capable, else drops it.
    pub(crate) fn drop_or_mark(&mut self, now: Time, ecn: bool, mut packet: P) -> Option<P> {
        if ecn && packet.is_ecn_capable() {
            self.mark(&mut packet);
            return Some(packet);
        }
        self.discard(now, DropReason::Early, packet);
        None
    }
}
