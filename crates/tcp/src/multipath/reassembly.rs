//! Reassembly of the connection's data.

use crate::ranges::RangeSet;

/// The connection's data received so far, by packet number.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    next: u32,
    out_of_order: RangeSet,
}

/// What a packet's arrival changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Its data had arrived already.
    Duplicate,
    /// It waits for packets before it.
    OutOfOrder,
    /// With it these packets are in order.
    InOrder { packets: u32 },
}

impl Reassembly {
    /// The first packet missing.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// A packet arrived on a subflow.
    #[inline]
    pub(super) fn arrive(&mut self, number: u32) -> Arrival {
        if number > self.next {
            if self.out_of_order.contains(number) {
                return Arrival::Duplicate;
            }
            self.out_of_order.insert(number, number + 1, |_, _| {});
            return Arrival::OutOfOrder;
        }
        if number < self.next {
            return Arrival::Duplicate;
        }
        self.next += 1;
        if let Some((start, end)) = self.out_of_order.first()
            && start <= self.next
        {
            self.next = end.max(self.next);
            self.out_of_order.remove_below(self.next);
        }
        Arrival::InOrder { packets: self.next - number }
    }
}
