//! What a link with AQM, jitter, reordering, reroutes, loss steps or a shared medium has beside its plain
//! part: an AQM queue before it and, if packets do not all take the same time, a plain link of its own
//! with a delay stage behind.
//!
//! An AQM decides which packet to send, if
//! any, when the shaper is free; only then does the packet enter the plain link. These decisions
//! depend on past arrivals only, so they are evaluated lazily, up to the present, on the next
//! access. On a shared medium several packets are taken from the queue at once and arrive together.

use crate::aqm::AqmQueue;
use crate::delay_stage::{DelayStage, Jitter};
use crate::loss::LossSteps;
use crate::medium::Medium;
use crate::plain_link::PlainLink;
use crate::shaper::Shaper;
use crate::{Backlog, DropReason, FlowKeys, Limit, LinkConfig, LinkStatistics, Packet};
use dumbbell_units::{Span, Time};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct ManagedLink<P> {
    aqm: Option<AqmQueue<P>>,
    path: Path<P>,
    /// When the next transmission starts; [`Time::MAX`] if no packet is queued.
    next_start: Time,
    medium: Option<Medium<P>>,
    loss_steps: Option<LossSteps>,
    /// Packets lost by `loss_steps`.
    lost: u64,
    /// Bytes of frames on the medium beyond those of their packets.
    padding: u64,
}

/// The way of a packet after its transmission.
#[derive(Clone, Debug)]
enum Path<P> {
    /// The link's plain part.
    Plain,
    /// A plain link, and the jitter of packets that stay in order.
    Jittered(PlainLink<Timed<P>>, Jitter),
    /// A plain link for the sizes of the packets, and the delay stage with the packets on the plain
    /// link and behind it. The plain link is first in, first out, so the time at which a packet will
    /// have crossed it is known when it enters.
    Delayed(PlainLink<SizeOnly>, DelayStage<P>),
}

impl<P: Packet> Path<P> {
    #[inline(always)]
    fn push(&mut self, plain: &mut PlainLink<P>, now: Time, packet: &P) -> Result<(), DropReason> {
        match self {
            Path::Plain => plain.push(now, packet.clone()),
            Path::Jittered(link, jitter) => link.push_with(now, packet.size(), |arrival| Timed {
                not_before: jitter.delivery(arrival),
                packet: packet.clone(),
            }),
            Path::Delayed(link, delay_stage) => {
                remove_crossed(link, now);
                link.push_with(now, packet.size(), |arrival| {
                    delay_stage.push(arrival, packet.clone());
                    SizeOnly(packet.size())
                })
            }
        }
    }

    fn first_delivered(&self, now: Time) -> Option<&P> {
        match self {
            Path::Plain => None,
            Path::Jittered(link, _) => {
                let first = link.first_delivered(now)?;
                (first.not_before <= now).then_some(&first.packet)
            }
            Path::Delayed(_, delay_stage) => delay_stage.first_delivered(now),
        }
    }

    fn remove_first(&mut self, now: Time) {
        match self {
            Path::Plain => {}
            Path::Jittered(link, _) => link.remove_first(now),
            Path::Delayed(_, delay_stage) => delay_stage.remove_first(),
        }
    }

    /// The next arrival of the packets that are here.
    fn next_arrival(&self) -> Time {
        match self {
            Path::Plain => Time::MAX,
            Path::Jittered(link, _) => {
                let not_before = link.first().map_or(Time::ZERO, |first| first.not_before);
                link.next_arrival().max(not_before)
            }
            Path::Delayed(_, delay_stage) => delay_stage.next_delivery(),
        }
    }

    fn shaper<'a>(&'a self, plain: &'a PlainLink<P>) -> &'a Shaper {
        match self {
            Path::Plain => plain.shaper(),
            Path::Jittered(link, _) => link.shaper(),
            Path::Delayed(link, _) => link.shaper(),
        }
    }

    /// The number of packets that are here.
    fn len(&self) -> usize {
        match self {
            Path::Plain => 0,
            Path::Jittered(link, _) => link.len(),
            Path::Delayed(_, delay_stage) => delay_stage.len(),
        }
    }

    /// See [`PlainLink::waiting`].
    #[inline]
    fn waiting(&mut self, plain: &mut PlainLink<P>, now: Time) -> Backlog {
        match self {
            Path::Plain => plain.waiting(now),
            Path::Jittered(link, _) => link.waiting(now),
            Path::Delayed(link, _) => link.waiting(now),
        }
    }

    fn statistics(&mut self, plain: &mut PlainLink<P>, now: Time) -> LinkStatistics {
        match self {
            Path::Plain => plain.statistics(now),
            Path::Jittered(link, _) => link.statistics(now),
            Path::Delayed(link, _) => link.statistics(now),
        }
    }
}

/// A packet on a path with jitter, and before which time it is not delivered.
#[derive(Clone, Copy, Debug)]
struct Timed<P> {
    packet: P,
    not_before: Time,
}

impl<P: Packet> Packet for Timed<P> {
    fn size(&self) -> u32 {
        self.packet.size()
    }
}

/// A packet on the plain link of a delayed path: its size in bytes.
#[derive(Clone, Copy, Debug)]
struct SizeOnly(u32);

impl Packet for SizeOnly {
    fn size(&self) -> u32 {
        self.0
    }
}

/// Removes the packets that have crossed a plain link by `now`.
fn remove_crossed(link: &mut PlainLink<SizeOnly>, now: Time) {
    while link.first_delivered(now).is_some() {
        link.remove_first(now);
    }
}

impl<P: Packet> ManagedLink<P> {
    /// The managed link of a configuration with its plain part; `None` if a plain link is enough.
    pub(crate) fn new(config: &LinkConfig) -> Option<(PlainLink<P>, ManagedLink<P>)> {
        let LinkConfig { aqm, queue, jitter, reordering, medium, seed, .. } = *config;
        let in_order = reordering.share == 0.0 && config.reroutes.is_empty();
        let has_plain_delay = in_order && jitter.is_zero();
        let loss_steps = &config.loss_steps;
        if aqm.is_none() && has_plain_delay && loss_steps.is_empty() && medium.is_none() {
            return None;
        }
        let aqm = match aqm {
            Some(aqm) => Some(AqmQueue::new(aqm, queue, config.mtu(), seed)),
            None => medium.map(|_| AqmQueue::tail_drop(queue)),
        };
        let queue = if aqm.is_some() { Limit::Unlimited } else { queue };
        let plain = LinkConfig { queue, ..config.clone() };
        let path = if has_plain_delay && medium.is_none() {
            Path::Plain
        } else if in_order && medium.is_none() {
            Path::Jittered(PlainLink::new(&plain), Jitter::new(jitter, seed))
        } else {
            let delay_stage = DelayStage::new(jitter, reordering, extra_delays(config), seed);
            Path::Delayed(PlainLink::new(&plain), delay_stage)
        };
        let medium = medium.map(|medium| Medium::new(medium, seed));
        let loss_steps = (!loss_steps.is_empty()).then(|| LossSteps::new(loss_steps.clone(), seed));
        let (next_start, lost, padding) = (Time::MAX, 0, 0);
        let managed = ManagedLink { aqm, path, next_start, medium, loss_steps, lost, padding };
        Some((PlainLink::new(&plain), managed))
    }

    /// Accepts a packet at the near end.
    #[inline(never)]
    pub(crate) fn push(
        &mut self,
        plain: &mut PlainLink<P>,
        now: Time,
        packet: P,
    ) -> Result<(), DropReason> {
        if self.loss_steps.as_mut().is_some_and(|steps| steps.drops(now)) {
            self.lost += 1;
            return Err(DropReason::Loss);
        }
        self.transmit(plain, now);
        let Some(aqm) = &mut self.aqm else { return self.path.push(plain, now, &packet) };
        let was_empty = self.next_start == Time::MAX;
        if let Some(medium) = &mut self.medium
            && was_empty
        {
            medium.contend(now);
        }
        // The frames of a transmission on a medium have left the queue.
        let waiting = match self.medium {
            Some(_) => Backlog::default(),
            None => self.path.waiting(plain, now),
        };
        aqm.enqueue(now, packet, waiting, self.path.shaper(plain))?;
        if was_empty {
            self.next_start = self.next_start_after(plain, now);
            self.transmit(plain, now);
        }
        Ok(())
    }

    /// The next packet of those that do not all take the same time, if it is delivered by `now`.
    #[inline(never)]
    pub(crate) fn first_delivered(&self, now: Time) -> Option<&P> {
        self.path.first_delivered(now)
    }

    /// See [`Link::remove_first`](crate::Link::remove_first).
    #[inline(never)]
    pub(crate) fn remove_first(&mut self, now: Time) {
        self.path.remove_first(now);
    }

    /// Lower bound of the next delivery of packets that are not in the plain part, which is empty.
    #[inline(never)]
    pub(crate) fn next_arrival(&self, plain: &PlainLink<P>) -> Time {
        match &self.path {
            // Packets that the AQM holds come behind those on the path.
            Path::Jittered(link, _) if !link.is_empty() => self.path.next_arrival(),
            path => path.next_arrival().min(self.next_start + plain.delay()),
        }
    }

    /// See [`Link::next_arrival_is_final`](crate::Link::next_arrival_is_final).
    #[inline(never)]
    pub(crate) fn next_arrival_is_final(&self) -> bool {
        match &self.path {
            Path::Plain => false,
            Path::Jittered(link, _) => !link.is_empty(),
            Path::Delayed(_, stage) => self.aqm.is_none() && stage.next_delivery_is_final(),
        }
    }

    /// Whether a transmission starts by `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next_start <= now
    }

    /// Starts all transmissions that start by `now`.
    #[inline]
    pub(crate) fn transmit(&mut self, plain: &mut PlainLink<P>, now: Time) {
        while self.is_due(now) {
            self.transmit_next(plain);
        }
    }

    /// Starts the next transmission.
    #[inline(never)]
    fn transmit_next(&mut self, plain: &mut PlainLink<P>) {
        let start = self.next_start;
        if self.medium.is_some() {
            self.transmit_frames(start);
        } else if let Some(aqm) = &mut self.aqm {
            aqm.update_rate(start, self.path.shaper(plain));
            aqm.dequeue(start, |packet| {
                let sent = self.path.push(plain, start, packet);
                debug_assert!(sent.is_ok(), "a link without limit and losses accepts all packets");
            });
        }
        self.next_start = self.next_start_after(plain, start);
    }

    /// When the next transmission starts, after `now` or at it; [`Time::MAX`] if no packet is queued.
    #[inline]
    fn next_start_after(&self, plain: &PlainLink<P>, now: Time) -> Time {
        match (&self.aqm, &self.medium) {
            (Some(aqm), _) if aqm.backlog().packets == 0 => Time::MAX,
            (Some(_), Some(medium)) => medium.next_start(),
            (Some(_), None) => self.path.shaper(plain).service_start(now),
            (None, _) => Time::MAX,
        }
    }

    /// Starts a transmission on a shared medium: several frames, which arrive together.
    fn transmit_frames(&mut self, start: Time) {
        let ManagedLink { aqm: Some(aqm), medium: Some(medium), path, .. } = self else { return };
        let Path::Delayed(link, delay_stage) = path else { return };
        let (data, rate) = (Medium::<P>::data_start(start), link.shaper().rate(start));
        remove_crossed(link, start);
        aqm.update_rate(start, link.shaper());
        while aqm.backlog().packets > 0 && medium.has_room(rate) {
            aqm.dequeue(start, |packet| {
                let size = packet.size();
                let sent = link.push(data, SizeOnly(Medium::<P>::frame_bytes(size)));
                debug_assert!(sent.is_ok(), "a link without limit and losses accepts all packets");
                self.padding += u64::from(Medium::<P>::frame_bytes(size) - size);
                medium.add(packet.clone(), size);
            });
        }
        if medium.frames.is_empty() {
            return; // the AQM dropped all
        }
        let arrival = link.last_arrival();
        for packet in medium.frames.drain(..) {
            delay_stage.push(arrival, packet);
        }
        medium.finish(link.shaper().busy_until(), rate);
    }

    /// The number of packets that are not in the plain part.
    pub(crate) fn len(&self) -> usize {
        let backlog = self.aqm.as_ref().map_or(0, |aqm| aqm.backlog().packets);
        backlog as usize + self.path.len()
    }

    /// Counters and backlog at `now`.
    pub(crate) fn statistics(&mut self, plain: &mut PlainLink<P>, now: Time) -> LinkStatistics {
        self.transmit(plain, now);
        let link = LinkStatistics { lost: self.lost, ..self.path.statistics(plain, now) };
        let Some(aqm) = &self.aqm else { return link };
        let (dropped, marked) = aqm.counts();
        let backlog = aqm.backlog();
        if self.medium.is_some() {
            // The frames of a transmission leave the queue at once.
            let sent_packets = link.sent_packets + u64::from(link.backlog.packets);
            let sent_bytes = link.sent_bytes + link.backlog.bytes - self.padding;
            let sent = LinkStatistics { sent_packets, sent_bytes, ..link };
            return LinkStatistics { dropped, marked, backlog, ..sent };
        }
        // Behind a token bucket or a trace a dequeued packet may still wait in the plain link.
        let backlog = backlog + link.backlog;
        LinkStatistics { dropped, marked, backlog, ..link }
    }

    pub(crate) fn set_flow_keys(&mut self, keys: &Arc<[FlowKeys]>) {
        if let Some(aqm) = &mut self.aqm {
            aqm.set_flow_keys(keys);
        }
    }

    pub(crate) fn record_discarded(&mut self) {
        if let Some(aqm) = &mut self.aqm {
            aqm.record_discarded();
        }
    }

    #[inline]
    pub(crate) fn has_discarded(&self) -> bool {
        self.aqm.as_ref().is_some_and(AqmQueue::has_discarded)
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
    config.routes().map(|(from, delay)| (from + shortest, beyond(delay))).collect()
}
