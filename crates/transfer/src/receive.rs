//! The receiver of files.

use crate::error::{TransferError, WithPath};
use crate::frame::{Entry, Frame, FrameStream, ReceiverMessage, SenderMessage};
use crate::partial::{Partial, PartialLock};
use crate::safe_path::resolve_for_write;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;

/// Maximum number of announced files whose data has not arrived.
const MAX_OFFERED: usize = 1024;

/// Receives files into a folder. Damaged files are deleted and reported to the sender, as is a local
/// error that ends the transfer.
///
/// # Errors
/// If a file cannot be written, the connection fails, or files are damaged.
pub(crate) fn receive_files(stream: &mut FrameStream, root: &Path) -> Result<(), TransferError> {
    let result = receive_all(stream, root);
    let last = match &result {
        Err(TransferError::Busy(why)) => Some(ReceiverMessage::Busy(why.clone())),
        Err(error) if error.is_local() => Some(ReceiverMessage::Refused(error.to_string())),
        _ => None,
    };
    // If the message cannot be sent, the sender notices that the connection is closed.
    let _ = last.map(|last| stream.send(&last));
    result
}

fn receive_all(stream: &mut FrameStream, root: &Path) -> Result<(), TransferError> {
    stream.monitor().start(0, 0);
    let mut receiver = FileReceiver { root, requested: VecDeque::new(), damaged: Vec::new() };
    loop {
        let offer = match stream.recv::<SenderMessage>()? {
            Frame::Message(offer) => Some(offer),
            Frame::Data(data) => {
                let length = data.len() as u64;
                receiver.write(data)?;
                stream.monitor().add_bytes(length);
                None
            }
        };
        match offer {
            None => {}
            Some(SenderMessage::Entry(entry)) => receiver.on_entry(stream, &entry)?,
            Some(SenderMessage::Begin(from)) => receiver.begin_file(stream, from)?,
            Some(SenderMessage::End(hash)) => receiver.end_file(stream, Some(&hash))?,
            Some(SenderMessage::Failed) => receiver.end_file(stream, None)?,
            Some(SenderMessage::Over) => break,
            Some(SenderMessage::Refused(why)) => return Err(TransferError::Refused(why)),
        }
    }
    stream.send(&ReceiverMessage::Done(receiver.damaged.clone()))?;
    if receiver.damaged.is_empty() { Ok(()) } else { Err(TransferError::Damaged(receiver.damaged)) }
}

struct FileReceiver<'a> {
    root: &'a Path,
    /// Requested files in order. Received data belongs to the first.
    requested: VecDeque<(String, Partial)>,
    damaged: Vec<String>,
}

impl FileReceiver<'_> {
    /// Handles an announced file or folder: requests the missing part of a file.
    fn on_entry(&mut self, stream: &FrameStream, entry: &Entry) -> Result<(), TransferError> {
        let Some(destination) = resolve_for_write(self.root, &entry.path) else {
            let why = format!("{:?} is not a path that stays below the folder", entry.path);
            return Err(TransferError::Protocol(why));
        };
        let Some(size) = entry.size else {
            return fs::create_dir_all(&destination).with_path(&destination);
        };
        if self.requested.len() >= MAX_OFFERED {
            return Err(TransferError::Protocol("too many files are announced at once".to_owned()));
        }
        stream.monitor().add_expected(1, size);
        match Partial::open(entry, &destination)? {
            PartialLock::Acquired(partial) => {
                let bytes = partial.written();
                let hash = (bytes > 0).then(|| partial.hash());
                stream.send(&ReceiverMessage::Have { bytes, hash })?;
                self.requested.push_back((entry.path.clone(), *partial));
                Ok(())
            }
            PartialLock::Busy => {
                Err(TransferError::Busy(format!("{} is being received already", entry.path)))
            }
        }
    }

    fn current(&mut self) -> Result<&mut (String, Partial), TransferError> {
        let unexpected = || TransferError::Protocol("unexpected data".to_owned());
        self.requested.front_mut().ok_or_else(unexpected)
    }

    fn begin_file(&mut self, stream: &FrameStream, from: u64) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if from == 0 {
            partial.restart()?;
        } else if from != partial.written() {
            return Err(TransferError::Protocol("data starts at an unexpected offset".to_owned()));
        }
        stream.monitor().begin_file(path, from);
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if partial.write(data)? {
            return Ok(());
        }
        Err(TransferError::Protocol(format!("{path} is longer than announced")))
    }

    fn end_file(&mut self, stream: &FrameStream, hash: Option<&str>) -> Result<(), TransferError> {
        self.current()?;
        let Some((path, partial)) = self.requested.pop_front() else { return Ok(()) };
        if !partial.finish(hash.unwrap_or_default())? {
            self.damaged.push(path);
        }
        stream.monitor().end_file();
        Ok(())
    }
}
