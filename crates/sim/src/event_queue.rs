//! An indexed 4-ary heap: at most one entry per source of events, ordered by time, then by rank, then
//! by source.
//!
//! A source has at most one entry, and moving it is cheaper than leaving stale entries behind; so
//! the heap stores the position of each source's entry. Four children per node halve the depth of a
//! binary heap, and the four siblings share one cache line.

use dumbbell_units::Time;

/// Time in the upper 64 bits, then 32 bits of rank and 32 of source: one comparison orders entries.
type Entry = u128;

const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// A position without an entry; greater than every entry.
const EMPTY: Entry = Entry::MAX;

/// The children of one node, on one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Siblings([Entry; CHILDREN]);

/// The next event of every source.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// Positions count through the siblings. The first group holds only the root, at position 3;
    /// the children of position p are at 4p - 8 to 4p - 5.
    heap: Vec<Siblings>,
    /// One past the position of the last entry.
    end: usize,
    /// The position of each source's entry.
    positions: Vec<u32>,
}

const ROOT: usize = CHILDREN - 1;

#[inline]
fn entry(at: Time, rank: u32, source: u32) -> Entry {
    Entry::from(at.as_nanos()) << 64 | Entry::from(rank) << 32 | Entry::from(source)
}

#[inline]
fn source(entry: Entry) -> u32 {
    entry as u32
}

impl EventQueue {
    /// An empty queue for `sources` sources.
    pub(crate) fn new(sources: usize) -> EventQueue {
        let groups = (ROOT + sources).div_ceil(CHILDREN);
        EventQueue {
            heap: vec![Siblings([EMPTY; CHILDREN]); groups],
            end: ROOT,
            positions: vec![ABSENT; sources],
        }
    }

    /// The next event: time and source. Ties go to the lowest rank, then to the lowest source;
    /// [`Time::MAX`] if the queue is empty.
    #[inline]
    pub(crate) fn first(&self) -> (Time, u32) {
        let first = self.at(ROOT);
        (Time::from_nanos((first >> 64) as u64), source(first))
    }

    /// Sets the time of a source's event; [`Time::MAX`] removes it.
    #[inline]
    pub(crate) fn set(&mut self, source: u32, at: Time) {
        self.set_ranked(source, at, 0);
    }

    /// The same for an event that comes before others of its time with a higher rank.
    #[inline]
    pub(crate) fn set_ranked(&mut self, source: u32, at: Time, rank: u32) {
        let position = self.positions[source as usize];
        if at == Time::MAX {
            if position != ABSENT {
                self.remove(position as usize, source);
            }
            return;
        }
        let new = entry(at, rank, source);
        if position == ABSENT {
            self.end += 1;
            self.sift_up(self.end - 1, new);
        } else if new > self.at(position as usize) {
            self.sift_down(position as usize, new);
        } else {
            self.sift_up(position as usize, new);
        }
    }

    fn remove(&mut self, position: usize, source: u32) {
        self.positions[source as usize] = ABSENT;
        self.end -= 1;
        let last = self.at(self.end);
        self.heap[self.end / CHILDREN].0[self.end % CHILDREN] = EMPTY;
        if position == self.end {
            return;
        }
        if last > self.at(position) {
            self.sift_down(position, last);
        } else {
            self.sift_up(position, last);
        }
    }

    #[inline]
    fn at(&self, position: usize) -> Entry {
        self.heap[position / CHILDREN].0[position % CHILDREN]
    }

    #[inline]
    fn put(&mut self, position: usize, entry: Entry) {
        self.heap[position / CHILDREN].0[position % CHILDREN] = entry;
        self.positions[source(entry) as usize] = position as u32;
    }

    /// Inserts `entry` at `hole` or nearer to the root.
    #[inline]
    fn sift_up(&mut self, mut hole: usize, entry: Entry) {
        while hole > ROOT {
            let parent = hole / CHILDREN + 2;
            let above = self.at(parent);
            if above < entry {
                break;
            }
            self.put(hole, above);
            hole = parent;
        }
        self.put(hole, entry);
    }

    /// Inserts `entry` at `hole` or farther from the root.
    #[inline]
    fn sift_down(&mut self, mut hole: usize, entry: Entry) {
        while let Some(&Siblings([a, b, c, d])) = self.heap.get(hole - 2) {
            let (i, ab) = if b < a { (1, b) } else { (0, a) };
            let (j, cd) = if d < c { (3, d) } else { (2, c) };
            let (child, least) = if cd < ab { (j, cd) } else { (i, ab) };
            if least > entry {
                break;
            }
            self.put(hole, least);
            hole = (hole - 2) * CHILDREN + child;
        }
        self.put(hole, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn of_two_events_at_one_time_the_lower_source_is_first() {
        let mut queue = EventQueue::new(3);
        for source in [2, 0, 1] {
            queue.set(source, Time::from_nanos(5));
        }
        for source in 0..3 {
            assert_eq!(queue.first(), (Time::from_nanos(5), source));
            queue.set(source, Time::MAX);
        }
        assert_eq!(queue.first().0, Time::MAX);
    }

    #[test]
    fn of_two_events_at_one_time_the_lower_rank_is_first() {
        let mut queue = EventQueue::new(3);
        for (source, rank) in [(0, 7), (1, 3), (2, 5)] {
            queue.set_ranked(source, Time::from_nanos(5), rank);
        }
        queue.set_ranked(0, Time::from_nanos(4), u32::MAX);
        for source in [0, 1, 2] {
            assert_eq!(queue.first().1, source);
            queue.set(source, Time::MAX);
        }
    }

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest_of_the_latest_settings(
            settings in prop::collection::vec((0u32..40, prop::option::of(0u64..1000)), 1..400),
        ) {
            let mut queue = EventQueue::new(40);
            let mut expected = BTreeMap::new();
            for (source, at) in settings {
                match at {
                    Some(at) => expected.insert(source, at),
                    None => expected.remove(&source),
                };
                queue.set(source, at.map_or(Time::MAX, Time::from_nanos));
                let first = expected.iter().map(|(&source, &at)| (at, source)).min();
                match first {
                    Some((at, source)) => {
                        prop_assert_eq!(queue.first(), (Time::from_nanos(at), source));
                    }
                    None => prop_assert_eq!(queue.first().0, Time::MAX),
                }
            }
        }
    }
}
