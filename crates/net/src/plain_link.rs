//! A link without losses, AQM, jitter, reordering and reroutes.
//!
//! Everything is first in, first out, and a packet's departure is known on arrival: once all packets
//! before it have departed and its own bits are on the wire. One ring therefore holds each packet with
//! its departure, from its arrival at the near end to its delivery at the far end. The last packets of
//! the ring are the queue. Their number is updated lazily, on access.

use crate::shaper::Shaper;
use crate::{Backlog, DropReason, Limit, LinkConfig, LinkStatistics, Packet};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Packets from which on a ring grows slowly.
const LARGE: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct PlainLink<P> {
    ring: VecDeque<InTransit<P>>,
    queue: Droptail,
    delay: Span,
    shaper: Shaper,
    accepted: u64,
    accepted_bytes: u64,
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

impl<P: Packet> PlainLink<P> {
    /// An empty link with the rate, the shortest delay and the queue limit of a configuration.
    pub(crate) fn new(config: &LinkConfig) -> PlainLink<P> {
        PlainLink {
            ring: VecDeque::new(),
            queue: Droptail {
                backlog: Backlog::default(),
                next_start: Time::ZERO,
                limit: config.queue,
                dropped: 0,
            },
            delay: config.min_delay(),
            shaper: Shaper::new(config),
            accepted: 0,
            accepted_bytes: 0,
        }
    }

    /// The one-way propagation delay.
    pub(crate) fn delay(&self) -> Span {
        self.delay
    }

    pub(crate) fn shaper(&self) -> &Shaper {
        &self.shaper
    }

    /// Accepts a packet at the near end.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        self.push_with(now, packet.size(), |_| packet)
    }

    /// The same for a packet of `size` bytes that depends on its arrival at the far end.
    #[inline(always)]
    pub(crate) fn push_with(
        &mut self,
        now: Time,
        size: u32,
        packet: impl FnOnce(Time) -> P,
    ) -> Result<(), DropReason> {
        let departure = match &self.shaper {
            Shaper::None => now,
            Shaper::ConstantRate(_) => self.enqueue(now, size)?,
            _ => self.enqueue_shaped(now, size)?,
        };
        self.accept(departure, size, packet(departure + self.delay));
        Ok(())
    }

    /// Takes a packet that departs at a time.
    #[inline(always)]
    fn accept(&mut self, departure: Time, size: u32, packet: P) {
        self.accepted += 1;
        self.accepted_bytes += u64::from(size);
        if self.ring.len() == self.ring.capacity() {
            self.grow();
        }
        self.ring.push_back(InTransit { departure, packet });
    }

    /// Makes room: twice as much, in a large ring a quarter more. Its packets go round, so that all
    /// of its room is in memory.
    #[cold]
    fn grow(&mut self) {
        let room = self.ring.len();
        self.ring.reserve_exact(if room < LARGE { room.max(4) } else { room / 4 });
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
        let start = self.shaper.queued_until(now, size);
        if start > now {
            self.queue.add(now, start, size)?;
        }
        let departure = self.shaper.accept(now, size);
        if start == now {
            self.queue.next_start = departure;
        }
        Ok(departure)
    }

    /// When the next packet is delivered at the far end; [`Time::MAX`] if the link is empty. No later push
    /// changes it.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        self.ring.front().map_or(Time::MAX, |first| first.departure + self.delay)
    }

    /// When the last packet is delivered at the far end; [`Time::MAX`] if it is
    /// empty.
    pub(crate) fn last_arrival(&self) -> Time {
        self.ring.back().map_or(Time::MAX, |last| last.departure + self.delay)
    }

    /// The packet that is delivered next.
    pub(crate) fn first(&self) -> Option<&P> {
        self.ring.front().map(|first| &first.packet)
    }

    /// See [`Link::first_delivered`](crate::Link::first_delivered).
    #[inline(always)]
    pub(crate) fn first_delivered(&self, now: Time) -> Option<&P> {
        let head = self.ring.front()?;
        (head.departure + self.delay <= now).then_some(&head.packet)
    }

    /// Removes the packet that [`first_delivered`](Self::first_delivered) returned for `now`.
    #[inline(always)]
    pub(crate) fn remove_first(&mut self, now: Time) {
        // The head has departed, so it must leave the backlog, which is updated lazily.
        if self.queue.backlog.packets as usize == self.ring.len() {
            self.advance(now);
        }
        self.ring.pop_front();
    }

    /// See [`Link::peek`](crate::Link::peek).
    #[inline]
    pub(crate) fn peek<const N: usize>(&self, ahead: [usize; N]) -> Option<[&P; N]> {
        let (front, _) = self.ring.as_slices();
        let front = front.get(..=ahead.into_iter().max()?)?;
        Some(ahead.map(|index| &front[index].packet))
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Counters and backlog at `now`.
    pub(crate) fn statistics(&mut self, now: Time) -> LinkStatistics {
        self.advance(now);
        LinkStatistics {
            sent_packets: self.accepted - u64::from(self.queue.backlog.packets),
            sent_bytes: self.accepted_bytes - self.queue.backlog.bytes,
            dropped: self.queue.dropped,
            lost: 0,
            marked: 0,
            backlog: self.queue.backlog,
        }
    }

    /// What waits at `now` for tokens or opportunities; nothing on a transmitter, whose packets do not
    /// wait once they are here.
    #[inline]
    pub(crate) fn waiting(&mut self, now: Time) -> Backlog {
        match &self.shaper {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => {
                self.advance(now);
                self.queue.backlog
            }
            _ => Backlog::default(),
        }
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
