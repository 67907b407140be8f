//! The send buffer: what the application has written and the peer has not acknowledged.

use crate::Stack;
use crate::pacing::GSO_MAX_SIZE;

/// The send buffer at its maximum, packets. Linux's grows to twice the window before
/// (`tcp_sndbuf_expand`), so only its maximum limits the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer {
    size: u32,
    /// End of what the application has written.
    written: u32,
    /// Packets of a full `sk_buff`.
    skb: u32,
}

impl SendBuffer {
    pub(crate) fn new(stack: &Stack) -> SendBuffer {
        let size = stack.max_written();
        let skb = if stack.tso { (GSO_MAX_SIZE / u32::from(stack.mss)).max(1) } else { 1 };
        SendBuffer { size, written: size, skb }
    }

    /// Packets of a full `sk_buff`.
    pub(crate) fn skb(&self) -> u32 {
        self.skb
    }

    /// Packets from `next` to the end of its `sk_buff`: data is written into buffers of 64 kB
    /// (`tcp_send_mss`).
    #[inline]
    pub(crate) fn left_of_skb(&self, next: u32) -> u32 {
        self.skb - next % self.skb
    }

    /// End of what an application has written that always has data: it fills the buffer when a third
    /// of it is free (`sk_stream_write_space`).
    #[inline]
    pub(crate) fn written(&mut self, una: u32) -> u32 {
        fill(&mut self.written, una, self.size);
        self.written
    }
}

/// Writes up to the end of a buffer of `size` packets, if a third of it is free.
#[inline]
fn fill(written: &mut u32, una: u32, size: u32) {
    let end = una.saturating_add(size);
    if end.saturating_sub(*written) >= size.div_ceil(3) {
        *written = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_data_is_in_buffers_of_64_kb() {
        let buffer = SendBuffer::new(&Stack::linux());
        assert_eq!([0, 1, 44, 45, 89].map(|next| buffer.left_of_skb(next)), [45, 44, 1, 45, 1]);
        let jumbo = SendBuffer::new(&Stack { mss: 8948, ..Stack::linux() });
        assert_eq!(jumbo.left_of_skb(0), 7);
        assert_eq!(SendBuffer::new(&Stack::linux().of_subflow()).skb(), 45);
    }

    /// 4 MiB / (1448 + 1280): each packet is an `sk_buff`.
    #[test]
    fn without_tso_a_buffer_holds_fewer_packets() {
        let stack = Stack { tcp_wmem: 4_194_304, tso: false, ..Stack::linux() };
        let buffer = SendBuffer::new(&stack);
        assert_eq!((buffer.size, buffer.left_of_skb(0)), (1_537, 1));
    }

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
