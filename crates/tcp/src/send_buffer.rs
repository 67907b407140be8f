//! The send buffer: what the application has written and the peer has not acknowledged.

use crate::Stack;

/// The send buffer at its maximum, packets. Linux's grows to twice the window before
/// (`tcp_sndbuf_expand`), so only its maximum limits the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer {
    size: u32,
    /// End of what the application has written.
    written: u32,
}

impl SendBuffer {
    pub(crate) fn new(stack: &Stack) -> SendBuffer {
        let size = stack.max_written();
        SendBuffer { size, written: size }
    }

    /// End of what an application has written that always has data: it fills the buffer when a third
    /// of it is free (`sk_stream_write_space`).
    #[inline]
    pub(crate) fn written(&mut self, una: u32) -> u32 {
        let end = una.saturating_add(self.size);
        if end.saturating_sub(self.written) >= self.size.div_ceil(3) {
            self.written = end;
        }
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_filled_when_a_third_of_it_is_free() {
        let stack = Stack { tcp_wmem: 4_194_304, ..Stack::linux() };
        let mut buffer = SendBuffer::new(&stack);
        assert_eq!(
            [0, 900, 947, 1_000, 2_000].map(|una| buffer.written(una)),
            [2_839, 2_839, 3_786, 3_786, 4_839]
        );
    }
}
