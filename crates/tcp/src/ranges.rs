//! A set of packet numbers as ranges: packets received out of order, or selectively acknowledged.

use std::collections::VecDeque;

/// Disjoint, non-adjacent ranges `start..end` in ascending order.
///
/// Ranges are removed at the front (cumulative acknowledgements) and mostly inserted near the back
/// (new data), in constant time.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: VecDeque<(u32, u32)>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// One past the highest number.
    pub(crate) fn end(&self) -> Option<u32> {
        self.ranges.back().map(|&(_, end)| end)
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<(u32, u32)> {
        self.ranges.front().copied()
    }

    /// The ranges from the highest down.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// Inserts `start..end` and calls `on_new` for each part of it that was not in the set.
    pub(crate) fn insert(&mut self, start: u32, end: u32, mut on_new: impl FnMut(u32, u32)) {
        if start >= end {
            return;
        }
        // Fast path: the last range grows at its end.
        if let Some(last) = self.ranges.back_mut()
            && last.0 <= start
            && start <= last.1
        {
            if end > last.1 {
                on_new(last.1, end);
                last.1 = end;
            }
            return;
        }
        // Ranges that touch start..end are first..past.
        let first = self.ranges.partition_point(|&(_, e)| e < start);
        let (mut past, mut merged, mut gap) = (first, (start, end), start);
        while let Some(&(s, e)) = self.ranges.get(past)
            && s <= end
        {
            if s <= start && end <= e {
                return; // An older block of an acknowledgement.
            }
            if gap < s {
                on_new(gap, s);
            }
            gap = gap.max(e);
            merged = (merged.0.min(s), merged.1.max(e));
            past += 1;
        }
        if gap < end {
            on_new(gap, end);
        }
        match past - first {
            0 => self.ranges.insert(first, merged),
            1 => self.ranges[first] = merged,
            _ => {
                self.ranges[first] = merged;
                self.ranges.drain(first + 1..past);
            }
        }
    }

    /// Removes everything below `number`.
    pub(crate) fn remove_below(&mut self, number: u32) {
        while let Some(first) = self.ranges.front_mut() {
            if first.1 > number {
                first.0 = first.0.max(number);
                return;
            }
            self.ranges.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_range_set_equals_a_set_of_numbers(
            inserts in prop::collection::vec((0u32..60, 0u32..20), 0..40),
            floor in 0u32..60,
        ) {
            let mut ranges = RangeSet::default();
            let mut numbers = BTreeSet::new();
            for (start, len) in inserts {
                let mut new = Vec::new();
                ranges.insert(start, start + len, |s, e| new.extend(s..e));
                let expected: Vec<u32> =
                    (start..start + len).filter(|n| !numbers.contains(n)).collect();
                prop_assert_eq!(new, expected);
                numbers.extend(start..start + len);
            }
            ranges.remove_below(floor);
            let left: Vec<u32> = numbers.range(floor..).copied().collect();
            let held: Vec<u32> = ranges.ranges.iter().flat_map(|&(s, e)| s..e).collect();
            prop_assert_eq!(&held, &left);
            prop_assert!(ranges.ranges.iter().zip(ranges.ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        }
    }
}
