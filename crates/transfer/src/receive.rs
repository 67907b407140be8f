//! The side that takes files.

use crate::error::{TransferError, WithPath};
use crate::frame::{Entry, Frame, FrameStream, ReceiverMessage, SenderMessage};
use crate::partial::{Partial, PartialLock};
use crate::safe_path::resolve_for_write;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;

/// Files that a source may offer before it gives the first of them.
const MAX_OFFERED: usize = 1024;

/// Takes files into a folder until there are no more. What does not arrive as it is, is told to the
/// source and not kept; why it ends early is told too.
///
/// # Errors
/// If a file cannot be written, the connection fails, or files did not arrive as they are.
pub(crate) fn receive_files(stream: &mut FrameStream, root: &Path) -> Result<(), TransferError> {
    let done = receive_all(stream, root);
    let last = match &done {
        Err(TransferError::Busy(why)) => Some(ReceiverMessage::Busy(why.clone())),
        Err(error) if error.is_local() => Some(ReceiverMessage::Refused(error.to_string())),
        _ => None,
    };
    // If it does not get there any more, the source sees that the connection is over.
    let _ = last.map(|last| stream.send(&last));
    done
}

fn receive_all(stream: &mut FrameStream, root: &Path) -> Result<(), TransferError> {
    stream.monitor().start(0, 0);
    let mut sink = FileReceiver { root, wanted: VecDeque::new(), damaged: Vec::new() };
    loop {
        let offer = match stream.recv::<SenderMessage>()? {
            Frame::Message(offer) => Some(offer),
            Frame::Data(data) => {
                let length = data.len() as u64;
                sink.write(data)?;
                stream.monitor().add_bytes(length);
                None
            }
        };
        match offer {
            None => {}
            Some(SenderMessage::Entry(entry)) => sink.on_entry(stream, &entry)?,
            Some(SenderMessage::Begin(from)) => sink.begin_file(stream, from)?,
            Some(SenderMessage::End(hash)) => sink.end_file(stream, Some(&hash))?,
            Some(SenderMessage::Failed) => sink.end_file(stream, None)?,
            Some(SenderMessage::Over) => break,
            Some(SenderMessage::Refused(why)) => return Err(TransferError::Refused(why)),
        }
    }
    stream.send(&ReceiverMessage::Done(sink.damaged.clone()))?;
    if sink.damaged.is_empty() { Ok(()) } else { Err(TransferError::Damaged(sink.damaged)) }
}

struct FileReceiver<'a> {
    root: &'a Path,
    /// Files that were wished for, in order; the data that comes is of the first.
    wanted: VecDeque<(String, Partial)>,
    damaged: Vec<String>,
}

impl FileReceiver<'_> {
    /// A file or folder is offered: says what is there of it.
    fn on_entry(&mut self, stream: &FrameStream, entry: &Entry) -> Result<(), TransferError> {
        let Some(place) = resolve_for_write(self.root, &entry.path) else {
            let why = format!("{:?} is not a path that stays below the folder", entry.path);
            return Err(TransferError::Protocol(why));
        };
        let Some(size) = entry.size else {
            return fs::create_dir_all(&place).with_path(&place);
        };
        if self.wanted.len() >= MAX_OFFERED {
            return Err(TransferError::Protocol("too much is offered at once".to_owned()));
        }
        stream.monitor().add_expected(1, size);
        match Partial::open(entry, &place)? {
            PartialLock::Acquired(partial) => {
                let bytes = partial.written();
                let hash = (bytes > 0).then(|| partial.hash());
                stream.send(&ReceiverMessage::Have { bytes, hash })?;
                self.wanted.push_back((entry.path.clone(), *partial));
                Ok(())
            }
            PartialLock::Busy => {
                Err(TransferError::Busy(format!("{} is being received already", entry.path)))
            }
        }
    }

    fn current(&mut self) -> Result<&mut (String, Partial), TransferError> {
        let unasked = || TransferError::Protocol("data comes unasked".to_owned());
        self.wanted.front_mut().ok_or_else(unasked)
    }

    fn begin_file(&mut self, stream: &FrameStream, from: u64) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if from == 0 {
            partial.restart()?;
        } else if from != partial.written() {
            return Err(TransferError::Protocol("data begins elsewhere than it should".to_owned()));
        }
        stream.monitor().begin_file(path, from);
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if partial.write(data)? {
            return Ok(());
        }
        Err(TransferError::Protocol(format!("{path} is longer than it was said to be")))
    }

    fn end_file(&mut self, stream: &FrameStream, hash: Option<&str>) -> Result<(), TransferError> {
        self.current()?;
        let Some((path, partial)) = self.wanted.pop_front() else { return Ok(()) };
        if !partial.finish(hash.unwrap_or_default())? {
            self.damaged.push(path);
        }
        stream.monitor().end_file();
        Ok(())
    }
}
