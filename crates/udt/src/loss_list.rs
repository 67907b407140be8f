//! Loss lists: at the sender the packets to retransmit, at the receiver the missing packets.
//!
//! Both are deques of ranges: adding at the high end and removing at the low end take constant time,
//! other ranges are found by binary search.

use dumbbell_units::{Span, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Packets to retransmit, as ascending ranges with gaps between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendLossList {
    ranges: VecDeque<Range<u64>>,
    packets: u64,
}

impl SendLossList {
    /// Number of packets.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.packets
    }

    /// Adds packets. Returns the number of those that were not in the list.
    pub(crate) fn insert(&mut self, lost: Range<u64>) -> u64 {
        if lost.is_empty() {
            return 0;
        }
        // Ranges that overlap or adjoin the new one are merged with it.
        let from = self.ranges.partition_point(|range| range.end < lost.start);
        let to = self.ranges.partition_point(|range| range.start <= lost.end);
        let touched = self.ranges.range(from..to);
        let known: u64 = touched.clone().map(|range| range.end - range.start).sum();
        let merged =
            touched.fold(lost, |all, range| all.start.min(range.start)..all.end.max(range.end));
        let new = merged.end - merged.start - known;
        if from == to {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            self.ranges.drain(from + 1..to);
        }
        self.packets += new;
        new
    }

    /// The lowest packet.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.start)
    }

    /// Removes and returns the lowest packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.remove_below(first + 1);
        Some(first)
    }

    /// Removes all packets before `packet`.
    #[inline]
    pub(crate) fn remove_below(&mut self, packet: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.start >= packet {
                return;
            }
            let end = first.end.min(packet);
            self.packets -= end - first.start;
            first.start = end;
            if first.is_empty() {
                self.ranges.pop_front();
            }
        }
    }
}

/// Missing packets as ascending ranges, each with the time of its next report.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveLossList {
    ranges: VecDeque<LostRange>,
    packets: u64,
    /// Ranges from this packet on are not reported yet.
    unreported_from: u64,
    /// Earliest repetition of a report; its range may have been removed since.
    repeat_at: Option<Time>,
}

#[derive(Clone, Debug)]
struct LostRange {
    range: Range<u64>,
    repeat_at: Time,
}

impl ReceiveLossList {
    /// The lowest missing packet.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        self.ranges.front().map(|missing| missing.range.start)
    }

    /// Number of missing packets.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.packets
    }

    /// Number of ranges.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Adds missing packets above all others, to be reported immediately.
    pub(crate) fn push(&mut self, lost: Range<u64>) {
        self.packets += lost.end - lost.start;
        self.ranges.push_back(LostRange { range: lost, repeat_at: Time::MAX });
    }

    /// Adds missing packets above all others, to be reported at this time if they are still missing, or
    /// immediately with earlier ones that are to be.
    pub(crate) fn push_delayed(&mut self, lost: Range<u64>, report_at: Time) {
        let joins = self.has_unreported();
        let end = lost.end;
        self.push(lost);
        if !joins && let Some(last) = self.ranges.back_mut() {
            last.repeat_at = report_at;
            self.unreported_from = end;
            self.repeat_at = Some(self.repeat_at().min(report_at));
        }
    }

    /// Whether a packet is missing.
    pub(crate) fn contains(&self, packet: u64) -> bool {
        let at = self.ranges.partition_point(|missing| missing.range.end <= packet);
        self.ranges.get(at).is_some_and(|missing| missing.range.start <= packet)
    }

    /// Removes a packet that arrived; `false` if it was not missing.
    pub(crate) fn remove(&mut self, packet: u64) -> bool {
        let at = self.ranges.partition_point(|missing| missing.range.end <= packet);
        let Some(missing) = self.ranges.get_mut(at) else { return false };
        if missing.range.start > packet {
            return false;
        }
        self.packets -= 1;
        let (start, end) = (missing.range.start, missing.range.end);
        match (packet == start, packet + 1 == end) {
            (true, true) => drop(self.ranges.remove(at)),
            (true, false) => missing.range.start = packet + 1,
            (false, true) => missing.range.end = packet,
            (false, false) => {
                let right = LostRange { range: packet + 1..end, ..missing.clone() };
                missing.range.end = packet;
                self.ranges.insert(at + 1, right);
            }
        }
        true
    }

    /// Removes all packets of a range.
    pub(crate) fn remove_range(&mut self, gone: Range<u64>) {
        let at = self.ranges.partition_point(|missing| missing.range.end <= gone.start);
        while let Some(missing) = self.ranges.get_mut(at) {
            let range = missing.range.clone();
            if range.start >= gone.end {
                return;
            }
            let (left, right) = (range.start..gone.start, gone.end..range.end);
            self.packets -= range.end.min(gone.end) - range.start.max(gone.start);
            match (left.is_empty(), right.is_empty()) {
                (true, true) => drop(self.ranges.remove(at)),
                (true, false) => missing.range = right,
                (false, true) => {
                    missing.range = left;
                    return self.remove_range(range.end..gone.end.max(range.end));
                }
                (false, false) => {
                    let right = LostRange { range: right, ..missing.clone() };
                    missing.range = left;
                    return self.ranges.insert(at + 1, right);
                }
            }
        }
    }

    /// Whether a range is not reported yet.
    #[inline]
    pub(crate) fn has_unreported(&self) -> bool {
        self.ranges.back().is_some_and(|missing| missing.range.start >= self.unreported_from)
    }

    /// Time of the next repetition of a report.
    #[inline]
    pub(crate) fn repeat_at(&self) -> Time {
        self.repeat_at.unwrap_or(Time::MAX)
    }

    /// Passes first and last packet of each due range to `report` until it returns `false`. A range is
    /// due immediately, and again after each `interval` if there is one.
    pub(crate) fn report(
        &mut self,
        now: Time,
        interval: Option<Span>,
        mut report: impl FnMut(u64, u64) -> bool,
    ) {
        let all = self.repeat_at() <= now;
        let unreported_from = self.unreported_from;
        let from = match all {
            true => 0,
            false => self.ranges.partition_point(|missing| missing.range.start < unreported_from),
        };
        let mut next = self.repeat_at.filter(|_| !all);
        for missing in self.ranges.range_mut(from..) {
            let fresh = missing.range.start >= self.unreported_from;
            if fresh || missing.repeat_at <= now {
                if !report(missing.range.start, missing.range.end - 1) {
                    // The remaining ranges are due at the next call.
                    next = Some(now);
                    break;
                }
                missing.repeat_at = interval.map_or(Time::MAX, |span| now + span);
                self.unreported_from = self.unreported_from.max(missing.range.end);
            }
            if missing.repeat_at != Time::MAX {
                next = Some(next.map_or(missing.repeat_at, |next| next.min(missing.repeat_at)));
            }
        }
        self.repeat_at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn reported(losses: &mut ReceiveLossList, at_ms: u64, room: usize) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let now = Time::ZERO + Span::from_millis(at_ms);
        losses.report(now, Some(Span::from_millis(100)), |first, last| {
            let fits = ranges.len() < room;
            if fits {
                ranges.push((first, last));
            }
            fits
        });
        ranges
    }

    #[test]
    fn a_loss_is_reported_immediately_and_then_periodically() {
        let mut losses = ReceiveLossList::default();
        losses.push(3..5);
        assert!(losses.has_unreported());
        assert_eq!(reported(&mut losses, 10, 9), [(3, 4)]);
        assert!(!losses.has_unreported());
        assert_eq!(losses.repeat_at(), Time::ZERO + Span::from_millis(110));
        assert_eq!(reported(&mut losses, 50, 9), []);
        assert_eq!(reported(&mut losses, 110, 9), [(3, 4)]);
        assert_eq!(losses.repeat_at(), Time::ZERO + Span::from_millis(210));
    }

    #[test]
    fn a_delayed_report_is_made_only_if_the_loss_remains() {
        let mut losses = ReceiveLossList::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        losses.push_delayed(3..5, at(10));
        losses.push_delayed(7..8, at(12));
        assert!(!losses.has_unreported());
        assert_eq!((losses.repeat_at(), reported(&mut losses, 9, 9)), (at(10), vec![]));
        losses.remove(3);
        assert_eq!(reported(&mut losses, 10, 9), [(4, 4)]);
        assert_eq!(losses.repeat_at(), at(12));
        losses.push(9..10);
        losses.push_delayed(11..12, at(20));
        assert_eq!(reported(&mut losses, 12, 9), [(7, 7), (9, 9), (11, 11)]);
        assert_eq!(losses.repeat_at(), at(110));
    }

    #[test]
    fn a_new_loss_is_reported_without_the_earlier_ones() {
        let mut losses = ReceiveLossList::default();
        losses.push(3..5);
        reported(&mut losses, 0, 9);
        losses.push(8..9);
        assert_eq!(reported(&mut losses, 1, 9), [(8, 8)]);
    }

    #[test]
    fn ranges_that_do_not_fit_are_reported_by_the_next_call() {
        let mut losses = ReceiveLossList::default();
        for start in [0, 10, 20] {
            losses.push(start..start + 2);
        }
        assert_eq!(reported(&mut losses, 0, 2), [(0, 1), (10, 11)]);
        assert!(losses.has_unreported() && losses.repeat_at() == Time::ZERO);
        assert_eq!(reported(&mut losses, 0, 2), [(20, 21)]);
        assert!(!losses.has_unreported());
        assert_eq!(losses.repeat_at(), Time::ZERO + Span::from_millis(100));
    }

    proptest! {
        #[test]
        fn the_senders_list_equals_a_set_of_numbers(
            inserts in prop::collection::vec((0u64..60, 0u64..20), 0..40), floor in 0u64..60,
        ) {
            let mut losses = SendLossList::default();
            let mut numbers = BTreeSet::new();
            for (start, len) in inserts {
                let new = (start..start + len).filter(|&n| numbers.insert(n)).count();
                prop_assert_eq!(losses.insert(start..start + len), new as u64);
            }
            losses.remove_below(floor);
            numbers.retain(|&n| n >= floor);
            prop_assert_eq!(losses.len(), numbers.len() as u64);
            let popped: Vec<u64> = std::iter::from_fn(|| losses.pop()).collect();
            prop_assert_eq!(popped, numbers.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn the_receivers_list_equals_a_set_of_numbers(
            gaps in prop::collection::vec((1u64..5, 1u64..9), 0..20),
            arrivals in prop::collection::vec(0u64..200, 0..80),
            gone in prop::collection::vec((0u64..200, 0u64..40), 0..4),
        ) {
            let mut losses = ReceiveLossList::default();
            let mut numbers = BTreeSet::new();
            let mut next = 0;
            for (arrived, lost) in gaps {
                next += arrived;
                losses.push(next..next + lost);
                numbers.extend(next..next + lost);
                next += lost;
            }
            for packet in arrivals {
                prop_assert_eq!(losses.remove(packet), numbers.remove(&packet));
            }
            for (start, len) in gone {
                losses.remove_range(start..start + len);
                numbers.retain(|n| !(start..start + len).contains(n));
            }
            prop_assert_eq!(losses.len(), numbers.len() as u64);
            prop_assert_eq!(losses.first(), numbers.first().copied());
            let mut left = Vec::new();
            losses.report(Time::ZERO, None, |first, last| { left.extend(first..=last); true });
            prop_assert_eq!(left, numbers.into_iter().collect::<Vec<_>>());
            prop_assert!(losses.ranges() <= losses.len() as usize);
        }
    }
}
