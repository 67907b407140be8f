//! Reassembly of the connection's data.

use std::collections::BTreeMap;

/// The connection's data received so far, bytes.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    next: u64,
    /// Payloads out of order by their data sequence number, with what each takes of the window.
    out_of_order: BTreeMap<u64, (u16, u64)>,
}

/// What a packet's arrival changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Its data had arrived already.
    Duplicate,
    /// It waits for data before it.
    OutOfOrder,
    /// It is in order, and so is what waited for it, which had taken this much of the window.
    InOrder(u64),
}

impl Reassembly {
    /// The first byte missing.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether no data waits for data before it.
    pub(super) fn is_in_order(&self) -> bool {
        self.out_of_order.is_empty()
    }

    /// A packet arrived on a subflow, which takes `taken` of the window while it waits.
    #[inline]
    pub(super) fn arrive(&mut self, dsn: u64, payload: u16, taken: u64) -> Arrival {
        if dsn > self.next {
            if let Some((start, (known, _))) = self.out_of_order.range_mut(..=dsn).next_back() {
                let end = dsn + u64::from(payload);
                if *start == dsn {
                    *known = payload.max(*known);
                }
                if *start + u64::from(*known) >= end {
                    return Arrival::Duplicate;
                }
            }
            self.out_of_order.insert(dsn, (payload, taken));
            return Arrival::OutOfOrder;
        }
        let end = dsn + u64::from(payload);
        if end <= self.next {
            return Arrival::Duplicate;
        }
        self.next = end;
        let mut freed = 0;
        while let Some(first) = self.out_of_order.first_entry()
            && *first.key() <= self.next
        {
            let (start, (payload, taken)) = first.remove_entry();
            self.next = self.next.max(start + u64::from(payload));
            freed += taken;
        }
        Arrival::InOrder(freed)
    }
}
