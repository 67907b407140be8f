//! Framing and messages of the transfer protocol. A frame is a big-endian word, with the body's length
//! (31 bits) and in the highest bit its type (1: data, 0: JSON message), and the body.

use crate::error::TransferError;
use crate::monitor::TransferMonitor;
use dumbbell_udt::io::{Error, Socket};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Version of the transfer protocol.
pub(crate) const VERSION: u32 = 2;
/// Maximum length of a message, bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// Maximum length of a data frame, bytes.
pub(crate) const CHUNK: usize = 1 << 18;
/// Maximum number of announced files that are not transferred yet. Announcing files early hides the
/// round trip of each.
pub(crate) const MAX_OUTSTANDING: usize = 64;
const DATA: u32 = 1 << 31;

/// First message of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: u32,
    /// Packets per acknowledgement of the client's data.
    pub(crate) ack_interval: u32,
    pub(crate) want: Operation,
}

/// Operation requested by a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// Send files.
    Push,
    /// Receive files, by paths relative to the server's folder.
    Pull(Vec<String>),
    /// List a folder, by its path relative to the server's folder.
    List(String),
    /// Send data to be discarded.
    Bench,
}

/// The server's response to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Response {
    Ready { ack_interval: u32 },
    Refused(String),
}

/// Message of the sender of files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SenderMessage {
    /// Announces a file or folder.
    Entry(Entry),
    /// Data of the next file follows, from this offset on, bytes.
    Begin(u64),
    /// The file is complete; its BLAKE3 hash.
    End(String),
    /// The file became shorter, or changed during the transfer.
    Failed,
    /// No more files.
    Over,
    /// The remaining files cannot be sent; the reason.
    Refused(String),
}

/// Metadata of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Path relative to the destination folder, separated by slashes.
    pub(crate) path: String,
    /// Size, bytes; `None` for a folder.
    pub(crate) size: Option<u64>,
    /// Time of last modification, ns since 1970.
    pub(crate) modified: u64,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// Message of the receiver of files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReceiverMessage {
    /// Requests an announced file, of which the receiver has this many bytes, with this hash.
    Have { bytes: u64, hash: Option<String> },
    /// The file is there, with the announced size and modification time.
    Unchanged,
    /// A file with another size or time is there, and is kept.
    Exists,
    /// Another transfer is receiving this file.
    Busy(String),
    /// A file cannot be written; the reason.
    Refused(String),
    /// All files are processed; these are damaged.
    Done(Vec<String>),
}

/// A received frame.
pub(crate) enum Frame<'a, T> {
    Message(T),
    Data(&'a [u8]),
}

/// The length of a frame's body by its header, and whether it is data.
///
/// # Errors
/// [`TransferError::Protocol`] if the frame is too long.
pub(crate) fn parse_header(head: [u8; 4]) -> Result<(usize, bool), TransferError> {
    let head = u32::from_be_bytes(head);
    let length = (head & !DATA) as usize;
    let is_data = head & DATA != 0;
    let max_length = if is_data { CHUNK } else { MAX_MESSAGE };
    if length > max_length {
        let what = format!("a frame of {length} bytes is longer than {max_length}");
        return Err(TransferError::Protocol(what));
    }
    Ok((length, is_data))
}

/// Frames over a UDT stream.
pub(crate) struct FrameStream {
    socket: Arc<Socket>,
    monitor: Arc<TransferMonitor>,
    buffer: Vec<u8>,
    /// Deadline of the current read.
    deadline: Option<Instant>,
    /// Maximum time without a frame, and without room for one that is sent.
    max_silence: Option<Duration>,
}

impl FrameStream {
    pub(crate) fn new(socket: Arc<Socket>, monitor: Arc<TransferMonitor>) -> FrameStream {
        FrameStream { socket, monitor, buffer: Vec::new(), deadline: None, max_silence: None }
    }

    pub(crate) fn monitor(&self) -> &TransferMonitor {
        &self.monitor
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Limits the time without a frame from the peer, and without room for a frame to it.
    pub(crate) fn set_max_silence(&mut self, silence: Duration) {
        self.max_silence = Some(silence);
    }

    /// Fails if the transfer was stopped, or the connection has ended. Asked during long work.
    pub(crate) fn check(&self) -> Result<(), TransferError> {
        self.monitor.check_stopped()?;
        self.socket.error().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &impl Serialize) -> Result<(), TransferError> {
        let message = serde_json::to_vec(message).map_err(protocol_error)?;
        self.write(&[&(message.len() as u32).to_be_bytes()[..], &message].concat())
    }

    /// Sends a data frame. The first four bytes of `frame` are overwritten by the header.
    pub(crate) fn send_data(&self, frame: &mut [u8]) -> Result<(), TransferError> {
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&(length | DATA).to_be_bytes());
        self.write(frame)
    }

    /// Sends all of `bytes`.
    fn write(&self, mut bytes: &[u8]) -> Result<(), TransferError> {
        let mut since = Instant::now();
        while !bytes.is_empty() {
            self.monitor.check_stopped()?;
            match self.socket.send(bytes) {
                Ok(sent) => (bytes, since) = (&bytes[sent..], Instant::now()),
                // The socket's timeout is only the interval of checks.
                Err(Error::TimedOut)
                    if self.max_silence.is_none_or(|silence| since.elapsed() < silence) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the next frame.
    pub(crate) fn recv<T: DeserializeOwned>(&mut self) -> Result<Frame<'_, T>, TransferError> {
        let mut head = [0; 4];
        if let Some(silence) = self.max_silence {
            self.deadline = Instant::now().checked_add(silence);
        }
        self.read(&mut head)?;
        let (length, is_data) = parse_header(head)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(length, 0);
        self.read(&mut buffer)?;
        self.buffer = buffer;
        if is_data {
            return Ok(Frame::Data(&self.buffer));
        }
        serde_json::from_slice(&self.buffer).map(Frame::Message).map_err(protocol_error)
    }

    /// Receives the next frame, which must be a message.
    pub(crate) fn recv_message<T: DeserializeOwned>(&mut self) -> Result<T, TransferError> {
        match self.recv()? {
            Frame::Message(message) => Ok(message),
            Frame::Data(_) => Err(TransferError::Protocol("unexpected data".to_owned())),
        }
    }

    /// Receives the peer's first message within `timeout`. A connected peer may never send one.
    pub(crate) fn recv_first<T: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<T, TransferError> {
        let silence = self.max_silence.replace(timeout);
        let message = self.recv_message();
        (self.max_silence, self.deadline) = (silence, None);
        message
    }

    /// Fills `out`.
    fn read(&self, mut out: &mut [u8]) -> Result<(), TransferError> {
        while !out.is_empty() {
            self.monitor.check_stopped()?;
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::TimedOut.into());
            }
            match self.socket.recv(out) {
                Ok(0) => return Err(Error::PeerClosed.into()),
                Ok(read) => out = &mut out[read..],
                // The socket's timeout is only the interval of checks.
                Err(Error::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn protocol_error(error: serde_json::Error) -> TransferError {
    TransferError::Protocol(error.to_string())
}
