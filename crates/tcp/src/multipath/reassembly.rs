//! Reassembly of the connection's data.

use crate::ranges::RangeSet;

/// The connection's data received so far, by packet number.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    next: u32,
    out_of_order: RangeSet,
}

impl Reassembly {
    /// The first packet missing.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// A packet arrived on a subflow; it may be a duplicate.
    #[inline]
    pub(super) fn arrive(&mut self, number: u32) {
        if number > self.next {
            self.out_of_order.insert(number, number + 1, |_, _| {});
        } else if number == self.next {
            self.next += 1;
            if let Some((start, end)) = self.out_of_order.first()
                && start <= self.next
            {
                self.next = end.max(self.next);
                self.out_of_order.remove_below(self.next);
            }
        }
    }
}
