//! CoDel: Controlled Delay (RFC 8289).
//!
//! A good queue empties now and then; a bad one stands. CoDel looks at how long each packet waited
//! when it leaves (section 3.1). Once every packet of a whole `interval` (100 ms, a worst-case round
//! trip) waited for `target` (5 ms) or longer, it drops one and enters the dropping state. There it
//! drops the next packet after `interval / sqrt(count)`, where `count` is the number of drops since
//! it entered (section 3.3: the rate of a TCP goes with 1/sqrt(p), so this makes it fall linearly),
//! until a packet has waited for less than `target` or less than a packet is left to send. If it
//! has to enter the state again soon, it goes on from the drop rate that it had (section 5.6).
//!
//! ECN-capable packets are marked where others are dropped (section 4.? of RFC 8290: 4.2).

use crate::Packet;
use crate::aqm::fifo::{Fifo, Tally};
use dumbbell_units::{Span, Time};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The delay that a standing queue may cause.
    pub target: Span,
    /// For how long the delay must have been above the target: about the longest round-trip time.
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// RFC 8289, sections 4.3 and 4.4: 5 ms and 100 ms.
    fn default() -> CodelConfig {
        CodelConfig { target: Span::from_millis(5), interval: Span::from_millis(100), ecn: true }
    }
}

/// A queue of not more than this is not a standing one (section 5.3, MAXPACKET): a full Ethernet
/// frame.
const MAX_PACKET: u64 = 1514;

/// The state that CoDel keeps of a queue (section 5.2).
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    config: CodelConfig,
    /// When dropping may begin, if the delay stays above the target until then.
    first_above: Option<Time>,
    /// When the next packet is to be dropped.
    drop_next: Time,
    /// Drops since the dropping state was entered, and what it was entered with last.
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

impl Codel {
    pub(crate) fn new(config: CodelConfig) -> Codel {
        Codel {
            config,
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            is_dropping: false,
        }
    }

    /// The packet to send at `now` (section 5.5).
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        tally: &mut Tally<P>,
    ) -> Option<P> {
        let Some((mut packet, mut is_bad)) = self.take(now, queue) else {
            self.is_dropping = false;
            return None;
        };
        if self.is_dropping {
            self.is_dropping = is_bad;
            while self.is_dropping && now >= self.drop_next {
                self.count += 1;
                if let Some(marked) = tally.strike(now, self.config.ecn, packet) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                let Some(next) = self.take(now, queue) else {
                    self.is_dropping = false;
                    return None;
                };
                (packet, is_bad) = next;
                self.is_dropping = is_bad;
                if is_bad {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
            return Some(packet);
        }
        if !is_bad {
            return Some(packet);
        }
        let struck = tally.strike(now, self.config.ecn, packet);
        let next = struck.or_else(|| self.take(now, queue).map(|(packet, _)| packet));
        self.enter(now);
        next
    }

    /// Enters the dropping state; where dropping ended not long ago, at the rate that it had.
    fn enter(&mut self, now: Time) {
        self.is_dropping = true;
        let drops = self.count - self.last_count;
        let is_soon = now < self.drop_next + self.config.interval * 16;
        self.count = if drops > 1 && is_soon { drops } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    /// The first packet of the queue, and whether the delay has been too long for too long
    /// (section 5.6, `dodequeue`).
    fn take<P: Packet>(&mut self, now: Time, queue: &mut Fifo<P>) -> Option<(P, bool)> {
        let Some((since, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(since) < self.config.target || queue.waiting().bytes <= MAX_PACKET {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + self.config.interval);
        Some((packet, now >= first_above))
    }

    /// When to drop next (section 5.6, `control_law`).
    fn control_law(&self, from: Time) -> Time {
        let wait = self.config.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        from + Span::from_nanos(wait as u64)
    }
}
