//! A link with AQM, jitter, reordering or reroutes: AQM queue, then a plain link, then a delay
//! stage.
//!
//! The plain link carries the sizes of the packets only. An AQM decides which packet to send, if
//! any, when the shaper is free; only then does the packet enter the plain link. These decisions
//! depend on past arrivals only, so they are evaluated lazily, up to the present, on the next
//! access.

use crate::aqm::AqmQueue;
use crate::delay_stage::DelayStage;
use crate::{DropReason, Limit, Link, LinkConfig, LinkStatistics, Packet};
use dumbbell_units::{Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct ManagedLink<P> {
    aqm: Option<AqmQueue<P>>,
    link: Link<SizeOnly>,
    /// Packets on the plain link and behind it. The plain link is first in, first out, so the time
    /// at which a packet will have crossed it is known when it enters.
    delay_stage: DelayStage<P>,
    /// Time of the last arrival or start of transmission.
    last_event: Time,
}

/// A packet on the plain link: its size in bytes.
#[derive(Clone, Copy, Debug)]
struct SizeOnly(u32);

impl Packet for SizeOnly {
    fn size(&self) -> u32 {
        self.0
    }
}

impl<P: Packet> ManagedLink<P> {
    /// The managed link of a configuration; `None` if a plain link is enough.
    pub(crate) fn new(config: &LinkConfig) -> Option<ManagedLink<P>> {
        let LinkConfig { aqm, queue, jitter, reordering, seed, .. } = *config;
        let has_plain_delay =
            jitter.is_zero() && reordering.share == 0.0 && config.reroutes.is_empty();
        if aqm.is_none() && has_plain_delay {
            return None;
        }
        let delay_stage = DelayStage::new(jitter, reordering, extra_delays(config), seed);
        let aqm = aqm.map(|aqm| AqmQueue::new(aqm, queue, seed));
        let queue = if aqm.is_some() { Limit::Unlimited } else { queue };
        let link = Link::plain(&LinkConfig { queue, ..config.clone() });
        Some(ManagedLink { aqm, link, delay_stage, last_event: Time::ZERO })
    }

    /// Accepts a packet at the near end.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        self.transmit(now);
        let Some(aqm) = &mut self.aqm else { return self.send(now, packet) };
        self.last_event = now;
        aqm.enqueue(now, packet, self.link.shaper())?;
        self.transmit(now);
        Ok(())
    }

    /// The next packet at the far end, if it is delivered by `now`.
    #[cold]
    #[inline(never)]
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        self.transmit(now);
        while self.link.pop(now).is_some() {}
        self.delay_stage.pop(now)
    }

    /// Lower bound of the next delivery.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_arrival(&self) -> Time {
        let has_backlog = self.aqm.as_ref().is_some_and(|aqm| aqm.backlog().packets > 0);
        let start =
            if has_backlog { self.link.shaper().service_start(self.last_event) } else { Time::MAX };
        self.delay_stage.next_delivery().min(start + self.link.delay())
    }

    /// See [`Link::next_arrival_is_final`].
    #[cold]
    #[inline(never)]
    pub(crate) fn next_arrival_is_final(&self) -> bool {
        self.aqm.is_none() && self.delay_stage.next_delivery_is_final()
    }

    /// Starts all transmissions that start by `now`.
    fn transmit(&mut self, now: Time) {
        while let Some(aqm) = &mut self.aqm
            && aqm.backlog().packets > 0
        {
            let start = self.link.shaper().service_start(self.last_event);
            if start > now {
                break;
            }
            self.last_event = start;
            if let Some(packet) = aqm.dequeue(start) {
                let sent = self.send(start, packet);
                debug_assert!(sent.is_ok(), "a link without limit and losses accepts every packet");
            }
        }
    }

    /// Starts the transmission of a packet.
    fn send(&mut self, now: Time, packet: P) -> Result<(), DropReason> {
        self.link.push(now, SizeOnly(packet.size()))?;
        self.delay_stage.push(self.link.last_arrival(), packet);
        Ok(())
    }

    /// The number of packets on the link.
    pub(crate) fn len(&self) -> usize {
        let backlog = self.aqm.as_ref().map_or(0, |aqm| aqm.backlog().packets);
        backlog as usize + self.delay_stage.len()
    }

    /// Counters and backlog at `now`.
    pub(crate) fn statistics(&mut self, now: Time) -> LinkStatistics {
        self.transmit(now);
        let link = self.link.statistics(now);
        let Some(aqm) = &self.aqm else { return link };
        let (dropped, marked) = aqm.counts();
        let mut backlog = aqm.backlog();
        let queueing_delay = self.link.shaper().departure(now, backlog.bytes).since(now);
        // Behind a token bucket or a trace a dequeued packet may still wait in the plain link.
        backlog.packets += link.backlog.packets;
        backlog.bytes += link.backlog.bytes;
        LinkStatistics { dropped, marked, backlog, queueing_delay, ..link }
    }

    pub(crate) fn record_discarded(&mut self) {
        if let Some(aqm) = &mut self.aqm {
            aqm.record_discarded();
        }
    }

    pub(crate) fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.aqm.as_mut()?.take_discarded()
    }
}

/// (start, extra delay over the shortest route) of the routes, for packets that have crossed the
/// shortest route.
fn extra_delays(config: &LinkConfig) -> Vec<(Time, Span)> {
    let shortest = config.min_delay();
    let beyond = |delay: Span| Span::from_nanos(delay.as_nanos() - shortest.as_nanos());
    let from_begin = config.reroutes.first().is_some_and(|route| route.0 == Time::ZERO);
    let first = (!from_begin).then_some((Time::ZERO, config.delay));
    let routes = first.into_iter().chain(config.reroutes.iter().copied());
    routes.map(|(from, delay)| (from + shortest, beyond(delay))).collect()
}
