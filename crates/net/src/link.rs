//! A link: a loss process, a queue, a rate and a delay, in this order.
//!
//! All of a link is first in, first out, so when a droptail queue accepts a packet its departure
//! is settled: it leaves when the packets before it have left and its own bits are on the wire. A
//! packet therefore rests in a single ring, from its arrival at the near end until it comes out at
//! the far end, together with its departure time. A cursor in the ring tells which packets still
//! wait for their turn; it moves lazily, whenever somebody needs to know.
//!
//! Random losses strike at the entrance, as netem's do: a lost packet takes no queue and no
//! capacity.

use crate::{Limit, Packet, TokenBucket, Transmitter, UniformLoss, Waiting};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// What a link is like; by default it passes everything on at once.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// Bits per second; `None` sends everything at once.
    pub rate: Option<NonZeroU64>,
    /// Bytes that may leave at once after a pause: the depth of a token bucket. Without one the
    /// link is a line, on which every packet takes its time.
    pub bucket: Option<u64>,
    /// One-way propagation delay.
    pub delay: Span,
    /// How much may wait for its turn.
    pub queue: Limit,
    /// Probability of a random loss, within [0, 1).
    pub loss: f64,
    /// Seed of the random losses.
    pub seed: u64,
}

/// A link that carries packets one way.
#[derive(Clone, Debug)]
pub struct Link<P> {
    ring: VecDeque<Resting<P>>,
    /// The packets that wait: the last ones in the ring.
    waiting: Waiting,
    /// When the first of them waits no longer.
    next_start: Time,
    delay: Span,
    server: Server,
    limit: Limit,
    loss: UniformLoss,
    accepted: u64,
    accepted_bytes: u64,
    dropped: u64,
    lost: u64,
}

/// What decides when packets leave.
#[derive(Clone, Debug)]
enum Server {
    /// Nothing: they leave at once.
    None,
    /// A line: a packet waits until those before it are on the wire.
    Line(Transmitter),
    /// A token bucket: a packet waits until there are tokens for it.
    Bucket(TokenBucket),
}

/// A packet on the link.
#[derive(Clone, Debug)]
struct Resting<P> {
    /// When its last bit has left the near end.
    departure: Time,
    packet: P,
}

/// Why a packet did not get onto a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The queue was full.
    Overflow,
    /// The loss process struck.
    Loss,
}

/// What a link has done, and what waits on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets sent: those whose transmission has begun.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that were lost at random.
    pub lost: u64,
    /// Packets that the queue marked. Droptail marks none.
    pub marked: u64,
    /// What waits now.
    pub waiting: Waiting,
    /// How long a packet that comes now would wait.
    pub queueing_delay: Span,
}

impl<P: Packet> Link<P> {
    /// An empty link.
    ///
    /// # Panics
    /// If the loss probability is not within [0, 1).
    pub fn new(config: &LinkConfig) -> Link<P> {
        Link {
            ring: VecDeque::new(),
            waiting: Waiting::default(),
            next_start: Time::ZERO,
            delay: config.delay,
            server: match (config.rate, config.bucket) {
                (None, _) => Server::None,
                (Some(rate), None) => Server::Line(Transmitter::new(rate)),
                (Some(rate), Some(depth)) => Server::Bucket(TokenBucket::new(rate, depth)),
            },
            limit: config.queue,
            loss: UniformLoss::new(config.loss, config.seed),
            accepted: 0,
            accepted_bytes: 0,
            dropped: 0,
            lost: 0,
        }
    }

    /// A pure delay: no rate, no queue, no loss.
    pub fn delay_line(delay: Span) -> Link<P> {
        Link::new(&LinkConfig { delay, ..LinkConfig::default() })
    }

    /// The one-way propagation delay.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// A packet comes to the near end. Time must not run backwards from call to call.
    ///
    /// # Errors
    /// If the packet is lost; the link has counted it.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
        if self.loss.strikes() {
            self.lost += 1;
            return Err(Dropped::Loss);
        }
        let size = packet.size();
        let departure = match self.server {
            Server::None => now,
            _ => self.enqueue(now, size)?,
        };
        self.accepted += 1;
        self.accepted_bytes += u64::from(size);
        self.ring.push_back(Resting { departure, packet });
        Ok(())
    }

    /// Finds a packet its place before the server; gives its departure.
    #[inline]
    fn enqueue(&mut self, now: Time, size: u32) -> Result<Time, Dropped> {
        self.advance(now);
        let (start, departure) = match &mut self.server {
            Server::None => (now, now),
            Server::Line(line) => {
                let start = line.free_at().max(now);
                if start == now {
                    self.next_start = line.accept(now, size);
                    return Ok(self.next_start);
                }
                (start, Time::MAX)
            }
            Server::Bucket(bucket) => {
                let departure = bucket.departure(now, size);
                (departure, departure)
            }
        };
        if start > now {
            if !self.limit.admits(self.waiting, size, start.since(now)) {
                self.dropped += 1;
                return Err(Dropped::Overflow);
            }
            if self.waiting.packets == 0 {
                self.next_start = start;
            }
            self.waiting.add(size);
        }
        Ok(match &mut self.server {
            Server::None => departure,
            Server::Line(line) => line.accept(now, size),
            Server::Bucket(bucket) => bucket.accept(now, size),
        })
    }

    /// When the next packet comes out at the far end; [`Time::MAX`] if the link is empty.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.ring.front().map_or(Time::MAX, |head| head.departure + self.delay)
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        if self.next_arrival() > now {
            return None;
        }
        if self.waiting.packets as usize == self.ring.len() {
            self.advance(now);
        }
        self.ring.pop_front().map(|head| head.packet)
    }

    /// Packets on the link: waiting, being sent or under way.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether there is no packet on the link.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// What the link has done until `now`, and what waits then.
    pub fn statistics(&mut self, now: Time) -> Statistics {
        self.advance(now);
        Statistics {
            sent_packets: self.accepted - u64::from(self.waiting.packets),
            sent_bytes: self.accepted_bytes - self.waiting.bytes,
            dropped: self.dropped,
            lost: self.lost,
            marked: 0,
            waiting: self.waiting,
            queueing_delay: match &self.server {
                Server::None => Span::ZERO,
                Server::Line(line) => line.free_at().since(now),
                Server::Bucket(bucket) => bucket.departure(now, 0).since(now),
            },
        }
    }

    /// Moves the cursor past all packets whose transmission has begun.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.waiting.packets > 0 && self.next_start <= now {
            let place = self.ring.len() - self.waiting.packets as usize;
            let first = &self.ring[place];
            // On a line the next one begins when this one departs; by tokens, at its own departure.
            self.next_start = match &self.server {
                Server::Bucket(_) => self.ring.get(place + 1).map_or(now, |next| next.departure),
                _ => first.departure,
            };
            self.waiting.remove(first.packet.size());
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
