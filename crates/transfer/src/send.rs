//! The side that gives files.

use crate::error::{TransferError, WithPath};
use crate::frame::{CHUNK, FrameStream, ReceiverMessage, SenderMessage};
use crate::manifest::{SourceFile, modified_ns};
use blake3::Hasher;
use dumbbell_udt::io::Error;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Files that are offered before the first of them is wished for: the answer to one need not be
/// waited for before the next is asked about.
const MAX_OUTSTANDING: usize = 64;

/// Gives files over a connection until the other side has all of them. Why it ends early is told.
///
/// # Errors
/// If one cannot be read, the connection fails, or files did not arrive as they are.
pub(crate) fn send_files(
    stream: &mut FrameStream,
    items: &[SourceFile],
) -> Result<(), TransferError> {
    match send_all(stream, items) {
        Err(TransferError::Connection(Error::PeerClosed)) => Err(refusal(stream)),
        Err(error) if error.is_local() => {
            // If it does not get there any more, the sink sees that the connection is over.
            let _ = stream.send(&SenderMessage::Refused(error.to_string()));
            Err(error)
        }
        done => done,
    }
}

/// Why the other side closed while it was given something.
fn refusal(stream: &mut FrameStream) -> TransferError {
    loop {
        match stream.recv_message() {
            Ok(ReceiverMessage::Busy(why)) => return TransferError::Busy(why),
            Ok(ReceiverMessage::Refused(why)) => return TransferError::Refused(why),
            Ok(ReceiverMessage::Have { .. } | ReceiverMessage::Done(_)) => {}
            Err(error) => return error,
        }
    }
}

fn send_all(stream: &mut FrameStream, items: &[SourceFile]) -> Result<(), TransferError> {
    let files = items.iter().filter(|item| item.entry.size.is_some()).count() as u64;
    stream.monitor().start(files, items.iter().filter_map(|item| item.entry.size).sum());
    let mut offered: VecDeque<&SourceFile> = VecDeque::new();
    let mut items = items.iter();
    loop {
        while offered.len() < MAX_OUTSTANDING
            && let Some(item) = items.next()
        {
            stream.send(&SenderMessage::Entry(item.entry.clone()))?;
            if item.entry.size.is_some() {
                offered.push_back(item);
            }
        }
        let Some(item) = offered.pop_front() else { break };
        match stream.recv_message()? {
            ReceiverMessage::Have { bytes, hash } => send_file(stream, item, bytes, hash)?,
            ReceiverMessage::Busy(why) => return Err(TransferError::Busy(why)),
            ReceiverMessage::Refused(why) => return Err(TransferError::Refused(why)),
            ReceiverMessage::Done(_) => {
                return Err(TransferError::Protocol("it ends early".to_owned()));
            }
        }
    }
    stream.send(&SenderMessage::Over)?;
    match stream.recv_message()? {
        ReceiverMessage::Done(damaged) if damaged.is_empty() => Ok(()),
        ReceiverMessage::Done(damaged) => Err(TransferError::Damaged(damaged)),
        ReceiverMessage::Refused(why) => Err(TransferError::Refused(why)),
        _ => Err(TransferError::Protocol("it does not end".to_owned())),
    }
}

/// Gives a file, of which the other side has so many bytes, with this hash.
fn send_file(
    stream: &mut FrameStream,
    item: &SourceFile,
    have: u64,
    hash: Option<String>,
) -> Result<(), TransferError> {
    let size = item.entry.size.unwrap_or(0);
    let mut file = File::open(&item.path).with_path(&item.path)?;
    let mut hasher = Hasher::new();
    let mut begin = 0;
    if have > 0 && have <= size {
        io::copy(&mut (&mut file).take(have), &mut hasher).with_path(&item.path)?;
        if hash.as_deref() == Some(hasher.finalize().to_hex().as_str()) {
            begin = have;
        } else {
            hasher = Hasher::new();
            file.seek(SeekFrom::Start(0)).with_path(&item.path)?;
        }
    }
    stream.monitor().begin_file(&item.entry.path, begin);
    stream.send(&SenderMessage::Begin(begin))?;
    let mut left = size - begin;
    let mut frame = vec![0; 4 + CHUNK];
    while left > 0 {
        let most = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let read = file.read(&mut frame[4..4 + most]).with_path(&item.path)?;
        if read == 0 {
            // It has become shorter: the other side keeps nothing of it.
            stream.send(&SenderMessage::Failed)?;
            return Ok(());
        }
        hasher.update(&frame[4..4 + read]);
        stream.send_data(&mut frame[..4 + read])?;
        stream.monitor().add_bytes(read as u64);
        left -= read as u64;
    }
    let now = file.metadata().with_path(&item.path)?;
    if (now.len(), modified_ns(&now)) == (size, item.entry.modified) {
        stream.send(&SenderMessage::End(hasher.finalize().to_hex().to_string()))?;
    } else {
        // What was read may be of two states of the file.
        stream.send(&SenderMessage::Failed)?;
    }
    stream.monitor().end_file();
    Ok(())
}
