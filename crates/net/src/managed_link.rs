//! What only some links have: a managed queue, and a far end that does not deliver evenly.
//!
//! Such a link is a plain link with the one before it and the other behind; of the packets on it the
//! plain link knows no more than the sizes. A managed queue decides which packet is sent, if any, when
//! the server is free to send one; so its packets go onto the plain link only then. Nobody need look
//! at the link at that time: as nothing else happens between two packets that come, the decisions up
//! to a given time can be made up for in one go whenever somebody does.

use crate::aqm::AqmQueue;
use crate::delay_stage::DelayStage;
use crate::{DropReason, Limit, Link, LinkConfig, LinkStatistics, Packet};
use dumbbell_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct ManagedLink<P> {
    managed: Option<AqmQueue<P>>,
    link: Link<SizeOnly>,
    /// The packets that are on the line, and those that have crossed it: as the line is first in,
    /// first out, it is known when they will have.
    delay_stage: DelayStage<P>,
    /// When a packet last came or began to be sent.
    last_event: Time,
}

/// What a packet is on the line: its size.
#[derive(Clone, Copy, Debug)]
struct SizeOnly(u32);

impl Packet for SizeOnly {
    fn size(&self) -> u32 {
        self.0
    }
}

impl<P: Packet> ManagedLink<P> {
    /// The extras of a link, if it has any.
    pub(crate) fn new(config: &LinkConfig) -> Option<ManagedLink<P>> {
        let LinkConfig { aqm, queue, jitter, reordering, seed, .. } = *config;
        let has_plain_delay =
            jitter.is_zero() && reordering.share == 0.0 && config.reroutes.is_empty();
        if aqm.is_none() && has_plain_delay {
            return None;
        }
        let delay_stage = DelayStage::new(jitter, reordering, extra_delays(config), seed);
        let managed = aqm.map(|aqm| AqmQueue::new(aqm, queue, seed));
        let queue = if managed.is_some() { Limit::Unlimited } else { queue };
        let link = Link::plain(&LinkConfig { queue, ..config.clone() });
        Some(ManagedLink { managed, link, delay_stage, last_event: Time::ZERO })
    }

    /// A packet comes to the near end.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        self.transmit(now);
        let Some(managed) = &mut self.managed else { return self.send(now, packet) };
        self.last_event = now;
        managed.enqueue(now, packet, self.link.shaper())?;
        self.transmit(now);
        Ok(())
    }

    /// The next packet at the far end, if it has come out by `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        self.transmit(now);
        while self.link.pop(now).is_some() {}
        self.delay_stage.pop(now)
    }

    /// No packet comes out earlier than this.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_arrival(&self) -> Time {
        let waits = self.managed.as_ref().is_some_and(|managed| managed.backlog().packets > 0);
        let start = if waits { self.link.shaper().start(self.last_event) } else { Time::MAX };
        self.delay_stage.next_delivery().min(start + self.link.delay())
    }

    /// See [`Link::next_arrival_is_final`].
    #[cold]
    #[inline(never)]
    pub(crate) fn next_arrival_is_final(&self) -> bool {
        self.managed.is_none() && self.delay_stage.next_arrival_is_final()
    }

    /// Puts onto the line what the server takes up until `now`.
    fn transmit(&mut self, now: Time) {
        while let Some(managed) = &mut self.managed
            && managed.backlog().packets > 0
        {
            let start = self.link.shaper().start(self.last_event);
            if start > now {
                break;
            }
            self.last_event = start;
            if let Some(packet) = managed.dequeue(start) {
                let sent = self.send(start, packet);
                debug_assert!(sent.is_ok(), "a link without limit and loss_model takes all");
            }
        }
    }

    /// A packet comes to the line.
    fn send(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        self.link.push(now, SizeOnly(packet.size()))?;
        self.delay_stage.push(self.link.last_arrival(), packet);
        Ok(())
    }

    /// Packets on the link.
    pub(crate) fn len(&self) -> usize {
        let backlog = self.managed.as_ref().map_or(0, |managed| managed.backlog().packets);
        backlog as usize + self.delay_stage.len()
    }

    /// What the link has done until `now`, and what waits then.
    pub(crate) fn statistics(&mut self, now: Time) -> LinkStatistics {
        self.transmit(now);
        let link = self.link.statistics(now);
        let Some(managed) = &self.managed else { return link };
        let (dropped, marked) = managed.counts();
        let mut backlog = managed.backlog();
        let queueing_delay = self.link.shaper().departure(now, backlog.bytes).since(now);
        // A packet that the server has taken up waits on if it has to for tokens or opportunities.
        backlog.packets += link.backlog.packets;
        backlog.bytes += link.backlog.bytes;
        LinkStatistics { dropped, marked, backlog, queueing_delay, ..link }
    }

    pub(crate) fn record_discarded(&mut self) {
        if let Some(managed) = &mut self.managed {
            managed.record_discarded();
        }
    }

    pub(crate) fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.managed.as_mut()?.take_discarded()
    }
}

/// For packets that cross the shortest route from when on, by how much theirs is longer.
fn extra_delays(config: &LinkConfig) -> Vec<(Time, Span)> {
    let shortest = config.min_delay();
    let beyond = |delay: Span| Span::from_nanos(delay.as_nanos() - shortest.as_nanos());
    let from_begin = config.reroutes.first().is_some_and(|route| route.0 == Time::ZERO);
    let first = (!from_begin).then_some((Time::ZERO, config.delay));
    let routes = first.into_iter().chain(config.reroutes.iter().copied());
    routes.map(|(from, delay)| (from + shortest, beyond(delay))).collect()
}
