//! Where data goes that arrives: it is counted and forgotten, or kept until it is read.

use crate::packet::DataHeader;
use crate::receive_buffer::ReceiveBuffer;
use crate::seq::MessageNumber;
use std::ops::Range;

/// Where data goes.
#[derive(Debug)]
pub(crate) enum Sink {
    /// An application that reads at once and keeps nothing.
    Count(ByteCounter),
    /// An application that reads when it likes.
    Buffer(ReceiveBuffer),
}

/// Counts bytes.
#[derive(Debug)]
pub(crate) struct ByteCounter {
    window: u32,
    /// Bytes by which packets that arrived fell short of full ones.
    shortfall: u64,
}

impl ByteCounter {
    pub(crate) fn new(window: u32) -> ByteCounter {
        ByteCounter { window, shortfall: 0 }
    }
}

impl Sink {
    /// Packets from `acked` on for which there is room.
    #[inline]
    pub(crate) fn free_packets(&self, acked: u64) -> u32 {
        match self {
            Sink::Count(counter) => counter.window,
            Sink::Buffer(buffer) => buffer.free_packets(acked),
        }
    }

    /// A packet arrived for the first time, `full` bytes long or shorter.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        packet: u64,
        acked: u64,
        data: &DataHeader,
        payload: &[u8],
        full: u16,
    ) {
        match self {
            Sink::Count(counter) => {
                counter.shortfall += u64::from(full.saturating_sub(data.length));
            }
            Sink::Buffer(buffer) => buffer.insert(packet, acked, data, payload),
        }
    }

    /// The sender gave up these packets.
    pub(crate) fn drop_message(&mut self, message: MessageNumber, gone: Range<u64>, acked: u64) {
        if let Sink::Buffer(buffer) = self {
            buffer.drop_message(message, gone, acked);
        }
    }

    /// Packets before this one were acknowledged: they may be read.
    #[inline]
    pub(crate) fn release(&mut self, acked: u64) {
        if let Sink::Buffer(buffer) = self {
            buffer.release(acked);
        }
    }

    /// Bytes that arrived in order, if everything before `next` has. Of a short packet that came
    /// out of order a counter knows too early.
    pub(crate) fn in_order_bytes(&self, next: u64, full: u16) -> u64 {
        match self {
            Sink::Count(counter) => (next * u64::from(full)).saturating_sub(counter.shortfall),
            Sink::Buffer(buffer) => buffer.bytes(),
        }
    }
}
