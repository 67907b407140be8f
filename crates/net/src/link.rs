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

use crate::extras::Extras;
use crate::server::Server;
use crate::{AqmConfig, Limit, Loss, Packet, Reordering, Uneven, Varying, Waiting};
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
    /// From when on packets that leave the near end take a route with another delay.
    pub reroutes: Vec<(Time, Span)>,
    /// How much may wait for its turn.
    pub queue: Limit,
    /// Who is told of congestion before that limit is reached.
    pub aqm: Option<AqmConfig>,
    /// Probability of a random loss, within [0, 1).
    pub loss: f64,
    /// Losses of another kind; they take the place of `loss`.
    pub losses: Option<Uneven>,
    /// Packets come out later by a random time below this, but in order.
    pub jitter: Span,
    /// Which packets are overtaken by others.
    pub reordering: Reordering,
    /// Seed of all that is random.
    pub seed: u64,
}

impl LinkConfig {
    /// The delay of the shortest route.
    pub(crate) fn least_delay(&self) -> Span {
        self.reroutes.iter().map(|route| route.1).fold(self.delay, Span::min)
    }
}

/// A link that carries packets one way.
#[derive(Clone, Debug)]
pub struct Link<P> {
    ring: VecDeque<Resting<P>>,
    queue: Droptail,
    delay: Span,
    server: Server,
    loss: Loss,
    /// What most links do without. If there is any, all packets are in there and the ring is empty.
    extras: Option<Box<Extras<P>>>,
    accepted: u64,
    accepted_bytes: u64,
    lost: u64,
}

/// Who waits.
#[derive(Clone, Debug)]
struct Droptail {
    /// The packets that wait: the last ones in the ring.
    waiting: Waiting,
    /// When the first of them waits no longer.
    next_start: Time,
    limit: Limit,
    dropped: u64,
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
    /// If a probability is not one, or rates, reroutes or delivery opportunities are out of order.
    pub fn new(config: &LinkConfig) -> Link<P> {
        let loss = match config.losses {
            None => Loss::uniform(config.loss, config.seed),
            Some(kind) => Loss::uneven(kind, config.seed),
        };
        match Extras::new(config) {
            None => Link { loss, ..Link::plain(config) },
            Some(extras) => Link {
                loss,
                extras: Some(Box::new(extras)),
                ..Link::delay_line(config.least_delay())
            },
        }
    }

    /// A link without losses and extras.
    pub(crate) fn plain(config: &LinkConfig) -> Link<P> {
        Link {
            ring: VecDeque::new(),
            queue: Droptail {
                waiting: Waiting::default(),
                next_start: Time::ZERO,
                limit: config.queue,
                dropped: 0,
            },
            delay: config.least_delay(),
            server: Server::new(config),
            loss: Loss::uniform(0.0, 0),
            extras: None,
            accepted: 0,
            accepted_bytes: 0,
            lost: 0,
        }
    }

    /// A pure delay: no rate, no queue, no loss.
    pub fn delay_line(delay: Span) -> Link<P> {
        Link::plain(&LinkConfig { delay, ..LinkConfig::default() })
    }

    /// The one-way propagation delay, that of the shortest route if there are several.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// A packet comes to the near end. Time must not run backwards from call to call.
    ///
    /// # Errors
    /// If the packet is lost; the link has counted it.
    #[inline(always)]
    pub fn push(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
        if self.loss.strikes() {
            self.lost += 1;
            return Err(Dropped::Loss);
        }
        let size = packet.size();
        let departure = match &mut self.server {
            Server::None if self.extras.is_none() => now,
            Server::Line(_) => self.enqueue(now, size)?,
            _ => match &mut self.extras {
                Some(extras) => return extras.push(now, packet),
                None => self.enqueue_for_others(now, size)?,
            },
        };
        self.accepted += 1;
        self.accepted_bytes += u64::from(size);
        self.ring.push_back(Resting { departure, packet });
        Ok(())
    }

    /// Finds a packet its place before a line; gives its departure. Who waits no longer is looked for
    /// only if there seems to be no room.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, size: u32) -> Result<Time, Dropped> {
        let Server::Line(line) = &mut self.server else { return Ok(now) };
        let start = line.free_at().max(now);
        if start == now {
            let departure = line.accept(now, size);
            self.queue.waiting = Waiting::default();
            self.queue.next_start = departure;
            return Ok(departure);
        }
        if !self.queue.admits(now, start, size) {
            self.advance(now);
        }
        self.queue.add(now, start, size)?;
        let Server::Line(line) = &mut self.server else { return Ok(now) };
        Ok(line.accept(now, size))
    }

    /// The same for servers that are not a plain line.
    #[inline(never)]
    fn enqueue_for_others(&mut self, now: Time, size: u32) -> Result<Time, Dropped> {
        self.advance(now);
        let start = match &self.server {
            Server::Bucket(_) | Server::Trace(_) => self.server.departure(now, u64::from(size)),
            server => server.start(now),
        };
        if start > now {
            self.queue.add(now, start, size)?;
        }
        let departure = self.server.accept(now, size);
        if start == now {
            self.queue.next_start = departure;
        }
        Ok(departure)
    }

    /// When the next packet comes out at the far end; [`Time::MAX`] if the link is empty. On a link
    /// with a managed queue, jitter or reordering it may be an earlier time, at which
    /// [`pop`](Self::pop) gives nothing and this a later one. A packet that is pushed may change it.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        match self.ring.front() {
            Some(head) => head.departure + self.delay,
            None => self.extras.as_ref().map_or(Time::MAX, |extras| extras.next_arrival()),
        }
    }

    /// When the latest packet comes out at the far end of a link without extras; [`Time::MAX`] if it
    /// is empty.
    pub(crate) fn last_arrival(&self) -> Time {
        self.ring.back().map_or(Time::MAX, |last| last.departure + self.delay)
    }

    /// Whether neither a push changes [`next_arrival`](Self::next_arrival) nor anything is dropped
    /// after it was accepted.
    #[inline]
    pub fn is_settled(&self) -> bool {
        !self.ring.is_empty() || self.extras.as_ref().is_some_and(|extras| extras.is_settled())
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[inline(always)]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        let Some(head) = self.ring.front() else { return self.extras.as_mut()?.pop(now) };
        if head.departure + self.delay > now {
            return None;
        }
        if self.queue.waiting.packets as usize == self.ring.len() {
            self.advance(now);
        }
        self.ring.pop_front().map(|head| head.packet)
    }

    /// The packets that come out so many packets after the next one. None if there are not as many,
    /// or they do not lie in one piece in memory, which is seldom; what a link with a managed queue,
    /// jitter or reordering holds is not told.
    #[inline]
    pub fn peek<const N: usize>(&self, ahead: [usize; N]) -> Option<[&P; N]> {
        let (front, _) = self.ring.as_slices();
        let front = front.get(..=ahead.into_iter().max()?)?;
        Some(ahead.map(|place| &front[place].packet))
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
        if let Some(extras) = &mut self.extras {
            extras.keep_discarded();
        }
    }

    /// The next of the packets that were dropped after they were accepted, when and why.
    pub fn take_discarded(&mut self) -> Option<(Time, Dropped, P)> {
        self.extras.as_mut()?.take_discarded()
    }

    /// What the link has done until `now`, and what waits then.
    pub fn statistics(&mut self, now: Time) -> Statistics {
        if let Some(extras) = &mut self.extras {
            return Statistics { lost: self.lost, ..extras.statistics(now) };
        }
        self.advance(now);
        Statistics {
            sent_packets: self.accepted - u64::from(self.queue.waiting.packets),
            sent_bytes: self.accepted_bytes - self.queue.waiting.bytes,
            dropped: self.queue.dropped,
            lost: self.lost,
            marked: 0,
            waiting: self.queue.waiting,
            queueing_delay: self.server.departure(now, 0).since(now),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Moves the cursor past all packets whose transmission has begun.
    #[inline(always)]
    fn advance(&mut self, now: Time) {
        while self.queue.waiting.packets > 0 && self.queue.next_start <= now {
            let place = self.ring.len() - self.queue.waiting.packets as usize;
            let first = &self.ring[place];
            // On a line the next one begins when this one departs; else it waits until it leaves.
            self.queue.next_start = match &self.server {
                Server::Bucket(_) | Server::Trace(_) => {
                    self.ring.get(place + 1).map_or(now, |next| next.departure)
                }
                _ => first.departure,
            };
            self.queue.waiting.remove(first.packet.size());
        }
    }
}

impl Droptail {
    /// Whether there is room for a packet that is to be sent from `start` on.
    #[inline]
    fn admits(&self, now: Time, start: Time, size: u32) -> bool {
        self.limit.admits(self.waiting, size, start.since(now))
    }

    /// A packet begins to wait that is to be sent from `start` on, if there is room.
    #[inline]
    fn add(&mut self, now: Time, start: Time, size: u32) -> Result<(), Dropped> {
        if !self.admits(now, start, size) {
            self.dropped += 1;
            return Err(Dropped::Overflow);
        }
        if self.waiting.packets == 0 {
            self.next_start = start;
        }
        self.waiting.add(size);
        Ok(())
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "link_kinds_tests.rs"]
mod kinds_tests;
