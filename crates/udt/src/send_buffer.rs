//! The send buffer: the application's data, split into packets, until it is acknowledged.

use crate::packet::MessagePart;
use crate::seq::MessageNumber;
use crate::source::MessageRange;
use dumbbell_units::Time;
use std::collections::VecDeque;

/// The send buffer.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<Chunk>,
    /// Packet index of the first chunk.
    first: u64,
    message: MessageNumber,
    payload: usize,
    capacity: usize,
    /// Empty payload buffers for reuse.
    free_list: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Chunk {
    data: Vec<u8>,
    part: MessagePart,
    expires_at: Time,
    message: MessageRange,
}

impl SendBuffer {
    /// A buffer of `capacity` packets of `payload` bytes.
    pub(crate) fn new(payload: u16, capacity: u32) -> SendBuffer {
        SendBuffer {
            chunks: VecDeque::new(),
            first: 0,
            message: MessageNumber::FIRST,
            payload: usize::from(payload),
            capacity: capacity as usize,
            free_list: Vec::new(),
        }
    }

    /// Free space, bytes.
    pub(crate) fn free_bytes(&self) -> usize {
        (self.capacity - self.chunks.len()) * self.payload
    }

    /// Adds one message, which must fit into the free space. It is not retransmitted after `expires`.
    pub(crate) fn push(&mut self, bytes: &[u8], in_order: bool, expires: Time) {
        let first = self.first + self.chunks.len() as u64;
        let parts = bytes.len().div_ceil(self.payload) as u64;
        let message = MessageRange { number: self.message, first, last: first + parts.max(1) - 1 };
        for (piece, packet) in bytes.chunks(self.payload).zip(first..) {
            let mut data = self.free_list.pop().unwrap_or_default();
            data.extend_from_slice(piece);
            let (begins, ends) = (packet == message.first, packet == message.last);
            let part = MessagePart::new(self.message, begins, ends, in_order);
            self.chunks.push_back(Chunk { data, part, expires_at: expires, message });
        }
        if parts > 0 {
            self.message = self.message.next();
        }
    }

    pub(crate) fn available(&self, next: u64) -> Result<(), Time> {
        if next < self.first + self.chunks.len() as u64 { Ok(()) } else { Err(Time::MAX) }
    }

    fn chunk(&self, packet: u64) -> Option<&Chunk> {
        self.chunks.get(packet.checked_sub(self.first)? as usize)
    }

    pub(crate) fn describe(&self, packet: u64) -> (u16, MessagePart) {
        self.chunk(packet)
            .map_or_else(Default::default, |chunk| (chunk.data.len() as u16, chunk.part))
    }

    /// Payload of a packet.
    pub(crate) fn payload(&self, packet: u64) -> &[u8] {
        self.chunk(packet).map_or(&[], |chunk| &chunk.data)
    }

    pub(crate) fn expired(&self, packet: u64, now: Time) -> Option<MessageRange> {
        self.chunk(packet).filter(|chunk| chunk.expires_at < now).map(|chunk| chunk.message)
    }

    pub(crate) fn release(&mut self, packet: u64) {
        while self.first < packet
            && let Some(mut chunk) = self.chunks.pop_front()
        {
            chunk.data.clear();
            self.free_list.push(chunk.data);
            self.first += 1;
        }
    }
}
