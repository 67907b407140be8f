//! What is said over a connection: a stream of frames, each a length of 31 bits and, in the highest
//! bit, whether data follows or words (JSON).

use crate::error::TransferError;
use crate::monitor::TransferMonitor;
use dumbbell_udt::io::{Error, Socket};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The version of what is said here.
pub(crate) const VERSION: u32 = 1;
/// The longest words, bytes: a peer may say anything.
const MAX_MESSAGE: usize = 1 << 20;
/// The most data of one frame, bytes.
pub(crate) const CHUNK: usize = 1 << 18;
const DATA: u32 = 1 << 31;

/// The first words of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: u32,
    /// After how many packets the client's data is to be acknowledged.
    pub(crate) ack_interval: u32,
    pub(crate) want: Operation,
}

/// What a client wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// To give files.
    Push,
    /// To take files: paths in the server's folder.
    Pull(Vec<String>),
    /// To send data that is thrown away.
    Bench,
}

/// The server's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Response {
    Ready { ack_interval: u32 },
    Refused(String),
}

/// What a source says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SenderMessage {
    /// There is a file or a folder.
    Entry(Entry),
    /// The data of the next file begins here, bytes from its start.
    Begin(u64),
    /// The file is complete: its hash.
    End(String),
    /// The file cannot be read to its end, or was changed meanwhile.
    Failed,
    /// There are no more files.
    Over,
    /// There are, and they cannot be given.
    Refused(String),
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Where it is, below what is given: names between slashes.
    pub(crate) path: String,
    /// Bytes; a folder has none.
    pub(crate) size: Option<u64>,
    /// When it was changed last, ns since 1970.
    pub(crate) modified: u64,
    /// Who may read, write and run it.
    pub(crate) mode: u32,
}

/// What a sink says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReceiverMessage {
    /// To get the file that was offered. So many bytes of it are there already, with this hash.
    Have { bytes: u64, hash: Option<String> },
    /// Someone else is at this file.
    Busy(String),
    /// It, or what was wished for before, cannot be written.
    Refused(String),
    /// All is done; these files did not arrive as they are.
    Done(Vec<String>),
}

/// A frame that came.
pub(crate) enum Frame<'a, T> {
    Message(T),
    Data(&'a [u8]),
}

/// A connection that carries frames.
pub(crate) struct FrameStream {
    socket: Arc<Socket>,
    monitor: Arc<TransferMonitor>,
    buffer: Vec<u8>,
    /// When what is waited for is given up.
    deadline: Option<Instant>,
}

impl FrameStream {
    pub(crate) fn new(socket: Arc<Socket>, monitor: Arc<TransferMonitor>) -> FrameStream {
        FrameStream { socket, monitor, buffer: Vec::new(), deadline: None }
    }

    pub(crate) fn monitor(&self) -> &TransferMonitor {
        &self.monitor
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Says something.
    pub(crate) fn send(&self, words: &impl Serialize) -> Result<(), TransferError> {
        let words = serde_json::to_vec(words).map_err(protocol_error)?;
        self.monitor.check_stopped()?;
        let frame = [&(words.len() as u32).to_be_bytes()[..], &words].concat();
        Ok(self.socket.send_all(&frame)?)
    }

    /// Sends data, which begins after four bytes that are free for the frame's head.
    pub(crate) fn send_data(&self, frame: &mut [u8]) -> Result<(), TransferError> {
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&(length | DATA).to_be_bytes());
        self.monitor.check_stopped()?;
        Ok(self.socket.send_all(frame)?)
    }

    /// Waits for the next frame.
    pub(crate) fn recv<T: DeserializeOwned>(&mut self) -> Result<Frame<'_, T>, TransferError> {
        let mut head = [0; 4];
        self.read(&mut head)?;
        let head = u32::from_be_bytes(head);
        let length = (head & !DATA) as usize;
        let most = if head & DATA == 0 { MAX_MESSAGE } else { CHUNK };
        if length > most {
            let what = format!("a frame of {length} bytes is longer than {most}");
            return Err(TransferError::Protocol(what));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(length, 0);
        self.read(&mut buffer)?;
        self.buffer = buffer;
        if head & DATA != 0 {
            return Ok(Frame::Data(&self.buffer));
        }
        serde_json::from_slice(&self.buffer).map(Frame::Message).map_err(protocol_error)
    }

    /// Waits for words.
    pub(crate) fn recv_message<T: DeserializeOwned>(&mut self) -> Result<T, TransferError> {
        match self.recv()? {
            Frame::Message(words) => Ok(words),
            Frame::Data(_) => Err(TransferError::Protocol("data comes unasked".to_owned())),
        }
    }

    /// Waits for the peer's first words, but not for ever: it may have none, and yet be alive.
    pub(crate) fn recv_first<T: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<T, TransferError> {
        self.deadline = Instant::now().checked_add(timeout);
        let words = self.recv_message();
        self.deadline = None;
        words
    }

    /// Waits for so many bytes.
    fn read(&self, mut out: &mut [u8]) -> Result<(), TransferError> {
        while !out.is_empty() {
            self.monitor.check_stopped()?;
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::TimedOut.into());
            }
            match self.socket.recv(out) {
                Ok(0) => return Err(Error::PeerClosed.into()),
                Ok(read) => out = &mut out[read..],
                // It is time to see whether this is still wanted.
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
