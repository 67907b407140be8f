//! A link: a loss process, a queue, a rate and a delay, in this order.
//!
//! All of a link is first in, first out, so when a droptail queue accepts a packet its departure
//! is settled: it leaves when the packets before it have left and its own bits are on the wire. A
//! packet therefore rests in a single ring, from its arrival at the near end until it comes out at
//! the far end, together with its departure time. A cursor in the ring tells which packets still
//! wait for their turn; it moves lazily, whenever somebody needs to know.
//!
//! Random losses strike at the entrance, as netem's do: a lost packet takes no queue and no
//! capacity. What only some links have, a managed queue or an uneven far end, is in `managed.rs`.

use crate::managed_link::ManagedLink;
use crate::shaper::Shaper;
use crate::{AqmConfig, Backlog, Limit, LossModel, LossProcess, Packet, RateProcess, Reordering};
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
    pub rate_process: Option<RateProcess>,
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
    pub loss_model: Option<LossModel>,
    /// Packets come out later by a random time below this, but in order.
    pub jitter: Span,
    /// Which packets are overtaken by others.
    pub reordering: Reordering,
    /// Seed of all that is random.
    pub seed: u64,
}

impl LinkConfig {
    /// The delay of the shortest route.
    pub(crate) fn min_delay(&self) -> Span {
        self.reroutes.iter().map(|route| route.1).fold(self.delay, Span::min)
    }
}

/// A link that carries packets one way.
#[derive(Clone, Debug)]
pub struct Link<P> {
    ring: VecDeque<Queued<P>>,
    queue: Droptail,
    delay: Span,
    shaper: Shaper,
    loss: LossProcess,
    /// What most links do without. If there is any, all packets are in there and the ring is empty.
    managed: Option<Box<ManagedLink<P>>>,
    accepted: u64,
    accepted_bytes: u64,
    lost: u64,
}

/// Who waits.
#[derive(Clone, Debug)]
struct Droptail {
    /// The packets that wait: the last ones in the ring.
    backlog: Backlog,
    /// When the first of them waits no longer.
    next_start: Time,
    limit: Limit,
    dropped: u64,
}

/// A packet on the link.
#[derive(Clone, Debug)]
struct Queued<P> {
    /// When its last bit has left the near end.
    departure: Time,
    packet: P,
}

/// Why a packet did not get onto a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// The queue's management chose to.
    Early,
    /// The loss process struck.
    Loss,
}

/// What a link has done, and what waits on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
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
    pub backlog: Backlog,
    /// How long a packet that comes now would wait.
    pub queueing_delay: Span,
}

impl<P: Packet> Link<P> {
    /// An empty link.
    ///
    /// # Panics
    /// If a probability is not one, or rates, reroutes or delivery opportunities are out of order.
    pub fn new(config: &LinkConfig) -> Link<P> {
        let loss = match config.loss_model {
            None => LossProcess::uniform(config.loss, config.seed),
            Some(model) => LossProcess::new(model, config.seed),
        };
        match ManagedLink::new(config) {
            None => Link { loss, ..Link::plain(config) },
            Some(managed) => Link {
                loss,
                managed: Some(Box::new(managed)),
                ..Link::delay_line(config.min_delay())
            },
        }
    }

    /// A link without losses and extras.
    pub(crate) fn plain(config: &LinkConfig) -> Link<P> {
        Link {
            ring: VecDeque::new(),
            queue: Droptail {
                backlog: Backlog::default(),
                next_start: Time::ZERO,
                limit: config.queue,
                dropped: 0,
            },
            delay: config.min_delay(),
            shaper: Shaper::new(config),
            loss: LossProcess::uniform(0.0, 0),
            managed: None,
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
    pub fn push(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        if self.loss.drops_next() {
            self.lost += 1;
            return Err(DropReason::Loss);
        }
        let size = packet.size();
        let departure = match &mut self.shaper {
            Shaper::None if self.managed.is_none() => now,
            Shaper::ConstantRate(_) => self.enqueue(now, size)?,
            _ => match &mut self.managed {
                Some(managed) => return managed.push(now, packet),
                None => self.enqueue_shaped(now, size)?,
            },
        };
        self.accepted += 1;
        self.accepted_bytes += u64::from(size);
        self.ring.push_back(Queued { departure, packet });
        Ok(())
    }

    /// Finds a packet its place before a line; gives its departure. Who waits no longer is looked for
    /// only if there seems to be no room.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, size: u32) -> Result<Time, DropReason> {
        let Shaper::ConstantRate(line) = &mut self.shaper else { return Ok(now) };
        let start = line.busy_until().max(now);
        if start == now {
            let departure = line.accept(now, size);
            self.queue.backlog = Backlog::default();
            self.queue.next_start = departure;
            return Ok(departure);
        }
        if !self.queue.admits(now, start, size) {
            self.advance(now);
        }
        self.queue.add(now, start, size)?;
        let Shaper::ConstantRate(line) = &mut self.shaper else { return Ok(now) };
        Ok(line.accept(now, size))
    }

    /// The same for servers that are not a plain line.
    #[inline(never)]
    fn enqueue_shaped(&mut self, now: Time, size: u32) -> Result<Time, DropReason> {
        self.advance(now);
        let start = match &self.shaper {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => {
                self.shaper.departure(now, u64::from(size))
            }
            shaper => shaper.start(now),
        };
        if start > now {
            self.queue.add(now, start, size)?;
        }
        let departure = self.shaper.accept(now, size);
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
            None => self.managed.as_ref().map_or(Time::MAX, |managed| managed.next_arrival()),
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
    pub fn next_arrival_is_final(&self) -> bool {
        !self.ring.is_empty()
            || self.managed.as_ref().is_some_and(|managed| managed.next_arrival_is_final())
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[inline(always)]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        let Some(head) = self.ring.front() else { return self.managed.as_mut()?.pop(now) };
        if head.departure + self.delay > now {
            return None;
        }
        if self.queue.backlog.packets as usize == self.ring.len() {
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
        self.ring.len() + self.managed.as_ref().map_or(0, |managed| managed.len())
    }

    /// Whether there is no packet on the link.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From now on packets that are dropped after they were accepted, as some managements do, are
    /// kept until [`take_discarded`](Self::take_discarded) gives them.
    pub fn record_discarded(&mut self) {
        if let Some(managed) = &mut self.managed {
            managed.record_discarded();
        }
    }

    /// The next of the packets that were dropped after they were accepted, when and why.
    pub fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.managed.as_mut()?.take_discarded()
    }

    /// What the link has done until `now`, and what waits then.
    pub fn statistics(&mut self, now: Time) -> LinkStatistics {
        if let Some(managed) = &mut self.managed {
            return LinkStatistics { lost: self.lost, ..managed.statistics(now) };
        }
        self.advance(now);
        LinkStatistics {
            sent_packets: self.accepted - u64::from(self.queue.backlog.packets),
            sent_bytes: self.accepted_bytes - self.queue.backlog.bytes,
            dropped: self.queue.dropped,
            lost: self.lost,
            marked: 0,
            backlog: self.queue.backlog,
            queueing_delay: self.shaper.departure(now, 0).since(now),
        }
    }

    pub(crate) fn shaper(&self) -> &Shaper {
        &self.shaper
    }

    /// Moves the cursor past all packets whose transmission has begun.
    #[inline(always)]
    fn advance(&mut self, now: Time) {
        while self.queue.backlog.packets > 0 && self.queue.next_start <= now {
            let place = self.ring.len() - self.queue.backlog.packets as usize;
            let first = &self.ring[place];
            // On a line the next one begins when this one departs; else it waits until it leaves.
            self.queue.next_start = match &self.shaper {
                Shaper::TokenBucket(_) | Shaper::Trace(_) => {
                    self.ring.get(place + 1).map_or(now, |next| next.departure)
                }
                _ => first.departure,
            };
            self.queue.backlog.remove(first.packet.size());
        }
    }
}

impl Droptail {
    /// Whether there is room for a packet that is to be sent from `start` on.
    #[inline]
    fn admits(&self, now: Time, start: Time, size: u32) -> bool {
        self.limit.admits(self.backlog, size, start.since(now))
    }

    /// A packet begins to wait that is to be sent from `start` on, if there is room.
    #[inline]
    fn add(&mut self, now: Time, start: Time, size: u32) -> Result<(), DropReason> {
        if !self.admits(now, start, size) {
            self.dropped += 1;
            return Err(DropReason::Overflow);
        }
        if self.backlog.packets == 0 {
            self.next_start = start;
        }
        self.backlog.add(size);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
