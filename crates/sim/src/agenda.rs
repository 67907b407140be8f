//! The event queue: one entry per source of events, ordered by time and then by source.
//!
//! Sources are the links (when does the next packet come out?) and the endpoints (when is the
//! timer due?). Since a source has one entry at most, moving it is cheaper than leaving stale
//! entries behind: a heap that knows the place of every source's entry. Each node has four
//! children, which halves the depth of a binary heap and keeps siblings on one cache line.

use dumbbell_units::Time;

/// Entries are compared as one number: time in the upper 64 bits, source in the lower 32.
type Entry = u128;

const NOWHERE: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// When every source acts next.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    heap: Vec<Entry>,
    /// Where in the heap each source's entry is.
    places: Vec<u32>,
}

#[inline]
fn entry(at: Time, source: u32) -> Entry {
    Entry::from(at.as_nanos()) << 32 | Entry::from(source)
}

#[inline]
fn source(entry: Entry) -> u32 {
    entry as u32
}

impl Agenda {
    /// Nobody acts, of `sources` sources.
    pub(crate) fn new(sources: usize) -> Agenda {
        Agenda { heap: Vec::with_capacity(sources), places: vec![NOWHERE; sources] }
    }

    /// Who acts first, and when. Of several at one time, the source of the lowest number.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|&entry| (Time::from_nanos((entry >> 32) as u64), source(entry)))
    }

    /// From now on `source` acts at `at`; never if that is [`Time::MAX`].
    #[inline]
    pub(crate) fn set(&mut self, source: u32, at: Time) {
        let place = self.places[source as usize];
        if at == Time::MAX {
            if place != NOWHERE {
                self.remove(place as usize, source);
            }
            return;
        }
        let new = entry(at, source);
        if place == NOWHERE {
            self.heap.push(new);
            self.sift_up(self.heap.len() - 1, new);
        } else if new > self.heap[place as usize] {
            self.sift_down(place as usize, new);
        } else {
            self.sift_up(place as usize, new);
        }
    }

    fn remove(&mut self, place: usize, source: u32) {
        self.places[source as usize] = NOWHERE;
        let Some(last) = self.heap.pop() else { return };
        if place == self.heap.len() {
            return;
        }
        if last > self.heap[place] {
            self.sift_down(place, last);
        } else {
            self.sift_up(place, last);
        }
    }

    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[source(entry) as usize] = place as u32;
    }

    /// Puts `entry` where `hole` is or nearer to the root.
    #[inline]
    fn sift_up(&mut self, mut hole: usize, entry: Entry) {
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.heap[parent] < entry {
                break;
            }
            self.put(hole, self.heap[parent]);
            hole = parent;
        }
        self.put(hole, entry);
    }

    /// Puts `entry` where `hole` is or farther from the root.
    #[inline]
    fn sift_down(&mut self, mut hole: usize, entry: Entry) {
        loop {
            let first = hole * CHILDREN + 1;
            let Some((child, least)) = self.least_from(first) else { break };
            if least > entry {
                break;
            }
            self.put(hole, least);
            hole = child;
        }
        self.put(hole, entry);
    }

    /// The least of the siblings that begin at `first`, and its place.
    #[inline]
    fn least_from(&self, first: usize) -> Option<(usize, Entry)> {
        if let Some(&[a, b, c, d]) = self.heap.get(first..first + CHILDREN) {
            let (i, ab) = if b < a { (1, b) } else { (0, a) };
            let (j, cd) = if d < c { (3, d) } else { (2, c) };
            return Some(if cd < ab { (first + j, cd) } else { (first + i, ab) });
        }
        let siblings = self.heap.get(first..)?;
        let (i, &least) = siblings.iter().enumerate().min_by_key(|&(_, &entry)| entry)?;
        Some((first + i, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn of_two_events_at_one_time_the_lower_source_is_first() {
        let mut agenda = Agenda::new(3);
        for source in [2, 0, 1] {
            agenda.set(source, Time::from_nanos(5));
        }
        for source in 0..3 {
            assert_eq!(agenda.first(), Some((Time::from_nanos(5), source)));
            agenda.set(source, Time::MAX);
        }
        assert_eq!(agenda.first(), None);
    }

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest_of_the_latest_settings(
            settings in prop::collection::vec((0u32..40, prop::option::of(0u64..1000)), 1..400),
        ) {
            let mut agenda = Agenda::new(40);
            let mut expected = BTreeMap::new();
            for (source, at) in settings {
                match at {
                    Some(at) => expected.insert(source, at),
                    None => expected.remove(&source),
                };
                agenda.set(source, at.map_or(Time::MAX, Time::from_nanos));
                let first = expected.iter().map(|(&source, &at)| (at, source)).min();
                let first = first.map(|(at, source)| (Time::from_nanos(at), source));
                prop_assert_eq!(agenda.first(), first);
            }
        }
    }
}
