//! What all queues here are made of: packets with the time since which they wait, and a tally of
//! those that were dropped and marked.

use crate::{Dropped, Packet, Waiting};
use dumbbell_units::Time;
use std::collections::VecDeque;

/// Packets that wait, first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<(Time, P)>,
    waiting: Waiting,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), waiting: Waiting::default() }
    }
}

impl<P: Packet> Fifo<P> {
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting
    }

    pub(crate) fn push(&mut self, now: Time, packet: P) {
        self.waiting.add(packet.size());
        self.packets.push_back((now, packet));
    }

    /// The first packet, and since when it waited.
    pub(crate) fn pop(&mut self) -> Option<(Time, P)> {
        let (since, packet) = self.packets.pop_front()?;
        self.waiting.remove(packet.size());
        Some((since, packet))
    }
}

/// What was not simply passed on.
#[derive(Clone, Debug)]
pub(crate) struct Tally<P> {
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    /// Packets that were accepted and dropped later, when and why, until somebody takes them.
    pub(crate) discarded: VecDeque<(Time, Dropped, P)>,
    /// Whether somebody does.
    pub(crate) keeps: bool,
}

impl<P> Default for Tally<P> {
    fn default() -> Tally<P> {
        Tally { dropped: 0, marked: 0, discarded: VecDeque::new(), keeps: false }
    }
}

impl<P: Packet> Tally<P> {
    /// Drops a packet that was accepted before.
    pub(crate) fn discard(&mut self, now: Time, why: Dropped, packet: P) {
        self.dropped += 1;
        if self.keeps {
            self.discarded.push_back((now, why, packet));
        }
    }

    /// Tells a packet's sender of congestion: gives it back marked, if it may be, or drops it.
    pub(crate) fn strike(&mut self, now: Time, ecn: bool, mut packet: P) -> Option<P> {
        if ecn && packet.is_ecn_capable() {
            packet.mark();
            self.marked += 1;
            return Some(packet);
        }
        self.discard(now, Dropped::Early, packet);
        None
    }
}
