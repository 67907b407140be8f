//! What an application does with a connection.

use super::{Connection, ConnectionState};
use crate::config::Mode;
use crate::packet::{DataHeader, Packet};
use crate::receive_buffer::ReceiveBuffer;
use crate::seq::Seq;
use crate::sink::Sink;
use crate::source::Source;
use dumbbell_units::{Span, Time};

/// What bulk data consists of.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// Why data could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is not open, or this end closed it.
    #[error("the connection is not open")]
    NotOpen,
    /// The connection carries messages, or a stream, and the other was asked for.
    #[error("the connection carries {}, not {}", name(*.0), other(*.0))]
    WrongMode(Mode),
    /// The message is greater than the send buffer.
    #[error("the message is longer than the send buffer of {0} bytes")]
    TooLong(usize),
    /// There is no room for the message now.
    #[error("the send buffer is full")]
    Full,
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => "a stream",
        Mode::Message => "messages",
    }
}

fn other(mode: Mode) -> &'static str {
    match mode {
        Mode::Stream => name(Mode::Message),
        Mode::Message => name(Mode::Stream),
    }
}

impl Connection {
    /// Sends bytes of a stream; gives how many there was room for.
    ///
    /// # Errors
    /// If the connection is not open or carries messages.
    pub fn send(&mut self, now: Time, bytes: &[u8]) -> Result<usize, SendError> {
        self.check_sendable(Mode::Stream)?;
        let room = self.send_buffer_free();
        self.push(now, &bytes[..bytes.len().min(room)], false, Time::MAX);
        Ok(bytes.len().min(room))
    }

    /// Sends a message. If it takes longer than `ttl`, it is not sent again. With `in_order`, it is
    /// not delivered before the messages before it.
    ///
    /// # Errors
    /// If the connection is not open, carries a stream, or has no room for all of the message.
    pub fn send_message(
        &mut self,
        now: Time,
        bytes: &[u8],
        ttl: Option<Span>,
        in_order: bool,
    ) -> Result<(), SendError> {
        self.check_sendable(Mode::Message)?;
        let most = self.send_capacity();
        if bytes.len() > most {
            return Err(SendError::TooLong(most));
        }
        if bytes.len() > self.send_buffer_free() {
            return Err(SendError::Full);
        }
        self.push(now, bytes, in_order, ttl.map_or(Time::MAX, |ttl| now + ttl));
        Ok(())
    }

    fn check_sendable(&self, mode: Mode) -> Result<(), SendError> {
        match &self.state {
            ConnectionState::Open if self.mode != mode => Err(SendError::WrongMode(self.mode)),
            ConnectionState::Open if !self.closing && self.bulk.is_none() => Ok(()),
            _ => Err(SendError::NotOpen),
        }
    }

    fn push(&mut self, now: Time, bytes: &[u8], in_order: bool, expires: Time) {
        let Some(established) = &mut self.established else { return };
        if let Source::Queue(queue) = &mut established.sender.source {
            queue.push(bytes, in_order, expires);
            established.sender.on_new_data(now);
        }
    }

    /// Bytes for which the send buffer has room.
    pub fn send_buffer_free(&self) -> usize {
        match self.established.as_ref().map(|established| &established.sender.source) {
            Some(Source::Queue(queue)) => queue.free_bytes(),
            _ => 0,
        }
    }

    /// Bytes of the whole send buffer.
    pub fn send_capacity(&self) -> usize {
        self.options.send_buffer as usize * self.max_payload()
    }

    /// Payload of a full packet, bytes; 0 before the connection is open.
    pub fn max_payload(&self) -> usize {
        self.established.as_ref().map_or(0, |established| established.sender.max_payload())
    }

    /// Whether something was sent that the peer is not known to have.
    pub fn has_unacknowledged(&self) -> bool {
        self.established.as_ref().is_some_and(|established| !established.sender.is_done(Time::MAX))
    }

    /// Has the peer's data acknowledged after so many packets; 0 for once a SYN.
    pub fn set_ack_interval(&mut self, packets: u32) {
        self.options.ack_interval = packets;
        if let Some(established) = &mut self.established {
            established.receiver.ack_interval = packets;
        }
    }

    /// How many packets before the one of that number were sent for the first time.
    pub fn sent_index(&self, seq: Seq) -> Option<u64> {
        self.established.as_ref()?.sender.index_of(seq)
    }

    /// How many packets of the peer come before the one of that number.
    pub fn received_index(&self, seq: Seq) -> Option<u64> {
        self.established.as_ref()?.receiver.index_of(seq)
    }

    /// The payload of a data packet that was just polled.
    pub fn payload(&self, packet: &Packet) -> &[u8] {
        let (Packet::Data(DataHeader { seq, length, .. }), Some(established)) =
            (packet, &self.established)
        else {
            return &[];
        };
        match &established.sender.source {
            Source::Queue(queue) => {
                established.sender.index_of(*seq).map_or(&[], |n| queue.payload(n))
            }
            Source::Bulk(_) => &ZEROS[..usize::from(*length)],
        }
    }

    /// Reads what there is of a stream; gives the number of bytes, 0 if there are none now.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.buffer().map_or(0, |buffer| buffer.read(out));
        self.after_read();
        read
    }

    /// The next message, if one is complete.
    pub fn read_message(&mut self) -> Option<Vec<u8>> {
        let message = self.buffer()?.read_message();
        self.after_read();
        message
    }

    fn after_read(&mut self) {
        if let (ConnectionState::Open, Some(established)) = (&self.state, &mut self.established) {
            established.receiver.on_read();
        }
    }

    /// Whether there is something to read.
    pub fn is_readable(&self) -> bool {
        match self.established.as_ref().map(|established| &established.receiver.sink) {
            Some(Sink::Buffer(buffer)) => buffer.is_readable(),
            _ => false,
        }
    }

    /// The error that the peer's application told of, once.
    pub fn take_peer_error(&mut self) -> Option<u32> {
        self.peer_error.take()
    }

    fn buffer(&mut self) -> Option<&mut ReceiveBuffer> {
        match &mut self.established.as_mut()?.receiver.sink {
            Sink::Buffer(buffer) => Some(buffer),
            Sink::Count(_) => None,
        }
    }
}
