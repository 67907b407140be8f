//! The receive buffer: data that has arrived and is not read yet.
//!
//! Packets are stored in a ring that starts at the first unread one and never exceeds the buffer's
//! size. Stream data is readable in order once it is acknowledged. A message is readable once it is
//! complete: in order, or earlier if its sender allows out-of-order delivery.

use crate::config::Mode;
use crate::packet::{DataHeader, MessagePart};
use crate::seq::MessageNumber;
use std::collections::VecDeque;
use std::ops::Range;

/// The receive buffer.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    slots: VecDeque<Slot>,
    /// Packet index of the first slot.
    base: u64,
    /// All packets before this one are acknowledged.
    acked: u64,
    capacity: u32,
    mode: Mode,
    /// Stream: bytes of the first slot that are already read.
    read_offset: usize,
    /// Bytes acknowledged.
    bytes: u64,
    /// Empty payload buffers for reuse.
    free_list: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Slot {
    /// Not arrived.
    Empty,
    /// Arrived and unread.
    Full(MessagePart, Vec<u8>),
    /// Read, or dropped by the sender.
    Consumed,
}

impl ReceiveBuffer {
    pub(crate) fn new(mode: Mode, capacity: u32) -> ReceiveBuffer {
        ReceiveBuffer {
            slots: VecDeque::new(),
            base: 0,
            acked: 0,
            capacity,
            mode,
            read_offset: 0,
            bytes: 0,
            free_list: Vec::new(),
        }
    }

    /// Free space, packets, if all before `acked` are acknowledged.
    pub(crate) fn free_packets(&self, acked: u64) -> u32 {
        let unread = acked.saturating_sub(self.base).min(u64::from(self.capacity));
        self.capacity - unread as u32
    }

    /// Bytes acknowledged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The slot of a packet; `None` if it is beyond the free space.
    fn slot(&mut self, packet: u64, acked: u64) -> Option<&mut Slot> {
        let at = packet.checked_sub(self.base)?;
        if packet.saturating_sub(acked) >= u64::from(self.free_packets(acked)) {
            return None;
        }
        let at = at as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || Slot::Empty);
        }
        self.slots.get_mut(at)
    }

    pub(crate) fn insert(&mut self, packet: u64, acked: u64, data: &DataHeader, payload: &[u8]) {
        let mut bytes = self.free_list.pop().unwrap_or_default();
        bytes.extend_from_slice(payload);
        if let Some(slot) = self.slot(packet, acked) {
            *slot = Slot::Full(data.message, bytes);
        }
    }

    pub(crate) fn drop_message(&mut self, message: MessageNumber, gone: Range<u64>, acked: u64) {
        for packet in gone {
            let Some(slot) = self.slot(packet, acked) else { return };
            if !matches!(slot, Slot::Full(part, _) if part.number() != message) {
                *slot = Slot::Consumed;
            }
        }
    }

    pub(crate) fn release(&mut self, acked: u64) {
        let from = self.acked.saturating_sub(self.base) as usize;
        let to = (acked.saturating_sub(self.base) as usize).min(self.slots.len());
        for slot in self.slots.range(from.min(to)..to) {
            if let Slot::Full(_, bytes) = slot {
                self.bytes += bytes.len() as u64;
            }
        }
        self.acked = self.acked.max(acked);
        self.pop_consumed();
    }

    /// Removes acknowledged and consumed slots from the front.
    fn pop_consumed(&mut self) {
        while self.base < self.acked && matches!(self.slots.front(), Some(Slot::Consumed)) {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    /// Reads stream data. Returns the number of bytes.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let mut written = 0;
        while self.base < self.acked && written < out.len() {
            if let Some(Slot::Full(_, bytes)) = self.slots.front() {
                let rest = &bytes[self.read_offset..];
                let some = rest.len().min(out.len() - written);
                out[written..written + some].copy_from_slice(&rest[..some]);
                written += some;
                self.read_offset += some;
                if self.read_offset < bytes.len() {
                    break;
                }
            }
            self.read_offset = 0;
            self.consume(0);
            self.pop_consumed();
        }
        written
    }

    /// Reads the next complete message.
    pub(crate) fn read_message(&mut self) -> Option<Vec<u8>> {
        debug_assert_eq!(self.mode, Mode::Message);
        let message = self.deliverable()?;
        let mut whole = Vec::new();
        for at in message {
            if let Some(Slot::Full(_, bytes)) = self.slots.get(at) {
                whole.extend_from_slice(bytes);
            }
            self.consume(at);
        }
        self.pop_consumed();
        Some(whole)
    }

    /// Whether data or a complete message can be read.
    pub(crate) fn is_readable(&self) -> bool {
        match self.mode {
            Mode::Stream => self.base < self.acked,
            Mode::Message => self.deliverable().is_some(),
        }
    }

    /// Marks a slot as read and keeps its payload buffer for reuse.
    fn consume(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        if let Slot::Full(_, mut bytes) = std::mem::replace(slot, Slot::Consumed) {
            bytes.clear();
            self.free_list.push(bytes);
        }
    }

    /// Slots of the first deliverable message.
    fn deliverable(&self) -> Option<Range<usize>> {
        let acked = self.acked.saturating_sub(self.base) as usize;
        let mut begun: Option<(usize, MessageNumber)> = None;
        for (at, slot) in self.slots.iter().enumerate() {
            let Slot::Full(part, _) = slot else {
                begun = None;
                continue;
            };
            if part.is_first() {
                begun = Some((at, part.number()));
            }
            let Some((from, number)) = begun else { continue };
            if part.number() != number {
                begun = None;
            } else if part.is_last() && (at < acked || !part.is_in_order()) {
                return Some(from..at + 1);
            }
        }
        // A message larger than the buffer can never complete: it is delivered in parts.
        let full = self.free_packets(self.acked) == 0 && acked > 0;
        full.then_some(0..acked.min(self.slots.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq;

    fn data(number: u32, first: bool, last: bool, in_order: bool) -> DataHeader {
        let message = MessagePart::new(MessageNumber::new(number), first, last, in_order);
        DataHeader { seq: Seq::new(0), message, timestamp: 0, length: 4 }
    }

    #[test]
    fn a_stream_is_readable_up_to_the_acknowledged_packet() {
        let mut buffer = ReceiveBuffer::new(Mode::Stream, 8);
        buffer.insert(1, 0, &data(2, true, true, false), b"wxyz");
        buffer.insert(0, 0, &data(1, true, true, false), b"abcd");
        let mut out = [0; 8];
        assert_eq!(buffer.read(&mut out), 0, "nothing is acknowledged yet");
        buffer.release(2);
        assert_eq!((buffer.read(&mut out[..3]), &out[..3]), (3, &b"abc"[..]));
        assert_eq!((buffer.read(&mut out), &out[..5]), (5, &b"dwxyz"[..]));
        assert_eq!(buffer.bytes(), 8);
    }

    #[test]
    fn a_message_is_delivered_in_order_unless_the_sender_waives_it() {
        for (in_order, early) in [(true, None), (false, Some(b"23".to_vec()))] {
            let mut buffer = ReceiveBuffer::new(Mode::Message, 8);
            buffer.insert(1, 0, &data(2, true, false, in_order), b"2");
            buffer.insert(2, 0, &data(2, false, true, in_order), b"3");
            assert_eq!(buffer.read_message(), early);
            buffer.insert(0, 0, &data(1, true, true, in_order), b"1");
            buffer.release(3);
            assert_eq!(buffer.read_message(), Some(b"1".to_vec()));
            assert_eq!(buffer.read_message().is_some(), in_order);
            assert_eq!(buffer.free_packets(3), 8);
        }
    }

    #[test]
    fn a_dropped_message_is_skipped() {
        let mut buffer = ReceiveBuffer::new(Mode::Message, 8);
        buffer.insert(1, 0, &data(1, false, true, true), b"1");
        buffer.insert(2, 0, &data(2, true, true, true), b"2");
        buffer.drop_message(MessageNumber::new(1), 0..2, 0);
        buffer.release(3);
        assert_eq!(buffer.read_message(), Some(b"2".to_vec()));
        assert_eq!(buffer.free_packets(3), 8);
    }

    #[test]
    fn a_message_larger_than_the_buffer_is_delivered_in_parts() {
        let mut buffer = ReceiveBuffer::new(Mode::Message, 2);
        buffer.insert(0, 0, &data(1, true, false, true), b"1");
        buffer.insert(1, 0, &data(1, false, false, true), b"2");
        buffer.release(2);
        assert_eq!(buffer.free_packets(2), 0);
        assert_eq!(buffer.read_message(), Some(b"12".to_vec()));
        assert_eq!(buffer.free_packets(2), 2);
    }

    #[test]
    fn packets_beyond_the_buffer_are_discarded() {
        let mut buffer = ReceiveBuffer::new(Mode::Stream, 4);
        buffer.insert(4, 0, &data(1, true, true, false), b"1");
        assert!(buffer.slots.is_empty());
    }
}
