//! A link: a loss process, a queue, a rate and a delay, in this order.
//!
//! Random losses occur on arrival, before the queue, as in netem: a lost packet uses neither queue
//! nor capacity. The rest is in `plain_link.rs`; what links with AQM, jitter, reordering, reroutes and
//! the like have besides is in `managed_link.rs`.

use crate::managed_link::ManagedLink;
use crate::plain_link::PlainLink;
use crate::{AqmConfig, Backlog, FlowKeys, Limit, LossModel, LossProcess, MediumConfig, Packet};
use crate::{RateProcess, Reordering};
use dumbbell_units::{Span, Time};
use std::num::NonZeroU64;
use std::sync::Arc;

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
    /// Bytes of the largest packet of the flows that cross the link, for AQMs that refer to a full packet.
    /// Less than 1500 counts as 1500.
    pub max_packet: u32,
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
    /// Bytes of a full packet, headers included.
    pub(crate) fn mtu(&self) -> u32 {
        self.max_packet.max(1500)
    }

    /// (start, delay) of the routes. A reroute at zero leaves no packet on the route of `delay`.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (Time, Span)> {
        let from_begin = self.reroutes.first().is_some_and(|route| route.0 == Time::ZERO);
        let first = (!from_begin).then_some((Time::ZERO, self.delay));
        first.into_iter().chain(self.reroutes.iter().copied())
    }

    /// The delay of the shortest route.
    pub(crate) fn min_delay(&self) -> Span {
        self.routes().map(|route| route.1).min().unwrap_or(self.delay)
    }
}

/// A one-way link.
#[derive(Clone, Debug)]
pub struct Link<P> {
    plain: PlainLink<P>,
    loss: LossProcess,
    lost: u64,
    /// AQM, jitter, reordering, reroutes, loss steps and medium. Packets are in `plain` behind it, or
    /// if they do not all take the same time, in it.
    managed: Option<Box<ManagedLink<P>>>,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was full (tail drop or, in FQ-CoDel, overlimit drop).
    Overflow,
    /// The AQM dropped it.
    Early,
    /// CAKE's ACK filter dropped it.
    AckFilter,
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
        let (plain, managed) = match ManagedLink::new(config) {
            None => (PlainLink::new(config), None),
            Some((plain, managed)) => (plain, Some(Box::new(managed))),
        };
        Link { plain, loss, lost: 0, managed }
    }

    /// A link that only delays: no rate limit, no queue limit, no loss.
    pub fn delay_line(delay: Span) -> Link<P> {
        Link::new(&LinkConfig { delay, ..LinkConfig::default() })
    }

    /// The one-way propagation delay; with reroutes that of the shortest route.
    pub fn delay(&self) -> Span {
        self.plain.delay()
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
        match &mut self.managed {
            Some(managed) => push_managed(managed, &mut self.plain, now, packet),
            None => self.plain.push(now, packet),
        }
    }

    /// When the next packet is delivered at the far end; [`Time::MAX`] if the link is empty. A
    /// later push may change it unless [`next_arrival_is_final`](Self::next_arrival_is_final). With
    /// AQM, jitter or reordering it is a lower bound: [`pop`](Self::pop) may return nothing then,
    /// and this a later time.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        if !self.plain.is_empty() {
            return self.plain.next_arrival();
        }
        self.managed.as_ref().map_or(Time::MAX, |managed| next_arrival_of(managed, &self.plain))
    }

    /// Whether no later push can change [`next_arrival`](Self::next_arrival).
    #[inline]
    pub fn next_arrival_is_final(&self) -> bool {
        !self.plain.is_empty() || self.managed.as_ref().is_some_and(|managed| is_final(managed))
    }

    /// The next packet at the far end, if it is delivered by `now`;
    /// [`remove_first`](Self::remove_first) removes it.
    ///
    /// Two steps, because a packet is copied as a whole, and its copy in an `Option` is written in
    /// parts: reading the whole would wait until the parts are in the cache.
    #[inline(always)]
    pub fn first_delivered(&mut self, now: Time) -> Option<&P> {
        if self.plain.is_empty() {
            let managed = self.managed.as_mut()?;
            if managed.is_due(now) {
                transmit(managed, &mut self.plain, now);
            }
            if self.plain.is_empty() {
                return managed.first_delivered(now);
            }
        }
        self.plain.first_delivered(now)
    }

    /// Removes the packet that [`first_delivered`](Self::first_delivered) returned for `now`.
    #[inline(always)]
    pub fn remove_first(&mut self, now: Time) {
        if let Some(managed) = &mut self.managed {
            // What `now` starts is only looked up here, so that `first_delivered` is short.
            if managed.is_due(now) {
                transmit(managed, &mut self.plain, now);
            }
            if self.plain.is_empty() {
                return managed.remove_first(now);
            }
        }
        self.plain.remove_first(now)
    }

    /// Removes the next packet at the far end, if it is delivered by `now`.
    pub fn pop(&mut self, now: Time) -> Option<P> {
        let packet = self.first_delivered(now)?.clone();
        self.remove_first(now);
        Some(packet)
    }

    /// Packets by position, 0 for the next delivery. `None` if there are fewer packets
    /// or they are not contiguous in memory, which is rare, and on links with jitter or reordering.
    #[inline]
    pub fn peek<const N: usize>(&self, ahead: [usize; N]) -> Option<[&P; N]> {
        self.plain.peek(ahead)
    }

    /// The number of packets on the link: queued, in transmission or in propagation.
    pub fn len(&self) -> usize {
        self.plain.len() + self.managed.as_ref().map_or(0, |managed| managed.len())
    }

    /// Whether the link is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the hosts and the DSCP of flows, by [`Packet::flow`], for CAKE.
    pub fn set_flow_keys(&mut self, keys: &Arc<[FlowKeys]>) {
        if let Some(managed) = &mut self.managed {
            managed.set_flow_keys(keys);
        }
    }

    /// Keeps packets that are dropped after they were accepted (CoDel, FQ-CoDel) for
    /// [`take_discarded`](Self::take_discarded).
    pub fn record_discarded(&mut self) {
        if let Some(managed) = &mut self.managed {
            managed.record_discarded();
        }
    }

    /// Whether packets that the link has accepted may be dropped; never on plain links.
    #[inline]
    pub fn may_discard(&self) -> bool {
        self.managed.is_some()
    }

    /// Whether packets wait for [`take_discarded`](Self::take_discarded).
    #[inline]
    pub fn has_discarded(&self) -> bool {
        // On plain links this is one comparison.
        self.managed.as_ref().is_some_and(|managed| managed.has_discarded())
    }

    /// The next packet that was dropped after it was accepted, with time and reason.
    pub fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.managed.as_mut()?.take_discarded()
    }

    /// Counters and backlog at `now`.
    pub fn statistics(&mut self, now: Time) -> LinkStatistics {
        if let Some(managed) = &mut self.managed {
            let statistics = managed.statistics(&mut self.plain, now);
            return LinkStatistics { lost: self.lost + statistics.lost, ..statistics };
        }
        LinkStatistics { lost: self.lost, ..self.plain.statistics(now) }
    }
}

// The managed link is called out of line by functions that the compiler takes for unlikely, so that
// it lays out the plain link's code without it. They are not the methods themselves: what is only called
// from unlikely code is compiled for size.

#[cold]
#[inline(never)]
fn push_managed<P: Packet>(
    managed: &mut ManagedLink<P>,
    plain: &mut PlainLink<P>,
    now: Time,
    packet: P,
) -> Result<(), DropReason> {
    managed.push(plain, now, packet)
}

#[cold]
#[inline(never)]
fn transmit<P: Packet>(managed: &mut ManagedLink<P>, plain: &mut PlainLink<P>, now: Time) {
    managed.transmit(plain, now);
}

#[cold]
#[inline(never)]
fn next_arrival_of<P: Packet>(managed: &ManagedLink<P>, plain: &PlainLink<P>) -> Time {
    managed.next_arrival(plain)
}

#[cold]
#[inline(never)]
fn is_final<P: Packet>(managed: &ManagedLink<P>) -> bool {
    managed.next_arrival_is_final()
}

#[cfg(test)]
mod tests;
