//! The far end of a link that does not deliver evenly.
//!
//! Jitter: a packet comes out later than the delay says by a time drawn evenly from [0, jitter),
//! but never before the packet in front of it, as on a path whose queues are first in, first out.
//! So packets that follow each other closely share the delay of the slowest.
//!
//! Reordering: a share of the packets, drawn independently, comes out later by a fixed time and is
//! overtaken by those that follow within it. The least delay stays what the link's delay says.

use crate::dice::{Dice, Stream};
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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

/// Packets that have crossed the link and are not out yet.
#[derive(Clone, Debug)]
pub(crate) struct Tail<P> {
    jitter: Span,
    reordering: Reordering,
    /// Packets until the next one that is held back.
    gap: u64,
    dice: Dice,
    in_order: VecDeque<(Time, P)>,
    /// As all are held back for the same time, they come out in order among themselves.
    held_back: VecDeque<(Time, P)>,
    /// When the latest of all comes out, those held back apart.
    latest: Time,
}

impl<P> Tail<P> {
    pub(crate) fn new(jitter: Span, reordering: Reordering, seed: u64) -> Tail<P> {
        assert!((0.0..=1.0).contains(&reordering.share), "a share lies within [0, 1]");
        let mut dice = Dice::new(seed, Stream::Tail);
        Tail {
            jitter,
            reordering,
            gap: dice.gap(reordering.share),
            dice,
            in_order: VecDeque::new(),
            held_back: VecDeque::new(),
            latest: Time::ZERO,
        }
    }

    /// A packet has crossed the link at `now`.
    pub(crate) fn push(&mut self, now: Time, packet: P) {
        let late = (u128::from(self.dice.bits()) * u128::from(self.jitter.as_nanos())) >> 64;
        self.latest = self.latest.max(now + Span::from_nanos(late as u64));
        if self.gap == 0 {
            self.gap = self.dice.gap(self.reordering.share);
            self.held_back.push_back((self.latest + self.reordering.delay, packet));
        } else {
            self.gap -= 1;
            self.in_order.push_back((self.latest, packet));
        }
    }

    /// When the next packet comes out; [`Time::MAX`] if there is none.
    pub(crate) fn next(&self) -> Time {
        let first = |queue: &VecDeque<(Time, P)>| queue.front().map_or(Time::MAX, |head| head.0);
        first(&self.in_order).min(first(&self.held_back))
    }

    /// The next packet, if it is out by `now`. Of two at one time, the one sent first.
    pub(crate) fn pop(&mut self, now: Time) -> Option<P> {
        let next = self.next();
        if next > now {
            return None;
        }
        let is_held = self.held_back.front().is_some_and(|head| head.0 == next);
        let queue = if is_held { &mut self.held_back } else { &mut self.in_order };
        queue.pop_front().map(|head| head.1)
    }

    /// How many packets are not out yet.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.held_back.len()
    }
}

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
        let tail = Tail::new(Span::from_millis(5), Reordering::default(), 1);
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
        let tail = Tail::new(Span::from_millis(5), Reordering::default(), 2);
        let out = deliveries(tail, Span::from_micros(10), 10_000);
        assert!(out.iter().map(|&(_, number)| number).eq(0..10_000));
        assert!(out.is_sorted());
        assert!(out.iter().all(|&(at, n)| at.since(us(10 * n)) < Span::from_millis(5)));
    }

    #[test]
    fn the_share_that_was_asked_for_is_held_back_by_exactly_so_long() {
        let reordering = Reordering { share: 0.01, delay: Span::from_millis(10) };
        let out = deliveries(Tail::new(Span::ZERO, reordering, 3), Span::from_micros(100), 200_000);
        let held: Vec<_> = out.iter().filter(|&&(at, n)| at != us(100 * n)).collect();
        assert!(held.iter().all(|&&(at, n)| at == us(100 * n + 10_000)));
        // 2000, give or take four standard deviations of 44.5.
        assert!(held.len().abs_diff(2000) < 178, "{}", held.len());
        assert!(out.iter().map(|out| out.0).is_sorted());
    }

    #[test]
    fn the_seed_alone_decides_who_is_late() {
        let reordering = Reordering { share: 0.1, delay: Span::from_millis(1) };
        let out = |seed| {
            deliveries(
                Tail::new(Span::from_millis(2), reordering, seed),
                Span::from_micros(50),
                999,
            )
        };
        assert_eq!(out(1), out(1));
        assert_ne!(out(1), out(2));
    }
}
