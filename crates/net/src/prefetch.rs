//! Asking for memory before it is needed.
//!
//! The state of thousands of flows is in no cache when a packet for one of them comes, and waiting
//! for memory is then most of what a packet costs. Which packets come next is known, as links are
//! first in, first out.

use branches::prefetch_read_data;
use std::ptr::from_ref;

const CACHE_LINE: usize = 64;
/// Into the second-level cache: the first is too small for what is asked for so far ahead of use.
const SECOND_LEVEL: i32 = 1;

/// Asks the processor to fetch a value's cache lines, and does not wait for them.
///
/// For a value of known size the loop unrolls to one instruction a line.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let begin = from_ref(value).cast::<u8>();
    let size = size_of_val(value);
    for line in 0..size.div_ceil(CACHE_LINE) {
        prefetch_read_data::<u8, SECOND_LEVEL>(begin.wrapping_add(line * CACHE_LINE));
    }
    // What does not begin where a line does may reach into one more.
    if align_of_val(value) < CACHE_LINE && size > 0 {
        prefetch_read_data::<u8, SECOND_LEVEL>(begin.wrapping_add(size - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_asked_for_stays_as_it_is() {
        let values: Vec<u64> = (0..100).collect();
        prefetch(&values[..]);
        prefetch(&values[99]);
        prefetch(&());
        prefetch::<[u8]>(&[]);
        assert!(values.into_iter().eq(0..100));
    }
}
