//! A link: a loss process, a queue, a rate and a delay, in this order.
//!
//! Without AQM, jitter, reordering and reroutes everything is first in, first out, and a packet's
//! departure is known on arrival: once all packets before it have departed and its own bits are on
//! the wire. One ring therefore holds each packet with its departure, from its arrival at the near
//! end to its delivery at the far end. The last packets of the ring are the queue. Their number is
//! updated lazily, on access.
//!
//! Random losses occur on arrival, before the queue, as in netem: a lost packet uses neither queue
//! nor capacity. Links with the other features are in `managed_link.rs`.

use crate::managed_link::ManagedLink;
use crate::shaper::Shaper;
use crate::{AqmConfig, Backlog, Limit, LossModel, LossProcess, MediumConfig, Packet};
use crate::{RateProcess, Reordering};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Parameters of a link. The default forwards everything immediately.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// Rate in bit/s; `None` for no rate limit.
    pub rate: Option<NonZeroU64>,
    /// Depth in bytes of a token bucket that shapes to `rate`; `None` for a plain transmitter, on
    /// which every packet takes its transmission time.
    pub bucket_bytes: Option<u64>,
    /// A rate that varies; replaces `rate` and `bucket_bytes`.
    pub rate_process: Option<RateProcess>,
    /// One-way propagation delay.
    pub delay: Span,
    /// Route changes (start, delay): packets that depart from `start` on have this delay instead.
    pub reroutes: Vec<(Time, Span)>,
    /// Limit of the queue.
    pub queue: Limit,
    /// Active queue management, which acts below that limit.
    pub aqm: Option<AqmConfig>,
    /// Probability of independent random losses, within [0, 1).
    pub loss: f64,
    /// Another loss model; replaces `loss`.
    pub loss_model: Option<LossModel>,
    /// Independent losses whose probability changes: (start, probability), beside the others.
    pub loss_steps: Vec<(Time, f64)>,
    /// Upper bound of a random extra delay that keeps the order of packets.
    pub jitter: Span,
    /// Packets that others overtake.
    pub reordering: Reordering,
    /// A medium that the link shares: frames are sent several at once, after contention.
    pub medium: Option<MediumConfig>,
    /// Seed of all random numbers of the link.
    pub seed: u64,
}

impl LinkConfig {
    /// The delay of the shortest route.
    pub(crate) fn min_delay(&self) -> Span {
        self.reroutes.iter().map(|route| route.1).fold(self.delay, Span::min)
    }
}

/// A one-way link.
#[derive(Clone, Debug)]
pub struct Link<P> {
    ring: VecDeque<InTransit<P>>,
    queue: Droptail,
    delay: Span,
    shaper: Shaper,
    loss: LossProcess,
    /// AQM, jitter, reordering, reroutes, loss steps and medium. If present, it holds all packets and `ring` is empty.
    managed: Option<Box<ManagedLink<P>>>,
    accepted: u64,
    accepted_bytes: u64,
    lost: u64,
}

/// A droptail queue (Linux's pfifo and bfifo).
#[derive(Clone, Debug)]
struct Droptail {
    /// The queued packets: the last ones in the ring.
    backlog: Backlog,
    /// When the transmission of the first queued packet starts.
    next_start: Time,
    limit: Limit,
    dropped: u64,
}

/// A packet on the link: queued, in transmission or in propagation.
#[derive(Clone, Debug)]
struct InTransit<P> {
    /// When its last bit is on the wire.
    departure: Time,
    packet: P,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was full (tail drop or, in FQ-CoDel, overlimit drop).
    Overflow,
    /// The AQM dropped it.
    Early,
    /// The loss process dropped it.
    Loss,
}

/// Counters of a link and its present queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// Packets whose transmission has started.
    pub sent_packets: u64,
    /// Bytes of those packets.
    pub sent_bytes: u64,
    /// Packets dropped by the full queue or by the AQM.
    pub dropped: u64,
    /// Packets dropped by the loss process.
    pub lost: u64,
    /// Packets that the AQM marked (CE).
    pub marked: u64,
    /// The present backlog of the queue.
    pub backlog: Backlog,
    /// Time until a packet that arrives now would start its transmission.
    pub queueing_delay: Span,
}

impl<P: Packet> Link<P> {
    /// An empty link.
    ///
    /// # Panics
    /// If a probability is out of range, or if rates, reroutes or delivery opportunities are not in
    /// order.
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

    /// A link without losses, AQM, jitter, reordering and reroutes.
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

    /// A link that only delays: no rate limit, no queue limit, no loss.
    pub fn delay_line(delay: Span) -> Link<P> {
        Link::plain(&LinkConfig { delay, ..LinkConfig::default() })
    }

    /// The one-way propagation delay; with reroutes that of the shortest route.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Accepts a packet at the near end. `now` must not decrease from call to call.
    ///
    /// # Errors
    /// If the packet is dropped; the link has counted it.
    #[inline(always)]
    pub fn push(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        if self.loss.drops_next() {
            self.lost += 1;
            return Err(DropReason::Loss);
        }
        let size = packet.size();
        // A managed link has its shaper inside `managed`, and none here.
        let departure = match &mut self.shaper {
            Shaper::None if self.managed.is_none() => now,
            Shaper::ConstantRate(_) => self.enqueue(now, size)?,
            _ => match &mut self.managed {
                Some(managed) => return push_managed(managed, now, packet),
                None => self.enqueue_shaped(now, size)?,
            },
        };
        self.accepted += 1;
        self.accepted_bytes += u64::from(size);
        self.ring.push_back(InTransit { departure, packet });
        Ok(())
    }

    /// Queues a packet for a transmitter of constant rate; returns its departure. The backlog is
    /// updated only if the queue seems to be full.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, size: u32) -> Result<Time, DropReason> {
        let Shaper::ConstantRate(rate) = &mut self.shaper else { return Ok(now) };
        let start = rate.busy_until().max(now);
        if start == now {
            let departure = rate.accept(now, size);
            self.queue.backlog = Backlog::default();
            self.queue.next_start = departure;
            return Ok(departure);
        }
        if !self.queue.admits(now, start, size) {
            self.advance(now);
        }
        self.queue.add(now, start, size)?;
        let Shaper::ConstantRate(rate) = &mut self.shaper else { return Ok(now) };
        Ok(rate.accept(now, size))
    }

    /// The same for the other shapers.
    #[inline(never)]
    fn enqueue_shaped(&mut self, now: Time, size: u32) -> Result<Time, DropReason> {
        self.advance(now);
        let start = match &self.shaper {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => {
                self.shaper.departure(now, u64::from(size))
            }
            shaper => shaper.service_start(now),
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

    /// When the next packet is delivered at the far end; [`Time::MAX`] if the link is empty. A
    /// later push may change it unless [`next_arrival_is_final`](Self::next_arrival_is_final). With
    /// AQM, jitter or reordering it is a lower bound: [`pop`](Self::pop) may return nothing then,
    /// and this a later time.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        match self.ring.front() {
            Some(head) => head.departure + self.delay,
            None => self.managed.as_ref().map_or(Time::MAX, |managed| next_arrival_of(managed)),
        }
    }

    /// When the last packet is delivered at the far end of a plain link; [`Time::MAX`] if it is
    /// empty.
    pub(crate) fn last_arrival(&self) -> Time {
        self.ring.back().map_or(Time::MAX, |last| last.departure + self.delay)
    }

    /// The packet that is delivered next on a plain link.
    pub(crate) fn first(&self) -> Option<&P> {
        self.ring.front().map(|first| &first.packet)
    }

    /// The packet that a plain link accepted last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut P> {
        self.ring.back_mut().map(|last| &mut last.packet)
    }

    /// Whether no later push can change [`next_arrival`](Self::next_arrival), and no packet on the
    /// link can be dropped any more.
    #[inline]
    pub fn next_arrival_is_final(&self) -> bool {
        !self.ring.is_empty() || self.managed.as_ref().is_some_and(|managed| is_final(managed))
    }

    /// The next packet at the far end, if it is delivered by `now`.
    #[inline(always)]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        let Some(head) = self.ring.front() else { return pop_managed(self.managed.as_mut()?, now) };
        if head.departure + self.delay > now {
            return None;
        }
        // The head has departed, so it must leave the backlog, which is updated lazily.
        if self.queue.backlog.packets as usize == self.ring.len() {
            self.advance(now);
        }
        self.ring.pop_front().map(|head| head.packet)
    }

    /// Packets of the ring by position, 0 for the next delivery. `None` if there are fewer packets
    /// or they are not contiguous in memory, which is rare, and on links with AQM, jitter or
    /// reordering.
    #[inline]
    pub fn peek<const N: usize>(&self, ahead: [usize; N]) -> Option<[&P; N]> {
        let (front, _) = self.ring.as_slices();
        let front = front.get(..=ahead.into_iter().max()?)?;
        Some(ahead.map(|index| &front[index].packet))
    }

    /// The number of packets on the link: queued, in transmission or in propagation.
    pub fn len(&self) -> usize {
        self.ring.len() + self.managed.as_ref().map_or(0, |managed| managed.len())
    }

    /// Whether the link is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps packets that are dropped after they were accepted (CoDel, FQ-CoDel) for
    /// [`take_discarded`](Self::take_discarded).
    pub fn record_discarded(&mut self) {
        if let Some(managed) = &mut self.managed {
            managed.record_discarded();
        }
    }

    /// The next packet that was dropped after it was accepted, with time and reason.
    pub fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.managed.as_mut()?.take_discarded()
    }

    /// Counters and backlog at `now`.
    pub fn statistics(&mut self, now: Time) -> LinkStatistics {
        if let Some(managed) = &mut self.managed {
            let statistics = managed.statistics(now);
            return LinkStatistics { lost: self.lost + statistics.lost, ..statistics };
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

    /// Removes packets whose transmission has started by `now` from the backlog.
    #[inline(always)]
    fn advance(&mut self, now: Time) {
        while self.queue.backlog.packets > 0 && self.queue.next_start <= now {
            let index = self.ring.len() - self.queue.backlog.packets as usize;
            let first = &self.ring[index];
            // After a plain transmitter's packet departs the next one starts. Behind a token bucket
            // or a trace a packet is queued until its own departure.
            self.queue.next_start = match &self.shaper {
                Shaper::TokenBucket(_) | Shaper::Trace(_) => {
                    self.ring.get(index + 1).map_or(now, |next| next.departure)
                }
                _ => first.departure,
            };
            self.queue.backlog.remove(first.packet.size());
        }
    }
}

// The managed link is called out of line by functions that the compiler takes for unlikely, so that
// it lays out the plain link's code without it. They are not the methods themselves: what is only called
// from unlikely code is compiled for size.

#[cold]
#[inline(never)]
fn push_managed<P: Packet>(
    managed: &mut ManagedLink<P>,
    now: Time,
    packet: P,
) -> Result<(), DropReason> {
    managed.push(now, packet)
}

#[cold]
#[inline(never)]
fn pop_managed<P: Packet>(managed: &mut ManagedLink<P>, now: Time) -> Option<P> {
    managed.pop(now)
}

#[cold]
#[inline(never)]
fn next_arrival_of<P: Packet>(managed: &ManagedLink<P>) -> Time {
    managed.next_arrival()
}

#[cold]
#[inline(never)]
fn is_final<P: Packet>(managed: &ManagedLink<P>) -> bool {
    managed.next_arrival_is_final()
}

impl Droptail {
    /// Whether a packet whose transmission would start at `start` fits into the queue.
    #[inline]
    fn admits(&self, now: Time, start: Time, size: u32) -> bool {
        self.limit.admits(self.backlog, size, start.since(now))
    }

    /// Queues a packet whose transmission starts at `start`, if it fits.
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
