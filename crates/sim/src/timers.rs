//! Timers, one for each of thousands of endpoints, nearly all of which are moved before they are
//! due: every acknowledgement moves a retransmission timeout, every second packet calls off an
//! acknowledgement that was to come 40 ms later.
//!
//! So a timer that is moved to a later time, or called off, keeps the entry that it has, and is
//! looked at again when that comes up. Entries that are not due soon are in a calendar: a ring of
//! about a millisecond a page, whose pages are in no order. When a page is opened, most of its
//! entries have become later ones or none; the others go to an event queue that has the exact order.

use crate::agenda::Agenda;
use dumbbell_net::prefetch;
use dumbbell_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A page's width, as a power of two, ns.
const PAGE_BITS: u32 = 20;
/// Pages of the calendar: half a second, which retransmission timeouts seldom exceed.
const PAGES: usize = 512;
/// How many entries ahead of its own a timer's memory is asked for when a page is opened.
const AHEAD: usize = 8;

/// When a timer is due, and when it is looked at.
#[derive(Clone, Copy)]
struct Timer {
    due: Time,
    /// The time of its earliest entry, not after `due` unless that has passed; [`Time::MAX`]
    /// without one.
    entered: Time,
}

/// Timers by number.
pub(crate) struct Timers {
    timers: Vec<Timer>,
    /// Entries on pages that were opened.
    near: Agenda,
    /// The first page that was not opened, counted from time zero.
    page: u64,
    /// That page and those after it. There may be entries that have become void.
    calendar: Vec<Vec<u32>>,
    /// Entries in the calendar.
    waiting: usize,
    /// An empty page, for the memory that it has.
    spare: Vec<u32>,
    /// Entries after the calendar's end.
    far: BinaryHeap<Reverse<(Time, u32)>>,
}

#[inline]
fn page(at: Time) -> u64 {
    at.as_nanos() >> PAGE_BITS
}

impl Timers {
    /// Timers that are due at given times, or never at [`Time::MAX`].
    pub(crate) fn new(due: impl IntoIterator<Item = Time>) -> Timers {
        let timers: Vec<Timer> =
            due.into_iter().map(|due| Timer { due, entered: Time::MAX }).collect();
        let mut new = Timers {
            near: Agenda::new(timers.len()),
            timers,
            page: 0,
            calendar: vec![Vec::new(); PAGES],
            waiting: 0,
            spare: Vec::new(),
            far: BinaryHeap::new(),
        };
        for number in 0..new.timers.len() {
            new.enter(number as u32, new.timers[number].due);
        }
        new
    }

    /// When some timer is to be looked at next, and which: of several at one time the one of the
    /// lowest number. [`Time::MAX`] if none is set.
    #[inline]
    pub(crate) fn first(&mut self) -> (Time, u32) {
        let first = self.near.first();
        if first.0 == Time::MAX && self.waiting + self.far.len() > 0 {
            return self.turn_pages();
        }
        first
    }

    /// Whether the timer that comes first is due at `now`, its time; if not it is moved on. One that
    /// is due is set anew, or stays unset, until [`settle`](Self::settle).
    pub(crate) fn expire(&mut self, now: Time, number: u32) -> bool {
        let timer = &mut self.timers[number as usize];
        if timer.due <= now {
            timer.entered = Time::MAX;
            return true;
        }
        let due = timer.due;
        self.enter(number, due);
        self.settle(number);
        false
    }

    /// A timer that came up has its new time by now, and no entry but for that.
    pub(crate) fn settle(&mut self, number: u32) {
        if page(self.timers[number as usize].entered) >= self.page {
            self.near.set(number, Time::MAX);
        }
    }

    /// Sets a timer to a time, [`Time::MAX`] for none. It comes up later than `now` in any case.
    #[inline]
    pub(crate) fn set(&mut self, now: Time, number: u32, due: Time) {
        let timer = &mut self.timers[number as usize];
        timer.due = due;
        if due < timer.entered {
            // A nanosecond keeps the clock moving should the timer be due at once.
            self.enter(number, due.max(now + Span::from_nanos(1)));
        }
    }

    /// Asks for the memory of a timer that is going to be set.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        prefetch(&self.timers[number as usize]);
    }

    fn enter(&mut self, number: u32, at: Time) {
        self.timers[number as usize].entered = at;
        let page = page(at);
        if page < self.page {
            self.near.set(number, at);
        } else if page < self.page + PAGES as u64 {
            self.calendar[page as usize % PAGES].push(number);
            self.waiting += 1;
        } else if at < Time::MAX {
            self.far.push(Reverse((at, number)));
        }
    }

    /// Opens pages until there is something on one; gives what comes first.
    #[cold]
    fn turn_pages(&mut self) -> (Time, u32) {
        while self.near.first().0 == Time::MAX && self.waiting + self.far.len() > 0 {
            if self.waiting == 0
                && let Some(&Reverse((at, _))) = self.far.peek()
            {
                self.page = page(at);
            }
            self.open();
        }
        self.near.first()
    }

    /// Opens the next page.
    fn open(&mut self) {
        let opened = self.page;
        let at = opened as usize % PAGES;
        // An empty page takes its place, the calendar's last one from now on.
        let spare = std::mem::take(&mut self.spare);
        let mut entries = std::mem::replace(&mut self.calendar[at], spare);
        self.waiting -= entries.len();
        self.page += 1;
        for (i, &number) in entries.iter().enumerate() {
            if let Some(&next) = entries.get(i + AHEAD) {
                self.prefetch(next);
            }
            let Timer { due, entered } = self.timers[number as usize];
            // Otherwise its earliest entry is another one by now.
            if page(entered) == opened {
                self.enter(number, due.max(entered));
            }
        }
        entries.clear();
        self.spare = entries;
        while let Some(&Reverse((at, number))) = self.far.peek()
            && page(at) < self.page + PAGES as u64
        {
            self.far.pop();
            if self.timers[number as usize].entered == at {
                self.enter(number, at);
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

    /// Lets the timer that comes first expire; gives when, and which, if one is due then.
    fn next(timers: &mut Timers) -> Option<(Time, u32)> {
        loop {
            let (now, number) = timers.first();
            if now == Time::MAX {
                return None;
            }
            if timers.expire(now, number) {
                timers.set(now, number, Time::MAX);
                timers.settle(number);
                return Some((now, number));
            }
        }
    }

    #[test]
    fn of_two_timers_due_at_one_time_the_lower_number_is_first() {
        let mut timers = Timers::new([ms(700), ms(5), ms(700), ms(5)]);
        for expected in [(ms(5), 1), (ms(5), 3), (ms(700), 0), (ms(700), 2)] {
            assert_eq!(next(&mut timers), Some(expected));
        }
        assert_eq!(next(&mut timers), None);
    }

    #[test]
    fn a_timer_that_was_called_off_never_comes() {
        let mut timers = Timers::new([ms(5), ms(6), ms(900)]);
        timers.set(Time::ZERO, 0, Time::MAX);
        timers.set(Time::ZERO, 2, Time::MAX);
        assert_eq!(next(&mut timers), Some((ms(6), 1)));
        assert_eq!(next(&mut timers), None);
    }

    #[test]
    fn a_timer_that_is_due_already_comes_a_nanosecond_later() {
        let mut timers = Timers::new([Time::MAX]);
        timers.set(ms(7), 0, ms(7));
        assert_eq!(next(&mut timers), Some((Time::from_nanos(7_000_001), 0)));
    }

    #[test]
    fn a_timer_that_moves_on_by_all_pages_of_the_calendar_is_not_lost() {
        let width = 1 << PAGE_BITS;
        let mut timers = Timers::new([Time::from_nanos(3 * width)]);
        let due = Time::from_nanos((3 + PAGES as u64) * width);
        timers.set(Time::ZERO, 0, due);
        assert_eq!(next(&mut timers), Some((due, 0)));
    }

    proptest! {
        #[test]
        fn timers_come_when_they_are_due_in_the_order_of_time_and_number(
            moves in prop::collection::vec(
                (0u32..8, prop::option::of((0u32..31, 0u64..16)), 0u32..4),
                1..300,
            ),
        ) {
            let mut timers = Timers::new([Time::MAX; 8]);
            let mut expected = [Time::MAX; 8];
            let mut now = Time::ZERO;
            for (number, after, expiries) in moves {
                // From a nanosecond to 16 s, so that some are beyond the calendar.
                let due = after.map(|(power, part)| ((16 + part) << power) >> 4);
                let due = due.map_or(Time::MAX, |after| now + Span::from_nanos(after.max(1)));
                timers.set(now, number, due);
                expected[number as usize] = due;
                for _ in 0..expiries {
                    let first = expected.iter().copied().zip(0..).min().filter(|first| first.0 < Time::MAX);
                    prop_assert_eq!(next(&mut timers), first);
                    if let Some((at, number)) = first {
                        (now, expected[number as usize]) = (at, Time::MAX);
                    }
                }
            }
        }
    }
}
