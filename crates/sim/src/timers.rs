//! The timers of thousands of endpoints: a timing wheel in front of an event queue.
//!
//! Nearly all timers are moved before they expire: every acknowledgement moves a retransmission
//! timeout, and every second packet cancels a delayed acknowledgement. So a timer that is moved
//! later or cancelled keeps its entry, which is checked again when it comes up. Entries that are
//! not due soon are in a timing wheel: a ring of unordered buckets, each about 1 ms wide. When a
//! bucket is opened, most of its entries have been moved or cancelled. The others go to an event
//! queue, which has the exact order.

use crate::event_queue::EventQueue;
use dumbbell_net::prefetch;
use dumbbell_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Width of a bucket in ns, as a power of two.
const BUCKET_BITS: u32 = 20;
/// Number of buckets: half a second, which retransmission timeouts seldom exceed.
const BUCKETS: usize = 512;
/// How many entries ahead a timer's memory is prefetched when a bucket is opened.
const PREFETCH_DISTANCE: usize = 8;

/// When a timer expires, and where its entry is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointTimer {
    due: Time,
    /// Time of its earliest entry, not after `due` unless that has passed; [`Time::MAX`] without an
    /// entry.
    queued_at: Time,
}

impl EndpointTimer {
    /// A timer that expires at `due`; [`Time::MAX`] for never.
    pub(crate) fn new(due: Time) -> EndpointTimer {
        EndpointTimer { due, queued_at: Time::MAX }
    }
}

/// An owner of a timer.
pub(crate) trait HasTimer {
    fn timer(&self) -> &EndpointTimer;
    fn timer_mut(&mut self) -> &mut EndpointTimer;
}

/// The order of all timers. Timers are stored in their owners and numbered by the owners' indices.
pub(crate) struct Timers {
    /// Entries of opened buckets.
    queue: EventQueue,
    /// Number of the first bucket that is not open, counted from time zero.
    next_bucket: u64,
    /// That bucket and the following ones. Entries may be stale.
    buckets: Vec<Vec<u32>>,
    /// Number of entries in the buckets.
    bucketed: usize,
    /// An empty bucket, kept for its memory.
    spare: Vec<u32>,
    /// Entries later than all buckets.
    overflow: BinaryHeap<Reverse<(Time, u32)>>,
}

#[inline]
fn bucket(at: Time) -> u64 {
    at.as_nanos() >> BUCKET_BITS
}

impl Timers {
    /// The timers of these owners.
    pub(crate) fn new(owners: &mut [impl HasTimer]) -> Timers {
        let mut timers = Timers {
            queue: EventQueue::new(owners.len()),
            next_bucket: 0,
            buckets: vec![Vec::new(); BUCKETS],
            bucketed: 0,
            spare: Vec::new(),
            overflow: BinaryHeap::new(),
        };
        for (owner, number) in owners.iter_mut().zip(0..) {
            let due = owner.timer().due;
            timers.insert(owner, number, due);
        }
        timers
    }

    /// The next entry to check: time and timer. Ties go to the lowest number; [`Time::MAX`] if no
    /// timer is set.
    #[inline]
    pub(crate) fn first(&mut self, owners: &mut [impl HasTimer]) -> (Time, u32) {
        let first = self.queue.first();
        if first.0 == Time::MAX && self.bucketed + self.overflow.len() > 0 {
            return self.advance(owners);
        }
        first
    }

    /// Whether the first timer expires at `now`, the time of its entry; otherwise its entry is
    /// moved. An expired timer must be set again, or left unset, before
    /// [`finish_expiry`](Self::finish_expiry).
    pub(crate) fn expire(&mut self, owner: &mut impl HasTimer, number: u32, now: Time) -> bool {
        let due = owner.timer().due;
        if due <= now {
            owner.timer_mut().queued_at = Time::MAX;
            return true;
        }
        self.insert(owner, number, due);
        self.finish_expiry(owner, number);
        false
    }

    /// Removes the entry of an expired timer unless the timer was set to a time in the open
    /// buckets.
    pub(crate) fn finish_expiry(&mut self, owner: &impl HasTimer, number: u32) {
        if bucket(owner.timer().queued_at) >= self.next_bucket {
            self.queue.set(number, Time::MAX);
        }
    }

    /// Sets a timer; [`Time::MAX`] cancels it. It expires after `now` in any case.
    #[inline]
    pub(crate) fn set(&mut self, owner: &mut impl HasTimer, number: u32, now: Time, due: Time) {
        let timer = owner.timer_mut();
        timer.due = due;
        if due < timer.queued_at {
            // At least 1 ns later, so that a timer that is due immediately does not stop the clock.
            self.insert(owner, number, due.max(now + Span::from_nanos(1)));
        }
    }

    fn insert(&mut self, owner: &mut impl HasTimer, number: u32, at: Time) {
        owner.timer_mut().queued_at = at;
        let bucket = bucket(at);
        if bucket < self.next_bucket {
            self.queue.set(number, at);
        } else if bucket < self.next_bucket + BUCKETS as u64 {
            self.buckets[bucket as usize % BUCKETS].push(number);
            self.bucketed += 1;
        } else if at < Time::MAX {
            self.overflow.push(Reverse((at, number)));
        }
    }

    /// Opens buckets until one has an entry; returns the first.
    #[cold]
    fn advance(&mut self, owners: &mut [impl HasTimer]) -> (Time, u32) {
        while self.queue.first().0 == Time::MAX && self.bucketed + self.overflow.len() > 0 {
            if self.bucketed == 0
                && let Some(&Reverse((at, _))) = self.overflow.peek()
            {
                self.next_bucket = bucket(at);
            }
            self.open_bucket(owners);
        }
        self.queue.first()
    }

    /// Opens the next bucket.
    fn open_bucket(&mut self, owners: &mut [impl HasTimer]) {
        let opened = self.next_bucket;
        let at = opened as usize % BUCKETS;
        // An empty bucket takes its place, as the last one of the ring.
        let spare = std::mem::take(&mut self.spare);
        let mut entries = std::mem::replace(&mut self.buckets[at], spare);
        self.bucketed -= entries.len();
        self.next_bucket += 1;
        for (i, &number) in entries.iter().enumerate() {
            if let Some(&next) = entries.get(i + PREFETCH_DISTANCE) {
                prefetch(owners[next as usize].timer());
            }
            let owner = &mut owners[number as usize];
            let EndpointTimer { due, queued_at } = *owner.timer();
            // Otherwise the entry is stale.
            if bucket(queued_at) == opened {
                self.insert(owner, number, due.max(queued_at));
            }
        }
        entries.clear();
        self.spare = entries;
        while let Some(&Reverse((at, number))) = self.overflow.peek()
            && bucket(at) < self.next_bucket + BUCKETS as u64
        {
            self.overflow.pop();
            let owner = &mut owners[number as usize];
            if owner.timer().queued_at == at {
                self.insert(owner, number, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    impl HasTimer for EndpointTimer {
        fn timer(&self) -> &EndpointTimer {
            self
        }

        fn timer_mut(&mut self) -> &mut EndpointTimer {
            self
        }
    }

    struct TestTimers {
        owners: Vec<EndpointTimer>,
        timers: Timers,
    }

    impl TestTimers {
        fn new(due: impl IntoIterator<Item = Time>) -> TestTimers {
            let mut owners: Vec<EndpointTimer> = due.into_iter().map(EndpointTimer::new).collect();
            TestTimers { timers: Timers::new(&mut owners), owners }
        }

        fn set(&mut self, now: Time, number: u32, due: Time) {
            self.timers.set(&mut self.owners[number as usize], number, now, due);
        }

        /// Runs until the first timer expires; returns time and number.
        fn next(&mut self) -> Option<(Time, u32)> {
            loop {
                let (now, number) = self.timers.first(&mut self.owners);
                if now == Time::MAX {
                    return None;
                }
                if self.timers.expire(&mut self.owners[number as usize], number, now) {
                    self.set(now, number, Time::MAX);
                    self.timers.finish_expiry(&self.owners[number as usize], number);
                    return Some((now, number));
                }
            }
        }
    }

    #[test]
    fn of_two_timers_due_at_one_time_the_lower_number_is_first() {
        let mut clock = TestTimers::new([ms(700), ms(5), ms(700), ms(5)]);
        for expected in [(ms(5), 1), (ms(5), 3), (ms(700), 0), (ms(700), 2)] {
            assert_eq!(clock.next(), Some(expected));
        }
        assert_eq!(clock.next(), None);
    }

    #[test]
    fn a_cancelled_timer_never_expires() {
        let mut clock = TestTimers::new([ms(5), ms(6), ms(900)]);
        clock.set(Time::ZERO, 0, Time::MAX);
        clock.set(Time::ZERO, 2, Time::MAX);
        assert_eq!(clock.next(), Some((ms(6), 1)));
        assert_eq!(clock.next(), None);
    }

    #[test]
    fn a_timer_set_to_the_present_expires_a_nanosecond_later() {
        let mut clock = TestTimers::new([Time::MAX]);
        clock.set(ms(7), 0, ms(7));
        assert_eq!(clock.next(), Some((Time::from_nanos(7_000_001), 0)));
    }

    #[test]
    fn a_timer_moved_by_a_whole_turn_of_buckets_is_not_lost() {
        let width = 1 << BUCKET_BITS;
        let mut clock = TestTimers::new([Time::from_nanos(3 * width)]);
        let due = Time::from_nanos((3 + BUCKETS as u64) * width);
        clock.set(Time::ZERO, 0, due);
        assert_eq!(clock.next(), Some((due, 0)));
    }

    proptest! {
        #[test]
        fn timers_expire_when_due_in_the_order_of_time_and_number(
            moves in prop::collection::vec(
                (0u32..8, prop::option::of((0u32..31, 0u64..16)), 0u32..4),
                1..300,
            ),
        ) {
            let mut clock = TestTimers::new([Time::MAX; 8]);
            let mut expected = [Time::MAX; 8];
            let mut now = Time::ZERO;
            for (number, after, expiries) in moves {
                // From 1 ns to 2 s, so that some are beyond the buckets.
                let due = after.map(|(power, part)| ((16 + part) << power) >> 4);
                let due = due.map_or(Time::MAX, |after| now + Span::from_nanos(after));
                clock.set(now, number, due);
                expected[number as usize] = due;
                for _ in 0..expiries {
                    let set = expected.iter().copied().zip(0..).filter(|timer| timer.0 < Time::MAX);
                    let first = set.min();
                    prop_assert_eq!(clock.next(), first);
                    if let Some((at, number)) = first {
                        (now, expected[number as usize]) = (at, Time::MAX);
                    }
                }
            }
        }
    }
}
