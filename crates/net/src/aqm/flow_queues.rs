//! One queue per flow, and deficit round robin between them (RFC 8290, sections 4.1 and 4.2), for FQ-CoDel,
//! FQ-PIE and CAKE.
//!
//! A packet's flow is hashed to a queue. A queue that becomes active joins the list of new queues with
//! a credit of bytes. The next packet comes from the first new queue or, without any, from the first old
//! one. A queue without credit gets more and moves to the end of the old list.

use crate::aqm::fifo::Fifo;
use crate::{Backlog, Packet};
use dumbbell_units::Time;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use std::collections::VecDeque;

/// Queues with an AQM's state each.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues<P, A> {
    pub(super) queues: Vec<FlowQueue<P, A>>,
    /// Numbers of the active queues: those in their first round, and the others.
    new_queues: VecDeque<u32>,
    pub(super) old_queues: VecDeque<u32>,
    /// Of all queues.
    pub(super) backlog: Backlog,
    seed: u64,
}

#[derive(Clone, Debug)]
pub(super) struct FlowQueue<P, A> {
    pub(super) fifo: Fifo<P>,
    pub(super) aqm: A,
    /// Bytes that the queue may still send in this round.
    pub(super) credit: i64,
    is_active: bool,
}

impl<P: Packet, A> FlowQueues<P, A> {
    /// # Panics
    /// If there are no queues.
    pub(super) fn new(queues: u32, seed: u64, mut aqm: impl FnMut() -> A) -> FlowQueues<P, A> {
        assert!(queues > 0, "there are queues");
        let mut queue =
            || FlowQueue { fifo: Fifo::default(), aqm: aqm(), credit: 0, is_active: false };
        FlowQueues {
            queues: (0..queues).map(|_| queue()).collect(),
            new_queues: VecDeque::new(),
            old_queues: VecDeque::new(),
            backlog: Backlog::default(),
            seed,
        }
    }

    /// The number of a flow's queue.
    pub(super) fn queue_of(&self, flow: u32) -> usize {
        let hash = SplitMix64::seed_from_u64(self.seed ^ u64::from(flow)).next_u64();
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as usize
    }

    /// Adds a packet to a queue. Returns whether that made the queue active, with a credit of `quantum`.
    pub(super) fn push(&mut self, now: Time, number: usize, packet: P, quantum: i64) -> bool {
        let queue = &mut self.queues[number];
        self.backlog.add(packet.size());
        queue.fifo.push(now, packet);
        let becomes_active = !std::mem::replace(&mut queue.is_active, true);
        if becomes_active {
            queue.credit = quantum;
            self.new_queues.push_back(number as u32);
        }
        becomes_active
    }

    /// The queue that sends next: the first one with credit. Others before it get the bytes of `quantum` and
    /// become old.
    pub(super) fn next(
        &mut self,
        mut quantum: impl FnMut(&mut FlowQueue<P, A>) -> i64,
    ) -> Option<usize> {
        loop {
            let is_new = !self.new_queues.is_empty();
            let list = if is_new { &mut self.new_queues } else { &mut self.old_queues };
            let number = *list.front()?;
            let queue = &mut self.queues[number as usize];
            if queue.credit > 0 {
                return Some(number as usize);
            }
            queue.credit += quantum(queue);
            list.pop_front();
            self.old_queues.push_back(number);
        }
    }

    /// Takes the queue that is [`next`](Self::next) off its list, as it is empty: it is no longer active,
    /// or becomes old if it is new, `stays`, and would overtake old queues (`fq_codel_dequeue`).
    pub(super) fn retire(&mut self, stays: bool) {
        let new = self.new_queues.pop_front();
        let stays = stays && new.is_some() && !self.old_queues.is_empty();
        match new.or_else(|| self.old_queues.pop_front()) {
            Some(number) if stays => self.old_queues.push_back(number),
            Some(number) => self.queues[number as usize].is_active = false,
            None => {}
        }
    }

    /// The head of a queue and its arrival time.
    pub(super) fn pop(&mut self, number: usize) -> Option<(Time, P)> {
        let (since, packet) = self.queues[number].fifo.pop()?;
        self.backlog.remove(packet.size());
        Some((since, packet))
    }

    /// Removes an acknowledgement of a queue that its last packet supersedes; see [`Fifo::filter_ack`].
    pub(super) fn filter_ack(&mut self, number: usize, aggressive: bool) -> Option<P> {
        let packet = self.queues[number].fifo.filter_ack(aggressive)?;
        self.backlog.remove(packet.size());
        Some(packet)
    }

    /// Whether no queue is active.
    pub(super) fn is_idle(&self) -> bool {
        self.new_queues.is_empty() && self.old_queues.is_empty()
    }

    /// The number of the queue with the most bytes.
    pub(super) fn longest(&self) -> usize {
        let bytes = |&number: &usize| self.queues[number].fifo.backlog().bytes;
        (0..self.queues.len()).max_by_key(bytes).unwrap_or(0)
    }
}
