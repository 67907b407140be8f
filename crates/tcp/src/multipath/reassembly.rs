//! The connection's data put in order again.

use crate::ranges::RangeSet;

/// What has arrived of the connection's data.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    next: u32,
    out_of_order: RangeSet,
}

impl Reassembly {
    /// The first packet that is missing.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// A packet arrived on some subflow, for the first time or again.
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
