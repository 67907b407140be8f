//! What only some links have: a managed queue, and a far end that does not deliver evenly.
//!
//! Such a link is a plain link with the one before it and the other behind; of the packets on it the
//! plain link knows no more than the sizes. A managed queue decides which packet is sent, if any, when
//! the server is free to send one; so its packets go onto the plain link only then. Nobody need look
//! at the link at that time: as nothing else happens between two packets that come, the decisions up
//! to a given time can be made up for in one go whenever somebody does.

use crate::aqm::Managed;
use crate::tail::Tail;
use crate::{Dropped, Limit, Link, LinkConfig, Packet, Statistics};
use dumbbell_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Extras<P> {
    managed: Option<Managed<P>>,
    line: Link<Bytes>,
    /// The packets that are on the line, and those that have crossed it: as the line is first in,
    /// first out, it is known when they will have.
    tail: Tail<P>,
    /// When a packet last came or began to be sent.
    clock: Time,
}

/// What a packet is on the line: its size.
#[derive(Clone, Copy, Debug)]
struct Bytes(u32);

impl Packet for Bytes {
    fn size(&self) -> u32 {
        self.0
    }
}

impl<P: Packet> Extras<P> {
    /// The extras of a link, if it has any.
    pub(crate) fn new(config: &LinkConfig) -> Option<Extras<P>> {
        let LinkConfig { aqm, queue, jitter, reordering, seed, .. } = *config;
        let is_even = jitter.is_zero() && reordering.share == 0.0 && config.reroutes.is_empty();
        if aqm.is_none() && is_even {
            return None;
        }
        let tail = Tail::new(jitter, reordering, detours(config), seed);
        let managed = aqm.map(|aqm| Managed::new(aqm, queue, seed));
        let queue = if managed.is_some() { Limit::Unlimited } else { queue };
        let line = Link::plain(&LinkConfig { queue, ..config.clone() });
        Some(Extras { managed, line, tail, clock: Time::ZERO })
    }

    /// A packet comes to the near end.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
        self.transmit(now);
        let Some(managed) = &mut self.managed else { return self.send(now, packet) };
        self.clock = now;
        managed.enqueue(now, packet, self.line.server())?;
        self.transmit(now);
        Ok(())
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        self.transmit(now);
        while self.line.pop(now).is_some() {}
        self.tail.pop(now)
    }

    /// No packet comes out earlier than this.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_arrival(&self) -> Time {
        let waits = self.managed.as_ref().is_some_and(|managed| managed.waiting().packets > 0);
        let start = if waits { self.line.server().start(self.clock) } else { Time::MAX };
        self.tail.next().min(start + self.line.delay())
    }

    /// See [`Link::is_settled`].
    #[cold]
    #[inline(never)]
    pub(crate) fn is_settled(&self) -> bool {
        self.managed.is_none() && self.tail.is_settled()
    }

    /// Puts onto the line what the server takes up until `now`.
    fn transmit(&mut self, now: Time) {
        while let Some(managed) = &mut self.managed
            && managed.waiting().packets > 0
        {
            let start = self.line.server().start(self.clock);
            if start > now {
                break;
            }
            self.clock = start;
            if let Some(packet) = managed.dequeue(start) {
                let sent = self.send(start, packet);
                debug_assert!(sent.is_ok(), "a line without limit and losses takes all");
            }
        }
    }

    /// A packet comes to the line.
    fn send(&mut self, now: Time, packet: P) -> Result<(), Dropped> {
        self.line.push(now, Bytes(packet.size()))?;
        self.tail.push(self.line.last_arrival(), packet);
        Ok(())
    }

    /// Packets on the link.
    pub(crate) fn len(&self) -> usize {
        let waiting = self.managed.as_ref().map_or(0, |managed| managed.waiting().packets);
        waiting as usize + self.tail.len()
    }

    /// What the link has done until `now`, and what waits then.
    pub(crate) fn statistics(&mut self, now: Time) -> Statistics {
        self.transmit(now);
        let line = self.line.statistics(now);
        let Some(managed) = &self.managed else { return line };
        let (dropped, marked) = managed.counts();
        let mut waiting = managed.waiting();
        let queueing_delay = self.line.server().departure(now, waiting.bytes).since(now);
        // A packet that the server has taken up waits on if it has to for tokens or opportunities.
        waiting.packets += line.waiting.packets;
        waiting.bytes += line.waiting.bytes;
        Statistics { dropped, marked, waiting, queueing_delay, ..line }
    }

    pub(crate) fn keep_discarded(&mut self) {
        if let Some(managed) = &mut self.managed {
            managed.keep_discarded();
        }
    }

    pub(crate) fn take_discarded(&mut self) -> Option<(Time, Dropped, P)> {
        self.managed.as_mut()?.take_discarded()
    }
}

/// For packets that cross the shortest route from when on, by how much theirs is longer.
fn detours(config: &LinkConfig) -> Vec<(Time, Span)> {
    let shortest = config.least_delay();
    let beyond = |delay: Span| Span::from_nanos(delay.as_nanos() - shortest.as_nanos());
    let from_begin = config.reroutes.first().is_some_and(|route| route.0 == Time::ZERO);
    let first = (!from_begin).then_some((Time::ZERO, config.delay));
    let routes = first.into_iter().chain(config.reroutes.iter().copied());
    routes.map(|(from, delay)| (from + shortest, beyond(delay))).collect()
}
