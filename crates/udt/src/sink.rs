//! Destination of received data: counted and discarded, or buffered for the application.

use crate::packet::DataHeader;
use crate::receive_buffer::ReceiveBuffer;
use crate::seq::MessageNumber;
use std::ops::Range;

/// Destination of received data.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Data is counted and discarded.
    Count(ByteCounter),
    /// Data is buffered until the application reads it.
    Buffer(ReceiveBuffer),
}

/// Counts received bytes.
#[derive(Debug)]
pub(crate) struct ByteCounter {
    window: u32,
    /// Sum of (full payload - payload) over all received packets, bytes.
    shortfall: u64,
}

impl ByteCounter {
    pub(crate) fn new(window: u32) -> ByteCounter {
        ByteCounter { window, shortfall: 0 }
    }
}

impl Sink {
    /// Free space, packets, if all before `acked` are acknowledged.
    #[inline]
    pub(crate) fn free_packets(&self, acked: u64) -> u32 {
        match self {
            Sink::Count(counter) => counter.window,
            Sink::Buffer(buffer) => buffer.free_packets(acked),
        }
    }

    /// Stores a new packet; `full` is the payload of a full one.
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

    /// Drops the packets of a message that its sender has dropped.
    pub(crate) fn drop_message(&mut self, message: MessageNumber, gone: Range<u64>, acked: u64) {
        if let Sink::Buffer(buffer) = self {
            buffer.drop_message(message, gone, acked);
        }
    }

    /// Makes all packets before `acked` readable.
    #[inline]
    pub(crate) fn release(&mut self, acked: u64) {
        if let Sink::Buffer(buffer) = self {
            buffer.release(acked);
        }
    }

    /// Bytes received in order, if all packets before `next` have arrived. A counter subtracts the
    /// shortfall of packets that arrived out of order too early.
    pub(crate) fn in_order_bytes(&self, next: u64, full: u16) -> u64 {
        match self {
            Sink::Count(counter) => (next * u64::from(full)).saturating_sub(counter.shortfall),
            Sink::Buffer(buffer) => buffer.bytes(),
        }
    }
}
