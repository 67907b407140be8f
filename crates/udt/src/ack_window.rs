//! ACK history window: ACKs sent and not yet confirmed by an ACK2 (UDT4's `CACKWindow`).

use dumbbell_units::Time;
use std::collections::VecDeque;

/// Size of the window, as in UDT4.
const ENTRIES: usize = 1024;

/// Sent ACKs in the order of their ACK sequence numbers, which have 31 bits and start at 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckWindow {
    /// (acknowledged up to, send time) of each ACK.
    entries: VecDeque<(u64, Time)>,
    /// ACK sequence number of the last entry.
    newest: u32,
}

impl AckWindow {
    const MASK: u32 = 0x7fff_ffff;

    /// Records an ACK of all packets before `next`. Returns its ACK sequence number.
    pub(crate) fn push(&mut self, next: u64, now: Time) -> u32 {
        if self.entries.len() == ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back((next, now));
        self.newest = (self.newest + 1) & AckWindow::MASK;
        self.newest
    }

    /// Handles an ACK2: returns what the ACK acknowledged and its send time, and removes this and
    /// all earlier entries.
    pub(crate) fn acknowledge(&mut self, number: u32) -> Option<(u64, Time)> {
        let back = (self.newest.wrapping_sub(number) & AckWindow::MASK) as usize;
        let at = self.entries.len().checked_sub(back + 1)?;
        let entry = self.entries[at];
        self.entries.drain(..=at);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_first_ack_sequence_number_is_1() {
        assert_eq!(AckWindow::default().push(5, at(0)), 1);
    }

    #[test]
    fn an_ack2_removes_its_ack_and_all_earlier_ones() {
        let mut window = AckWindow::default();
        for (number, next) in [(1, 10), (2, 20), (3, 30)] {
            assert_eq!(window.push(next, at(next)), number);
        }
        assert_eq!(window.acknowledge(2), Some((20, at(20))));
        assert_eq!((window.acknowledge(2), window.acknowledge(1)), (None, None));
        assert_eq!((window.acknowledge(3), window.acknowledge(4)), (Some((30, at(30))), None));
    }

    #[test]
    fn the_oldest_entries_are_removed_from_a_full_window() {
        let mut window = AckWindow::default();
        for next in 0..2000 {
            window.push(next, at(0));
        }
        assert_eq!(window.acknowledge(2000 - 1024), None);
        assert_eq!(window.acknowledge(2000 - 1023), Some((976, at(0))));
    }
}
