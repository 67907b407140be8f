//! FQ-CoDel (RFC 8290): a queue for each flow, deficit round robin between them, CoDel in each.
//!
//! A packet's flow is hashed to one of 1024 queues (section 4.1). A queue that becomes active is
//! appended to the list of new queues with a credit of one `quantum` of bytes. To send, the first
//! queue of the new list is taken, or of the old list if there is none (section 4.2). If it has no
//! credit left it gets another quantum and goes to the end of the old list, and the next one has its
//! turn. CoDel takes a packet from it (RFC 8289, on this queue alone), which its credit pays for. A
//! queue found empty goes from the new list to the end of the old one, so that it cannot be new
//! again at once, and from the old list it is removed. So a flow that sends less than its share finds
//! its queue empty and new, and passes all that stand (section 5).
//!
//! If there is no room, the queue with the most bytes loses half its packets, 64 at most, from its
//! head (section 4.1).

use crate::aqm::codel::{Codel, CodelConfig};
use crate::aqm::fifo::{Fifo, Tally};
use crate::{Limit, Packet, Waiting};
use dumbbell_units::{Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// CoDel's, in each queue.
    pub codel: CodelConfig,
    /// Bytes that a queue may send in its turn.
    pub quantum: u32,
    /// How many queues there are.
    pub queues: u32,
}

impl Default for FqCodelConfig {
    /// RFC 8290, section 5.2: a full Ethernet frame and 1024 queues.
    fn default() -> FqCodelConfig {
        FqCodelConfig { codel: CodelConfig::default(), quantum: 1514, queues: 1024 }
    }
}

/// The most packets that a full queue loses at once.
const BATCH: u32 = 64;

#[derive(Clone, Debug)]
pub(crate) struct FqCodel<P> {
    quantum: i64,
    queues: Vec<Queue<P>>,
    /// Active queues that have had no turn yet, and the others, by number.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    waiting: Waiting,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    codel: Codel,
    /// Bytes that it may still send in its turn.
    credit: i64,
    is_active: bool,
}

impl<P: Packet> FqCodel<P> {
    /// # Panics
    /// If there is no queue or no quantum.
    pub(crate) fn new(config: FqCodelConfig, seed: u64) -> FqCodel<P> {
        assert!(config.queues > 0 && config.quantum > 0, "queues and quantum are above zero");
        let queue = || Queue {
            fifo: Fifo::default(),
            codel: Codel::new(config.codel),
            credit: 0,
            is_active: false,
        };
        FqCodel {
            quantum: i64::from(config.quantum),
            queues: (0..config.queues).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Waiting::default(),
            seed,
        }
    }

    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// The queue of a flow.
    fn hash(&self, flow: u32) -> u32 {
        let hash = SplitMix64::seed_from_u64(self.seed ^ u64::from(flow)).next_u64();
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as u32
    }

    /// Appends a packet; others make room for it.
    pub(crate) fn enqueue(&mut self, now: Time, packet: P, limit: Limit, tally: &mut Tally<P>) {
        let size = packet.size();
        while self.waiting.packets > 0 && !limit.admits(self.waiting, size, Span::ZERO) {
            self.make_room(now, tally);
        }
        let number = self.hash(packet.flow());
        let queue = &mut self.queues[number as usize];
        queue.fifo.push(now, packet);
        self.waiting.add(size);
        if !queue.is_active {
            queue.is_active = true;
            queue.credit = self.quantum;
            self.new.push_back(number);
        }
    }

    fn make_room(&mut self, now: Time, tally: &mut Tally<P>) {
        let Some(fattest) = self.queues.iter_mut().max_by_key(|queue| queue.fifo.waiting().bytes)
        else {
            return;
        };
        let most = fattest.fifo.waiting().packets.div_ceil(2).min(BATCH);
        for _ in 0..most {
            let Some((_, packet)) = fattest.fifo.pop() else { return };
            self.waiting.remove(packet.size());
            tally.discard(now, packet);
        }
    }

    /// The packet to send at `now`.
    pub(crate) fn dequeue(&mut self, now: Time, tally: &mut Tally<P>) -> Option<P> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let queue = &mut self.queues[number as usize];
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = queue.fifo.waiting();
            let packet = queue.codel.dequeue(now, &mut queue.fifo, tally);
            let after = queue.fifo.waiting();
            self.waiting.packets -= before.packets - after.packets;
            self.waiting.bytes -= before.bytes - after.bytes;
            if let Some(packet) = packet {
                queue.credit -= i64::from(packet.size());
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                self.old.push_back(number);
            } else {
                queue.is_active = false;
            }
        }
    }
}
