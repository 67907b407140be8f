//! Asking for memory before it is needed.
//!
//! The state of thousands of flows is in no cache when a packet for one of them comes, and waiting
//! for memory is then most of what a packet costs. Which packets come next is known, as links are
//! first in, first out.

use prefetch_index::prefetch_index;
use std::ptr::from_ref;

const CACHE_LINE: usize = 64;

/// Asks the processor to fetch a value's cache lines, and does not wait for them.
///
/// For a value of known size the loop unrolls to one instruction a line.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    // An index is relative to the slice's beginning, and may lie anywhere.
    let memory: &[u8] = &[];
    let address = from_ref(value).cast::<u8>() as usize;
    let begin = address.wrapping_sub(memory.as_ptr() as usize);
    for line in 0..size_of_val(value).div_ceil(CACHE_LINE) {
        prefetch_index(memory, begin.wrapping_add(line * CACHE_LINE));
    }
    // What does not begin where a line does may reach into one more.
    if align_of_val(value) < CACHE_LINE && size_of_val(value) > 0 {
        prefetch_index(memory, begin.wrapping_add(size_of_val(value) - 1));
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
