//! The delay stage of a link: jitter, reordering and route changes.
//!
//! Jitter: an extra delay, uniform in [0, jitter), but no packet leaves before the one in front of
//! it, as on a path of first-in-first-out queues. Packets close together share the delay of the
//! slowest.
//!
//! Reordering: each packet is delayed by a fixed extra time with a given probability, independently
//! of others. Packets that follow within that time overtake it. The minimum delay stays the link's
//! delay.
//!
//! Reroutes: from given times on, packets take a route with another delay. Packets in transit stay
//! on their route, so packets on a shorter new route overtake them.

use crate::rng::{Rng, Stream};
use dumbbell_units::{Span, Time};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Which packets are delayed so that others overtake them, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Reordering {
    /// Probability that a packet is delayed, within [0, 1].
    pub share: f64,
    /// The extra delay.
    #[cfg_attr(feature = "serde", serde(rename = "delay_ns"))]
    pub delay: Span,
}

/// Extra delays of packets that stay in order.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    most: Span,
    rng: Rng,
    /// The latest delivery so far.
    last_delivery: Time,
}

impl Jitter {
    /// Extra delays below `most`.
    pub(crate) fn new(most: Span, seed: u64) -> Jitter {
        Jitter { most, rng: Rng::new(seed, Stream::DelayStage), last_delivery: Time::ZERO }
    }

    /// When a packet is delivered that would be delivered at `on_time` without jitter.
    #[inline]
    pub(crate) fn delivery(&mut self, on_time: Time) -> Time {
        let extra = (u128::from(self.rng.next_u64()) * u128::from(self.most.as_nanos())) >> 64;
        self.last_delivery = self.last_delivery.max(on_time + Span::from_nanos(extra as u64));
        self.last_delivery
    }
}

/// Packets that are in transit, or will be once transmitted, ordered by delivery time.
#[derive(Clone, Debug)]
pub(crate) struct DelayStage<P> {
    /// For packets on the current route; those delayed for reordering excluded.
    jitter: Jitter,
    reordering: Reordering,
    /// Packets until the next one that is delayed for reordering.
    until_reordered: u64,
    /// (start, extra delay) of the coming routes, latest first: packets that enter from `start` on
    /// take that much longer than on the shortest route.
    reroutes: Vec<(Time, Span)>,
    /// Extra delay of the current route over the shortest one.
    extra_delay: Span,
    /// Packets that are delivered in the order of their arrival.
    in_order: VecDeque<Delayed<P>>,
    /// Packets delayed for reordering, and packets that overtake others after a route change.
    out_of_order: BinaryHeap<Delayed<P>>,
    /// Number of packets so far.
    count: u64,
}

/// A packet in the stage. The maximum is the next one delivered: the earliest `delivery`, then the
/// lowest `number`.
#[derive(Clone, Debug)]
struct Delayed<P> {
    delivery: Time,
    number: u64,
    packet: P,
}

impl<P> DelayStage<P> {
    /// An empty stage. `reroutes` are (start, extra delay over the shortest route), in order of
    /// time.
    pub(crate) fn new(
        jitter: Span,
        reordering: Reordering,
        mut reroutes: Vec<(Time, Span)>,
        seed: u64,
    ) -> DelayStage<P> {
        assert!((0.0..=1.0).contains(&reordering.share), "a share lies within [0, 1]");
        assert!(reroutes.is_sorted_by(|a, b| a.0 < b.0), "the times of reroutes increase");
        reroutes.reverse();
        let mut jitter = Jitter::new(jitter, seed);
        DelayStage {
            until_reordered: jitter.rng.geometric(reordering.share),
            jitter,
            reordering,
            reroutes,
            extra_delay: Span::ZERO,
            in_order: VecDeque::new(),
            out_of_order: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Adds a packet that will have crossed the shortest route at `now`; `now` never decreases.
    pub(crate) fn push(&mut self, now: Time, packet: P) {
        while let Some((_, extra_delay)) = self.reroutes.pop_if(|next| next.0 <= now) {
            self.extra_delay = extra_delay;
            self.jitter.last_delivery = Time::ZERO;
        }
        let delivery = self.jitter.delivery(now + self.extra_delay);
        let mut packet = Delayed { delivery, number: self.count, packet };
        self.count += 1;
        if self.until_reordered == 0 {
            self.until_reordered = self.jitter.rng.geometric(self.reordering.share);
            packet.delivery += self.reordering.delay;
            self.out_of_order.push(packet);
            return;
        }
        self.until_reordered -= 1;
        if self.in_order.back().is_none_or(|last| last.delivery <= packet.delivery) {
            self.in_order.push_back(packet);
        } else {
            self.out_of_order.push(packet);
        }
    }

    /// The time of the next delivery; [`Time::MAX`] if the stage is empty.
    pub(crate) fn next_delivery(&self) -> Time {
        let in_order = self.in_order.front().map_or(Time::MAX, |first| first.delivery);
        self.out_of_order.peek().map_or(in_order, |first| first.delivery.min(in_order))
    }

    /// Whether the stage holds packets and no later arrival can be delivered before them.
    pub(crate) fn next_delivery_is_final(&self) -> bool {
        let in_order = self.reordering.share == 0.0 && self.reroutes.is_empty();
        in_order && self.out_of_order.is_empty() && !self.in_order.is_empty()
    }

    /// The next packet, if it is delivered by `now`.
    pub(crate) fn first_delivered(&self, now: Time) -> Option<&P> {
        let first = match self.is_overtaken() {
            true => self.out_of_order.peek(),
            false => self.in_order.front(),
        };
        first.filter(|first| first.delivery <= now).map(|first| &first.packet)
    }

    /// Removes the next packet.
    pub(crate) fn remove_first(&mut self) {
        match self.is_overtaken() {
            true => self.out_of_order.pop(),
            false => self.in_order.pop_front(),
        };
    }

    /// Whether a packet that is out of order is next.
    fn is_overtaken(&self) -> bool {
        self.out_of_order.peek() > self.in_order.front()
    }

    /// The number of packets in the stage.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.out_of_order.len()
    }
}

impl<P> Delayed<P> {
    fn key(&self) -> (Time, u64) {
        (self.delivery, self.number)
    }
}

impl<P> Ord for Delayed<P> {
    fn cmp(&self, other: &Delayed<P>) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<P> PartialOrd for Delayed<P> {
    fn partial_cmp(&self, other: &Delayed<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Delayed<P> {
    fn eq(&self, other: &Delayed<P>) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Delayed<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// Pushes a packet every `interval`; returns (delivery time, number) in the order of delivery.
    fn deliveries(
        mut delay_stage: DelayStage<u64>,
        interval: Span,
        packets: u64,
    ) -> Vec<(Time, u64)> {
        (0..packets).for_each(|number| delay_stage.push(Time::ZERO + interval * number, number));
        let mut delivery = Vec::new();
        while delay_stage.len() > 0 {
            let next_delivery = delay_stage.next_delivery();
            let just_before = next_delivery.as_nanos().checked_sub(1).map(Time::from_nanos);
            assert!(just_before.is_none_or(|at| delay_stage.first_delivered(at).is_none()));
            let first = delay_stage.first_delivered(next_delivery);
            delivery.extend(first.map(|&packet| (next_delivery, packet)));
            delay_stage.remove_first();
        }
        delivery
    }

    #[test]
    fn jitter_delays_evenly_up_to_its_bound_where_packets_are_far_apart() {
        let delay_stage = DelayStage::new(Span::from_millis(5), Reordering::default(), vec![], 1);
        let delivery = deliveries(delay_stage, Span::from_millis(10), 100_000);
        let out_of_order =
            delivery.iter().map(|&(at, number)| at.since(us(10_000 * number)).as_secs_f64());
        let out_of_order: Vec<f64> = out_of_order.collect();
        let mean = out_of_order.iter().sum::<f64>() / out_of_order.len() as f64;
        assert!(out_of_order.iter().all(|&out_of_order| (0.0..0.005).contains(&out_of_order)));
        // Uniform of width 5 ms: mean 2.5 ms; standard error of 100,000 draws 5 ms / sqrt(12e5) =
        // 4.6 us.
        assert!((mean - 0.0025).abs() < 4.0 * 4.6e-6, "{mean}");
        let early = out_of_order.iter().filter(|&&out_of_order| out_of_order < 0.0005).count();
        assert!(early.abs_diff(10_000) < 400, "{early}");
    }

    #[test]
    fn jitter_alone_never_reorders() {
        let delay_stage = DelayStage::new(Span::from_millis(5), Reordering::default(), vec![], 2);
        let delivery = deliveries(delay_stage, Span::from_micros(10), 10_000);
        assert!(delivery.iter().map(|&(_, number)| number).eq(0..10_000));
        assert!(delivery.is_sorted());
        assert!(delivery.iter().all(|&(at, n)| at.since(us(10 * n)) < Span::from_millis(5)));
    }

    #[test]
    fn the_configured_share_is_delayed_by_the_reordering_delay() {
        let reordering = Reordering { share: 0.01, delay: Span::from_millis(10) };
        let delay_stage = DelayStage::new(Span::ZERO, reordering, vec![], 3);
        let delivery = deliveries(delay_stage, Span::from_micros(100), 200_000);
        let held: Vec<_> = delivery.iter().filter(|&&(at, n)| at != us(100 * n)).collect();
        assert!(held.iter().all(|&&(at, n)| at == us(100 * n + 10_000)));
        // Expected 2000, tolerance four standard deviations of 44.5.
        assert!(held.len().abs_diff(2000) < 178, "{}", held.len());
        assert!(delivery.iter().map(|delivery| delivery.0).is_sorted());
    }

    #[test]
    fn packets_overtake_only_where_the_new_route_is_shorter() {
        let reroutes = vec![(us(1000), Span::from_micros(500)), (us(2000), Span::ZERO)];
        let delay_stage = DelayStage::new(Span::ZERO, Reordering::default(), reroutes, 1);
        let delivery = deliveries(delay_stage, Span::from_micros(100), 30);
        let at =
            |n: u64| us(100 * n) + Span::from_micros(if (10..20).contains(&n) { 500 } else { 0 });
        assert!(delivery.iter().all(|&(time, n)| time == at(n)));
        // Until 2.4 ms the last five packets of the longer route arrive; ties go to the one sent
        // first.
        let order: Vec<u64> =
            delivery.iter().map(|delivery| delivery.1).skip(15).take(10).collect();
        assert_eq!(order, [15, 20, 16, 21, 17, 22, 18, 23, 19, 24]);
    }

    #[test]
    fn the_seed_alone_decides_delays() {
        let reordering = Reordering { share: 0.1, delay: Span::from_millis(1) };
        let delivery = |seed| {
            let delay_stage = DelayStage::new(Span::from_millis(2), reordering, vec![], seed);
            deliveries(delay_stage, Span::from_micros(50), 999)
        };
        assert_eq!(delivery(1), delivery(1));
        assert_ne!(delivery(1), delivery(2));
    }
}
