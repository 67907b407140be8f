//! The far end of a link that does not deliver evenly.
//!
//! Jitter: a packet comes out later than the delay says by a time drawn evenly from [0, jitter),
//! but never before the packet in front of it, as on a path whose queues are first in, first out.
//! So packets that follow each other closely share the delay of the slowest.
//!
//! Reordering: a share of the packets, drawn independently, comes out later by a fixed time and is
//! overtaken by those that follow within it. The least delay stays what the link's delay says.
//!
//! Reroutes: from given times on packets take a route with another delay. What is under way stays
//! on its route, so those on a shorter one overtake it.

use crate::dice::{Dice, Stream};
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Which packets are held back, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// The probability that a packet is held back, within [0, 1].
    pub share: f64,
    /// How long.
    #[serde(rename = "delay_ns")]
    pub delay: Span,
}

/// Packets that are to cross the link, or have, and are not out yet.
#[derive(Clone, Debug)]
pub(crate) struct Tail<P> {
    jitter: Span,
    reordering: Reordering,
    /// Packets until the next one that is held back.
    gap: u64,
    dice: Dice,
    /// For packets that cross from when on, how much longer their route is; the next one last.
    reroutes: Vec<(Time, Span)>,
    /// By how much the present route is longer than the shortest.
    detour: Span,
    /// When the latest on the present route comes out, those held back apart.
    latest: Time,
    /// Those that come out in the order in which they came.
    ordered: VecDeque<Late<P>>,
    /// Those that are held back, and those on a shorter route than some before them.
    late: BinaryHeap<Late<P>>,
    /// How many packets have come.
    count: u64,
}

/// A packet that is not out yet. The greatest is the first to come out; of two at one time, it is
/// the one sent first.
#[derive(Clone, Debug)]
struct Late<P> {
    out: Time,
    number: u64,
    packet: P,
}

impl<P> Tail<P> {
    /// A far end. The reroutes, if any, are in order: for packets that have crossed the shortest
    /// route from when on, by how much theirs is longer.
    pub(crate) fn new(
        jitter: Span,
        reordering: Reordering,
        mut reroutes: Vec<(Time, Span)>,
        seed: u64,
    ) -> Tail<P> {
        assert!((0.0..=1.0).contains(&reordering.share), "a share lies within [0, 1]");
        assert!(reroutes.is_sorted_by(|a, b| a.0 < b.0), "the times of reroutes increase");
        reroutes.reverse();
        let mut dice = Dice::new(seed, Stream::Tail);
        Tail {
            jitter,
            reordering,
            gap: dice.gap(reordering.share),
            dice,
            reroutes,
            detour: Span::ZERO,
            latest: Time::ZERO,
            ordered: VecDeque::new(),
            late: BinaryHeap::new(),
            count: 0,
        }
    }

    /// A packet will have crossed the link at `now`, none of those after it earlier.
    pub(crate) fn push(&mut self, now: Time, packet: P) {
        while let Some((_, detour)) = self.reroutes.pop_if(|next| next.0 <= now) {
            self.detour = detour;
            self.latest = Time::ZERO;
        }
        let jitter = (u128::from(self.dice.bits()) * u128::from(self.jitter.as_nanos())) >> 64;
        self.latest = self.latest.max(now + self.detour + Span::from_nanos(jitter as u64));
        let mut packet = Late { out: self.latest, number: self.count, packet };
        self.count += 1;
        if self.gap == 0 {
            self.gap = self.dice.gap(self.reordering.share);
            packet.out += self.reordering.delay;
            self.late.push(packet);
            return;
        }
        self.gap -= 1;
        if self.ordered.back().is_none_or(|last| last.out <= packet.out) {
            self.ordered.push_back(packet);
        } else {
            self.late.push(packet);
        }
    }

    /// When the next packet comes out; [`Time::MAX`] if there is none.
    pub(crate) fn next(&self) -> Time {
        let ordered = self.ordered.front().map_or(Time::MAX, |first| first.out);
        self.late.peek().map_or(ordered, |first| first.out.min(ordered))
    }

    /// Whether there is a packet, and none that is yet to come is out before it.
    pub(crate) fn is_settled(&self) -> bool {
        let in_order = self.reordering.share == 0.0 && self.reroutes.is_empty();
        in_order && self.late.is_empty() && !self.ordered.is_empty()
    }

    /// The next packet, if it is out by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        if self.next() > now {
            return None;
        }
        let first = match (self.ordered.front(), self.late.peek()) {
            (Some(ordered), Some(late)) if late > ordered => self.late.pop(),
            (Some(_), _) => self.ordered.pop_front(),
            (None, _) => self.late.pop(),
        };
        first.map(|first| first.packet)
    }

    /// How many packets are not out yet.
    pub(crate) fn len(&self) -> usize {
        self.ordered.len() + self.late.len()
    }
}

impl<P> Late<P> {
    fn rank(&self) -> (Time, u64) {
        (self.out, self.number)
    }
}

impl<P> Ord for Late<P> {
    fn cmp(&self, other: &Late<P>) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl<P> PartialOrd for Late<P> {
    fn partial_cmp(&self, other: &Late<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Late<P> {
    fn eq(&self, other: &Late<P>) -> bool {
        self.rank() == other.rank()
    }
}

impl<P> Eq for Late<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// Packets cross every `gap`; gives when each comes out, in the order in which they do.
    fn deliveries(mut tail: Tail<u64>, gap: Span, packets: u64) -> Vec<(Time, u64)> {
        (0..packets).for_each(|number| tail.push(Time::ZERO + gap * number, number));
        let mut out = Vec::new();
        while tail.len() > 0 {
            let next = tail.next();
            let just_before = next.as_nanos().checked_sub(1).map(Time::from_nanos);
            assert!(just_before.is_none_or(|before| tail.pop(before).is_none()));
            out.extend(tail.pop(next).map(|packet| (next, packet)));
        }
        out
    }

    #[test]
    fn jitter_delays_evenly_up_to_its_bound_where_packets_are_far_apart() {
        let tail = Tail::new(Span::from_millis(5), Reordering::default(), vec![], 1);
        let out = deliveries(tail, Span::from_millis(10), 100_000);
        let late = out.iter().map(|&(at, number)| at.since(us(10_000 * number)).as_secs_f64());
        let late: Vec<f64> = late.collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(late.iter().all(|&late| (0.0..0.005).contains(&late)));
        // A uniform of width 5 ms: mean 2.5 ms, of 100,000 within 5/sqrt(12e5) = 4.6 us each.
        assert!((mean - 0.0025).abs() < 4.0 * 4.6e-6, "{mean}");
        let early = late.iter().filter(|&&late| late < 0.0005).count();
        assert!(early.abs_diff(10_000) < 400, "{early}");
    }

    #[test]
    fn jitter_alone_never_reorders() {
        let tail = Tail::new(Span::from_millis(5), Reordering::default(), vec![], 2);
        let out = deliveries(tail, Span::from_micros(10), 10_000);
        assert!(out.iter().map(|&(_, number)| number).eq(0..10_000));
        assert!(out.is_sorted());
        assert!(out.iter().all(|&(at, n)| at.since(us(10 * n)) < Span::from_millis(5)));
    }

    #[test]
    fn the_share_that_was_asked_for_is_held_back_by_exactly_so_long() {
        let reordering = Reordering { share: 0.01, delay: Span::from_millis(10) };
        let tail = Tail::new(Span::ZERO, reordering, vec![], 3);
        let out = deliveries(tail, Span::from_micros(100), 200_000);
        let held: Vec<_> = out.iter().filter(|&&(at, n)| at != us(100 * n)).collect();
        assert!(held.iter().all(|&&(at, n)| at == us(100 * n + 10_000)));
        // 2000, give or take four standard deviations of 44.5.
        assert!(held.len().abs_diff(2000) < 178, "{}", held.len());
        assert!(out.iter().map(|out| out.0).is_sorted());
    }

    #[test]
    fn packets_on_a_shorter_route_overtake_those_on_the_longer_one_and_nobody_else() {
        let reroutes = vec![(us(1000), Span::from_micros(500)), (us(2000), Span::ZERO)];
        let tail = Tail::new(Span::ZERO, Reordering::default(), reroutes, 1);
        let out = deliveries(tail, Span::from_micros(100), 30);
        let at =
            |n: u64| us(100 * n) + Span::from_micros(if (10..20).contains(&n) { 500 } else { 0 });
        assert!(out.iter().all(|&(time, n)| time == at(n)));
        // Until 2.4 ms come the last five on the detour; of two at one time, the one sent first.
        let order: Vec<u64> = out.iter().map(|out| out.1).skip(15).take(10).collect();
        assert_eq!(order, [15, 20, 16, 21, 17, 22, 18, 23, 19, 24]);
    }

    #[test]
    fn the_seed_alone_decides_who_is_late() {
        let reordering = Reordering { share: 0.1, delay: Span::from_millis(1) };
        let out = |seed| {
            let tail = Tail::new(Span::from_millis(2), reordering, vec![], seed);
            deliveries(tail, Span::from_micros(50), 999)
        };
        assert_eq!(out(1), out(1));
        assert_ne!(out(1), out(2));
    }
}
