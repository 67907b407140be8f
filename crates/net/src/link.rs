//! A link: a loss process, a queue, a rate and a delay, in this order.
//!
//! All of a link is first in, first out, so when a droptail queue accepts a packet its departure
//! is settled: it leaves when the packets before it have left and its own bits are on the wire. A
//! packet therefore rests in a single ring, from its arrival at the near end until it comes out at
//! the far end, together with its departure time. A cursor in the ring tells which packets still
//! wait for their turn; it moves lazily, whenever somebody needs to know.
//!
//! Random losses strike at the entrance, as netem's do: a lost packet takes no queue and no
//! capacity. What only some links have, a managed queue or an uneven far end, is in `extras.rs`.

use crate::aqm::Managed;
use crate::extras::Extras;
use crate::server::Server;
use crate::tail::Tail;
use crate::{AqmConfig, GilbertElliott, Limit, Loss, Packet, Reordering, Varying, Waiting};
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
    /// How the rate varies; takes the place of `rate` and `bucket`.
    pub varying: Option<Varying>,
    /// One-way propagation delay.
    pub delay: Span,
    /// How much may wait for its turn.
    pub queue: Limit,
    /// Who is told of congestion before that limit is reached.
    pub aqm: Option<AqmConfig>,
    /// Probability of a random loss, within [0, 1).
    pub loss: f64,
    /// Losses in bursts; they take the place of `loss`.
    pub bursts: Option<GilbertElliott>,
    /// Packets come out later by a random time below this, but in order.
    pub jitter: Span,
    /// Which packets are overtaken by others.
    pub reordering: Reordering,
    /// Seed of all that is random.
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
    loss: Loss,
    /// What most links do without.
    extras: Option<Box<Extras<P>>>,
    accepted: u64,
    accepted_bytes: u64,
    dropped: u64,
    lost: u64,
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
    /// The queue's management chose to.
    Early,
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
    /// Packets that found the queue full, or that its management dropped.
    pub dropped: u64,
    /// Packets that were lost at random.
    pub lost: u64,
    /// Packets that the queue's management marked. Droptail marks none.
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
    /// If a probability is not one, or rates or delivery opportunities are out of order.
    pub fn new(config: &LinkConfig) -> Link<P> {
        let server = Server::new(config);
        Link {
            ring: VecDeque::new(),
            waiting: Waiting::default(),
            next_start: Time::ZERO,
            delay: config.delay,
            extras: Extras::new(config, &server).map(Box::new),
            server,
            limit: config.queue,
            loss: match config.bursts {
                None => Loss::uniform(config.loss, config.seed),
                Some(channel) => Loss::gilbert_elliott(channel, config.seed),
            },
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
        if self.extras.is_some() {
            return self.push_with_extras(now, packet);
        }
        self.append(now, packet)
    }

    /// Settles when a packet departs, if there is room for it.
    #[inline]
    fn append(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
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
            Server::Timeline(timeline) => (timeline.free_at().max(now), Time::MAX),
            server => {
                let departure = server.departure(now, u64::from(size));
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
            server => server.accept(now, size),
        })
    }

    /// When the next packet comes out at the far end; [`Time::MAX`] if the link is empty. On a link
    /// with a managed queue, jitter or reordering it may be an earlier time, at which
    /// [`pop`](Self::pop) gives nothing and this a later one. A packet that is pushed may change it.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        let arrival = self.ring.front().map_or(Time::MAX, |head| head.departure + self.delay);
        match &self.extras {
            None => arrival,
            Some(extras) => arrival.min(extras.next(&self.server, self.delay)),
        }
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        if self.extras.is_some() {
            return self.pop_with_extras(now);
        }
        self.remove(now).map(|head| head.packet)
    }

    /// The first packet in the ring, if it has come to the far end by `now`.
    #[inline]
    fn remove(&mut self, now: Time) -> Option<Resting<P>> {
        if self.ring.front()?.departure + self.delay > now {
            return None;
        }
        if self.waiting.packets as usize == self.ring.len() {
            self.advance(now);
        }
        self.ring.pop_front()
    }

    /// Packets on the link: waiting, being sent or under way.
    pub fn len(&self) -> usize {
        self.ring.len() + self.extras.as_ref().map_or(0, |extras| extras.len())
    }

    /// Whether there is no packet on the link.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From now on packets that are dropped after they were accepted, as some managements do, are
    /// kept until [`take_discarded`](Self::take_discarded) gives them.
    pub fn keep_discarded(&mut self) {
        if let Some(managed) = self.managed_mut() {
            managed.keep_discarded();
        }
    }

    /// The next of the packets that were dropped after they were accepted, and when.
    #[inline]
    pub fn take_discarded(&mut self) -> Option<(Time, P)> {
        self.managed_mut()?.take_discarded()
    }

    /// What the link has done until `now`, and what waits then.
    pub fn statistics(&mut self, now: Time) -> Statistics {
        self.advance(now);
        self.transmit(now);
        let managed = self.extras.as_ref().and_then(|extras| extras.managed.as_ref());
        let (dropped, marked) = managed.map_or((0, 0), |managed| managed.counts());
        let waiting = managed.map_or(self.waiting, |managed| managed.waiting());
        // What waits in the ring has had its place before the server already.
        let ahead = managed.map_or(0, |_| waiting.bytes);
        Statistics {
            sent_packets: self.accepted - u64::from(self.waiting.packets),
            sent_bytes: self.accepted_bytes - self.waiting.bytes,
            dropped: self.dropped + dropped,
            lost: self.lost,
            marked,
            waiting,
            queueing_delay: self.server.departure(now, ahead).since(now),
        }
    }

    /// Moves the cursor past all packets whose transmission has begun.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.waiting.packets > 0 && self.next_start <= now {
            let place = self.ring.len() - self.waiting.packets as usize;
            let first = &self.ring[place];
            // On a line the next one begins when this one departs; else it waits until it leaves.
            self.next_start = match &self.server {
                Server::Bucket(_) | Server::Trace(_) => {
                    self.ring.get(place + 1).map_or(now, |next| next.departure)
                }
                _ => first.departure,
            };
            self.waiting.remove(first.packet.size());
        }
    }

    /// A packet comes to a link with extras.
    #[cold]
    fn push_with_extras(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
        self.transmit(now);
        let Some(extras) = &mut self.extras else { return self.append(now, packet) };
        let Some(managed) = &mut extras.managed else { return self.append(now, packet) };
        extras.clock = now;
        managed.enqueue(now, packet, &self.server)?;
        self.transmit(now);
        Ok(())
    }

    /// The next packet from a link with extras.
    #[cold]
    fn pop_with_extras(&mut self, now: Time) -> Option<P> {
        self.transmit(now);
        if self.tail_mut().is_none() {
            return self.remove(now).map(|head| head.packet);
        }
        while let Some(head) = self.remove(now) {
            let crossed = head.departure + self.delay;
            self.tail_mut()?.push(crossed, head.packet);
        }
        self.tail_mut()?.pop(now)
    }

    fn managed_mut(&mut self) -> Option<&mut Managed<P>> {
        self.extras.as_mut()?.managed.as_mut()
    }

    fn tail_mut(&mut self) -> Option<&mut Tail<P>> {
        self.extras.as_mut()?.tail.as_mut()
    }

    /// Lets the transmissions begin that begin until `now`.
    #[inline]
    fn transmit(&mut self, now: Time) {
        let Some(extras) = &mut self.extras else { return };
        while let Some((start, packet)) = extras.dequeue(now, &self.server) {
            let departure = self.server.accept(start, packet.size());
            self.accepted += 1;
            self.accepted_bytes += u64::from(packet.size());
            self.ring.push_back(Resting { departure, packet });
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "link_kinds_tests.rs"]
mod kinds_tests;
