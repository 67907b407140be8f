//! The receiver: `QUANTAnet_rbudpReceiver_c`.

use super::MAX_BLOCK;
use super::codec::{self, Bitmap};
use crate::engine::{Channel, Engine, Stats};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::RbudpOptions;
use dumbbell_units::Time;

/// A block that is being received.
#[derive(Debug)]
struct Block {
    bytes: u64,
    packets: u64,
    bitmap: Bitmap,
    /// The first packet that has not arrived.
    next: u64,
}

/// The end that receives data and opens the control channel.
#[derive(Debug)]
pub struct Receiver {
    options: RbudpOptions,
    inbox: Inbox,
    outbox: Vec<u8>,
    is_open: bool,
    block: Option<Block>,
    /// Bytes of the blocks before this one.
    received_before: u64,
    stats: Stats,
}

impl Receiver {
    /// A receiver that opens the transfer when it is polled.
    pub fn new(options: RbudpOptions) -> Receiver {
        Receiver {
            options,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            is_open: false,
            block: None,
            received_before: 0,
            stats: Stats::default(),
        }
    }

    fn on_data(&mut self, seq: u32, length: usize) {
        let payload = u64::from(self.options.packet_size);
        let Some(block) = &mut self.block else { return };
        let packet = u64::from(seq);
        let expected = block.bytes.saturating_sub(packet * payload).min(payload);
        if expected == length as u64 && block.bitmap.insert(packet) {
            self.stats.delivered += expected;
            while block.next < block.packets && block.bitmap.contains(block.next) {
                block.next += 1;
            }
        }
    }

    /// Processes the next message; returns whether there was one.
    fn next_message(&mut self) -> Result<bool, ProtocolError> {
        let Some(block) = &mut self.block else {
            let Some(length) = self.inbox.take_array().map(u64::from_be_bytes) else {
                return Ok(false);
            };
            if length == 0 || length > MAX_BLOCK {
                return Err(ProtocolError::Field { field: "the length of a block", value: length });
            }
            let packets = length.div_ceil(u64::from(self.options.packet_size));
            let bitmap = Bitmap::new(packets);
            self.block = Some(Block { bytes: length, packets, bitmap, next: 0 });
            return Ok(true);
        };
        let Some(end) = self.inbox.take_array() else { return Ok(false) };
        codec::decode_end(&end)?;
        // The sender waits for a bitmap before its next blast.
        if !self.outbox.is_empty() {
            return Err(ProtocolError::TooMuch(self.outbox.len()));
        }
        self.outbox.extend_from_slice(block.bitmap.as_bytes());
        if block.bitmap.missing() == 0 {
            self.received_before += block.bytes;
            self.block = None;
        }
        Ok(true)
    }
}

impl Engine for Receiver {
    fn handle(&mut self, _now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        match channel {
            Channel::Data => {
                if let Some((seq, length)) = codec::decode_data(bytes) {
                    self.on_data(seq, length);
                }
            }
            Channel::Control => {
                self.inbox.push(bytes);
                while self.next_message()? {}
            }
        }
        Ok(())
    }

    fn poll(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        if !self.is_open {
            self.is_open = true;
            out.push(0);
            return Some(Channel::Control);
        }
        (!self.outbox.is_empty()).then(|| {
            out.append(&mut self.outbox);
            Channel::Control
        })
    }

    fn next_timeout(&self) -> Time {
        if self.is_open { Time::MAX } else { Time::ZERO }
    }

    fn stats(&self) -> Stats {
        let payload = u64::from(self.options.packet_size);
        let in_block =
            self.block.as_ref().map_or(0, |block| (block.next * payload).min(block.bytes));
        Stats { received: self.received_before + in_block, ..self.stats }
    }

    fn inspect(&self, _show: &mut dyn FnMut(&'static str, f64)) {}
}
