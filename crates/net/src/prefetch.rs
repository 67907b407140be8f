//! Prefetching of memory that is needed soon.
//!
//! The state of thousands of flows does not fit into the caches, and waiting for memory is then
//! most of the cost of a packet. Links are first in, first out, so the next packets are known.

use branches::prefetch_read_data;
use std::ptr::from_ref;

const CACHE_LINE: usize = 64;
/// Into the second-level cache: the first is too small for data prefetched this early.
const SECOND_LEVEL: i32 = 1;

/// Prefetches a value's cache lines without waiting for them.
///
/// For a value of known size the loop unrolls to one instruction a line.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    for_each_line(value, prefetch_read_data::<u8, SECOND_LEVEL>);
}

/// Calls `fetch` with an address in each cache line of the value.
#[inline(always)]
fn for_each_line<T: ?Sized>(value: &T, mut fetch: impl FnMut(*const u8)) {
    let begin = from_ref(value).cast::<u8>();
    let size = size_of_val(value);
    for line in 0..size.div_ceil(CACHE_LINE) {
        fetch(begin.wrapping_add(line * CACHE_LINE));
    }
    // A value that is not aligned to a line may end in one line more.
    if align_of_val(value) < CACHE_LINE && size > 0 {
        fetch(begin.wrapping_add(size - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn lines<T: ?Sized>(value: &T) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        for_each_line(value, |address| {
            lines.insert(address.addr() / CACHE_LINE);
        });
        lines
    }

    #[test]
    fn every_line_of_a_value_is_fetched_and_no_other() {
        let bytes = [0u8; 400];
        for (from, to) in (0..130).flat_map(|from| (from + 1..400).map(move |to| (from, to))) {
            let begin = bytes.as_ptr().addr();
            let expected = (begin + from) / CACHE_LINE..=(begin + to - 1) / CACHE_LINE;
            assert!(lines(&bytes[from..to]).into_iter().eq(expected), "{from}..{to}");
        }
        assert!(lines(&()).is_empty() && lines::<[u8]>(&[]).is_empty());
    }
}
