//! The application's interface of a connection: send, receive, close.

#[cfg(feature = "io")]
use super::Established;
use super::{Connection, ConnectionState};
use crate::config::Mode;
use crate::packet::{DataHeader, Packet};
use crate::receive_buffer::ReceiveBuffer;
#[cfg(feature = "io")]
use crate::seq::Seq;
#[cfg(feature = "io")]
use crate::sink::ByteCounter;
use crate::sink::Sink;
use crate::source::Source;
use dumbbell_units::{Span, Time};

/// Content of bulk data.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// Why data cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is not open, or this end has closed it.
    #[error("the connection is not open")]
    NotOpen,
    /// Stream data on a connection in message mode, or the reverse. The value is the connection's mode.
    #[error("the connection carries {}, not {}", name(*.0), other(*.0))]
    WrongMode(Mode),
    /// A message without bytes, which UDT's packets cannot carry.
    #[error("a message has at least one byte")]
    Empty,
    /// The message exceeds the whole send buffer, whose size is given in bytes.
    #[error("the message is longer than the send buffer of {0} bytes")]
    TooLong(usize),
    /// The message exceeds the free part of the send buffer.
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
    /// Queues stream data. Returns the number of bytes that fit into the send buffer.
    ///
    /// # Errors
    /// [`SendError::NotOpen`] or [`SendError::WrongMode`].
    pub fn send(&mut self, now: Time, bytes: &[u8]) -> Result<usize, SendError> {
        self.check_sendable(Mode::Stream)?;
        let room = self.send_buffer_free();
        self.push(now, &bytes[..bytes.len().min(room)], false, Time::MAX);
        Ok(bytes.len().min(room))
    }

    /// Queues a message of at least one byte.
    ///
    /// Losses are not retransmitted once the message is older than `ttl`. With `in_order`, the message
    /// is not delivered before earlier ones.
    ///
    /// # Errors
    /// Any [`SendError`]; nothing is queued then.
    pub fn send_message(
        &mut self,
        now: Time,
        bytes: &[u8],
        ttl: Option<Span>,
        in_order: bool,
    ) -> Result<(), SendError> {
        self.check_sendable(Mode::Message)?;
        let capacity = self.send_capacity();
        if bytes.is_empty() {
            return Err(SendError::Empty);
        }
        if bytes.len() > capacity {
            return Err(SendError::TooLong(capacity));
        }
        if bytes.len() > self.send_buffer_free() {
            return Err(SendError::Full);
        }
        self.push(now, bytes, in_order, ttl.map_or(Time::MAX, |ttl| now + ttl));
        Ok(())
    }

    /// Checks that the connection is in this mode.
    pub(crate) fn check_mode(&self, mode: Mode) -> Result<(), SendError> {
        if self.mode == mode { Ok(()) } else { Err(SendError::WrongMode(self.mode)) }
    }

    fn check_sendable(&self, mode: Mode) -> Result<(), SendError> {
        match &self.state {
            ConnectionState::Open if self.mode != mode => self.check_mode(mode),
            ConnectionState::Open if self.close_by.is_none() && self.bulk.is_none() => Ok(()),
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

    /// Free part of the send buffer, bytes.
    pub fn send_buffer_free(&self) -> usize {
        match self.established.as_ref().map(|established| &established.sender.source) {
            Some(Source::Queue(queue)) => queue.free_bytes(),
            _ => 0,
        }
    }

    /// Size of the send buffer, bytes.
    pub fn send_capacity(&self) -> usize {
        self.options.send_buffer as usize * self.max_payload()
    }

    /// Payload of a full packet, bytes; 0 before the connection is established.
    pub fn max_payload(&self) -> usize {
        self.established.as_ref().map_or(0, |established| established.sender.max_payload())
    }

    /// Frees the buffers of a connection that is neither polled nor read any more.
    #[cfg(feature = "io")]
    pub(crate) fn free_buffers(&mut self) {
        if let Some(established) = &mut self.established {
            established.sender.free_buffers();
            established.receiver.sink = Sink::Count(ByteCounter::new(0));
        }
    }

    /// Whether queued data is not acknowledged yet.
    pub fn has_unacknowledged(&self) -> bool {
        self.established.as_ref().is_some_and(|established| !established.sender.is_done(Time::MAX))
    }

    /// Sets the number of data packets per acknowledgement; 0: one per SYN only.
    pub fn set_ack_interval(&mut self, packets: u32) {
        self.options.ack_interval = packets;
        if let Some(established) = &mut self.established {
            established.receiver.ack_interval = packets;
        }
    }

    /// Socket id and initial sequence number of each end; `None` before the connection is established.
    #[cfg(feature = "io")]
    pub(crate) fn identities(&self) -> Option<[(u32, Seq); 2]> {
        let Established { peer_socket_id, sender, receiver, .. } = self.established.as_ref()?;
        Some([(self.socket_id, sender.isn()), (*peer_socket_id, receiver.isn())])
    }

    /// Index of a sent packet, counted from 0 at the initial sequence number.
    #[cfg(feature = "io")]
    pub(crate) fn sent_index(&self, seq: Seq) -> Option<u64> {
        self.established.as_ref()?.sender.index_of(seq)
    }

    /// Index of a received packet, counted from 0 at the peer's initial sequence number.
    #[cfg(feature = "io")]
    pub(crate) fn received_index(&self, seq: Seq) -> Option<u64> {
        self.established.as_ref()?.receiver.index_of(seq)
    }

    /// Payload of a data packet that was just polled; empty for other packets.
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

    /// Reads stream data into `out`. Returns the number of bytes, 0 if none is available or the connection
    /// carries messages.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.buffer(Mode::Stream).map_or(0, |buffer| buffer.read(out));
        self.after_read();
        read
    }

    /// Reads the next complete message; `None` if there is none or the connection carries a stream.
    pub fn read_message(&mut self) -> Option<Vec<u8>> {
        let message = self.buffer(Mode::Message)?.read_message();
        self.after_read();
        message
    }

    fn after_read(&mut self) {
        if let (ConnectionState::Open, Some(established)) = (&self.state, &mut self.established) {
            established.receiver.on_read();
        }
    }

    /// Whether data or a complete message can be read.
    pub fn is_readable(&self) -> bool {
        match self.established.as_ref().map(|established| &established.receiver.sink) {
            Some(Sink::Buffer(buffer)) => buffer.is_readable(),
            _ => false,
        }
    }

    /// Takes the error code that the peer's application sent.
    pub fn take_peer_error(&mut self) -> Option<u32> {
        self.peer_error.take()
    }

    fn buffer(&mut self, mode: Mode) -> Option<&mut ReceiveBuffer> {
        self.check_mode(mode).ok()?;
        match &mut self.established.as_mut()?.receiver.sink {
            Sink::Buffer(buffer) => Some(buffer),
            Sink::Count(_) => None,
        }
    }
}
