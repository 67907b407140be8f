//! Where data goes that arrives: it is counted and forgotten, or kept until it is read.

use crate::packet::Data;
use crate::receive_buffer::ReceiveBuffer;
use crate::seq::MessageNumber;
use std::ops::Range;

/// Where data goes.
#[derive(Debug)]
pub(crate) enum Sink {
    /// An application that reads at once and keeps nothing.
    Count(Counter),
    /// An application that reads when it likes.
    Buffer(ReceiveBuffer),
}

/// Counts bytes.
#[derive(Debug)]
pub(crate) struct Counter {
    room: u32,
    /// Bytes by which packets that arrived fell short of full ones.
    shortfall: u64,
}

impl Counter {
    pub(crate) fn new(room: u32) -> Counter {
        Counter { room, shortfall: 0 }
    }
}

impl Sink {
    /// Packets from `acked` on for which there is room.
    #[inline]
    pub(crate) fn room(&self, acked: u64) -> u32 {
        match self {
            Sink::Count(counter) => counter.room,
            Sink::Buffer(buffer) => buffer.room(acked),
        }
    }

    /// A packet arrived for the first time, `full` bytes long or shorter.
    #[inline]
    pub(crate) fn put(&mut self, packet: u64, acked: u64, data: &Data, payload: &[u8], full: u16) {
        match self {
            Sink::Count(counter) => {
                counter.shortfall += u64::from(full.saturating_sub(data.length));
            }
            Sink::Buffer(buffer) => buffer.put(packet, acked, data, payload),
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
    pub(crate) fn in_order(&self, next: u64, full: u16) -> u64 {
        match self {
            Sink::Count(counter) => (next * u64::from(full)).saturating_sub(counter.shortfall),
            Sink::Buffer(buffer) => buffer.bytes(),
        }
    }
}
